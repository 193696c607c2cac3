"""Outputs must not overwrite inputs, or each other: they are compared before any work is done.

A file is recognised under all its names (links, other spellings of the path). A table inside an input folder, or one
that an input pattern matches, is also refused, although nothing is lost: the next run would read it as data.
"""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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


class Output(NamedTuple):
    """A file or folder that a command writes.

    Attributes:
        title: its name in messages, such as ``--out``.
        path: the path, which may not exist yet.
        replaced: if it is a folder, patterns of the names in it that are written or removed; ``("*",)`` for all.
    """

    title: str
    path: Path
    replaced: tuple[str, ...] = ()


def refuse_colliding(outputs: Sequence[Output]) -> None:
    """Refuse two outputs of one command that are one file, or one that the other, a folder, would replace.

    Raises:
        InputError: one of the outputs would be lost.
    """
    for one, other in itertools.permutations(outputs, 2):
        if _is_same(one.path, other.path) or _will_be_same(one.path.resolve(), other.path.resolve()):
            raise InputError(
                f"{one.title} and {other.title} are the same file, {one.path}: each output needs a file of its own"
            )
        if any(_matches(below, one.replaced) for below in _below(other.path, one.path)):
            raise InputError(
                f"{other.title} {other.path}: is in the folder {one.path} of {one.title}, where it would be replaced "
                "or could not be written: choose another place"
            )


def _will_be_same(one: Path, other: Path) -> bool:
    """Whether two full paths will be one file, also on a file system that ignores case."""
    return one == other or (str(one).casefold() == str(other).casefold() and _ignores_case(one.parent))


def _ignores_case(folder: Path) -> bool:
    """Whether the folder has another spelling, which is not a link."""
    with suppress(OSError, ValueError):
        return os.path.samestat(folder.lstat(), folder.with_name(folder.name.swapcase()).lstat()) and (
            folder.name != folder.name.swapcase()
        )
    return False


def _below(path: Path, folder: Path) -> Iterator[str]:
    """The name in a folder that leads to a path, by its own name and by what it links to."""
    for one in (path.resolve(), path.parent.resolve() / path.name):
        if folder.resolve() in one.parents:
            yield one.relative_to(folder.resolve()).parts[0]


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


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
