"""A review list from a file: tasks in order, and everything else that stands beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarevote.crowd.names import is_missing
from rarevote.errors import InputError
from rarevote.io.json_text import parse_cell
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.encode import Choice, loaded
from rarevote.io.read.open import open_sources
from rarevote.io.read.sources import place_of_rows


@dataclass(frozen=True)
class ReviewList:
    """Tasks to review.

    Attributes:
        tasks: in the order of the file, each once.
        columns: what stands beside them, by name of the column; None where a cell is blank.
    """

    tasks: list[Any]
    columns: dict[str, list[Any]]


def read_review_list(path: str | Path) -> ReviewList:
    """Read a list that ``--review-out`` wrote, or any table with a column of tasks.

    Raises:
        InputError: the file cannot be read, has no rows, or a task is missing or stands there twice.
        ColumnsError: there is no column of tasks.
    """
    with open_sources(path, wanted=None) as sources:
        first = sources[0]
        task_column = find_columns(first.columns, aliases={"task": TRUTH_ALIASES["task"]}, where=first.title)["task"]
        others = [name for name in first.columns if name != task_column]
        choice = Choice({"task": task_column, **{f"column_{number}": name for number, name in enumerate(others)}})
        with loaded(sources, [choice] * len(sources)) as database:
            rows = database.execute("SELECT * FROM rows ORDER BY rowid").fetchall()
        if not rows:
            raise InputError(f"{first.title}: no rows to review")
        values = [list(column) for column in zip(*rows, strict=True)]
        if first.form == "json":
            values = [[parse_cell(text, first.title) for text in column] for column in values]
        tasks = values[0]
        seen: set[Any] = set()
        for row, task in enumerate(tasks):
            if is_missing(task) or isinstance(task, (list, dict)):
                raise InputError(f"{first.title}: a row without a task ({place_of_rows(sources, [row])})")
            if task in seen:
                raise InputError(f"{first.title}: task {task!r} again ({place_of_rows(sources, [row])})")
            seen.add(task)
    cells = {
        name: [None if is_missing(cell) else cell for cell in column]
        for name, column in zip(others, values[1:], strict=True)
    }
    return ReviewList(tasks, cells)
