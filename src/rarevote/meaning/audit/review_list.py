"""The list that an expert answers: tasks and what there is to see of them, blind and in an order that says nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.io.write.atomic import replacing
from rarevote.io.write.columns import write_columns
from rarevote.meaning.audit.of_fit import shown_columns


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
        shown: columns carried along, a text for each of the first tasks.
    """
    place = {task: row for row, task in enumerate(tasks)}
    texts = shown_columns(shown, [place[task] for task in review], taken=("task", "label"))
    if form == "table":
        blank = as_name_array([""] * len(review))
        write_columns({"task": as_name_array(review), **texts, "label": blank}, path)
        return
    rows = [{name: str(column[i]) for name, column in texts.items()} for i in range(len(review))]
    make = _label_studio if form == "label-studio" else _argilla
    records = [make(str(task), row) for task, row in zip(review, rows, strict=True)]
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")


def _label_studio(task: str, texts: dict[str, str]) -> dict[str, Any]:
    return {"data": {"task": task, **texts}}


def _argilla(task: str, texts: dict[str, str]) -> dict[str, Any]:
    fields = texts or {"task": task}
    return {"id": task, "fields": fields, "metadata": {}, "suggestions": {}, "responses": {}, "vectors": {}}
