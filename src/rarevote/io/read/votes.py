"""Reading of files: votes, gold and truth from CSV, JSON, Parquet, Arrow and spreadsheets, of any number and size.

:mod:`rarevote.io.read.sources` finds the format of a file; DuckDB reads and encodes it
(:mod:`rarevote.io.read.encode`). Nothing is downloaded: DuckDB's extensions are switched off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array
from rarevote.crowd.population import population, with_items
from rarevote.crowd.words import listed
from rarevote.errors import ColumnsError, InputError, how, naming
from rarevote.io.read.cells import refuse_several
from rarevote.io.read.columns import find_columns, has_roles, ignored_weights, name_columns
from rarevote.io.read.crowd import Crowd, called_models, title_of
from rarevote.io.read.detect import FileInfo
from rarevote.io.read.encode import (
    Choice,
    encode_rows,
    is_large,
    loaded,
    rows_without_task,
    shown_values,
    tasks_without_votes,
)
from rarevote.io.read.labels import CHOICE, ITEM
from rarevote.io.read.multilabel import TickTable, find_form
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.persons import by_person, check_persons, person_of
from rarevote.io.read.results import refuse_result
from rarevote.io.read.sources import FileTable, asking, open_sources, place_of_rows
from rarevote.io.read.table import TableRows, read_table, say_filled, truth_columns
from rarevote.io.read.wide import (
    WideTable,
    column_profiles,
    have_points,
    is_model_name,
    recognise_wide,
    wide_table,
    without_point,
)

Inputs = str | Path | Sequence[str | Path]


def read_annotations_file(path: Inputs, **options: Any) -> Annotations:
    """Encode files with a task, a worker and a label column; options as fields of :class:`ReadOptions`."""
    return read_label_files(path, **options).annotations


def read_label_files(
    inputs: Inputs, options: ReadOptions | None = None, *, found: FileInfo | None = None, **given: Any
) -> Crowd:
    """Encode the votes of files, with columns to show.

    Args:
        inputs: files (``.csv``, ``.tsv``, ``.txt``, ``.json``, ``.ndjson``, ``.jsonl``, each also ``.gz`` or ``.zst``;
            ``.parquet``; ``.arrow`` and ``.xlsx`` with their extras), patterns, folders, or "-" for standard input.
        options: how to read. In a wide table an empty cell is not a vote, and a row of empty cells is an item without
            votes. These tables are also detected (:mod:`rarevote.io.read.wide`), and then the task is the
            first column without duplicates. For a shown column, the first value of each task that is not blank
            counts; a name with commas that is not a column is read as several names.
        found: the file, if it was already inspected.
        **given: fields of :class:`ReadOptions`, instead of ``options``.
    """
    options = options or ReadOptions(**given)
    options = by_person(options) if options.worker_from else options
    columns, wide, gold_column = options.columns, options.is_wide, options.gold_column
    wanted = None if wide else [*(columns or {}).values(), *options.show, *([gold_column] if gold_column else [])]
    with open_sources(inputs, options, wanted=wanted, found=found) as sources:
        if options.worker_from:
            titles = [file.title for source in sources for file in source.files]
            check_persons({title: person_of(title, options.worker_from) for title in titles}, options.worker_from)
        shown = _shown_columns(sources, options.show)
        if gold_column is not None:
            _check_column(sources, gold_column, "with gold")
        if options.multilabel is not False and columns is None and all(map(_holds_pairs, sources)):
            # As `rarevote convert --multilabel` writes them: the task is the pair, and the item has its own column.
            options = replace(options, multilabel=True, columns={"task": ITEM, "choice": CHOICE})
        if options.multilabel:
            return _read_several(inputs, sources, options, shown)
        tables = _wide_tables(sources, options, shown)
        points = have_points(tables)
        choices = [replace(table.choice, without_points=points) for table in tables] or [
            _choose_long(one, columns) for one in sources
        ]
        say_filled(sources, (choice.roles for choice in choices))

        def place(rows: NDArray[np.int64]) -> str:
            # A row of a wide table is many votes: its number is found by reading again.
            return place_of_rows(sources, rows_without_task(sources, choices) if tables else rows.tolist())

        with loaded(sources, choices) as database, naming(sources[0].title):
            encoded, ready = encode_rows(database, out_of_core=is_large(sources))
            unvoted = tasks_without_votes(sources, choices) if tables else []
        if options.multilabel is None:
            refuse_several(encoded["label"][1].tolist(), sources[0].title)
        crowd = Annotations.from_encoded(encoded, ready=ready, place_of_row=place, **options.policies)
        del encoded
        crowd = with_items(crowd, unvoted) if unvoted else crowd
        carried = {}
        tasks = [choice.roles["task"] for choice in choices]
        gold = {} if gold_column is None else shown_values(sources, tasks, gold_column, single=True)
        gold = _as_voted(gold, crowd.classes.tolist())
        for name in shown:
            first = shown_values(sources, tasks, name)
            carried[name] = as_name_array([first.get(task, "") for task in population(crowd).tolist()])
    annotators = {name for table in tables for name in table.annotators}
    models = _models(annotators, options.prediction_columns, sources[0].title)
    notes = tables[0].notes(found=not wide, gold=gold_column) if tables else []
    notes += _weights_beside(sources, choices, [*shown, gold_column or ""])
    if models:
        notes.append(f"marked as models, not people: {listed(sorted(models), 8)}")
    models |= called_models(crowd)
    return Crowd(crowd, title_of(inputs), carried, dict(gold), models, tuple(notes), has_header=options.has_header)


def _read_several(inputs: Inputs, sources: Sequence[FileTable], options: ReadOptions, shown: Sequence[str]) -> Crowd:
    """The crowd of tables with several choices in an answer: one yes/no problem per choice."""
    gold_column = options.gold_column
    tables = [_tick_table(source, options, shown) for source in sources]
    if len({table.form for table in tables}) > 1:
        raise InputError(f"{title_of(inputs)}: the files store their choices in different ways; read them one by one")
    choices = [table.choice for table in tables]
    say_filled(sources, (choice.roles for choice in choices))
    unpivoted = any(choice.answers for choice in choices)
    wide = unpivoted and tables[0].form == "cells"

    def place(rows: NDArray[np.int64]) -> str:
        return place_of_rows(sources, rows_without_task(sources, choices) if unpivoted else rows.tolist())

    tasks = [choice.roles["task"] for choice in choices]
    known = {} if gold_column is None else shown_values(sources, tasks, gold_column, single=True)
    with naming(sources[0].title):
        with loaded(sources, choices) as database:
            encoded, _ = encode_rows(database, out_of_core=is_large(sources))
        unvoted = tasks_without_votes(sources, choices) if wide else []
        problems = tables[0].problems(encoded, options, gold=known, unvoted=unvoted, place=place)
    carried = problems.shown({name: shown_values(sources, tasks, name) for name in shown})
    annotators = {name for table in tables for name in table.answers} if wide else set()
    models = _models(annotators, options.prediction_columns, sources[0].title) | called_models(problems.annotations)
    return Crowd(
        problems.annotations,
        title_of(inputs),
        carried,
        problems.gold,
        models,
        (*problems.notes, *_weights_beside(sources, choices, [*shown, gold_column or ""])),
        has_header=options.has_header,
        choices=problems.choices,
    )


def _weights_beside(sources: Sequence[FileTable], choices: Sequence[Choice], others: Sequence[str]) -> list[str]:
    """The note on columns that look like weights of the votes; ``others`` have another use."""
    used = {*others, *(name for choice in choices for name in (*choice.roles.values(), *choice.answers))}
    return ignored_weights(dict.fromkeys(name for source in sources for name in source.columns), used)


def _holds_pairs(source: FileTable) -> bool:
    """Whether every task of a table consists of its item and its choice, which have their own columns."""
    if not {"task", ITEM, CHOICE} <= set(source.columns):
        return False
    task, item, choice = (source.text(name) for name in ("task", ITEM, CHOICE))
    with asking(source) as ask:
        (differs,) = ask(
            f"SELECT count(*) FROM (SELECT 1 FROM {source.reader} WHERE ({task}) IS DISTINCT FROM "
            f"(({item}) || ':' || ({choice})) LIMIT 1)"
        ).fetchone()
    return not differs


def _tick_table(source: FileTable, options: ReadOptions, shown: Sequence[str]) -> TickTable:
    gold = options.gold_column
    if options.is_wide:
        wide = wide_table(source, options, shown)
        return TickTable("cells", {"task": wide.task}, wide.annotators)

    def values() -> dict[str, frozenset[str]]:
        return {name: one.values for name, one in column_profiles(source)[1].items()}

    taken = [*shown, *([gold] if gold else [])]
    return find_form(source.columns, options, columns=options.columns, where=source.title, taken=taken, values=values)


def _choose_long(source: FileTable, columns: Mapping[str, str] | None) -> Choice:
    by_number = name_columns({"worker": "1", "task": "2", "label": "3"})
    headless = how(f"has_header=False, {by_number}", f"--no-header {by_number}")
    otherwise = f". No header line? {headless}. One column per annotator? {how('wide=True', '--wide')}"
    return Choice(find_columns(source.columns, columns, where=source.title, otherwise=otherwise))


def _wide_tables(sources: Sequence[FileTable], options: ReadOptions, shown: Sequence[str]) -> list[WideTable]:
    """The tables as wide tables, if the user says so or nothing else matches; none otherwise."""
    columns, wide = options.columns, options.is_wide
    if not wide and all(has_roles(source.columns, columns) for source in sources):
        return []
    for source in sources:
        refuse_result(source)
    if wide:
        return [wide_table(source, options, shown) for source in sources]
    found = [recognise_wide(source, columns, shown, options.gold_column) for source in sources]
    return [table for table in found if table is not None] if all(found) else []


def _as_voted(gold: Mapping[Any, str], classes: Sequence[Any]) -> dict[Any, str]:
    """Gold as the votes are written: pandas writes the label 1 as 1.0 in a column with gaps."""
    known = set(classes)
    return {
        task: without_point(label) if label not in known and without_point(label) in known else label
        for task, label in gold.items()
    }


def _models(annotators: set[str], named: Sequence[str], title: str) -> frozenset[str]:
    """Which annotators of a wide table are models: those that the user names, and those with names of models."""
    for name in named:
        if name not in annotators:
            raise ColumnsError(
                f"{title} has no annotator {name!r}; the annotators are {', '.join(sorted(annotators)) or 'none'}"
            )
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
    path: Inputs,
    *,
    columns: Mapping[str, str] | None = None,
    prefer: Mapping[str, str] | None = None,
    has_header: bool = True,
) -> dict[Any, Any]:
    """Gold or truth from files with a task and a label column; without a header they are called 1, 2, 3 ...

    See for ``columns`` and ``prefer``: :func:`rarevote.io.read.table.truth_columns`.
    """
    from rarevote.io.read.frames import truth_from_pairs

    table = read_truth_table(path, columns=columns, prefer=prefer, has_header=has_header)
    with naming(table.title):
        return truth_from_pairs(table.tasks, table.labels)


def read_truth_table(
    path: Inputs,
    *,
    columns: Mapping[str, str] | None = None,
    prefer: Mapping[str, str] | None = None,
    has_header: bool = True,
) -> TableRows:
    """The rows of files of gold or truth; a task can occur more than once."""
    with open_sources(path, ReadOptions(has_header=has_header), wanted=None) as sources:
        table = read_table(sources, truth_columns(sources, columns, prefer))
        table.refuse_missing("task or no label", "task", "label")
    return table
