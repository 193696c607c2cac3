"""Rows of a platform's CSV or TSV with their line numbers; cells may hold line feeds, lines have a limit.

Python's own reader is used rather than DuckDB's: these files have one row per answer with dozens of columns that are
free text, a wrong row must be named by its line, and what a row means depends on several of its cells.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from rarevote.errors import ColumnsError, InputError
from rarevote.io.platforms.base import ABSENT, as_text, listed
from rarevote.io.platforms.parts import NotUtf8Error, Part

LONGEST_LINE = 16 << 20  # bytes
_DELIMITERS = ",\t;|"


@dataclass(frozen=True)
class PlatformTable:
    """A table whose rows can be walked more than once."""

    part: Part
    encoding: str
    delimiter: str
    header: list[str]

    @property
    def title(self) -> str:
        """How messages call the file."""
        return self.part.title

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """First line and cells of every row that is not empty.

        Raises:
            InputError: a row has another number of cells than the header, or its quotes do not close.
        """
        width = len(self.header)
        with self.part.open() as stream:
            reader = csv.reader(_lines(self.part, stream, self.encoding), delimiter=self.delimiter, strict=True)
            try:
                next(reader)
                line = reader.line_num + 1
                for cells in reader:
                    if any(cells):
                        if len(cells) > width and not any(cells[width:]):
                            cells = cells[:width]
                        if len(cells) != width:
                            raise InputError(
                                f"{self.title}: line {line:,} has {len(cells)} cells, the header has {width}"
                            )
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                raise InputError(
                    f"{self.title}: line {line:,} cannot be read: {error}. A quote within a cell must be doubled; a "
                    "file that was cut off may end within one"
                ) from None

    def find(self, *names: str) -> int | None:
        """Position of the first of these columns that there is."""
        for name in names:
            if name in self.header:
                return self.header.index(name)
        return None

    def need(self, what: str, *names: str, advice: str = "") -> int:
        """Position of the first of these columns; none of them is an error."""
        found = self.find(*names)
        if found is None:
            ending = f". {advice}" if advice else ""
            raise ColumnsError(f"{self.title}: no column {names[0]!r} ({what}); it has {listed(self.header)}{ending}")
        return found


def open_table(part: Part, encoding: str = "utf-8", *, repeated_names: bool = False) -> PlatformTable:
    """Read the header of a table; the delimiter is the one that splits it most.

    Args:
        part: the table.
        encoding: of its text.
        repeated_names: whether two columns may have one name, which is enough to tell what the table is.

    Raises:
        InputError: there is no header line, or it names a column twice.
    """
    # The limit belongs to the process; it is only ever raised, to what one of our lines can hold.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    with part.open() as stream:
        lines = _lines(part, stream, encoding)
        try:
            first = next(lines)
            if "\0" in first:
                raise InputError(f"{part.title}: not a text file")
            delimiter = max(_DELIMITERS, key=first.count)
            rest = iter([first])
            header = next(csv.reader(_chained(rest, lines), delimiter=delimiter, strict=True))
        except StopIteration:
            raise InputError(f"{part.title}: the file is empty") from None
        except csv.Error as error:
            raise InputError(f"{part.title}: the header cannot be read: {error}") from None
    header = [name.strip() for name in header]
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated and not repeated_names:
        raise InputError(
            f"{part.title}: the header names {', '.join(map(repr, repeated))} more than once; rename or delete one"
        )
    return PlatformTable(part, encoding, delimiter, header)


def _chained(first: Iterator[str], rest: Iterator[str]) -> Iterator[str]:
    yield from first
    yield from rest


def _lines(part: Part, stream: IO[bytes], encoding: str) -> Iterator[str]:
    number = 0
    with part.guarded():
        while raw := stream.readline(LONGEST_LINE):
            number += 1
            if len(raw) >= LONGEST_LINE and not raw.endswith(b"\n"):
                raise InputError(f"{part.title}: line {number:,} is longer than {LONGEST_LINE >> 20} MB")
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError:
                raise NotUtf8Error(
                    f"{part.title}: line {number:,} is not {encoding} text; convert the file first "
                    "(for example: iconv -f cp1252 -t utf-8)"
                ) from None
            yield text.removeprefix("\ufeff") if number == 1 else text


class Finder:
    """Values of the columns of a row by name, with or without one of the platform's prefixes."""

    def __init__(self, table: PlatformTable, *prefixes: str) -> None:
        self._table = table
        self._prefixes = prefixes
        self._places: dict[str, int | None] = {}
        self.cells: list[str] = []

    def __call__(self, name: str) -> Any:
        """The value of a column in the row at hand, ABSENT if there is no such column."""
        if name not in self._places:
            self._places[name] = self._table.find(name, *(prefix + name for prefix in self._prefixes))
        place = self._places[name]
        return ABSENT if place is None else self.cells[place]


def choices_in_cell(cell: str, where: str, *, separator: str = "") -> list[str]:
    """The choices that a cell holds: none, one, or several.

    Several are a JSON list, a JSON object of ticks (``{"a": true, "b": false}``), or texts between ``separator``.

    >>> choices_in_cell('["a", "b"]', "line 2"), choices_in_cell(" None ", "line 2")
    (['a', 'b'], ['None'])
    """
    text = cell.strip()
    if not text:
        return []
    if text[0] in "[{":
        try:
            value = json.loads(text)
        except ValueError:
            return [text]  # a label may begin with a bracket
        if isinstance(value, list):
            return [name for item in value if (name := as_text(item, where)) is not None]
        if isinstance(value, dict) and all(isinstance(tick, bool) for tick in value.values()):
            return [name for name, tick in value.items() if tick]
        raise InputError(f"{where} holds structured data, not a choice: {text[:60]}")
    if separator and separator in text:
        return [piece.strip() for piece in text.split(separator) if piece.strip()]
    return [text]
