"""An expert's answers, and the list of tasks to answer.

Answers are rows of a task and a label, or a platform's export of the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rarevote.crowd.names import is_missing
from rarevote.errors import InputError
from rarevote.io.platforms import Export, read_export, recognise
from rarevote.io.platforms.containers import open_export
from rarevote.io.platforms.export_files import ExportFiles
from rarevote.io.platforms.write_back import TASK_KEY, own_data
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.sources import open_sources
from rarevote.io.read.table import read_table, truth_columns


class Said(NamedTuple):
    """An answer on a task: its label, or None if it is blank; and the expert, if the file names one."""

    task: Any
    label: Any
    who: str | None = None


def read_answers(path: str | Path, *, question: str | None = None) -> list[Said]:
    """All answers of a file, in order; a task can occur more than once.

    Args:
        path: a table with a column of tasks and one of labels, or an export of Label Studio or Argilla of the tasks
            that were created there from a review list.
        question: which question of the export, if it has several.

    Raises:
        InputError: the file cannot be read, has no rows, or a row has no task.
        ColumnsError: there is no column of tasks or of labels.
    """
    export = _export_in(Path(path))
    if export is not None:
        return _of_export(export, question)
    with open_sources(path, wanted=None) as sources:
        table = read_table(sources, truth_columns(sources))
        table.refuse_missing("task", "task")
    if not table.tasks:
        raise InputError(f"{table.title}: no rows; answers are rows of a task and its label")
    return [Said(task, label) for task, label in zip(table.tasks, table.labels, strict=True)]


def _export_in(path: Path) -> ExportFiles | None:
    """The export of a platform that review lists can be made for; None for anything else."""
    if not path.exists():
        return None
    try:
        files = open_export(path)
    except InputError:
        return None  # the reader of tables reports the fault
    return files if recognise(files) in ("label-studio", "argilla") else None


def _of_export(files: ExportFiles, question: str | None) -> list[Said]:
    """Answers with our names of the tasks: Label Studio gives imported tasks its own ids."""
    export = read_export(files, question=question)
    ours = _names(export, files, question) if export.platform == "label-studio" else {}
    voted = zip(export.task, export.label, export.worker, strict=True)
    # An expert can mark an answer as the ground truth: it is still an answer.
    marked = [Said(ours.get(task, task), label) for task, label in export.gold.items()]
    return [*(Said(ours.get(task, task), label, worker) for task, label, worker in voted), *marked]


def _names(export: Export, files: ExportFiles, question: str | None) -> dict[str, str]:
    """Our names of Label Studio's tasks, from their data."""
    data = own_data(export)
    if data:
        return {task: str(values[TASK_KEY]) for task, values in data.items() if TASK_KEY in values}
    # The short exports have the data beside the answers.
    short = read_export(files, question=question, show=[TASK_KEY])
    return dict(zip(short.task, short.shown[TASK_KEY], strict=True))


# --------------------------------------------------------------------------------------------------------------------
# review lists


@dataclass(frozen=True)
class ReviewList:
    """Tasks to review.

    Attributes:
        tasks: names of the tasks in the order of the file, each once.
        columns: the other columns, by name; None for blank cells.
    """

    tasks: list[Any]
    columns: dict[str, list[Any]]


def read_review_list(path: str | Path) -> ReviewList:
    """Read a list that ``--review-out`` wrote, or any table with a column of tasks.

    Raises:
        InputError: the file cannot be read, has no rows, or a task is missing or occurs twice.
        ColumnsError: there is no column of tasks.
    """
    with open_sources(path, wanted=None) as sources:
        first = sources[0]
        roles = find_columns(first.columns, aliases={"task": TRUTH_ALIASES["task"]}, where=first.title)
        others = [name for name in first.columns if name != roles["task"]]
        roles |= {f"column_{number}": name for number, name in enumerate(others)}
        table = read_table(sources, [roles] * len(sources))
        if not table.tasks:
            raise InputError(f"{table.title}: no rows to review")
        table.refuse_missing("task", "task")
        table.refuse_repeated()
    cells = {
        name: [None if is_missing(cell) else cell for cell in column]
        for name, column in zip(others, table.cells.values(), strict=True)
    }
    return ReviewList(table.tasks, cells)
