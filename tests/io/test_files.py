from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from rarevote import Annotations, CCRasch
from rarevote.errors import ColumnsError, InputError, MissingValuesError
from rarevote.io.duck import connection, with_objects
from rarevote.io.read.columns import repeated_names
from rarevote.io.read.crowd import read
from rarevote.io.read.csv_text import Delimited, Dialect, explain, read_header, undecodable_line
from rarevote.io.read.encode import Choice, from_json_text, loaded
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.partitions import with_partitions
from rarevote.io.read.paths import files_below, found_paths
from rarevote.io.read.sources import File, FileTable, _json_layout, csv_source
from rarevote.io.read.table import NameColumn
from rarevote.io.read.votes import _holds_pairs, _wide_tables, read_annotations_file, read_truth_file
from rarevote.io.write.columns import write_columns


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def rows_of(crowd: Annotations) -> list[tuple[Any, Any, Any]]:
    return [
        (crowd.tasks[t], crowd.workers[w], crowd.classes[y])
        for t, w, y in zip(crowd.task_of_annotation(), crowd.worker, crowd.label, strict=True)
    ]


PLAIN = "task,worker,label\n007,b,yes\n007,a,no\n10,a,yes\n"
EXPECTED = [("007", "b", "yes"), ("007", "a", "no"), ("10", "a", "yes")]


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "|"),
        PLAIN.replace("\n", "\r\n"),
        "\ufeff" + PLAIN,
        PLAIN.rstrip("\n"),
        'task,worker,label\n"007","b","yes"\n"007","a","no"\n10,a,yes\n',
        "note,worker,task,label\n#x,b,007,yes\n,a,007,no\n-,a,10,yes\n",
        "answer,annotator,item\nyes,b,007\nno,a,007\nyes,a,10\n",
    ],
    ids=[
        "commas",
        "tabs",
        "semicolons",
        "bars",
        "windows",
        "bom",
        "no last newline",
        "quotes",
        "more columns",
        "aliases",
    ],
)
def test_dialects(tmp_path: Path, text: str) -> None:
    assert rows_of(read_annotations_file(write(tmp_path / "labels.csv", text))) == EXPECTED


def test_cells_with_everything_in_them(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", 'task,worker,label\n"a,b","say ""hi""","two\nlines"\n#1,Zoë,日本\n')
    assert sorted(rows_of(read_annotations_file(path))) == [("#1", "Zoë", "日本"), ("a,b", 'say "hi"', "two\nlines")]


def test_words_for_missing_are_words(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "task,worker,label\nNA,null,None\nnan,NaN,N/A\n")
    assert rows_of(read_annotations_file(path)) == [("NA", "null", "None"), ("nan", "NaN", "N/A")]


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    assert rows_of(read_annotations_file(path)) == EXPECTED


def test_parquet_keeps_types(tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    pl.DataFrame({"task": [5, 5, 40], "worker": ["b", "a", "a"], "label": [1.5, 0.5, 1.5]}).write_parquet(path)
    crowd = read_annotations_file(path)
    assert crowd.tasks.tolist() == [5, 40]
    assert crowd.tasks.dtype == np.int64
    assert rows_of(crowd) == [(5, "b", 1.5), (5, "a", 0.5), (40, "a", 1.5)]


def test_folder_of_parquet(tmp_path: Path) -> None:
    for part, (task, worker, label) in enumerate(EXPECTED):
        frame = pl.DataFrame({"task": [task], "worker": [worker], "label": [label]})
        frame.write_parquet(tmp_path / f"part-{part}.parquet")
    assert rows_of(read_annotations_file(tmp_path)) == EXPECTED


def test_order_within_a_task_is_the_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    task, worker = rng.integers(0, 500, 20_000), rng.integers(0, 50, 20_000)
    label = rng.integers(0, 3, 20_000)
    rows = "\n".join(f"t{a},w{b},{c}" for a, b, c in zip(task, worker, label, strict=True))
    path = write(tmp_path / "x.csv", "task,worker,label\n" + rows)
    from_file = read_annotations_file(path, keep="last")
    names = ([f"t{a}" for a in task], [f"w{b}" for b in worker], [str(c) for c in label])
    in_memory = Annotations.from_arrays(*names, keep="last")
    assert np.array_equal(from_file.worker, in_memory.worker)
    assert np.array_equal(from_file.label, in_memory.label)
    assert from_file.tasks.tolist() == in_memory.tasks.tolist()


def test_fit_takes_a_path(tmp_path: Path) -> None:
    model = CCRasch().fit(write(tmp_path / "labels.csv", PLAIN))
    assert model.labels_.to_pandas().index.tolist() == ["007", "10"]


# -- bad files --------------------------------------------------------------------------------------------------------


def test_missing_values_name_their_lines(tmp_path: Path) -> None:
    text = 'task,worker,label\n1,a,"two\nlines"\n\n2,a,\n3,,x\n4,a,  \n'
    path = write(tmp_path / "labels.csv", text)
    with pytest.raises(
        MissingValuesError, match=r"1 row has no worker \(line 6\); 2 rows have no label \(lines 5, 7\)"
    ):
        read_annotations_file(path)
    crowd = read_annotations_file(path, missing="drop")
    assert crowd.n_annotations == 1
    assert crowd.n_dropped == 3


def test_missing_values_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"task": [1, None], "worker": [1, 2], "label": [0, 1]}).write_parquet(path)
    with pytest.raises(MissingValuesError, match=r"1 row has no task \(rows 2\)"):
        read_annotations_file(path)


@pytest.mark.parametrize("header", [True, False])
def test_text_that_is_not_utf8(tmp_path: Path, header: bool) -> None:
    text = "task,worker,läbel\n1,a,x\n" if header else "task,worker,label\n1,a,x\n2,a,müde\n"
    path = write(tmp_path / "labels.csv", text, "latin-1")
    with pytest.raises(InputError, match=rf"labels.csv: line {1 if header else 3} is not UTF-8"):
        read_annotations_file(path)


def test_header_without_the_needed_columns(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "picture,who,label\n1,a,x\n")
    with pytest.raises(ColumnsError, match=r"no column for task or worker; it has 'picture', 'who', 'label'"):
        read_annotations_file(path)
    assert read_annotations_file(path, columns={"task": "picture", "worker": "who"}).n_annotations == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "the file is empty"),
        ("blank.csv", b"\n\n", "the file is empty"),
        ("binary.csv", b"\x00\x01\x02,\n", "not a text file"),
        ("twice.csv", b"task,worker,label,task\n1,2,3,4\n", "names 'task' more than once"),
        ("short.csv", b"task,worker,label\n1,a\n", "short.csv: "),
        ("long.csv", b"task,worker,label\n1,a,x,y\n", "long.csv: "),
        ("quote.csv", b'task,worker,label\n1,a,"x\n', "quote.csv: "),
        ("bad.parquet", b"PAR1 is not enough", "not a readable Parquet file"),
        ("bad.csv.gz", b"not gzip", "cannot be read"),
    ],
)
def test_unreadable_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_annotations_file(path)
    assert str(caught.value).count("\n") <= 1
    assert len(str(caught.value)) < 400


def test_no_file_and_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_annotations_file(tmp_path / "absent.csv")
    with pytest.raises(InputError, match=r"the folder has no .parquet file"):
        read_annotations_file(tmp_path)


def test_header_alone_is_an_empty_crowd(tmp_path: Path) -> None:
    assert read_annotations_file(write(tmp_path / "x.csv", "task,worker,label\n")).n_annotations == 0


def test_truth(tmp_path: Path) -> None:
    assert read_truth_file(write(tmp_path / "t.csv", "item,truth\n007,yes\n8,no\n")) == {"007": "yes", "8": "no"}
    with pytest.raises(InputError, match=r"1 row has no task or no label \(line 3\)"):
        read_truth_file(write(tmp_path / "t.csv", "item,truth\n1,yes\n2,\n"))
    with pytest.raises(InputError, match="has two labels"):
        read_truth_file(write(tmp_path / "t.csv", "item,truth\n1,yes\n1,no\n"))


# -- results ----------------------------------------------------------------------------------------------------------

RESULT = {
    "task": np.array(["a,b", "=SUM(A1)", "ü"], dtype=object),
    "label": np.array([1, 2, 3]),
    "p": np.array([1 / 3, 1.0, 1e-12]),
}


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_results_round_trip(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"result{ending}"
    write_columns(RESULT, path)
    found = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()
    assert [(row[0], int(row[1])) for row in found] == [("a,b", 1), ("=SUM(A1)", 2), ("ü", 3)]
    assert [float(row[2]) for row in found] == pytest.approx([1 / 3, 1.0, 1e-12], rel=1e-5)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.csv"
    path.write_text("old")

    class Unwritable:
        def __str__(self) -> str:
            raise OSError(28, "No space left on device")

    bad = np.array(["x", Unwritable()], dtype=object)
    with pytest.raises(InputError, match="No space left on device"):
        write_columns({"task": bad}, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.csv"]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_columns(RESULT, tmp_path / "absent" / "x.csv")
    (tmp_path / "x.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        write_columns(RESULT, tmp_path / "x.csv")
    with pytest.raises(InputError, match=r"cannot write .docx; use .csv"):
        write_columns(RESULT, tmp_path / "x.docx")


# -- parts, without a whole file --------------------------------------------------------------------------------------


def in_memory(**columns: list[Any]) -> FileTable:
    """A table as a file gives it, without the file."""
    given = pa.table(columns)
    with connection() as database:
        described = with_objects(database, {"given": given}).execute("DESCRIBE given").fetchall()
    types = {name: kind for name, kind, *_ in described}
    return FileTable((File("t", "t"),), "typed", "given", (), list(columns), objects={"given": given}, types=types)


def rows_read(source: FileTable, choice: Choice) -> list[tuple[Any, ...]]:
    with loaded([source], [choice]) as database:
        return list(database.execute("SELECT * FROM rows").fetchall())


WIDE = Choice({"task": "item"}, ["a", "b"])


def test_cells_side_by_side_keep_their_type() -> None:
    numbers = in_memory(item=[1, 2], a=[0, 1], b=[1, None])
    assert rows_read(numbers, WIDE) == [(1, "a", 0), (1, "b", 1), (2, "a", 1)]


def test_cells_side_by_side_of_two_types_are_text() -> None:
    assert rows_read(in_memory(item=[1], a=[0], b=["x"]), WIDE) == [(1, "a", "0"), (1, "b", "x")]


def test_a_choice_that_was_not_ticked_is_an_answer() -> None:
    ticks = Choice({"task": "item"}, ["a", "b"], "choice", as_text=True)
    assert rows_read(in_memory(item=[1], a=["x"], b=[None]), ticks) == [(1, "a", "x"), (1, "b", "")]


def test_labels_keep_their_type_unless_they_may_be_lists() -> None:
    roles = {"task": "task", "label": "label"}
    assert rows_read(in_memory(task=["t"], label=[1.5]), Choice(roles)) == [("t", 1.5)]
    assert rows_read(in_memory(task=["t"], label=[["x", "y"]]), Choice(roles, as_text=True)) == [("t", '["x","y"]')]


def test_a_file_that_is_gone_is_named() -> None:
    source = csv_source(File("nowhere/x.csv", "votes.csv"), Delimited(Dialect(), ["task"]), "none")
    with (
        pytest.raises(InputError, match=r"^votes\.csv: .*No files found"),
        loaded([source], [Choice({"task": "task"})]),
    ):
        pass


def test_lists_in_json_are_refused_and_only_labels_may_be_several_choices() -> None:
    with pytest.raises(
        InputError, match=r'the label \["x", "y"\] is a list, .*choices in one answer\? multilabel=True$'
    ):
        from_json_text(['"x"', '["x", "y"]'], "label")
    with pytest.raises(InputError, match=r'the task \["x", "y"\] is a list, not a name or a number$'):
        from_json_text(['["x", "y"]'], "task")


def test_pairs_are_known_by_their_names() -> None:
    assert _holds_pairs(in_memory(task=["p:rust", "q:dent"], item=["p", "q"], choice=["rust", "dent"]))
    assert not _holds_pairs(in_memory(task=["p:rust", "q"], item=["p", "q"], choice=["rust", "dent"]))
    assert not _holds_pairs(in_memory(task=["p:rust"], choice=["rust"]))


def test_probabilities_are_not_annotators() -> None:
    result = in_memory(task=["1", "2"], label=["yes", "no"], **{"p:yes": [0.75, 0.25], "p:no": [0.25, 0.75]})
    with pytest.raises(InputError, match=r"^t: a result of rarevote, not votes \(columns task, label, p:yes, p:no"):
        _wide_tables([result], ReadOptions(), [])
    assert _wide_tables([in_memory(task=["1"], worker=["u"], label=["x"])], ReadOptions(), []) == []


def test_columns_without_a_header_have_numbers() -> None:
    assert read_header(b"b\t7\tyes\n", complete=True, title="x", has_header=False).columns == ["1", "2", "3"]


def test_gold_needs_no_header_if_the_votes_have_none(tmp_path: Path) -> None:
    votes = write(tmp_path / "votes.txt", "a\t7\tyes\nb\t7\tno\na\t8\tyes\n")
    crowd = read(votes, has_header=False, columns={"worker": "1", "task": "2", "label": "3"})
    assert crowd.known(write(tmp_path / "gold.txt", "7\tno\n8\tyes\n")) == {"7": "no", "8": "yes"}


def test_a_header_beyond_the_limit() -> None:
    with pytest.raises(InputError, match="x: line 1 is longer than 2,000,000 bytes"):
        read_header(b"task," + b"y" * 2_000_000, complete=True, title="x")


def test_a_cell_may_have_sixteen_mebibytes() -> None:
    before = csv.field_size_limit(100)
    try:
        assert next(Dialect().reader(["x" * 101])) == ["x" * 101]
        assert csv.field_size_limit() == 16 * 1024 * 1024
        csv.field_size_limit(2**30)
        Dialect().reader([])
        assert csv.field_size_limit() == 2**30  # what the program of the user allows stays allowed
    finally:
        csv.field_size_limit(before)


def test_names_that_stand_twice() -> None:
    assert repeated_names(["Task", "task", "", ""], ignore_case=True) == "'Task', 'task'"
    assert repeated_names(["Task", "task"]) == ""


def test_the_first_line_that_is_not_utf8(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "task\nü\n", "utf-8")
    assert undecodable_line(path, "none") is None
    path.write_bytes(path.read_bytes() + "1\nmüde\nü\n".encode("latin-1"))
    assert undecodable_line(path, "none") == 4


def test_a_line_with_another_delimiter_is_explained() -> None:
    said = "CSV Error on Line: 3\nOriginal Line: {}\nExpected Number of Columns: 3 Found: 1"
    table = Delimited(Dialect(), ["task", "worker", "label"])
    cells = "x: line 3 has 1 cell, the header has 3 split by commas: "
    other, same = (Exception(said.format(line)) for line in ("2;b;y", "2"))
    assert explain(other, table, title="x", undecodable=None) == cells + "it is split by semicolons"
    assert explain(same, table, title="x", undecodable=None) == cells + "quote cells that contain the delimiter"


def test_the_layout_of_json() -> None:
    texts = (b'[{"a": 1}]', b'{"a": 1}', b'{"a": 1}\n{"a": 2}\n', b'{\n "a": 1\n}\n')
    found = [_json_layout(text, "x") for text in texts]
    assert found == ["array", "newline_delimited", "newline_delimited", "unstructured"]


def test_files_of_a_folder_are_in_the_order_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write(tmp_path / name, "") for name in ("a.csv", "b.csv", "c.csv")]
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: iter(paths[::-1]))  # a disk may list them in any order
    assert files_below(tmp_path) == paths


def test_no_such_file() -> None:
    with pytest.raises(InputError, match=r"^nowhere/x\.csv: no such file$"):
        found_paths("nowhere/x.csv")


def test_a_folder_names_a_column_that_the_file_lacks() -> None:
    path = "/votes/day=1/label=yes/x.csv"
    table = with_partitions(csv_source(File(path, path), Delimited(Dialect(), ["task", "day"]), "none"))
    assert (table.columns, table.partitions) == (["task", "day", "label"], ("label",))


def test_the_first_name_that_stands_twice() -> None:
    names = np.array(["a", "b"], dtype=object)
    assert NameColumn(np.array([0, 1, 1, 0]), names).first_repeated() == 2
    assert NameColumn(np.array([0, 0, 1]), names).first_repeated() == 1
    assert NameColumn(np.array([1, 0]), names).first_repeated() is None
