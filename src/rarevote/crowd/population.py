"""The population: all items in the data, first those with votes, then those without."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.encoding import Names
from rarevote.crowd.names import as_name_array, positions_of, sort_names
from rarevote.crowd.words import part_of


def population(annotations: Annotations) -> Names:
    """Names of all items: ``tasks``, then ``unanswered``.

    >>> votes = Annotations.from_arrays(["b", "a", "c"], [1, 2, 1], ["yes", "skip", "no"], abstain=["skip"])
    >>> population(votes).tolist()
    ['b', 'c', 'a']
    """
    tasks, unvoted = annotations.tasks, annotations.unanswered
    if not len(unvoted):
        return tasks  # they may be on disk
    if isinstance(tasks, np.ndarray) and tasks.dtype == unvoted.dtype:
        return np.concatenate([tasks, unvoted])
    return as_name_array([*tasks.tolist(), *unvoted.tolist()])


def item_name(annotations: Annotations, item: int) -> Any:
    """The name of the item with this number, without reading all other names."""
    n_tasks = annotations.n_tasks
    names, place = (annotations.tasks, item) if item < n_tasks else (annotations.unanswered, item - n_tasks)
    return names[[place]].tolist()[0]


def with_items(annotations: Annotations, names: Iterable[Any]) -> Annotations:
    """The same votes in a population that also has these items; duplicates count once.

    Args:
        annotations: the votes.
        names: ids of the items, as in the votes, none missing; the items may have votes.

    >>> votes = Annotations.from_arrays(["b", "a"], [1, 2], ["yes", "no"])
    >>> with_items(votes, ["d", "a", "c", "d"]).unanswered.tolist()
    ['c', 'd']
    """
    named = list(dict.fromkeys([*annotations.unanswered.tolist(), *names]))
    place = positions_of(annotations.tasks, named)
    unvoted = [name for name, number in zip(named, place.tolist(), strict=True) if number < 0]
    if len(unvoted) == len(annotations.unanswered):
        return annotations
    return replace(annotations, unanswered=as_name_array(sort_names(unvoted)))


def unvoted_note(n_voted: int, n_unvoted: int) -> tuple[str, ...]:
    """The sentence on items without votes; none if there are no such items.

    >>> unvoted_note(1500, 300), unvoted_note(2, 1), unvoted_note(3, 0)
    (('300 of 1,800 items have no votes',), ('1 of 3 items has no votes',), ())
    """
    if not n_unvoted:
        return ()
    return (f"{part_of(n_unvoted, n_voted + n_unvoted, 'item', 'has', 'have')} no votes",)
