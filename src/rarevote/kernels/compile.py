"""How every kernel is compiled: no GIL, machine code cached on disk where a folder can be written.

numba looks for a writable cache folder when a function is decorated and raises if it finds none. That must not
stop anybody who runs from a read-only installation without a home, so a private temporary folder is tried next,
and after that the code is compiled again in each process.
"""

from __future__ import annotations

import getpass
import glob
import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba import config
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime import rtsys

Function = TypeVar("Function", bound=Callable[..., Any])

# Contraction and reassociation of nothing but multiply-add: sums keep their order, so results are reproducible.
FAST_MATH = {"contract"}


def _private_temporary_folder() -> str | None:
    """A cache folder that only this user can write to, or None."""
    try:
        folder = Path(tempfile.gettempdir()) / f"rarevote-kernels-{getpass.getuser()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except (OSError, KeyError):
        return None
    # Compiled code is loaded from here: somebody else's folder of that name must not be trusted.
    owned = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if not stat.S_ISDIR(status.st_mode) or not owned or (hasattr(os, "getuid") and status.st_mode & 0o077):
        return None
    return str(folder)


_SUM = 16  # bytes
# Up to this version of numba, compiled kernels are known to call nothing that is not there before numba can compile.
_LATEST_KNOWN = (0, 68)

# Nothing but Python and other kernels call a kernel: what C would need is not compiled.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": FAST_MATH, "no_cfunc_wrapper": True}


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """numba's files with a sum behind each and its key within: damaged machine code would end the process, or be run.

    The key is that of the index. Two processes that compile two signatures at once may give both the same file.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            yield content
            file.write(content.getvalue() + _sum(content.getvalue()))

    def _load_index(self) -> Any:
        with suppress(FileNotFoundError):
            _require_sum(Path(self._index_path).read_bytes())
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _require_sum(Path(self._data_path(name)).read_bytes())
        return super()._load_data(name)


def _sum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SUM).digest()


def _require_sum(content: bytes) -> None:
    if _sum(content[:-_SUM]) != content[-_SUM:]:
        raise ValueError("damaged")


class _TolerantCache(FunctionCache):  # type: ignore[misc]
    """A cache that is never a reason to fail: what cannot be read is a miss and removed, what cannot be written is not.

    A machine that lost its power, or a disk that was full, leaves files that numba would raise about for ever.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            if numba.version_info.short > _LATEST_KNOWN:
                return super().load_overload(sig, target_context)
            # numba's own would import all that it can compile, SciPy with it. To run takes only what hands out memory;
            # on a miss the compiler imports the rest.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # anything may come out of damaged bytes
            base = glob.escape(self._impl.filename_base)
            for path in Path(self.cache_path).glob(f"{base}.*nb[ic]"):
                with suppress(OSError):
                    path.unlink()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # the index may have been damaged since it was looked into
            super().save_overload(sig, data)


def _cached(function: Function) -> Function:
    compiled = numba.njit(cache=True, **_OPTIONS)(function)
    compiled._cache = _TolerantCache(function)
    return compiled  # type: ignore[no-any-return]


def inlined(function: Function) -> Function:
    """A piece of a kernel that is copied into its callers, so that what they know at compile time reaches it."""
    return numba.njit(inline="always", **_OPTIONS)(function)  # type: ignore[no-any-return]


def kernel(function: Function) -> Function:
    """Compile ``function`` with numba in nopython mode, releasing the GIL, cached where possible."""
    try:
        return _cached(function)
    except RuntimeError:
        pass
    folder = _private_temporary_folder()
    if folder is not None:
        config.CACHE_DIR = folder
        try:
            return _cached(function)
        except RuntimeError:
            pass
    return numba.njit(**_OPTIONS)(function)  # type: ignore[no-any-return]
