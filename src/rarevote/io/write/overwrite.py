"""No output over an input: what a person would write is held against what was read, before any work.

A file is the same under all its names (links, other spellings of the path). A table inside an input folder, or one that
an input pattern matches, is refused too, although nothing is lost at once: the next run would read it as data.
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

# What standard input was redirected from is an input, too.
_STANDARD_INPUT = "/dev/stdin"


def refuse_overwriting(
    output: str | Path, inputs: Iterable[str | Path], *, named: str | None = None, replaced: tuple[str, ...] = ()
) -> None:
    """Refuse an output that is an input, would be one in the next run, or whose folder has an input in it.

    Args:
        output: a file or a folder, which need not exist.
        inputs: files, folders, patterns, addresses or "-", as the reader takes them.
        named: what messages call the output, such as ``--out votes.csv``; the path if not given.
        replaced: where the output is a folder, endings of the files that are written or removed in it; ``("",)`` for
            all.

    Raises:
        InputError: it is.
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
    """Whether two names are one file or folder; devices and pipes keep nothing that could be lost."""
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
            # Of many files only those are asked for that can be the same.
            if (path.is_symlink() or (linked and not path.is_dir())) and _is_same(path, output):
                return path
    return None


def _would_match(output: Path, given: str) -> bool:
    """Whether an input pattern would find the output once it is there."""
    if "://" in given or not glob.has_magic(given) or Path(given).exists():
        return False
    own, pattern = output.absolute().parts, Path(given).absolute().parts
    if "**" in pattern:
        return fnmatch.fnmatchcase(str(output.absolute()), str(Path(given).absolute()).replace("**/", "*"))
    return len(own) == len(pattern) and all(map(fnmatch.fnmatchcase, own, pattern))
