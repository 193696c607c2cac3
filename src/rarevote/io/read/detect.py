"""What a file is, found once: its first bytes unpacked, how it is packed, its format; and how its bytes are opened.

A file is inspected once (:func:`inspect_file`) and its :class:`FileInfo` is handed on: to the platforms, which may know
their export by it, to the reader of tables, to the checks.
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
_OFFICE_ENDINGS = {".docx": "a Word document", ".pptx": "a PowerPoint document"}
_OFFICE_HEAD = 1 << 13  # bytes in which the names of a document's first parts stand
_HTML = re.compile(rb"(?i)\s*<(!doctype\s+html|html[\s>])")
_HEAD = 1 << 18  # bytes, from which format and dialect are found
_MAX_HEAD = 1 << 21  # where the first line is longer than that
_PART_OF_LETTER = re.compile(rb"[\xc0-\xff][\x80-\xbf]{0,3}\Z")
# Small, because a few bytes can unpack to very many.
_PACKED_CHUNK = 1 << 12


_STANDARD_INPUT = "-"
# What a shell calls standard input, and what it puts in place of <(command).
_STREAM = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/[0-9]+")
# Two letters at least: C:/ is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def refuse_address(path: str | Path, instead: str) -> None:
    """Refuse an address where only a file on this machine will do.

    Args:
        path: what was given; a path has lost one of the two slashes.
        instead: what to do instead, in words.

    Raises:
        InputError: it is an address.
    """
    found = _ADDRESS.match(str(path))
    if found:
        raise InputError(f"{found[1]}://{found[2]}: an address, not a local file; {instead}")


@dataclass(frozen=True)
class FileInfo:
    """A file, as its first bytes show it.

    Attributes:
        path: where it is.
        title: what messages call it.
        compression: how it is packed.
        kind: one of :data:`FORMATS`, by its first bytes, else by its name, else "json" or "csv".
        head: its first bytes, unpacked, at least the first line if that is no longer than two megabytes.
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
        """Whether it is a zip of files that are not parts of a spreadsheet."""
        office = any(part in self.head[:_OFFICE_HEAD] for part in (b"[Content_Types].xml", b"xl/", b"_rels/"))
        return self.head.startswith(ZIP) and not office and format_of_name(self.path) != "xlsx"

    def open(self) -> IO[bytes]:
        """The unpacked bytes from the beginning."""
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
    """Open a file, read its beginning, and say what it is.

    Raises:
        InputError: the file cannot be opened, is damaged, or is not packed despite its name.
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
    """Name a file that is no table and no export for what it is."""
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
    """The first bytes of a stream, and whether there are no more; they do not end within a letter."""
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
    """Whether a text begins as JSON does that holds records."""
    return head.removeprefix(UTF8_MARK).lstrip()[:1] in (b"[", b"{")


def format_of_name(path: Path) -> str | None:
    """The format that a file's ending says, without looking at the file."""
    name = Path(path.stem) if path.suffix.lower() in _PACKED_ENDINGS else path
    return next((kind for kind, endings in FORMATS.items() if name.suffix.lower() in endings), None)


def name_without_endings(path: Path) -> str:
    """The name of a file without the endings of its format and of how it is packed."""
    name = Path(path.stem) if path.suffix.lower() in _PACKED_ENDINGS else Path(path.name)
    known = {ending for endings in FORMATS.values() for ending in endings}
    return name.stem if name.suffix.lower() in known else name.name


# --------------------------------------------------------------------------------------------------------------------
# bytes


def open_bytes(path: Path, compression: Compression) -> IO[bytes]:
    """The unpacked bytes from the beginning."""
    return path.open("rb") if compression == "none" else _unpacked(path, compression)


def _unpacked(packed: Any, compression: Compression) -> IO[bytes]:
    """The bytes behind a path or an open file."""
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
    """Turns what a damaged or forbidden file raises into an :class:`InputError` that names it."""
    try:
        yield
    except _damages() as error:
        # Reading needs no room; a copy that is made meanwhile does.
        if full := temporary_folder_full(error):
            raise full from None
        reason = getattr(error, "strerror", None) or f"damaged or incomplete: {error}"
        raise InputError(f"{title}: cannot be read ({reason})") from None


def is_stream(given: str | Path) -> bool:
    """Whether an input is what a shell hands over, which can be read once: standard input, or ``<(command)``.

    >>> [is_stream(given) for given in ("-", "/dev/stdin", "/dev/fd/63", "/dev/null", "fd/63")]
    [True, True, True, False, False]
    """
    return str(given) == _STANDARD_INPUT or _STREAM.fullmatch(str(given)) is not None


def keep_stream(given: str, title: str, folder: Path) -> Path:
    """A stream as a file in ``folder``: it is read more than once, and may be larger than the memory."""
    path = folder / f"stream-{len(list(folder.iterdir()))}"
    with readable(title), _open_stream(given) as stream, path.open("wb") as handle:
        shutil.copyfileobj(stream, handle, 1 << 20)
    return path


def _open_stream(given: str) -> AbstractContextManager[IO[bytes]]:
    # Standard input is not ours to close.
    return nullcontext(sys.stdin.buffer) if given in (_STANDARD_INPUT, "/dev/stdin") else Path(given).open("rb")


def refuse_endless(path: Path, title: str | None = None) -> None:
    """Refuse a named pipe, which keeps a reader waiting until something is written there, and a device.

    Raises:
        InputError: it is one.
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
# Zstandard is part of Python from 3.14 on; before that the package zstandard has it.


def _damages() -> tuple[type[Exception], ...]:
    # Only a file that is packed by Zstandard loads the library, and only such a file can raise its error.
    loaded = [sys.modules.get(name) for name in ("compression.zstd", "zstandard")]
    return (OSError, EOFError, zlib.error, *(module.ZstdError for module in loaded if module is not None))


def unpacked_zstd(handle: IO[bytes]) -> IO[bytes]:
    """The bytes that a file packed by Zstandard holds."""
    return stream_of(_zstd_chunks(handle), handle)


def _zstd_chunks(handle: IO[bytes]) -> Iterator[bytes]:
    """The frames of a file one after the other; unlike the package's own reader this notices a missing end."""
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
    """The bytes of chunks as one stream, with which what is behind them is closed."""

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
    """The bytes of chunks as one stream, with which what is ``behind`` them is closed."""
    return io.BufferedReader(_Chunks(chunks, behind), 1 << 20)
