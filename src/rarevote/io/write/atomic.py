"""Files that appear whole or not at all, even if the machine loses its power: the one way to write any."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rarevote.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its name once the block ends well, and vanishes if it does not.

    Raises:
        InputError: the folder does not exist or cannot be written to, or the disk is full.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{path.suffix}")
    try:
        # Opened with the permissions that a result should have: the user's umask decides, and no thread has to ask it.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        with temporary.open("rb+") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
        flush_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it.

    Raises:
        InputError: the place cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


def cannot_write(path: Path, error: OSError) -> InputError:
    """The error for a place that cannot be written to."""
    return InputError(
        f"{path}: cannot be written ({error.strerror or error}); free some space or choose another folder"
    )


def flush_folder(folder: Path) -> None:
    """Make a rename last; only POSIX systems let a folder be flushed, and only they need it."""
    if os.name == "posix" and os.access(folder, os.R_OK):  # one may be allowed to write to a folder, not to read it
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
