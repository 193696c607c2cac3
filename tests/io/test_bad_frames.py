"""What cannot be votes or gold is refused by an error of ours that says what to do; never by one of another library."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc

import rarevote
from rarevote import MajorityVote
from rarevote.api import compare
from rarevote.errors import ColumnsError, InputError, MissingValuesError, ParameterError
from rarevote.io.read.crowd import _from_memory
from rarevote.io.read.options import ReadOptions
from rarevote.metrics.data import uncertainty

TASKS, WORKERS, LABELS = ["a", "a", "b"], ["x", "y", "x"], ["no", "yes", "no"]
COLUMNS: dict[str, Any] = {"task": TASKS, "worker": WORKERS, "label": LABELS}
IDS = [uuid.UUID(int=number) for number in (1, 1, 2)]
NAMES = ["task", "worker", "label"]

GIVE = "give a pandas, polars or pyarrow frame, .*a mapping of columns, a tuple of arrays"
VOTE = "Give at least one vote"
SAY = "Say which: columns="
TEXT = "turn it into text first"
LIST = "give a list or an array with one value per row"
RENAME = "Rename or drop"


class Stream:
    """Arrow data of an engine whose query fails."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise duckdb.InvalidInputException("no such table\nLINE 1")


def labelled(make: Callable[[dict[str, Any]], Any], labels: Any) -> Callable[[], Any]:
    return lambda: make({**COLUMNS, "label": labels})


def damaged_dictionary() -> Any:
    values, indices = pa.array(["no", "yes"]), pa.array([0, 1, 9], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values, safe=False)


BAD: dict[str, tuple[Callable[[], Any], type[InputError], str]] = {
    # nothing
    "None": (lambda: None, InputError, GIVE),
    "empty list": (lambda: [], InputError, VOTE),
    "empty tuple": (lambda: (), InputError, GIVE),
    "three empty lists": (lambda: ([], [], []), InputError, VOTE),
    "empty mapping": (lambda: {}, ColumnsError, SAY),
    "pandas without columns": (lambda: pd.DataFrame(), ColumnsError, SAY),
    "polars without columns": (lambda: pl.DataFrame(), ColumnsError, SAY),
    "pyarrow without columns": (lambda: pa.table({}), ColumnsError, SAY),
    "pandas without rows": (lambda: pd.DataFrame(COLUMNS)[:0], InputError, VOTE),
    "polars without rows": (lambda: pl.DataFrame(COLUMNS)[:0], InputError, VOTE),
    "pyarrow without rows": (lambda: pa.table(COLUMNS)[:0], InputError, VOTE),
    "pyarrow without types": (
        lambda: pa.table({name: pa.nulls(3) for name in NAMES}),
        MissingValuesError,
        "Fill in the missing values",
    ),
    # no table
    "number": (lambda: 42, InputError, GIVE),
    "generator": (lambda: (row for row in zip(TASKS, WORKERS, LABELS, strict=True)), InputError, GIVE),
    "zip": (lambda: zip(TASKS, WORKERS, LABELS, strict=True), InputError, GIVE),
    "set of rows": (lambda: {("a", "x", "no")}, InputError, GIVE),
    "array of rows": (lambda: np.array([TASKS, WORKERS, LABELS]).T, InputError, GIVE),
    "structured array": (lambda: np.zeros(2, dtype=[(name, "U2") for name in NAMES]), InputError, GIVE),
    "pandas Series": (lambda: pd.Series(TASKS), InputError, GIVE),
    "polars Series": (lambda: pl.Series(TASKS), InputError, GIVE),
    "pyarrow array": (lambda: pa.array(TASKS), InputError, GIVE),
    "two arrays": (lambda: (TASKS, WORKERS), InputError, GIVE),
    "four arrays": (lambda: (TASKS, WORKERS, LABELS, LABELS), InputError, GIVE),
    "rows of two": (lambda: [("a", "x")], InputError, r"a list holds \(task, worker, label\) or dicts in every row"),
    "rows and dicts": (
        lambda: [("a", "x", "no"), {"task": "a"}],
        InputError,
        r"a list holds \(task, worker, label\) or dicts in every",
    ),
    "dicts without labels": (lambda: [{"task": "a", "worker": "x"}], ColumnsError, SAY),
    "failing query": (
        lambda: pl.LazyFrame(COLUMNS).filter(pl.col("nothing") > 1),
        InputError,
        "compute the frame first",
    ),
    "failing stream": (Stream, InputError, "compute the frame first"),
    # names of columns
    "pandas names twice": (
        lambda: pd.DataFrame([["a", "x", "no", "no"]], columns=[*NAMES, "label"]),
        ColumnsError,
        RENAME,
    ),
    "pandas other names twice": (
        lambda: pd.DataFrame([["a", "x", "no", 1, 2]], columns=[*NAMES, "note", "note"]),
        ColumnsError,
        RENAME,
    ),
    "pyarrow names twice": (
        lambda: pa.Table.from_arrays([pa.array(TASKS)] * 4, names=[*NAMES, "label"]),
        ColumnsError,
        RENAME,
    ),
    "stream names twice": (
        lambda: pa.Table.from_arrays([pa.array(TASKS)] * 4, names=[*NAMES, "label"]).to_reader(),
        InputError,
        "check its columns",
    ),
    "names of two levels": (
        lambda: pd.DataFrame([["a", "x", "no"]], columns=pd.MultiIndex.from_product([["v"], NAMES])),
        ColumnsError,
        r"Give each column one name, for example frame.columns = ",
    ),
    "index of two levels": (
        lambda: pd.DataFrame(COLUMNS).set_index(["task", "worker"]),
        ColumnsError,
        r"reset_index\(\)",
    ),
    "task in the index": (lambda: pd.DataFrame(COLUMNS).set_index("task"), ColumnsError, r"reset_index\(\)"),
    "numbered columns": (lambda: pd.DataFrame([["a", "x", "no"]]), ColumnsError, SAY),
    # columns that are none
    "text as a column": (lambda: ("aab", "xyx", "nyn"), InputError, LIST),
    "text in a mapping": (lambda: {**COLUMNS, "task": "a"}, InputError, LIST),
    "bytes as a column": (lambda: (b"aab", WORKERS, LABELS), InputError, LIST),
    "number as a column": (lambda: {**COLUMNS, "worker": 3}, InputError, LIST),
    "None as a column": (lambda: (TASKS, None, LABELS), InputError, LIST),
    "set as a column": (lambda: ({"a", "b", "c"}, WORKERS, LABELS), InputError, LIST),
    "mapping as a column": (lambda: ({"a": 1, "b": 2, "c": 3}, WORKERS, LABELS), InputError, LIST),
    "frame as a column": (lambda: (pd.DataFrame(COLUMNS), WORKERS, LABELS), InputError, "give one column of it"),
    "table as a column": (lambda: (pa.table(COLUMNS), WORKERS, LABELS), InputError, "give one column of it"),
    "two-dimensional column": (lambda: (np.zeros((3, 2)), WORKERS, LABELS), InputError, "give one array per column"),
    "array without a dimension": (lambda: (np.array("a"), WORKERS, LABELS), InputError, "give one array per column"),
    "index of levels as a column": (
        lambda: (pd.MultiIndex.from_tuples([("a", 1)] * 3), WORKERS, LABELS),
        InputError,
        "get_level_values",
    ),
    "lists of unequal length": (lambda: (TASKS, WORKERS, LABELS[:2]), InputError, "give one value per row in each"),
    "arrays of unequal length": (
        lambda: (np.array(TASKS), np.array(WORKERS[:1]), np.array(LABELS)),
        InputError,
        "give one value per row in each",
    ),
    "mapping of unequal length": (
        lambda: {**COLUMNS, "worker": pd.Series(WORKERS[:2])},
        InputError,
        "give one value per row in each",
    ),
    "rows in another order": (
        lambda: (pd.Series(TASKS), pd.Series(WORKERS, index=[2, 1, 0]), LABELS),
        InputError,
        "Put the columns into one frame",
    ),
    # values that are not names
    "lists in a list": (lambda: (TASKS, WORKERS, [["no"], ["yes"], ["no"]]), InputError, TEXT),
    "arrays in a list": (lambda: (TASKS, WORKERS, [np.array([1, 2])] * 3), InputError, TEXT),
    "lists in pandas": (labelled(pd.DataFrame, [["no"], ["yes"], ["no"]]), InputError, TEXT),
    "dicts in pandas": (labelled(pd.DataFrame, [{"a": 1}, {"a": 2}, {"a": 1}]), InputError, TEXT),
    "mixed objects in pandas": (labelled(pd.DataFrame, [1, "yes", {"a": 2}]), InputError, TEXT),
    "bytes in pandas": (labelled(pd.DataFrame, [b"no", b"yes", b"no"]), InputError, TEXT),
    "lists in pandas on Arrow": (
        labelled(pd.DataFrame, pd.Series([[1], [2], [1]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))),
        InputError,
        TEXT,
    ),
    "structs in pandas on Arrow": (
        labelled(pd.DataFrame, pd.Series([{"a": 1}] * 3, dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())])))),
        InputError,
        TEXT,
    ),
    "lists in polars": (labelled(pl.DataFrame, [["no"], ["yes"], ["no"]]), InputError, TEXT),
    "nested lists in polars": (labelled(pl.DataFrame, [[["no"]], [["yes"]], [["no"]]]), InputError, TEXT),
    "arrays in polars": (
        labelled(pl.DataFrame, pl.Series([[1], [2], [1]], dtype=pl.Array(pl.Int64, 1))),
        InputError,
        TEXT,
    ),
    "structs in polars": (labelled(pl.DataFrame, [{"a": 1}, {"a": 2}, {"a": 1}]), InputError, TEXT),
    "bytes in polars": (labelled(pl.DataFrame, [b"no", b"yes", b"no"]), InputError, TEXT),
    "UUIDs in polars": (labelled(pl.DataFrame, pl.Series(IDS, dtype=pl.Object)), InputError, TEXT),
    "mixed objects in polars": (labelled(pl.DataFrame, pl.Series([1, "a", 1], dtype=pl.Object)), InputError, TEXT),
    "lists in pyarrow": (labelled(pa.table, [["no"], ["yes"], ["no"]]), InputError, TEXT),
    "structs in pyarrow": (labelled(pa.table, [{"a": 1}, {"a": 2}, {"a": 1}]), InputError, TEXT),
    "maps in pyarrow": (
        labelled(pa.table, pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64()))),
        InputError,
        TEXT,
    ),
    "unions in pyarrow": (
        labelled(
            pa.table, pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(TASKS)])
        ),
        InputError,
        TEXT,
    ),
    "bytes in pyarrow": (labelled(pa.table, [b"no", b"yes", b"no"]), InputError, TEXT),
    "bytes in a dictionary": (
        labelled(pa.table, pa.array([b"no", b"yes", b"no"]).dictionary_encode()),
        InputError,
        TEXT,
    ),
    "fixed bytes in pyarrow": (labelled(pa.table, pa.array([b"no", b"ye", b"no"], pa.binary(2))), InputError, TEXT),
    "a damaged dictionary": (
        lambda: pa.table({**COLUMNS, "label": damaged_dictionary()}),
        InputError,
        "rebuild the dictionary",
    ),
    "bytes in an array": (lambda: (TASKS, WORKERS, np.array([b"no", b"yes", b"no"])), InputError, TEXT),
    "records in an array": (lambda: (TASKS, WORKERS, np.zeros(3, dtype=[("a", "i4")])), InputError, TEXT),
    "truth values among numbers": (lambda: (TASKS, WORKERS, [True, 1, 0]), InputError, "both as text"),
    # gaps
    "masked votes": (
        lambda: (TASKS, WORKERS, np.ma.array([1, 2, 3], mask=[False, False, True])),
        MissingValuesError,
        "Fill in the missing values",
    ),
    "masked values in a list": (
        lambda: (TASKS, WORKERS, list(np.ma.array([1, 2, 3], mask=[False, False, True]))),
        MissingValuesError,
        "Fill in the missing values",
    ),
    "gaps among integers": (
        lambda: (pd.Series([2**53, None, 2**53 + 1], dtype="Int64"), WORKERS, LABELS),
        MissingValuesError,
        "Fill in the missing values",
    ),
    "nothing but gaps": (
        lambda: pd.DataFrame({**COLUMNS, "label": [None] * 3}),
        MissingValuesError,
        "Fill in the missing values",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_votes(name: str) -> None:
    make, error, remedy = BAD[name]
    with pytest.raises(InputError, match=remedy) as caught:
        rarevote.read(make())
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_estimators(name: str) -> None:
    """Estimators answer no rows at all by no results, as crowd-kit's do; all else they refuse alike."""
    make, error, remedy = BAD[name]
    if remedy == VOTE:
        assert len(MajorityVote().fit(make()).labels_) == 0
        return
    with pytest.raises(error, match=remedy):
        MajorityVote().fit(make())


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
def test_arrow_files_with_names_twice(make: Any, tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(TASKS)] * 4, names=[*NAMES, "label"])
    with make(str(tmp_path / "votes.arrow"), table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(ColumnsError, match=rf"votes.arrow has several columns of one name: 'label'. {RENAME}"):
        rarevote.read(tmp_path / "votes.arrow")


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this pyarrow has no UUIDs")
def test_uuids_in_pyarrow() -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([one.bytes for one in IDS], pa.binary(16)))
    with pytest.raises(InputError, match=r"the column 'task' holds values of the type .*uuid.*turn it into text first"):
        rarevote.read(pa.table({**COLUMNS, "task": ids}))
    assert rarevote.read((IDS, WORKERS, LABELS)).annotations.tasks.tolist() == [IDS[0], IDS[2]]


def test_arrays_are_not_wide() -> None:
    with pytest.raises(ParameterError, match=r"^wide needs files or frames, but the data are a tuple$"):
        _from_memory(((), (), ()), ReadOptions(wide=True))


def test_frames_that_are_not_computed() -> None:
    frame = pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame(COLUMNS), npartitions=1)
    with pytest.raises(InputError, match="cannot read annotations from DataFrame: compute it first"):
        rarevote.read(frame)


def test_numbered_columns_can_be_named() -> None:
    frame = pd.DataFrame(list(zip(TASKS, WORKERS, LABELS, strict=True)))
    columns: Any = {"task": 0, "worker": 1, "label": 2}
    assert rarevote.read(frame, columns=columns).annotations.tasks.tolist() == ["a", "b"]


@pytest.mark.parametrize("methods", [["cc-rasch"], ["majority-vote", "dawid-skene"]])
def test_fits_of_nothing(methods: list[str]) -> None:
    for data in ([], pd.DataFrame(COLUMNS)[:0], [("a", None, "no")]):
        with pytest.raises(InputError, match=VOTE):
            rarevote.fit(data, methods[0], missing="drop")
        with pytest.raises(InputError, match=VOTE):
            compare(data, methods, missing="drop")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "yes"}, LIST),
        ({"classes": [["yes"]]}, TEXT),
        ({"abstain": [["yes"]]}, TEXT),
        ({"classes": [b"yes"]}, "holds bytes"),
        ({"abstain": [b"yes"]}, "holds bytes"),
        ({"classes": [True, 1]}, "both as text"),
        ({"classes": pd.DataFrame(COLUMNS)}, LIST),
        ({"abstain": pl.DataFrame(COLUMNS)}, LIST),
        ({"items": ["a", "b", b"c"]}, "items holds bytes"),
        ({"items": pa.array(["a", "b", None])}, "items: 1 id is missing"),
        ({"items": [0, 1, True]}, "items holds both the number 1 and the truth value True"),
    ],
)
def test_names_given_by_hand(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rarevote.read((TASKS, WORKERS, LABELS), **options)


@pytest.mark.parametrize("gap", [None, float("nan"), pd.NA, " "])
def test_a_class_has_a_name(gap: Any) -> None:
    with pytest.raises(ParameterError, match="classes= contains a missing value"):
        rarevote.read((TASKS, WORKERS, LABELS), classes=["maybe", gap])


# --------------------------------------------------------------------------------------------------------------------
# gold

GOLD = "a mapping from task to label, a Series indexed by task, a frame with a task and a label column"
OUT = "remove the rows"

BAD_GOLD: dict[str, tuple[Callable[[], Any], type[InputError], str]] = {
    "Series with NaN": (lambda: pd.Series({"a": "no", "b": np.nan}), MissingValuesError, OUT),
    "Series with NA": (lambda: pd.Series({"a": 1, "b": None}, dtype="Int64"), MissingValuesError, OUT),
    "Series with NaN in the index": (lambda: pd.Series(["no", "yes"], index=["a", np.nan]), MissingValuesError, OUT),
    "mapping with None": (lambda: {"a": "no", "b": None}, MissingValuesError, OUT),
    "mapping with blank text": (lambda: {"a": "no", "b": " "}, MissingValuesError, OUT),
    "frame with NaN": (lambda: pd.DataFrame({"task": ["a", "b"], "label": ["no", np.nan]}), MissingValuesError, OUT),
    "polars with null": (lambda: pl.DataFrame({"task": ["a", None], "label": ["no", "no"]}), MissingValuesError, OUT),
    "masked labels": (lambda: (["a", "b"], np.ma.array([1, 2], mask=[False, True])), MissingValuesError, OUT),
    "two labels for a task": (lambda: (["a", "a"], ["no", "yes"]), InputError, "keep the right one"),
    "two labels in a frame": (
        lambda: pd.DataFrame({"task": ["a", "a"], "label": ["no", "yes"]}),
        InputError,
        "keep the right one",
    ),
    "true and one for a task": (lambda: (["a", "a"], [True, 1]), InputError, "both as text"),
    "unequal length": (lambda: (["a", "b"], ["no"]), InputError, "give one value per row in each"),
    "index of two levels": (
        lambda: pd.Series(["no"], index=pd.MultiIndex.from_tuples([("a", 1)])),
        InputError,
        "get_level_values",
    ),
    "lists as labels": (lambda: {"a": ["no"]}, InputError, TEXT),
    "columns as a mapping": (lambda: {"task": ["a"], "label": ["no"]}, InputError, TEXT),
    "text as a column": (lambda: ("a", ["no"]), InputError, LIST),
    "names twice": (
        lambda: pd.DataFrame([["a", "no", "no"]], columns=["task", "label", "label"]),
        ColumnsError,
        RENAME,
    ),
    "no label": (lambda: pd.DataFrame({"task": ["a"]}), ColumnsError, "Rename a column to label"),
    "pairs in a list": (lambda: [("a", "no")], InputError, GOLD),
    "generator": (lambda: (pair for pair in [("a", "no")]), InputError, GOLD),
    "number": (lambda: 42, InputError, GOLD),
    "one array": (lambda: np.array(["no"]), InputError, GOLD),
    "polars Series": (lambda: pl.Series(["no"]), InputError, GOLD),
    "structs in pyarrow": (lambda: pa.table({"task": ["a"], "label": [{"a": 1}]}), InputError, TEXT),
}


@pytest.mark.parametrize("name", BAD_GOLD)
def test_gold(name: str) -> None:
    make, error, remedy = BAD_GOLD[name]
    with pytest.raises(InputError, match=remedy) as caught:
        rarevote.fit((TASKS, WORKERS, LABELS), "dawid-skene", gold=make())
    assert type(caught.value) is error


def test_gold_keeps_integers_of_64_bits() -> None:
    ids = [2**53, 2**53 + 1]
    votes = rarevote.read((ids, ["x", "y"], ["no", "yes"]))
    golds: list[Any] = [
        pd.Series(["no", "yes"], index=pd.Index(ids, dtype="Int64")),
        pd.DataFrame({"task": pd.array(ids, dtype="Int64"), "label": ["no", "yes"]}),
        pa.table({"task": pa.array(ids).dictionary_encode(), "label": ["no", "yes"]}),
        (np.ma.array(ids, mask=[False, False]), pl.Series(["no", "yes"])),
    ]
    for gold in golds:
        assert votes.known(gold) == {ids[0]: "no", ids[1]: "yes"}


def test_uncertainty_of_nothing() -> None:
    with pytest.raises(InputError, match=VOTE):
        uncertainty(pd.DataFrame(COLUMNS)[:0])
