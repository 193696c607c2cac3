"""Atomic writing: files appear completely or not at all, even after a power failure. All files are written this way."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from rarevote.errors import InputError

#: Part of the names of our temporary files and folders, so that no others are ever removed.
MARK = ".rarevote-"
_ABANDONED_AFTER = 24 * 3600.0  # seconds
# Folders that this process has already cleaned up: it can write thousands of files into one folder.
_LOOKED_INTO: set[Path] = set()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that replaces it if the block succeeds, and is removed if it fails.

    Raises:
        InputError: the folder does not exist or cannot be written to, or the disk is full.
    """
    path = Path(path)
    # A name can have 255 bytes; its beginning is for people, its ending decides the format.
    ending = path.suffix if len(path.suffix) < 16 else ""
    temporary = path.with_name(f".{path.stem[:32]}{MARK}{secrets.token_hex(4)}{ending}")
    try:
        if path.is_dir():
            raise InputError(f"{path}: is a folder; give the name of a file")
        remove_abandoned(path.parent)
        # Opened with the default permissions of a new file: the user's umask applies without being queried.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        held = _hold(temporary)
        try:
            yield temporary
        finally:
            _let_go(held)
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left in a folder: our hidden files and folders, unchanged for a day.

    Files of a running process are kept, however long it has been running and whatever the clock shows.
    """
    if folder in _LOOKED_INTO:
        return
    _LOOKED_INTO.add(folder)
    oldest = time.time() - _ABANDONED_AFTER
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(".") and MARK in entry.name):
                continue
            with suppress(OSError):
                if entry.stat(follow_symlinks=False).st_mtime > oldest or _is_held(entry.path):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    Path(entry.path).unlink()


def make_folder(folder: Path) -> None:
    """Create a folder and its parents.

    Raises:
        InputError: the path cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


@contextmanager
def temporary_folder(parent: Path, title: str) -> Iterator[Path]:
    """A hidden folder in ``parent`` that is removed with its contents when the block ends.

    Raises:
        InputError: ``parent`` cannot be written to.
    """
    folder, remove = _made_folder(parent, title)
    try:
        yield folder
    finally:
        remove()


def scratch_folder(title: str) -> AbstractContextManager[Path]:
    """A temporary folder in the system's temporary folder."""
    return temporary_folder(Path(tempfile.gettempdir()), title)


def lasting_scratch_folder(title: str) -> tuple[Path, Callable[[], None]]:
    """A scratch folder tied to another object's lifetime: the folder, and its finalizer, a no-op in forks."""
    return _made_folder(Path(tempfile.gettempdir()), title)


def _made_folder(parent: Path, title: str) -> tuple[Path, Callable[[], None]]:
    remove_abandoned(parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{title[:32]}{MARK}", dir=parent))
    except OSError as error:
        raise cannot_write(parent, error) from None
    held, maker = _hold(folder), os.getpid()

    def remove() -> None:
        if os.getpid() == maker:
            _let_go(held)
            shutil.rmtree(folder, ignore_errors=True)

    return folder, remove


def cannot_write(path: Path, error: OSError) -> InputError:
    """The error for a path that cannot be written to."""
    return InputError(
        f"{path}: cannot be written ({error.strerror or error}); free some space or choose another folder"
    )


def temporary_folder_full(error: BaseException) -> InputError | None:
    """The error if a copy of an input did not fit into the temporary folder; None for other causes."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return None
    return InputError(
        f"{tempfile.gettempdir()}: the folder of temporary files is full ({error.strerror}); free some space, or set "
        "TMPDIR to another folder"
    )


def flush_folder(folder: Path) -> None:
    """Make a rename durable; only POSIX systems can flush a folder, and only they need it."""
    if os.name == "posix" and os.access(folder, os.R_OK):  # a folder can be writable but not readable
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# A process holds a lock on its temporary files and folders, which is released when it ends in any way. Some
# file systems have no locks; Windows does not remove open files anyway.
if sys.platform == "win32":

    def _hold(path: Path) -> int | None:
        return None

    def _is_held(path: str) -> bool:
        return False

else:
    import fcntl

    def _hold(path: Path) -> int | None:
        descriptor = None
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return descriptor

    def _is_held(path: str) -> bool:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return False


def _let_go(held: int | None) -> None:
    if held is not None:
        os.close(held)


@contextlib.contextmanager
def appearing(target: Path, *, keep_if: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """A hidden folder that becomes ``target`` if the block succeeds, and is removed with its contents if it fails.

    Its parent folder also belongs to the block: it can hold intermediate files, on the same disk.

    Args:
        target: the folder to create; an existing one is replaced.
        keep_if: whether an existing folder is equivalent, so that the new one is dropped.

    Raises:
        InputError: the path cannot be written to, or the disk is full.
    """
    make_folder(target.parent)
    try:
        with temporary_folder(target.parent, target.name) as desk:
            folder = desk / "ready"
            folder.mkdir()
            yield folder
            _publish(folder, target, keep_if)
    except OSError as error:
        raise cannot_write(target.parent, error) from None


def _publish(folder: Path, target: Path, keep_if: Callable[[Path], bool] | None) -> None:
    try:
        folder.rename(target)
        return
    except OSError:
        if not target.is_dir():
            raise
    if keep_if is not None and keep_if(target):
        return
    if _exchanged(folder, target):
        return
    old = folder.with_name("old")
    target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        old.rename(target)
        raise


def _exchanged(one: Path, other: Path) -> bool:
    """Swap the names of two folders atomically; returns False if the system does not support that.

    Two renames, as on other systems, leave a moment in which neither has the name.
    """
    calls = {"linux": ("renameat2", (-100, os.fsencode(one), -100, os.fsencode(other), 2)),
             "darwin": ("renamex_np", (os.fsencode(one), os.fsencode(other), 2))}  # fmt: skip
    if sys.platform not in calls:
        return False
    import ctypes

    name, arguments = calls[sys.platform]
    step = getattr(ctypes.CDLL(None), name, None)
    return step is not None and step(*arguments) == 0
