"""Rows of a platform's CSV or TSV with their line numbers; cells can contain line feeds, line lengths are limited.

Python's own reader is used rather than DuckDB's: these files have one row per answer with dozens of columns that are
free text, a faulty row must be reported by its line, and the meaning of a row depends on several cells.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from rarevote.errors import ColumnsError, InputError
from rarevote.io.json_text import parse_json
from rarevote.io.platforms.base import ABSENT, NotUtf8Error, choices_in_value, shown_names
from rarevote.io.platforms.export_files import Part, table_head
from rarevote.io.read.columns import repeated_names
from rarevote.io.read.csv_text import Dialect

MAX_LINE = 16 << 20  # bytes
_BETWEEN_INPUTS = " | "
_COLUMNS_OF_HEADER = 2  # a single cell can be equal to the name of its column by chance


@dataclass(frozen=True)
class PlatformTable:
    """A table whose rows can be read more than once.

    Attributes:
        part: the file.
        dialect: how cells are separated.
        header: names of the columns.
        needed: columns that every row must reach; the cells after them can be missing.
    """

    part: Part
    dialect: Dialect
    header: list[str]
    needed: set[str] = field(default_factory=set)

    @property
    def title(self) -> str:
        """The name of the file in messages."""
        return self.part.title

    def rows(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Location (file and first line) and cells by column of every row that is not empty.

        A row can lack cells at its end, which are then empty: MTurk's header ends in columns for the requester to fill
        in, and its rows do not.

        Raises:
            InputError: a row has more cells than the header, or fewer than are needed, or its quotes do not close, or
                it is the header again.
        """
        width, least = len(self.header), max(map(self.header.index, self.needed), default=0) + 1
        with self.part.open() as stream:
            reader = self.dialect.reader(_lines(self.part, stream), strict=True)
            line = 1
            try:
                next(cells for cells in reader if cells)
                line = reader.line_num + 1
                for cells in reader:
                    if any(cells):
                        where = f"{self.title}: line {line:,}"
                        if len(cells) < least or any(cells[width:]):
                            raise InputError(f"{where} has {len(cells)} cells, the header has {width}")
                        cells += [""] * (width - len(cells))
                        if self._is_header(cells):
                            raise InputError(f"{self.title}: the header is repeated in line {line:,}: remove it there")
                        yield where, dict(zip(self.header, cells, strict=False))
                    line = reader.line_num + 1
            except csv.Error as error:
                raise InputError(
                    f"{self.title}: line {line:,} cannot be read: {error}. A quote within a cell must be doubled; an "
                    "incomplete file can end inside one"
                ) from None

    def _is_header(self, cells: Sequence[str]) -> bool:
        """Whether a row repeats the header, as in concatenated files."""
        # The first cell can also have the byte-order mark of its file, and then quotes.
        if self.header[0] not in cells[0] or len(self.header) < _COLUMNS_OF_HEADER:
            return False
        return [cell.strip() for cell in cells[1 : len(self.header)]] == self.header[1:]

    def find(self, *names: str) -> str | None:
        """The first of these columns that exists."""
        return next((name for name in names if name in self.header), None)

    def need(self, what: str, *names: str, advice: str = "") -> str:
        """The first of these columns, in which every row must have a cell; raises an error if there is none."""
        found = self.find(*names)
        if found is None:
            ending = f". {advice}" if advice else ""
            raise ColumnsError(
                f"{self.title}: no column {names[0]!r} ({what}); it has {shown_names(self.header)}{ending}"
            )
        self.needed.add(found)
        return found

    def beginning_with(self, prefix: str) -> list[str]:
        """The columns whose names have this prefix."""
        return [name for name in self.header if name.startswith(prefix)]


def open_table(part: Part) -> PlatformTable:
    """A table with its dialect and header, from its first bytes.

    Raises:
        InputError: there is no header line, or it names a column twice.
    """
    dialect, header = table_head(part)
    if repeated := repeated_names(header):
        raise InputError(f"{part.title}: the header names {repeated} more than once; rename or delete one")
    return PlatformTable(part, dialect, header)


def _lines(part: Part, stream: IO[bytes]) -> Iterator[str]:
    number = 0
    with part.guarded():
        while raw := stream.readline(MAX_LINE):
            number += 1
            if len(raw) >= MAX_LINE and not raw.endswith(b"\n"):
                raise InputError(f"{part.title}: line {number:,} is longer than {MAX_LINE >> 20} MB")
            try:
                text = raw.decode(part.encoding)
            except UnicodeDecodeError:
                raise NotUtf8Error(f"{part.title}: line {number:,}", part.encoding) from None
            yield text.removeprefix("\ufeff") if number == 1 else text


def text_in(row: Mapping[str, str], *names: str) -> str:
    """The stripped cell of the first of these columns that exists; "" if there is none."""
    for name in names:  # without next(): this is called several times per row
        if name in row:
            return row[name].strip()
    return ""


def task_in(row: Mapping[str, str], ids: Sequence[str], inputs: Sequence[str]) -> str:
    """The id of a row's task, or else its inputs together; "" if it has neither."""
    task = text_in(row, *ids) or _BETWEEN_INPUTS.join(row[name].strip() for name in inputs)
    return task if task.strip(_BETWEEN_INPUTS) else ""


def finder(row: Mapping[str, str], *prefixes: str) -> Callable[[str], Any]:
    """A function that finds cells of a row by name, with or without the platform's prefixes; else ABSENT."""

    def find(name: str) -> Any:
        if name in row:
            return row[name]
        return next((row[prefix + name] for prefix in prefixes if prefix + name in row), ABSENT)

    return find


def value_in_cell(cell: str) -> Any:
    """The value of a cell: a JSON list or object, or the text itself.

    >>> value_in_cell('{"a": true}'), value_in_cell("[x] marks the spot")
    ({'a': True}, '[x] marks the spot')
    """
    text = cell.strip()
    if text[:1] not in ("[", "{"):
        return text
    try:
        return parse_json(text)
    except ValueError:
        return text  # a label can begin with a bracket


def json_in_cell(cell: str) -> Any:
    """The value of a cell as of :func:`value_in_cell`, for an object of ticks the list of the ticked options.

    >>> json_in_cell('{"a": true, "b": false}'), json_in_cell("[x] marks the spot")
    (['a'], '[x] marks the spot')
    """
    value = value_in_cell(cell)
    if isinstance(value, dict) and all(isinstance(tick, bool) for tick in value.values()):
        return [name for name, tick in value.items() if tick]
    return value


def choices_in_cell(cell: str, where: str, *, separator: str = "") -> list[str]:
    """The choices in a cell: none, one, or several.

    Several are a JSON list, a JSON object of ticks (``{"a": true, "b": false}``), or texts separated by ``separator``.

    >>> choices_in_cell('["a", "b"]', "line 2"), choices_in_cell(" None ", "line 2")
    (['a', 'b'], ['None'])
    """
    value = json_in_cell(cell)
    if isinstance(value, list):
        return choices_in_value(value, where)
    if not isinstance(value, str):
        raise InputError(f"{where} contains structured data, not a choice: {cell.strip()[:60]}")
    text = value
    if not text:
        return []
    if separator and separator in text:
        return [piece.strip() for piece in text.split(separator) if piece.strip()]
    return [text]
