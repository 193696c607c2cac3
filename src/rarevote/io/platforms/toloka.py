"""Toloka's TSV: one row per answer.

A task is ``ASSIGNMENT:task_id``, or its ``INPUT:`` columns where that was not exported; a worker
``ASSIGNMENT:worker_id``; a question an ``OUTPUT:`` column; a gold label the ``GOLDEN:`` column of the same name.
``ASSIGNMENT:status`` decides: approved and submitted answers count, expired ones are empty and come again.
"""

from __future__ import annotations

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export
from rarevote.io.platforms.collector import Collector, collector_of
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.questions import QuestionSurvey
from rarevote.io.platforms.table_records import (
    Finder,
    PlatformTable,
    cell_at,
    choices_in_cell,
    json_in_cell,
    open_table,
    task_in,
)
from rarevote.io.read.options import ReadOptions

_INPUT, _OUTPUT, _GOLDEN, _ASSIGNMENT = "INPUT:", "OUTPUT:", "GOLDEN:", "ASSIGNMENT:"
_TASK = f"{_ASSIGNMENT}task_id"
_WORKER = (f"{_ASSIGNMENT}worker_id", f"{_ASSIGNMENT}user_id")
_WITH_WORKERS = f"Download the results with {_WORKER[0]}"
_CONFIDENCE = "CONFIDENCE:"  # beside the answers of Toloka's own aggregation
_COUNTED = frozenset({"", "APPROVED", "ACCEPTED", "SUBMITTED"})
_REASONS = {"REJECTED": base.REJECTED, "SKIPPED": base.SKIPPED, "EXPIRED": "expired", "ACTIVE": "not yet submitted"}


def recognises(beginning: Beginning) -> bool:
    """Whether a header is that of Toloka's results."""
    return any(name.startswith(_OUTPUT) for name in beginning.header) and any(
        name.startswith((_ASSIGNMENT, _INPUT)) for name in beginning.header
    )


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the rows."""
    table = open_table(files.only())
    if not table.beginning_with(_OUTPUT):
        raise InputError(f"{table.title}: not Toloka's results: no column begins with {_OUTPUT}")
    if table.beginning_with(_CONFIDENCE) and table.find(*_WORKER) is None:
        raise InputError(
            f"{table.title}: these are Toloka's aggregated results, which no longer say who answered what; "
            "download the results of the pool instead"
        )
    question, collector = collector_of(_survey(table, options.question), options)
    _read_rows(table, question, collector)
    return collector.finish("toloka", files.path, no_annotator=f"{_WITH_WORKERS}.")


def _survey(table: PlatformTable, wanted: str | None) -> QuestionSurvey:
    """The outputs of a project and what was answered; it may have some that nobody used."""
    survey = QuestionSurvey(table.title, wanted, _OUTPUT)
    places = {table.header[place].removeprefix(_OUTPUT): place for place in table.beginning_with(_OUTPUT)}
    for name in places:
        survey.found(name)
    if survey.is_open and len(places) > 1:
        table.needed.update(places.values())
        task_at, inputs = table.find(_TASK), table.beginning_with(_INPUT)
        worker_at = table.find(*_WORKER)
        for _, cells in table.rows():
            task, worker = task_in(cells, task_at, inputs), None if worker_at is None else cells[worker_at]
            for name, place in places.items():
                survey.note(name, json_in_cell(cells[place]), task, worker)
    return survey


def _read_rows(table: PlatformTable, question: str, collector: Collector) -> None:
    output = table.need("the answer", _OUTPUT + question)
    golden = table.find(_GOLDEN + question)
    worker_at = table.need("the worker", *_WORKER, advice=_WITH_WORKERS)
    status_at = table.find(f"{_ASSIGNMENT}status")
    task_at = table.find(_TASK)
    inputs = table.beginning_with(_INPUT)
    # A row that ends before them may have been cut off: its status, and which task it is, are not known.
    table.needed.update(place for place in (status_at, task_at, *inputs) if place is not None)
    if task_at is None and not inputs:
        raise InputError(f"{table.title}: no column {_TASK} and no {_INPUT} column says which task it is")
    collector.finder(dict.fromkeys(table.header))
    find = Finder(table, _INPUT, _OUTPUT, _ASSIGNMENT, _GOLDEN)
    for where, cells in table.rows():
        collector.n_records += 1
        task = task_in(cells, task_at, inputs)
        if not task:
            raise InputError(f"{where} has no task id and no input")
        find.cells = cells
        collector.item(task, find)
        if collector.options.gold_column is None and (known := cell_at(cells, golden)):
            collector.gold(task, choices_in_cell(known, f"{where}, {_GOLDEN}{question}"))
        collector.named_columns(task, find, where, choices_in_cell)
        status = cell_at(cells, status_at).upper()
        if status not in _COUNTED:
            collector.leave_out(_REASONS.get(status, f"status {status}"))
            continue
        choices = choices_in_cell(cells[output], f"{where}, {_OUTPUT}{question}")
        collector.vote(
            task, cell_at(cells, worker_at) or None, choices, where, find, empty_is_no=bool(cells[output].strip())
        )
