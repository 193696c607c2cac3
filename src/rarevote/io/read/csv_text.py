"""Delimited text: delimiter and quoting are found by trying them, lines have a limit, wrong lines are named.

DuckDB reads the rows. What it leaves to the caller is here: the dialect, the header, and two things that it would get
wrong. It drops a line that is longer than its buffers without a word if nothing follows, and its messages are meant
for people who write SQL.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rarevote.errors import InputError
from rarevote.io.read.streams import Compression, open_bytes, open_text, readable

DELIMITERS = ",\t;|"
LONGEST_LINE = 2_000_000  # bytes; DuckDB's own limit
_SAMPLE = 1 << 18  # bytes from which the dialect is found
_PROBE = 1 << 16
_ENDS = re.compile(rb"[\r\n]")
_QUOTING = (("'", "'"), ('"', '"'), ('"', "\\"))  # the first is tried only where the text shows it
_NAMES = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


@dataclass(frozen=True)
class Dialect:
    """How cells are told apart."""

    delimiter: str = ","
    quote: str = '"'
    escape: str = '"'

    def reader(self, lines: Iterable[str], *, strict: bool = False) -> Any:
        """Python's reader of this dialect."""
        # The limit belongs to the process; it is only ever raised, to what one of our lines can hold.
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
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
    for mark in marks:
        for quote, escape in _QUOTING:
            dialect = Dialect(mark, quote, escape)
            if _has_evidence(text, dialect) and (rows := _records(text, dialect, complete)):
                return dialect, rows[0]
    best = Dialect(marks[0])
    return best, next(best.reader([line]), [])


def _has_evidence(text: str, dialect: Dialect) -> bool:
    """Whether the text shows unusual quoting, without which an apostrophe is one, and a backslash is one."""
    if dialect.quote == "'":
        mark = re.escape(dialect.delimiter)
        opened = len(re.findall(rf"(?:^|{mark})'", text, re.MULTILINE))
        closed = len(re.findall(rf"'(?:{mark}|\r?$)", text, re.MULTILINE))
        lines = len(text.splitlines()) - 1
        return opened >= max(lines, 1) and abs(opened - closed) <= 1
    return dialect.escape == dialect.quote or f"{dialect.escape}{dialect.quote}" in text


def _records(text: str, dialect: Dialect, complete: bool) -> list[list[str]] | None:
    """The records of the sample, or None if they do not fit the dialect."""
    rows: list[list[str]] = []
    try:
        for row in dialect.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)  # those before an error count
    except csv.Error as error:
        if complete or "unexpected end" not in str(error):
            return None
    if not complete and len(rows) > 1:
        del rows[-1]  # the sample may end within a record
    return rows if rows and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows) else None


# --------------------------------------------------------------------------------------------------------------------
# lines


def check_lines(path: Path, compression: Compression, *, title: str) -> None:
    """Refuse a file with a line beyond the limit, without reading most of a file that has none.

    Probes lie so near to each other that one of them is wholly within any line beyond the limit; only where a probe
    has no line end is the line around it measured. A packed file can only be read from one end to the other.
    """
    with readable(title), open_bytes(path, compression) as handle:
        begin = _long_line_in_stream(handle) if compression != "none" else _long_line_in_file(handle)
    if begin is not None:
        raise InputError(_too_long(title, 1 + _count_lines(path, compression, begin)))


def _long_line_in_file(handle: IO[bytes]) -> int | None:
    """Where the first line beyond the limit begins."""
    at = 0
    while len(probe := _probe(handle, at)) == _PROBE:
        if not _ENDS.search(probe):
            begin = at
            while begin > 0 and at - begin <= LONGEST_LINE:
                before = _probe(handle, max(0, begin - _PROBE))[: min(begin, _PROBE)]
                found = max(before.rfind(b"\n"), before.rfind(b"\r"))
                begin -= len(before) - found - 1
                if found >= 0:
                    break
            end = at + _PROBE
            while (more := _probe(handle, end)) and end - begin <= LONGEST_LINE:
                found_end = _ENDS.search(more)
                end += found_end.start() if found_end else len(more)
                if found_end:
                    break
            if end - begin > LONGEST_LINE:
                return begin
        at += LONGEST_LINE - 2 * _PROBE
    return None


def _long_line_in_stream(handle: IO[bytes]) -> int | None:
    begin = at = 0
    while chunk := handle.read(_PROBE):
        last = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        first = _ENDS.search(chunk)
        if at + (first.start() if first else len(chunk)) - begin > LONGEST_LINE:
            return begin
        if last >= 0:
            begin = at + last + 1
        at += len(chunk)
    return None


def _probe(handle: IO[bytes], at: int) -> bytes:
    handle.seek(at)
    return handle.read(_PROBE)


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
    with readable(title), open_text(path, compression) as handle:
        reader = table.dialect.reader(handle)
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
        return f"{title}: its lines end in different ways (\\r\\n, \\n), or a quote stands where none may"
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
