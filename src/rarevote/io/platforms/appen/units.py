"""Appen's report as JSON: one unit per line with its judgments.

A task is the ``id`` of a unit, a worker the ``worker_id`` of a judgment in ``results.judgments``, a question a key of
the judgment's ``data``. Unlike in the table, questions are marked as such; what was shown, and the gold as
``<question>_gold``, stand in the unit's own ``data``. The aggregated report has no judgments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, Options, as_text, choices_in_value
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import Part

GOLD = "_gold"
TAINTED = "tainted"


def is_unit(record: Any) -> bool:
    """Whether a record is a unit of one of Appen's reports, with its judgments or without."""
    if not isinstance(record, Mapping) or not isinstance(record.get("data"), Mapping):
        return False
    return isinstance(_judgments(record), list) or {"judgments_count", "results"} <= record.keys()


def _judgments(unit: Mapping[str, Any]) -> Any:
    results = unit.get("results")
    return results.get("judgments") if isinstance(results, Mapping) else None


def read_units(part: Part, path: Path, options: Options) -> Export:
    """Read the judgments of all units of a report; ``path`` is where the export is."""
    collector = Collector(part.title, options)
    has_judgments = False
    for number, unit in walk_json(part, options.encoding):
        collector.n_records = number
        where = f"{part.title}: record {number:,}"
        if not isinstance(unit, Mapping):
            raise InputError(f"{where} is a {type(unit).__name__}, not a unit of Appen's report")
        has_judgments |= isinstance(_judgments(unit), list)
        _read_unit(unit, where, collector)
    if not has_judgments:
        raise InputError(
            f"{part.title}: no unit has results.judgments: an aggregated report no longer says who answered what. "
            "Download the full report, as CSV or JSON"
        )
    return collector.finish(
        "appen",
        path,
        no_annotator="Download the full report, with worker_id.",
        no_question="no judgment answers a question",
    )


def _read_unit(unit: Mapping[str, Any], where: str, collector: Collector) -> None:
    task = as_text(unit.get("id"), f"{where}: id")
    if task is None:
        raise InputError(f"{where} has no id")
    where = f"{where} (unit {task})"
    find = collector.finder(unit.get("data"), unit)
    judgments = _judgments(unit)
    for judgment in judgments if isinstance(judgments, list) else []:
        _read_judgment(judgment, task, where, collector, find)
    if not judgments:
        collector.leave_out("unit without any judgment")
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
    # Keys with a mark before them are Appen's own: what was clicked, how long it took.
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
        collector.leave_out(base.NO_ANSWER)  # it was not put: another answer made it needless


def _right_answers(value: Any, where: str) -> list[str]:
    """All that would be right: a list, or lines."""
    if isinstance(value, str):
        return [line.strip() for line in value.split("\n") if line.strip()]
    return choices_in_value(value, where)
