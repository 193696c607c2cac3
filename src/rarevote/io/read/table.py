"""A small table from files: truth, answers, a list of items, a result; its columns are accessed by role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.encoding import decode_column
from rarevote.crowd.names import is_missing, object_array
from rarevote.crowd.words import counted
from rarevote.errors import InputError, naming
from rarevote.io.json_text import parse_cell
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns, preferred
from rarevote.io.read.encode import Choice, encode_rows, loaded
from rarevote.io.read.partitions import say_partitions
from rarevote.io.read.sources import FileTable, place_of_rows

_SHOWN = 5  # how many rows a message names
_NAMES = ("task", "label")  # roles whose values are names or numbers, never lists or objects


@dataclass(frozen=True, eq=False)
class NameColumn:
    """The names in a column, as numbers: millions of rows need no Python objects.

    Attributes:
        codes: the number of the name of every row, -1 if it is missing, (n).
        names: the distinct names.
    """

    codes: NDArray[Any]
    names: NDArray[Any]

    @cached_property
    def values(self) -> list[Any]:
        """The name of every row, None if it is missing."""
        return decode_column(self.codes, self.names)

    def spelled(self, spelling: Callable[[Any], str]) -> NameColumn:
        """The same column with every name as text."""
        names = self.names.tolist()
        is_text = all(type(name) is str for name in names)
        return self if is_text else NameColumn(self.codes, object_array([spelling(name) for name in names]))

    def first_repeated(self) -> int | None:
        """The first row that repeats a name."""
        names = self.names.tolist()
        if len(set(names)) == len(self.codes):
            return None
        number: dict[Any, int] = {}
        same = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
        _, first = np.unique(same[self.codes], return_index=True)
        is_first = np.zeros(len(self.codes), dtype=bool)
        is_first[first] = True
        return None if is_first.all() else int(np.argmin(is_first))


@dataclass(frozen=True, eq=False)
class NumberColumn:
    """The numbers in a column.

    Attributes:
        values: the numbers, NaN if a cell is not a number, (n).
        others: the cells that had to be parsed individually, by row.
    """

    values: NDArray[np.float64]
    others: dict[int, Any]

    def written(self, row: int) -> Any:
        """The contents of a cell, for a message."""
        return self.others.get(row, f"{self.values[row]:g}")


@dataclass(frozen=True)
class TableRows:
    """The rows of open files.

    Attributes:
        sources: the files.
        names: the columns of the roles "task" and "label".
        cells: the values of other roles, in the order of the rows; None for missing JSON values.
        numbers: the columns that were requested as numbers.
    """

    sources: Sequence[FileTable]
    names: dict[str, NameColumn]
    cells: dict[str, list[Any]] = field(default_factory=dict)
    numbers: dict[str, NumberColumn] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name in messages."""
        return self.sources[0].title

    @property
    def tasks(self) -> list[Any]:
        """The values of the role "task"; None for missing ones."""
        return self.names["task"].values

    @property
    def labels(self) -> list[Any]:
        """The values of the role "label"; None for missing ones."""
        return self.names["label"].values

    def spelled(self, spelling: Callable[[Any], str]) -> TableRows:
        """The same rows with every name as text."""
        return replace(self, names={role: column.spelled(spelling) for role, column in self.names.items()})

    def place(self, *rows: int) -> str:
        """The location of rows, as text."""
        return place_of_rows(self.sources, rows[:_SHOWN])

    def refuse_missing(self, what: str, *roles: str) -> None:
        """Refuse rows that lack one of these roles.

        Raises:
            InputError: there are some; the message says that these rows have no ``what``.
        """
        lacks = [self.names[role].codes < 0 for role in roles]
        absent = np.flatnonzero(np.logical_or.reduce(lacks)).tolist()
        if absent:
            raise InputError(
                f"{self.title}: {counted(len(absent), 'row has', 'rows have')} no {what} ({self.place(*absent)})"
            )

    def refuse_repeated(self, advice: str = "") -> None:
        """Refuse a task that occurs twice.

        Raises:
            InputError: a task occurs twice.
        """
        row = self.names["task"].first_repeated()
        if row is not None:
            raise InputError(f"{self.title}: task {self.tasks[row]!r} occurs twice ({self.place(row)}){advice}")


def read_table(
    sources: Sequence[FileTable], roles: Sequence[Mapping[str, str]], *, numbers: Sequence[str] = ()
) -> TableRows:
    """The rows of files in any format for votes, in order.

    Args:
        sources: the files, as :func:`~rarevote.io.read.sources.open_sources` returns them.
        roles: the column of each role, for each file; a role is a plain word.
        numbers: roles whose cells are read as numbers.

    Raises:
        InputError: a file cannot be read, or a task or a label is a list or an object.
    """
    named = [role for role in roles[0] if role in _NAMES]
    others = [role for role in roles[0] if role not in (*_NAMES, *numbers)]
    is_json, title = sources[0].form == "json", sources[0].title
    with loaded(sources, [*map(Choice, roles)]) as database:
        kinds = {name: kind for name, kind, *_ in database.execute("DESCRIBE rows").fetchall()}
        texts = [role for role in named if kinds[role] in ("VARCHAR", "JSON")]
        with naming(title):
            encoded, plain = encode_rows(database, texts) if texts else ({}, set())
        names = {
            role: NameColumn(*encoded[role])
            if role in plain
            else _with_gaps(*encoded[role])
            if role in encoded
            else _numbered(_fetched(database, role))
            for role in named
        }
        cells = {role: _fetched(database, role) for role in others}
        found = {role: _numbers(database, role, kinds[role]) for role in numbers}
    if is_json:
        cells = {role: _decoded(column, title) for role, column in cells.items()}
    return TableRows(sources, names, cells, found)


def _fetched(database: Any, role: str) -> list[Any]:
    """The values of a column, in the order of the rows."""
    return [value for (value,) in database.execute(f"SELECT {role} FROM rows ORDER BY rowid").fetchall()]


def _with_gaps(codes: NDArray[Any], names: Any) -> NameColumn:
    """Encoded names, some of which can be missing values of JSON."""
    missing = np.array([is_missing(name) for name in names.tolist()], dtype=bool)
    if missing.any():
        codes = np.where(np.append(missing, True)[codes], -1, codes)
    return NameColumn(codes, names)


def _numbered(values: list[Any]) -> NameColumn:
    """Names of a type that databases have and NumPy may lack: dates, decimals."""
    number: dict[Any, int] = {}
    codes = [-1 if is_missing(value) else number.setdefault(value, len(number)) for value in values]
    return NameColumn(np.array(codes, dtype=np.int64), object_array(list(number)))


def _numbers(database: Any, role: str, kind: str) -> NumberColumn:
    """The numbers in a column, parsed by Python if DuckDB refuses."""
    text = f"({role} ->> '$')" if kind == "JSON" else role
    found = database.execute(f"SELECT TRY_CAST({text} AS DOUBLE) AS number FROM rows ORDER BY rowid").fetchnumpy()
    numbers = np.ma.filled(found["number"], np.nan)
    others: dict[int, Any] = {}
    rows = np.flatnonzero(np.isnan(numbers))
    if rows.size:
        cells = _fetched(database, role)
        cells = _decoded(cells, "") if kind == "JSON" else cells
        others = {row: cells[row] for row in rows.tolist()}
        numbers[rows] = [as_number(cell) for cell in others.values()]
    return NumberColumn(np.asarray(numbers), others)


def as_number(value: Any) -> float:
    """A cell as a number; NaN if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def say_filled(sources: Sequence[FileTable], roles: Iterable[Mapping[str, str]]) -> None:
    """Report the first file whose folder names fill roles."""
    for source, own in zip(sources, roles, strict=True):
        if say_partitions(source.title, own, source.partitions):
            return


def truth_columns(
    sources: Sequence[FileTable],
    columns: Mapping[str, str] | None = None,
    prefer: Mapping[str, str] | None = None,
) -> list[dict[str, str]]:
    """The columns of a task and its label in each of the files.

    Args:
        sources: the files.
        columns: which column is which.
        prefer: the columns of the votes, which are used for a file that has them.

    Raises:
        ColumnsError: a file has no such column, or several.
    """
    roles = [
        find_columns(
            source.columns,
            preferred(prefer, source.columns) | dict(columns or {}),
            aliases=TRUTH_ALIASES,
            where=source.title,
            choosable=False,
        )
        for source in sources
    ]
    say_filled(sources, roles)
    return roles


def _decoded(texts: Sequence[str | None], title: str) -> list[Any]:
    written = ["null" if text is None else text for text in texts]
    return list(parse_cell(f"[{','.join(written)}]", title))
