"""Toloka's TSV: one row per answer.

A task is ``ASSIGNMENT:task_id``, or its ``INPUT:`` columns if that was not exported; a worker
``ASSIGNMENT:worker_id``; a question an ``OUTPUT:`` column; a gold label the ``GOLDEN:`` column of the same name.
``ASSIGNMENT:status`` decides: approved and submitted answers count, expired ones are empty and occur again.
"""

from __future__ import annotations

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export
from rarevote.io.platforms.collector import Collector, collector_of
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.questions import QuestionSurvey
from rarevote.io.platforms.table_records import (
    PlatformTable,
    choices_in_cell,
    finder,
    json_in_cell,
    open_table,
    task_in,
    text_in,
)
from rarevote.io.read.options import ReadOptions

_INPUT, _OUTPUT, _GOLDEN, _ASSIGNMENT = "INPUT:", "OUTPUT:", "GOLDEN:", "ASSIGNMENT:"
_TASK, _STATUS = f"{_ASSIGNMENT}task_id", f"{_ASSIGNMENT}status"
_WORKER = (f"{_ASSIGNMENT}worker_id", f"{_ASSIGNMENT}user_id")
_WITH_WORKERS = f"Download the results with {_WORKER[0]}"
_CONFIDENCE = "CONFIDENCE:"  # the columns beside the answers of Toloka's own aggregation
_COUNTED = frozenset({"", "APPROVED", "ACCEPTED", "SUBMITTED"})
_REASONS = {"REJECTED": base.REJECTED, "SKIPPED": base.SKIPPED, "EXPIRED": "expired", "ACTIVE": "not yet submitted"}


def recognises(beginning: Beginning) -> bool:
    """Whether a header belongs to Toloka's results."""
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
            f"{table.title}: these are Toloka's aggregated results, which do not say who answered what; "
            "download the results of the pool instead"
        )
    question, collector = collector_of(_survey(table, options.question), options)
    _read_rows(table, question, collector)
    return collector.finish("toloka", files.path, no_annotator=f"{_WITH_WORKERS}.")


def _survey(table: PlatformTable, wanted: str | None) -> QuestionSurvey:
    """The outputs of a project and their answers; some outputs can be unused."""
    survey = QuestionSurvey(table.title, wanted, _OUTPUT)
    outputs = table.beginning_with(_OUTPUT)
    for column in outputs:
        survey.found(column.removeprefix(_OUTPUT))
    if survey.is_open and len(outputs) > 1:
        table.needed.update(outputs)
        inputs = table.beginning_with(_INPUT)
        for _, row in table.rows():
            task, worker = task_in(row, [_TASK], inputs), text_in(row, *_WORKER) or None
            for column in outputs:
                survey.note(column.removeprefix(_OUTPUT), json_in_cell(row[column]), task, worker)
    return survey


def _read_rows(table: PlatformTable, question: str, collector: Collector) -> None:
    output = table.need("the answer", _OUTPUT + question)
    golden = _GOLDEN + question
    table.need("the worker", *_WORKER, advice=_WITH_WORKERS)
    inputs = table.beginning_with(_INPUT)
    # A row that ends before them may be truncated: its status and its task are not known.
    table.needed.update(name for name in (_STATUS, _TASK, *inputs) if name in table.header)
    if _TASK not in table.header and not inputs:
        raise InputError(f"{table.title}: no column {_TASK} and no {_INPUT} column says which task it is")
    collector.finder(dict.fromkeys(table.header))
    for where, row in table.rows():
        collector.n_records += 1
        task = task_in(row, [_TASK], inputs)
        if not task:
            raise InputError(f"{where} has no task id and no input")
        find = finder(row, _INPUT, _OUTPUT, _ASSIGNMENT, _GOLDEN)
        collector.item(task, find)
        if collector.options.gold_column is None and (known := text_in(row, golden)):
            collector.gold(task, choices_in_cell(known, f"{where}, {golden}"))
        collector.named_columns(task, find, where, choices_in_cell)
        status = text_in(row, _STATUS).upper()
        if status not in _COUNTED:
            collector.leave_out(_REASONS.get(status, f"status {status}"))
            continue
        choices = choices_in_cell(row[output], f"{where}, {output}")
        worker = text_in(row, *_WORKER) or None
        collector.vote(task, worker, choices, where, find, empty_is_no=bool(row[output].strip()))
