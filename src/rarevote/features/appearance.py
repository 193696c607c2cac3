"""The order in which items first appear in the votes, which is the order of an array without ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import is_missing, spelling
from rarevote.errors import ColumnsError, InputError
from rarevote.io.read.columns import find_columns
from rarevote.io.read.frames import as_frame
from rarevote.io.read.sources import asking, open_sources

_GIVE_IDS = "give (ids, array, classes)"


def with_ids(
    values: NDArray[Any], data: Any, votes: Annotations, columns: Mapping[str, str] | None
) -> tuple[list[str], NDArray[Any], list[Any]]:
    """Predicted probabilities with ids and classes, from an array that has neither.

    Args:
        values: one row for each item with votes, as the items first appear in the data; one column for each class, the
            classes sorted.
        data: what the votes were read from.
        votes: the votes.
        columns: which column of the data is which.

    Raises:
        InputError: the order of the items is not known, or the array has another shape.
    """
    voted = {spelling(name) for name in votes.tasks.tolist()}
    order = [text for text in _first_appearance(data, columns) if text in voted]
    if len(order) < len(voted):
        raise InputError(
            f"pred_probs: an array does not say which row is which item, and {type(data).__name__} does not say in "
            f"which order the items are: {_GIVE_IDS}"
        )
    if values.shape != (len(order), votes.n_classes):
        raise InputError(
            f"pred_probs: an array of shape {values.shape} for {len(order):,} items with votes and {votes.n_classes} "
            f"classes: give a row for each item, as they first appear in the votes, or {_GIVE_IDS}"
        )
    return order, values, votes.classes.tolist()


def _first_appearance(data: Any, columns: Mapping[str, str] | None) -> list[str]:
    """The tasks in the order of the data, each once; none if the data have no order."""
    if hasattr(data, "annotations") or isinstance(data, Annotations):
        return []
    try:
        found = _task_column(data, columns)
    except ColumnsError:
        return []
    return list(dict.fromkeys(spelling(value) for value in found if not is_missing(value)))


def _task_column(data: Any, columns: Mapping[str, str] | None) -> Sequence[Any]:
    if isinstance(data, tuple):
        return list(data[0])
    if isinstance(data, (str, Path)):
        return _of_file(data, columns)
    if isinstance(data, list):
        if not all(isinstance(row, Mapping) for row in data):
            return [row[0] for row in data]
        names = dict.fromkeys(name for row in data for name in row)
        own = find_columns(list(names), columns, where="the data")["task"]
        return [row.get(own) for row in data]
    if isinstance(data, Mapping):
        return list(data[find_columns(list(data), columns, where="the data")["task"]])
    frame, _ = as_frame(data, "annotations", "a frame")
    found: list[Any] = frame.get_column(find_columns(frame.columns, columns, where="the frame")["task"]).to_list()
    return found


def _of_file(path: str | Path, columns: Mapping[str, str] | None) -> list[Any]:
    with open_sources(path, wanted=None) as sources:
        if len(sources) != 1:
            return []
        source = sources[0]
        name = find_columns(source.columns, columns, where=str(path))["task"]
        with asking(source) as ask:
            return [one for (one,) in ask(f"SELECT {source.text(name)} FROM {source.reader}").fetchall()]
