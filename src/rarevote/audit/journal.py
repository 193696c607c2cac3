"""The journal of single answers beside the plan: each is on the disk before the next item is shown.

``audit.json.answers.jsonl`` has an object ``{"task", "label", "who", "when"}`` per line; a label of null means that the
expert is not sure, and ``"undo": true`` that the earlier answer on the task is withdrawn. Lines are only
appended, and the last one on a task counts. An incomplete last line is an
answer that a crash interrupted before it was confirmed: it is ignored, and removed before the next answer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from rarevote.audit.locks import lock
from rarevote.audit.plan_file import json_name, to_text
from rarevote.errors import InputError
from rarevote.io.json_text import parse_json
from rarevote.io.write.atomic import cannot_write, flush_folder


@dataclass(frozen=True)
class Entry:
    """One line of the journal."""

    task: Any
    label: Any
    who: str | None
    when: str
    undo: bool = False


def journal_path(plan: Path | str) -> Path:
    """The path of the journal of a plan.

    >>> journal_path("audit.json").name
    'audit.json.answers.jsonl'
    """
    return Path(f"{plan}.answers.jsonl")


def read_journal(plan: Path | str) -> list[Entry]:
    """All answers in the journal beside a plan; none if there is no journal.

    Raises:
        InputError: it cannot be read, or a line is not an answer.
    """
    path = journal_path(plan)
    if not path.exists():
        return []
    try:
        *lines, _torn = path.read_bytes().split(b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            record = parse_json(line, unique_keys=True)
            task, when = json_name(record["task"], "task"), record["when"]
            label, who = (None if record[key] is None else json_name(record[key], key) for key in ("label", "who"))
            if not isinstance(when, str):
                raise TypeError('"when" must be text')
            entries.append(Entry(task, label, who, when, record.get("undo") is True))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError(f"{path}, line {number}: not an answer; restore the file from a backup") from None
    return entries


def standing(entries: Iterable[Entry]) -> dict[Any, Entry]:
    """The valid entries of a journal: the last line on every task, without withdrawn ones, latest last.

    >>> lines = [Entry("a", "x", None, ""), Entry("b", "x", None, ""), Entry("a", "y", None, "")]
    >>> {task: entry.label for task, entry in standing([*lines, Entry("b", None, None, "", undo=True)]).items()}
    {'a': 'y'}
    """
    found: dict[Any, Entry] = {}
    for entry in entries:
        found.pop(entry.task, None)
        if not entry.undo:
            found[entry.task] = entry
    return found


class Journal:
    """The only writer of a journal; created by :func:`writing`."""

    def __init__(self, handle: IO[bytes], path: Path) -> None:
        self._handle, self.path = handle, path
        self._end = handle.seek(0, os.SEEK_END)

    def append(self, entry: Entry) -> None:
        """Add an answer; it is on the disk when this returns, and not in the file if this fails.

        Raises:
            InputError: it cannot be written, for example because the disk is full.
        """
        record = {"task": entry.task, "label": entry.label, "who": entry.who, "when": entry.when}
        line = to_text({**record, "undo": True} if entry.undo else record).encode("utf-8")
        try:
            # Remove what a failed append may have left.
            self._handle.truncate(self._end)
            written = 0
            while written < len(line):
                written += self._handle.write(line[written:])
            os.fsync(self._handle.fileno())
        except OSError as error:
            with suppress(OSError):
                self._handle.truncate(self._end)
            raise cannot_write(self.path, error) from None
        self._end += len(line)


@contextmanager
def writing(plan: Path | str) -> Iterator[Journal]:
    """The journal beside a plan, for one writer at a time.

    Raises:
        InputError: another process is writing, or the file cannot be opened.
    """
    path = journal_path(plan)
    try:
        handle = path.open("a+b", buffering=0)  # data that cannot be written must not stay in a buffer
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from None
    with handle:
        if lock(handle) is False:  # where the file system has no locks, nothing can be said about other processes
            raise InputError(
                f"{path}: another process is answering this audit or list; continue there, or stop it first"
            )
        flush_folder(path.parent)
        _cut_torn_line(handle)
        yield Journal(handle, path)


def _cut_torn_line(handle: IO[bytes]) -> None:
    handle.seek(0)
    text = handle.read()
    handle.truncate(text.rfind(b"\n") + 1)
    handle.seek(0, os.SEEK_END)
