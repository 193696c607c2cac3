"""Results out: every format comes back as it was, whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import stat
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rarevote.errors import InputError
from rarevote.io.spreadsheet import MAX_ROWS
from rarevote.io.write.columns import appending_csv, check_output, write_columns, write_rows
from rarevote.io.write.soft_labels import SoftLabels

NAMES = ["a,b", "=SUM(A1)", "ü", "-5", "+1", "@x", "'quoted'", ' "', "two\nlines", "007", "\ttab"]
COLUMNS: dict[str, Any] = {
    "task": np.array(NAMES, dtype=object),
    "label": np.arange(len(NAMES)),
    "p": np.linspace(0, 1, len(NAMES)) / 3,
    "yes": np.arange(len(NAMES)) % 2 == 0,
    "mixed": np.array([1, "a", 2.5, *["x"] * (len(NAMES) - 3)], dtype=object),
}


def unpacked(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".zst":
        content = zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content.decode()


@pytest.mark.parametrize("kind", ["M8[us]", "M8[D]", "m8[us]"])
def test_times_of_numpy_are_written_as_those_of_python(tmp_path: Path, kind: str) -> None:
    times = np.array([1, 90_061], dtype=kind)
    write_columns({"task": times}, tmp_path / "a.csv")
    write_columns({"task": times.astype(object)}, tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def read_back(path: Path) -> list[dict[str, Any]]:
    kind = path.name.split(".")[1]
    if kind in ("csv", "tsv"):
        return list(csv.DictReader(io.StringIO(unpacked(path), newline=""), delimiter="," if kind == "csv" else "\t"))
    if kind == "json":
        found: list[dict[str, Any]] = json.loads(unpacked(path))
        return found
    if kind in ("ndjson", "jsonl"):
        return [json.loads(line) for line in unpacked(path).splitlines()]
    if kind == "parquet":
        return list(pl.read_parquet(path).to_dicts())
    if kind == "xlsx":
        rows = list(import_module("openpyxl").load_workbook(path).active.iter_rows(values_only=True))
        return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    return list(import_module("pyarrow.feather").read_table(path).to_pylist())


@pytest.mark.parametrize(
    "ending",
    [
        "csv",
        "tsv",
        "csv.gz",
        "tsv.zst",
        "json",
        "json.gz",
        "ndjson",
        "jsonl.zst",
        "parquet",
        "xlsx",
        "arrow",
        "feather",
    ],
)
def test_round_trip(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"result.{ending}"
    write_columns(COLUMNS, path)
    found = read_back(path)
    assert [row["task"] for row in found] == NAMES
    assert [int(row["label"]) for row in found] == list(range(len(NAMES)))
    assert [float(row["p"]) for row in found] == pytest.approx(COLUMNS["p"].tolist(), rel=1e-5)
    assert [str(row["yes"]) for row in found] == [str(value) for value in COLUMNS["yes"]]
    assert [row["mixed"] for row in found] == ["1", "a", "2.5", *["x"] * (len(NAMES) - 3)]
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208


BY_DUCKDB = ["csv", "tsv.gz", "json", "ndjson.zst", "jsonl", "parquet"]


def values(names: tuple[str, ...]) -> dict[str, Any]:
    """A column of one number for each name: 1, 2, 3, ..."""
    return {name: np.array([number]) for number, name in enumerate(names, 1)}


@pytest.mark.parametrize("ending", BY_DUCKDB)
@pytest.mark.parametrize("names", [("p:Yes", "p:yes"), ("a", "B", "A"), ("É x", "É X")])
def test_columns_that_duckdb_confuses_are_refused(tmp_path: Path, ending: str, names: tuple[str, ...]) -> None:
    path = tmp_path / f"x.{ending}"
    both = " and ".join(map(repr, sorted((names[0], names[-1]))))
    with pytest.raises(InputError, match=re.escape(f"x.{ending}: cannot have both columns {both}, which differ")):
        write_columns(values(names), path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", [*BY_DUCKDB, "xlsx", "arrow", "feather"])
@pytest.mark.parametrize(
    "names", [("É", "é"), ("İ", "i̇"), ("ß", "SS", "ẞ"), ("\u212a", "k"), ("I", "ı"), ("Σ", "σ", "ς")]
)
def test_columns_that_duckdb_keeps_apart_come_back(tmp_path: Path, ending: str, names: tuple[str, ...]) -> None:
    write_columns(values(names), tmp_path / f"x.{ending}")
    (row,) = read_back(tmp_path / f"x.{ending}")
    assert {name: int(value) for name, value in row.items()} == dict(zip(names, range(1, 9), strict=False))


@pytest.mark.parametrize("ending", ["xlsx", "arrow", "feather"])
def test_other_formats_have_columns_that_differ_only_in_case(tmp_path: Path, ending: str) -> None:
    write_columns(values(("p:Yes", "p:yes")), tmp_path / f"x.{ending}")
    assert read_back(tmp_path / f"x.{ending}") == [{"p:Yes": 1, "p:yes": 2}]


def test_streams_refuse_columns_that_differ_only_in_case(tmp_path: Path) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with pytest.raises(InputError, match=r"^standard output: cannot have both columns 'A' and 'a'"):
        write_rows(values(("a", "A")), stream)
    assert not stream.buffer.getvalue()
    with pytest.raises(InputError, match=r"x\.csv: cannot have both"), appending_csv(tmp_path / "x.csv") as append:
        append(values(("a", "A")))


def test_soft_labels_of_classes_that_differ_only_in_case(tmp_path: Path) -> None:
    soft = SoftLabels(["a"], ["No", "no"], np.array([[0.25, 0.75]]))
    with pytest.raises(InputError, match=r"both columns 'p:No' and 'p:no', .* or write \.npz$"):
        soft.write(tmp_path / "x.parquet")
    assert not list(tmp_path.iterdir())
    soft.write(tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        assert dict(zip(arrays["classes"].tolist(), arrays["p"][0].tolist(), strict=True)) == {"No": 0.25, "no": 0.75}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=20))
def test_any_text_comes_back_from_csv(tmp_path: Path, texts: list[str]) -> None:
    path = tmp_path / "x.csv"
    write_columns({"task": np.array(texts, dtype=object), "n": np.arange(len(texts))}, path)
    assert [row["task"] for row in read_back(path)] == texts


@pytest.mark.parametrize("ending", ["csv", "json", "parquet", "xlsx", "arrow"])
def test_no_rows(tmp_path: Path, ending: str) -> None:
    write_columns({"task": np.empty(0, dtype=object), "p": np.empty(0)}, tmp_path / f"x.{ending}")
    assert read_back(tmp_path / f"x.{ending}") == []


def test_formulas_are_text_in_a_spreadsheet(tmp_path: Path) -> None:
    write_columns(COLUMNS, tmp_path / "x.xlsx")
    sheet = import_module("openpyxl").load_workbook(tmp_path / "x.xlsx").active
    assert {cell.data_type for cell in sheet["A"]} == {"s"}


def test_formulas_are_made_harmless_in_csv_on_request(tmp_path: Path) -> None:
    columns = {**COLUMNS, "=head": COLUMNS["task"]}
    write_columns(columns, tmp_path / "x.csv", spreadsheet_safe=True)
    found = read_back(tmp_path / "x.csv")
    expected = ["'" + name if name[0] in "=+-@\t" else name for name in NAMES]
    assert [row["task"] for row in found] == expected
    assert [row["'=head"] for row in found] == expected
    assert [float(row["p"]) for row in found] == pytest.approx(COLUMNS["p"].tolist(), rel=1e-5)
    write_columns(columns, tmp_path / "x.json", spreadsheet_safe=True)
    assert [row["task"] for row in read_back(tmp_path / "x.json")] == NAMES


def test_what_no_spreadsheet_can_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a text of 40,000 characters does not fit"):
        write_columns({"task": np.array(["x" * 40_000], dtype=object)}, tmp_path / "x.xlsx")
    with pytest.raises(InputError, match="cannot contain the control characters"):
        write_columns({"task": np.array(["a\x01b"], dtype=object)}, tmp_path / "x.xlsx")
    with pytest.raises(InputError, match="a sheet has at most 1,048,575"):
        write_columns({"task": np.arange(MAX_ROWS)}, tmp_path / "x.xlsx")
    assert not list(tmp_path.iterdir())
    write_columns({"task": np.array([12345678901234567890 // 10], dtype=np.int64)}, tmp_path / "x.xlsx")
    assert read_back(tmp_path / "x.xlsx") == [{"task": "1234567890123456789"}]


def test_numbers_that_json_lacks(tmp_path: Path) -> None:
    write_columns({"p": np.array([np.nan, np.inf, 0.5])}, tmp_path / "x.json")
    assert [row["p"] for row in read_back(tmp_path / "x.json")] == [None, None, 0.5]


def test_times_become_text(tmp_path: Path) -> None:
    write_columns({"task": np.array(["2026-11-16"], dtype="datetime64[D]")}, tmp_path / "x.csv")
    assert read_back(tmp_path / "x.csv") == [{"task": "2026-11-16"}]


def test_rows_on_a_stream() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    write_rows(COLUMNS, stream)
    rows = csv.DictReader(io.StringIO(stream.buffer.getvalue().decode(), newline=""))
    assert [row["task"] for row in rows] == NAMES


def test_only_files_wait_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on their way to a stream need not outlast the machine."""
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)
    write_rows(COLUMNS, io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert not flushed
    write_columns(COLUMNS, tmp_path / "x.csv")
    assert flushed


def test_output_is_checked_before_the_work(tmp_path: Path) -> None:
    check_output(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"cannot be written \(no folder .*absent\)"):
        check_output(tmp_path / "absent" / "x.csv")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check_output(tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"cannot write .gz; use .csv"):
        check_output(tmp_path / "x.parquet.gz")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(InputError, match="Permission denied"):
        check_output(tmp_path / "x.csv")
    tmp_path.chmod(stat.S_IRWXU)


def test_what_killed_runs_left_is_removed_after_a_day(tmp_path: Path) -> None:
    def old(name: str, hours: float) -> Path:
        path = tmp_path / name
        path.write_text("half")
        os.utime(path, (time.time() - hours * 3600,) * 2)
        return path

    gone, young = old(".r.rarevote-0a1b2c3d.csv", 25), old(".r.rarevote-4a1b2c3d.csv", 1)
    foreign = old(".someone.0a1b2c3d.csv", 99)
    write_columns(COLUMNS, tmp_path / "r.csv")
    assert not gone.exists()
    assert young.exists()
    assert foreign.exists()


def test_a_name_as_long_as_a_name_may_be(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 120 + ".csv")
    write_columns(COLUMNS, path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
