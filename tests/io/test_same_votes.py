"""The same votes are the same crowd, to the last bit, whatever they come as.

The oracle is an encoder in plain Python that knows nothing of arrays: sets, ``sorted`` and dicts.
"""

from __future__ import annotations

import csv
import datetime
import json
import random
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import ipc, parquet

import rarevote
from rarevote import Annotations, DawidSkene

ROLES = ("task", "worker", "label")
Rows = list[tuple[Any, Any, Any]]
Columns = dict[str, list[Any]]


# --------------------------------------------------------------------------------------------------------------------
# the oracle


class Expected(NamedTuple):
    task_ptr: list[int]
    worker: list[int]
    label: list[int]
    tasks: list[Any]
    workers: list[Any]
    classes: list[Any]
    n_dropped: int


def is_gap(value: Any) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())


def encoded_by_hand(rows: Rows) -> Expected:
    whole = [row for row in rows if not any(map(is_gap, row))]
    # Python's dicts keep one of equal values: 0.0 + -0.0 is 0.0.
    plain = [tuple(value + 0.0 if isinstance(value, float) else value for value in row) for row in whole]
    tasks, workers, classes = (sorted({row[place] for row in plain}) for place in range(3))
    if all(isinstance(name, str) and name.removeprefix("-").isdigit() for name in classes):
        classes.sort(key=lambda name: (int(name), name))
    pointer, worker, label = [0], [], []
    for task in tasks:
        votes = [row for row in plain if row[0] == task]
        worker += [workers.index(row[1]) for row in votes]
        label += [classes.index(row[2]) for row in votes]
        pointer.append(len(worker))
    return Expected(pointer, worker, label, tasks, workers, classes, len(rows) - len(whole))


def as_crowd(expected: Expected) -> Annotations:
    """The oracle's answer as what methods take, made without any encoding of ours."""

    def named(names: list[Any]) -> Any:
        array = np.empty(len(names), dtype=object)
        array[:] = names
        return array

    worker, label = (np.array(codes, dtype=np.uint8) for codes in (expected.worker, expected.label))
    tasks, workers, classes = map(named, (expected.tasks, expected.workers, expected.classes))
    return Annotations(np.array(expected.task_ptr, dtype=np.int64), worker, label, tasks, workers, classes)


def posterior(crowd: Annotations) -> bytes:
    """Of a method that iterates, to the bit."""
    return DawidSkene().fit(crowd).posterior_.tobytes()


# --------------------------------------------------------------------------------------------------------------------
# votes


def some_votes(tasks: Sequence[Any], workers: Sequence[Any], labels: Sequence[Any], gap: Any = ()) -> Columns:
    """Votes in no order; where there is a ``gap``, some rows lack a task, a worker or a label."""
    chance = random.Random(7)
    rows = [[task, worker, chance.choice(labels)] for task in tasks for worker in workers if chance.random() < 0.8]
    chance.shuffle(rows)
    if gap != ():
        for number in range(0, len(rows), 5):
            rows[number][number % 3] = gap
    return {role: [row[place] for row in rows] for place, role in enumerate(ROLES)}


TEXTS = ["t9", "t10", "é", "T", "007", "7", "zu Haus", "日本"]
BIG = [2**53, 2**53 + 1, 2**53 + 2, -(2**60) - 1, 2**63 - 1, 2**63 - 2, 5]
VOTES: dict[str, Columns] = {
    "text": some_votes(TEXTS, ["w2", "w1", "w10"], ["no", "yes", "maybe"]),
    "text with gaps": some_votes(TEXTS, ["w2", "w1", "w10"], ["no", "yes"], None),
    "text with blanks": some_votes(TEXTS, ["w2", "w1", "w10"], ["10", "9", "-1"], " "),
    "integers": some_votes(BIG, [2**53 + 1, 2**53, 3], [10, 9, 0]),
    "integers with gaps": some_votes(BIG, [2**53 + 1, 2**53, 3], [1, 0], None),
    "truth values": some_votes(TEXTS, [3, 1, 2], [True, False]),
    "truth values with gaps": some_votes(TEXTS, [3, 1, 2], [True, False], None),
    "floats": some_votes([0.5, -0.0, 0.0, 1e300], [1.5, 2.5, -1.5], [0.0, -0.0, 0.1, 2.5]),
    "floats with gaps": some_votes([0.5, 0.25, 1e300, 7.5], [1.5, 2.5, -1.5], [0.5, 0.1], None),
}


def rows_of(columns: Columns) -> Rows:
    return list(zip(*columns.values(), strict=True))


def is_text(column: list[Any]) -> bool:
    return all(value is None or isinstance(value, str) for value in column)


@cache
def expected_of(name: str) -> tuple[Expected, bytes]:
    expected = encoded_by_hand(rows_of(VOTES[name]))
    return expected, posterior(as_crowd(expected))


# --------------------------------------------------------------------------------------------------------------------
# what they come as


def masked(column: list[Any], *, text: bool = False) -> Any:
    gaps = [value is None for value in column]
    kept = next(value for value in column if value is not None)  # what is masked says something that was never said
    values = np.array([kept if value is None else value for value in column], dtype=None if text else object)
    if not text:
        values = np.array(values.tolist())
    return np.ma.MaskedArray(values, gaps) if any(gaps) else values


def numpy_series(column: list[Any]) -> Any:
    """NumPy has no gaps among integers and truth values: pandas takes objects then."""
    whole = None not in column or is_text(column) or isinstance(column[0], float)
    return pd.Series(column, dtype=None if whole else object)


def nullable(column: list[Any]) -> Any:
    kind = {str: "string", bool: "boolean", int: "Int64", float: "Float64"}
    return pd.Series(column, dtype=kind[type(next(value for value in column if value is not None))])


def repeated(column: list[Any]) -> Any:
    """A dictionary that names every value twice, in no order, and one that no row has."""
    plain = pa.array(column)
    values = [value for value in dict.fromkeys(column) if value is not None]
    values = (values[::-1] + values) * 2
    indices = [None if value is None else (values.index(value, row % 2) or 0) for row, value in enumerate(column)]
    far = [None if k is None else (k if row % 3 else values.index(column[row], k + 1)) for row, k in enumerate(indices)]
    return pa.DictionaryArray.from_arrays(pa.array(far, pa.int32()), pa.array(values, plain.type))


def lowered(column: list[Any]) -> Any:
    """As one gets it by changing the values of a dictionary: names of two spellings are one afterwards."""
    if not is_text(column) or any(value != value.lower() for value in column if value):
        return repeated(column)
    spelled = pa.array([value.upper() if value and row % 2 else value for row, value in enumerate(column)])
    encoded = spelled.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices, pc.utf8_lower(encoded.dictionary))


def with_null(column: list[Any]) -> Any:
    """A dictionary in which the gap is a value."""
    values = list(dict.fromkeys([*column, None]))
    return pa.DictionaryArray.from_arrays([values.index(value) for value in column], pa.array(values))


def chunked(array: Any, encode: Callable[[Any], Any] = lambda chunk: chunk) -> Any:
    parts = [array.slice(begin, 4) for begin in range(0, len(array), 4)]
    return pa.chunked_array([encode(part) for part in parts])


def of_text(kind: Any) -> Callable[[list[Any]], Any]:
    return lambda column: pa.array(column).cast(kind) if is_text(column) else pa.array(column)


class OnlyAStream:
    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyAnArray:
    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self._array.__arrow_c_array__(requested_schema)


def each(make: Callable[[list[Any]], Any], whole: Callable[[dict[str, Any]], Any]) -> Callable[[Columns], Any]:
    return lambda columns: whole({role: make(column) for role, column in columns.items()})


def as_tuple(columns: dict[str, Any]) -> Any:
    return tuple(columns.values())


def to_categories(columns: Columns, kind: str) -> Any:
    def cast(column: list[Any]) -> Any:
        series = pl.Series(column)
        if not is_text(column):
            return series
        names = dict.fromkeys(value for value in column if value is not None)
        return series.cast(pl.Categorical if kind == "categorical" else pl.Enum(["unused", *names]))

    return pl.DataFrame({role: cast(column) for role, column in columns.items()})


def relation(columns: Columns) -> Any:
    table = pa.table(columns)
    return duckdb.from_arrow(table)  # type: ignore[no-untyped-call, unused-ignore]


SOURCES: dict[str, Callable[[Columns], Any]] = {
    "rows": rows_of,
    "rows as lists": lambda columns: [list(row) for row in rows_of(columns)],
    "dicts": lambda columns: [dict(zip(ROLES, row, strict=True)) for row in rows_of(columns)],
    "dicts without gaps": lambda columns: [
        {role: value for role, value in zip(ROLES, row, strict=True) if value is not None} for row in rows_of(columns)
    ],
    "tuple of lists": as_tuple,
    "mapping of lists": dict,
    "tuple of arrays": each(masked, as_tuple),
    "mapping of arrays": each(masked, dict),
    "tuple of object arrays": each(lambda column: np.array(column, dtype=object), as_tuple),
    "tuple of nullable Series": each(nullable, as_tuple),
    "mapping of nullable arrays": each(lambda column: nullable(column).array, dict),
    "tuple of indexes": each(lambda column: pd.Index(nullable(column)), as_tuple),
    "mapping of polars Series": each(pl.Series, dict),
    "tuple of pyarrow arrays": each(pa.array, as_tuple),
    "tuple of chunked arrays": each(lambda column: chunked(pa.array(column)), as_tuple),
    "mapping of Arrow arrays": each(lambda column: OnlyAnArray(pa.array(column)), dict),
    "mapping of Arrow streams": each(lambda column: OnlyAStream(chunked(pa.array(column))), dict),
    "mapping of iterators": each(iter, dict),
    "pandas": each(numpy_series, pd.DataFrame),
    "pandas objects": each(lambda column: pd.Series(column, dtype=object), pd.DataFrame),
    "pandas objects with NA": each(
        lambda column: pd.Series([pd.NA if value is None else value for value in column], dtype=object), pd.DataFrame
    ),
    "pandas nullable": each(nullable, pd.DataFrame),
    "pandas on Arrow": each(lambda column: pd.Series(pa.array(column), dtype=pd.ArrowDtype(pa.array(column).type)),
                            pd.DataFrame),
    "pandas categories": each(lambda column: numpy_series(column).astype("category"), pd.DataFrame),
    "pandas nullable categories": each(lambda column: nullable(column).astype("category"), pd.DataFrame),
    "pandas strings in Python": each(
        lambda column: pd.Series(column, dtype="string[python]") if is_text(column) else nullable(column), pd.DataFrame
    ),
    "pandas strings on Arrow": each(
        lambda column: pd.Series(column, dtype="string[pyarrow]") if is_text(column) else nullable(column), pd.DataFrame
    ),
    "pandas, indexed": lambda columns: each(nullable, pd.DataFrame)(columns).set_index(pd.Index(
        [("a", row) for row in range(len(columns["task"]))][::-1])),
    "polars": pl.DataFrame,
    "polars in chunks": lambda columns: pl.concat([pl.DataFrame(columns)[:5], pl.DataFrame(columns)[5:]],
                                                  rechunk=False),
    "polars lazy": pl.LazyFrame,
    "polars categories": lambda columns: to_categories(columns, "categorical"),
    "polars enums": lambda columns: to_categories(columns, "enum"),
    "pyarrow": each(pa.array, pa.table),
    "pyarrow batch": each(pa.array, lambda columns: pa.RecordBatch.from_arrays(list(columns.values()), names=ROLES)),
    "pyarrow reader": lambda columns: pa.table(columns).to_reader(),
    "pyarrow in chunks": each(lambda column: chunked(pa.array(column)), pa.table),
    "pyarrow dictionaries": each(lambda column: pa.array(column).dictionary_encode(), pa.table),
    "pyarrow dictionaries in chunks": each(
        lambda column: chunked(pa.array(column), lambda chunk: chunk.dictionary_encode()), pa.table
    ),
    "pyarrow dictionaries with nulls in chunks": each(
        lambda column: chunked(pa.array(column), lambda chunk: with_null(chunk.to_pylist())), pa.table
    ),
    "pyarrow dictionaries that repeat": each(repeated, pa.table),
    "pyarrow dictionaries, lowered": each(lowered, pa.table),
    "pyarrow dictionaries that repeat in chunks": each(lambda column: chunked(repeated(column)), pa.table),
    "pyarrow dictionaries with nulls": each(with_null, pa.table),
    "pyarrow run ends": each(lambda column: pc.run_end_encode(pa.array(column)), pa.table),
    "pyarrow run ends, sliced": lambda columns: each(
        lambda column: pc.run_end_encode(pa.array([column[0], *column, column[0]])), pa.table
    )(columns).slice(1, len(columns["task"])),
    "pyarrow large text": each(of_text(pa.large_string()), pa.table),
    "pyarrow views": each(of_text(getattr(pa, "string_view", pa.string)()), pa.table),
    "narwhals": lambda columns: nw.from_native(pa.table(columns)),
    "narwhals lazy": lambda columns: nw.from_native(relation(columns)),
    "duckdb": relation,
    "Arrow stream": lambda columns: OnlyAStream(pa.table(columns)),
    "Arrow stream of dictionaries that repeat": lambda columns: OnlyAStream(each(repeated, pa.table)(columns)),
}  # fmt: skip


def check_crowd(crowd: Annotations, expected: Expected) -> None:
    assert crowd.task_ptr.dtype == np.int64
    assert crowd.task_ptr.tolist() == expected.task_ptr
    assert crowd.worker.dtype == crowd.label.dtype == np.uint8
    assert crowd.worker.tolist() == expected.worker
    assert crowd.label.tolist() == expected.label
    for names, by_hand in zip((crowd.tasks, crowd.workers, crowd.classes), expected[3:6], strict=True):
        assert list(map(repr, names.tolist())) == list(map(repr, by_hand))  # the type and the sign too
    assert crowd.n_dropped == expected.n_dropped


@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("source", SOURCES)
def test_memory(source: str, votes: str) -> None:
    if source == "mapping of Arrow streams" and not hasattr(pa, "string_view"):
        pytest.skip("this pyarrow reads streams of tables only")
    expected, fitted = expected_of(votes)
    crowd = rarevote.read(SOURCES[source](VOTES[votes]), missing="drop").annotations
    check_crowd(crowd, expected)
    assert posterior(crowd) == fitted


def test_the_sources_repeat_what_they_should() -> None:
    table = SOURCES["pyarrow dictionaries, lowered"](VOTES["text"])
    for name in ("worker", "label"):
        values = table[name].chunk(0).dictionary.to_pylist()
        assert len(set(values)) < len(values)
    gaps = SOURCES["tuple of arrays"](VOTES["integers with gaps"])
    assert all(isinstance(column, np.ma.MaskedArray) and column.dtype == np.int64 for column in gaps)


# --------------------------------------------------------------------------------------------------------------------
# files


def write_csv(columns: Columns, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([ROLES, *rows_of(columns)])


def records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(ROLES, row, strict=True)) for row in rows_of(columns)]


def write_sheet(columns: Columns, path: Path) -> None:
    book = import_module("openpyxl").Workbook()
    for row in [ROLES, *rows_of({role: as_cells(column) for role, column in columns.items()})]:
        book.active.append(row)
    book.save(path)


def write_ipc(table: Any, path: Path) -> None:
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def as_text(column: list[Any]) -> list[Any]:
    return [None if value is None else str(value) for value in column]


def as_cells(column: list[Any]) -> list[Any]:
    """The rule of spreadsheets: whole numbers are integers. They have 15 digits, so that longer ids are text."""
    if any(isinstance(value, int) and abs(value) >= 10**15 for value in column):
        return as_text(column)
    return [int(value) if isinstance(value, float) and value.is_integer() else value for value in column]


def as_given(column: list[Any]) -> list[Any]:
    return column


FILES: dict[str, tuple[Callable[[Columns, Path], Any], Callable[[list[Any]], list[Any]]]] = {
    "votes.csv": (write_csv, as_text),
    "votes.json": (lambda columns, path: path.write_text(json.dumps(records(columns))), as_given),
    "votes.ndjson": (
        lambda columns, path: path.write_text("".join(json.dumps(record) + "\n" for record in records(columns))),
        as_given,
    ),
    "votes.parquet": (lambda columns, path: parquet.write_table(pa.table(columns), path), as_given),
    "polars.parquet": (lambda columns, path: pl.DataFrame(columns).write_parquet(path), as_given),
    "votes.arrow": (lambda columns, path: write_ipc(pa.table(columns), path), as_given),
    "repeats.arrow": (lambda columns, path: write_ipc(each(repeated, pa.table)(columns), path), as_given),
    "votes.xlsx": (write_sheet, as_cells),
}


@pytest.mark.filterwarnings("ignore:classes that differ only in spelling")  # texts such as 0.0 and -0.0
@pytest.mark.parametrize("votes", VOTES)
@pytest.mark.parametrize("file", FILES)
def test_files(tmp_path: Path, file: str, votes: str) -> None:
    write, rule = FILES[file]
    write(VOTES[votes], tmp_path / file)
    crowd = rarevote.read(tmp_path / file, missing="drop").annotations
    expected = encoded_by_hand(rows_of({role: rule(column) for role, column in VOTES[votes].items()}))
    check_crowd(crowd, expected)
    assert posterior(crowd) == posterior(as_crowd(expected))


@pytest.mark.parametrize(
    "file", ["votes.csv", "votes.parquet", "polars.parquet", "votes.arrow", "repeats.arrow", "votes.xlsx"]
)
def test_a_date_in_a_file_is_its_text_and_has_no_time(tmp_path: Path, file: str) -> None:
    days = [datetime.date(2026, 11, day) for day in (17, 16, 18)]
    times = [datetime.datetime(2026, 11, 17, hour, 2, 3) for hour in (12, 9, 10)]
    columns = some_votes(days, times, ["no", "yes"], None)
    FILES[file][0](columns, tmp_path / file)
    crowd = rarevote.read(tmp_path / file, missing="drop")
    check_crowd(
        crowd.annotations, encoded_by_hand(rows_of({role: as_text(column) for role, column in columns.items()}))
    )
    # Gold can give dates as dates or as text, and results have the names of the input.
    assert crowd.known({days[0]: "no"}) == crowd.known({"2026-11-17": "no"}) == {"2026-11-17": "no"}
    rarevote.fit(crowd, "majority-vote").decide().write(tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as handle:
        assert [row["task"] for row in csv.DictReader(handle)] == ["2026-11-16", "2026-11-17", "2026-11-18"]


# --------------------------------------------------------------------------------------------------------------------
# what is one name, and what is not


@pytest.mark.parametrize("source", ["rows", "tuple of lists", "pandas objects", "json"])
def test_true_and_one_are_not_one_name(source: str, tmp_path: Path) -> None:
    columns: Columns = {"task": ["a", "a", "b"], "worker": ["x", "y", "x"], "label": [True, 1, 0]}
    data: Any = tmp_path / "votes.json"
    if source == "json":
        data.write_text(json.dumps(records(columns)))
    else:
        data = SOURCES[source](columns)
    with pytest.raises(rarevote.errors.InputError, match=r"both the number 1 and the truth value True.*both as text"):
        rarevote.read(data)


@pytest.mark.parametrize("source", ["rows", "tuple of lists", "pandas objects", "json"])
@pytest.mark.parametrize("labels", [[1.0, 1, 0], [1, 1.0, 0], [1.0, 1, -0.0, 0]])
def test_equal_numbers_are_one_name_the_integer(labels: list[Any], source: str, tmp_path: Path) -> None:
    columns: Columns = {"task": list("abcd")[: len(labels)], "worker": ["x"] * len(labels), "label": labels}
    data: Any = tmp_path / "votes.json"
    if source == "json":
        data.write_text(json.dumps(records(columns)))
    else:
        data = SOURCES[source](columns)
    assert repr(rarevote.read(data).annotations.classes.tolist()) == "[0, 1]"


def test_names_given_by_hand_are_not_mixed_up_either() -> None:
    rows = [("a", "x", True), ("a", "y", False), ("b", "x", True)]
    with pytest.warns(rarevote.errors.RarevoteWarning, match="none of the answers is 1"):
        assert rarevote.read(rows, abstain=[1]).annotations.n_annotations == 3
    with pytest.raises(rarevote.errors.InputError, match="both the number 1 and the truth value True"):
        rarevote.read(rows, classes=[1])
    numbers = rarevote.read([(1, "x", "no"), (0, "x", "yes")])
    with pytest.raises(rarevote.errors.InputError, match="none of the tasks"):
        numbers.truth({True: "no"})


NUMBERS = (["a", "a", "b", "b", "c", "c"], ["x", "y"] * 3, [0, 1, 0, 0, 1, 1])
TRUTHS = (*NUMBERS[:2], list(map(bool, NUMBERS[2])))


@pytest.mark.parametrize(
    ("votes", "gold"),
    [
        (NUMBERS, {"a": True}),
        (NUMBERS, (["a", "b"], [True, False])),
        (NUMBERS, pd.Series([True], index=["a"])),
        (TRUTHS, {"a": 1}),
        (TRUTHS, {"a": 0.0}),
    ],
)
def test_gold_does_not_mix_numbers_and_truth_values(votes: Any, gold: Any) -> None:
    both = r"both the number (0|1)(\.0)? and the truth value (True|False).*both as text"
    for method in ("anchored-rasch", "dawid-skene"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # that they are kept as classes would contradict the refusal
            with pytest.raises(rarevote.errors.InputError, match=both):
                rarevote.fit(votes, method, gold=gold)
    with pytest.raises(rarevote.errors.InputError, match=both):
        rarevote.compare(votes, ["majority-vote"], gold=gold)
    assert rarevote.fit(votes, gold={"a": votes[2][0]}).gold == {"a": votes[2][0]}


def test_integers_that_do_not_fit_into_64_bits_stay_apart() -> None:
    ids = [2**63, 2**63 + 1, 2**70, 2**70 + 1, -1]
    crowd = rarevote.read((ids, ["w"] * 5, ["x"] * 5)).annotations
    assert crowd.tasks.tolist() == sorted(ids)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_categories_that_no_row_has_are_not_tasks(library: str) -> None:
    codes, names = [0, 1, 0], ["a", "b", "never"]
    column = {
        "pandas": lambda: pd.Series(pd.Categorical.from_codes(codes, names)),
        "polars": lambda: pl.Series(["a", "b", "a"], dtype=pl.Enum(names)),
        "pyarrow": lambda: pa.DictionaryArray.from_arrays(codes, names),
    }[library]()
    crowd = rarevote.read((column, column, column)).annotations
    assert crowd.tasks.tolist() == crowd.workers.tolist() == crowd.classes.tolist() == ["a", "b"]


def test_wide_frames_mask_and_keep_integers() -> None:
    ids = [2**53, 2**53 + 1]
    crowd = rarevote.read(
        {
            "task": ids,
            "ann": np.ma.array([1, 7], mask=[False, True]),
            "bob": pd.array([None, 2**53 + 1], dtype="Int64"),
        },
        wide=True,
    ).annotations
    assert crowd.tasks.tolist() == ids
    assert crowd.classes.tolist() == [1, 2**53 + 1]
    assert crowd.n_annotations == 2


# --------------------------------------------------------------------------------------------------------------------
# dates and times: those of Python, whatever unit a library stores

BEGIN = datetime.datetime(2020, 1, 31, 23, 59, 59, 999_999)
TIMES = [BEGIN + datetime.timedelta(microseconds=step) for step in (0, 0, 1, 1, 10**12, 10**12)]
DAYS = [datetime.date(2020, month, 1) for month in (2, 2, 1, 1, 11, 11)]
SPANS = [time - BEGIN for time in TIMES]
CLOCK = [datetime.time(1, 2, 3, micro) for micro in (5, 5, 4, 4, 6, 6)]
PEOPLE, ANSWERS = ["x", "y"] * 3, ["no", "yes", "no", "no", "yes", "yes"]


def fine(column: list[Any], unit: str = "ns") -> Any:
    kind = "M" if isinstance(column[0], datetime.datetime) else "m"
    return np.array(column, dtype=f"{kind}8[us]").astype(f"{kind}8[{unit}]")


def ticks(values: Sequence[int], kind: Any) -> Any:
    return pl.Series(values).cast(kind) if isinstance(kind, (pl.DataType, type)) else pa.array(values, kind)


TIME_FORMS: dict[str, tuple[list[Any], Callable[[], Any]]] = {
    "NumPy, us": (TIMES, lambda: fine(TIMES, "us")),
    "NumPy, ns": (TIMES, lambda: fine(TIMES)),
    "NumPy, ps": (TIMES[:4] * 2, lambda: fine(TIMES[:4] * 2, "ns")),
    "NumPy, in a list": (TIMES, lambda: list(fine(TIMES))),
    "NumPy, spans": (SPANS, lambda: fine(SPANS)),
    "NumPy, months": (DAYS, lambda: np.array(DAYS, dtype="M8[M]")),
    "pandas, ns": (TIMES, lambda: pd.Series(fine(TIMES))),
    "pandas, spans": (SPANS, lambda: pd.Series(fine(SPANS))),
    "pandas, categories": (TIMES, lambda: pd.Series(fine(TIMES)).astype("category")),
    "pandas on Arrow": (TIMES, lambda: pd.Series(pa.array(fine(TIMES)), dtype=pd.ArrowDtype(pa.timestamp("ns")))),
    "pandas on Arrow, clock": (
        CLOCK,
        lambda: pd.Series(pa.array(CLOCK).cast(pa.time64("ns")), dtype=pd.ArrowDtype(pa.time64("ns"))),
    ),
    "polars, ns": (TIMES, lambda: pl.Series(fine(TIMES))),
    "polars, days": (DAYS, lambda: pl.Series(DAYS)),
    "polars, spans": (SPANS, lambda: pl.Series(fine(SPANS))),
    "polars, clock": (CLOCK, lambda: pl.Series(CLOCK)),
    "pyarrow, ns": (TIMES, lambda: pa.array(fine(TIMES))),
    "pyarrow, dictionary": (TIMES, lambda: pa.array(fine(TIMES)).dictionary_encode()),
    "pyarrow, days": (DAYS, lambda: pa.array(DAYS)),
    "pyarrow, days in ms": (DAYS, lambda: pa.array(DAYS, pa.date64())),
    "pyarrow, spans": (SPANS, lambda: pa.array(fine(SPANS))),
    "pyarrow, clock": (CLOCK, lambda: pa.array(CLOCK).cast(pa.time64("ns"))),
}


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
@pytest.mark.parametrize("form", TIME_FORMS)
def test_times_are_those_of_python(form: str) -> None:
    plain, column = TIME_FORMS[form]
    people, answers = (PEOPLE * 2)[: len(plain)], (ANSWERS * 2)[: len(plain)]
    fitted = rarevote.fit((column(), people, answers), gold={plain[0]: "no"}, items=[*plain])
    expected = rarevote.fit((plain, people, answers), gold={plain[0]: "no"})
    assert fitted.annotations.tasks.tolist() == expected.annotations.tasks.tolist() == sorted(set(plain))
    assert fitted.probabilities.tobytes() == expected.probabilities.tobytes()
    result = fitted.decide()
    assert result.tasks.tolist() == sorted(set(plain))
    assert result.to_polars()["task"].to_list() == result.to_arrow()["task"].to_pylist() == sorted(set(plain))
    assert rarevote.read((plain, people, answers), items=column()).n_unvoted == 0


def test_times_in_a_wide_frame_and_in_lists_of_names() -> None:
    wide = pd.DataFrame({"task": fine(TIMES[::2]), "ann": ["no", "no", "yes"], "bob": ["no", "yes", "yes"]})
    assert rarevote.read(wide, wide=True).annotations.tasks.tolist() == TIMES[::2]
    votes = (["a", "a", "b", "b", "c", "c"], PEOPLE, TIMES)
    crowd = rarevote.read(votes, classes=fine([datetime.datetime(2030, 1, 1)]), abstain=fine(TIMES[:1])).annotations
    assert crowd.classes.tolist() == [*TIMES[2::2], datetime.datetime(2030, 1, 1)]


ODD: dict[str, Callable[[], Any]] = {
    "NumPy": lambda: np.arange(6).astype("M8[ns]"),
    "NumPy in a list": lambda: list(np.arange(6).astype("M8[ns]")),
    "NumPy, years": lambda: np.full(6, 2**60).astype("M8[s]"),
    "NumPy, years in us": lambda: np.full(6, 2**62).astype("M8[us]"),
    "pandas": lambda: pd.Series(np.arange(6).astype("M8[ns]")),
    "pandas, zone": lambda: pd.Series(np.arange(6).astype("M8[ns]")).dt.tz_localize("UTC"),
    "pandas, objects": lambda: pd.Series(np.arange(6).astype("m8[ns]")).astype(object),
    "pandas on Arrow": lambda: pd.Series(ticks(range(6), pa.time64("ns")), dtype=pd.ArrowDtype(pa.time64("ns"))),
    "polars": lambda: ticks(range(6), pl.Datetime("ns")),
    "polars, zone": lambda: ticks(range(6), pl.Datetime("ns", "Europe/Berlin")),
    "polars, clock": lambda: ticks(range(6), pl.Time),
    "polars, spans": lambda: ticks(range(6), pl.Duration("ns")),
    "polars, years": lambda: ticks([2**62] * 6, pl.Datetime("us")),
    "polars, years in the zone": lambda: ticks([253402300799999999] * 6, pl.Datetime("us", "Asia/Tokyo")),
    "polars, days": lambda: pl.Series([2**30] * 6, dtype=pl.Int32).cast(pl.Date),
    "pyarrow": lambda: ticks(range(6), pa.timestamp("ns")),
    "pyarrow, clock": lambda: ticks(range(6), pa.time64("ns")),
    "pyarrow, spans": lambda: ticks(range(6), pa.duration("ns")),
    "pyarrow, dictionary": lambda: ticks(range(6), pa.timestamp("ns")).dictionary_encode(),
    "pyarrow, years": lambda: ticks([2**60] * 6, pa.timestamp("s")),
    "pyarrow, days": lambda: ticks([2**30] * 6, pa.date32()),
}


@pytest.mark.parametrize("form", ODD)
def test_times_that_python_does_not_have_are_refused(form: str) -> None:
    with pytest.raises(rarevote.errors.InputError, match=r"task holds .*whole microseconds.*Round it, or turn"):
        rarevote.read((ODD[form](), PEOPLE, ANSWERS))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (lambda: np.arange(6).astype("m8[M]"), "durations of no fixed length"),
        (lambda: ticks(range(6), pa.timestamp("us", "Foo/Bar")), "check the time zone"),
    ],
)
def test_times_that_cannot_be_converted_are_refused(column: Callable[[], Any], message: str) -> None:
    with pytest.raises(rarevote.errors.InputError, match=f"task holds .*{message}.*text first"):
        rarevote.read((column(), PEOPLE, ANSWERS))
