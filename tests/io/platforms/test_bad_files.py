"""Files that cannot be used: one clear error that says where, for every platform."""

from __future__ import annotations

import gzip
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError, RarevoteError, RarevoteWarning
from rarevote.io.platforms import PLATFORMS, containers, read_export, table_records
from tests.io.platforms.exports import FIXTURES, MAIN, PLATFORM_OF, zipped


@pytest.mark.parametrize(
    ("platform", "text", "message"),
    [
        ("label-studio", '[{"id": 1, "data": {}, "annotations": [', "the JSON ends too early, at byte 39 in record 1"),
        ("label-studio", '[{"id": 1, "data": {}, "annotations": {}}]', r"record 1 \(task 1\): annotations is a dict"),
        ("label-studio", '[{"data": {}, "annotations": []}]', "record 1 has no id"),
        ("label-studio", '[{"id": [1], "data": {}, "annotations": []}]', "record 1: id is a list"),
        ("label-studio", "[7]", "record 1 is a int, not a task"),
        ("argilla", '[{"id": "a", "fields": {}, "responses": {"q": [{"val', "the JSON ends too early"),
        ("argilla", '[{"id": 1, "q.responses": ["a"], "q.responses.users": []}]', "1 answers do not match"),
        ("argilla", '[{"id": 1}]', "record 1 is not a record of Argilla"),
        ("prodigy", '{"_input_hash": 1, "answer": "accept"', "the JSON ends too early"),
        ("prodigy", '{"_input_hash": 1, "answer": "maybe"}', "line 1: answer is 'maybe'"),
        ("prodigy", '{"text": "x", "answer": "accept"}', "line 1 has no _input_hash"),
        ("prodigy", '{"_input_hash": 1, "answer": "accept", "accept": [{"a": 1}]}', "line 1: accept is an object"),
        ("doccano", '{"id": 1, "text": "a", "label": ["x"]}\n{"id": 2, "te', "ends too early, at byte 52 in record 2"),
        ("doccano", '{"text": "a", "label": ["x"]}', "record 1 has no id"),
        ("mturk", "HITId,WorkerId,Answer.x\nh,w,a\nh,w\n", "line 3 has 2 cells, the header has 3"),
        ("mturk", 'HITId,WorkerId,Answer.x\nh,w,"a\n', "line 2 cannot be read: unexpected end of data"),
        ("mturk", "HITId,Answer.x\nh,a\n", "no column 'WorkerId'.*Download the results with WorkerId"),
        ("mturk", "WorkerId,Answer.x\nw,a\n", "no column HITId and no Input. column"),
        ("mturk", 'HITId,WorkerId,Answer.taskAnswers\nh,w,"[{"\n', "line 2, Answer.taskAnswers is not JSON"),
        ("mturk", "HITId,HITId,WorkerId,Answer.x\nh,h,w,a\n", "the header names 'HITId' more than once"),
        ("toloka", "INPUT:a\tOUTPUT:x\tASSIGNMENT:worker_id\nu\tx\tw\textra\n", "line 2 has 4 cells, the header has 3"),
        ("toloka", 'INPUT:a\tOUTPUT:x\tASSIGNMENT:worker_id\nu\t"[{""x"": 1}]"\tw\n', "line 2, OUTPUT:x is an object"),
        ("toloka", "INPUT:a\tOUTPUT:x\nu\tx\n", "no column 'ASSIGNMENT:worker_id'.*Download the results with"),
        ("toloka", "INPUT:a\tOUTPUT:x\tCONFIDENCE:x\nu\tx\t99%\n", "aggregated results.* download the results"),
        ("appen", "_unit_id,_worker_id,q,q_gold\n1,w,a,\n,w,a,\n", "line 3 has no _unit_id"),
        ("mturk", "HITId,WorkerId,Answer.x\nh,w,{}\n", r"no answers to 'x' are left \(1 no answer\)$"),
        ("appen", "_unit_id,_trust,q,q_gold\n1,1,a,\n", "no column '_worker_id'.*Download the full report"),
        ("appen", "_unit_id,_trusted_judgments,q\n1,3,a\n", "aggregated report"),
    ],
)  # fmt: skip
def test_broken_files(tmp_path: Path, platform: str, text: str, message: str) -> None:
    path = tmp_path / "broken"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        read_export(path, platform=platform)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_cut_in_the_middle(tmp_path: Path, platform: str) -> None:
    name, question = MAIN[platform]
    whole = FIXTURES / name
    file = whole / "7.jsonl" if whole.is_dir() else whole
    data = file.read_bytes()
    path = tmp_path / file.name
    path.write_bytes(data[: len(data) // 2].decode(errors="ignore").encode())
    with pytest.raises(InputError, match=r"ends too early|line \d+ "):
        read_export(path, question=question)


def test_cut_within_the_first_record(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_bytes((FIXTURES / "label_studio.json").read_bytes()[:300])
    with pytest.raises(InputError, match="the JSON ends too early, at byte 300 in record 1"):
        read_export(path)


def test_windows_encoding_is_read_with_a_warning(tmp_path: Path) -> None:
    for name, question in (("doccano/7.jsonl", "label"), ("mturk.csv", "sentiment")):
        text = (FIXTURES / name).read_text(encoding="utf-8").replace("很好", "naïf").replace("料理", "Café")
        path = tmp_path / Path(name).name
        path.write_bytes(text.encode("cp1252"))
        with pytest.warns(RarevoteWarning, match=r"(byte|line) \d+ is not utf-8 text: read as Windows-1252"):
            export = read_export(path, question=question, show=["text"])
        assert {"naïf", "Café"} & set(export.shown["text"])
    path.write_bytes(b"HITId,WorkerId,Answer.x\nh,w,\x81\xff\n")
    with pytest.raises(InputError, match=r"line 2 is not utf-8 text; convert the file first .*iconv"):
        read_export(path)


def test_a_line_beyond_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_records, "MAX_LINE", 1000)
    path = tmp_path / "x.csv"
    path.write_text("HITId,WorkerId,Answer.x\nh,w," + "a" * 2000 + "\n")
    with pytest.raises(InputError, match="line 2 is longer than"):
        read_export(path)


def test_archives_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"id": 1, "text": "a", "label": ["x"]}\n'
    path = zipped(FIXTURES / "doccano", tmp_path / "evil.zip", [("../../up.jsonl", line), ("/etc/root.jsonl", line)])
    before = set(tmp_path.rglob("*"))
    assert {"up", "root"} <= set(read_export(path).worker)
    assert set(tmp_path.rglob("*")) == before
    monkeypatch.setattr(containers, "MAX_BYTES", 1000)
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.jsonl", line + b" " * 100_000 + line)
    with pytest.raises(InputError, match="unpacks to more than"):
        read_export(bomb, platform="doccano")


def test_damaged_archives(tmp_path: Path) -> None:
    path = zipped(FIXTURES / "doccano", tmp_path / "x.zip")
    data = bytearray(path.read_bytes())
    path.write_bytes(bytes(data[: len(data) // 2]))
    with pytest.raises(InputError, match="damaged or incomplete: File is not a zip file"):
        read_export(path, platform="doccano")
    data[60:70] = b"\0" * 10
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match=r"damaged|broken|readable|ends too early|not JSON"):
        read_export(path, platform="doccano")
    empty = tmp_path / "empty.zip"
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(InputError, match=r"the zip has no \.jsonl"):
        read_export(empty, platform="doccano")
    packed = tmp_path / "x.json.gz"
    packed.write_bytes(gzip.compress((FIXTURES / "label_studio.json").read_bytes())[:-200])
    with pytest.raises(InputError, match="damaged or incomplete"):
        read_export(packed, question="damage")
    with pytest.raises(InputError, match=r"has 2 files \(7, ana@example.org, ...\), but this platform exports one"):
        containers.open_export(zipped(FIXTURES / "doccano", tmp_path / "two.zip")).only()


ODD: tuple[Any, ...] = (None, 5, -1.5, "x", "", [], {}, [[1]], {"a": 1}, True, float("inf"), "a\nb", [None], 10**30)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        found += _places(inner, (*path, key))
    return found


@pytest.mark.parametrize("name", [name for name in PLATFORM_OF if name.endswith((".json", ".jsonl"))])
def test_odd_values_are_never_a_crash(tmp_path: Path, name: str) -> None:
    draw = random.Random(name)
    text = (FIXTURES / name).read_text(encoding="utf-8")
    lines = name.endswith(".jsonl")
    question = MAIN[PLATFORM_OF[name] or ""][1]
    path = tmp_path / name
    for _ in range(60):
        records = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
        for _ in range(draw.choice([1, 1, 3])):
            place = draw.choice(_places(records))
            holder: Any = records
            for key in place[:-1]:
                holder = holder[key]
            holder[place[-1]] = json.loads(json.dumps(draw.choice(ODD)))
        path.write_text("\n".join(map(json.dumps, records)) if lines else json.dumps(records))
        try:
            export = read_export(path, platform=PLATFORM_OF[name], question=question, multilabel=draw.random() < 0.5)
        except RarevoteError:
            continue
        assert all(isinstance(cell, str) and cell.strip() for cell in (*export.task, *export.worker, *export.label))


def test_a_member_without_a_name_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("\0"), b"{}")  # which the module cuts at the zero byte
        archive.writestr("ana.jsonl", b'{"id": 1, "text": "x", "label": ["a"]}\n')
    assert [part.stem for part in containers.open_export(path).parts] == ["ana"]
