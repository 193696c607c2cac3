"""The common form of all platforms' exports: rows of task, worker, label; what was left out and why; the gold.

All ids and labels become text, as in a CSV file, so that gold files and later exports match.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rarevote.crowd.words import counted
from rarevote.errors import InputError, how, shown

YES, NO = "yes", "no"
MODEL = "model:"
#: the name of our predictions on platforms, for any method
MODEL_NAME = "rarevote"
#: the key of an export's details that says that each of its records is about one choice
ONE_CHOICE = "one_choice"
ALL = "all"  # instead of a question: all that look like a choice
ABSENT: Any = object()  # a key that a record does not have; None is a value

# Why an answer gives no row. These texts are shown to users and counted in summaries.
CANCELLED = "cancelled"
SKIPPED = "skipped"
REJECTED = "rejected"
DRAFT = "draft"
NO_ANSWER = "no answer"
NO_ANNOTATOR = "no annotator named"
PREDICTION = "prediction of a model, not requested"
TAKEN_AS_GOLD = "ground truth: used as gold, not as a vote"
IGNORED_TRUTH = "ground truth, ignored as requested"


class NotUtf8Error(InputError):
    """The bytes are not UTF-8: the caller can try the Windows encoding."""

    def __init__(self, place: str, encoding: str) -> None:
        super().__init__(
            f"{place} is not {encoding} text; convert the file first (for example: iconv -f cp1252 -t utf-8)"
        )


class ReadAgain(Exception):  # noqa: N818 - no error, a request
    """An export was read for its first question, but another one is needed."""

    def __init__(self, question: str) -> None:
        super().__init__(question)
        self.question = question


@dataclass(frozen=True)
class Export:
    """The rows of one question of an export.

    Attributes:
        platform: name of the platform.
        path: the path of the export; writing labels back reads the items from it again.
        question: the question that the rows answer.
        questions: all questions found.
        task: the task of each row. With ``multilabel`` it is ``<item>:<choice>``.
        worker: the worker of each row; models are named ``model:<version>``.
        label: the answer of each row; ``yes`` or ``no`` with ``multilabel``.
        shown: columns to show, one value per row. With ``multilabel`` there are also ``item`` and ``choice``.
        unanswered: tasks of the export that have no row.
        shown_unanswered: the same columns as ``shown``, one value for each of these tasks.
        gold: labels by task.
        left_out: how many answers have no row, by reason.
        cautions: important notes: there is only one annotator, or some have no names.
        notes: other notes.
        n_records: number of records in the file.
        n_repeated: number of rows that repeat a (task, worker) pair.
        multilabel: whether each of several choices became a yes/no problem.
        choices: the choices found, with ``multilabel``.
        values: labels whose text differs from the platform's value (a rating 3, a path in a taxonomy), with that value.
        details: what the platform needs to import labels.
        encoding: encoding of the files.
        judges: workers that are models although they are not named ``model:<version>``.
    """

    platform: str
    path: Path
    question: str
    questions: tuple[str, ...]
    task: list[str]
    worker: list[str]
    label: list[str]
    shown: dict[str, list[str]] = field(default_factory=dict)
    unanswered: list[str] = field(default_factory=list)
    shown_unanswered: dict[str, list[str]] = field(default_factory=dict)
    gold: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    n_records: int = 0
    n_repeated: int = 0
    multilabel: bool = False
    choices: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    encoding: str = "utf-8"
    judges: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.task)

    @property
    def models(self) -> frozenset[str]:
        """The workers that are models, not people."""
        return self.judges | {name for name in set(self.worker) if name.startswith(MODEL)}

    def columns(self) -> dict[str, list[str]]:
        """The rows as named columns: task, worker, label, then the columns to show."""
        columns = {"task": self.task, "worker": self.worker, "label": self.label}
        for name, values in self.shown.items():
            free = name
            while free in columns:
                free += "_"
            columns[free] = values
        return columns

    def shown_by_task(self) -> dict[str, dict[str, str]]:
        """For each shown column, its first value per task that is not empty, with or without votes."""
        by_task: dict[str, dict[str, str]] = {}
        for name, values in self.shown.items():
            column = by_task.setdefault(name, {})
            for task, value in zip(self.task, values, strict=True):
                if not column.get(task):
                    column[task] = value
            column.update(zip(self.unanswered, self.shown_unanswered[name], strict=True))
        return by_task


def nothing_ticked_note(n_empty: int, *, ignored: bool = False) -> list[str]:
    """The sentence on answers without any choice; none if there are no such answers.

    >>> nothing_ticked_note(1, ignored=True), nothing_ticked_note(0)
    (['1 answer chose nothing and is left out'], [])
    """
    if not n_empty:
        return []
    answers = f"{counted(n_empty, 'answer')} chose nothing"
    if ignored:
        return [f"{answers} and {'is' if n_empty == 1 else 'are'} left out"]
    otherwise = how('nothing_ticked="ignore"', "--nothing-ticked ignore")
    return [f"{answers}: counted as no to every choice ({otherwise} skips such answers)"]


# --------------------------------------------------------------------------------------------------------------------
# values as text


def as_text(value: Any, where: str) -> str | None:
    """An id or a label as text, None if it is missing.

    Raises:
        InputError: the value is a list or an object.
    """
    if isinstance(value, str):
        return value if value.strip() else None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, (list, dict, tuple, set)):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise InputError(f"{where} is {kind}, not a name or a number: {shown_text(value)[:60]}")
    return str(value)


def task_in_record(record: Mapping[str, Any], where: str, key: str = "id", advice: str = "") -> str:
    """The id of a record's task.

    Raises:
        InputError: it has no id.
    """
    task = as_text(record.get(key), f"{where}: {key}")
    if task is None:
        raise InputError(f"{where} has no {key}{advice}")
    return task


def choices_in_value(value: Any, where: str) -> list[str]:
    """The choices in a value of a JSON record: a name, or a list of names."""
    items = value if isinstance(value, list) else [value]
    return [name for item in items if (name := as_text(item, where)) is not None]


def shown_text(value: Any) -> str:
    """Any value as text to show."""
    if value is None or value is ABSENT or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float, list, dict)):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def look_up(name: str, *places: Any) -> Any:
    """The value of a key in the first of these objects that has it; ``a.b`` also means b within a."""
    for place in places:
        if isinstance(place, Mapping) and name in place:
            return place[name]
    head, dot, tail = name.partition(".")
    if dot:
        for place in places:
            if isinstance(place, Mapping) and isinstance(place.get(head), Mapping):
                return look_up(tail, place[head])
    return ABSENT


def shown_names(names: Sequence[str]) -> str:
    """Names for a message."""
    first = ", ".join(shown(name) for name in names[:40])
    return (first + (", ..." if len(names) > 40 else "")) or "none"
