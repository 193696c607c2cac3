"""A stream of JSON records: the elements of a list, or one object after the other (JSON lines).

A platform can write a gigabyte of JSON as one list on one line. The list is read element by element: a buffer
of a few megabytes slides over the text, and Python's decoder parses each element from it. Only an element that is
itself huge makes the buffer grow, up to :data:`MAX_RECORD`.
"""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Iterator
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from rarevote.errors import InputError
from rarevote.io.json_text import may_have_halves, speaks_of_digits, too_many_digits, whole_letters
from rarevote.io.platforms.base import NotUtf8Error

if TYPE_CHECKING:
    from rarevote.io.platforms.export_files import Part

MAX_RECORD = 128 << 20  # characters
_WALKED = 1 << 20
_SPACE = " \t\r\n"
# A literal or an escape that is cut by the end of the buffer is reported at most this far before the end.
_MAX_CUT = 16
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


def walk_json(part: Part) -> Iterator[tuple[int, Any]]:
    """Number (from 1) and value of every record of a part.

    Raises:
        InputError: the text is not JSON, or ends too early; the message says at which byte and in which record.
    """
    with part.open() as stream:
        yield from _Walker(part, stream).records()


def walk_objects(part: Part, what: str, noun: str = "record") -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Number, location and keys of every record of a part.

    Args:
        part: the file.
        what: what a record should be, for the message that one is not an object.
        noun: the name of a record in messages.

    Raises:
        InputError: as for :func:`walk_json`, or a record is not an object.
    """
    for number, record in walk_json(part):
        where = f"{part.title}: {noun} {number:,}"
        if not isinstance(record, dict):
            raise InputError(f"{where} is a {type(record).__name__}, not {what}")
        yield number, where, record


def first_records(part: Part, count: int) -> list[Any]:
    """Up to ``count`` records from the first bytes of a part; fewer if they contain fewer, or are damaged.

    Raises:
        InputError: not even the first one can be read.
    """
    head, complete = part.head
    records: list[Any] = []
    try:
        for _, record in islice(_Walker(part, io.BytesIO(head)).records(), count):
            records.append(record)
    except InputError as error:
        if not records and not complete:  # the first one is longer than that
            return [record for _, record in islice(walk_json(part), 1)]
        if not records or isinstance(error, NotUtf8Error):
            raise
    return records


class _Walker:
    """The sliding buffer and the position in it."""

    def __init__(self, part: Part, stream: IO[bytes]) -> None:
        self._part = part
        self._stream = stream
        self._incremental = codecs.getincrementaldecoder(part.encoding)()
        self._json = json.JSONDecoder(strict=False)
        self._buffer = ""
        self._at = 0
        self._n_bytes = 0
        self._ended = False

    # -- the grammar around the records ------------------------------------------------------------------------------

    def records(self) -> Iterator[tuple[int, Any]]:
        while not self._buffer and not self._ended:
            self._more(_WALKED)
        self._buffer = self._buffer.removeprefix("\ufeff")
        mark = self._next_mark()
        if mark is None:
            raise InputError(f"{self._part.title}: the file is empty")
        if mark not in "[{":
            raise InputError(f"{self._part.title}: not JSON: it begins with {self._buffer[self._at :][:20]!r}")
        yield from self._list() if mark == "[" else self._lines()

    def _lines(self) -> Iterator[tuple[int, Any]]:
        number = 0
        while self._next_mark() is not None:
            number += 1
            yield number, self._value(number)

    def _list(self) -> Iterator[tuple[int, Any]]:
        self._at += 1
        number = 0
        while True:
            mark = self._next_mark()
            if mark == "]" and not number:
                break
            if number:
                if mark == "]":
                    break
                if mark is not None and mark != ",":
                    raise self._broken("a comma or ] is missing", self._at, number)
                self._at += 1
                mark = self._next_mark()
            if mark is None:
                raise self._cut(number)
            number += 1
            yield number, self._value(number)
        self._at += 1
        if self._next_mark() is not None:
            raise self._broken("there is text after the end of the list", self._at, number)

    # -- the text ----------------------------------------------------------------------------------------------------

    def _more(self, size: int) -> None:
        """Drop what was read and append up to ``size`` bytes."""
        with self._part.guarded():
            data = self._stream.read(size)
        pending = len(self._incremental.getstate()[0])
        try:
            text = self._incremental.decode(data, final=not data)
        except UnicodeDecodeError as error:
            at = self._n_bytes - pending + error.start + 1
            raise NotUtf8Error(f"{self._part.title}: byte {at:,}", self._part.encoding) from None
        self._n_bytes += len(data)
        self._ended = not data
        self._buffer = self._buffer[self._at :] + text
        self._at = 0

    def _next_mark(self) -> str | None:
        """The next character that is not a space, None at the end of the text."""
        while True:
            while self._at < len(self._buffer):
                mark = self._buffer[self._at]
                if mark not in _SPACE:
                    return mark
                self._at += 1
            if self._ended:
                return None
            self._more(_WALKED)

    def _value(self, number: int) -> Any:
        size = _WALKED
        while True:
            try:
                begin = self._at
                value, self._at = self._json.raw_decode(self._buffer, begin)
                return whole_letters(value) if may_have_halves(self._buffer, begin, self._at) else value
            except json.JSONDecodeError as error:
                if not self._may_be_cut(error):
                    raise self._broken(error.msg[0].lower() + error.msg[1:], error.pos, number) from None
            except RecursionError:
                raise self._broken("it is nested too deeply", self._at, number) from None
            except ValueError as error:
                reason = too_many_digits() if speaks_of_digits(error) else str(error)
                raise self._broken(reason, self._at, number) from None
            if self._ended:
                raise self._cut(number)
            if len(self._buffer) - self._at > MAX_RECORD:
                raise self._broken(
                    f"it is longer than {MAX_RECORD >> 20} MB, or a text in it never ends", self._at, number
                )
            # Twice as much each time, so that repeated parsing of a long record stays linear.
            self._more(size)
            size *= 2

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the decoder failed at the end of the buffer rather than at a fault in the text."""
        if error.msg.startswith("Unterminated string"):
            return True
        if not self._ended:
            return error.pos >= len(self._buffer) - _MAX_CUT
        rest = self._buffer[error.pos :].strip()
        return any(literal.startswith(rest) for literal in _LITERALS)

    # -- errors and their locations ----------------------------------------------------------------------------------

    def _byte(self, position: int) -> int:
        pending = len(self._incremental.getstate()[0])
        return self._n_bytes - pending - len(self._buffer[position:].encode(self._part.encoding)) + 1

    def _broken(self, what: str, position: int, number: int) -> InputError:
        return InputError(
            f"{self._part.title}: broken JSON at byte {self._byte(position):,}, record {number:,}: {what}"
        )

    def _cut(self, number: int) -> InputError:
        return InputError(
            f"{self._part.title}: the JSON ends too early, at byte {self._n_bytes:,} in record {number:,}: "
            "the file is cut off; export or copy it again"
        )
