"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rarevote.io.write.atomic import cannot_write, make_folder, temporary_folder


@contextlib.contextmanager
def appearing(target: Path, *, keep_if: Callable[[Path], bool] | None = None) -> Iterator[Path]:
    """A hidden folder that becomes ``target`` once the block ends well, and vanishes with all in it if it does not.

    The folder above the one given is for the block alone, too: a place for intermediate files, on the same disk.

    Args:
        target: the folder to make; one that exists is replaced.
        keep_if: says of an existing folder that it is as good, so that the new one is dropped.

    Raises:
        InputError: the place cannot be written to, or the disk is full.
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
    """Let two folders change names in one step, so that a process that dies has done it or not; False if none can.

    Two renames, the way of systems without that step, leave a moment in which neither has the name.
    """
    calls = {"linux": ("renameat2", (-100, os.fsencode(one), -100, os.fsencode(other), 2)),
             "darwin": ("renamex_np", (os.fsencode(one), os.fsencode(other), 2))}  # fmt: skip
    if sys.platform not in calls:
        return False
    import ctypes

    name, arguments = calls[sys.platform]
    step = getattr(ctypes.CDLL(None), name, None)
    return step is not None and step(*arguments) == 0
