"""Delimited text: delimiter and quoting are detected, line lengths are limited, and faulty lines are reported.

DuckDB reads the rows. This module does the rest: the dialect, the header, and two things that DuckDB gets
wrong. It silently drops a line that is longer than its buffers if nothing follows, and its messages are
for people who write SQL.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rarevote.errors import InputError
from rarevote.io.read.columns import check_file_columns
from rarevote.io.read.detect import UTF8_MARK, Compression, FileInfo, open_bytes, readable

DELIMITERS = ",\t;|"
MAX_LINE = 2_000_000  # bytes; DuckDB's own limit
_MAX_CELL = 16 << 20  # bytes; texts of a platform can be longer than DuckDB's lines
_PROBE = 1 << 16
_ENDS = re.compile(rb"[\r\n]")
_LINE_END = re.compile(r"\r\n|\r|\n")
_QUOTING = (("'", "'"), ('"', '"'), ('"', "\\"))  # the first is tried only if the text shows it
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Dialect:
    """How cells are separated."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Python's reader of this dialect."""
        # The limit belongs to the process; it is only raised, to the longest line that we accept.
        csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))
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
class Delimited:
    """What the beginning of delimited text shows."""

    dialect: Dialect
    columns: list[str]
    has_header: bool = True
    blank_lines: int = 0  # before the first record: to DuckDB a blank line can be the header


def read_header(
    head: bytes, *, complete: bool, title: str, delimiter: str | None = None, has_header: bool = True
) -> Delimited:
    """Dialect and column names of a text; the columns of a text without a header are named 1, 2, 3 ...

    Args:
        head: its first bytes.
        complete: whether there are no more.
        title: its name in messages.
        delimiter: the delimiter, if it is known.
        has_header: whether the first line that is not blank names the columns.

    Raises:
        InputError: it is empty, not UTF-8 text, its first line is too long or names a column twice, or its first line
            break is unlike the others.
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{title}: UTF-16 text; save it as UTF-8 first (iconv -f utf-16 -t utf-8)")
    first = _ENDS.split(head.removeprefix(UTF8_MARK).lstrip(b"\r\n"), maxsplit=1)[0]
    if not head.removeprefix(UTF8_MARK).strip():
        raise InputError(f"{title}: the file is empty; it needs a header line with task, worker, label")
    if b"\0" in first:
        raise InputError(f"{title}: not a text file with a header line")
    if len(first) > MAX_LINE:
        raise InputError(_too_long(title, 1))
    try:
        text = head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(_not_utf8(title, head[: error.start].count(b"\n") + 1)) from None
    records = text.lstrip("\r\n")
    blank = len(_LINE_END.findall(text[: len(text) - len(records)]))
    dialect, cells = find_dialect(records, complete=complete, delimiter=delimiter)
    names = [name.strip() for name in cells]
    _check_first_line_break(text, dialect, title, "header" if has_header else "first row")
    if not has_header:
        return Delimited(dialect, [str(number) for number in range(1, len(names) + 1)], False, blank)
    if not any(names):
        raise InputError(f"{title}: the first line is blank; it must name the columns")
    check_file_columns(names, title)
    columns = [name or f"column{number}" for number, name in enumerate(names)]
    return Delimited(dialect, columns, blank_lines=blank)


def _check_first_line_break(text: str, dialect: Dialect, title: str, what: str) -> None:
    """Refuse a text whose first line break, in a blank line or in quotes, is not the one that ends its first record.

    DuckDB takes the first line break for the end of every line, and finds no record in such a text.
    """
    records = text.lstrip("\r\n")
    reader = dialect.reader(io.StringIO(records, newline=""))
    with suppress(csv.Error):  # the query finds and explains it
        next(reader, None)
    lines = islice(io.StringIO(records, newline=""), reader.line_num)
    first, last = _LINE_END.search(text), _LINE_END.search(deque(lines, maxlen=1).pop())
    if first and last and first[0] != last[0]:
        raise InputError(
            f"{title}: it mixes line endings: the {what} ends with {_shown_end(last[0])}, and a blank line before it "
            f"or a line break inside it is {_shown_end(first[0])}. Remove that line break"
        )


def _shown_end(end: str) -> str:
    return end.replace("\r", "\\r").replace("\n", "\\n")


# --------------------------------------------------------------------------------------------------------------------
# the dialect


@lru_cache(maxsize=1)  # the platforms and the reader of tables inspect the same text
def find_dialect(text: str, *, complete: bool, delimiter: str | None = None) -> tuple[Dialect, list[str]]:
    """The dialect in which all records of the sample have the same number of cells, and the first record.

    If there is none, the delimiter that gives the most cells in the first line is used.
    """
    line = io.StringIO(text, newline="").readline()

    def cells(mark: str) -> int:
        return len(next(Dialect(mark).reader([line]), []))

    marks = sorted(delimiter or DELIMITERS, key=cells, reverse=True)
    for mark in marks:
        for quote, escape in _QUOTING:
            dialect = Dialect(mark, quote, escape)
            if _has_evidence(text, dialect) and (rows := _records(text, dialect, complete)):
                return dialect, rows[0]
    best = Dialect(marks[0])
    return best, next(best.reader([line]), [])


def header_of(text: str, *, complete: bool) -> tuple[Dialect, list[str]]:
    """The dialect and the names of the columns.

    Raises:
        csv.Error: the first record cannot be read, or there is none.
    """
    records = text.lstrip("\r\n")
    dialect, _ = find_dialect(records, complete=complete)
    first = next(dialect.reader(io.StringIO(records, newline=""), strict=True), None)
    if first is None:
        raise csv.Error("the file is empty")
    return dialect, [name.strip() for name in first]


def _has_evidence(text: str, dialect: Dialect) -> bool:
    """Whether the text shows unusual quoting; otherwise apostrophes and backslashes are ordinary characters."""
    if dialect.quote == "'":
        mark = re.escape(dialect.delimiter)
        opened = len(re.findall(rf"(?:^|{mark})'", text, re.MULTILINE))
        closed = len(re.findall(rf"'(?:{mark}|\r?$)", text, re.MULTILINE))
        lines = len(text.splitlines()) - 1
        return opened >= max(lines, 1) and abs(opened - closed) <= 1
    return dialect.escape == dialect.quote or f"{dialect.escape}{dialect.quote}" in text


def _records(text: str, dialect: Dialect, complete: bool) -> list[list[str]] | None:
    """The records of the sample, or None if they do not match the dialect."""
    rows: list[list[str]] = []
    try:
        for row in dialect.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)  # those before an error count
    except csv.Error as error:
        if complete or "unexpected end" not in str(error):
            return None
    if not complete and len(rows) > 1:
        del rows[-1]  # the sample can end within a record
    return rows if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else None


# --------------------------------------------------------------------------------------------------------------------
# lines


def check_lines(found: FileInfo) -> None:
    """Refuse a file with a line beyond the limit, without reading most of a file that has none.

    Only the last bytes before the limit are searched for the end of a line; if there is none, all bytes before them.
    A compressed file can only be read sequentially.
    """
    with readable(found.title), found.open() as handle:
        begin = _long_line_in_stream(handle) if found.compression != "none" else _long_line_in_file(handle)
    if begin is not None:
        raise InputError(_too_long(found.title, 1 + _count_lines(found, begin)))


def _long_line_in_file(handle: IO[bytes]) -> int | None:
    """The start of the first line beyond the limit."""
    begin = 0
    while True:
        # From the start of a line, find the last line end within the limit; it is usually near the limit.
        for size in (_PROBE, MAX_LINE + 1):
            at = begin + MAX_LINE + 1 - size
            handle.seek(at)
            window = handle.read(size)
            if len(window) < size:
                return None
            last = max(window.rfind(b"\n"), window.rfind(b"\r"))
            if last >= 0:
                break
        else:
            return begin
        begin = at + last + 1


def _long_line_in_stream(handle: IO[bytes]) -> int | None:
    begin = at = 0
    while chunk := handle.read(_PROBE):
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        first = _ENDS.search(chunk)
        if at + (first.start() if first else len(chunk)) - begin > MAX_LINE:
            return begin
        if last >= 0:
            begin = at + last + 1
        at += len(chunk)
    return None


def _count_lines(found: FileInfo, size: int) -> int:
    counted = 0
    with found.open() as handle:
        while size > 0 and (chunk := handle.read(min(size, 1 << 20))):
            counted += chunk.count(b"\n") or chunk.count(b"\r")
            size -= len(chunk)
    return counted


def lines_of_rows(found: FileInfo, table: Delimited, rows: Iterable[int]) -> list[int]:
    """The line on which each of these rows (from 0, without the header) begins; empty if unknown."""
    wanted = set(rows)
    lines: list[int] = []
    with readable(found.title), io.TextIOWrapper(found.open(), encoding="utf-8-sig", newline="") as handle:
        reader = table.dialect.reader(handle)
        number = -1 if table.has_header else 0
        begin = 1
        try:
            for record in reader:
                if record:  # DuckDB also skips blank lines
                    if number in wanted:
                        lines.append(begin)
                        if len(lines) == len(wanted):
                            break
                    number += 1
                begin = reader.line_num + 1
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


def explain(error: Exception, table: Delimited, *, title: str, undecodable: int | None) -> str:
    """DuckDB's error about a file as a message for the user."""
    text = str(error)
    numbered = re.search(r"CSV Error on Line: (\d+)", text)
    where = f"{title}: line {int(numbered[1]):,}" if numbered else title
    if undecodable is not None:
        return _not_utf8(title, undecodable)
    if counts := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", text):
        expected, found = int(counts[1]), int(counts[2])
        line = re.search(r"Original Line: (.{0,500})", text)
        other = _other_delimiter(line[1] if line else "", table.dialect.delimiter, expected)
        split = f"it is split by {_NAMES[other]}" if other else "quote cells that contain the delimiter"
        return (
            f"{where} has {found} cell{'' if found == 1 else 's'}, the header has {expected} split by "
            f"{_NAMES.get(table.dialect.delimiter, repr(table.dialect.delimiter))}: {split}"
        )
    if "unterminated quote" in text:
        return f"{where}: a quote is not closed, or text follows a closing quote"
    if "state machine" in text:
        return f"{title}: it mixes line endings (\\r\\n, \\n), or has a misplaced quote"
    if "Maximum line size" in text:
        return _too_long(title, int(numbered[1]) if numbered else 0)
    return f"{where}: {text.strip().splitlines()[0][:200]}"


def _other_delimiter(line: str, delimiter: str, expected: int) -> str | None:
    return next((mark for mark in DELIMITERS if mark != delimiter and line.count(mark) == expected - 1 > 0), None)


def _too_long(title: str, line: int) -> str:
    which = f"line {line:,}" if line else "a line"
    return (
        f"{title}: {which} is longer than {MAX_LINE:,} bytes: not a table, or a quote is never closed. "
        "Put long texts into a separate file"
    )


def _not_utf8(title: str, line: int) -> str:
    return f"{title}: line {line:,} is not UTF-8 text; convert the file first (iconv -f latin1 -t utf-8)"
