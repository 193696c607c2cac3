"""``rarevote aggregate`` from labels to decisions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rarevote.decide.decision import Decision, with_expectations
from rarevote.simulate.files import example_files
from tests.command import rarevote

FILES = example_files()


def test_a_recall_target_says_what_it_expects_and_what_it_cannot_promise(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = rarevote(
        "aggregate", FILES.labels, "--truth", FILES.truth, "--min-recall", "defect=0.9", "-o", out, "--json"
    )
    found = json.loads(done.stdout)
    assert found["scores"]["recall"]["defect"] >= 0.9
    flagged = duckdb.sql(f"SELECT task FROM '{out}' WHERE label = 'defect' AND decision = 'recall'").fetchall()
    target, expected = found["decision"]["recall_target"], found["decision"]["classes"]["defect"]
    assert len(flagged) == target["n_flagged"] <= 440  # so many have a vote for defect
    assert not target["promised"]
    assert f"takes at least {target['floor']} reviews" in target["words"]
    low, high = expected["expected_recall_interval"]
    assert low < found["scores"]["recall"]["defect"] < high
    low, high = expected["share_interval"]
    assert low < 120 / 3000 < high
    told = rarevote("aggregate", FILES.labels, "--min-recall", "defect=0.9", "-o", out).stderr
    assert "warning: the recall of defect is not promised" in told
    assert "an audit" in told


def test_what_to_expect_is_drawn_only_for_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def count(probabilities: Any, codes: Any, words: str, *others: Any) -> Decision:
        drawn.append(words)
        return with_expectations(probabilities, codes, words, *others)

    monkeypatch.setattr("rarevote.result.with_expectations", count)
    out = tmp_path / "r.csv"
    told = rarevote("aggregate", FILES.labels, "-o", out).stderr
    assert "decided by balanced" in told
    assert not drawn
    found = json.loads(rarevote("aggregate", FILES.labels, "-o", out, "--json").stdout)
    assert set(found["decision"]["classes"]) == {"sound", "defect"}
    assert len(drawn) == 1


def test_a_random_sample_promises_by_its_own_bound(tmp_path: Path) -> None:
    sample = tmp_path / "sample.csv"
    duckdb.sql(f"COPY (SELECT * FROM '{FILES.truth}' USING SAMPLE 700 ROWS (reservoir, 1)) TO '{sample}'")
    done = rarevote(
        "aggregate", FILES.labels, "--gold", sample, "--gold-is-random", "--truth", FILES.truth,
        "--min-recall", "defect=0.8", "-o", tmp_path / "r.csv", "--json",
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["decision"]["recall_target"]["promised"]
    assert found["scores"]["recall"]["defect"] >= 0.8


def test_costs_and_review(tmp_path: Path) -> None:
    out, review = tmp_path / "r.csv", tmp_path / "review.csv"
    done = rarevote(
        "aggregate", FILES.labels, "--cost", "sound:defect=1,defect:sound=20", "--max-review", "7",
        "--review-out", review, "-o", out,
    )  # fmt: skip
    assert "expected cost of these decisions" in done.stderr
    gains = [row[0] for row in duckdb.sql(f"SELECT expected_gain FROM '{review}'").fetchall()]
    assert len(gains) == 7
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--min-recall", "defect=0"], 2, "a recall must be above 0"),
        (["--min-recall", "defect=1.5"], 2, "a recall must be above 0"),
        (["--min-recall", "crack=0.9"], 2, "crack"),
        (["--min-recall", "defect=0.9", "--cost", "sound:defect=1"], 2, "cannot be used together"),
        (["--cost", "sound:crack=1"], 2, "crack"),
        (["--cost", "absent.csv"], 1, "not a file"),
        (["--max-review", "5"], 2, "must be used together"),
        (["--prevalence", "defect=lots"], 2, "--prevalence must be"),
    ],
)
def test_mistakes_write_nothing(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = rarevote("aggregate", FILES.labels, *arguments, "-o", tmp_path / "r.csv", code=code)
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
