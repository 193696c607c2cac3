"""Appen's (CrowdFlower's, Figure Eight's) full report: one row per judgment, or JSON.

A task is ``_unit_id``, a worker ``_worker_id``. Nothing distinguishes questions from the data that
was shown; a question is recognised by its ``<question>_gold`` column, or because its answers differ within a unit; a
column that is the same in all judgments of every unit is not a question. Tainted and rejected judgments do not count;
``_trust`` is not used.

Appen's report as JSON: one unit per line with its judgments.

A task is the ``id`` of a unit, a worker the ``worker_id`` of a judgment in ``results.judgments``, a question a key of
the judgment's ``data``. Unlike in the table, questions are marked as such; the data that was shown, and the gold as
``<question>_gold``, are in the unit's own ``data``. The aggregated report has no judgments.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import ALL, Export, as_text, choices_in_value, shown_names, task_in_record
from rarevote.io.platforms.collector import Collector, collector_of
from rarevote.io.platforms.export_files import Beginning, ExportFiles, Part
from rarevote.io.platforms.json_stream import walk_objects
from rarevote.io.platforms.questions import QuestionSurvey, name_question
from rarevote.io.platforms.table_records import PlatformTable, choices_in_cell, open_table, text_in
from rarevote.io.read.options import ReadOptions

# --------------------------------------------------------------------------------------------------------------------
# the report as JSON


GOLD = "_gold"
TAINTED = "tainted"


def is_unit(record: Any) -> bool:
    """Whether a record is a unit of one of Appen's reports, with or without its judgments."""
    if not isinstance(record, Mapping) or not isinstance(record.get("data"), Mapping):
        return False
    return isinstance(_judgments(record), list) or {"judgments_count", "results"} <= record.keys()


def _judgments(unit: Mapping[str, Any]) -> Any:
    results = unit.get("results")
    return results.get("judgments") if isinstance(results, Mapping) else None


def read_units(part: Part, path: Path, options: ReadOptions) -> Export:
    """Read the judgments of all units of a report; ``path`` is where the export is."""
    collector = Collector(part.title, options)
    has_judgments = False
    for collector.n_records, where, unit in walk_objects(part, "a unit of Appen's report"):
        has_judgments |= isinstance(_judgments(unit), list)
        _read_unit(unit, where, collector)
    if not has_judgments:
        raise InputError(
            f"{part.title}: no unit has results.judgments: an aggregated report does not say who answered what. "
            "Download the full report, as CSV or JSON"
        )
    return collector.finish(
        "appen",
        path,
        no_annotator="Download the full report, with worker_id.",
        no_question="no judgment answers a question",
    )


def _read_unit(unit: Mapping[str, Any], where: str, collector: Collector) -> None:
    task = task_in_record(unit, where)
    where = f"{where} (unit {task})"
    find = collector.finder(unit.get("data"), unit)
    collector.item(task, find)
    judgments = _judgments(unit)
    for judgment in judgments if isinstance(judgments, list) else []:
        _read_judgment(judgment, task, where, collector, find)
    wanted = collector.options.question
    question = next(iter(collector.questions), None) if wanted is None else wanted
    if collector.options.gold_column is None and question is not None:
        known = find(question + GOLD)
        right = [] if known is base.ABSENT else _right_answers(known, f"{where}: {question}{GOLD}")
        if right:
            collector.gold(task, right)
    collector.named_columns(task, find, where, split_gold=_right_answers)


def _read_judgment(judgment: Any, task: str, where: str, collector: Collector, find: Any) -> None:
    if not isinstance(judgment, Mapping) or not isinstance(judgment.get("data"), Mapping):
        raise InputError(f"{where}: a judgment is not an object with data")
    given = judgment["data"]
    # Keys with a prefix are Appen's own: clicks and times.
    asked = [str(name) for name in given if not str(name).startswith("_")]
    collector.answering(task, base.shown_text(judgment.get("worker_id")) or None)
    for name in asked:
        collector.note(name, given[name])
    taken = [name for name in asked if collector.takes(name)]
    if judgment.get("tainted"):
        collector.leave_out(TAINTED)
    elif judgment.get("rejected"):
        collector.leave_out(base.REJECTED)
    elif taken:
        worker = as_text(judgment.get("worker_id"), f"{where}: worker_id")
        answer = given[taken[0]]
        choices = choices_in_value(answer, f"{where}: {taken[0]}")
        collector.vote(task, worker, choices, where, find, empty_is_no=isinstance(answer, list))
    else:
        collector.leave_out(base.NO_ANSWER)  # it was not asked: another answer made it unnecessary


def _right_answers(value: Any, where: str) -> list[str]:
    """All right answers: a list, or lines."""
    if isinstance(value, str):
        return [line.strip() for line in value.split("\n") if line.strip()]
    return choices_in_value(value, where)


# --------------------------------------------------------------------------------------------------------------------
# the report as a table


_REASON = "_gold_reason"
_UNIT, _WORKER, _TAINTED, _REJECTED = "_unit_id", "_worker_id", "_tainted", "_rejected"
_TRUE = frozenset({"true", "1", "yes"})
_SAMPLED_UNITS = 20_000  # units used to find columns that differ within a unit; their cells are kept in memory

_split = partial(choices_in_cell, separator="\n")


def recognises(beginning: Beginning) -> bool:
    """Whether a file is one of Appen's reports, by its header or its first units."""
    if beginning.records:
        return all(map(is_unit, beginning.records))
    header = set(beginning.header)
    return _UNIT in header and bool({_WORKER, "_trust", "_trusted_judgments"} & header)


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the judgments."""
    part = files.only()
    if part.kind == "json":
        return read_units(part, files.path, options)
    table = open_table(part)
    if _WORKER not in table.header and "_trusted_judgments" in table.header:
        raise InputError(
            f"{table.title}: this is Appen's aggregated report, which does not say who answered what; "
            "download the full report"
        )
    table.need("the task", _UNIT)
    question, collector = collector_of(_survey(table, options.question), options)
    _read_rows(table, question, collector)
    return collector.finish("appen", files.path, no_annotator="Download the full report, with _worker_id.")


def _survey(table: PlatformTable, wanted: str | None) -> QuestionSurvey:
    """Columns that hold answers, and what was answered."""
    survey = QuestionSurvey(table.title, wanted, marked=False)
    for name in _questions(table, wanted):
        survey.found(name)
    if survey.is_open:
        for _, row in table.rows():
            for name in survey.names:
                survey.note(name, row[name].split("\n"), row[_UNIT], row.get(_WORKER))
    return survey


def _questions(table: PlatformTable, wanted: str | None) -> list[str]:
    """Columns that hold answers."""
    own = [name for name in table.header if name and not name.startswith("_") and not name.endswith((GOLD, _REASON))]
    if wanted is not None and (wanted != ALL or wanted in own):
        if wanted not in own:
            raise InputError(f"{table.title}: no question {wanted!r}; it has {shown_names(own)}")
        return [name for name in own if name == wanted or f"{name}{GOLD}" in table.header]
    found = {name for name in own if f"{name}{GOLD}" in table.header} | _varying(table, own)
    if not found:
        raise InputError(
            f"{table.title}: cannot find the column of answers. No column has a {GOLD} column beside it or differs "
            f"within a unit. Name it: {name_question('...')}; the columns are {shown_names(own)}"
        )
    return [name for name in own if name in found]


def _varying(table: PlatformTable, names: list[str]) -> set[str]:
    """Columns with two different values in one unit: the data of a unit is the same in all its rows."""
    first: dict[str, dict[str, str]] = {}
    varying: set[str] = set()
    for _, row in table.rows():
        unit = row[_UNIT]
        if unit not in first and len(first) == _SAMPLED_UNITS:
            continue
        seen = first.setdefault(unit, {name: row[name] for name in names})
        varying.update(name for name in names if seen[name] != row[name])
    return varying


def _read_rows(table: PlatformTable, question: str, collector: Collector) -> None:
    table.need("the answer", question)
    table.need("the worker", _WORKER, advice="Download the full report")
    table.needed.update(name for name in (_TAINTED, _REJECTED) if name in table.header)
    for where, row in table.rows():
        collector.n_records += 1
        task = row[_UNIT].strip()
        if not task:
            raise InputError(f"{where} has no _unit_id")
        find = collector.finder(row)
        collector.item(task, find)
        if collector.options.gold_column is None and (known := text_in(row, question + GOLD)):
            # Several lines are several right answers: then there is no single gold label.
            collector.gold(task, _split(known, f"{where}, {question}{GOLD}"))
        collector.named_columns(task, find, where, _split)
        if text_in(row, _TAINTED).lower() in _TRUE:
            collector.leave_out(TAINTED)
        elif text_in(row, _REJECTED).lower() in _TRUE:
            collector.leave_out(base.REJECTED)
        else:
            choices = _split(row[question], f"{where}, {question}")
            collector.vote(task, row[_WORKER].strip() or None, choices, where, find, empty_is_no=False)
