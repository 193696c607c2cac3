"""The list that an expert answers, blind and in an order that says nothing, and what the expert's word means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.audit.plan_file import json_name
from rarevote.crowd.names import as_name_array, in_kind, is_missing, plain_name, some_names
from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms.base import ABSENT, shown_text
from rarevote.io.platforms.write_back import argilla_record, label_studio_task, values_to_show
from rarevote.io.write.atomic import replacing
from rarevote.io.write.columns import write_columns

_UNSURE = "unsure"


class ExpertWords:
    """Reads labels of an expert for one class.

    Args:
        name: the class whose recall is audited.
        classes: all classes, if they are known: then a label that is none of them is an error and not a "no".

    Example:
        >>> reading = ExpertWords("defect", ["defect", "sound"])
        >>> [reading.label(said) for said in ("defect", True, False, "sound", None, "unsure")]
        ['defect', 'defect', 'sound', 'sound', None, None]
    """

    def __init__(self, name: Any, classes: Iterable[Any] | None) -> None:
        self.classes = None if classes is None else [json_name(one, "class") for one in classes]
        known = as_name_array([name] if self.classes is None else self.classes)
        (self.name,) = in_kind([name], known)
        self.name = json_name(self.name, "class")
        if self.classes is not None and self.name not in self.classes:
            raise ParameterError(f"{name!r} is no class ({some_names(self.classes)})")
        self._known = known
        others = [one for one in self.classes or [] if one != self.name]
        # What "no" means: the other class if there is only one, else that it is not this class.
        self._opposite = others[0] if len(others) == 1 else False
        self._truth_values = isinstance(self.name, bool) or any(isinstance(one, bool) for one in self.classes or [])

    def label(self, said: Any) -> Any:
        """The label in the data's own type, or None if the expert is not sure.

        Raises:
            InputError: it is no class.
        """
        if is_missing(said):
            return None
        said = plain_name(said)
        if isinstance(said, bool) and not self._truth_values:
            return self.name if said else self._opposite
        (label,) = in_kind([said], self._known)
        if self.classes is None or label in self.classes:
            return json_name(label, "label")
        if isinstance(said, str) and said.strip().casefold() == _UNSURE:
            return None
        raise InputError(
            f"{said!r} is no class ({some_names(self.classes)}); leave the label empty where the expert is unsure"
        )

    def is_positive(self, label: Any) -> bool:
        """Whether a label read by :meth:`label` is the class."""
        return bool(label == self.name) and isinstance(label, bool) == isinstance(self.name, bool)


def adjudicated(rows: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """One label a task from several experts' rows: theirs where they agree, None (missing) where they do not.

    >>> adjudicated([("a", "defect"), ("b", "sound"), ("a", "sound"), ("b", None), ("b", "sound")])
    {'a': None, 'b': 'sound'}
    """
    said: dict[Any, list[Any]] = {}
    for task, label in rows:
        kept = said.setdefault(task, [])
        if not is_missing(label) and label not in kept:
            kept.append(label)
    return {task: labels[0] if len(labels) == 1 else None for task, labels in said.items()}


def write_review_list(
    review: Sequence[Any],
    path: Path,
    form: str,
    *,
    tasks: Sequence[Any],
    shown: Mapping[str, NDArray[Any]],
) -> None:
    """Write the list, whole or not at all: neither score nor stratum nor what the crowd said is in it.

    Args:
        review: tasks to answer, as :meth:`rarevote.audit.audit.Audit.round` orders them.
        form: "table" (task, what is shown, an empty label), or tasks that "label-studio" or "argilla" import.
        shown: what there is to see of the first tasks, by column: :attr:`rarevote.io.read.crowd.Crowd.to_show`.
    """
    place = {task: row for row, task in enumerate(tasks)}
    rows = [values_to_show(shown, place[task]) for task in review]
    if form == "table":
        write_columns(_table(review, rows, list(shown)), path)
        return
    make = label_studio_task if form == "label-studio" else _unanswered
    records = [make(task, row) for task, row in zip(review, rows, strict=True)]
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")


def _table(review: Sequence[Any], rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, NDArray[Any]]:
    columns = {"task": as_name_array(review)}
    for name in names:
        texts = [shown_text(row.get(name, ABSENT)) for row in rows]
        columns[f"show:{name}" if name in ("task", "label") else name] = as_name_array(texts)
    return {**columns, "label": as_name_array([""] * len(review))}


def _unanswered(task: Any, row: Mapping[str, Any]) -> dict[str, Any]:
    return argilla_record(task, row, {})
