"""What an altered file says, read in plain Python: the answer that our readers must give, if they give one.

Where the file can be read in more than one way (two delimiters fit, a key stands twice, a quote is escaped by a
backslash) nothing is expected: to refuse it and to read it either way are both right.
"""

from __future__ import annotations

import csv
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from rarevote.crowd.annotations import Annotations
from rarevote.io.read.results import ResultFile
from rarevote.io.write.columns import write_columns

Votes = Counter[tuple[Any, ...]]
ROLES = ("task", "worker", "label")
CLASSES = ("defect", "sound")
# Of every so many files that are read, one is also written to another format and read from there.
_ONE_IN = 4


class WrongAnswerError(AssertionError):
    """An answer that is not what the input says."""


def votes_in(annotations: Annotations) -> Votes:
    """Votes by name, as texts: how often each stands there."""
    tasks = annotations.task_names()[annotations.task_of_annotation()].tolist()
    workers = annotations.workers[annotations.worker].tolist()
    labels = annotations.classes[annotations.label].tolist()
    return Counter((str(t), str(w), str(y)) for t, w, y in zip(tasks, workers, labels, strict=True))


def check_votes(found: Annotations, expected: Votes | None, what: str) -> None:
    """Compare what was read with what the input says.

    Raises:
        WrongAnswerError: they differ.
    """
    if expected is None:
        return
    read = votes_in(found)
    if read != expected:
        raise WrongAnswerError(f"{what}: read {dict(read - expected)}, the input says {dict(expected - read)}")


def check_majority(labels: dict[Any, Any], votes: Votes | None) -> None:
    """Compare decided labels with the classes that have the most votes.

    Raises:
        WrongAnswerError: a task has another label, or none.
    """
    counts: dict[str, Counter[str]] = {}
    for (task, _, label), number in (votes or {}).items():
        counts.setdefault(task, Counter())[label] += number
    found = {str(task): str(label) for task, label in labels.items()}
    for task, of_task in counts.items():
        if of_task[found.get(task, "")] != max(of_task.values()):
            raise WrongAnswerError(f"task {task!r} has the label {found.get(task)!r} and the votes {dict(of_task)}")


def read_and_compare(path: Path) -> Any:
    """Read votes; compare them with the plain reading, with a second reading, and with another format's."""
    crowd = rarevote.read(path)
    check_votes(crowd.annotations, plain_votes(path), "plain reading")
    again = rarevote.read(path).annotations
    check_votes(again, votes_in(crowd.annotations), "second reading")
    if zlib.crc32(path.read_bytes()) % _ONE_IN == 0 and crowd.annotations.n_annotations:
        _compare_formats(crowd.annotations, path)
    return crowd


def _compare_formats(annotations: Annotations, path: Path) -> None:
    names = {
        "task": annotations.task_names()[annotations.task_of_annotation()],
        "worker": annotations.workers[annotations.worker],
        "label": annotations.classes[annotations.label],
    }
    other = path.with_name("again.parquet")
    write_columns(names, other)
    check_votes(rarevote.read(other).annotations, votes_in(annotations), "the same votes from Parquet")


def plain_votes(path: Path) -> Votes | None:
    """Votes of a table of text or of JSON, by Python's own modules; None where several answers are right."""
    rows = plain_rows(path.read_bytes(), path.suffix, ROLES)
    return None if rows is None else Counter(rows)


def check_rows(
    found: list[tuple[Any, ...]], path: Path, names: tuple[str, ...], kept: Callable[[dict[str, str]], tuple[str, ...]]
) -> None:
    """Compare rows that were read, in their order, with what is kept of those of the file.

    Raises:
        WrongAnswerError: they differ.
    """
    rows = plain_rows(path.read_bytes(), path.suffix, names)
    if rows is not None:
        expected = [kept(dict(zip(names, row, strict=True))) for row in rows]
        if found != expected:
            raise WrongAnswerError(f"read {found}, the file says {expected}")


def check_labels(found: Mapping[Any, Any], path: Path) -> None:
    """Compare labels by task with those of the file.

    Raises:
        WrongAnswerError: they differ.
    """
    rows = plain_rows(path.read_bytes(), path.suffix, ("task", "label"))
    expected = None if rows is None else {row[0]: row[1] for row in rows}
    if expected is not None and {str(task): str(label) for task, label in found.items()} != expected:
        raise WrongAnswerError(f"read {found}, the file says {rows}")


def check_result(found: ResultFile, path: Path, names: tuple[str, ...]) -> None:
    """Compare labels and probabilities of a result with those of the file.

    Raises:
        WrongAnswerError: they differ.
    """
    own = [name for name in names if name.startswith("p:")]
    rows = plain_rows(path.read_bytes(), path.suffix, names, numbers=tuple(set(names) - {"task", "label"}))
    for read, row in zip(found.tasks, rows or (), strict=rows is not None):
        said = dict(zip(names, row, strict=True))
        place = found.tasks.index(read)
        p = np.array([float(said[name]) for name in own])
        if (
            (read, found.labels[read]) != (said["task"], said["label"])
            or [f"p:{name}" for name in found.classes["p:"]] != own
            or not np.allclose(found.probabilities["p:"][place], p / p.sum(), rtol=0, atol=1e-12)
        ):
            raise WrongAnswerError(f"read {found}, the file says {said}")


def check_costs(found: NDArray[Any], path: Path, classes: list[str]) -> None:
    """Compare a matrix of costs with the cells of a file with commas, where its names and numbers are plain.

    Raises:
        WrongAnswerError: a cost differs.
    """
    try:
        text = path.read_bytes().decode("ascii")
    except UnicodeDecodeError:
        return
    table = [line.split(",") for line in text.splitlines() if line]
    if re.search(r"[^\w,.\n]|_", text) or not table or {len(line) for line in table} != {len(table[0])}:
        return
    for true, *costs in table[1:]:
        for decided, cost in zip(table[0][1:], costs, strict=True):
            if {true, decided} <= set(classes) and found[classes.index(true), classes.index(decided)] != float(cost):
                raise WrongAnswerError(f"the cost of {true}:{decided} is {found}, the file says {cost}")


def check_journal(found: Mapping[Any, Any], before: Mapping[Any, Any], content: bytes) -> None:
    """Compare the answers of an audit with those before and, of each task, the last whole line of the journal.

    Raises:
        WrongAnswerError: an answer is missing, or there is one that was not given.
    """
    said: dict[Any, Any] = {}
    for line in content.split(b"\n")[:-1]:
        record = json.loads(line)
        said.pop(record["task"], None)
        if record.get("undo") is not True and record["label"] is not None:
            said[record["task"]] = record["label"]
    expected = set(before) | set(said)
    # A label can be given in several spellings, and a blank one means that the expert is not sure.
    if set(found) - expected or {task for task, label in said.items() if label in CLASSES} - set(found):
        raise WrongAnswerError(f"the answers are {dict(found)}, the journal says {said}")
    for task, label in said.items():
        if label in CLASSES and task not in before and found[task] not in (label, label == CLASSES[0]):
            raise WrongAnswerError(f"the answer on {task!r} is {found[task]!r}, the journal says {label!r}")


def plain_rows(
    content: bytes, ending: str, names: tuple[str, ...], *, numbers: tuple[str, ...] = ()
) -> list[tuple[str, ...]] | None:
    """The columns of these names, a row each, as texts; None where the file may be read in several ways.

    Args:
        content: of the file.
        ending: of its name.
        names: of all columns.
        numbers: the columns that can be numbers in JSON.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if ending in (".csv", ".tsv"):
        return _delimited(text, names)
    if ending in (".json", ".ndjson", ".jsonl"):
        return _records(text, names, by_line=ending != ".json", numbers=numbers)
    return None


def _delimited(text: str, names: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    if "\\" in text or "'" in text or "\0" in text or "\r" in text.replace("\r\n", ""):
        return None  # escapes, other quotes, and lines that end in several ways
    fitting = [table for table in map(_table_reader(text), ",\t;|") if table is not None]
    if len(fitting) != 1:
        return None
    (table,) = fitting
    header = [name.strip() for name in table[0]]
    if sorted(name.lower() for name in header) != sorted(names):
        return None  # columns of other names may change what is read
    places = [header.index(name) for name in names if name in header]
    rows = [tuple(row[place] for place in places) for row in table[1:]]
    if len(places) != len(names) or any(not cell.strip() or cell != cell.strip() for row in rows for cell in row):
        return None
    return rows


def _table_reader(text: str) -> Any:
    def table(mark: str) -> list[list[str]] | None:
        try:
            rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True) if row]
        except csv.Error:
            return None
        return rows if rows and len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])} else None

    return table


def _records(
    text: str, names: tuple[str, ...], *, by_line: bool, numbers: tuple[str, ...]
) -> list[tuple[str, ...]] | None:
    try:
        pieces = [line for line in text.split("\n") if line.strip()] if by_line else [text]
        values = [json.loads(piece, object_pairs_hook=_only_once) for piece in pieces]
    except (ValueError, RecursionError):
        return None
    records = values if by_line else values[0]
    if not isinstance(records, list) or not all(isinstance(one, dict) and set(one) == set(names) for one in records):
        return None
    rows = [tuple(_text_of(one[name], name in numbers) for name in names) for one in records]
    return _only_texts(rows)


def _text_of(value: Any, can_be_number: bool) -> Any:
    """A number as text, where one is expected; anything else as it is."""
    return repr(value) if can_be_number and type(value) in (int, float) else value


def _only_texts(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]] | None:
    whole = all(isinstance(cell, str) and cell.strip() and cell == cell.strip() for row in rows for cell in row)
    return rows if whole and rows else None


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
