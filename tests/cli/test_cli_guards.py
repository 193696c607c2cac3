"""Decisions and guards as a person meets them on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from rarevote import example_files
from tests.command import rarevote


def table(path: Path, rows: Sequence[tuple[object, ...]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([("task", "worker", "label"), *rows])
    return path


def labels(path: Path) -> dict[str, str]:
    with path.open(newline="", encoding="utf-8") as handle:
        return {row["task"]: row["label"] for row in csv.DictReader(handle)}


def test_one_vote_per_item_is_given_back_with_a_warning(tmp_path: Path) -> None:
    votes = [(f"t{n}", f"w{n % 4}", "ab"[n % 3 == 0]) for n in range(30)]
    path, out = table(tmp_path / "votes.csv", votes), tmp_path / "r.csv"
    done = rarevote("aggregate", path, "-o", out)
    assert "no two annotators voted on the same item" in done.stderr
    assert "no method can learn who is right" in done.stderr
    assert labels(out) == {task: label for task, _, label in votes}
    rarevote("aggregate", path, "-o", out, "--strict", code=3)
    assert json.loads(rarevote("aggregate", path, "-o", out, "--json").stdout)["cannot_answer"]


def test_labels_that_nobody_voted_for_need_a_flag(tmp_path: Path) -> None:
    # Two classes that experts tell apart, and a third that nobody gives to item x.
    votes = [(f"t{n}", worker, "abc"[n % 3]) for n in range(30) for worker in ("ann", "bob", "cy")]
    path, out = table(tmp_path / "votes.csv", [*votes, ("x", "ann", "a"), ("x", "bob", "b")]), tmp_path / "r.csv"
    for method in ("cc-rasch", "dawid-skene", "anchored-rasch"):
        rarevote("aggregate", path, "-m", method, "-o", out)
        assert labels(out)["x"] in ("a", "b")


def test_unsure_is_proposed_as_an_abstention(tmp_path: Path) -> None:
    votes = [(n, worker, "yes" if n % 2 else "no") for n in range(10) for worker in "xy"] + [(0, "z", "Not sure")]
    path = table(tmp_path / "votes.csv", votes)
    assert '--abstain "Not sure" leaves it out' in rarevote("aggregate", path, "-o", tmp_path / "r.csv").stderr
    done = rarevote("aggregate", path, "--abstain", "Not sure", "-o", tmp_path / "r.csv")
    assert "looks like a missing answer" not in done.stderr


def test_one_answer_is_printed(tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = rarevote("aggregate", example_files().labels, "--decide", "balanced:2", "-o", out)
    flagged = sum(label == "defect" for label in labels(out).values())
    assert f"defect (the rare class): {flagged:,} of 3,000 tasks" in done.stderr
    assert "weighted by how rare the class is, up to 2 false alarms" in done.stderr
    assert flagged < 168  # a lower cap flags less than the default


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--decide", "balanced:0.5"], "a cap of at least 1"),
        (["--decide", "boldly"], "there are labels, argmax, balanced and balanced:CAP"),
        (["--decide", "balanced", "--min-recall", "defect=0.9"], "--decide and --min-recall cannot be used together"),
        (["--cost", "sound:crack=1,crack:sound=2"], "'crack' is not a class"),
        (["--min-recall", "crack=0.9"], "'crack' is not a class"),
    ],
)
def test_decisions_that_cannot_be(tmp_path: Path, options: list[str], message: str) -> None:
    done = rarevote("aggregate", example_files().labels, *options, "-o", tmp_path / "r.csv", code=2)
    assert message in done.stderr
    assert not list(tmp_path.iterdir())


def test_classes_near_balance_are_not_called_rare(tmp_path: Path) -> None:
    votes = [(n, worker, "ab"[n % 2]) for n in range(20) for worker in "xyz"]
    done = rarevote("aggregate", table(tmp_path / "votes.csv", votes), "-o", tmp_path / "r.csv")
    assert "a (the class that matters)" in done.stderr
    assert "rare class" not in done.stderr
