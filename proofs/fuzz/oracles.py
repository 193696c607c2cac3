"""What an altered file says, read in plain Python: the answer that our readers must give, if they give one.

Where the file can be read in more than one way (two delimiters fit, a key stands twice, a quote is escaped by a
backslash) nothing is expected: to refuse it and to read it either way are both right.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import rarevote
from rarevote.crowd.annotations import Annotations
from rarevote.io.write.columns import write_columns

Votes = Counter[tuple[Any, ...]]
ROLES = ("task", "worker", "label")
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


def plain_rows(content: bytes, ending: str, names: tuple[str, ...]) -> list[tuple[str, ...]] | None:
    """The columns of these names, a row each, as texts; None where the file may be read in several ways."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if ending in (".csv", ".tsv"):
        return _delimited(text, names)
    if ending in (".json", ".ndjson", ".jsonl"):
        return _records(text, names, by_line=ending != ".json")
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


def _records(text: str, names: tuple[str, ...], *, by_line: bool) -> list[tuple[str, ...]] | None:
    try:
        pieces = [line for line in text.split("\n") if line.strip()] if by_line else [text]
        values = [json.loads(piece, object_pairs_hook=_only_once) for piece in pieces]
    except (ValueError, RecursionError):
        return None
    records = values if by_line else values[0]
    if not isinstance(records, list) or not all(isinstance(one, dict) and set(one) == set(names) for one in records):
        return None
    rows = [tuple(one[name] for name in names) for one in records]
    return _only_texts(rows)


def _only_texts(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]] | None:
    whole = all(isinstance(cell, str) and cell.strip() and cell == cell.strip() for row in rows for cell in row)
    return rows if whole and rows else None


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
