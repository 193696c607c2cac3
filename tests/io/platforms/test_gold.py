"""Gold answers with several choices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rarevote.io.platforms import read_export


def _label_studio(path: Path, *gold: list[str]) -> Path:
    def annotation(who: int, names: list[str], *, known: bool) -> dict[str, Any]:
        entry = {"id": "a", "from_name": "d", "to_name": "t", "type": "choices", "value": {"choices": names}}
        return {"completed_by": who, "ground_truth": known, "result": [entry]}

    known = [annotation(who, names, known=True) for who, names in enumerate(gold)]
    task = {"id": 1, "data": {}, "annotations": [*known, annotation(9, ["x"], known=False)]}
    (path / "x.json").write_text(json.dumps([task]))
    return path / "x.json"


def _toloka(path: Path, *gold: list[str]) -> Path:
    header = "INPUT:i\tOUTPUT:q\tGOLDEN:q\tASSIGNMENT:task_id\tASSIGNMENT:worker_id\tASSIGNMENT:status"
    rows = [f'a\t["x"]\t{json.dumps(names)}\t1\tw{who}\tAPPROVED' for who, names in enumerate(gold)]
    (path / "x.tsv").write_text("\n".join([header, *rows]) + "\n")
    return path / "x.tsv"


@pytest.mark.parametrize("made", [_label_studio, _toloka])
def test_the_order_of_the_choices_does_not_matter(tmp_path: Path, made: Any) -> None:
    options: dict[str, Any] = {"ground_truth": "gold"} if made is _label_studio else {}
    export = read_export(made(tmp_path, ["x", "y"], ["y", "x"]), multilabel=True, **options)
    assert export.gold == {"1:x": "yes", "1:y": "yes"}
    export = read_export(made(tmp_path, ["x", "y"], ["y"]), multilabel=True, **options)
    assert export.gold == {}
    assert any("1 task has more than one gold answer" in note for note in export.notes)
