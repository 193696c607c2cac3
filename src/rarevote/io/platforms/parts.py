"""What an export is on disk: one file, a compressed file, a zip with a file per annotator, or a folder.

Every way of packing comes out as :class:`ExportFiles` with a list of :class:`Part`, each of which opens as bytes.
Nothing is ever unpacked to disk, so names inside an archive lead nowhere. The sizes in a zip's directory are looked at
before anything is unpacked, and reading stops where the bytes that really come out exceed a limit, whatever is claimed.
UTF-16, which Windows' shell makes of everything that is redirected into a file, comes out as UTF-8.

A platform may write a gigabyte of JSON as one list on one line. The list is walked here element by element: a buffer
of a few megabytes slides over the text, and Python's own decoder takes each element from it. Only an element that is
itself huge makes the buffer grow, up to :data:`MAX_RECORD`.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import lzma
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from rarevote.errors import InputError
from rarevote.io.json_text import may_have_halves, speaks_of_digits, too_many_digits, whole_letters
from rarevote.io.platforms.base import NotUtf8Error
from rarevote.io.read.csv_text import Dialect, header_of
from rarevote.io.read.detect import (
    UTF8_MARK,
    ZIP,
    Compression,
    Found,
    begins_json,
    look,
    open_bytes,
    read_head,
    readable,
)
from rarevote.io.zip_sizes import check_members

MAX_BYTES = 64 << 30  # of one part, unpacked: far beyond any export, and an end to an archive made to have none
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_TABLE_ENDINGS = (".csv", ".tsv")
_ENDINGS = ", ".join((*_JSON_ENDINGS, *_TABLE_ENDINGS))
_CHUNK = 1 << 16  # bytes
_FIRST_RECORDS = 5
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# What a zip file raises besides: a wrong checksum, a packing that Python does not know, a password, damaged fields.
_NOT_UNZIPPED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error, lzma.LZMAError)


@contextmanager
def _whole(title: str) -> Iterator[None]:
    """Damage as an :class:`InputError`."""
    try:
        with readable(title):
            yield
    except _NOT_UNZIPPED as error:
        raise InputError(f"{title}: cannot be read (damaged or cut off: {error})") from None


@dataclass(frozen=True)
class Beginning:
    """What an export is known by.

    Attributes:
        records: the first records of JSON.
        header: the columns of a table.
        n_files: how many files there are.
    """

    records: list[Any] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    n_files: int = 1

    @property
    def keys(self) -> set[str]:
        """The keys of the records."""
        return {key for record in self.records if isinstance(record, dict) for key in record}

    @cached_property
    def inner_keys(self) -> set[str]:
        """The keys of the records and of everything in them."""
        found: set[str] = set()
        left = list(self.records)
        while left:
            value = left.pop()
            if isinstance(value, dict):
                found.update(key for key in value if isinstance(key, str))
                left += value.values()
            elif isinstance(value, list):
                left += value
        return found


@dataclass(frozen=True)
class Part:
    """One readable piece of an export.

    Attributes:
        title: how messages call it.
        stem: its name without folder and ending; doccano names its files after the annotators.
        open: gives its bytes from the beginning.
        looked: its first bytes and whether there are no more, where somebody has looked already.
    """

    title: str
    stem: str
    open: Callable[[], IO[bytes]]
    looked: tuple[bytes, bool] | None = None

    def guarded(self) -> AbstractContextManager[None]:
        """Turns what a damaged stream raises into an :class:`InputError`."""
        return _whole(self.title)

    @cached_property
    def head(self) -> tuple[bytes, bool]:
        """Its first bytes, and whether there are no more."""
        if self.looked is not None:
            return self.looked
        with self.guarded(), self.open() as stream:
            return read_head(stream)

    @property
    def kind(self) -> Literal["json", "table", "empty"]:
        """What its first bytes are; a name may say anything."""
        begin = self.head[0].removeprefix(UTF8_MARK).strip()
        if not begin or begin == b'""':  # the second is a table without columns
            return "empty"
        return "json" if begins_json(begin) else "table"

    @property
    def beginning(self) -> tuple[list[Any], list[str]]:
        """The first records of JSON, or the header of a table; both empty if it is neither."""
        for encoding in ("utf-8", "latin-1"):  # the names by which an export is known are the same in all others
            try:
                if self.kind == "json":
                    return first_records(self, encoding, _FIRST_RECORDS), []
                return [], table_head(self, encoding)[1]
            except NotUtf8Error:
                continue
            except InputError:
                break
        return [], []


@dataclass(frozen=True)
class ExportFiles:
    """The files of an export.

    Attributes:
        path: what was given.
        parts: the files, in the order of their names.
        parquet: those of a dataset on the hub, instead of parts.
    """

    path: Path
    parts: tuple[Part, ...]
    parquet: tuple[Path, ...] = ()

    @cached_property
    def beginning(self) -> Beginning:
        """What the export is known by."""
        if self.parquet:
            from rarevote.io.platforms.argilla import first_parquet_records

            return Beginning(first_parquet_records(self.parquet[0], _FIRST_RECORDS))
        for part in self.parts:
            # An annotator who has done nothing has an empty file: the next one tells.
            records, header = part.beginning
            if records or any(header):
                return Beginning(records, header, len(self.parts))
        return Beginning()

    def only(self) -> Part:
        """The only part of an export that is a single file."""
        if not self.parts:
            raise InputError(f"{self.path}: Parquet, which this platform does not export")
        if len(self.parts) > 1:
            first, second, *_ = self.parts
            raise InputError(
                f"{self.path}: holds {len(self.parts)} files ({first.stem}, {second.stem}, ...), but this platform "
                "exports one: give that file"
            )
        return self.parts[0]

    def check_whole(self) -> None:
        """Raise what is wrong with a file, where it is not known because it is damaged or cut off."""
        for part in self.parts:
            if part.kind == "json":
                for number, _ in walk_json(part):
                    if number == _FIRST_RECORDS:
                        return
            if part.kind != "empty":
                return


def table_head(part: Part, encoding: str) -> tuple[Dialect, list[str]]:
    """Dialect and header of a table, from its first bytes.

    Raises:
        InputError: there is no header line.
    """
    head, complete = part.head
    first, newline, _ = head.partition(b"\n")
    if b"\0" in first or not (newline or complete):
        raise InputError(f"{part.title}: not a text file")
    try:
        text = head.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = head[: error.start].count(b"\n") + 1
        raise NotUtf8Error(f"{part.title}: line {line:,}", encoding) from None
    if not text:
        raise InputError(f"{part.title}: the file is empty")
    try:
        return header_of(text, complete=complete)
    except csv.Error as error:
        raise InputError(f"{part.title}: the header cannot be read: {error}") from None


class _Limited(io.RawIOBase):
    """Bytes of an unpacked stream, up to :data:`MAX_BYTES`."""

    def __init__(self, stream: IO[bytes], *behind: zipfile.ZipFile) -> None:
        super().__init__()
        self._stream = stream
        self._behind = behind  # closed with the stream
        self._left = MAX_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"unpacks to more than {MAX_BYTES >> 30} GB")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        for archive in self._behind:
            archive.close()
        super().close()


class _Recoded(io.RawIOBase):
    """The bytes of a text as UTF-8."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        super().__init__()
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._ready:
            data = self._stream.read(_CHUNK)
            self._ready = self._decoder.decode(data, final=not data).encode()
            if not data:
                break
        given, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _as_utf8(stream: io.BufferedReader) -> IO[bytes]:
    encoding = _UTF_16.get(stream.peek(2)[:2])
    return stream if encoding is None else io.BufferedReader(_Recoded(stream, encoding), 1 << 20)


def _buffered(stream: IO[bytes], *behind: zipfile.ZipFile) -> IO[bytes]:
    return _as_utf8(io.BufferedReader(_Limited(stream, *behind), 1 << 20))


def open_export(path: Path, found: Found | None = None) -> ExportFiles:
    """The files of an export.

    Args:
        path: the file or folder.
        found: the file, if somebody has looked at it already.

    Raises:
        InputError: nothing is there, it cannot be opened, or it holds no file that an export could be.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        return _in_folder(path)
    found = found or look(path)
    if found.kind == "parquet":
        return ExportFiles(path, (), (path,))
    if found.head.startswith(ZIP):
        return ExportFiles(path, _zip_parts(path))
    encoding = _UTF_16.get(found.head[:2])
    head = found.head.decode(encoding, "replace").encode() if encoding else found.head
    stem = path.stem if found.compression == "none" else Path(path.stem).stem
    return ExportFiles(path, (_file_part(path, stem, found.compression, (head, found.complete)),))


def _file_part(
    path: Path, stem: str, compression: Compression = "none", looked: tuple[bytes, bool] | None = None
) -> Part:
    def opened() -> IO[bytes]:
        with _whole(str(path)):
            stream = open_bytes(path, compression)
            return _as_utf8(stream) if compression == "none" else _buffered(stream)  # type: ignore[arg-type]

    return Part(str(path), stem, opened, looked)


def _in_folder(path: Path) -> ExportFiles:
    records = path / "records.json"  # Argilla's to_disk folder
    if records.is_file():
        return ExportFiles(path, (_file_part(records, records.stem),))
    # In a clone of the hub's repository they are in a folder of their own.
    if hub := sorted(path.glob("*.parquet")) or sorted(path.glob("data/*.parquet")):
        return ExportFiles(path, (), tuple(hub))
    for endings in (_JSON_ENDINGS, _TABLE_ENDINGS):
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in endings and file.is_file()]
        if files:
            return ExportFiles(path, tuple(_file_part(file, file.stem) for file in files))
    raise InputError(f"{path}: a folder without any {_ENDINGS} file")


def _zip_parts(path: Path) -> tuple[Part, ...]:
    with _whole(str(path)), zipfile.ZipFile(path) as archive:
        everything = archive.infolist()
    members = [entry for entry in everything if _is_export_file(entry, _JSON_ENDINGS)]
    members = members or [entry for entry in everything if _is_export_file(entry, _TABLE_ENDINGS)]
    locked = [entry.filename for entry in members if entry.flag_bits & 1]
    if locked:
        raise InputError(f"{path}: {locked[0]} is encrypted; unpack it first")
    if not members:
        raise InputError(f"{path}: a zip file without any {_ENDINGS} file; export as one of these")
    check_members(members, path.stat().st_size, title=str(path), instead="unpack it, and give what you trust")

    def part(entry: zipfile.ZipInfo) -> Part:
        def opened() -> IO[bytes]:
            with _whole(f"{path}: {entry.filename}"):
                archive = zipfile.ZipFile(path)
                return _buffered(archive.open(entry), archive)

        return Part(f"{path}: {entry.filename}", PurePosixPath(entry.filename).stem, opened)

    return tuple(part(entry) for entry in sorted(members, key=lambda entry: entry.filename))


def _is_export_file(entry: zipfile.ZipInfo, endings: tuple[str, ...]) -> bool:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    hidden = any(piece.startswith(".") and piece.strip(".") for piece in name.parts) or "__MACOSX" in name.parts
    # A member without a name is not asked whether it is a folder: Python looks at the last letter.
    return bool(entry.filename) and not entry.is_dir() and not hidden and name.suffix.lower() in endings


# --------------------------------------------------------------------------------------------------------------------
# JSON records one by one: the elements of a list, or one object after the other (JSON lines)


MAX_RECORD = 128 << 20  # characters
_WALKED = 1 << 20
_SPACE = " \t\r\n"
# A literal or an escape that the end of the buffer cuts in two is reported at most this far before the end.
_MAX_CUT = 16
_LITERALS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


def walk_json(part: Part, encoding: str = "utf-8") -> Iterator[tuple[int, Any]]:
    """Number (from 1) and value of every record of a part.

    Raises:
        InputError: the text is no JSON, or ends too early; the message says at which byte and in which record.
    """
    with part.open() as stream:
        yield from _Walker(part, stream, encoding).records()


def first_records(part: Part, encoding: str, count: int) -> list[Any]:
    """Up to ``count`` records from the first bytes of a part; fewer where they do not hold as many, or break.

    Raises:
        InputError: not even the first one can be read.
    """
    head, complete = part.head
    records: list[Any] = []
    try:
        for _, record in islice(_Walker(part, io.BytesIO(head), encoding).records(), count):
            records.append(record)
    except InputError as error:
        if not records and not complete:  # the first one is longer than that
            return [record for _, record in islice(walk_json(part, encoding), 1)]
        if not records or isinstance(error, NotUtf8Error):
            raise
    return records


class _Walker:
    """The sliding buffer and the place in it."""

    def __init__(self, part: Part, stream: IO[bytes], encoding: str) -> None:
        self._part = part
        self._stream = stream
        self._encoding = encoding
        self._incremental = codecs.getincrementaldecoder(encoding)()
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
        """Let go of what was read and append up to ``size`` bytes."""
        with self._part.guarded():
            data = self._stream.read(size)
        pending = len(self._incremental.getstate()[0])
        try:
            text = self._incremental.decode(data, final=not data)
        except UnicodeDecodeError as error:
            at = self._n_bytes - pending + error.start + 1
            raise NotUtf8Error(f"{self._part.title}: byte {at:,}", self._encoding) from None
        self._n_bytes += len(data)
        self._ended = not data
        self._buffer = self._buffer[self._at :] + text
        self._at = 0

    def _next_mark(self) -> str | None:
        """The next character that is no space, None at the end of the text."""
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
            # Twice as much each time, so that reading a long record again and again stays linear.
            self._more(size)
            size *= 2

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        """Whether the decoder stumbled over the end of the buffer rather than over a fault in the text."""
        if error.msg.startswith("Unterminated string"):
            return True
        if not self._ended:
            return error.pos >= len(self._buffer) - _MAX_CUT
        rest = self._buffer[error.pos :].strip()
        return any(literal.startswith(rest) for literal in _LITERALS)

    # -- what went wrong, and where ----------------------------------------------------------------------------------

    def _byte(self, position: int) -> int:
        pending = len(self._incremental.getstate()[0])
        return self._n_bytes - pending - len(self._buffer[position:].encode(self._encoding)) + 1

    def _broken(self, what: str, position: int, number: int) -> InputError:
        return InputError(
            f"{self._part.title}: broken JSON at byte {self._byte(position):,}, record {number:,}: {what}"
        )

    def _cut(self, number: int) -> InputError:
        return InputError(
            f"{self._part.title}: the JSON ends too early, at byte {self._n_bytes:,} in record {number:,}: "
            "the file is cut off; export or copy it again"
        )
