"""Folders that appear whole or not at all."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rarevote.errors import InputError

_ABANDONED_AFTER = 24 * 3600.0  # seconds


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
    desk: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target.parent)
        desk = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".tmp", dir=target.parent))
        folder = desk / "ready"
        folder.mkdir()
        yield folder
        _publish(folder, target, keep_if)
    except OSError as error:
        raise InputError(
            f"{target.parent}: cannot be written ({error.strerror or error}); free some space or choose another folder"
        ) from None
    finally:
        if desk is not None:
            shutil.rmtree(desk, ignore_errors=True)


def _publish(folder: Path, target: Path, keep_if: Callable[[Path], bool] | None) -> None:
    try:
        folder.rename(target)
        return
    except OSError:
        if not target.is_dir():
            raise
    if keep_if is not None and keep_if(target):
        return
    old = folder.with_name("old")
    target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        old.rename(target)
        raise


def _remove_abandoned(root: Path) -> None:
    """Remove the hidden folders that killed processes left behind."""
    for desk in root.glob(".*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - desk.stat().st_mtime > _ABANDONED_AFTER:
                shutil.rmtree(desk, ignore_errors=True)
