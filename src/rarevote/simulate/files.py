"""A simulated crowd as files, written chunk by chunk so that only the disk limits its size.

Three files: ``labels`` (task, worker, label), ``truth`` (task, label) and ``workers.csv`` (worker, type,
accuracy of each class). They are written into a hidden folder first and moved into place at the end, after the
files of an earlier crowd have been removed; an error leaves no partial file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import as_name_array
from rarevote.errors import InputError, ParameterError
from rarevote.io.duck import AS_WRITTEN, connection, literal
from rarevote.io.write.atomic import cannot_write, make_folder, temporary_folder
from rarevote.io.write.columns import appending_csv, write_columns
from rarevote.simulate.crowds import SimulatedCrowd

#: A text with one replacement field for the number, or a function from the number to the name.
Naming = str | Callable[[int], str]
#: Names: a one-dimensional array of Python texts.
Texts = NDArray[np.object_]


@dataclass(frozen=True)
class CrowdFiles:
    """The paths of a written crowd, and its sizes."""

    labels: Path
    truth: Path
    workers: Path
    n_tasks: int
    n_annotations: int


def write_crowd(
    folder: str | Path,
    chunks: Iterable[SimulatedCrowd],
    *,
    format: Literal["csv", "parquet"] = "csv",
    task_name: Naming = "task-{:012d}",
    worker_name: Naming = "worker-{:05d}",
    class_names: Sequence[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CrowdFiles:
    """Write the chunks of one crowd as ``labels``, ``truth`` and ``workers.csv``, replacing older ones.

    Only one chunk is held at a time. Parquet is made by DuckDB from the finished CSV, out of core, so for a
    while the disk holds both.

    Args:
        folder: the target folder; created if it does not exist.
        chunks: consecutive parts of one crowd, from `rarevote.simulate.crowds.simulate_chunks`; ``[crowd]`` for a whole
            crowd.
        format: format of labels and truth, ``"csv"`` or ``"parquet"``.
        task_name: how a task's number becomes its id.
        worker_name: how a worker's number becomes their id.
        class_names: names of the classes; their numbers if not given.
        progress: called after each chunk with the numbers of tasks and annotations written so far.

    Returns:
        The paths of the files, and the totals.

    Raises:
        ParameterError: the format is unknown, or names are empty, contain a line break or are not all
            different.
        InputError: there is no chunk.

    Example:
        >>> import tempfile
        >>> from rarevote.simulate.crowds import simulate_crowd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     crowd = simulate_crowd(10, 5, random_state=0)
        ...     files = write_crowd(folder, [crowd], class_names=["sound", "defect"])
        ...     print(files.truth.read_text().splitlines()[:2])
        ['task,label', 'task-000000000000,defect']
    """
    if format not in ("csv", "parquet"):
        raise ParameterError(f"format must be csv or parquet, not {format!r}")
    folder = Path(folder)
    is_new = not folder.exists()
    make_folder(folder)
    try:
        # Inside the folder, hence on the same disk, where moving a file is atomic.
        with temporary_folder(folder, "crowd") as desk:
            n_tasks, n_annotations = _write_csv(desk, chunks, task_name, worker_name, class_names, progress)
            if format == "parquet":
                _csv_to_parquet(desk, {"labels": ("task", "worker", "label"), "truth": ("task", "label")})
            names = (f"labels.{format}", f"truth.{format}", "workers.csv")
            # If the process is killed between two moves, the votes of one crowd must not be beside the truth of
            # another.
            for name in names:
                (folder / name).unlink(missing_ok=True)
            labels, truth, workers = ((desk / name).replace(folder / name) for name in names)
    except BaseException as error:
        if is_new:
            with contextlib.suppress(OSError):  # the original error matters more than an empty folder
                folder.rmdir()
        if isinstance(error, OSError):
            raise cannot_write(folder, error) from None
        raise
    return CrowdFiles(labels, truth, workers, n_tasks, n_annotations)


def _write_csv(
    desk: Path,
    chunks: Iterable[SimulatedCrowd],
    task_name: Naming,
    worker_name: Naming,
    class_names: Sequence[str] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[int, int]:
    """Write the three CSV files and return the numbers of tasks and annotations."""
    n_tasks = n_annotations = 0
    workers = None
    with appending_csv(desk / "labels.csv") as append_labels, appending_csv(desk / "truth.csv") as append_truth:
        for chunk in chunks:
            if workers is None:
                classes = _class_texts(class_names, chunk.n_classes)
                workers = _number_texts("worker_name", worker_name, range(chunk.n_workers))
                _write_workers(desk / "workers.csv", chunk, workers, classes)
            numbers = range(chunk.first_task, chunk.first_task + chunk.n_tasks)
            tasks = _number_texts("task_name", task_name, numbers)
            append_truth({"task": tasks, "label": classes[chunk.truth]})
            task = tasks[chunk.task - chunk.first_task]
            append_labels({"task": task, "worker": workers[chunk.worker], "label": classes[chunk.label]})
            n_tasks += chunk.n_tasks
            n_annotations += chunk.n_annotations
            if progress is not None:
                progress(n_tasks, n_annotations)
    if workers is None:
        raise InputError("the crowd has no chunk to write")
    return n_tasks, n_annotations


def _write_workers(path: Path, crowd: SimulatedCrowd, workers: Texts, classes: Texts) -> None:
    """Write one row per worker; the type is empty if the crowd has none."""
    types = [""] * crowd.n_workers if crowd.worker_type is None else crowd.worker_type.tolist()
    accuracy = {f"accuracy:{name}": crowd.accuracy[:, number] for number, name in enumerate(classes.tolist())}
    write_columns({"worker": workers, "type": as_name_array(types), **accuracy}, path)


def _number_texts(parameter: str, naming: Naming, numbers: range) -> Texts:
    """Return the name of each number."""
    name = naming.format if isinstance(naming, str) else naming
    try:
        texts = [name(number) for number in numbers]
    except (IndexError, KeyError, ValueError) as error:
        raise ParameterError(f"{parameter} cannot turn a number into a name: {error}") from error
    return _checked_texts(parameter, texts)


def _class_texts(class_names: Sequence[str] | None, n_classes: int) -> Texts:
    texts = [str(number) for number in range(n_classes)] if class_names is None else list(class_names)
    if len(texts) != n_classes:
        raise ParameterError(f"class_names has {len(texts)} names, but the crowd has {n_classes} classes")
    return _checked_texts("class_names", texts)


def _checked_texts(parameter: str, texts: list[str]) -> Texts:
    """Return the names if they are different, not empty, and of one line each."""
    distinct = set(texts)
    if len(distinct) != len(texts):
        raise ParameterError(f"{parameter} gives the same name twice")
    if "" in distinct:
        raise ParameterError(f"{parameter} gives an empty name")
    if any(line_break in text for text in distinct for line_break in "\r\n"):
        raise ParameterError(f"{parameter} gives a name with a line break")
    return np.array(texts, dtype=object)


def _csv_to_parquet(desk: Path, tables: dict[str, tuple[str, ...]]) -> None:
    """Turn each CSV file into Parquet of text columns, row for row, and remove it."""
    with connection(limited=True) as database:
        for table, columns in tables.items():
            source, target = desk / f"{table}.csv", desk / f"{table}.parquet"
            # Types are not guessed: a class named "1" or "NULL" stays text.
            rows = (
                f"read_csv($source, auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', "
                f"columns = $columns, {AS_WRITTEN})"
            )
            # Parameters by name: DuckDB 1.4 counts those of a COPY from its end.
            given = {
                "source": literal(str(source)),
                "columns": dict.fromkeys(columns, "VARCHAR"),
                "target": str(target),
            }
            database.execute(f"COPY (SELECT * FROM {rows}) TO $target (FORMAT parquet, USE_TMP_FILE false)", given)
            source.unlink()


class ExampleFiles(NamedTuple):
    """Paths of the two files of the example.

    Attributes:
        labels: CSV with the columns ``task``, ``worker`` and ``label``, one row per label.
        truth: CSV with the columns ``task`` and ``label``, one row per task.
    """

    labels: Path
    truth: Path


def example_files() -> ExampleFiles:
    """Return where the example's labels and truth are installed.

    Example:
        >>> files = example_files()
        >>> files.labels.read_text().splitlines()[:2]
        ['task,worker,label', 'rail-0001.jpg,inspector-01,sound']
    """
    folder = resources.files("rarevote") / "data" / "rails"
    return ExampleFiles(labels=Path(str(folder / "labels.csv")), truth=Path(str(folder / "truth.csv")))
