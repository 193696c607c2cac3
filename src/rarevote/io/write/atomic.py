"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rarevote.errors import InputError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside ``path`` that takes its name once the block ends well, and vanishes if it does not.

    Raises:
        InputError: the folder does not exist or cannot be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent or Path())
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp files are private; a result should have the permissions that the user's umask gives.
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)
