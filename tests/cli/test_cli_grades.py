"""Grades on the command line."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.command import rarevote

TINY = ["1121", "2232", "3342", "4443", "1221", "2331", "3344", "4341"]


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    rows = [f"{i},{w},{y}" for i, said in enumerate(TINY, 1) for w, y in zip("abcd", said, strict=True)]
    path.write_text("\n".join(["task,worker,label", *rows]) + "\n", encoding="utf-8")
    return path


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("order", ["1..4", "1,2,3,4"])
def test_an_order_means_the_method_of_grades(votes: Path, order: str) -> None:
    done = rarevote("aggregate", votes, "--ordered", order, "--set", "tol=1e-10")
    rows = rows_of(done.stdout)
    assert "".join(row["label"] for row in rows) == "12341233"
    assert float(rows[7]["grade"]) == pytest.approx(3.209253, abs=6e-6)
    assert float(rows[7]["p:3"]) == pytest.approx(0.598023, abs=6e-7)
    assert "anchored-ordered: " in done.stderr
    assert "decided by levelled" in done.stderr


def test_a_class_outside(votes: Path) -> None:
    rows = rows_of(rarevote("aggregate", votes, "--ordered", "1..3", "--set", "tol=1e-10").stdout)
    assert float(rows[7]["grade"]) == pytest.approx(2.268663, abs=6e-6)
    assert "".join(row["label"] for row in rows) == "12341234"


def test_posteriors_are_those_of_the_estimator(votes: Path) -> None:
    rows = rows_of(rarevote("aggregate", votes, "--ordered", "1..4", "--with-posterior", "--set", "tol=1e-10").stdout)
    found = [float(rows[7][f"posterior:{k}"]) for k in range(1, 5)]
    assert found == pytest.approx([0.000013, 0.012665, 0.747192, 0.240130], abs=6e-6)


def test_decisions(votes: Path) -> None:
    for rule in ("median", "mean", "argmax", "balanced", "balanced-median:5", "levelled"):
        done = rarevote("aggregate", votes, "--ordered", "1..4", "--decide", rule)
        assert len(rows_of(done.stdout)) == 8
    said = rarevote("aggregate", votes, "--decide", "median", code=2).stderr
    assert "'median' decides about grades and needs their order: give --ordered low,medium,high" in said
    other = rarevote("aggregate", votes, "--method", "dawid-skene", "--ordered", "1..4").stderr
    assert "decided by the method's own labels" in other


def test_what_is_refused(votes: Path) -> None:
    said = rarevote("aggregate", votes, "--method", "anchored-ordered", code=2).stderr
    assert "anchored-ordered needs the order of the grades: give --ordered low,medium,high" in said
    assert (
        "too many (at most 20): round or bin them first (awk"
        in rarevote("aggregate", votes, "--ordered", "1..100", code=2).stderr
    )
    assert "did you mean" in rarevote("aggregate", votes, "--ordered", "1,2,33,4").stderr


def test_a_tail_is_found(votes: Path) -> None:
    for option in ("--find", "--rare"):
        done = rarevote("aggregate", votes, "--ordered", "1..4", option, ">=4", "--set", "tol=1e-10")
        rows = rows_of(done.stdout)
        assert [row["task"] for row in rows if row["flag>=4"] == "yes"] == ["4", "7", "8"]
        assert [row["p>=4"] for row in rows] == [row["p:4"] for row in rows]
        assert ">=4 (the rare class): 3 of 8 tasks" in done.stderr
    assert "needs their order: give --ordered" in rarevote("aggregate", votes, "--find", ">=4", code=2).stderr


def test_a_recall_target_of_a_tail(votes: Path) -> None:
    done = rarevote("aggregate", votes, "--ordered", "1..4", "--min-recall", ">=3=0.9")
    assert "decided by recall of >=3 at least 0.9" in done.stderr
    assert {row["label"] for row in rows_of(done.stdout)[:2]} == {"1", "2"}
    said = rarevote("aggregate", votes, "--ordered", "1..4", "--min-recall", ">=1", code=2).stderr
    assert "'>=1' says no recall: give one, such as '>=1=0.9'" in said


def test_methods_are_compared_on_grades(votes: Path) -> None:
    done = rarevote("compare", votes, "--ordered", "1..4", "--methods", "anchored-ordered,majority-vote", "--json")
    assert list(json.loads(done.stdout)["methods"]) == ["anchored-ordered", "majority-vote"]


def test_a_model_for_new_tasks(votes: Path, tmp_path: Path) -> None:
    model = tmp_path / "grades.model"
    first = rows_of(rarevote("aggregate", votes, "--ordered", "1..4", "--model-out", model).stdout)
    again = rows_of(rarevote("predict", model, votes).stdout)
    assert [row["label"] for row in again] == [row["label"] for row in first]
    assert [float(row["p:3"]) for row in again] == pytest.approx([float(row["p:3"]) for row in first], abs=2e-6)


def test_other_verbs(votes: Path) -> None:
    for verb in ("check", "annotators"):
        assert json.loads(rarevote(verb, votes, "--ordered", "1..4", "--json").stdout)
    said = rarevote("explain", votes, "--ordered", "1..4", "--task", "8", "--json").stdout
    assert json.loads(said)[0]["method"] == "anchored-ordered"
