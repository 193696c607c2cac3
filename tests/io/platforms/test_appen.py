"""Appen's report as JSON, and what its table says besides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarevote.errors import InputError
from rarevote.io.platforms import appen, detect, read_export
from tests.io.platforms.exports import FIXTURES

UNITS = FIXTURES / "appen_units.jsonl"


def test_judgments_of_units() -> None:
    export = read_export(UNITS, question="relevant", show=["text", "state"], prediction_columns=["llm"])
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("900", "31", "Yes", "Schöner Text", "golden"),
        ("900", "33", "None", "Schöner Text", "golden"),
        ("901", "31", "No", "文\nzwei", "finalized"),
        ("901", "32", "Yes", "文\nzwei", "finalized"),  # a list of one is one choice
        ("901", "31", "Yes", "文\nzwei", "finalized"),
        ("901", "model:llm", "No", "文\nzwei", "finalized"),
    ]
    assert export.gold == {"900": "Yes"}
    assert export.left_out == {
        "tainted": 1,
        "rejected": 1,
        "no annotator named": 1,
        "no answer": 1,
    }
    assert (export.n_records, export.n_repeated, export.questions) == (3, 1, ("relevant", "topics"))


@pytest.mark.parametrize(
    ("record", "unit"),
    [
        ({"data": {}, "results": {"judgments": []}}, True),
        ({"data": {}, "results": {"judgments": []}, "judgments_count": 1}, True),
        ({"data": {}, "results": {}, "judgments_count": 1}, True),  # an aggregated report
        ({"data": {}, "results": None, "judgments_count": 1, "id": 3}, True),
        ({"data": {}, "results": {}}, False),
        ({"data": {}, "judgments_count": 1}, False),
        ({"data": {}, "results": {"judgments": {}}}, False),
        ({"data": [], "results": {"judgments": []}}, False),
        ({"results": {"judgments": []}, "judgments_count": 1}, False),
        ([{"data": {}, "results": {"judgments": []}}], False),
    ],
)
def test_what_is_a_unit(record: object, unit: bool) -> None:
    assert appen.is_unit(record) is unit


def test_several_choices_of_units() -> None:
    with pytest.raises(InputError, match=r"record 1 \(unit 900\): several choices .*'sport', 'politics'"):
        read_export(UNITS, question="topics")
    export = read_export(UNITS, question="topics", multilabel=True)
    assert list(zip(export.task, export.worker, export.label, strict=True)) == [
        ("900:politics", "31", "yes"), ("900:sport", "31", "yes"),
        ("900:politics", "33", "no"), ("900:sport", "33", "no"),
        ("901:politics", "31", "yes"), ("901:sport", "31", "no"),
    ]  # fmt: skip
    assert export.gold == {"900:politics": "yes", "900:sport": "yes"}
    assert read_export(UNITS, question="relevant", multilabel=True).gold["900:Yes"] == "yes"
    # No gold label is not the answer "none of them".
    assert not any(task.startswith("901") for task in read_export(UNITS, question="relevant", multilabel=True).gold)


def test_questions_of_units_are_listed() -> None:
    with pytest.raises(InputError, match="2 questions were asked: 'relevant', 'topics'"):
        read_export(UNITS)


def test_units_in_a_list_and_as_one(tmp_path: Path) -> None:
    units = [json.loads(line) for line in UNITS.read_text(encoding="utf-8").splitlines()]
    path = tmp_path / "job_5.json"
    path.write_text(json.dumps(units))
    assert read_export(path, question="relevant").worker == read_export(UNITS, question="relevant").worker
    path.write_text(json.dumps(units[1], indent=2))
    assert set(read_export(path, question="relevant").task) == {"901"}


def test_an_aggregated_report_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agg.json"
    unit = {
        "id": 9,
        "data": {"text": "x"},
        "judgments_count": 3,
        "state": "finalized",
        "results": {"q": {"agg": "yes"}},
    }
    path.write_text(json.dumps(unit))
    assert detect(path) == "appen"
    with pytest.raises(InputError, match="aggregated report does not say who answered what"):
        read_export(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"data": {}, "results": {"judgments": []}}', "record 1 has no id"),
        ('{"id": 1, "data": {}, "results": {"judgments": [7]}}', r"record 1 \(unit 1\): a judgment is not an object"),
        (
            '{"id": 1, "data": {}, "results": {"judgments": [{"worker_id": 3, "data": {"box": {"x": 1}}}]}}',
            r"record 1 \(unit 1\): box is an object",
        ),
        ("[7]", "record 1 is a int, not a unit"),
    ],
)
def test_broken_units(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_export(path, platform="appen")


def test_rejected_judgments_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("_unit_id,_worker_id,_rejected,q,q_gold\n1,7,true,a,\n1,8,,b,\n")
    export = read_export(path)
    assert (export.worker, export.left_out) == (["8"], {"rejected": 1})


def test_questions_of_a_long_table_are_found_in_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appen, "_SAMPLED_UNITS", 1)
    path = tmp_path / "x.csv"
    path.write_text("_unit_id,_worker_id,q,text\n1,7,a,t\n2,7,a,u\n1,8,b,t\n2,8,a,changed\n")
    assert read_export(path).questions == ("q",)
