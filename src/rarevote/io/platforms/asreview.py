"""ASReview's export of a screening: the user's own columns, then ``asreview_label`` and other columns of ASReview.

A label is 1 (relevant) or 0; records that were not seen have none, and are items without votes. A project is screened
by one person, or by several who each label other records: ``asreview_user_email`` and
``asreview_user_name`` name the person, but only a server with accounts writes them. Otherwise the exports of several
people are given together, and a worker is the name of a file. A task is the user's own id of a record, if no two
records of a file share it, or else the number of its group, which is the same in every project of one dataset.
"""

from __future__ import annotations

from rarevote.errors import InputError, how
from rarevote.io.platforms.base import Export
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.table_records import PlatformTable, open_table, text_in
from rarevote.io.read.columns import may_be
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.persons import person_of_part

_LABEL = "asreview_label"
_GROUP = "asreview_group_id"
_USERS = ("asreview_user_email", "asreview_user_name")


def recognises(beginning: Beginning) -> bool:
    """Whether a file is an export of ASReview, by its header."""
    return _LABEL in beginning.header


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the labels of all files."""
    collector = Collector(str(files.path), options)
    named_by = options.worker_from
    tables = [(open_table(part), named_by and person_of_part(part, named_by)) for part in files.parts]
    for table, _ in tables:
        table.need("the label", _LABEL, advice="Give exports of ASReview only")
    task = _task_column([table for table, _ in tables], collector)
    for table, person in tables:
        _read_rows(table, task, person, collector)
    one_each = how('worker_from="file"', "--worker-from file")
    return collector.finish(
        "asreview",
        files.path,
        no_annotator=f"Give the exports of several people, a file each, and take the names of the files: {one_each}",
    )


def _task_column(tables: list[PlatformTable], collector: Collector) -> str:
    """The column of the record ids: the only one with such a name and ids, or the number of the group."""
    own: set[str] = set()
    for table in tables:
        named = [name for name in table.header if may_be("task", name)]
        own.add(named[0] if len(named) == 1 else _group(table))
    if len(own) > 1:
        raise InputError(
            f"{collector.title}: the files identify records by different columns ({', '.join(sorted(own))})"
        )
    (task,) = own
    # "question" can be the same text in all rows.
    if may_be("task", task) and not all(_identifies(table, task) for table in tables):
        if any(_GROUP not in table.header for table in tables):
            raise InputError(
                f"{collector.title}: {task!r} does not identify the records, because values are repeated or empty; "
                f"export with {_GROUP}, or rename the column"
            )
        collector.notes.append(f"values of {task!r} are repeated or empty, so a task is {_GROUP}")
        return _GROUP
    return task


def _group(table: PlatformTable) -> str:
    found = table.find(_GROUP, "")  # the last is the number of the row
    if found is None:
        raise InputError(f"{table.title}: no column identifies the records; export with {_GROUP}")
    return found


def _identifies(table: PlatformTable, column: str) -> bool:
    """Whether every record has a value of its own in a column."""
    values = [row[column].strip() for _, row in table.rows()]
    return all(values) and len(set(values)) == len(values)


def _read_rows(table: PlatformTable, named: str, person: str | None, collector: Collector) -> None:
    table.need("the record", named)
    for where, row in table.rows():
        collector.n_records += 1
        task = row[named].strip()
        if not task:
            raise InputError(f"{where} has no {named or 'number'}")
        find = collector.finder(row)
        collector.item(task, find)
        collector.named_columns(task, find, where)
        worker = person or text_in(row, _USERS[0]) or text_in(row, _USERS[1]) or None
        label = _as_written(text_in(row, _LABEL))
        collector.answering(task, worker)
        collector.note(_LABEL, label)
        if collector.takes(_LABEL) and label:
            collector.vote(task, worker, [label], where, find)


def _as_written(label: str) -> str:
    """The label as written: spreadsheets and pandas turn 1 into 1.0 if other cells are empty."""
    return label.removesuffix(".0") if label in ("1.0", "0.0") else label
