"""Grades on the command line."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
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
    assert "did you mean" in rarevote("aggregate", votes, "--ordered", "1,2,33,4").stderr


def in_a_shell(line: str, folder: Path) -> list[dict[str, str]]:
    """The result of a line of commands; those of ours in this process."""
    for words in line.split(" && "):
        if words.startswith("rarevote "):
            rarevote(*shlex.split(words)[1:], folder=folder)
        else:
            subprocess.run(words, shell=True, cwd=folder, check=True)
    return rows_of((folder / "result.csv").read_text(encoding="utf-8"))


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_more_than_20_grades_are_binned_by_the_command_of_the_message(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels, truth = tmp_path / "labels.csv", rng.integers(0, 101, 60)
    rows = [f"t{i:02d},{w},{np.clip(truth[i] + rng.integers(-4, 5), 0, 100)}" for i in range(60) for w in "abcd"]
    labels.write_text("\n".join(["task,worker,label", "first,a,0", "first,b,100", *rows]) + "\n", encoding="utf-8")
    refused = rarevote("aggregate", labels, "--ordered", "0..100", code=2).stderr
    assert "101 grades are too many (at most 20): round or bin them, as this does" in refused
    hinted = rarevote("aggregate", labels, "--out", tmp_path / "plain.csv").stderr
    assert "classes are numbers. If they are ratings, round or bin them to at most 20 grades, as this does" in hinted
    for said in (refused, hinted):
        line = re.search(r"third column: (awk .*)", said)
        assert line is not None
        found = in_a_shell(line[1], tmp_path)
        assert [name for name in found[0] if name.startswith("p:")] == [f"p:{k}" for k in range(10)]
        near = [
            abs(int(row["label"]) - min(truth[int(row["task"][1:])] / 10, 9)) for row in found if row["task"][0] == "t"
        ]
        assert np.mean(near) < 1.0


def test_the_hint_is_a_command_that_works(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scale = ["none", "mild", "moderate", "severe"]
    truth = rng.integers(0, 4, 150)
    rows = [
        f"t{i:03d},{w},{scale[int(np.clip(truth[i] + rng.choice([-1, 0, 0, 1]), 0, 3))]}"
        for i in range(150)
        for w in "abcde"
    ]
    (tmp_path / "my votes.csv").write_text("\n".join(["task,worker,label", *rows]) + "\n", encoding="utf-8")
    said = rarevote("aggregate", "my votes.csv", "--out", "result.csv", folder=tmp_path).stderr
    line = re.search(r"Add --ordered none,mild,moderate,severe: (rarevote .*)", said)
    assert line is not None
    assert line[1] == "rarevote aggregate 'my votes.csv' --out result.csv --ordered none,mild,moderate,severe"
    found = in_a_shell(line[1], tmp_path)
    assert list(found[0])[-1] == "grade"
    assert abs(float(found[0]["grade"]) - truth[0]) < 1.0


def test_classes_are_told_in_their_order_and_the_guard_of_grades_in_its_words(tmp_path: Path) -> None:
    """Two people who call everything high beside one who does not: the middle may lie outside the votes."""
    rng = np.random.default_rng(3)
    rows = [
        f"t{i:03d},{w},{rng.choice(['low', 'mid', 'high'], p=[0.1, 0.2, 0.7] if w in 'ab' else [0.4, 0.4, 0.2])}"
        for i in range(80)
        for w in rng.permutation(list("abcdef"))[:2]
    ]
    votes = tmp_path / "votes.csv"
    votes.write_text("\n".join(["task,worker,label", *rows]) + "\n", encoding="utf-8")
    said = rarevote("aggregate", votes, "--ordered", "low,mid,high", "--out", tmp_path / "r.csv").stderr
    places = [said.rindex(f"\n{name} ") for name in ("low", "mid", "high")]
    assert places == sorted(places)
    assert re.search(
        r"\d+ tasks?: the label lay outside the grades voted on the task, so the nearest of these was", said
    )
    by_class = rarevote("aggregate", votes, "--out", tmp_path / "r.csv", "--method", "cc-rasch").stderr
    assert "outside the grades" not in by_class


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
    assert "'>=1' has no recall: give one, such as '>=1=0.9'" in said


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
