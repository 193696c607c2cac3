"""Tasks for a person to answer, as platforms import them: what there is to see, and the task it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from rarevote.io.platforms.base import ABSENT, shown_text

#: where a task of Label Studio carries the name of ours, since an import gives it an id of its own
TASK_KEY = "task"


def values_to_show(shown: Mapping[str, NDArray[Any]], row: int) -> dict[str, Any]:
    """What is shown of one task; nothing of a task behind those with votes."""
    return {str(name): values[row] for name, values in shown.items() if row < len(values) and values[row] is not ABSENT}


def label_studio_task(task: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """A task in Label Studio's import format; data of its own that are called as ours get another name.

    >>> label_studio_task(7, {"text": "a rail", "task": "x"})
    {'data': {'task': '7', 'text': 'a rail', 'show:task': 'x'}}
    """
    return {"data": {TASK_KEY: str(task), **{_free(name): value for name, value in values.items()}}}


def _free(name: str) -> str:
    return f"show:{name}" if name == TASK_KEY else name


def argilla_record(task: Any, values: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A record of Argilla (version 2) that nobody has answered.

    >>> argilla_record("a", {"text": "a rail"}, {})["fields"]
    {'text': 'a rail'}
    """
    return {
        "id": str(task),
        "fields": {name: shown_text(value) for name, value in values.items()} or {"task": str(task)},
        "metadata": dict(metadata),
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }
