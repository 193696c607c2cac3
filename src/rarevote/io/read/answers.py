"""An expert's answers from files: rows of a task and a label, which may be blank and may repeat a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarevote.crowd.names import is_missing
from rarevote.errors import InputError
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.encode import Choice, from_json_text, loaded
from rarevote.io.read.open import open_sources
from rarevote.io.read.sources import place_of_rows


def read_answers(path: str | Path) -> list[tuple[Any, Any]]:
    """Task and label of every row, in order; None for a label that is blank.

    Raises:
        InputError: the file cannot be read, has no rows, or a row has no task.
        ColumnsError: there is no column of tasks or of labels.
    """
    with open_sources(path, wanted=None) as sources:
        title = sources[0].title
        choices = [
            Choice(find_columns(source.columns, None, aliases=TRUTH_ALIASES, where=source.title)) for source in sources
        ]
        with loaded(sources, choices) as database:
            rows = database.execute("SELECT task, label FROM rows ORDER BY rowid").fetchall()
        columns = [[row[0] for row in rows], [row[1] for row in rows]]
        if sources[0].form == "json":
            columns = [
                from_json_text(["null" if text is None else text for text in column], role)
                for column, role in zip(columns, ("task", "label"), strict=True)
            ]
        absent = [number for number, task in enumerate(columns[0]) if is_missing(task)]
        if absent:
            raise InputError(f"{title}: {len(absent):,} rows have no task ({place_of_rows(sources, absent[:5])})")
    if not rows:
        raise InputError(f"{title}: no rows; answers are rows of a task and its label")
    return [(task, None if is_missing(label) else label) for task, label in zip(*columns, strict=True)]
