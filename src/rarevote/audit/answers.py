"""The review list for an expert, blind and in random order, and the meaning of the expert's labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rarevote.audit.plan_file import json_name
from rarevote.crowd.names import (
    as_name_array,
    in_kind,
    is_missing,
    name_key,
    plain_name,
    some_names,
    spellings_of_one,
)
from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms.write_back import (
    argilla_record,
    label_studio_task,
    shown_columns,
    values_to_show,
    write_records,
)
from rarevote.io.read.answers import Said
from rarevote.io.read.crowd import Crowd
from rarevote.io.write.columns import check_columns, write_columns

_UNSURE = "unsure"


class ExpertWords:
    """Interprets labels of an expert for one class, or for a tail of grades.

    Args:
        name: the class whose recall is audited, or the name of the tail.
        classes: all classes, if they are known: then any other label is an error and not a "no".
        tail: the grades of the tail; None for one class.

    Example:
        >>> reading = ExpertWords("defect", ["defect", "sound"])
        >>> [reading.label(said) for said in ("defect", True, False, "sound", None, "unsure")]
        ['defect', 'defect', 'sound', 'sound', None, None]
    """

    def __init__(self, name: Any, classes: Iterable[Any] | None, tail: Iterable[Any] | None = None) -> None:
        self.classes = None if classes is None else [json_name(one, "class") for one in classes]
        self.tail = None if tail is None else [json_name(one, "grade") for one in tail]
        known = as_name_array([name] if self.classes is None else self.classes)
        self.name = json_name(in_kind([name], known)[0] if self.tail is None else name, "class")
        names = set(map(name_key, self.classes or [self.name]))
        if self.tail is None and name_key(self.name) not in names:
            raise ParameterError(f"{name!r} is not a class; the classes are {some_names(self.classes or [])}")
        self._known = known
        self._names = {*names, name_key(self.name)}
        # An expert can say that an item belongs to a tail without giving a grade.
        self._positive = set(map(name_key, [self.name, *(self.tail or [])]))
        others = [one for one in self.classes or [] if not self.is_positive(one)]
        # What "no" means: the other class if there is only one, else that it is not this class.
        self._opposite = others[0] if len(others) == 1 else False
        self._truth_values = isinstance(self.name, bool) or any(isinstance(one, bool) for one in self.classes or [])

    def label(self, said: Any) -> Any:
        """The label in the data's own type, or None if the expert is not sure.

        Raises:
            InputError: it is not a class.
        """
        if is_missing(said):
            return None
        said = plain_name(said)
        if isinstance(said, bool) and not self._truth_values:
            return self.name if said else self._opposite
        (label,) = in_kind([said], self._known)
        if name_key(label) in self._names:
            return json_name(label, "label")
        if isinstance(said, str) and said.strip().casefold() == _UNSURE:
            return None
        if self.classes is None:
            if said == self.name or spellings_of_one([str(said), str(self.name)]):
                # Any other word means that the item is not of the class.
                raise InputError(f"{said!r} is not the class, which is {self.name!r}: write it in the same way")
            return json_name(label, "label")
        raise InputError(
            f"{said!r} is not a class; the classes are {some_names(self.classes)}. Leave the label empty if the "
            "expert is unsure"
        )

    def is_stored(self, label: Any, *, by_0_2: bool = False) -> bool:
        """Whether :meth:`label` returns this label for some answer.

        Args:
            by_0_2: whether version 0.2 stored it, for which "unsure" was a label if the other classes are not known.

        >>> reading = ExpertWords("defect", ["defect", "sound"])
        >>> [reading.is_stored(label) for label in ("defect", "sound", "Defect", "defect ", True, "")]
        [True, True, False, False, False, False]
        """
        try:
            read = self.label(label)
        except InputError:
            return False
        if read is None:
            return by_0_2 and self.classes is None
        return bool(name_key(read) == name_key(label))

    def is_positive(self, label: Any) -> bool:
        """Whether a label read by :meth:`label` is the class, or a grade of the tail."""
        return name_key(label) in self._positive


def adjudicated(rows: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """One label per task from several experts' rows: their label if they agree, None (missing) if they do not.

    >>> adjudicated([("a", "defect"), ("b", "sound"), ("a", "sound"), ("b", None), ("b", "sound")])
    {'a': None, 'b': 'sound'}
    """
    said: dict[Any, list[Any]] = {}
    for task, label in rows:
        kept = said.setdefault(task, [])
        if not is_missing(label) and label not in kept:
            kept.append(label)
    return {task: labels[0] if len(labels) == 1 else None for task, labels in said.items()}


def by_expert(rows: Iterable[Said], who: str | None = None) -> tuple[dict[str | None, dict[Any, Any]], list[Any]]:
    """Labels by expert and task, and the tasks that experts disagree about, whose label is None.

    Args:
        rows: the experts' answers.
        who: the expert, if the rows do not name one.

    Example:
        >>> by_expert([Said("a", "defect", "zoe"), Said("b", "sound", "zoe"), Said("b", "defect", "max")])
        ({'zoe': {'a': 'defect'}, 'zoe, max': {'b': None}}, ['b'])
    """
    given = list(rows)
    agreed = adjudicated((row.task, row.label) for row in given)
    said = {row.task for row in given if row.label is not None}
    experts: dict[Any, dict[str, None]] = {}
    for row in given:
        if row.label is not None and row.who is not None:
            experts.setdefault(row.task, {})[row.who] = None
    found: dict[str | None, dict[Any, Any]] = {}
    for task, label in agreed.items():
        name = who or ", ".join(experts.get(task, ())) or None
        found.setdefault(name, {})[task] = label
    return found, [task for task, label in agreed.items() if label is None and task in said]


#: The columns of a list, apart from those to show.
LIST_NAMES = ("task", "label")


def check_list_columns(path: Path, form: str, crowd: Crowd) -> None:
    """Refuse a list that cannot have the columns to show, before anything is drawn.

    Raises:
        InputError: two names differ only in case.
    """
    if form == "table":
        check_columns([*LIST_NAMES, *crowd.to_show], path)


def write_review_list(review: Sequence[Any], path: Path, form: str, crowd: Crowd) -> None:
    """Write the list, completely or not at all; it contains no score, no stratum and no label of the crowd.

    Args:
        review: tasks to answer, in the order of :meth:`rarevote.audit.audit.Audit.round`.
        form: "table" (task, columns to show, an empty label), or tasks that "label-studio" or "argilla" import.
        crowd: the tasks, and what to show of them.
    """
    place = {task: row for row, task in enumerate(crowd.population.tolist())}
    rows, shown = [place[task] for task in review], crowd.to_show
    if form == "table":
        columns = {"task": as_name_array(review), **shown_columns(shown, rows, taken=LIST_NAMES)}
        write_columns({**columns, "label": as_name_array([""] * len(review))}, path)
        return
    record = label_studio_task if form == "label-studio" else argilla_record
    write_records((record(task, values_to_show(shown, row)) for task, row in zip(review, rows, strict=True)), path)
