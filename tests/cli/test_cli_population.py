"""Results of the whole population: rows for items without votes, posteriors beside probabilities, few votes."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
import sklearn.metrics

import rarevote
from rarevote.errors import RarevoteWarning
from tests.command import rarevote as command
from tests.command import rows
from tests.tables import METHOD_ROWS, MethodRow

N_VOTED, UNVOTED = 24, ("u1", "u2", "u3", "u4", "u5", "u6")
TRUTH = {f"v{n:02d}": "crack" if n % 4 == 0 else "sound" for n in range(N_VOTED)} | {
    task: "crack" if number < 2 else "sound" for number, task in enumerate(UNVOTED)
}


def votes_of(task: str, number: int) -> list[tuple[str, str]]:
    """Three votes; one in six is wrong."""
    other = "sound" if TRUTH[task] == "crack" else "crack"
    return [(f"w{w}", other if (3 * number + w) % 6 == 0 else TRUTH[task]) for w in range(3)]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A project of Label Studio of which some tasks are not labelled, or only by drafts and cancelled annotations."""

    def annotation(worker: str, vote: str, **more: Any) -> dict[str, Any]:
        value = {"from_name": "q", "to_name": "image", "type": "choices", "value": {"choices": [vote]}}
        return {"completed_by": {"email": f"{worker}@x.org"}, "result": [value], **more}

    unlabelled: list[dict[str, Any]] = [
        {"annotations": []},
        {"annotations": [annotation("w0", "crack", was_cancelled=True)]},
        {"annotations": [], "drafts": [annotation("w1", "crack")]},
    ]
    tasks = [
        {"id": task, "annotations": [annotation(*vote) for vote in votes_of(task, number)]}
        for number, task in enumerate(task for task in TRUTH if task not in UNVOTED)
    ]
    tasks += [{"id": task, **unlabelled[number % 3]} for number, task in enumerate(UNVOTED)]
    path = tmp_path / "project.json"
    path.write_text(json.dumps([{**task, "data": {"image": f"{task['id']}.png"}} for task in tasks[::-1]]))
    return path


def truth_file(path: Path, truth: dict[Any, Any] | None = None) -> Path:
    known = TRUTH if truth is None else truth
    path.write_text("task,label\n" + "".join(f"{task},{label}\n" for task, label in known.items()))
    return path


# -- items without votes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["anchored-rasch", "dawid-skene", "majority-vote"])
def test_an_export_with_unlabelled_tasks_from_end_to_end(export: Path, tmp_path: Path, method: str) -> None:
    result, back, soft = tmp_path / "r.parquet", tmp_path / "back.json", tmp_path / "soft.parquet"
    done = command("aggregate", export, "-m", method, "-o", result, "--back-out", back, "--soft-out", soft)
    assert done.stderr.count("6 of 30 items have no votes") == 1
    found = pl.read_parquet(result)
    assert found["task"].to_list() == [*sorted(set(TRUTH) - set(UNVOTED)), *UNVOTED]
    assert found["votes"].to_list() == [3] * N_VOTED + [0] * 6
    voted, unvoted = found[:N_VOTED], found[N_VOTED:]
    assert set(voted["label"]) == {"crack", "sound"}
    assert unvoted["label"].to_list() == [""] * 6
    # The mean before lapses is that after them, since these are of the mean.
    for name in ("crack", "sound"):
        assert unvoted[f"p:{name}"].to_list() == pytest.approx([voted[f"p:{name}"].mean()] * 6, abs=1e-9)
    assert (
        unvoted["confidence"].to_list() == unvoted.select(pl.max_horizontal("p:crack", "p:sound")).to_series().to_list()
    )

    written = {item["id"]: item["predictions"] for item in json.loads(back.read_text(encoding="utf-8"))}
    assert {task for task, predictions in written.items() if predictions} == set(voted["task"])
    assert {item["data"]["image"] for item in json.loads(back.read_text())} == {f"{task}.png" for task in TRUTH}
    assert sorted(pl.read_parquet(soft)["task"].unique()) == sorted(voted["task"])


def test_a_table_shows_the_same_as_text(export: Path) -> None:
    done = command("aggregate", export, "--with-posterior", "-q")
    found = rows(done.stdout)
    assert list(found[0]) == [
        "task", "label", "confidence", "votes", "p:crack", "p:sound", "posterior:crack", "posterior:sound",
    ]  # fmt: skip
    for row in found:
        empty = row["task"] in UNVOTED
        assert (row["label"] == "", row["votes"] == "0", row["posterior:crack"] == "") == (empty,) * 3
        assert float(row["p:crack"]) + float(row["p:sound"]) == pytest.approx(1, abs=1e-5)


def expected_scores(labels: dict[Any, Any], truth: dict[Any, Any]) -> dict[str, Any]:
    """What scikit-learn says of labels as text, of which an empty one is no class."""
    names = sorted({str(label) for label in truth.values()})
    true = [str(label) for label in truth.values()]
    answers = [str(labels[task]) for task in truth]
    recall, precision = (
        score(true, answers, average=None, labels=names, zero_division=0.0)
        for score in (sklearn.metrics.recall_score, sklearn.metrics.precision_score)
    )
    return {
        "recall": dict(zip(names, recall, strict=True)),
        "precision": dict(zip(names, precision, strict=True)),
        "balanced_accuracy": float(np.mean(recall)),
        "accuracy": sklearn.metrics.accuracy_score(true, answers),
        "n_items": len(true),
        "n_unanswered": answers.count(""),
    }


def test_the_truth_of_an_item_without_votes_is_a_miss(export: Path, tmp_path: Path) -> None:
    truth, out = truth_file(tmp_path / "truth.csv"), tmp_path / "r.csv"
    found = json.loads(command("aggregate", export, "--truth", truth, "-o", out, "--json").stdout)
    labels = {row["task"]: row["label"] for row in rows(out.read_text())}
    wanted = expected_scores(labels, TRUTH)
    assert wanted["n_unanswered"] == 6
    for figure, value in wanted.items():
        assert found["scores"][figure] == pytest.approx(value), figure
    assert found["scores"]["truth_without_labels"] == 0
    assert (found["n_tasks"], found["n_without_votes"]) == (30, 6)
    again = json.loads(command("score", out, "--truth", truth, "--json").stdout)
    for figure, value in wanted.items():
        assert again[figure] == pytest.approx(value), figure
    said = command("aggregate", export, "--truth", truth, "-o", out).stderr
    assert "against the truth of 30 tasks" in said
    assert "6 tasks have no label: a miss of the true class, and not a false alarm" in said


@pytest.mark.parametrize("which", ["all", "unvoted", "voted"])
def test_misses_where_classes_are_numbers(tmp_path: Path, which: str) -> None:
    """Typed classes: nothing that stands for no answer may be taken for text, or for a class."""
    number = {"crack": 1, "sound": 0}
    voted = [task for task in TRUTH if task not in UNVOTED]
    given = [(task, worker, number[vote]) for n, task in enumerate(voted) for worker, vote in votes_of(task, n)]
    pl.DataFrame(given, schema=["task", "worker", "label"], orient="row").write_parquet(tmp_path / "votes.parquet")
    (tmp_path / "items.txt").write_text("\n".join(TRUTH))
    chosen = {"all": list(TRUTH), "unvoted": list(UNVOTED), "voted": voted}[which]
    truth = truth_file(tmp_path / "truth.csv", {task: number[TRUTH[task]] for task in chosen})
    out = tmp_path / "r.csv"
    done = command(
        "aggregate",
        tmp_path / "votes.parquet",
        "--items",
        tmp_path / "items.txt",
        "--truth",
        truth,
        "-o",
        out,
        "--json",
    )
    scores = json.loads(done.stdout)["scores"]
    labels = {row["task"]: row["label"] for row in rows(out.read_text())}
    wanted = expected_scores(labels, {task: number[TRUTH[task]] for task in chosen})
    if which == "unvoted":
        del wanted["precision"]  # nothing was answered
        assert scores["precision"] == {}
    for figure, value in wanted.items():
        assert scores[figure] == pytest.approx(value), figure
    assert scores["n_unanswered"] == {"all": 6, "unvoted": 6, "voted": 0}[which]


def test_every_question_of_an_export_has_its_items_without_votes(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[1] / "io" / "platforms" / "fixtures" / "label_studio.json"
    out = tmp_path / "all"
    done = command("aggregate", fixture, "--question", "all", "--with-posterior", "-o", out)
    assert done.stderr.count("items has no votes") + done.stderr.count("items have no votes") >= 1
    for path in sorted(out.glob("*.csv")):
        found = rows(path.read_text(encoding="utf-8"))
        assert {row["task"] for row in found} == {"101", "102", "103", "104"}
        assert all((row["label"] == "") == (row["votes"] == "0") for row in found)
        assert any(name.startswith("posterior:") for name in found[0])


# -- posteriors -------------------------------------------------------------------------------------------------------


# Two classes have no order to learn from; grades are in tests/cli/test_cli_grades.py.
@pytest.mark.parametrize(
    "row", [row for row in METHOD_ROWS if not row.make().capabilities.ordered], ids=lambda row: row.name
)
def test_posteriors_are_those_of_the_estimator(export: Path, tmp_path: Path, row: MethodRow) -> None:
    estimator, votes = row.make(), rarevote.read(export).annotations
    gold = {"v00": "crack", "v01": "sound", "v02": "sound", "v04": "crack"} if row.needs_gold else None
    options: list[str | Path] = ["-m", row.name]
    for name, value in estimator.get_params().items():
        if name in row.parameters or name == "weights":
            options += ["--set", f"{name}={value}"]
    if gold is not None:
        options += ["--gold", truth_file(tmp_path / "gold.csv", gold)]
    plain, out = tmp_path / "plain.parquet", tmp_path / "r.parquet"
    command("aggregate", export, *options, "-o", plain, "-q")
    command("aggregate", export, *options, "-o", out, "-q", "--with-posterior")
    found = pl.read_parquet(out)
    assert found.columns[:6] == ["task", "label", "confidence", "votes", "p:crack", "p:sound"]
    assert found.columns[6:] == ["posterior:crack", "posterior:sound"]
    assert found[:, :6].equals(pl.read_parquet(plain)), "an option that only adds output changes nothing"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        estimator.fit(votes, gold)
    assert found["task"][:N_VOTED].to_list() == votes.tasks.tolist()
    for k, name in enumerate(votes.classes.tolist()):
        posterior = found[f"posterior:{name}"]
        assert posterior[:N_VOTED].to_list() == estimator.posterior_[:, k].tolist()
        assert posterior[N_VOTED:].is_nan().all(), "of an item without votes, a method computes nothing"


def test_votes_are_counted(tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    given = [(task, f"w{w}") for task, n in (("a", 1), ("b", 4), ("c", 2)) for w in range(n)] + [("b", "w0")]
    votes.write_text("task,worker,label\n" + "".join(f"{task},{worker},x\n" for task, worker in given))
    counted = Counter(task for task, _ in given)
    assert {row["task"]: int(row["votes"]) for row in rows(command("aggregate", votes, "-q").stdout)} == counted
    last = rows(command("aggregate", votes, "--keep", "last", "-q").stdout)
    assert {row["task"]: int(row["votes"]) for row in last} == {"a": 1, "b": 4, "c": 2}


# -- the rare class ---------------------------------------------------------------------------------------------------


def test_the_page_is_about_the_class_that_was_named(tmp_path: Path) -> None:
    """Of three classes, c has votes on four items only, and is a label of fewer."""
    lines = [
        f"t{n:03d},w{w},{'c' if n < 4 and w < 2 else 'b' if n % 5 == 0 else 'a'}" for n in range(100) for w in range(3)
    ]
    votes, out = tmp_path / "votes.csv", tmp_path / "page.html"
    votes.write_text("task,worker,label\n" + "\n".join(lines) + "\n")
    result = tmp_path / "r.csv"
    command("aggregate", votes, "--rare", "c", "-o", result, "-q")
    n_labelled = duckdb.sql(f"SELECT count(*) FROM '{result}' WHERE label = 'c'").fetchall()[0][0]
    done = command("report", votes, "--rare", "c", "-o", out, "--json")
    are = "is" if n_labelled == 1 else "are"
    assert json.loads(done.stdout)["headline"].startswith(f"100 items: {n_labelled} {are} flagged as “c”")
    page = out.read_text(encoding="utf-8")
    assert "P(c)" in page
    assert "P(b)" not in page
    assert "take as c" in page
    # Without a name the class is too small for the page to be about it: all classes are alike.
    done = command("report", votes, "-o", out, "--json")
    assert json.loads(done.stdout)["headline"].startswith("100 items in 3 classes: ")
    assert "P(c)" not in out.read_text(encoding="utf-8")


# -- few votes --------------------------------------------------------------------------------------------------------


def test_one_annotator_and_strict(tmp_path: Path) -> None:
    given = {f"t{n:02d}": "ab"[n % 4 == 0] for n in range(40)}
    votes, out = tmp_path / "votes.csv", tmp_path / "r.csv"
    votes.write_text("task,worker,label\n" + "".join(f"{task},ann,{label}\n" for task, label in given.items()))
    for method in ("anchored-rasch", "dawid-skene", "cc-rasch"):
        done = command("aggregate", votes, "-m", method, "-o", out, "--strict", code=3)
        assert "warning: all votes are by one annotator (ann), so no method can learn who is right" in done.stderr
        assert {row["task"]: row["label"] for row in rows(out.read_text())} == given


def test_where_most_items_have_one_vote_everything_says_the_same(tmp_path: Path) -> None:
    votes, out, page = tmp_path / "votes.csv", tmp_path / "r.csv", tmp_path / "page.html"
    given = [
        (f"t{n:02d}", worker, "ab"[n % 4 == 0]) for n in range(40) for worker in ("uvw" if n % 4 == 1 else "uvw"[n % 3])
    ]
    votes.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in given))
    sentence = "30 of 40 items have a single vote, which is the label: a second vote there would help most"
    done = command("aggregate", votes, "-o", out, "--strict")
    assert done.stderr.count(sentence) == 1
    summary = json.loads(command("aggregate", votes, "-o", out, "--json").stdout)
    assert sentence in summary["warnings"]
    assert summary["cannot_answer"] is False
    counts = Counter(task for task, _, _ in given)
    single = {task: label for task, _, label in given if counts[task] == 1}
    labels = {row["task"]: row["label"] for row in rows(out.read_text())}
    assert {task: labels[task] for task in single} == single
    command("report", votes, "-o", page, "-q")
    assert page.read_text(encoding="utf-8").count(sentence) == 1
    checked = command("check", votes, "--strict")
    assert checked.stdout.count(sentence) == 1
    # One vote less than half of the items is not worth a word.
    more = [*given, *((f"t{n:02d}", "x", "a") for n in range(40) if n % 4 == 2), ("t03", "x", "a")]
    votes.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in more))
    assert "have a single vote" not in command("aggregate", votes, "-o", out).stderr
