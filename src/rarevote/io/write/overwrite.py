"""Outputs must not overwrite inputs: they are compared before any work is done.

A file is recognised under all its names (links, other spellings of the path). A table inside an input folder, or one
that an input pattern matches, is also refused, although nothing is lost: the next run would read it as data.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rarevote.errors import InputError
from rarevote.io.read.detect import format_of_name

# The file behind standard input is also an input.
_STANDARD_INPUT = "/dev/stdin"


def refuse_overwriting(
    output: str | Path, inputs: Iterable[str | Path], *, named: str | None = None, replaced: tuple[str, ...] = ()
) -> None:
    """Refuse an output that is an input, would be one in the next run, or is a folder that contains an input.

    Args:
        output: a file or a folder, which may not exist yet.
        inputs: files, folders, patterns, addresses or "-", as given to the reader.
        named: the name of the output in messages, such as ``--out votes.csv``; by default, the path.
        replaced: if the output is a folder, the endings of the files that are written or removed in it; ``("",)`` for
            all.

    Raises:
        InputError: the output is refused.
    """
    path, named = Path(output), named or str(output)
    for given in map(str, inputs):
        for one in _found(given):
            same = one if _is_same(path, one) else _linked_in(path, one)
            if same is not None:
                shown = "standard input" if given == "-" else same
                raise InputError(
                    f"{named}: is the input {shown}; an output never replaces an input: choose another file"
                )
            if (replaced or format_of_name(path)) and one.is_dir() and _lies_in(path, one):
                raise InputError(
                    f"{named}: is in the input folder {one}, where the next run would read it as data: "
                    "choose a place outside it"
                )
            if str(one).endswith(replaced) and _lies_in(one, path):
                raise InputError(f"{named}: the input {one} is in this folder; choose a folder without inputs")
        if _would_match(path, given):
            raise InputError(
                f"{named}: matches the input {given}, so the next run would read it as data: choose another file"
            )


def _found(given: str) -> list[Path]:
    """The files and folders behind an input, as the reader finds them."""
    if "://" in given:
        return []
    path = Path(_STANDARD_INPUT if given == "-" else given)
    if path.exists():
        return [path]
    return [Path(match) for match in sorted(glob.glob(given, recursive=True))]  # noqa: PTH207


def _is_same(one: Path, other: Path) -> bool:
    """Whether two names are one file or folder; devices and pipes store nothing that could be lost."""
    with suppress(OSError):
        first = one.stat()
        return (stat.S_ISREG(first.st_mode) or stat.S_ISDIR(first.st_mode)) and os.path.samestat(first, other.stat())
    return False


def _lies_in(path: Path, folder: Path) -> bool:
    """Whether a path is below a folder, by its own name or by what it links to."""
    below = {path.resolve(), path.parent.resolve() / path.name}
    return any(_is_same(parent, folder) for one in below for parent in one.parents)


def _linked_in(output: Path, folder: Path) -> Path | None:
    """The file in an input folder that is the output under another name."""
    with suppress(OSError):
        linked = output.stat().st_nlink > 1
        for path in folder.rglob("*"):
            # Among many files, only those that can be the same are checked.
            if (path.is_symlink() or (linked and not path.is_dir())) and _is_same(path, output):
                return path
    return None


def _would_match(output: Path, given: str) -> bool:
    """Whether an input pattern would match the output once it exists."""
    if "://" in given or not glob.has_magic(given) or Path(given).exists():
        return False
    own, pattern = output.absolute().parts, Path(given).absolute().parts
    if "**" in pattern:
        return fnmatch.fnmatchcase(str(output.absolute()), str(Path(given).absolute()).replace("**/", "*"))
    return len(own) == len(pattern) and all(map(fnmatch.fnmatchcase, own, pattern))
