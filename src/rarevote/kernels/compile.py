"""The compiler of kernels: numba without the GIL, and a checked copy of its machine code on disk.

numba's own cache uses any file in its folder: damaged machine code ends the process, and two processes that
compile at once can mix up their files. So numba gets a private folder each time it compiles or loads a kernel. What it
writes there is stored as one file per kernel with a checksum: a file is complete and from one process, or not used.
"""

from __future__ import annotations

import getpass
import hashlib
import io
import os
import stat
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numba import config, njit, typeof

Function = TypeVar("Function", bound=Callable[..., Any])

# Only contraction of multiply-add: sums keep their order, so results are reproducible.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}, "no_cfunc_wrapper": True}
_SUM = 16  # bytes
_one_at_a_time = threading.Lock()  # numba reads the folder of its cache from a global setting


def piece(function: Function) -> Function:
    """A function that kernels call, compiled into each of them."""
    return njit(**_OPTIONS)(function)  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """A part of a kernel that is inlined into its callers, so that it can use their compile-time constants."""
    return njit(inline="always", **_OPTIONS)(function)  # type: ignore[no-any-return]


def kernel(function: Function) -> Function:
    """A function that Python calls, compiled for the types of its arguments and cached on disk if possible."""
    return _Kernel(function)  # type: ignore[return-value]


class _Kernel:
    """A function and its compiled forms, by the types of its arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.compiled: dict[tuple[Any, ...], Any] = {}
        self._by_kinds: dict[tuple[Any, ...], Any] = {}

    def __call__(self, *args: Any) -> Any:
        kinds = _kinds(args)
        if kinds not in self._by_kinds:
            types = tuple(map(typeof, args))
            with _one_at_a_time:
                if types not in self.compiled:
                    self.compiled[types] = _loaded(self.function, types)
            self._by_kinds[kinds] = self.compiled[types]
        return self._by_kinds[kinds](*args)


def _kinds(values: Iterable[Any]) -> tuple[Any, ...]:
    """A key for the types of values; numba's ``typeof`` takes longer than a pass over a few thousand votes."""
    return tuple([_kind(value) for value in values])


def _kind(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype.char, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return _kinds(value) if isinstance(value, tuple) else type(value)


def _loaded(function: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """The function compiled for these types: loaded from the file of its kernel, or compiled and added to it."""
    chosen = config.CACHE_DIR
    try:
        kept = _folder(chosen) / f"{function.__module__}.{function.__qualname__}.kernel".replace("<locals>.", "")
        try:
            return _through(kept, function, types)
        except (OSError, RuntimeError, KeyError):
            raise
        except Exception:  # the file refers to removed records: another version of the package wrote it
            kept.unlink(missing_ok=True)
            return _through(kept, function, types)
    except (OSError, RuntimeError, KeyError):  # no folder, no space, no user, or a function that numba cannot cache
        return njit(types, **_OPTIONS)(function)
    finally:
        config.CACHE_DIR = chosen


def _through(kept: Path, function: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """The function compiled for these types by numba, which reads and writes a private copy of the cache."""
    with tempfile.TemporaryDirectory(prefix="rarevote-", ignore_cleanup_errors=True) as private:
        _unpack(kept, private)
        config.CACHE_DIR = private
        compiled = njit(types, cache=True, **_OPTIONS)(function)
        if not compiled.stats.cache_hits:
            _pack(Path(private), kept)
        return compiled


def _unpack(file: Path, folder: str) -> None:
    """Write out the cached files, unless there are none or the checksum differs."""
    with suppress(FileNotFoundError):
        content = file.read_bytes()
        if _sum(content[_SUM:]) == content[:_SUM]:
            zipfile.ZipFile(io.BytesIO(content[_SUM:])).extractall(folder)


def _pack(folder: Path, file: Path) -> None:
    """Cache what numba wrote, completely or not at all."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in folder.rglob("*.nb[ic]"):
            archive.write(path, path.relative_to(folder))
    content = packed.getvalue()
    part = file.with_suffix(f".{os.getpid()}")
    try:
        part.write_bytes(_sum(content) + content)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM).digest()


@cache
def _folder(chosen: str) -> Path:
    """The first folder that can be written to."""
    for folder in _folders(chosen):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            return folder
    raise PermissionError("no folder is writable")


def _folders(chosen: str) -> Iterator[Path]:
    """The folder that is set for numba or beside this file, one of the user, a temporary one."""
    yield Path(chosen) if chosen else Path(__file__).parent / "__pycache__"
    yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "rarevote", "kernels")
    temporary = Path(tempfile.gettempdir(), f"rarevote-kernels-{getpass.getuser()}")
    with suppress(FileExistsError):
        temporary.mkdir(mode=0o700)
    # Compiled code is loaded from here: a folder that others can write to must not be trusted.
    status = temporary.lstat()
    if stat.S_ISDIR(status.st_mode) and (
        not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)
    ):
        yield temporary
