"""What an export is on disk: one file, a compressed file, a zip with a file per annotator, or a folder.

Every way of packing comes out as a list of :class:`Part`, each of which opens as bytes. Nothing is ever unpacked to
disk, so names inside an archive lead nowhere, and reading stops where the bytes that really come out exceed a limit,
whatever size the archive claims. UTF-16, which Windows' shell makes of everything that is redirected into a file, comes
out as UTF-8.
"""

from __future__ import annotations

import codecs
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from rarevote.errors import InputError
from rarevote.io.read.streams import compression_of, open_bytes, readable

MOST_BYTES = 64 << 30  # of one part, unpacked: far beyond any export, and an end to an archive made to have none
_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
_TABLE_ENDINGS = (".csv", ".tsv")
_ENDINGS = ", ".join((*_JSON_ENDINGS, *_TABLE_ENDINGS))
_HEAD = 1 << 16  # bytes
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
# What a zip file raises besides: a wrong checksum, a packing that Python does not know, a password.
_NOT_UNZIPPED = (zipfile.BadZipFile, NotImplementedError, RuntimeError)


@contextmanager
def _whole(title: str) -> Iterator[None]:
    """Damage as an :class:`InputError`."""
    try:
        with readable(title):
            yield
    except _NOT_UNZIPPED as error:
        raise InputError(f"{title}: cannot be read (damaged or cut off: {error})") from None


class NotUtf8Error(InputError):
    """The bytes are no UTF-8: the caller may try Windows' encoding before it gives up."""


@dataclass(frozen=True)
class Part:
    """One readable piece of an export.

    Attributes:
        title: how messages call it.
        stem: its name without folder and ending; doccano names its files after the annotators.
        open: gives its bytes from the beginning.
    """

    title: str
    stem: str
    open: Callable[[], IO[bytes]]

    def guarded(self) -> AbstractContextManager[None]:
        """Turns what a damaged stream raises into an :class:`InputError`."""
        return _whole(self.title)

    def kind(self) -> Literal["json", "table", "empty"]:
        """What its first bytes are; a name may say anything."""
        with self.guarded(), self.open() as stream:
            begin = stream.read(_HEAD).removeprefix(b"\xef\xbb\xbf").strip()
        if not begin or begin == b'""':  # the second is a table without columns
            return "empty"
        return "json" if begin[:1] in (b"[", b"{") else "table"


class _Limited(io.RawIOBase):
    """Bytes of an unpacked stream, up to :data:`MOST_BYTES`."""

    def __init__(self, stream: IO[bytes], *behind: zipfile.ZipFile) -> None:
        super().__init__()
        self._stream = stream
        self._behind = behind  # closed with the stream
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._stream.read(len(buffer))
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"unpacks to more than {MOST_BYTES >> 30} GB")
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
            data = self._stream.read(_HEAD)
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


def find_parts(path: Path) -> list[Part]:
    """The parts of an export, in the order of their names.

    Raises:
        InputError: nothing is there, it cannot be opened, or it holds no file that an export could be.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.is_dir():
        return _folder_parts(path)
    try:
        with path.open("rb") as handle:
            magic = handle.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if magic.startswith(b"PK\x03\x04"):
        return _zip_parts(path)
    compression = compression_of(path)
    if compression == "none":
        return [_file_part(path)]

    def opened() -> IO[bytes]:
        with _whole(str(path)):
            return _buffered(open_bytes(path, compression))

    return [Part(str(path), Path(path.stem).stem, opened)]


def one_part(path: Path) -> Part:
    """The only part of an export that is a single file."""
    parts = find_parts(path)
    if len(parts) > 1:
        raise InputError(
            f"{path}: holds {len(parts)} files ({parts[0].stem}, {parts[1].stem}, ...), but this platform exports one: "
            "give that file"
        )
    return parts[0]


def _buffered(stream: IO[bytes], *behind: zipfile.ZipFile) -> IO[bytes]:
    return _as_utf8(io.BufferedReader(_Limited(stream, *behind), 1 << 20))


def _file_part(path: Path) -> Part:
    def opened() -> IO[bytes]:
        try:
            return _as_utf8(path.open("rb"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None

    return Part(str(path), path.stem, opened)


def _folder_parts(path: Path) -> list[Part]:
    records = path / "records.json"  # Argilla's to_disk folder
    if records.is_file():
        return [_file_part(records)]
    for endings in (_JSON_ENDINGS, _TABLE_ENDINGS):
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in endings and file.is_file()]
        if files:
            return [_file_part(file) for file in files]
    raise InputError(f"{path}: a folder without any {_ENDINGS} file")


def _zip_parts(path: Path) -> list[Part]:
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

    return [part(entry) for entry in sorted(members, key=lambda entry: entry.filename)]


def _is_export_file(entry: zipfile.ZipInfo, endings: tuple[str, ...]) -> bool:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    hidden = any(piece.startswith(".") and piece.strip(".") for piece in name.parts) or "__MACOSX" in name.parts
    return not entry.is_dir() and not hidden and name.suffix.lower() in endings
