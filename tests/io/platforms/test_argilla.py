"""Argilla's rarer forms: users that are gone, pages, clones of the hub, records of early versions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from rarevote.errors import InputError
from rarevote.io.platforms import detect, read_export
from rarevote.io.platforms.write_back import check_way_back, write_back
from tests.io.platforms.exports import FIXTURES


def rows(path: Path, **options: Any) -> list[tuple[str, ...]]:
    return list(zip(*read_export(path, **options).columns().values(), strict=True))


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def flat(number: int, users: list[Any], values: list[Any]) -> dict[str, Any]:
    answers = {"q.responses": values, "q.responses.users": users, "q.responses.status": ["submitted"] * len(users)}
    return {"id": f"r{number}", "text": "t", **answers}


def test_a_user_that_is_gone_is_no_annotator(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [flat(1, ["None", "u", None], ["a", "b", "c"])])
    assert rows(path) == [("r1", "u", "b")]
    assert read_export(path).left_out == {"no annotator named": 2}
    nested = {"id": "r1", "fields": {}, "responses": {"q": [{"value": "a", "user_id": "None"}]}}
    with pytest.raises(InputError, match=r"the only answer has no annotator, .* Argilla writes null for deleted users"):
        read_export(write(tmp_path / "x.json", [nested]))


def test_pages(tmp_path: Path) -> None:
    answers = [{"user_id": "u", "status": "submitted", "values": {"q": {"value": "a"}}}]
    record = {"id": "r1", "fields": {"text": "t"}, "responses": answers, "suggestions": []}
    path = write(tmp_path / "page.json", {"items": [record], "total": 1})
    assert detect(path) == "argilla"
    assert rows(path, show=["text"]) == [("r1", "u", "a", "t")]
    write_back(read_export(path), ["r1"], ["a"], [0.9], tmp_path / "back.json")
    (back,) = json.loads((tmp_path / "back.json").read_text(encoding="utf-8"))
    assert back["suggestions"][0]["value"] == "a"
    hub = {"features": [], "rows": [{"row_idx": 0, "row": flat(1, ["u"], ["a"]), "truncated_cells": []}]}
    assert rows(write(tmp_path / "rows.json", hub)) == [("r1", "u", "a")]


def test_a_clone_of_the_hub(tmp_path: Path) -> None:
    settings = {
        "questions": [{"name": "q", "settings": {"type": "text"}}, {"name": "p", "settings": {"type": "rating"}}]
    }
    write(tmp_path / ".argilla" / "settings.json", settings)
    for number in (1, 2):
        record = flat(number, ["u"], ["free text"]) | {"p.responses": [number], "p.responses.users": ["u"]}
        source = write(tmp_path / "source.json", [record])
        target = tmp_path / "data" / f"train-0000{number}-of-00002.parquet"
        target.parent.mkdir(exist_ok=True)
        duckdb.sql(f"COPY (SELECT * FROM read_json('{source}')) TO '{target}' (FORMAT parquet)")
        source.unlink()
    assert detect(tmp_path) == "argilla"
    assert rows(tmp_path) == [("r1", "u", "1"), ("r2", "u", "2")]
    assert rows(target) == [("r2", "u", "2")]  # the settings are above it


def test_early_records_that_nobody_has_answered(tmp_path: Path) -> None:
    empty = {"text": "t", "q": [], "external_id": "e0", "metadata": "{}"}
    answered = {**empty, "external_id": "e1", "q": [{"user_id": "u", "value": "a", "status": "submitted"}]}
    path = write(tmp_path / "x.json", [empty, answered])
    assert detect(path) == "argilla"
    export = read_export(path)
    assert (export.task, export.unanswered, export.left_out) == (["e1"], ["e0"], {})
    assert write_back(export, ["e1"], ["a"], [0.9], tmp_path / "back.json") == 1
    assert json.loads((tmp_path / "back.json").read_text(encoding="utf-8"))[0] == empty


def test_records_with_a_single_annotation(tmp_path: Path) -> None:
    def record(number: int, **more: Any) -> dict[str, Any]:
        scores = [{"label": "A", "score": 0.2}, {"label": "B", "score": 0.8}]
        return {
            "text": "t", "inputs": {"text": "t"}, "prediction": scores, "prediction_agent": "m", "annotation": None,
            "annotation_agent": None, "multi_label": False, "id": f"r{number}", "metadata": {"source": "web"},
            "status": "Default", **more,
        }  # fmt: skip

    records = [
        record(1, annotation="A", annotation_agent="ana", status="Validated"),
        record(1, annotation="B", annotation_agent="bo", status="Validated"),
        record(2, annotation="A", annotation_agent="ana", status="Discarded"),
        record(3),
    ]
    path = write(tmp_path / "x.json", records)
    assert detect(path) == "argilla"
    assert rows(path, show=["source"]) == [("r1", "ana", "A", "web"), ("r1", "bo", "B", "web")]
    export = read_export(path, include_predictions=True)
    assert set(zip(export.task, export.worker, export.label, strict=True)) >= {("r3", "model:m", "B")}
    assert export.left_out == {"discarded": 1}
    with pytest.raises(InputError, match="cannot take suggestions"):
        check_way_back(export.platform, tmp_path / "back.json", export.details)


def test_a_dataset_on_disk_is_still_read_by_its_records() -> None:
    assert read_export(FIXTURES / "argilla_disk", question="severity").n_records == 3
