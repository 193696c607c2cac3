"""Delimited text: delimiter and quoting are found by trying them, lines have a limit, wrong lines are named.

DuckDB reads the rows. What it leaves to the caller is here: the dialect, the header, and two things that it would get
wrong. It drops a line that is longer than its buffers without a word if nothing follows, and its messages are meant
for people who write SQL.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rarevote.errors import InputError
from rarevote.io.streams import Compression, open_bytes, open_text, readable

DELIMITERS = ",\t;|"
LONGEST_LINE = 2_000_000  # bytes; DuckDB's own limit
_SAMPLE = 1 << 18  # bytes from which the dialect is found
_PROBE = 1 << 16
_QUOTING = (('"', '"'), ('"', "\\"), ("'", "'"))
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Dialect:
    """How cells are told apart."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Iterator[list[str]]:
        """Python's reader of this dialect."""
        doubled = self.escape == self.quote
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            doublequote=doubled,
            escapechar=None if doubled else self.escape,
            strict=strict,
        )


@dataclass(frozen=True)
class TextTable:
    """What the beginning of a delimited file tells."""

    dialect: Dialect
    columns: list[str]
    has_header: bool = True


def read_header(
    path: Path, compression: Compression, *, title: str, delimiter: str | None = None, has_header: bool = True
) -> TextTable:
    """Dialect and column names of a file; the columns of a file without a header are named 1, 2, 3 ...

    Raises:
        InputError: the file is empty, no UTF-8 text, its first line is too long or names a column twice.
    """
    with readable(title), open_bytes(path, compression) as handle:
        begin = handle.read(_SAMPLE)
        complete = len(begin) < _SAMPLE
        while not complete and b"\n" not in begin and b"\r" not in begin and len(begin) <= LONGEST_LINE:
            more = handle.read(_SAMPLE)
            begin, complete = begin + more, not more
    return header_of(begin, complete=complete, title=title, delimiter=delimiter, has_header=has_header)


def header_of(
    begin: bytes, *, complete: bool, title: str, delimiter: str | None = None, has_header: bool = True
) -> TextTable:
    """:func:`read_header` for the first bytes of a file; ``complete`` if there are no more."""
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{title}: UTF-16 text; save it as UTF-8 first (iconv -f utf-16 -t utf-8)")
    first = re.split(rb"[\r\n]", begin, maxsplit=1)[0]
    if not begin.strip():
        raise InputError(f"{title}: the file is empty; a header line with task, worker, label is needed")
    if b"\0" in first:
        raise InputError(f"{title}: not a text file with a header line")
    if len(first) >= LONGEST_LINE:
        raise InputError(_too_long(title, 1))
    text = _decoded(begin, title, complete=complete)
    table = _detect(text, complete, delimiter)
    names = [name.strip() for name in table[1]]
    if not has_header:
        return TextTable(table[0], [str(number) for number in range(1, len(names) + 1)], has_header=False)
    if not any(names):
        raise InputError(f"{title}: the first line is blank; it must name the columns")
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise InputError(f"{title}: the header names {', '.join(map(repr, repeated))} more than once")
    return TextTable(table[0], [name or f"column{number}" for number, name in enumerate(names)])


def _decoded(begin: bytes, title: str, *, complete: bool) -> str:
    try:
        return begin.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The sample may end within a character.
        if not complete and error.start >= len(begin) - 4:
            return begin[: error.start].decode("utf-8-sig")
        line = begin[: error.start].count(b"\n") + 1
        raise InputError(_not_utf8(title, line)) from None


# --------------------------------------------------------------------------------------------------------------------
# the dialect


def _detect(text: str, complete: bool, delimiter: str | None) -> tuple[Dialect, list[str]]:
    """The dialect in which every record of the sample has as many cells as the first, and the first record."""
    line = io.StringIO(text, newline="").readline()

    def cells(mark: str) -> int:
        return len(next(Dialect(mark).reader([line]), []))

    marks = sorted(delimiter or DELIMITERS, key=cells, reverse=True)
    tried = [Dialect(mark, quote, escape) for mark in marks for quote, escape in _QUOTING]
    fitting = [(dialect, rows) for dialect in tried if (rows := _records(text, dialect, complete)) is not None]
    if not fitting:
        best = Dialect(marks[0])
        return best, next(best.reader([line]), [])
    dialect, rows = fitting[0]
    quoted = next((one for one in fitting if one[0] == Dialect(dialect.delimiter, "'", "'")), None)
    if quoted is not None and _has_column_in(rows, "'"):
        dialect, rows = quoted
    return dialect, rows[0]


def _records(text: str, dialect: Dialect, complete: bool) -> list[list[str]] | None:
    """The records of the sample, or None if they do not fit the dialect."""
    try:
        rows = [row for row in dialect.reader(io.StringIO(text, newline=""), strict=complete) if row]
    except csv.Error:
        return None
    if not complete and len(rows) > 1:
        del rows[-1]  # the sample may end within a record
    return rows if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else None


def _has_column_in(rows: list[list[str]], quote: str) -> bool:
    """Whether all values of some column stand between these marks: then they are quotes and no apostrophes."""
    return any(
        len(rows) > 1 and all(len(value) > 1 and value[0] == value[-1] == quote for value in column[1:])
        for column in zip(*rows, strict=True)
    )


# --------------------------------------------------------------------------------------------------------------------
# lines


def check_lines(path: Path, compression: Compression, *, title: str) -> None:
    """Refuse a file with a line beyond the limit, without reading most of it.

    Where a whole probe of 64 kB has no line end, the line is followed to its end. A line beyond the limit is longer
    than the distance between two probes, so that none escapes. A compressed file can only be read from one end to the
    other.
    """
    step = LONGEST_LINE - 2 * _PROBE if compression == "none" else _PROBE
    with readable(title), open_bytes(path, compression) as handle:
        at = 0
        while True:
            if compression == "none":
                handle.seek(at)
            probe = handle.read(_PROBE)
            if len(probe) < _PROBE:
                return
            if b"\n" in probe or b"\r" in probe:
                at += step
                continue
            length = _PROBE
            while probe and b"\n" not in probe and b"\r" not in probe:
                probe = handle.read(_PROBE)
                length += len(probe)
                if length > LONGEST_LINE:
                    raise InputError(_too_long(title, 1 + _count_lines(path, compression, at)))
            at += length if compression != "none" else step


def _count_lines(path: Path, compression: Compression, size: int) -> int:
    with open_bytes(path, compression) as handle:
        counted = 0
        while size > 0 and (chunk := handle.read(min(size, 1 << 20))):
            counted += chunk.count(b"\n") or chunk.count(b"\r")
            size -= len(chunk)
    return counted


def lines_of_rows(
    path: Path, compression: Compression, table: TextTable, rows: Iterable[int], *, title: str
) -> list[int]:
    """The line on which each of these rows (from 0, header not counted) begins; empty where it cannot be told."""
    wanted = set(rows)
    lines: list[int] = []
    # The limit belongs to the process; it is only ever raised, to what one of our lines can hold.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    with readable(title), open_text(path, compression) as handle:
        reader = csv.reader(handle) if False else table.dialect.reader(handle)
        number = -1 if table.has_header else 0
        begin = 1
        try:
            for record in reader:
                if record:  # DuckDB skips blank lines too
                    if number in wanted:
                        lines.append(begin)
                        if len(lines) == len(wanted):
                            break
                    number += 1
                begin = reader.line_num + 1  # type: ignore[attr-defined]
        except (csv.Error, UnicodeDecodeError):
            return []
    return lines


def undecodable_line(path: Path, compression: Compression) -> int | None:
    """The first line that is not UTF-8."""
    with open_bytes(path, compression) as handle:
        for number, line in enumerate(handle, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    return None


# --------------------------------------------------------------------------------------------------------------------
# messages


def explain(error: Exception, table: TextTable, *, title: str, undecodable: int | None) -> str:
    """DuckDB's complaint about a file in words for the person who has it."""
    text = str(error)
    numbered = re.search(r"CSV Error on Line: (\d+)", text)
    where = f"{title}: line {int(numbered[1]):,}" if numbered else title
    if undecodable is not None:
        return _not_utf8(title, undecodable)
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text):
        expected, found = int(counts[1]), int(counts[2])
        line = re.search(r"Original Line: (.{0,500})", text)
        other = _other_delimiter(line[1] if line else "", table.dialect.delimiter, expected)
        split = f"it is split by {_NAMES[other]}" if other else "a cell that holds the delimiter needs quotes"
        return (
            f"{where} has {found} cell{'' if found == 1 else 's'}, the header has {expected} split by "
            f"{_NAMES.get(table.dialect.delimiter, repr(table.dialect.delimiter))}: {split}"
        )
    if "unterminated quote" in text:
        return f"{where}: a quote is opened and not closed, or text follows a closing quote"
    if "state machine" in text:
        return f"{title}: lines end in different ways (\\r\\n, \\n, \\r), or a quote stands where none may; mend the file"
    if "Maximum line size" in text:
        return _too_long(title, int(numbered[1]) if numbered else 0)
    return f"{where}: {text.strip().splitlines()[0][:200]}"


def _other_delimiter(line: str, delimiter: str, expected: int) -> str | None:
    return next((mark for mark in DELIMITERS if mark != delimiter and line.count(mark) == expected - 1 > 0), None)


def _too_long(title: str, line: int) -> str:
    which = f"line {line:,}" if line else "a line"
    return (
        f"{title}: {which} is longer than {LONGEST_LINE:,} bytes: this is no table, or a quote is never closed. "
        "Long texts belong into a file of their own"
    )


def _not_utf8(title: str, line: int) -> str:
    return f"{title}: line {line:,} is not UTF-8 text; convert the file first (iconv -f latin1 -t utf-8)"
