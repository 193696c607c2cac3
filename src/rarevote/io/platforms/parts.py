"""What an export is on disk: one file, a compressed file, a zip with a file per annotator, or a folder.

Every way of packing comes out as :class:`ExportFiles` with a list of :class:`Part`, each of which opens as bytes.
Nothing is ever unpacked to disk, so names inside an archive lead nowhere, and reading stops where the bytes that really
come out exceed a limit, whatever size the archive claims. UTF-16, which Windows' shell makes of everything that is
redirected into a file, comes out as UTF-8.
"""

from __future__ import annotations

import codecs
import io
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from rarevote.errors import InputError
from rarevote.io.platforms.base import NotUtf8Error
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

MAX_BYTES = 64 << 30  # of one part, unpacked: far beyond any export, and an end to an archive made to have none
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_TABLE_ENDINGS = (".csv", ".tsv")
_ENDINGS = ", ".join((*_JSON_ENDINGS, *_TABLE_ENDINGS))
_CHUNK = 1 << 16  # bytes
_FIRST_RECORDS = 5
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# What a zip file raises besides: a wrong checksum, a packing that Python does not know, a password, damaged fields.
_NOT_UNZIPPED = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, struct.error)


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
        from rarevote.io.platforms.json_records import first_records
        from rarevote.io.platforms.table_records import open_table

        for encoding in ("utf-8", "latin-1"):  # the names by which an export is known are the same in all others
            try:
                if self.kind == "json":
                    return first_records(self, encoding, _FIRST_RECORDS), []
                return [], open_table(self, encoding, may_repeat=True).header
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
            from rarevote.io.platforms.argilla.records import first_parquet_records

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
        from rarevote.io.platforms.json_records import walk_json

        for part in self.parts:
            if part.kind == "json":
                for number, _ in walk_json(part):
                    if number == _FIRST_RECORDS:
                        return
            if part.kind != "empty":
                return


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
