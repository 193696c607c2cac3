"""``rarevote aggregate`` from labels to decisions."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from rarevote.simulate.example import example_files
from tests.command import rarevote

FILES = example_files()


def test_a_recall_target_says_what_it_expects_and_what_it_cannot_promise(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = rarevote(
        "aggregate", FILES.labels, "--truth", FILES.truth, "--min-recall", "defect=0.9", "-o", out, "--json"
    )
    found = json.loads(done.stdout)
    assert found["scores"]["recall"]["defect"] >= 0.88
    assert found["scores"]["precision"]["defect"] > 0.4  # the argmax has 0.26
    flagged = duckdb.sql(f"SELECT task FROM '{out}' WHERE label = 'defect' AND decision = 'recall'").fetchall()
    assert 100 < len(flagged) < 440


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
        (["--min-recall", "defect=0"], 2, "a recall target lies above 0"),
        (["--min-recall", "defect=1.5"], 2, "a recall target lies above 0"),
        (["--min-recall", "crack=0.9"], 2, "crack"),
        (["--min-recall", "defect=0.9", "--cost", "sound:defect=1"], 2, "contradict each other"),
        (["--cost", "sound:crack=1"], 2, "crack"),
        (["--cost", "absent.csv"], 1, "no such file"),
        (["--max-review", "5"], 2, "go together"),
        (["--prevalence", "defect=lots"], 2, "--prevalence wants"),
    ],
)
def test_mistakes_write_nothing(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = rarevote("aggregate", FILES.labels, *arguments, "-o", tmp_path / "r.csv", code=code)
    assert message in done.stderr
    assert not list(tmp_path.iterdir())
