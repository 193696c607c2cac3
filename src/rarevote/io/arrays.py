"""Named arrays in a file, in NumPy's ``.npz`` format: checkpoints, shards and models, without pickle.

A file can come from anywhere, so nothing in it is trusted: incomplete files and objects are refused.
"""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing

# Errors that the readers of zip files and arrays raise for invalid bytes.
_DAMAGE = (ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, MemoryError,
           RuntimeError, SyntaxError, tokenize.TokenError, TypeError, OverflowError, IndexError,
           struct.error)  # fmt: skip
_BEGINS_WITH = (b"PK\x03\x04", b"PK\x05\x06")  # the second if there is no array


class NotArraysError(InputError):
    """The file is not a file of arrays."""


def save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays, completely or not at all.

    Raises:
        InputError: the disk is full or the path cannot be written to.
    """
    with replacing(path) as temporary, temporary.open("wb") as handle:
        np.savez(handle, **arrays)


def damaged_file(path: Path, reason: str) -> InputError:
    """The error for an incomplete file."""
    return InputError(f"{path}: damaged ({reason})")


def load_arrays(path: Path, damaged: Callable[[Path, str], InputError] = damaged_file) -> dict[str, NDArray[Any]]:
    """Read what :func:`save_arrays` wrote.

    Args:
        path: the file.
        damaged: makes the error for an incomplete file.

    Raises:
        NotArraysError: the file is not a file of arrays.
        InputError: the file is absent, cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as handle:
            if not handle.read(4).startswith(_BEGINS_WITH):
                raise NotArraysError(f"{path}: damaged (not a file of arrays)")
            handle.seek(0)
            _check_members(handle, path.stat().st_size)
            with np.load(handle, allow_pickle=False) as file:
                found = dict(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except NotArraysError:
        raise
    except _DAMAGE as error:
        raise damaged(path, str(error) or type(error).__name__) from None
    for name, array in found.items():
        if not isinstance(array, np.ndarray):  # NumPy returns the bytes of a member that is not an array
            raise damaged(path, f"{name!r} is not an array")
    return found


def _check_members(handle: BinaryIO, size: int) -> None:
    """Refuse members that are larger than the file (arrays are written uncompressed) or that were altered."""
    with zipfile.ZipFile(handle) as file:
        members = file.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1 for member in members):
            raise ValueError("its arrays are compressed or encrypted")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its arrays claim to be larger than the file")
        names = [member.filename.removesuffix(".npy") for member in members]
        if not all(names) or len(set(names)) < len(names):
            raise ValueError("arrays without a name, or two of one name")
        # NumPy reads as much as an array's header states, so it may never check the checksum.
        if (altered := file.testzip()) is not None:
            raise ValueError(f"the checksum of {altered} does not match")
    handle.seek(0)
