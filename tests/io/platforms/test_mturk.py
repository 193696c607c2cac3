"""Mechanical Turk's ticks of options, of which a row can have only those that are ticked."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rarevote.io.platforms import read_export

TICKED = [("h1", "w1", ["food"]), ("h1", "w2", ["place"]), ("h2", "w1", ["place"]), ("h2", "w2", ["place"])]
FORMS: dict[str, Callable[[list[str]], list[str]]] = {
    "columns, sparse": lambda ticked: ["true" if name in ticked else "" for name in ("food", "place")],
    "columns, full": lambda ticked: [str(name in ticked).lower() for name in ("food", "place")],
    "JSON, sparse": lambda ticked: [json.dumps([{"about": dict.fromkeys(ticked, True)}])],
}


def batch(path: Path, names: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="") as handle:
        csv.writer(handle).writerows([["HITId", "WorkerId", "AssignmentStatus", *names], *rows])
    return path


@pytest.mark.parametrize("form", FORMS)
def test_a_tick_is_the_name_of_its_option(tmp_path: Path, form: str) -> None:
    names = ["Answer.taskAnswers"] if "JSON" in form else ["Answer.about.food", "Answer.about.place"]
    path = batch(tmp_path / "b.csv", names, [[h, w, "Approved", *FORMS[form](ticked)] for h, w, ticked in TICKED])
    export = read_export(path)
    assert list(zip(export.task, export.worker, export.label, strict=True)) == [(h, w, t[0]) for h, w, t in TICKED]


@pytest.mark.parametrize("form", FORMS)
def test_several_ticks(tmp_path: Path, form: str) -> None:
    names = ["Answer.taskAnswers"] if "JSON" in form else ["Answer.about.food", "Answer.about.place"]
    given = [*TICKED, ("h3", "w1", ["food", "place"])]
    path = batch(tmp_path / "b.csv", names, [[h, w, "Approved", *FORMS[form](ticked)] for h, w, ticked in given])
    export = read_export(path, multilabel=True)
    assert [(task, who) for task, who, label in zip(export.task, export.worker, export.label, strict=True)
            if label == "yes"] == [(f"{h}:{name}", w) for h, w, ticked in given for name in ticked]  # fmt: skip


def test_a_single_box_is_true_or_false(tmp_path: Path) -> None:
    rows = [["h1", "w1", "", "true", ""], ["h1", "w2", "", "false", "a text"], ["h2", "w1", "", "True", ""]]
    export = read_export(batch(tmp_path / "b.csv", ["Answer.q.on", "Answer.q.why"], rows), question="q")
    assert export.label == ["true", "false", "true"]


def test_items_of_a_form_share_their_options(tmp_path: Path) -> None:
    names = ["Input.x_1", "Input.x_2", "Answer.x_1.cat", "Answer.x_2.dog"]
    rows = [["h", "w1", "", "a", "b", "true", ""], ["h", "w2", "", "a", "b", "true", "true"]]
    export = read_export(batch(tmp_path / "b.csv", names, rows))
    assert list(zip(export.task, export.label, strict=True)) == [("h:1", "cat"), ("h:1", "cat"), ("h:2", "dog")]
