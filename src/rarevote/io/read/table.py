"""A small table from files: truth, answers, a list of items, a result; its columns are known by their roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rarevote.crowd.names import is_missing
from rarevote.errors import InputError, naming
from rarevote.io.json_text import parse_cell
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns, preferred
from rarevote.io.read.encode import Choice, from_json_text, loaded
from rarevote.io.read.partitions import say_partitions
from rarevote.io.read.sources import FileTable, place_of_rows

_SHOWN = 5  # how many rows a message names
_NAMES = ("task", "label")  # roles whose values are names or numbers, never lists or objects


@dataclass(frozen=True)
class TableRows:
    """The rows of files, while these are open.

    Attributes:
        sources: the files.
        columns: the values by role, in the order of the rows; None where JSON has none.
    """

    sources: Sequence[FileTable]
    columns: dict[str, list[Any]]

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.sources[0].title

    @property
    def tasks(self) -> list[Any]:
        """The values of the role "task"."""
        return self.columns["task"]

    def place(self, *rows: int) -> str:
        """Where rows are, in words."""
        return place_of_rows(self.sources, rows[:_SHOWN])

    def refuse_missing(self, what: str, *roles: str) -> None:
        """Refuse rows that lack one of these roles.

        Raises:
            InputError: there are some; the message calls them rows that have no ``what``.
        """
        absent = [
            row
            for row, values in enumerate(zip(*(self.columns[role] for role in roles), strict=True))
            if any(map(is_missing, values))
        ]
        if absent:
            raise InputError(f"{self.title}: {len(absent):,} rows have no {what} ({self.place(*absent)})")

    def refuse_repeated(self, advice: str = "") -> None:
        """Refuse a task that stands there twice.

        Raises:
            InputError: one does.
        """
        seen: set[Any] = set()
        for row, task in enumerate(self.tasks):
            if task in seen:
                raise InputError(f"{self.title}: task {task!r} again ({self.place(row)}){advice}")
            seen.add(task)


def read_table(sources: Sequence[FileTable], roles: Sequence[Mapping[str, str]]) -> TableRows:
    """The rows of files of any format that votes may have, in order.

    Args:
        sources: the files, as :func:`~rarevote.io.read.sources.open_sources` gives them.
        roles: for each of them the column of each role; a role is a plain word.

    Raises:
        InputError: a file cannot be read, or a task or a label is a list or an object.
    """
    names = ", ".join(roles[0])
    with loaded(sources, [*map(Choice, roles)]) as database:
        rows = database.execute(f"SELECT {names} FROM rows ORDER BY rowid").fetchall()
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in roles[0]]
    if sources[0].form == "json":
        columns = [_decoded(column, role, sources[0].title) for column, role in zip(columns, roles[0], strict=True)]
    return TableRows(sources, dict(zip(roles[0], columns, strict=True)))


def say_filled(sources: Sequence[FileTable], roles: Iterable[Mapping[str, str]]) -> None:
    """Say, of the first of the files of which it holds, that the names of its folders fill roles."""
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
        prefer: the same of the votes, which counts for a file that has such a column.

    Raises:
        ColumnsError: one of them has no such column, or several.
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


def _decoded(texts: Sequence[str | None], role: str, title: str) -> list[Any]:
    written = ["null" if text is None else text for text in texts]
    if role not in _NAMES:
        return list(parse_cell(f"[{','.join(written)}]", title))
    with naming(title):
        return from_json_text(written, role)
