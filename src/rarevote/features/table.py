"""Tables of numbers by item: columns, or one column of lists, from frames, arrays and files."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import as_list, check_same_index, decode_column, distinct_names
from rarevote.crowd.names import as_name_array, in_kind, is_missing, positions_of, some_names, spelling, unmatched
from rarevote.crowd.numerics import IntArray
from rarevote.crowd.words import counted
from rarevote.errors import ColumnsError, InputError, ParameterError, how, shown, warn_user
from rarevote.io.duck import identifier
from rarevote.io.read.columns import ALIASES, find_columns
from rarevote.io.read.frames import as_frame
from rarevote.io.read.series import encode_values
from rarevote.io.read.sources import FileTable, asking, count_rows, open_sources
from rarevote.io.unpacked import check_rows

MAX_COLUMNS = 4_096
_ALIASES = {"task": (*ALIASES["task"], "id", "ids", "tasks", "items")}
_KINDS = "a frame with a column of ids, a pair (ids, array), or a path to Parquet, CSV or .npy"
_PAIR = ("the ids", "the rows")
# A larger table from a file is stored in a temporary file, in single precision.
_IN_MEMORY = 1 << 28
_AT_ONCE = 1 << 22  # cells that are decoded at a time
_TEXT_AT_ONCE = 1 << 26  # likewise for text, which is read from the beginning each time
_WORDS_AT_ONCE = 16  # columns; DuckDB's planning time grows with the square of their number
_NUMERIC = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|REAL|BOOLEAN|DECIMAL\(.*\)")
_MISSING = "('', 'na', 'n/a', 'null', 'none')"


def refuse_many(n_columns: int, title: str) -> None:
    """Refuse more columns than a fit supports.

    Raises:
        InputError: there are more.
    """
    if n_columns > MAX_COLUMNS:
        raise InputError(
            f"{title}: {n_columns:,} columns, more than the {MAX_COLUMNS:,} supported: project them on fewer columns "
            "first (PCA)"
        )


@dataclass(frozen=True)
class WhichColumns:
    """The roles of the columns of a table.

    Attributes:
        id: the column of ids; by default, found by its name.
        task: the name of the task column in the votes, which the ids can also have.
        group: the column of groups; none by default.
        only: the classes whose columns are read; None for all other columns.
    """

    id: str | None = None
    task: str | None = None
    group: str | None = None
    only: Sequence[Any] | None = None

    def text(self, name: Any) -> str:
        """The name of a column as text: as a CSV file has it, and if it can be a class, as a class is written."""
        return str(name) if self.only is None else spelling(name)

    def among(self, columns: Sequence[str], title: str) -> tuple[str, list[str]]:
        """The column of ids, and the columns of numbers.

        Raises:
            ColumnsError: a column does not exist, or the column of ids is ambiguous.
        """
        for name, option in ((self.id, how("an id column", "--features-id")), (self.group, "the group column")):
            if name is not None and name not in columns:
                raise ColumnsError(f"{title} has no column {name!r} ({option}); it has {some_names(columns)}")
        found = self.id or (self.task if self.task in columns else None)
        if found is None:
            found = find_columns(columns, aliases=_ALIASES, where=title, choosable=False)["task"]
        rest = [name for name in columns if name not in (found, self.group)]
        strange = set() if self.only is None else set(unmatched(rest, as_name_array(self.only)))
        chosen = [name for name in rest if name not in strange]
        refuse_many(len(chosen), title)  # before any of them is read
        return found, chosen


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Numbers of items.

    Attributes:
        title: its name in messages.
        place: the row of each id, which is text.
        names: names of the columns.
        values: the numbers, (N, D); can be a memory map.
        groups: the group of each row, as text; None without.
    """

    title: str
    place: dict[str, int]
    names: list[str]
    values: NDArray[Any]
    groups: list[str] | None = None

    def rows(self, texts: Iterable[str]) -> IntArray:
        """The rows of these ids."""
        return np.array([self.place[text] for text in texts], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class PredictionTable(FeatureTable):
    """Predicted probabilities of items; the names of the columns are those of classes."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes, as text."""
        return self.names


def read_features(data: Any, which: WhichColumns, *, ids: Any = None, groups: Any = None) -> FeatureTable:
    """The features of items.

    Args:
        data: a pandas, polars or pyarrow frame with a column of ids and columns of numbers, or one of lists; a pair
            ``(ids, array)``; a path to a table, or to a ``.npy`` file.
        which: the roles of the columns.
        ids: for a ``.npy`` file, a file with one id per line.
        groups: the group of each row, if no column has it.

    Raises:
        InputError: the table cannot be used; the message says why and what to do.
    """
    title = str(data) if isinstance(data, (str, Path)) else "features"
    if groups is not None:
        columns = dict(zip(_PAIR, data, strict=False)) if isinstance(data, tuple) else {title: data}
        check_same_index({**columns, "groups": groups})
    found = _read(data, which, ids, title)
    if groups is not None:
        given = _groups(_names(groups, "groups"))
        if len(given) != len(found.ids):
            raise InputError(f"{title}: {len(given):,} groups for {len(found.ids):,} rows: give one for each row")
        found = replace(found, groups=given)
    refuse_many(len(found.names), title)
    if not found.names:
        raise InputError(f"{title}: no columns of numbers beside the ids")
    return FeatureTable(title, _places(found, title), found.names, found.values, found.groups)


def read_predictions(data: Any, which: WhichColumns, classes: Sequence[Any]) -> PredictionTable:
    """Predicted probabilities of items.

    Args:
        data: a frame with a column of ids and one for each class; ``(ids, array, classes)``; or a path.
        which: the roles of the columns.
        classes: classes of the votes.

    Raises:
        InputError: no column is a class, or rows are not probabilities.
    """
    title = str(data) if isinstance(data, (str, Path)) else "pred_probs"
    names = [spelling(name) for name in classes]
    if isinstance(data, tuple) and len(data) == 3:
        found = replace(_of_arrays(data[0], data[1], which, title), names=_class_names(data[2], data[1], title))
        if len(found.names) != found.values.shape[1]:
            raise InputError(f"{title}: {len(found.names)} classes for {found.values.shape[1]} columns")
    elif isinstance(data, np.ndarray):
        raise InputError(f"{title}: an array does not say which row is which item: give (ids, array, classes)")
    else:
        found = _read(data, replace(which, only=classes), None, title)
    known = as_name_array(classes)
    number = positions_of(known, in_kind(found.names, known))
    keep = np.flatnonzero(number >= 0)
    extra = [*found.left_out, *(found.names[column] for column in np.flatnonzero(number < 0))]
    if not keep.size:
        raise InputError(
            f"{title}: no column is a class: its columns are {some_names(extra)}, and the classes are "
            f"{some_names(map(str, classes))}"
        )
    counts = np.bincount(number[keep], minlength=len(names))
    if counts.max() > 1:
        raise InputError(f"{title}: the class {shown(names[counts.argmax()])} has {counts.max()} columns: give one")
    if extra:
        warn_user(f"{title}: {some_names(extra)} is not a class: the column is left out")
    values = np.asarray(found.values[:, keep], dtype=np.float64)
    _check_probabilities(values, found.ids, title)
    return PredictionTable(title, _places(found, title), [names[one] for one in number[keep]], values)


def _class_names(classes: Any, values: Any, title: str) -> list[str]:
    """The names of the columns of an array; a frame, which has names itself, must not have them in another order."""
    given = [spelling(name) for name in _names(classes, f"the classes of {title}")]
    own = [spelling(name) for name in getattr(values, "column_names", getattr(values, "columns", ()))]
    numbered = own == [str(number) for number in range(len(own))]
    if not numbered and any(name != one and name in given for name, one in zip(own, given, strict=False)):
        raise InputError(
            f"{title}: the columns of the frame are {some_names(own)}, and the classes given are {some_names(given)}: "
            "give them in one order"
        )
    return given


def _check_probabilities(values: NDArray[np.float64], ids: Sequence[str], title: str) -> None:
    wrong = ~((values >= 0.0) & (values <= 1.0)).all(axis=1)
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"{title}: {counted(wrong.sum(), 'row is', 'rows are')} not probabilities between 0 and 1 "
            f"(first: {shown(ids[first])}, {values[first].tolist()})"
        )
    wrong = np.abs(values.sum(axis=1) - 1.0) > 0.01
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"{title}: the probabilities of {counted(wrong.sum(), 'row')} do not sum to 1 (first: {shown(ids[first])}, "
            f"{values[first].sum():g}): give one column for each class"
        )


# --------------------------------------------------------------------------------------------------------------------
# rows as they are


@dataclass(frozen=True, eq=False)
class _Rows:
    ids: list[str]
    names: list[str]
    values: NDArray[Any]
    groups: list[str] | None = None
    left_out: tuple[str, ...] = ()


def _places(found: _Rows, title: str) -> dict[str, int]:
    """The row of each id; a duplicate id counts once, if its rows are equal."""
    place: dict[str, int] = {}
    for row, text in enumerate(found.ids):
        first = place.setdefault(text, row)
        if first != row and not _are_equal(found, first, row):
            raise InputError(f"{title}: {shown(text)} has two different rows ({first + 1} and {row + 1}): keep one")
    return place


def _are_equal(found: _Rows, first: int, row: int) -> bool:
    if found.groups is not None and found.groups[first] != found.groups[row]:
        return False
    return np.array_equal(found.values[first], found.values[row], equal_nan=True)


def _read(data: Any, which: WhichColumns, ids: Any, title: str) -> _Rows:
    if isinstance(data, (str, Path)) and Path(data).suffix.lower() == ".npy":
        return _of_npy(Path(data), ids, which, title)
    if ids is not None:
        raise ParameterError(f"{how('features_ids', '--features-ids')} needs a .npy file: {title} has its own ids")
    if isinstance(data, (str, Path)):
        return _of_file(data, which, title)
    if isinstance(data, tuple):
        if len(data) != 2:
            raise InputError(f"{title}: give {_KINDS}, not a tuple of {len(data)}")
        return _of_arrays(*data, which, title)
    if isinstance(data, np.ndarray):
        raise InputError(f"{title}: an array does not say which row is which item: give (ids, array)")
    return _of_frame(data, which, title)


def _names(column: Any, what: str) -> list[Any]:
    """The names in the rows of a column in memory, as votes have them; None for missing ones."""
    listed = as_list(column, what)
    if set(map(type, listed)) <= {str, int, type(None)}:
        return listed
    values = listed if isinstance(column, Iterator) else column
    return decode_column(*distinct_names(*encode_values(values, what), what))


def _texts(names: Sequence[Any], title: str) -> list[str]:
    absent = [row + 1 for row, name in enumerate(names) if is_missing(name)]
    if absent:
        raise InputError(f"{title}: {counted(len(absent), 'row has', 'rows have')} no id (first: row {absent[0]})")
    return [name if isinstance(name, str) else spelling(name) for name in names]


def _unmasked(values: Any) -> NDArray[Any]:
    """Numbers as an array; a masked value is missing."""
    if not np.ma.is_masked(values) or values.dtype.kind not in "buif":
        return np.asarray(values)
    return np.asarray((values if values.dtype.kind == "f" else values.astype(np.float64)).filled(np.nan))


def _of_arrays(ids: Any, values: Any, which: WhichColumns, title: str) -> _Rows:
    for name in (which.id, which.group):
        if name is not None:
            raise ParameterError(f"{title}: an array has no column {name!r}: give a frame, or a file with a header")
    check_same_index(dict(zip(_PAIR, (ids, values), strict=True)))
    texts = _texts(_names(ids, f"the ids of {title}"), title)
    try:
        if isinstance(values, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in values):
            values = np.ma.array(values)
        table = _unmasked(values)
    except ValueError:
        raise InputError(f"{title}: rows are lists of unequal length") from None
    if table.dtype.kind not in "buif" or table.ndim != 2:
        raise InputError(
            f"{title}: numbers in rows and columns are needed, not an array of {table.dtype} with "
            f"{table.ndim} dimensions: encode or embed text first"
        )
    if len(table) != len(texts):
        raise InputError(f"{title}: {len(texts):,} ids for {len(table):,} rows")
    if table.dtype.kind == "b" or table.dtype.itemsize < 4:
        table = table.astype(np.float64)
    return _Rows(texts, [f"f{number}" for number in range(table.shape[1])], table)


def _of_npy(path: Path, ids: Any, which: WhichColumns, title: str) -> _Rows:
    if not isinstance(ids, (str, Path)):
        option = how("(ids, array)", "--features-ids FILE")
        raise ParameterError(f"{title}: a .npy file has no ids: give {option}, with one id per line")
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{title}: not a readable .npy file of numbers ({str(error).splitlines()[0][:120]})") from None
    try:
        lines = Path(ids).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{ids}: cannot be read as one id per line ({error})") from None
    return _of_arrays(lines, values, which, title)


def _stacked(lists: Iterable[Any], n: int, title: str) -> NDArray[Any]:
    """An array with one row per list."""
    table: NDArray[Any] | None = None
    for row, one in enumerate(lists):
        numbers = _numbers(one, row, title)
        if table is None:
            refuse_many(len(numbers), title)
            table = np.empty((n, len(numbers)), dtype=numbers.dtype)
        if len(numbers) != table.shape[1]:
            raise InputError(
                f"{title}: lists of unequal length: row 1 has {table.shape[1]}, row {row + 1} has {len(numbers)}"
            )
        table[row] = numbers
    return np.empty((0, 0)) if table is None else table


def _numbers(one: Any, row: int, title: str) -> NDArray[Any]:
    try:
        numbers = _unmasked(one)
        if numbers.dtype == object or numbers.dtype.kind not in "f":
            numbers = numbers.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{title}: row {row + 1} is not a list of numbers: {shown(one)}") from None
    if numbers.ndim != 1:
        raise InputError(f"{title}: row {row + 1} is not a list of numbers: {shown(one)}")
    return numbers


def _refuse_text(names: Sequence[str], title: str) -> None:
    if names:
        raise InputError(
            f"{title}: {some_names(map(repr, names))} {'holds' if len(names) == 1 else 'hold'} no numbers: encode or "
            "embed such columns first, or leave them out"
        )


# --------------------------------------------------------------------------------------------------------------------
# frames


def _of_frame(data: Any, which: WhichColumns, title: str) -> _Rows:
    frame, _ = as_frame(data, title, _KINDS)
    if any(not isinstance(name, str) for name in frame.columns):
        frame = frame.rename({name: which.text(name) for name in frame.columns})
    own, chosen = which.among(frame.columns, title)
    texts = _texts(_names(frame.get_column(own), f"the column {shown(own)}"), title)
    groups = None
    if which.group is not None:
        groups = _groups(_names(frame.get_column(which.group), f"the column {shown(which.group)}"))
    left_out = tuple(name for name in frame.columns if name not in (own, which.group, *chosen))
    columns = {name: frame.get_column(name) for name in chosen}
    numeric = [name for name, one in columns.items() if one.dtype.is_numeric() or str(one.dtype) == "Boolean"]
    others = [name for name in chosen if name not in numeric]
    if len(others) == 1 and not numeric and (lists := _lists_in(columns[others[0]])) is not None:
        values = _stacked(lists, len(texts), title)
        return _Rows(texts, [f"{others[0]}[{k}]" for k in range(values.shape[1])], values, groups, left_out)
    _refuse_text(others, title)
    single = all(str(columns[name].dtype) == "Float32" for name in numeric)
    values = np.empty((len(texts), len(numeric)), dtype=np.float32 if single else np.float64)
    for number, name in enumerate(numeric):
        column = columns[name]
        if not column.null_count():
            values[:, number] = column.to_numpy()
            continue
        values[:, number] = np.nan
        values[~column.is_null().to_numpy(), number] = column.drop_nulls().to_numpy()
    return _Rows(texts, numeric, values, groups, left_out)


def _lists_in(column: Any) -> list[Any] | None:
    """The lists of a column; None if there are none."""
    found = column.to_list()
    return found if found and all(isinstance(one, (list, tuple, np.ndarray)) for one in found) else None


def _groups(values: Sequence[Any]) -> list[str]:
    return ["" if is_missing(value) else spelling(value) for value in values]


# --------------------------------------------------------------------------------------------------------------------
# files


def _of_file(path: str | Path, which: WhichColumns, title: str) -> _Rows:
    with open_sources(path, wanted=None) as sources:
        if len(sources) > 1:
            raise InputError(f"{title}: all files must have the same columns")
        return _FileReader(sources[0], which, title).rows()


class _FileReader:
    """Reads a table from files, a few columns at a time."""

    def __init__(self, source: FileTable, which: WhichColumns, title: str) -> None:
        self.source, self.which, self.title = source, which, title

    def rows(self) -> _Rows:
        own, chosen = self.which.among(self.source.columns, self.title)
        if self.source.compression != "none":
            packed = sum(Path(file.path).stat().st_size for file in self.source.files)
            check_rows(packed, count_rows(self.source), self.title)
        with asking(self.source) as ask:
            self.ask = ask
            texts = _texts(self._texts(own), self.title)
            groups = None if self.which.group is None else _groups(self._texts(self.which.group))
            left_out = [one for one in self.source.columns if one not in (own, self.which.group, *chosen)]
            if len(chosen) == 1 and self._holds_lists(chosen[0]):
                values = self._lists(chosen[0], len(texts))
                names = [f"{chosen[0]}[{k}]" for k in range(values.shape[1])]
            else:
                values, names = self._table(chosen, len(texts)), chosen
        return _Rows(texts, names, values, groups, tuple(left_out))

    def _select(self, expressions: str) -> Any:
        return self.ask(f"SELECT {expressions} FROM {self.source.reader}")

    def _texts(self, column: str) -> list[Any]:
        return [one for (one,) in self._select(self.source.text(column)).fetchall()]

    def _holds_lists(self, column: str) -> bool:
        if self.source.form == "typed":
            (kind,) = self._types([column])
            return kind.endswith("]")
        first = self.ask(
            f"SELECT {self.source.text(column)} FROM {self.source.reader} WHERE {identifier(column)} IS NOT NULL "
            "LIMIT 1"
        ).fetchone()
        return first is not None and str(first[0]).lstrip().startswith("[")

    def _types(self, columns: Sequence[str]) -> list[str]:
        chosen = ", ".join(map(identifier, columns))
        return [str(row[1]) for row in self.ask(f"DESCRIBE SELECT {chosen} FROM {self.source.reader}").fetchall()]

    def _lists(self, column: str, n: int) -> NDArray[Any]:
        text = self.source.text(column)
        read = identifier(column) if self.source.form == "typed" else f"TRY_CAST({text} AS VARCHAR[])"
        (width,) = self._select(f"max(len({read}))").fetchone()
        refuse_many(int(width or 0), self.title)
        table = _room(n, int(width or 0), self.title)

        def lists() -> Iterator[Any]:
            found = self._select(read)
            while part := found.fetchmany(max(_AT_ONCE // max(int(width or 1), 1), 1)):
                yield from (one for (one,) in part)

        for row, one in enumerate(lists()):
            numbers = _numbers(() if one is None else one, row, self.title)
            if len(numbers) != table.shape[1]:
                raise InputError(
                    f"{self.title}: lists of unequal length: row {row + 1} has {len(numbers)}, another has {width}"
                )
            table[row] = numbers
        return table

    def _table(self, columns: Sequence[str], n: int) -> NDArray[Any]:
        if self.source.form == "typed":
            kinds = dict(zip(columns, self._types(columns), strict=True)) if columns else {}
            _refuse_text([name for name, kind in kinds.items() if not _NUMERIC.fullmatch(kind)], self.title)
        table = _room(n, len(columns), self.title)
        at_once = max((_AT_ONCE if self.source.form == "typed" else _TEXT_AT_ONCE) // max(n, 1), 1)
        for begin in range(0, len(columns), at_once):
            some = columns[begin : begin + at_once]
            self._fill(table[:, begin : begin + len(some)], some, self._plain_number)
            if self.source.form != "typed":
                self._read_words(table[:, begin : begin + len(some)], some)
        return table

    def _fill(self, table: NDArray[Any], columns: Sequence[str], number: Callable[[str], str]) -> None:
        """Fill a part of the table with the results of SQL expressions."""
        read = ", ".join(f"{number(name)} AS c{k}" for k, name in enumerate(columns))
        found = self._select(read).fetchnumpy()
        for k in range(len(columns)):
            table[:, k] = np.ma.filled(np.ma.asarray(found[f"c{k}"], dtype=table.dtype), np.nan)

    def _plain_number(self, column: str) -> str:
        if self.source.form == "typed":
            return f"CAST({identifier(column)} AS DOUBLE)"
        # Around trim: DuckDB would move a bare cast into its CSV reader, which raises errors instead of trying.
        return f"TRY_CAST(trim({self.source.text(column)}) AS DOUBLE)"

    def _read_words(self, table: NDArray[Any], columns: Sequence[str]) -> None:
        """Read columns again, a few at a time, in which some cells are not numbers: true, false, or empty."""
        doubtful = [k for k in range(len(columns)) if np.isnan(table[:, k]).any()]
        for begin in range(0, len(doubtful), _WORDS_AT_ONCE):
            places = doubtful[begin : begin + _WORDS_AT_ONCE]
            some = [columns[k] for k in places]
            self._refuse_words(some)
            part = np.empty((len(table), len(some)), dtype=table.dtype)
            self._fill(part, some, self._number_or_word)
            table[:, places] = part

    def _number_or_word(self, column: str) -> str:
        text = f"lower(trim({self.source.text(column)}))"
        return f"CASE {text} WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 ELSE TRY_CAST({text} AS DOUBLE) END"

    def _refuse_words(self, columns: Sequence[str]) -> None:
        counts = ", ".join(
            f"count(*) FILTER (WHERE {self._number_or_word(name)} IS NULL "
            f"AND lower(trim({self.source.text(name)})) NOT IN {_MISSING})"
            for name in columns
        )
        found = self._select(counts).fetchone()
        _refuse_text([name for name, count in zip(columns, found, strict=True) if count], self.title)


def _room(n: int, width: int, title: str) -> NDArray[Any]:
    """An array for a table; a large one is in a temporary file that is removed with it."""
    if 8 * n * width <= _IN_MEMORY:
        return np.empty((n, width))
    warn_user(
        f"{title}: {n:,} rows of {width:,} numbers go to a temporary file of {4e-9 * n * width:.1f} GB, which is "
        "removed at the end"
    )
    with tempfile.TemporaryFile(prefix="rarevote-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=(n, width))
