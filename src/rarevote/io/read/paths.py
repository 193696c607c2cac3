"""Paths of the files that a name, a pattern or a folder stands for."""

from __future__ import annotations

import glob
from pathlib import Path

from rarevote.errors import InputError


def is_temporary(name: str) -> bool:
    """Whether a file or folder is not data: hidden, a marker of Spark, or an incomplete file.

    >>> [is_temporary(name) for name in (".part.csv", "_SUCCESS", "tmp_.part.csv", "~$votes.xlsx", "votes.csv")]
    [True, True, True, True, False]
    """
    return name.startswith((".", "_", "~$", "tmp_.")) or name.endswith((".tmp", ".part", ".crdownload"))


def found_paths(given: str) -> list[Path]:
    """The files and folders that match a name or a pattern.

    Raises:
        InputError: there are none.
    """
    if Path(given).exists():
        return [Path(given)]
    matches = sorted(glob.glob(given, recursive=True)) if glob.has_magic(given) else []  # noqa: PTH207
    if not matches:
        raise InputError(f"{given}: no such file")
    return [*map(Path, matches)]


def files_below(folder: Path) -> list[Path]:
    """The files of a folder and those below it, without temporary ones."""
    found = sorted(folder.rglob("*"))
    return [one for one in found if one.is_file() and not any(map(is_temporary, one.relative_to(folder).parts))]
