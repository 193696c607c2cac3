"""Prodigy's yes/no lines, each about one label of an item."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from rarevote.io.platforms import read_export

ANSWERS = [(1, "POS", "a", "accept"), (1, "POS", "b", "reject"), (2, "POS", "a", "reject"), (2, "FOOD", "b", "accept")]


@pytest.mark.parametrize("nothing_ticked", [None, "no", "ignore"])
def test_a_reject_is_a_no_and_not_an_answer_without_a_choice(
    tmp_path: Path, nothing_ticked: Literal["no", "ignore"] | None
) -> None:
    path = tmp_path / "x.jsonl"
    lines = [
        {"text": "t", "label": label, "answer": answer, "_input_hash": item, "_task_hash": 1, "_annotator_id": who}
        for item, label, who, answer in ANSWERS
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    export = read_export(path, multilabel=True, nothing_ticked=nothing_ticked)
    assert list(zip(export.task, export.worker, export.label, strict=True)) == [
        (f"{item}:{label}", who, "yes" if answer == "accept" else "no") for item, label, who, answer in ANSWERS
    ]
    assert (export.left_out, export.notes) == ({}, ())
