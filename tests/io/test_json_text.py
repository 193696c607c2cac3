"""JSON that no reader can follow is bad input at every door: one error of ours, never one of Python's."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from rarevote import read
from rarevote.audit import Audit
from rarevote.errors import RarevoteError
from rarevote.io.json_text import parse_json
from rarevote.io.read.results import read_result

DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 5_000

CHOICE = {"type": "choices", "value": {"choices": ["a"]}, "from_name": "q", "to_name": "t"}
LABEL_STUDIO = {"id": 1, "data": {"text": "x"}, "annotations": [{"id": 1, "completed_by": 1, "result": [CHOICE]}]}
DOORS = {
    "votes.json": '[{"task": "a", "worker": "x", "label": HERE}]',
    "votes.ndjson": '{"task": "a", "worker": "x", "label": HERE}\n',
    "label-studio.json": json.dumps([LABEL_STUDIO]).replace('"x"', "HERE"),
    "argilla.json": '[{"id": "1", "fields": {"text": HERE}, "responses": {"q": [{"value": "a", "user_id": "u"}]}}]',
    "prodigy.jsonl": '{"_input_hash": 1, "_task_hash": 2, "text": HERE, "label": "a", "answer": "accept"}\n',
    "doccano.jsonl": '{"id": 1, "text": HERE, "label": ["a"]}\n',
    "appen.json": '{"id": 1, "data": {"text": HERE}, "results": {"judgments": [{"worker_id": 1, "data": {"q": "a"}}]}}',
    "bare.json": "HERE",
}


@pytest.mark.parametrize("value", [DEEP, DIGITS], ids=["nested", "digits"])
def test_the_parser_knows_one_error(value: str) -> None:
    with pytest.raises(ValueError, match=r"^(nested too deep|a number of more than \d+ digits)$"):
        parse_json(value)


def test_half_a_letter_is_none() -> None:
    """JavaScript cuts texts within an emoji; what no file can hold must not come out of one."""
    assert parse_json(r'{"a\ud83d": ["\ud83d\ude00", "x\udc00y"]}') == {"a\ufffd": ["\U0001f600", "x\ufffdy"]}
    assert parse_json(rb'["\uD83D"]') == ["\ufffd"]
    with pytest.raises(ValueError, match="can't decode"):
        parse_json(b'["\xed\xa0\x80"]')


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
@pytest.mark.parametrize("door", DOORS)
def test_no_reader_lets_half_a_letter_through(door: str, tmp_path: Path) -> None:
    path = tmp_path / door
    path.write_text(DOORS[door].replace("HERE", r'"\ud83d"').replace('"a"', r'"\ud83d"'))
    with contextlib.suppress(RarevoteError):
        votes = read(path).annotations
        "".join(map(str, [*votes.tasks, *votes.workers, *votes.classes])).encode()


@pytest.mark.parametrize("value", [DEEP, DIGITS], ids=["nested", "digits"])
@pytest.mark.parametrize("door", DOORS)
def test_every_reader_refuses_or_reads_it(door: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / door
    path.write_text(DOORS[door].replace("HERE", value))
    with contextlib.suppress(RarevoteError):
        assert read(path).annotations.n_annotations == 1


@pytest.mark.parametrize("value", [DEEP, DIGITS], ids=["nested", "digits"])
def test_results_and_plans_refuse_it(value: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(f'[{{"task": "a", "label": {value}}}]')
    with contextlib.suppress(RarevoteError):
        read_result(path)
    with pytest.raises(RarevoteError):
        Audit.from_json(f'{{"format": {value}}}')
