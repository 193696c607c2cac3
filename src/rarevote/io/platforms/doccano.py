"""doccano: a zip (or folder) with one file per annotator, or one file that names the annotators.

A task is ``id``, an annotator the name of the file, an answer the list ``label`` (``cats`` in projects with slots); in
a CSV, the labels of a document are in one cell, separated by ``#``. Every file lists every document, so an empty list
means that the annotator did not answer, and the file of a member who did nothing may be empty. Versions before 1.0
write ``annotations``, a list of ``{label, user}``, or a CSV with one row per label and user. A shared project exports
``all.jsonl``, which does not say who chose what: it is refused. So are ``labels`` of versions before 1.0, passages
(``[start, end, name]``) and boxes, which are not choices.

Labels are written back as documents, one per line, with the aggregated label, for *Import dataset* as JSONL.

Every annotator's file lists every document; each is written once. All other keys of a document are kept, and doccano
stores unknown keys as the document's metadata, including the probability of the label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rarevote.errors import InputError
from rarevote.io.platforms.base import Export, as_text, choices_in_value, task_in_record
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles, Part
from rarevote.io.platforms.json_stream import walk_objects
from rarevote.io.platforms.table_records import PlatformTable, open_table
from rarevote.io.read.columns import may_be
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.io.platforms.write_back import ItemLabels


QUESTIONS = ("label", "labels", "cats", "categories", "category")
_SPAN_QUESTIONS = ("entities", "relations", "bbox", "segmentation")
_ITEMS = ("text", "data", "filename")
_SHARED, _UNANSWERED = "all", "unknown"  # names of files that are not annotators
_BETWEEN_LABELS = "#"  # in a cell of a CSV
_APPROVER = "annotation_approver"  # a key of all versions before 1.0


def recognises(beginning: Beginning) -> bool:
    """Whether the first records of a file are doccano's."""
    if beginning.records:
        return all(isinstance(record, Mapping) and _is_document(record) for record in beginning.records)
    header = set(beginning.header)
    # A table of texts and labels can come from anywhere; these columns are doccano's own, and so is a table per
    # annotator.
    own = "Comments" in header or beginning.n_files > 1
    return {"id", "label", "user", _APPROVER} <= header or (own and _lists_documents(header))


def _lists_documents(header: set[str]) -> bool:
    """Whether a table can be the documents of one annotator."""
    return {"id", "label"} <= header and not header.isdisjoint(_ITEMS) and not any(may_be("worker", n) for n in header)


def _is_document(record: Mapping[str, Any]) -> bool:
    if "id" not in record or not any(isinstance(record.get(key), str) for key in _ITEMS):
        return False
    annotations = record.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(entry, Mapping) and {"label", "user"} <= entry.keys() for entry in annotations)
    lists = [record[key] for key in (*QUESTIONS, *_SPAN_QUESTIONS) if isinstance(record.get(key), list)]
    foreign = any(isinstance(item, Mapping) and "user_id" in item for items in lists for item in items)
    return bool(lists) and not foreign  # answers with a user_id are Argilla's


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the files of all annotators."""
    path, parts = files.path, files.parts
    collector = Collector(str(path), options)
    spans: dict[str, None] = {}
    for part in parts:
        for where, record in documents(part):
            collector.n_records += 1
            _read_document(record, part.stem, where, collector, spans)
    if options.question in spans and options.question not in collector.questions:
        raise InputError(f"{path}: {options.question!r} marks passages or boxes; votes on spans cannot be aggregated")
    if len(parts) == 1 and not collector.details.get("users"):
        collector.notes.append(f"one file has one annotator, here {parts[0].stem!r}; give the zip for all of them")
    marked = ", ".join(map(repr, spans))
    return collector.finish(
        "doccano",
        path,
        no_question=(
            f"{marked} marks passages or boxes ([start, end, name]); votes on spans cannot be aggregated"
            if spans
            else "no document has a label; export as JSONL or CSV"
        ),
    )


def documents(part: Part) -> Iterator[tuple[str, Any]]:
    """The documents of one file, each with its place."""
    if part.kind == "json":
        for _, where, record in walk_objects(part, "a document"):
            yield where, record
    elif part.kind == "table":
        yield from _rows(open_table(part))


def _rows(table: PlatformTable) -> Iterator[tuple[str, dict[str, Any]]]:
    """The documents of a table, as they would be in JSON."""
    for name, what in (("label", "the answer"), ("id", "the task")):
        table.need(what, name, advice="Export as JSONL")
    by_user = _APPROVER in table.header and "user" in table.header
    for _, rows in groupby(table.rows(), key=lambda row: row[1]["id"] if by_user else row[0]):
        (where, cells), *others = rows
        document: dict[str, Any] = dict(cells)
        if by_user:
            together = [cells, *(row for _, row in others)]
            document["annotations"] = [{"label": row["label"], "user": row["user"]} for row in together]
        else:
            document["label"] = _names_in_cell(cells["label"], where)
        yield where, document


def _names_in_cell(cell: str, where: str) -> list[str]:
    names = cell.split(_BETWEEN_LABELS)
    filled = sum(bool(name.strip()) for name in names)
    if filled == len(names):
        return names
    if filled > 1:
        raise InputError(
            f"{where}: {cell!r} can be split into labels in several ways, because a label contains "
            f"{_BETWEEN_LABELS!r}; export as JSONL"
        )
    return [cell]  # a label can be called C#


def _read_document(
    record: Mapping[str, Any], owner: str, where: str, collector: Collector, spans: dict[str, None]
) -> None:
    task = task_in_record(record, where)
    where = f"{where} (id {task})"
    # The text of an item is called text or data, depending on doccano's version.
    text = {"text": record["data"]} if "data" in record else None
    find = collector.finder(record, text, record.get("meta"))
    collector.item(task, find)
    collector.named_columns(task, find, where)
    for key in _SPAN_QUESTIONS:
        if isinstance(record.get(key), list):
            spans.setdefault(key)
    if isinstance(record.get("annotations"), list):
        _read_old(record["annotations"], task, where, collector, spans, find)
        return
    if _APPROVER in record and isinstance(record.get("labels"), list) and not _is_span(record["labels"]):
        raise InputError(
            f"{where}: the labels of all annotators together, which do not say who chose what. "
            "Export as JSONL, not as JSONL with text labels"
        )
    for key in QUESTIONS:
        value = record.get(key)
        if value is None:
            continue
        if _is_span(value):
            spans.setdefault(key)
            continue
        names = choices_in_value(value, f"{where}: {key}")
        collector.answering(task, owner)
        collector.note(key, names)
        if collector.takes(key):
            if names and owner == _SHARED:
                raise InputError(
                    f"{where}: a shared project exports one file 'all', which does not say who chose {names[0]!r}. "
                    "Turn 'share annotations across all users' off in the project, and export again"
                )
            worker = None if owner == _UNANSWERED and names else owner
            collector.vote(task, worker, names, where, find, empty_is_no=False)


def _is_span(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, (list, Mapping)) for item in items)


def _read_old(
    annotations: list[Any], task: str, where: str, collector: Collector, spans: dict[str, None], find: Any
) -> None:
    """``annotations`` of a document: one entry per label and user."""
    chosen: dict[str | None, list[str]] = {}
    for entry in annotations:
        if not isinstance(entry, Mapping) or "label" not in entry:
            raise InputError(f"{where}: an annotation is not an object with label and user")
        if "start_offset" in entry:
            spans.setdefault("annotations")
            continue
        user = as_text(entry.get("user"), f"{where}: user")
        name = as_text(entry["label"], f"{where}: label")
        if name is not None:
            chosen.setdefault(user, []).append(name)
    if chosen and collector.takes("label"):
        collector.details["users"] = True
        for user, names in chosen.items():
            collector.vote(task, user, names, where, find)


# --------------------------------------------------------------------------------------------------------------------
# labels back: lines that it imports


_OF_ANNOTATORS = ("annotations", _APPROVER, "user", "Comments")
_METHOD, _SCORE = "labelled_by", "score"  # our keys


def check(_: Mapping[str, Any]) -> None:
    """Do nothing: every form of doccano's files contains documents that can be imported."""


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The documents of an export with their labels, and whether each has one."""
    seen: set[str] = set()
    for part in files.parts:
        for where, record in documents(part):
            task = task_in_record(record, where)
            if task in seen:
                continue
            seen.add(task)
            result = results.get(task)
            kept = {key: value for key, value in record.items() if not _is_answer(key, value)}
            kept[export.question] = [] if result is None else result.labels
            if result is not None:
                kept[_free(_METHOD, record)] = model_version
                if result.score is not None:
                    kept[_free(_SCORE, record)] = result.score
            yield kept, result is not None


def _is_answer(key: str, value: Any) -> bool:
    """Whether a key of a document has what annotators wrote; a text in ``category`` is data."""
    return key in _OF_ANNOTATORS or (key in QUESTIONS and isinstance(value, list))


def _free(name: str, record: Mapping[str, Any]) -> str:
    """A name for our key that the document does not have."""
    while name in record:
        name += "_"
    return name
