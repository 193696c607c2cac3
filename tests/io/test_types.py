"""Columns of different types side by side, or in several files: the values decide, not the type of the first."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from rarevote.errors import InputError, RarevoteWarning
from rarevote.io.read.crowd import Crowd, read

NOTHING = pa.array([None, None], pa.string())


def votes(crowd: Crowd) -> list[tuple[Any, Any, Any]]:
    found = crowd.annotations
    tasks = [found.tasks[code] for code in found.task_of_annotation()]
    rows = zip(tasks, found.workers[found.worker].tolist(), found.classes[found.label].tolist(), strict=True)
    return sorted(rows, key=lambda row: (str(row[1]), str(row[0])))


def written(folder: Path, number: int, ending: str, columns: dict[str, Any]) -> None:
    table, path = pa.table(columns), folder / f"{number}{ending}"
    parquet.write_table(table, path) if ending == ".parquet" else feather.write_feather(table, path)


def frame_written(frame: pd.DataFrame, path: Path) -> Path:
    """The file that pandas writes, without its index."""
    if path.suffix in (".json", ".ndjson"):
        frame.to_json(path, orient="records", lines=path.suffix == ".ndjson")
    elif path.suffix in (".parquet", ".feather"):
        {".parquet": frame.to_parquet, ".feather": frame.to_feather}[path.suffix](path)
    else:
        {".csv": frame.to_csv, ".xlsx": frame.to_excel}[path.suffix](path, index=False)
    return path


def in_two_files(folder: Path, ending: str, role: str, first: Any, second: Any) -> list[Any]:
    """The values of a role, of which each file has some; the worker names the file and the row."""
    for number, values in enumerate((first, second)):
        own = [f"{number}{row}" for row in range(len(values))]
        columns = {"task": own, "worker": own, "label": ["x"] * len(own), role: values}
        written(folder, number, ending, columns)
    place = {"task": 0, "label": 2}[role]
    return [row[place] for row in votes(read(str(folder)))]


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("role", ["task", "label"])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2], [1.5, 2.5], [1, 2, 1.5, 2.5]),
        ([1.5, 2.5], [1, 2], [1.5, 2.5, 1, 2]),
        ([0, 1], [1.0, 0.0], [0, 1, 1, 0]),
        ([1.0, 2.5], [2**53, 2**53 + 1], [1, 2.5, 2**53, 2**53 + 1]),
        ([-1, 2], pa.array([2**63 + 5, 3], pa.uint64()), [-1, 2, 2**63 + 5, 3]),
        (pa.array([1, 2], pa.int8()), [1, 300], [1, 2, 1, 300]),
        (pa.array([0.5, 2], pa.float32()), [0.5, 2.0], [0.5, 2, 0.5, 2]),
        ([1, 2], ["007", "2"], ["1", "2", "007", "2"]),
        (["007", "2"], [1.0, 2.0], ["007", "2", "1", "2"]),
    ],
)
def test_files_of_several_types_keep_their_values(
    tmp_path: Path, ending: str, role: str, first: Any, second: Any, expected: list[Any]
) -> None:
    assert in_two_files(tmp_path, ending, role, first, second) == expected


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([1, 2], [True, False]),
        ([True, False], [1, 2]),
        (["true", "x"], [True, False]),
        ([1, 2], [Decimal("1.00"), Decimal("0.50")]),
        ([Decimal("1.0"), Decimal("0.5")], [Decimal("1.00"), Decimal("0.50")]),
    ],
)
def test_files_whose_values_cannot_be_compared_are_refused(tmp_path: Path, first: Any, second: Any) -> None:
    with pytest.raises(InputError, match=r"0\.parquet has a column 'label' of type .*, and .*1\.parquet .* one type"):
        in_two_files(tmp_path, ".parquet", "label", first, second)


def test_a_column_without_values_can_have_any_type(tmp_path: Path) -> None:
    table = {"item": ["p", "q"], "ann": ["yes", "no"], "bob": pa.array([None, None], pa.float64()), "cy": NOTHING}
    written(tmp_path, 0, ".parquet", table)
    assert votes(read(tmp_path / "0.parquet", wide=True)) == [("p", "ann", "yes"), ("q", "ann", "no")]


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("ending", [".parquet", ".feather", ".json", ".xlsx"])
def test_a_wide_table_of_pandas_with_gaps_has_the_classes_0_and_1(tmp_path: Path, ending: str, wide: bool) -> None:
    frame = pd.DataFrame({"task": list("pqrs"), "ann": [1, 0, 1, 1], "bob": [1, None, 0, 1], "cy": [1, 0, None, 1]})
    path = frame_written(frame, tmp_path / f"wide{ending}")
    expected = [
        (task, worker, int(label))
        for worker in ("ann", "bob", "cy")
        for task, label in zip(frame["task"], frame[worker], strict=True)
        if label == label
    ]
    assert votes(read(path, wide=wide)) == expected
    assert {type(row[2]) for row in votes(read(path, wide=wide))} == {int}


@pytest.mark.parametrize("ending", [".parquet", ".json", ".csv"])
def test_columns_of_ticks_with_gaps_are_choices(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"task": list("pqr"), "worker": list("aab"), "red": [1, 0, 1], "blue": [1, None, 0]})
    path = frame_written(frame, tmp_path / f"ticks{ending}")
    crowd = read(path, multilabel=True)
    assert crowd.choices == ("blue", "red")
    assert ("p:blue", "a", "yes") in votes(crowd)
    assert ("r:blue", "b", "no") in votes(crowd)


@pytest.mark.parametrize("ending", [".parquet", ".json"])
def test_gold_of_a_column_with_gaps_is_of_the_classes(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame(
        {"task": list("aabb"), "worker": list("xyxy"), "label": [0, 1, 1, 1], "gold": [1, 1, None, None]}
    )
    path = frame_written(frame, tmp_path / f"votes{ending}")
    assert read(path, gold_column="gold").gold == {"a": "1"}


def test_gold_that_two_files_contradict_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"task": 1, "worker": "a", "label": "x", "gold": "x"}]')
    (tmp_path / "b.json").write_text('[{"worker": "b", "task": 1, "label": "x", "gold": "y"}]')
    with pytest.raises(InputError, match=r"task 1 has several values in 'gold': 'x' and 'y'"):
        read([tmp_path / "a.json", tmp_path / "b.json"], gold_column="gold")


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".json", ".ndjson", ".xlsx", ".csv"])
def test_columns_whose_names_differ_only_in_case_are_refused(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"task": [1, 2], "worker": ["a", "b"], "Label": ["x", "y"], "label": ["p", "q"]})
    path = frame_written(frame, tmp_path / f"votes{ending}")
    with pytest.raises(InputError, match=r"the header names 'Label', 'label' more than once; case is ignored"):
        read(path)


@pytest.mark.parametrize("ending", [".parquet", ".json", ".csv", ".xlsx"])
def test_letters_beyond_ascii_that_differ_in_case_are_two_columns(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame({"item": ["p", "q"], "É": ["x", "y"], "é": ["y", "y"]})
    crowd = read(frame_written(frame, tmp_path / f"votes{ending}"), wide=True)
    assert votes(crowd) == [("p", "É", "x"), ("q", "É", "y"), ("p", "é", "y"), ("q", "é", "y")]


def test_names_inside_a_column_of_parquet_are_not_columns(tmp_path: Path) -> None:
    table = {"task": ["a"], "worker": ["x"], "label": ["y"], "more": [{"Task": 1, "task": 2, "deep": [{"label": 3}]}]}
    written(tmp_path, 0, ".parquet", {**table, "last": [1]})
    assert votes(read(tmp_path / "0.parquet")) == [("a", "x", "y")]


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("a.csv", "task,worker,label\n1,ann,yes\ntask,worker,label\n1,bob,yes\n", "line 3"),
        ("a.csv", "task,worker,label\n1,ann,yes\n\n\ufefftask,worker,label\n1,bob,yes\n", "line 4"),
        ("a.tsv", "item\tworker\tlabel\n1\tann\tyes\n'item'\tworker\tlabel\nitem\tworker\tlabel\n", "line 4"),
        ("a.csv", "image,ann,bob\np,0,1\nimage,ann,bob\nq,1,1\n", "line 3"),
        (
            "a.json",
            '[{"task":"1","worker":"a","label":"x"},{"task":"task","worker":"worker","label":"label"}]',
            "records 2",
        ),
    ],
)
def test_a_repeated_header_is_not_votes(tmp_path: Path, name: str, content: str, place: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=rf"the header is repeated in {place}: remove it there"):
        read(path, wide="image" in content)


def test_a_header_repeated_in_a_further_file_and_in_truth(tmp_path: Path) -> None:
    one, two, truth = tmp_path / "1.csv", tmp_path / "2.csv", tmp_path / "truth.csv"
    one.write_text("task,worker,label\n1,ann,yes\n")
    two.write_text("task,worker,label\n2,ann,yes\ntask,worker,label\n2,bob,no\n")
    truth.write_text("task,label\n1,yes\ntask,label\n2,no\n")
    with pytest.raises(InputError, match=r"the header is repeated in .*2\.csv line 3"):
        read([one, two])
    with pytest.raises(InputError, match=r"truth\.csv: the header is repeated in line 3"):
        read(one).known(truth)


def test_cells_like_names_of_columns_are_votes_where_the_row_is_not_the_header(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\ntask,worker,yes\n1,worker,label\ntask,ann,label\n")
    assert len(votes(read(path))) == 3
    path.write_text("1,2,3\n7,8,9\n")
    columns = {"task": "1", "worker": "2", "label": "3"}
    assert votes(read(path, has_header=False, columns=columns)) == [("1", "2", "3"), ("7", "8", "9")]


@pytest.mark.parametrize("name", ["c.csv.xz", "c.CSV.BZ2", "c.ods", "c.xls", "c.zip"])
def test_a_table_that_cannot_be_read_is_not_left_out_of_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label\n1,ann,yes\n")
    (tmp_path / "README.md").write_text("about these votes")
    assert len(votes(read(tmp_path))) == 1
    (tmp_path / name).write_bytes(b"packed")
    with pytest.raises(InputError, match=rf"{name}: cannot be read as a table; unpack or convert it"):
        read(tmp_path)


def test_an_archive_is_left_out_of_a_folder_if_the_format_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label\n1,ann,yes\n")
    (tmp_path / "images.zip").write_bytes(b"packed")
    assert len(votes(read(tmp_path, file_format="csv"))) == 1
    (tmp_path / "b.csv.xz").write_bytes(b"packed")
    with pytest.raises(InputError, match=r"b\.csv\.xz: cannot be read as a table"):
        read(tmp_path, file_format="csv")


def test_times_of_several_units_in_several_files_are_one_type(tmp_path: Path) -> None:
    times = np.array(["2026-11-17T01:02:03", "2026-11-17T01:02:04.5"], dtype="M8[ms]")
    for number, unit in enumerate(("ns", "us", "ms")):
        table = {"task": times.astype(f"M8[{unit}]"), "worker": [f"w{number}"] * 2, "label": ["yes", "no"]}
        written(tmp_path, number, ".parquet", table)
    assert read(tmp_path).annotations.tasks.tolist() == ["2026-11-17 01:02:03", "2026-11-17 01:02:04.5"]


def test_sheets_that_are_hidden_and_cells_with_errors(tmp_path: Path) -> None:
    openpyxl = import_module("openpyxl")
    book = openpyxl.Workbook()
    hidden, seen = book.active, book.create_sheet("votes")
    hidden.sheet_state = "hidden"
    for sheet, label in ((hidden, "old"), (seen, "new")):
        sheet.append(["task", "worker", "label", "check"])
        sheet.append(["a", "x", label, "#N/A"])
        sheet.append(["b", "x", label, "#REF!"])
    path = tmp_path / "votes.xlsx"
    book.save(path)
    assert votes(read(path)) == [("a", "x", "new"), ("b", "x", "new")]
    assert votes(read(path, sheet="Sheet")) == [("a", "x", "old"), ("b", "x", "old")]
    seen["C3"] = "#N/A"
    book.save(path)
    with pytest.raises(InputError, match=r"1 row has no label \(rows 3\)"):
        read(path)


def test_a_zip_of_tables_is_not_a_spreadsheet(tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "votes.zip", "w") as archive:
        archive.writestr("votes.csv", "task,worker,label\n1,ann,yes\n")
    with pytest.raises(InputError, match=r"votes\.zip: a zip archive, not a spreadsheet: unpack it"):
        read(tmp_path / "votes.zip")


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["Yes", "yes", "no"], r"several classes: 'Yes', 'yes'\. Use one spelling"),
        (["1", "1.0", "0"], r"several classes: '1', '1\.0'\. Use one"),
        (["not  sure", "not sure", "A", "a"], r"several classes: 'A', 'a'; 'not  sure', 'not sure'\. Use one"),
    ],
)
def test_classes_that_differ_only_in_spelling_are_named(tmp_path: Path, labels: list[str], said: str) -> None:
    rows = [("t", f"w{number}", label) for number, label in enumerate(labels)]
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    for data in (path, rows):
        with pytest.warns(RarevoteWarning, match=said):
            assert len(read(data).annotations.classes) == len(labels)


@pytest.mark.parametrize("labels", [["yes", "no"], [1, 2.5, 0], ["1", "10", "-1"], ["a.b", "a b"]])
def test_other_classes_need_no_warning(labels: list[Any]) -> None:
    assert len(read([("t", f"w{number}", label) for number, label in enumerate(labels)]).annotations.classes) == len(
        labels
    )
