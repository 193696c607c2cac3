"""A table of scores: items with one number each, from any classifier, screening tool or judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array, is_missing, sort_names
from rarevote.errors import ColumnsError, InputError, how
from rarevote.io.platforms.base import shown_text
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.crowd import Crowd, title_of
from rarevote.io.read.sources import open_sources
from rarevote.io.read.table import read_table

# Names of the item column in tables of screening tools; votes do not use them.
_TASKS = (*TRUTH_ALIASES["task"], "id", "recordid")


@dataclass(frozen=True, eq=False)
class ScoredItems:
    """Items and their scores.

    Attributes:
        crowd: the items as a population without votes, the columns to show, and gold in the same table.
        scores: one for each item of the population, in its order; NaN for blank cells.
    """

    crowd: Crowd
    scores: NDArray[np.float64]


def read_scores(
    paths: Sequence[str],
    score: str,
    *,
    columns: Mapping[str, str] | None = None,
    show: Sequence[str] = (),
    gold_column: str | None = None,
) -> ScoredItems:
    """Read a table with one row for each item.

    Args:
        paths: files in any format for votes.
        score: the column of scores.
        columns: the column of the items, such as ``{"task": "record_id"}``.
        show: columns to show.
        gold_column: the column of gold; blank for unknown items.

    Raises:
        ColumnsError: there is no such column.
        InputError: there are no rows, an item is missing or occurs twice, or a score is not a number.
    """
    with open_sources(list(paths), wanted=None) as sources:
        first = sources[0]
        for name in (score, *show, *([] if gold_column is None else [gold_column])):
            if name not in first.columns:
                raise ColumnsError(
                    f"{first.title} has no column {name!r}; it has {', '.join(map(repr, first.columns))}"
                )
        roles = find_columns(first.columns, columns, aliases={"task": _TASKS}, where=first.title)
        named = [score, *show, *([] if gold_column is None else [gold_column])]
        roles |= {f"column_{number}": name for number, name in enumerate(named)}
        table = read_table(sources, [roles] * len(sources))
        if not table.tasks:
            raise InputError(f"{table.title}: no rows; a table of scores has one row for each item")
        table.refuse_missing("task", "task")
        table.refuse_repeated("; a table of scores has one row for each item")
    tasks, (numbers, *others) = table.tasks, table.cells.values()
    place = {task: row for row, task in enumerate(tasks)}
    order = sort_names(tasks)
    rows = [place[task] for task in order]
    found = [_number(numbers[row], tasks[row], score, table.title) for row in rows]
    shown = {
        name: as_name_array([shown_text(cells[row]) for row in rows]) for name, cells in zip(show, others, strict=False)
    }
    gold = (
        {}
        if gold_column is None
        else {task: label for task, label in zip(tasks, others[-1], strict=True) if not is_missing(label)}
    )
    crowd = Crowd(_no_votes(order), title=title_of(list(paths)), shown=shown, gold=gold).with_files(list(paths))
    return ScoredItems(crowd, np.array(found, dtype=np.float64))


def _no_votes(tasks: Sequence[Any]) -> Annotations:
    """A crowd of items without votes."""
    nothing = np.empty(0, dtype=object)
    empty = np.empty(0, dtype=np.uint8)
    return Annotations(
        np.zeros(1, dtype=np.int64), empty, empty.copy(), nothing, nothing, nothing, unanswered=as_name_array(tasks)
    )


def _number(value: Any, task: Any, score: str, title: str) -> float:
    if is_missing(value):
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        which = how("score", "--score")
        raise InputError(
            f"{title}: {value!r} of item {task!r} in {score!r} is not a number; {which} names a column of scores"
        )
    return number
