"""Label Studio's JSON export: a list of tasks, each with its annotations.

A task is ``id``, an annotator ``annotations[].completed_by`` (a number, or an object with an e-mail), an answer the
result of a control (see :mod:`.controls`) whose ``from_name`` is the question. What counts as no vote:
cancelled annotations, drafts, annotations that a reviewer rejected, and ``ground_truth`` annotations, which are gold
and would leak if they voted too. The short exports are read by :mod:`.short`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, Options, as_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import first_records, walk_json
from rarevote.io.platforms.label_studio.controls import Controls, is_of_region
from rarevote.io.platforms.label_studio.short import has_annotator, read_short
from rarevote.io.platforms.parts import Beginning, ExportFiles, Part

_NOT_THE_EXPORT = (
    "is not a task of Label Studio's JSON export (it has no 'annotations' and no 'data'), and not an annotation of "
    "JSON-MIN (it has no 'annotator'). Export as JSON"
)


def recognises(beginning: Beginning) -> bool:
    """Whether a file is one of Label Studio's exports."""
    if records := beginning.records:
        return all(isinstance(record, dict) and (_is_task(record) or has_annotator(record)) for record in records)
    return has_annotator(beginning.header)


def _is_task(record: Mapping[str, Any]) -> bool:
    lists = ("annotations", "completions", "predictions")
    return isinstance(record.get("data"), dict) and any(isinstance(record.get(key), list) for key in lists)


def read(files: ExportFiles, options: Options) -> Export:
    """Read an export, one task at a time."""
    part = files.only()
    if _is_short(part, options.encoding):
        return read_short(part, files.path, options)
    collector, controls = Collector(part.title, options), Controls()
    bare = 0
    for number, record in walk_json(part, options.encoding):
        collector.n_records = number
        bare += _read_task(record, f"{part.title}: record {number:,}", collector, controls)
    controls.check(collector)
    collector.leave_out("annotation given only by its number", bare)
    return collector.finish(
        "label-studio",
        files.path,
        no_annotator="Export with completed_by.",
        no_question=(
            f"{bare:,} annotations are given only by their numbers; export with the annotations in full"
            if bare
            else f"no choice control was answered; controls found: {controls.listed()}"
        ),
    )


def _is_short(part: Part, encoding: str) -> bool:
    if part.kind != "json":
        return part.kind == "table"
    first = next(iter(first_records(part, encoding, 1)), None)
    return isinstance(first, dict) and "annotator" in first and not _is_task(first)


def _read_task(record: Any, where: str, collector: Collector, controls: Controls) -> int:
    """Read a task; returns how many of its annotations are no more than a number."""
    if not isinstance(record, dict):
        raise InputError(f"{where} is a {type(record).__name__}, not a task")
    annotations = record.get("annotations", record.get("completions"))
    if annotations is None and not isinstance(record.get("data"), dict):
        raise InputError(f"{where} {_NOT_THE_EXPORT}")
    task = as_text(record.get("id"), f"{where}: id")
    if task is None:
        raise InputError(f"{where} has no id")
    where = f"{where} (task {task})"
    find = collector.finder(record.get("data"), record)
    whole = _objects(annotations, f"{where}: annotations")
    for annotation in whole:
        _read_annotation(annotation, task, where, collector, controls, find)
    collector.answering(None)
    drafts = record.get("drafts")
    collector.leave_out(base.DRAFT, len(drafts) if isinstance(drafts, list) else 0)
    for prediction in _objects(record.get("predictions"), f"{where}: predictions"):
        choices = _choices(prediction.get("result"), f"{where}: a prediction", collector, controls)
        if not choices and prediction.get("result"):
            continue  # it answers another question
        model = as_text(prediction.get("model_version"), f"{where}: model_version")
        collector.prediction(task, model, choices, where, find)
    collector.named_columns(task, find, where)
    return len(annotations or ()) - len(whole)


def _objects(values: Any, where: str) -> list[Mapping[str, Any]]:
    """A list of objects; a list of ids (an export can be told to hold only those) is an empty one."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{where} is a {type(values).__name__}, not a list")
    return [value for value in values if isinstance(value, dict)]


def _read_annotation(
    annotation: Mapping[str, Any], task: str, where: str, collector: Collector, controls: Controls, find: Any
) -> None:
    # The controls are noted even where the answer does not count: they say which questions there are.
    collector.answering(task, base.shown_text(annotation.get("completed_by")) or None)
    choices = _choices(annotation.get("result"), where, collector, controls)
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        collector.leave_out(base.CANCELLED)
    elif _is_rejected(annotation):
        collector.leave_out(base.REJECTED)
    elif (annotation.get("ground_truth") or annotation.get("honeypot")) and (choices or collector.options.multilabel):
        collector.leave_out(base.TAKEN_AS_GOLD)
        collector.gold(task, choices)
    else:
        collector.vote(task, _annotator(annotation, where, collector), choices, where, find)


def _is_rejected(annotation: Mapping[str, Any]) -> bool:
    if annotation.get("last_action") == "rejected":
        return True
    reviews = annotation.get("reviews")
    last = reviews[-1] if isinstance(reviews, list) and reviews else None
    return isinstance(last, dict) and last.get("accepted") is False and not last.get("fixed_annotation_history")


def _annotator(annotation: Mapping[str, Any], where: str, collector: Collector) -> str | None:
    completed_by = annotation.get("completed_by")
    if isinstance(completed_by, dict):
        number = as_text(completed_by.get("id"), f"{where}: completed_by.id")
        for key in ("email", "username"):
            name = as_text(completed_by.get(key), f"{where}: completed_by.{key}")
            if name is not None:
                if number is not None:
                    # The same person as a bare number elsewhere in the file must not count as two.
                    collector.aliases[number] = name
                return name
        return number
    if completed_by is None:
        completed_by = annotation.get("created_username")  # before version 1.0
    return as_text(completed_by, f"{where}: completed_by")


def _choices(results: Any, where: str, collector: Collector, controls: Controls) -> list[str]:
    """What a result list answers to the question that is collected."""
    entries = _objects(results, f"{where}: result")
    regions = {str(entry.get("id")) for entry in entries if is_of_region(entry.get("value"))}
    chosen: list[str] = []
    for entry in entries:
        name, kind = entry.get("from_name"), entry.get("type")
        if not isinstance(name, str) or not isinstance(kind, str):
            continue
        # One of several pictures is a part of the item as well.
        of_region = ("id" in entry and str(entry["id"]) in regions) or entry.get("item_index") is not None
        answer = controls.answer(name, kind, entry.get("value"), where, collector, of_region=of_region)
        if answer is not None:
            collector.details.setdefault("control", {"to_name": entry.get("to_name"), "type": kind})
            chosen += answer
    return chosen
