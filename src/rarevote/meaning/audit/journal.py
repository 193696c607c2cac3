"""Answers given one by one: a journal beside the plan, on the disk before the next item is shown.

``audit.json.answers.jsonl`` has an object ``{"task", "label", "who", "when"}`` a line; a label of null means that the
expert is not sure. Lines are only ever appended. A last line without its end is what a crash left of an answer that
nobody was told was kept: it is left out, and cut off before the next answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rarevote.errors import InputError
from rarevote.meaning.audit.plan_file import to_text


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    task: Any
    label: Any
    who: str | None
    when: str


def journal_path(plan: Path | str) -> Path:
    """Where the journal of a plan is.

    >>> journal_path("audit.json").name
    'audit.json.answers.jsonl'
    """
    return Path(f"{plan}.answers.jsonl")


def read_journal(plan: Path | str) -> list[Entry]:
    """All answers in the journal beside a plan; none if there is no journal.

    Raises:
        InputError: a line is no answer.
    """
    path = journal_path(plan)
    if not path.exists():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            entries.append(Entry(record["task"], record["label"], record["who"], record["when"]))
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}, line {number}: is no answer; restore the file from a copy") from None
    return entries


class Journal:
    """The one writer of a journal; made by :func:`writing`."""

    def __init__(self, handle: IO[bytes]) -> None:
        self._handle = handle

    def append(self, entry: Entry) -> None:
        """Add an answer; it is on the disk when this returns."""
        line = to_text({"task": entry.task, "label": entry.label, "who": entry.who, "when": entry.when})
        self._handle.write(line.encode("utf-8"))
        self._handle.flush()
        os.fsync(self._handle.fileno())


@contextmanager
def writing(plan: Path | str) -> Iterator[Journal]:
    """The journal beside a plan, for one writer at a time.

    Raises:
        InputError: somebody else is writing, or the file cannot be opened.
    """
    path = journal_path(plan)
    try:
        handle = path.open("a+b")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    with handle:
        if not _lock(handle):
            raise InputError(f"{path}: another process is answering this audit; finish there, or close it first")
        try:
            _cut_torn_line(handle)
            yield Journal(handle)
        finally:
            _unlock(handle)


def _cut_torn_line(handle: IO[bytes]) -> None:
    handle.seek(0)
    text = handle.read()
    handle.truncate(text.rfind(b"\n") + 1)
    handle.seek(0, os.SEEK_END)


# The lock goes when the process does, however it ends: no stale file can lock anybody out.
if sys.platform == "win32":
    import msvcrt

    # Windows locks bytes and keeps others from reading them: one far behind the end.
    _LOCKED_BYTE = 2**40

    def _lock(handle: IO[bytes]) -> bool:
        handle.seek(_LOCKED_BYTE)
        try:
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        handle.seek(_LOCKED_BYTE)
        msvcrt.locking(handle.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(handle: IO[bytes]) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _unlock(handle: IO[bytes]) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)
