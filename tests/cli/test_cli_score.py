"""``rarevote score``: a result file against the truth, with scikit-learn as the judge of the figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
import sklearn.metrics

from rarevote.scoring.ranking import calibration_error
from tests.command import rarevote

CLASSES = ["a", "b", "c"]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """A result with probabilities in several formats, the truth of most of its tasks, and the arrays behind them."""
    random = np.random.default_rng(3)
    table = random.dirichlet(np.ones(3), size=60).round(4)
    table[:, 2] = 1 - table[:, 0] - table[:, 1]
    labels = [CLASSES[k] for k in table.argmax(axis=1)]
    truth = [name if random.random() < 0.7 else CLASSES[random.integers(3)] for name in labels]
    rows = "".join(
        f"{i},{labels[i]},{table[i].max():.6g}," + ",".join(f"{p:.6g}" for p in table[i]) + "\n" for i in range(60)
    )
    result = tmp_path / "result.csv"
    result.write_text("task,label,confidence,p:a,p:b,p:c\n" + rows)
    for ending, options in (("parquet", ""), ("ndjson", "(FORMAT json)"), ("json", "(FORMAT json, ARRAY true)")):
        duckdb.sql(f"COPY (SELECT * FROM '{result}') TO '{tmp_path / f'result.{ending}'}' {options}")
    known = tmp_path / "truth.csv"
    # Ten tasks have no truth, two truths no result.
    known.write_text("task,label\n" + "".join(f"{i},{truth[i]}\n" for i in range(50)) + "x,a\ny,b\n")
    return {"folder": tmp_path, "truth": known, "true": truth[:50], "labels": labels[:50], "table": table[:50]}


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson", "json"])
def test_figures(files: dict[str, Any], ending: str) -> None:
    done = rarevote("score", files["folder"] / f"result.{ending}", "--truth", files["truth"], "--json")
    found = json.loads(done.stdout)
    true, labels, table = files["true"], files["labels"], files["table"]
    recall = sklearn.metrics.recall_score(true, labels, average=None, labels=CLASSES)
    precision = sklearn.metrics.precision_score(true, labels, average=None, labels=CLASSES)
    assert found["recall"] == pytest.approx(dict(zip(CLASSES, recall, strict=True)))
    assert found["precision"] == pytest.approx(dict(zip(CLASSES, precision, strict=True)))
    assert found["balanced_accuracy"] == pytest.approx(sklearn.metrics.balanced_accuracy_score(true, labels))
    assert found["macro_f1"] == pytest.approx(sklearn.metrics.f1_score(true, labels, average="macro"))
    assert found["accuracy"] == pytest.approx(sklearn.metrics.accuracy_score(true, labels))
    assert found["n_items"] == 50
    assert (found["truth_without_result"], found["result_without_truth"]) == (2, 10)
    scores = found["probabilities"]["p"]
    assert scores["log_loss"] == pytest.approx(sklearn.metrics.log_loss(true, table, labels=CLASSES), abs=1e-5)
    right = np.array([a == b for a, b in zip(true, labels, strict=True)])
    assert scores["calibration_error"] == pytest.approx(calibration_error(table.max(axis=1), right), abs=1e-5)
    counts = {name: true.count(name) for name in CLASSES}
    assert found["rare_class"] == min(CLASSES, key=lambda name: counts[name])
    assert found["n_true"] == counts


def test_a_person_sees_the_rare_class_first(files: dict[str, Any]) -> None:
    done = rarevote("score", files["folder"] / "result.csv", "--truth", files["truth"], "--rare", "b")
    lines = done.stdout.splitlines()
    assert lines[0] == "against the truth of 50 tasks"
    assert lines[3].startswith("b (rare)")
    assert "log loss" in done.stdout
    assert "not scored: 2 tasks of the truth without a result" in done.stderr
    assert "not scored: 10 tasks of the result without a truth" in done.stderr
    assert rarevote("score", files["folder"] / "result.csv", "--truth", files["truth"], "-q").stderr == ""


def test_what_aggregate_says_score_says(tmp_path: Path) -> None:
    rarevote("simulate", "--out", tmp_path, "--tasks", "200", "--seed", "2", "-q")
    votes, truth, out = tmp_path / "labels.csv", tmp_path / "truth.csv", tmp_path / "r.csv"
    wanted = json.loads(rarevote("aggregate", votes, "--truth", truth, "-o", out, "--json").stdout)["scores"]
    found = json.loads(rarevote("score", out, "--truth", truth, "--json").stdout)
    for figure in ("recall", "precision", "balanced_accuracy", "macro_f1", "accuracy", "rare_recall"):
        assert found[figure] == pytest.approx(wanted[figure])


def test_no_answer_and_calibrated_probabilities(tmp_path: Path) -> None:
    result, truth = tmp_path / "r.csv", tmp_path / "t.csv"
    result.write_text(
        "task,label,p:x,p:y,calibrated:x,calibrated:y\n1,x,0.8,0.2,0.9,0.1\n2,,0.5,0.5,0.6,0.4\n3,y,0.4,0.6,0.2,0.8\n"
    )
    truth.write_text("task,label\n1,x\n2,x\n3,x\n")
    done = rarevote("score", result, "--truth", truth, "--json")
    found = json.loads(done.stdout)
    assert found["recall"] == {"x": pytest.approx(1 / 3)}
    assert found["precision"] == {"x": 1.0, "y": 0.0}
    assert found["n_unanswered"] == 1
    logs = {name: -np.log(p).mean() for name, p in (("p", [0.8, 0.5, 0.4]), ("calibrated", [0.9, 0.6, 0.2]))}
    for name, loss in logs.items():
        assert found["probabilities"][name]["log_loss"] == pytest.approx(loss)
    # The two answers: 0.8 and right, 0.6 and wrong.
    assert found["probabilities"]["p"]["calibration_error"] == pytest.approx((0.2 + 0.6) / 2)
    assert "1 task has no label: a miss" in rarevote("score", result, "--truth", truth).stderr


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("task,worker,label\n1,a,x\n1,b,y\n", "task '1' occurs twice (line 3); a result has one row per task"),
        ("task,label\n,x\n", "1 row has no task (line 2)"),
        ("task,label\n", "no rows"),
        ("id,verdict\n1,x\n", "has no column for task or label"),
        ("task,label\nq,x\n", "the truth names none of its tasks ('q' there, '1' in the truth): check ids"),
        ("task,label,p:x,p:y\n1,x,0.5,much\n", "'much' in column 'p:y' is not a probability (line 2)"),
        ("task,label,p:x,p:y\n1,x,0.5,0.1\n", "sum to 0.6, not to 1 (line 2)"),
        ("task,label,p:x,p:y\n1,x,1.5,-0.5\n", "'1.5' in column 'p:x' is not a probability"),
    ],
)
def test_results_that_cannot_be_scored(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "r.csv").write_text(rows)
    (tmp_path / "t.csv").write_text("task,label\n1,x\n")
    done = rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "t.csv", code=1)
    assert message in done.stderr
    assert done.stdout == ""


def test_mistakes(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("task,label\n1,x\n")
    done = rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "r.csv", "--rare", "z", code=2)
    assert "rare: 'z' is not a class; the classes are x" in done.stderr
    assert "no such file" in rarevote("score", tmp_path / "no.csv", "--truth", tmp_path / "r.csv", code=1).stderr
    assert "no such file" in rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "no.csv", code=1).stderr
    assert "--truth" in rarevote("score", tmp_path / "r.csv", code=2).stderr
    assert "no columns p:<class>" in rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "r.csv").stderr


def test_items_without_votes_are_misses(tmp_path: Path) -> None:
    """A result as it is written of a population of which some items have no votes: an empty label, votes 0, mean p."""
    random = np.random.default_rng(5)
    table = random.dirichlet(np.ones(2), size=40)
    table[30:] = table[:30].mean(axis=0)
    labels = ["x" if row[0] > 0.5 else "y" for row in table[:30]] + [""] * 10
    truth = ["x" if random.random() < 0.5 else "y" for _ in labels]
    rows = [
        f"{i},{label},{3 if label else 0},{x!r},{y!r}\n"
        for i, (label, (x, y)) in enumerate(zip(labels, table.tolist(), strict=True))
    ]
    (tmp_path / "r.csv").write_text("task,label,votes,p:x,p:y\n" + "".join(rows))
    (tmp_path / "t.csv").write_text("task,label\n" + "".join(f"{i},{name}\n" for i, name in enumerate(truth)))
    done = rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "t.csv", "--json")
    found = json.loads(done.stdout)
    names = ["x", "y"]
    recall = sklearn.metrics.recall_score(truth, labels, average=None, labels=names)
    precision = sklearn.metrics.precision_score(truth, labels, average=None, labels=names)
    assert found["recall"] == pytest.approx(dict(zip(names, recall, strict=True)))
    assert found["precision"] == pytest.approx(dict(zip(names, precision, strict=True)))
    assert found["accuracy"] == pytest.approx(sum(map(str.__eq__, truth, labels)) / 40)
    assert (found["n_items"], found["n_unanswered"]) == (40, 10)
    assert found["probabilities"]["p"]["log_loss"] == pytest.approx(
        sklearn.metrics.log_loss(truth, table, labels=names)
    )
    said = rarevote("score", tmp_path / "r.csv", "--truth", tmp_path / "t.csv").stderr
    assert "10 tasks have no label: a miss of the true class, and not a false alarm" in said
