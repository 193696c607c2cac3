"""Bytes of a file whatever it is packed in, what its first bytes tell, and standard input as a file."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Literal

from rarevote.errors import InputError

Compression = Literal["none", "gzip", "zstd"]

_MAGIC: dict[bytes, Compression] = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
COMPRESSED_ENDINGS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
# Small, because a few bytes can unpack to very many.
_PACKED_CHUNK = 1 << 12


def compression_of(path: Path) -> Compression:
    """How a file is packed, by its first bytes.

    Raises:
        InputError: the file cannot be opened, or is not packed although its name says so.
    """
    try:
        with path.open("rb") as handle:
            begin = handle.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    found: Compression = next((kind for magic, kind in _MAGIC.items() if begin.startswith(magic)), "none")
    named = COMPRESSED_ENDINGS.get(path.suffix.lower())
    if named is not None and found != named:
        raise InputError(f"{path}: cannot be read: not a {named} file, although its name says so")
    return found


def open_bytes(path: Path, compression: Compression) -> IO[bytes]:
    """The unpacked bytes from the beginning."""
    if compression == "gzip":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if compression == "zstd":
        return _open_zstd(path)
    return path.open("rb")


def open_text(path: Path, compression: Compression) -> IO[str]:
    """The text of a UTF-8 file, a byte order mark left out, line ends as they are."""
    return io.TextIOWrapper(open_bytes(path, compression), encoding="utf-8-sig", newline="")


@contextmanager
def readable(title: str) -> Iterator[None]:
    """Turns what a damaged or forbidden file raises into an :class:`InputError` that names it."""
    try:
        yield
    except _damages() as error:
        reason = getattr(error, "strerror", None) or f"damaged or cut off: {error}"
        raise InputError(f"{title}: cannot be read ({reason})") from None


def first_bytes(path: Path, compression: Compression, size: int) -> bytes:
    """Up to ``size`` bytes from the beginning."""
    with readable(str(path)), open_bytes(path, compression) as handle:
        return handle.read(size)


def last_bytes(path: Path, compression: Compression, size: int) -> bytes:
    """Up to ``size`` bytes from the end."""
    with readable(str(path)), open_bytes(path, compression) as handle:
        if compression == "none":
            handle.seek(max(0, handle.seek(0, io.SEEK_END) - size))
            return handle.read()
        tail = b""
        while chunk := handle.read(1 << 20):
            tail = (tail + chunk)[-size:]
        return tail


def keep_standard_input(folder: Path) -> Path:
    """Standard input as a file in ``folder``: it is read more than once, and may be larger than the memory."""
    path = folder / "standard-input"
    with readable("standard input"), path.open("wb") as handle:
        shutil.copyfileobj(sys.stdin.buffer, handle, 1 << 20)
    return path


# --------------------------------------------------------------------------------------------------------------------
# Zstandard is part of Python from 3.14 on; before that the package zstandard has it.


def _open_zstd(path: Path) -> IO[bytes]:
    if sys.version_info >= (3, 14):
        return import_module("compression.zstd").open(path, "rb")  # type: ignore[no-any-return]
    return io.BufferedReader(_ZstdBytes(path), 1 << 20)


def _damages() -> tuple[type[Exception], ...]:
    # Only a file that is packed by Zstandard loads the library, and only such a file can raise its error.
    loaded = [sys.modules.get(name) for name in ("compression.zstd", "zstandard")]
    return (OSError, EOFError, zlib.error, *(module.ZstdError for module in loaded if module is not None))


class _ZstdBytes(io.RawIOBase):
    """The frames of a file one after the other; unlike the package's own reader it notices a missing end."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        import zstandard

        self._handle = path.open("rb")
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            left = self._frame.unused_data if self._frame is not None and self._frame.eof else b""
            packed = left or self._handle.read(_PACKED_CHUNK)
            if not packed:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("the zstd stream has no end")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._new_frame()
            self._ready = memoryview(self._frame.decompress(packed))
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._handle.close()
        super().close()
