"""doccano: a zip (or folder) with one file of JSON lines per annotator, or one file that names the annotators.

A task is ``id``, an annotator the name of the file, an answer the list ``label`` (``cats`` in projects with slots).
Every file lists every document, so an empty list means that the annotator did not answer. Versions before 1.0 write
``annotations``, a list of ``{label, user}``. A shared project exports ``all.jsonl``, which no longer says who chose
what: it is refused. So are passages (``[start, end, name]``) and boxes, which are no choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms.base import Export, Options, as_text, look_up
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import find_parts

NAME = "doccano"
TITLE = "doccano"

_QUESTIONS = ("label", "labels", "cats", "categories", "category")
_SPAN_QUESTIONS = ("entities", "relations", "bbox", "segmentation")
_ITEMS = ("text", "data", "filename")
_SHARED, _UNANSWERED = "all", "unknown"  # names of files that are no annotators


def recognises(records: list[Any], header: list[str]) -> bool:
    """Whether the first records of a file are doccano's."""
    del header
    return bool(records) and all(isinstance(record, Mapping) and _is_document(record) for record in records)


def _is_document(record: Mapping[str, Any]) -> bool:
    if "id" not in record or not any(isinstance(record.get(key), str) for key in _ITEMS):
        return False
    annotations = record.get("annotations")
    if isinstance(annotations, list):
        return all(isinstance(entry, Mapping) and {"label", "user"} <= entry.keys() for entry in annotations)
    lists = [record[key] for key in (*_QUESTIONS, *_SPAN_QUESTIONS) if isinstance(record.get(key), list)]
    foreign = any(isinstance(item, Mapping) and "user_id" in item for items in lists for item in items)
    return bool(lists) and not foreign  # answers with a user_id are Argilla's


def read(path: Path, options: Options) -> Export:
    """Read the files of all annotators."""
    collector = Collector(str(path), options)
    spans: dict[str, None] = {}
    parts = find_parts(path)
    for part in parts:
        for number, record in walk_json(part, options.encoding):
            collector.n_records += 1
            where = f"{part.title}: record {number:,}"
            if not isinstance(record, Mapping):
                raise InputError(f"{where} is a {type(record).__name__}, not a document")
            _read_document(record, part.stem, where, collector, spans)
    if options.question in spans and options.question not in collector.questions:
        raise InputError(f"{path}: {options.question!r} marks passages or boxes; votes on spans cannot be aggregated")
    if len(parts) == 1 and not collector.details.get("users"):
        collector.notes.append(f"one file is one annotator, here {parts[0].stem!r}; give the zip for all of them")
    marked = ", ".join(map(repr, spans))
    return collector.finish(
        NAME,
        path,
        no_question=(
            f"{marked} marks passages or boxes ([start, end, name]); votes on spans cannot be aggregated"
            if spans
            else "no document has a label; was it exported as JSONL?"
        ),
    )


def _read_document(
    record: Mapping[str, Any], owner: str, where: str, collector: Collector, spans: dict[str, None]
) -> None:
    task = as_text(record.get("id"), f"{where}: id")
    if task is None:
        raise InputError(f"{where} has no id")
    where = f"{where} (id {task})"
    meta = record.get("meta")
    collector.remember_keys(record, meta)

    def find(name: str) -> Any:
        # The text of an item is called text or data, depending on doccano's version.
        value = look_up(name, record, meta)
        return look_up("data", record) if name == "text" and "text" not in record and "data" in record else value

    collector.predicted_columns(task, find, where)
    collector.gold_from_column(task, find, where)
    for key in _SPAN_QUESTIONS:
        if isinstance(record.get(key), list):
            spans.setdefault(key)
    if isinstance(record.get("annotations"), list):
        _read_old(record["annotations"], task, where, collector, spans, find)
        return
    for key in _QUESTIONS:
        value = record.get(key)
        if value is None:
            continue
        if _is_span(value):
            spans.setdefault(key)
            continue
        names = _names(value, f"{where}: {key}")
        if collector.takes(key):
            if names and owner == _SHARED:
                raise InputError(
                    f"{where}: a shared project exports all.jsonl, which does not say who chose {names[0]!r}. "
                    "Turn 'share annotations across all users' off in the project, and export again"
                )
            worker = None if owner == _UNANSWERED and names else owner
            collector.vote(task, worker, names, where, find, empty_is_no=False)


def _is_span(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, (list, Mapping)) for item in items)


def _names(value: Any, where: str) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [name for item in items if (name := as_text(item, where)) is not None]


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
    if not chosen:
        collector.leave_out("document without any annotation")
    elif collector.takes("label"):
        collector.details["users"] = True
        for user, names in chosen.items():
            collector.vote(task, user, names, where, find)
