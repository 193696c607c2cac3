"""Every way in: formats, packing, several files, folders, standard input, wide tables, columns carried along."""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import ipc

from rarevote import Annotations, CCRasch, read
from rarevote.errors import ColumnsError, InputError, MissingExtraError, MissingValuesError, ParameterError
from rarevote.io.duck import first_line
from rarevote.io.read import csv_text
from rarevote.io.read.detect import inspect_file
from rarevote.io.read.votes import read_annotations_file, read_label_files, read_truth_file
from rarevote.io.write.columns import write_columns

Rows = list[tuple[Any, Any, Any]]
ROWS: Rows = [("007", "b", "yes"), ("007", "a", "no"), ("10", "a", "yes")]
PLAIN = "task,worker,label\n007,b,yes\n007,a,no\n10,a,yes\n"
RECORDS = [dict(zip(("task", "worker", "label"), row, strict=True)) for row in ROWS]
LINES = "".join(json.dumps(record) + "\n" for record in RECORDS)


def rows_of(crowd: Annotations) -> Rows:
    return [
        (crowd.tasks[t], crowd.workers[w], crowd.classes[y])
        for t, w, y in zip(crowd.task_of_annotation(), crowd.worker, crowd.label, strict=True)
    ]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def arrow_table(rows: Rows = ROWS) -> pa.Table:
    return pa.table({name: [row[k] for row in rows] for k, name in enumerate(("task", "worker", "label"))})


def make_arrow(path: Path) -> None:
    with ipc.new_file(str(path), arrow_table().schema) as writer:
        writer.write_table(arrow_table())


def make_stream(path: Path) -> None:
    with ipc.new_stream(str(path), arrow_table().schema) as writer:
        writer.write_table(arrow_table())


def make_xlsx(path: Path) -> None:
    columns = {name: np.array([record[name] for record in RECORDS], dtype=object) for name in RECORDS[0]}
    write_columns(columns, path)


MAKERS: dict[str, Callable[[Path], object]] = {
    "labels.csv": lambda path: write(path, PLAIN),
    "labels.tsv": lambda path: write(path, PLAIN.replace(",", "\t")),
    "labels.csv.gz": lambda path: write(path, gzip.compress(PLAIN.encode())),
    "labels.csv.zst": lambda path: write(path, zstandard.compress(PLAIN.encode())),
    "two-members.csv.gz": lambda path: write(
        path, gzip.compress(PLAIN[:40].encode()) + gzip.compress(PLAIN[40:].encode())
    ),
    "two-frames.csv.zst": lambda path: write(
        path, zstandard.compress(PLAIN[:40].encode()) + zstandard.compress(PLAIN[40:].encode())
    ),
    "labels.json": lambda path: write(path, json.dumps(RECORDS)),
    "pretty.json": lambda path: write(path, json.dumps(RECORDS, indent=2)),
    "bom.json": lambda path: write(path, "\ufeff" + json.dumps(RECORDS)),
    "lines.json": lambda path: write(path, LINES),
    "labels.ndjson": lambda path: write(path, LINES),
    "labels.jsonl": lambda path: write(path, "\n" + LINES + "\n\n"),
    "objects.jsonl": lambda path: write(path, "".join(json.dumps(record, indent=1) + "\n" for record in RECORDS)),
    "labels.ndjson.gz": lambda path: write(path, gzip.compress(LINES.encode())),
    "labels.json.zst": lambda path: write(path, zstandard.compress(json.dumps(RECORDS).encode())),
    "labels.parquet": lambda path: pl.DataFrame(RECORDS).write_parquet(path),
    "labels.arrow": make_arrow,
    "labels.feather": make_arrow,
    "stream.arrow": make_stream,
    "labels.xlsx": make_xlsx,
    "noending": lambda path: write(path, PLAIN),
    "json-without-ending": lambda path: write(path, LINES),
    "brackets[1]*?.csv": lambda path: write(path, PLAIN),
}


@pytest.mark.parametrize("name", MAKERS)
def test_formats(tmp_path: Path, name: str) -> None:
    MAKERS[name](tmp_path / name)
    assert rows_of(read_annotations_file(tmp_path / name)) == ROWS


@pytest.mark.parametrize("name", MAKERS)
def test_standard_input_is_recognised(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MAKERS[name](tmp_path / name)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / name).read_bytes())))
    assert rows_of(read_annotations_file("-")) == ROWS


def test_a_format_can_be_told(tmp_path: Path) -> None:
    path = write(tmp_path / "labels.dump", PLAIN.replace(",", "\t"))
    assert rows_of(read_label_files(path, file_format="tsv").annotations) == ROWS
    assert rows_of(read_label_files(write(tmp_path / "x.txt", LINES), file_format="ndjson").annotations) == ROWS
    with pytest.raises(ParameterError, match="unknown format 'cvs'; there are csv, "):
        read_label_files(path, file_format="cvs")


@pytest.mark.parametrize(
    "text",
    [
        "'task','worker','label'\n'007','b','yes'\n'007','a','no'\n'10','a','yes'\n",
        "task,worker,label\n'007','b','yes'\n'007','a','no'\n'10','a','yes'\n",
        'task,worker,label,note\n007,b,yes,"x \\" y, z"\n007,a,no,\n10,a,yes,z\n',
        'task;worker;label;note\n007;b;yes;"a,b,c,d,e"\n007;a;no;\n10;a;yes;x\n',
        "note, a|task|worker|label\nx,y|007|b|yes\nx,y,z|007|a|no\nx|10|a|yes\n",
        "task,worker,label\r007,b,yes\r007,a,no\r10,a,yes\r",
        "task,worker,label,\n007,b,yes,\n007,a,no,\n10,a,yes,\n",
    ],
    ids=["apostrophes", "apostrophes below", "backslash", "commas in quotes", "commas", "old mac", "trailing comma"],
)
def test_more_dialects(tmp_path: Path, text: str) -> None:
    assert rows_of(read_annotations_file(write(tmp_path / "x.csv", text))) == ROWS


def test_apostrophes_in_words_are_letters(tmp_path: Path) -> None:
    text = "task,worker,label\n'tis,b,don't\n'tis,a,'quoted'\n"
    assert rows_of(read_annotations_file(write(tmp_path / "x.csv", text))) == [
        ("'tis", "b", "don't"),
        ("'tis", "a", "'quoted'"),
    ]


def test_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "ceka.response.txt", "b\t007\tyes\na\t007\tno\na\t10\tyes\n")
    found = read_label_files(path, has_header=False, columns={"worker": "1", "task": "2", "label": "3"})
    assert rows_of(found.annotations) == ROWS
    with pytest.raises(MissingValuesError, match=r"1 row has no label \(line 2\)"):
        read_label_files(
            write(path, "b\t007\tyes\na\t007\t\n"), has_header=False,
            columns={"worker": "1", "task": "2", "label": "3"},
        )  # fmt: skip


def test_json_values_keep_their_type(tmp_path: Path) -> None:
    text = (
        '{"task": 5, "worker": "a", "label": true, "more": {"x": [1]}}\n'
        '{"worker": "é\\ud83d\\ude00", "label": false, "task": 5}\n{"task": 5.0, "worker": 7, "label": true}\n'
    )
    crowd = read_annotations_file(write(tmp_path / "x.ndjson", text))
    assert rows_of(crowd) == [(5, "a", True), (5, "é😀", False), (5, 7, True)]
    assert read_truth_file(write(tmp_path / "t.json", '[{"task": 5, "truth": true}]')) == {5: True}


def test_parquet_types_that_numpy_lacks(tmp_path: Path) -> None:
    frame = pl.DataFrame({"task": [1, 2], "worker": ["a", "b"], "label": ["x", "y"]}).with_columns(
        pl.col("label").cast(pl.Categorical), pl.col("task").cast(pl.Decimal(10, 2))
    )
    frame.write_parquet(tmp_path / "x.parquet")
    assert rows_of(read_annotations_file(tmp_path / "x.parquet")) == [("1.00", "a", "x"), ("2.00", "b", "y")]
    pl.DataFrame({"task": [1], "worker": ["a"], "label": [["x", "y"]]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="column 'label' contains lists or objects"):
        read_annotations_file(tmp_path / "x.parquet")


def test_arrow_dictionaries(tmp_path: Path) -> None:
    table = arrow_table()
    table = table.set_column(2, "label", table["label"].combine_chunks().dictionary_encode())
    with ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as writer:
        writer.write_table(table)
    assert rows_of(read_annotations_file(tmp_path / "x.arrow")) == ROWS


# -- several files ----------------------------------------------------------------------------------------------------


def in_parts(folder: Path, ending: str) -> list[Path]:
    paths = []
    for number, record in enumerate(RECORDS):
        path = folder / f"part-{number}{ending}"
        if ending == ".parquet":
            pl.DataFrame([record]).write_parquet(path)
        else:
            # Neither delimiter nor order of columns need be the same.
            names = sorted(record, reverse=bool(number % 2))
            mark = ",;"[number % 2]
            write(path, f"{mark.join(names)}\n{mark.join(record[name] for name in names)}\n")
        paths.append(path)
    return paths


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_several_files_patterns_and_folders(tmp_path: Path, ending: str) -> None:
    paths = in_parts(tmp_path, ending)
    write(tmp_path / "_SUCCESS", "")
    write(tmp_path / "notes.md", "no table")
    for inputs in (paths, str(tmp_path / f"part-*{ending}"), tmp_path, [str(path) for path in paths]):
        assert rows_of(read_annotations_file(inputs)) == ROWS
    assert CCRasch().fit(str(tmp_path / f"part-*{ending}")).annotations_.n_annotations == 3


def test_folders_below_a_folder(tmp_path: Path) -> None:
    for number, record in enumerate(RECORDS):
        folder = tmp_path / f"day={number}"
        folder.mkdir()
        pl.DataFrame([record]).write_parquet(folder / "part.parquet")
    assert rows_of(read_annotations_file(tmp_path)) == ROWS


def test_a_folder_of_two_kinds(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", PLAIN)
    pl.DataFrame(RECORDS).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match="a folder of csv and parquet files; choose one with --format"):
        read_annotations_file(tmp_path)
    assert rows_of(read_label_files(tmp_path, file_format="csv").annotations) == ROWS
    with pytest.raises(InputError, match="the files must have one format"):
        read_annotations_file([tmp_path / "a.csv", tmp_path / "b.parquet"])


def test_order_over_many_files_is_that_of_the_files(tmp_path: Path) -> None:
    expected = []
    for part in range(40):
        rows = [(str(row % 7), f"w{part}", str(row % 3)) for row in range(part, part + 30)]
        expected += rows
        write(tmp_path / f"{part:03}.csv", "task,worker,label\n" + "".join(",".join(row) + "\n" for row in rows))
    assert rows_of(read_annotations_file(tmp_path)) == sorted(expected, key=lambda row: row[0])


def test_missing_values_name_file_and_line(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / f"{part}.csv", PLAIN)
    write(tmp_path / "1.csv", PLAIN + "\n\n5,a,\n")
    with pytest.raises(MissingValuesError, match=r"1 row has no label \(.*1\.csv line 7\)"):
        read_annotations_file(tmp_path)


def test_a_file_of_several_without_the_columns_is_named(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a.csv", PLAIN), write(tmp_path / "b.csv", "task,label\n1,x\n")
    with pytest.raises(ColumnsError, match=r"b\.csv has no column for worker"):
        read_annotations_file([first, second])


# -- wide tables ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "xlsx"])
def test_wide(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"wide.{ending}"
    frame = pl.DataFrame(
        {
            "image": ["007", "10", "11"],
            "text": ["seven", "ten", "eleven"],
            "ann": ["yes", None, " "],
            "bob": ["no", "yes", None],
        }
    )
    if ending == "csv":
        frame.write_csv(path)
    elif ending == "json":
        write(path, json.dumps(frame.to_dicts()))
    elif ending == "parquet":
        frame.write_parquet(path)
    else:
        write_columns({name: np.array(frame[name].to_list(), dtype=object) for name in frame.columns}, path)
    found = read_label_files(path, wide=True, show=["text"])
    assert rows_of(found.annotations) == [("007", "ann", "yes"), ("007", "bob", "no"), ("10", "bob", "yes")]
    assert found.annotations.unanswered.tolist() == ["11"]
    assert found.shown["text"].tolist() == ["seven", "ten", "eleven"]


def test_wide_tables_that_cannot_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "item,ann,bob\n1,x,y\n,x,\n3,,\n,,\n")
    with pytest.raises(MissingValuesError, match=r"1 row has no task \(lines 3, 5\)"):
        read_label_files(path, wide=True)
    with pytest.raises(ParameterError, match="accepts only task"):
        read_label_files(path, wide=True, columns={"worker": "ann"})
    with pytest.raises(ColumnsError, match="no column 'nothing'"):
        read_label_files(path, wide=True, columns={"task": "nothing"})
    with pytest.raises(ColumnsError, match="needs one column per annotator"):
        read_label_files(write(path, "item\n1\n"), wide=True)


def test_wide_types(tmp_path: Path) -> None:
    pl.DataFrame({"item": [1, 2], "a": [0, 1], "b": [1, None]}).write_parquet(tmp_path / "x.parquet")
    assert rows_of(read_label_files(tmp_path / "x.parquet", wide=True).annotations) == [
        (1, "a", 0),
        (1, "b", 1),
        (2, "a", 1),
    ]
    pl.DataFrame({"item": [1, 2, 3, 2], "a": [0, None, None, 1], "b": [1, None, None, 0]}).write_parquet(
        tmp_path / "x.parquet"
    )
    assert read_label_files(tmp_path / "x.parquet", wide=True).annotations.unanswered.tolist() == [3]
    pl.DataFrame({"item": [1], "a": [0], "b": ["x"]}).write_parquet(tmp_path / "x.parquet")
    assert rows_of(read_label_files(tmp_path / "x.parquet", wide=True).annotations) == [(1, "a", "0"), (1, "b", "x")]


# -- columns carried along --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet", "arrow"])
def test_show_takes_the_first_value_that_is_not_blank(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    columns = {
        "task": ["b", "a", "b", "a", "b", "c"],
        "worker": ["1", "1", "2", "2", "3", "1"],
        "label": ["x", "x", "y", "?", "x", "?"],
        "text, long": ["", "first", "  ", "second", "böth", "unanswered"],
        "n": ["1", "2", "3", "4", "5", "6"],
    }
    write_columns({name: np.array(values, dtype=object) for name, values in columns.items()}, path)
    found = read_label_files(path, show=["text, long", "n,task"], abstain=["?"])
    assert found.annotations.tasks.tolist() == ["a", "b"]
    assert {name: texts.tolist() for name, texts in found.shown.items()} == {
        "text, long": ["first", "böth", "unanswered"],
        "n": ["2", "1", "6"],
        "task": ["a", "b", "c"],
    }
    with pytest.raises(ColumnsError, match="no column 'image' to show; it has 'task', "):
        read_label_files(path, show=["image"])


def test_show_is_deterministic_over_many_rows(tmp_path: Path) -> None:
    n = 300_000
    frame = pl.DataFrame(
        {
            "task": [f"t{row % 1000}" for row in range(n)],
            "worker": [f"w{row % 13}" for row in range(n)],
            "label": ["x"] * n,
            "row": list(range(n)),
        }
    )
    frame.write_csv(tmp_path / "x.csv")
    found = read_label_files(tmp_path / "x.csv", show=["row"])
    assert all(
        text == task.removeprefix("t") for task, text in zip(found.annotations.tasks, found.shown["row"], strict=True)
    )


def test_a_key_that_only_late_json_records_have(tmp_path: Path) -> None:
    records = [{"task": str(row), "worker": "a", "label": "x"} for row in range(10_500)]
    records[-1]["late"] = "here"
    path = write(tmp_path / "x.ndjson", "".join(json.dumps(record) + "\n" for record in records))
    found = read_label_files(path, show=["late"])
    assert [text for text in found.shown["late"].tolist() if text] == ["here"]


# -- bad files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("mixed.csv", "task,worker,label\n1,a,x\n2;b;y\n", "line 3 has 1 cell, .* it is split by semicolons"),
        ("more.csv", "task,worker,label\n1,a,x,y\n", r"line 2 has 4 cells, the header has 3 split by commas"),
        ("quote.csv", 'task,worker,label\n1,a,"x\n', "line 2: a quote is not closed"),
        ("ends.csv", "task,worker,label\r\n1,a,x\n2,b,y\r\n", "mixes line endings"),
        ("blank.csv", ",,\n1,2,3\n", "the first line is blank"),
        ("utf16.csv", "task,worker,label\n".encode("utf-16"), "UTF-16 text; save it as UTF-8"),
        ("zeros.csv", b"task,worker,label\n" + b"\0" * 100, "line 2 has 1 cell"),
        ("cut.json", json.dumps(RECORDS)[:-1], "the JSON is incomplete: the list has no end"),
        ("cut.json", json.dumps(RECORDS)[:-30], "the JSON is incomplete"),
        ("cut.json", "[" + json.dumps(RECORDS[0]) + ",", "the JSON is incomplete"),
        ("cut.json.gz", gzip.compress(json.dumps(RECORDS)[:-1].encode()), "the JSON is incomplete"),
        ("cut.ndjson", LINES[:-20], r"line 3: damaged or incomplete JSON \(unexpected end"),
        ("bad.json", '[{"task": 1 "worker": 2}]', "damaged or incomplete JSON"),
        ("after.json", json.dumps(RECORDS) + "]", "damaged or incomplete JSON"),
        ("twice.ndjson", '{"task": 1, "task": 2, "worker": 1, "label": 1}\n', "duplicate key"),
        ("numbers.json", "[1, 2]", "no column for task|not the JSON of a table"),
        ("word.json", "task", "not JSON: it must be a list of objects or lines of objects, not 'task'"),
        ("line.ndjson", LINES + "[1]\n" + LINES, r"line 4: not the JSON of a table \(Expected OBJECT, but got ARRAY"),
        ("middle.ndjson", LINES + "{\n" + LINES, "line 4: damaged or incomplete JSON"),
        ("empty.json", " \n", "the file is empty"),
        ("nested.ndjson", '{"task": 1, "worker": 2, "label": ["x", "y"]}\n', r'the label \["x", "y"\] is a list'),
        ("half.csv.gz", gzip.compress(PLAIN.encode() * 1000)[:-9], "cannot be read"),
        ("half.csv.zst", zstandard.compress(PLAIN.encode() * 1000)[:-9], "cannot be read"),
        ("half.ndjson.zst", zstandard.compress(LINES.encode() * 1000)[:-9], "cannot be read"),
        ("plain.csv.zst", PLAIN, "not a zstd file, despite its name"),
        ("packed.parquet.gz", gzip.compress(b"PAR1"), "is already compressed"),
        ("bad.arrow", b"ARROW1 is not enough", "not a readable Arrow file"),
        ("bad.xlsx", b"PK\x03\x04 is not enough", "not a readable spreadsheet"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_annotations_file(write(tmp_path / name, content))
    assert name in str(caught.value)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("member", "pattern", "instead", "message"),
    [
        ("xl/workbook.xml", rb"<sheets>.*</sheets>", b"<sheets/>", "has no sheet of cells"),
        ("xl/worksheets/sheet1.xml", rb"(?s)</sheetData>.*", b"", "not a readable spreadsheet"),
        ("xl/worksheets/sheet1.xml", rb'r="3"', b'r="x"', "not a readable spreadsheet"),
    ],
)
def test_a_spreadsheet_that_is_damaged_inside(
    tmp_path: Path, member: str, pattern: bytes, instead: bytes, message: str
) -> None:
    make_xlsx(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "bad.xlsx", "w") as bad:
        for name in whole.namelist():
            text = whole.read(name)
            bad.writestr(name, re.sub(pattern, instead, text) if name == member else text)
    with pytest.raises(InputError, match=rf"bad\.xlsx: .*{message}"):
        read_annotations_file(tmp_path / "bad.xlsx")


def test_a_spreadsheet_that_is_small_only_because_it_is_packed(tmp_path: Path) -> None:
    make_xlsx(tmp_path / "whole.xlsx")
    with zipfile.ZipFile(tmp_path / "whole.xlsx") as whole, zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as bomb:
        for name in whole.namelist():
            content = whole.read(name)
            if name == "xl/worksheets/sheet1.xml":
                content = content.replace(b"</sheetData>", b" " * (65 << 20) + b"</sheetData>")
            bomb.writestr(name, content, zipfile.ZIP_DEFLATED)
    with pytest.raises(
        InputError, match=r"bomb\.xlsx: 'xl/worksheets/sheet1\.xml' unpacks from .* too much for a table"
    ):
        read_annotations_file(tmp_path / "bomb.xlsx")


def test_a_spreadsheet_with_more_rows_than_a_sheet_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_xlsx(tmp_path / "x.xlsx")
    monkeypatch.setattr("rarevote.io.spreadsheet.MAX_ROWS", 3)
    with pytest.raises(InputError, match=r"x\.xlsx: more rows than the 3 that a sheet can have"):
        read_annotations_file(tmp_path / "x.xlsx")


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_beyond_the_limit_is_refused_wherever_it_is(tmp_path: Path, packed: bool) -> None:
    # DuckDB leaves such a line out without a word where nothing follows it.
    for before, after in ((1, b""), (1, b"3,c,z\n"), (50_000, b"")):
        text = b"task,worker,label\n" + b"1,a,x\n" * before + b"2,b," + b"y" * 40_000_000 + b"\n" + after
        path = write(tmp_path / ("x.csv.gz" if packed else "x.csv"), gzip.compress(text, 1) if packed else text)
        with pytest.raises(InputError, match=f"line {before + 2:,} is longer than 2,000,000 bytes"):
            read_annotations_file(path)
    long_enough = b"task,worker,label\n2,b," + b"y" * 1_900_000 + b"\n"
    assert read_annotations_file(write(tmp_path / "x.csv", long_enough)).n_annotations == 1


def test_a_header_has_the_limit_of_a_row(tmp_path: Path) -> None:
    for n_bytes, is_read in ((2_000_000, True), (2_000_001, False)):
        header = b"task,worker,label,".ljust(n_bytes, b"x")
        path = write(tmp_path / "x.csv", header + b"\n1,a,yes,\n")
        if is_read:
            assert read_annotations_file(path).n_annotations == 1
        else:
            with pytest.raises(InputError, match="line 1 is longer than 2,000,000 bytes"):
                read_annotations_file(path)


def test_no_line_beyond_the_limit_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_text, "MAX_LINE", 2000)
    monkeypatch.setattr(csv_text, "_PROBE", 64)

    @settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        st.lists(st.one_of(st.integers(0, 300), st.sampled_from([1999, 2000, 2001, 9000])), min_size=1, max_size=12),
        st.sampled_from([b"\n", b"\r\n"]),
        st.booleans(),
    )
    def refused_exactly_if_too_long(lengths: list[int], ending: bytes, packed: bool) -> None:
        text = ending.join(b"x" * length for length in lengths)
        path = write(tmp_path / "x", gzip.compress(text) if packed else text)
        too_long = [number for number, length in enumerate(lengths, 1) if length > 2000]
        if too_long:
            with pytest.raises(InputError, match=f"line {too_long[0]} is longer"):
                csv_text.check_lines(inspect_file(path, "x"))
        else:
            csv_text.check_lines(inspect_file(path, "x"))

    refused_exactly_if_too_long()


def test_addresses_need_an_installed_extension(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs DuckDB's extension httpfs, which is not installed"):
        read_annotations_file("https://example.invalid/labels.csv")
    with pytest.raises(InputError, match="ftp:// cannot be read"):
        read_annotations_file("ftp://example.invalid/labels.csv")


def test_the_header_of_a_remote_file(tmp_path: Path) -> None:
    from rarevote.io.duck import connection
    from rarevote.io.read.remote import peek

    path = write(tmp_path / "x.csv", 'task;worker;label\n1;a;"x\ny"\n\n2;b;"z;"\n')
    with connection() as database:
        table = peek(database, str(path), delimiter=None, has_header=True)
    assert table.columns == ["task", "worker", "label"]
    assert table.dialect.delimiter == ";"


def test_the_first_lines_of_a_remote_file_may_end_within_a_cell(tmp_path: Path) -> None:
    from rarevote.io.duck import connection
    from rarevote.io.read.remote import peek

    # There are as many commas as bars in the header; the quote opens on the last line that is looked at.
    text = "a, b, c, d|task|worker|label\n" + "x|1|a|y\n" * 98 + 'x|2|a|"y\nz"\n'
    with connection() as database:
        table = peek(database, str(write(tmp_path / "x.csv", text)), delimiter=None, has_header=True)
    assert table.columns == ["a, b, c, d", "task", "worker", "label"]


@pytest.mark.parametrize(
    ("name", "library", "extra"), [("x.arrow", "pyarrow", "arrow"), ("x.xlsx", "openpyxl", "excel")]
)
def test_an_absent_library_is_named(
    tmp_path: Path, name: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    MAKERS["labels." + name.split(".")[1]](tmp_path / name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"pip install 'rarevote\[{extra}\]'"):
        read_annotations_file(tmp_path / name)
    with pytest.raises(MissingExtraError, match=rf"pip install 'rarevote\[{extra}\]'"):
        write_columns({"task": np.array([1])}, tmp_path / name)


# -- spreadsheets -----------------------------------------------------------------------------------------------------


def make_book(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    openpyxl = import_module("openpyxl")

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_sheets_blank_rows_and_numbers(tmp_path: Path) -> None:
    votes: list[list[Any]] = [
        ["task", None, "worker", "label"],
        [7, "x", "a", 1.0],
        [],
        [8, None, "b", 0],
        [8, None, "c", None],
    ]
    path = make_book(tmp_path / "x.xlsx", {"notes": [["nothing here"]], "votes": votes})
    with pytest.raises(ColumnsError, match="no column for task or worker or label; it has 'nothing here'"):
        read_annotations_file(path)
    with pytest.raises(MissingValuesError, match=r"1 row has no label \(rows 5\)"):
        read_label_files(path, sheet="votes")
    assert rows_of(read_label_files(path, sheet="votes", missing="drop").annotations) == [(7, "a", 1), (8, "b", 0)]
    with pytest.raises(InputError, match="no sheet 'vote'; there are 'notes', 'votes'"):
        read_label_files(path, sheet="vote")
    with pytest.raises(InputError, match="names 'task' more than once"):
        read_annotations_file(make_book(path, {"a": [["task", "task"]]}))
    with pytest.raises(InputError, match="the first row is empty"):
        read_annotations_file(make_book(path, {"a": []}))


def test_columns_that_differ_in_capitals_alone_are_told(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,Task,worker,label\na,b,x,yes\n")
    with pytest.raises(InputError, match=r"the header names 'Task', 'task' more than once"):
        read(path)


def test_a_full_disk_is_told_in_words(tmp_path: Path) -> None:
    wrapped = '{"exception_type":"IO","exception_message":"Could not write file \\"x\\": No space left on device"}'
    error = OSError(f"IO Error: Async write failed for range [offset=1]: {wrapped}")
    assert first_line(error) == "No space left on device"
