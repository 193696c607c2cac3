"""What an expert's word means: the class, another class, or not sure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rarevote.crowd.names import as_name_array, in_kind, is_missing, listed
from rarevote.errors import InputError, ParameterError
from rarevote.meaning.audit.plan_file import plain_name

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
        self.classes = None if classes is None else [plain_name(one, "class") for one in classes]
        known = as_name_array([name] if self.classes is None else self.classes)
        (self.name,) = in_kind([name], known)
        self.name = plain_name(self.name, "class")
        if self.classes is not None and self.name not in self.classes:
            raise ParameterError(f"{name!r} is no class ({listed(self.classes)})")
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
        said = said.item() if isinstance(said, np.generic) else said
        if isinstance(said, bool) and not self._truth_values:
            return self.name if said else self._opposite
        (label,) = in_kind([said], self._known)
        if self.classes is None or label in self.classes:
            return plain_name(label, "label")
        if isinstance(said, str) and said.strip().casefold() == _UNSURE:
            return None
        raise InputError(
            f"{said!r} is no class ({listed(self.classes)}); leave the label empty where the expert is unsure"
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
