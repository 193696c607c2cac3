"""Files in: votes and known labels from CSV, JSON, Parquet, Arrow and spreadsheets, of any number and size.

What a file is, is found in :mod:`rarevote.io.read.sources`; DuckDB reads and encodes it
(:mod:`rarevote.io.read.encode`). Nothing is ever fetched: DuckDB's extensions are switched off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import is_missing
from rarevote.errors import ColumnsError, InputError, ParameterError, warn_user
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns
from rarevote.io.read.detect import Found
from rarevote.io.read.encode import (
    Choice,
    encode_rows,
    from_json_text,
    is_large,
    loaded,
    rows_without_task,
    shown_values,
)
from rarevote.io.read.open import open_sources
from rarevote.io.read.sources import FileTable, place_of_rows

Inputs = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class LabelFiles:
    """Votes from files, and what was carried along.

    Attributes:
        annotations: the encoded crowd.
        shown: for each column named by ``show`` its text per task, in the order of ``annotations.tasks``.
    """

    annotations: Annotations
    shown: dict[str, NDArray[Any]] = field(default_factory=dict)


def read_annotations_file(path: Inputs, **options: Any) -> Annotations:
    """Encode files with a task, a worker and a label column; options as :func:`read_label_files` takes them."""
    return read_label_files(path, **options).annotations


def read_label_files(
    inputs: Inputs,
    *,
    columns: Mapping[str, str] | None = None,
    file_format: str | None = None,
    has_header: bool = True,
    sheet: str | None = None,
    wide: bool = False,
    show: Sequence[str] = (),
    found: Found | None = None,
    **policies: Any,
) -> LabelFiles:
    """Encode the votes of files, and carry columns along.

    Args:
        inputs: files (``.csv``, ``.tsv``, ``.txt``, ``.json``, ``.ndjson``, ``.jsonl``, each also ``.gz`` or ``.zst``;
            ``.parquet``; ``.arrow`` and ``.xlsx`` with their extras), patterns, folders, or "-" for standard input.
        columns: which column is which, where the usual names do not tell.
        file_format: the format, where the name does not tell.
        has_header: False for delimited text without column names; the columns are then called 1, 2, 3 ...
        sheet: which sheet of a spreadsheet.
        wide: the tables have one row per task and one column per annotator; an empty cell is no vote. The task is the
            first column unless ``columns`` names it.
        show: columns to carry along, the first value of each task that is not blank. A name with commas that is no
            column is taken as several names.
        found: the file, if somebody has looked at it already.
        **policies: ``classes``, ``abstain``, ``keep`` and ``missing`` of :meth:`Annotations.from_arrays`.
    """
    wanted = None if wide else [*(columns or {}).values(), *show]
    with open_sources(
        inputs, file_format=file_format, has_header=has_header, sheet=sheet, wanted=wanted, found=found
    ) as sources:
        shown = _shown_columns(sources, show)
        choose = _choose_wide if wide else _choose_long
        choices = [choose(source, columns, shown) for source in sources]
        _say_partitions(sources, choices)

        def place(rows: NDArray[np.int64]) -> str:
            # A row of a wide table is many votes: its own number is found by looking again.
            return place_of_rows(sources, rows_without_task(sources, choices) if wide else rows.tolist())

        with loaded(sources, choices) as database:
            encoded, ready = _titled(sources, lambda: encode_rows(database, out_of_core=is_large(sources)))
        crowd = Annotations.from_encoded(encoded, ready=ready, place_of_row=place, **policies)
        del encoded
        carried = {}
        for name in shown:
            first = shown_values(sources, [choice.roles["task"] for choice in choices], name)
            texts = np.empty(crowd.n_tasks, dtype=object)
            texts[:] = [first.get(task, "") for task in crowd.tasks.tolist()]
            carried[name] = texts
    return LabelFiles(crowd, carried)


def _titled(sources: Sequence[FileTable], compute: Any) -> Any:
    """Names the file in messages that are about its values."""
    try:
        return compute()
    except InputError as error:
        raise InputError(f"{sources[0].title}: {error}") from None


def _say_partitions(sources: Sequence[FileTable], choices: Sequence[Choice]) -> None:
    """Say which roles the names of folders fill, because no column does."""
    for source, choice in zip(sources, choices, strict=True):
        for role, name in choice.roles.items():
            if name in source.partitions:
                warn_user(f"{source.title}: no column {name!r}; the {role} is what the folder says ({name}=...)")
                return


def _choose_long(source: FileTable, columns: Mapping[str, str] | None, shown: Sequence[str]) -> Choice:
    del shown
    return Choice(find_columns(source.columns, columns, where=source.title))


def _choose_wide(source: FileTable, columns: Mapping[str, str] | None, shown: Sequence[str]) -> Choice:
    chosen = dict(columns or {})
    if set(chosen) - {"task"}:
        raise ParameterError("of a wide table only the task can be named: its other columns are the annotators")
    if not source.columns:
        raise InputError(f"{source.title}: no columns")
    task = chosen.get("task", source.columns[0])
    if task not in source.columns:
        raise ColumnsError(f"{source.title} has no column {task!r} (for task)")
    answers = [name for name in source.columns if name not in (task, *shown, *source.partitions)]
    if not answers:
        raise ColumnsError(f"{source.title}: a wide table needs a column for each annotator beside {task!r}")
    return Choice({"task": task}, answers)


def _shown_columns(sources: Sequence[FileTable], show: Sequence[str]) -> list[str]:
    known = {name for source in sources for name in source.columns}
    names = [part.strip() for name in show for part in ([name] if name in known else name.split(",")) if part.strip()]
    for name in names:
        if name not in known:
            listed = ", ".join(map(repr, sources[0].columns[:30]))
            raise ColumnsError(f"{sources[0].title} has no column {name!r} to show; it has {listed}")
    return list(dict.fromkeys(names))


# --------------------------------------------------------------------------------------------------------------------
# known labels


def read_truth_file(
    path: Inputs, *, columns: Mapping[str, str] | None = None, has_header: bool = True
) -> dict[Any, Any]:
    """Known labels from files with a task and a label column; without a header they are called 1, 2, 3 ..."""
    from rarevote.io.read.frames import truth_from_pairs

    with open_sources(path, has_header=has_header, wanted=list((columns or {}).values())) as sources:
        title = sources[0].title
        choices = [
            Choice(find_columns(source.columns, columns, aliases=TRUTH_ALIASES, where=source.title))
            for source in sources
        ]
        _say_partitions(sources, choices)
        with loaded(sources, choices) as database:
            rows = database.execute("SELECT task, label FROM rows ORDER BY rowid").fetchall()
        tasks, labels = [row[0] for row in rows], [row[1] for row in rows]
        if sources[0].form == "json":
            tasks, labels = (
                _titled(sources, lambda texts=texts, role=role: _decoded(texts, role))
                for texts, role in ((tasks, "task"), (labels, "label"))
            )
        absent = [number for number, pair in enumerate(zip(tasks, labels, strict=True)) if any(map(is_missing, pair))]
        if absent:
            place = place_of_rows(sources, absent[:5])
            raise InputError(f"{title}: {len(absent):,} rows have no task or no label ({place})")
    try:
        return truth_from_pairs(tasks, labels)
    except InputError as error:
        raise InputError(f"{title}: {error}") from None


def _decoded(texts: Sequence[str | None], role: str) -> list[Any]:
    return from_json_text(["null" if text is None else text for text in texts], role)
