"""Detection of a file's format and compression from its first bytes; and opening of its bytes.

A file is inspected once (:func:`inspect_file`) and its :class:`FileInfo` is passed on: to the platforms, which may
recognise their export, to the reader of tables, to the checks.
"""

from __future__ import annotations

import gzip
import io
import re
import shutil
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

from rarevote.errors import InputError
from rarevote.io.write.atomic import temporary_folder_full

Compression = Literal["none", "gzip", "zstd"]

FORMATS: dict[str, tuple[str, ...]] = {
    "csv": (".csv", ".txt", ".dat"),
    "tsv": (".tsv", ".tab"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "xlsx": (".xlsx", ".xlsm"),
}
UTF8_MARK = b"\xef\xbb\xbf"
ZIP = b"PK\x03\x04"
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", ZIP: "xlsx", b"\xff\xff\xff\xff": "arrow"}
_PACKED: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_PACKED_ENDINGS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_OTHER_KINDS = {
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image (PNG)",
    b"\xff\xd8\xff": "an image (JPEG)",
    b"GIF8": "an image (GIF)",
    b"II*\0": "an image (TIFF)",
    b"MM\0*": "an image (TIFF)",
    b"\xd0\xcf\x11\xe0": "an old Office document (.doc, .xls, .ppt); save it as .xlsx or .csv",
    b"{\\rtf": "a text document (RTF)",
    b"SQLite format 3\0": "an SQLite database; write its table to a .csv file",
    b"\x93NUMPY": "a NumPy array",
    b"\x7fELF": "a program",
}
_OFFICE_MEMBERS = {
    b"word/": "a Word document",
    b"ppt/": "a PowerPoint document",
    b"application/vnd.oasis.opendocument.text": "an OpenDocument text",
    b"application/vnd.oasis.opendocument.spreadsheet": "an OpenDocument spreadsheet; save it as .xlsx or .csv",
}
_UNREAD = {".xls", ".xlsb", ".ods", ".zip", ".7z", ".tar", ".tgz"}
_UNREAD_PACKINGS = {".xz", ".bz2", ".lzma", ".lz4", ".br", ".z"}
_OFFICE_ENDINGS = {".docx": "a Word document", ".pptx": "a PowerPoint document"}
_OFFICE_HEAD = 1 << 13  # bytes that contain the names of a document's first parts
_HTML = re.compile(rb"(?i)\s*<(!doctype\s+html|html[\s>])")
_HEAD = 1 << 18  # bytes to detect format and dialect
_MAX_HEAD = 1 << 21  # if the first line is longer than that
_PART_OF_LETTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")
# Small, because a few bytes can decompress to very many.
_PACKED_CHUNK = 1 << 12


_STANDARD_INPUT = "-"
# A shell's names for standard input and for <(command).
_STREAM = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/[0-9]+")
# At least two letters: C:/ is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def refuse_address(path: str | Path, instead: str) -> None:
    """Refuse an address if only a local file is possible.

    Args:
        path: the input; a path has lost one of the two slashes.
        instead: a sentence on what to do instead.

    Raises:
        InputError: it is an address.
    """
    found = _ADDRESS.match(str(path))
    if found:
        raise InputError(f"{found[1]}://{found[2]}: an address, not a local file; {instead}")


@dataclass(frozen=True)
class FileInfo:
    """What the first bytes of a file show.

    Attributes:
        path: its path.
        title: its name in messages.
        compression: how it is compressed.
        kind: one of :data:`FORMATS`, from its first bytes, else from its name, else "json" or "csv".
        head: its first bytes, decompressed, at least the first line if that has at most two megabytes.
        complete: whether there are no more.
    """

    path: Path
    title: str
    compression: Compression
    kind: str
    head: bytes
    complete: bool

    @property
    def is_archive(self) -> bool:
        """Whether it is a zip file, but not a spreadsheet."""
        office = any(part in self.head[:_OFFICE_HEAD] for part in (b"[Content_Types].xml", b"xl/", b"_rels/"))
        return self.head.startswith(ZIP) and not office and format_of_name(self.path) != "xlsx"

    def open(self) -> IO[bytes]:
        """The decompressed bytes from the beginning."""
        return open_bytes(self.path, self.compression)

    def last_bytes(self, size: int) -> bytes:
        """Up to ``size`` bytes from the end."""
        with readable(self.title), self.open() as handle:
            if self.compression == "none":
                handle.seek(max(0, handle.seek(0, io.SEEK_END) - size))
                return handle.read()
            tail = b""
            while chunk := handle.read(1 << 20):
                tail = (tail + chunk)[-size:]
            return tail


def inspect_file(path: Path, title: str | None = None) -> FileInfo:
    """Open a file, read its beginning, and detect its format.

    Raises:
        InputError: the file cannot be opened, is damaged, or is not compressed despite its name.
    """
    title = title or str(path)
    refuse_endless(path, title)
    with readable(title), path.open("rb") as handle:
        magic = handle.read(4)
        compression: Compression = next(
            (packing for begin, packing in _PACKED.items() if magic.startswith(begin)), "none"
        )
        named = _PACKED_ENDINGS.get(path.suffix.lower())
        if named is not None and compression != named:
            raise InputError(f"{path}: cannot be read: not a {named} file, despite its name")
        handle.seek(0)
        head, complete = read_head(_unpacked(handle, compression))
    _refuse_other_kinds(path, title, head)
    return FileInfo(path, title, compression, _kind(path, head), head, complete)


def _refuse_other_kinds(path: Path, title: str, head: bytes) -> None:
    """Refuse a known kind of file that is neither a table nor an export."""
    kind = next((kind for begin, kind in _OTHER_KINDS.items() if head.startswith(begin)), None)
    if head.startswith(ZIP):
        kind = next((kind for member, kind in _OFFICE_MEMBERS.items() if member in head[:_OFFICE_HEAD]), None)
        kind = kind or _OFFICE_ENDINGS.get(path.suffix.lower())
    elif head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        kind = "an image (WebP)"
    elif _HTML.match(head):
        kind = "a web page (HTML)"
    if kind is not None:
        raise InputError(
            f"{title}: this is {kind}, not votes; use a table (.csv, .json, .parquet, .xlsx ...) or a platform's export"
        )


def read_head(stream: IO[bytes]) -> tuple[bytes, bool]:
    """The first bytes of a stream, and whether there are no more; they do not end within a character."""
    head = stream.read(_HEAD)
    complete = len(head) < _HEAD
    while not complete and b"\n" not in head and b"\r" not in head and len(head) < _MAX_HEAD:
        more = stream.read(_HEAD)
        head, complete = head + more, not more
    return (head if complete else _PART_OF_LETTER.sub(b"", head)), complete


def _kind(path: Path, head: bytes) -> str:
    magic = next((kind for begin, kind in _MAGIC.items() if head.startswith(begin)), None)
    return magic or format_of_name(path) or ("json" if begins_json(head) else "csv")


def begins_json(head: bytes) -> bool:
    """Whether a text begins like JSON with records."""
    return head.removeprefix(UTF8_MARK).lstrip()[:1] in (b"[", b"{")


def format_of_name(path: Path) -> str | None:
    """The format from a file's ending, without opening the file."""
    name = Path(path.stem) if path.suffix.lower() in _PACKED_ENDINGS else path
    return next((kind for kind, endings in FORMATS.items() if name.suffix.lower() in endings), None)


def is_unread_table(path: Path) -> bool:
    """Whether a file is named like a table in a format or a packing that is not read.

    >>> [is_unread_table(Path(name)) for name in ("votes.csv.xz", "votes.ods", "votes.zip", "votes.csv.gz", "notes.md")]
    [True, True, True, False, False]
    """
    packed = {ending.lower() for ending in path.suffixes[-2:]} if len(path.suffixes) > 1 else set()
    known = {ending for endings in FORMATS.values() for ending in endings}
    return path.suffix.lower() in _UNREAD or (path.suffix.lower() in _UNREAD_PACKINGS and bool(packed & known))


def name_without_endings(path: Path) -> str:
    """The name of a file without the endings of its format and compression."""
    name = Path(path.stem) if path.suffix.lower() in _PACKED_ENDINGS else Path(path.name)
    known = {ending for endings in FORMATS.values() for ending in endings}
    return name.stem if name.suffix.lower() in known else name.name


# --------------------------------------------------------------------------------------------------------------------
# bytes


def open_bytes(path: Path, compression: Compression) -> IO[bytes]:
    """The decompressed bytes from the beginning."""
    return path.open("rb") if compression == "none" else _unpacked(path, compression)


def _unpacked(packed: Any, compression: Compression) -> IO[bytes]:
    """The bytes of a path or an open file."""
    if compression == "gzip":
        return gzip.open(packed, "rb")  # type: ignore[no-any-return]
    if compression == "none":
        return packed  # type: ignore[no-any-return]
    if sys.version_info >= (3, 14):
        return import_module("compression.zstd").open(packed, "rb")  # type: ignore[no-any-return]
    handle = packed.open("rb") if isinstance(packed, Path) else packed
    return unpacked_zstd(handle)


@contextmanager
def readable(title: str) -> Iterator[None]:
    """Turn errors of a damaged or unreadable file into an :class:`InputError` that names it."""
    try:
        yield
    except _damages() as error:
        # Reading needs no disk space, but a copy made meanwhile does.
        if full := temporary_folder_full(error):
            raise full from None
        reason = getattr(error, "strerror", None) or f"damaged or incomplete: {error}"
        raise InputError(f"{title}: cannot be read ({reason})") from None


def is_stream(given: str | Path) -> bool:
    """Whether an input is a stream from a shell, which can be read once: standard input, or ``<(command)``.

    >>> [is_stream(given) for given in ("-", "/dev/stdin", "/dev/fd/63", "/dev/null", "fd/63")]
    [True, True, True, False, False]
    """
    return str(given) == _STANDARD_INPUT or _STREAM.fullmatch(str(given)) is not None


def keep_stream(given: str, title: str, folder: Path) -> Path:
    """A stream as a file in ``folder``: it is read more than once, and can be larger than memory."""
    path = folder / f"stream-{len(list(folder.iterdir()))}"
    with readable(title), _open_stream(given) as stream, path.open("wb") as handle:
        shutil.copyfileobj(stream, handle, 1 << 20)
    return path


def _open_stream(given: str) -> AbstractContextManager[IO[bytes]]:
    # Standard input must not be closed here.
    return nullcontext(sys.stdin.buffer) if given in (_STANDARD_INPUT, "/dev/stdin") else Path(given).open("rb")


def refuse_endless(path: Path, title: str | None = None) -> None:
    """Refuse a named pipe, which blocks a reader until something is written to it, and a device.

    Raises:
        InputError: it is a pipe or a device.
    """
    if is_stream(path):
        return
    with suppress(OSError):
        kind = path.stat().st_mode
        if stat.S_ISFIFO(kind):
            raise InputError(
                f"{title or path}: is a pipe, which can be read only once and may never end; read it as standard "
                f"input: - < {path}"
            )
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) or stat.S_ISSOCK(kind):
            raise InputError(f"{title or path}: is a device or a socket, not a file")


# --------------------------------------------------------------------------------------------------------------------
# Zstandard is part of Python since 3.14; before that, the package zstandard provides it.


def _damages() -> tuple[type[Exception], ...]:
    # Only a file compressed with Zstandard loads the library and can raise its error.
    loaded = [sys.modules.get(name) for name in ("compression.zstd", "zstandard")]
    return (OSError, EOFError, zlib.error, *(module.ZstdError for module in loaded if module is not None))


def unpacked_zstd(handle: IO[bytes]) -> IO[bytes]:
    """The bytes of a file compressed with Zstandard."""
    return stream_of(_zstd_chunks(handle), handle)


def _zstd_chunks(handle: IO[bytes]) -> Iterator[bytes]:
    """The frames of a file one after the other; unlike the package's own reader, this detects a truncated file."""
    import zstandard

    frame: Any = None
    left = b""
    while packed := left or handle.read(_PACKED_CHUNK):
        if frame is None or frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()
        yield frame.decompress(packed)
        left = frame.unused_data if frame.eof else b""
    if frame is not None and not frame.eof:
        raise EOFError("the zstd stream is incomplete")


class _Chunks(io.RawIOBase):
    """The bytes of chunks as one stream; closing it also closes their source."""

    def __init__(self, chunks: Iterator[bytes], behind: Sequence[Any]) -> None:
        super().__init__()
        self._chunks, self._behind = chunks, behind
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._ready = memoryview(chunk)
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        for one in self._behind:
            one.close()
        super().close()


def stream_of(chunks: Iterator[bytes], *behind: Any) -> io.BufferedReader:
    """The bytes of chunks as one stream; closing it also closes ``behind``."""
    return io.BufferedReader(_Chunks(chunks, behind), 1 << 20)
