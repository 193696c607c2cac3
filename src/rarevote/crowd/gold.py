"""Gold as class numbers per task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.encoding import joined_names
from rarevote.crowd.names import positions_of
from rarevote.crowd.words import counted
from rarevote.errors import InputError, warn_user


def with_gold(annotations: Annotations, truth: Mapping[Any, Any]) -> tuple[Annotations, NDArray[np.int32]]:
    """Gold as class numbers per task, and the crowd with all classes that only the gold names.

    Gold for tasks without votes is an error if it names no task of the crowd, else a warning: it is usually a
    sign of ids that do not match.
    """
    if not annotations.n_tasks:
        return annotations, np.empty(0, dtype=np.int32)  # there are no votes, so no gold applies
    labels = list(truth.values())
    if extra := classes_beside(annotations, labels):
        annotations = add_classes(annotations, extra)
        warn_user(f"gold contains classes without votes: {', '.join(map(repr, extra[:5]))}; they are kept as classes")
    gold = np.full(annotations.n_tasks, -1, dtype=np.int32)
    place = positions_of(annotations.tasks, list(truth))
    absent = [task for task, number in zip(truth, place.tolist(), strict=True) if number < 0]
    if truth and len(absent) == len(truth):
        raise InputError(
            f"none of the {len(truth):,} gold tasks is in the annotations (first: {absent[0]!r}, while the tasks "
            f"look like {annotations.tasks[:1].tolist()[0]!r}): check ids and their types"
        )
    if absent:
        warn_user(f"gold for {counted(len(absent), 'task')} without votes is left out (first: {absent[0]!r})")
    codes = positions_of(annotations.classes, labels).astype(np.int32)
    gold[place[place >= 0]] = codes[place >= 0]
    return annotations, gold


def classes_beside(annotations: Annotations, labels: Sequence[Any]) -> list[Any]:
    """The labels that are not classes of the crowd, each once."""
    place = positions_of(annotations.classes, labels).tolist()
    return list(dict.fromkeys(name for name, number in zip(labels, place, strict=True) if number < 0))


def add_classes(annotations: Annotations, names: Iterable[Any]) -> Annotations:
    """The same crowd with further classes, in sorted order.

    Raises:
        InputError: a class is a truth value and another an equal number.
    """
    old = annotations.classes
    classes = joined_names(old, names, "label")
    renumber = positions_of(classes, old.tolist()).astype(np.uint16)
    label = renumber[annotations.label].astype(annotations.label.dtype if len(classes) <= 256 else np.uint16)
    return replace(annotations, label=label, classes=classes)
