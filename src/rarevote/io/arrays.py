"""Named arrays in a file, in NumPy's ``.npz`` layout: checkpoints, shards and models. Nothing is pickled.

Whoever sends a file may send anything, so reading trusts nothing: what is not whole, or holds objects, is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing

_BEGINS_WITH = (b"PK\x03\x04", b"PK\x05\x06")  # the second where there is no array at all


class NotArraysError(InputError):
    """The file holds something else."""


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays, whole or not at all.

    Raises:
        InputError: the disk is full or the place cannot be written to.
    """
    with replacing(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)


def damaged_file(path: Path, reason: str) -> InputError:
    """The error for a file that is not whole."""
    return InputError(f"{path}: damaged ({reason})")


def load_arrays(path: Path, damaged: Callable[[Path, str], InputError] = damaged_file) -> dict[str, NDArray[Any]]:
    """Read what :func:`save_arrays` wrote.

    Args:
        path: the file.
        damaged: makes the error for a file that is not whole.

    Raises:
        NotArraysError: the file is no file of arrays.
        InputError: the file is absent, cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as handle:
            if not handle.read(4).startswith(_BEGINS_WITH):
                raise NotArraysError(f"{path}: damaged (it is no file of arrays)")
            handle.seek(0)
            with np.load(handle, allow_pickle=False) as file:
                return dict(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except NotArraysError:
        raise
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, MemoryError) as error:
        raise damaged(path, str(error) or type(error).__name__) from None
