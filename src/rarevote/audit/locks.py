"""Locks on files. A lock is released with the open file or its process, so no stale file blocks a later process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from rarevote.errors import InputError
from rarevote.io.write.atomic import MARK, cannot_write

_PATIENCE = 60.0  # seconds; the work under the lock takes a few milliseconds
_PAUSE = 0.005


def lock_path(path: Path) -> Path:
    """The hidden file that :func:`alone` locks."""
    return path.with_name(f".{path.name[:32]}{MARK}lock")


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lock a file for one writer: no other process writes it between reading and replacing it.

    A file that is replaced cannot be locked itself, so a hidden file beside it is locked meanwhile.

    Raises:
        InputError: the folder cannot be written to, or another process holds the lock for a minute.
    """
    beside = lock_path(path)
    handle = _held(beside, path)
    try:
        yield
    finally:
        # Removed while locked: a process that opened it meanwhile finds that the name belongs to another file.
        with suppress(OSError):
            beside.unlink()
        handle.close()
        if sys.platform == "win32":  # it cannot remove an open file
            with suppress(OSError):
                beside.unlink()


def _held(beside: Path, path: Path) -> IO[bytes]:
    """The lock file, open and locked; only open if the file system does not support locks."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            handle = beside.open("a+b")
        except OSError as error:
            is_being_removed = sys.platform == "win32" and isinstance(error, PermissionError)
            if not is_being_removed or time.monotonic() > until:
                raise cannot_write(path, error) from None
        else:
            locked = lock(handle)
            if locked is None or (locked and _is_at(handle, beside)):
                return handle
            handle.close()
        if time.monotonic() > until:
            raise InputError(f"{path}: another process has held the file for {_PATIENCE:.0f} seconds; try again")
        time.sleep(_PAUSE)


def _is_at(handle: IO[bytes], path: Path) -> bool:
    """Whether the name still belongs to the open file."""
    try:
        return os.path.samestat(os.fstat(handle.fileno()), path.stat())
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    # Windows locks bytes and prevents reading them: lock one far beyond the end.
    _LOCKED_BYTE = 2**40

    def lock(handle: IO[bytes]) -> bool | None:
        """Lock an open file without waiting: returns False if another process has it."""
        handle.seek(_LOCKED_BYTE)
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def lock(handle: IO[bytes]) -> bool | None:
        """Lock an open file without waiting: False if another process has it, None if locks are not supported."""
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return None
        return True
