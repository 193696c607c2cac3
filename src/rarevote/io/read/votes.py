"""Files in: votes, gold and truth from CSV, JSON, Parquet, Arrow and spreadsheets, of any number and size.

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
from rarevote.crowd.names import as_name_array, is_missing
from rarevote.crowd.population import population, with_items
from rarevote.crowd.words import listed
from rarevote.errors import ColumnsError, InputError, how, warn_user
from rarevote.io.read.columns import TRUTH_ALIASES, find_columns, has_roles, name_columns
from rarevote.io.read.detect import FileInfo
from rarevote.io.read.encode import (
    Choice,
    encode_rows,
    from_json_text,
    is_large,
    loaded,
    rows_without_task,
    shown_values,
    tasks_without_votes,
)
from rarevote.io.read.results import refuse_result
from rarevote.io.read.sources import FileTable, open_sources, place_of_rows
from rarevote.io.read.wide import WideTable, is_model_name, recognise_wide, wide_table

Inputs = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class LabelFiles:
    """Votes from files, and what was carried along.

    Attributes:
        annotations: the encoded crowd.
        shown: for each column named by ``show`` its text per item, in the order of the population.
        gold: labels by task, as ``gold_column`` has them.
        models: columns of a wide table that are models, not people.
        notes: what a person should know about how it was read.
    """

    annotations: Annotations
    shown: dict[str, NDArray[Any]] = field(default_factory=dict)
    gold: dict[Any, Any] = field(default_factory=dict)
    models: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


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
    gold_column: str | None = None,
    model_columns: Sequence[str] = (),
    found: FileInfo | None = None,
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
        wide: the tables have one row per task and one column per annotator; an empty cell is no vote, and a row of
            empty cells is an item without votes. The task is the first column unless ``columns`` names it. Tables are
            also known as such by themselves (:mod:`rarevote.io.read.wide`), and then the task is the first column
            without any value twice.
        show: columns to carry along, the first value of each task that is not blank. A name with commas that is no
            column is taken as several names.
        gold_column: the column with gold.
        model_columns: columns of a wide table that are models; others are known by their names.
        found: the file, if somebody has looked at it already.
        **policies: ``classes``, ``abstain``, ``keep`` and ``missing`` of :meth:`Annotations.from_arrays`.
    """
    wanted = None if wide else [*(columns or {}).values(), *show, *([gold_column] if gold_column else [])]
    with open_sources(
        inputs, file_format=file_format, has_header=has_header, sheet=sheet, wanted=wanted, found=found
    ) as sources:
        shown = _shown_columns(sources, show)
        if gold_column is not None:
            _check_column(sources, gold_column, "with gold")
        tables = _wide_tables(sources, columns, shown, gold_column, wide=wide)
        choices = [table.choice for table in tables] if tables else [_choose_long(one, columns) for one in sources]
        _say_partitions(sources, choices)

        def place(rows: NDArray[np.int64]) -> str:
            # A row of a wide table is many votes: its own number is found by looking again.
            return place_of_rows(sources, rows_without_task(sources, choices) if tables else rows.tolist())

        with loaded(sources, choices) as database:
            encoded, ready = _titled(sources, lambda: encode_rows(database, out_of_core=is_large(sources)))
            unvoted = _titled(sources, lambda: tasks_without_votes(database, sources, choices)) if tables else []
        crowd = Annotations.from_encoded(encoded, ready=ready, place_of_row=place, **policies)
        del encoded
        crowd = with_items(crowd, unvoted) if unvoted else crowd
        carried = {}
        tasks = [choice.roles["task"] for choice in choices]
        gold = {} if gold_column is None else shown_values(sources, tasks, gold_column, single=True)
        for name in shown:
            first = shown_values(sources, tasks, name)
            carried[name] = as_name_array([first.get(task, "") for task in population(crowd).tolist()])
    annotators = {name for table in tables for name in table.annotators}
    models = _models(annotators, model_columns, sources[0].title)
    notes = tables[0].notes(found=not wide, gold=gold_column) if tables else []
    if models:
        notes.append(f"marked as models, not people: {listed(sorted(models), 8)}")
    return LabelFiles(crowd, carried, dict(gold), models, tuple(notes))


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


def _choose_long(source: FileTable, columns: Mapping[str, str] | None) -> Choice:
    by_number = name_columns({"worker": "1", "task": "2", "label": "3"})
    headless = how(f"has_header=False, {by_number}", f"--no-header {by_number}")
    otherwise = f". No header line? {headless}. One column per annotator? {how('wide=True', '--wide')}"
    return Choice(find_columns(source.columns, columns, where=source.title, otherwise=otherwise))


def _wide_tables(
    sources: Sequence[FileTable],
    columns: Mapping[str, str] | None,
    shown: Sequence[str],
    gold: str | None,
    *,
    wide: bool,
) -> list[WideTable]:
    """The tables as wide ones, where somebody says so or nothing else fits; none if they are not."""
    if not wide and all(has_roles(source.columns, columns) for source in sources):
        return []
    for source in sources:
        refuse_result(source)
    if wide:
        return [wide_table(source, columns, shown, gold) for source in sources]
    found = [recognise_wide(source, columns, shown, gold) for source in sources]
    return [table for table in found if table is not None] if all(found) else []


def _models(annotators: set[str], named: Sequence[str], title: str) -> frozenset[str]:
    """Which annotators of a wide table are models: those named by hand, and those called so."""
    for name in named:
        if name not in annotators:
            raise ColumnsError(f"{title} has no annotator {name!r}; there is {', '.join(sorted(annotators)) or 'none'}")
    return frozenset(named) | {name for name in annotators if is_model_name(name)}


def _check_column(sources: Sequence[FileTable], name: str, what: str) -> None:
    if not any(name in source.columns for source in sources):
        has = ", ".join(map(repr, sources[0].columns[:30]))
        raise ColumnsError(f"{sources[0].title} has no column {name!r} {what}; it has {has}")


def _shown_columns(sources: Sequence[FileTable], show: Sequence[str]) -> list[str]:
    known = {name for source in sources for name in source.columns}
    names = [part.strip() for name in show for part in ([name] if name in known else name.split(",")) if part.strip()]
    for name in names:
        _check_column(sources, name, "to show")
    return list(dict.fromkeys(names))


# --------------------------------------------------------------------------------------------------------------------
# gold and truth


def read_truth_file(
    path: Inputs, *, columns: Mapping[str, str] | None = None, has_header: bool = True
) -> dict[Any, Any]:
    """Gold or truth from files with a task and a label column; without a header they are called 1, 2, 3 ..."""
    from rarevote.io.read.frames import truth_from_pairs

    with open_sources(path, has_header=has_header, wanted=list((columns or {}).values())) as sources:
        title = sources[0].title
        choices = [
            Choice(find_columns(source.columns, columns, aliases=TRUTH_ALIASES, where=source.title, choosable=False))
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
