"""A pulled file: the tasks of a project with their annotations, in the format of Label Studio's JSON export.

The file of an earlier pull is updated: only tasks that changed since are requested. Deletions on the
server show in the numbers of tasks and annotations, and then everything is requested again. Annotators have their
names beside their numbers, and predictions that ``rarevote push`` made are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.live.label_studio import Project
from rarevote.io.platforms.base import MODEL_NAME
from rarevote.io.platforms.containers import open_export
from rarevote.io.platforms.json_stream import walk_objects
from rarevote.io.write.atomic import replacing
from rarevote.io.write.columns import check_place

# A task gets its time before it is stored: a task that was changed at the same time can appear later, with an earlier
# time.
_OVERLAP = timedelta(minutes=1)


@dataclass(frozen=True)
class Pulled:
    """The result of a pull.

    Attributes:
        tasks: number of tasks in the file.
        annotations: number of annotations in the file, without cancelled ones.
        changed: number of tasks that were requested.
        whole: whether all tasks were requested.
    """

    tasks: int
    annotations: int
    changed: int
    whole: bool


@dataclass
class _Earlier:
    """The file of an earlier pull: its sizes, its latest time, and its first task."""

    first: int | None = None
    created: str = ""
    latest: str = ""
    tasks: int = 0


def check_file(path: Path) -> None:
    """Refuse a path that cannot be written to, before anything is fetched."""
    if path.suffix.lower() != ".json":
        raise InputError(f"{path}: the tasks are written as JSON; use a name that ends in .json")
    check_place(path)


def pull(project: Project, path: Path, *, progress: Callable[[int], None] = lambda _done: None) -> Pulled:
    """Write the tasks of a project to a file, or update the file of an earlier pull.

    Args:
        project: the project.
        path: the file; it is written completely or not at all.
        progress: called with the number of tasks received.

    Raises:
        InputError: the file does not contain tasks of this project, or the server refuses.
    """
    _ = project.info  # a wrong project is refused before anything is read
    people = project.people()
    earlier = _earlier(path, project)
    since = None if earlier is None else _since(earlier, project)
    if since is not None:
        changed = {int(task["id"]): task for task in _counted(project.tasks(since=since), progress)}
        found = _write(path, _merged(path, changed), people)
        n_tasks, n_annotations = project.counts()
        # More tasks were added meanwhile, and the next pull gets them; fewer means deletions.
        if n_tasks >= found[0] and n_annotations >= found[1]:
            return Pulled(*found, len(changed), whole=False)
    found = _write(path, _counted(project.tasks(), progress), people)
    return Pulled(*found, found[0], whole=True)


def tasks_in(path: Path) -> Iterator[Mapping[str, Any]]:
    """The tasks of a pulled file."""
    for _, _, task in walk_objects(open_export(path).only(), "a task"):
        yield task


def is_answered(task: Mapping[str, Any]) -> bool:
    """Whether an annotation of a task counts."""
    return any(not one.get("was_cancelled") for one in task.get("annotations") or [])


def _earlier(path: Path, project: Project) -> _Earlier | None:
    """The contents of the file of an earlier pull; None if there is none."""
    if not path.exists():
        return None
    found = _Earlier()
    for task in _own_tasks(path, project):
        if found.first is None:
            found.first, found.created = int(task["id"]), str(task.get("created_at"))
        found.latest = max(found.latest, str(task.get("updated_at") or ""))
        found.tasks += 1
    return found


def _own_tasks(path: Path, project: Project) -> Iterator[Mapping[str, Any]]:
    other = f"{path}: already exists and does not have tasks of {project.title}; choose another file, or remove it"
    try:
        for task in tasks_in(path):
            if task.get("project") != project.number or not isinstance(task.get("id"), int):
                raise InputError("of another project")
            yield task
    except InputError:
        raise InputError(other) from None


def _since(earlier: _Earlier, project: Project) -> str | None:
    """The time after which changes are requested; None if the file cannot be used."""
    if earlier.first is None or project.created_at(earlier.first) != earlier.created:
        return None  # of another server, or its first task was deleted
    try:
        latest = datetime.fromisoformat(earlier.latest)
    except ValueError:
        return None
    return (latest - _OVERLAP).isoformat().replace("+00:00", "Z")


def _merged(path: Path, changed: dict[int, dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The tasks of a file with changed tasks replaced, and new ones at the end."""
    left = dict(changed)
    for task in tasks_in(path):
        yield left.pop(int(task["id"]), task)
    yield from left.values()


def _write(path: Path, tasks: Iterable[Mapping[str, Any]], people: Mapping[int, str]) -> tuple[int, int]:
    """Write the tasks; returns the numbers of tasks and of annotations that were not cancelled."""
    n_tasks = n_annotations = 0
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as handle:
        handle.write("[")
        for task in tasks:
            annotations = [_named(one, people) for one in task.get("annotations") or []]
            # Our predictions are left out: as votes of a model, they would confirm themselves.
            models = [one for one in task.get("predictions") or [] if one.get("model_version") != MODEL_NAME]
            handle.write(",\n" if n_tasks else "\n")
            json.dump({**task, "annotations": annotations, "predictions": models}, handle, ensure_ascii=False)
            n_tasks += 1
            n_annotations += sum(not one.get("was_cancelled") for one in annotations)
        handle.write("\n]\n")
    return n_tasks, n_annotations


def _named(annotation: Mapping[str, Any], people: Mapping[int, str]) -> dict[str, Any]:
    who = annotation.get("completed_by")
    number = who.get("id") if isinstance(who, dict) else who
    if not isinstance(number, int) or number not in people:
        return dict(annotation)
    return {**annotation, "completed_by": {"id": number, "email": people[number]}}


def _counted(tasks: Iterable[dict[str, Any]], progress: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    for number, task in enumerate(tasks, 1):
        progress(number)
        yield task
