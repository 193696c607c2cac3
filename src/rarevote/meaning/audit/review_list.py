"""The list that an expert answers: tasks and what there is to see of them, blind and in an order that says nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.io.platforms.base import ABSENT, shown_text
from rarevote.io.platforms.write_back import argilla_record, label_studio_task, values_to_show
from rarevote.io.write.atomic import replacing
from rarevote.io.write.columns import write_columns


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
        review: tasks to answer, as :meth:`rarevote.meaning.audit.audit.Audit.round` orders them.
        path: the file.
        form: "table" (task, what is shown, an empty label), or tasks that "label-studio" or "argilla" import.
        tasks: all tasks of the crowd.
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
