"""Label Studio's JSON export: a list of tasks, each with its annotations.

A task is ``id``, an annotator ``annotations[].completed_by`` (a number, or an object with an e-mail), an answer the
result of type ``choices`` or ``taxonomy`` whose ``from_name`` is the question. Ratings, numbers and pairwise choices
are taken when they are named. What counts as no vote: cancelled annotations, drafts, annotations that a reviewer
rejected, and ``ground_truth`` annotations, which are gold and would leak if they voted too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, Options, as_text, look_up
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import one_part

NAME = "label-studio"
TITLE = "Label Studio"

PATH_MARK = " / "  # between the levels of a taxonomy
_ASKED = ("choices", "taxonomy")
_ON_REQUEST = ("rating", "number", "pairwise")
# Keys of a result that is about a part of the item: a box, a passage, a stretch of sound.
_REGION_KEYS = frozenset({"x", "y", "start", "end", "points", "rle", "sequence", "ranges", "vertices"})
_NOT_THE_EXPORT = (
    "is not a task of Label Studio's JSON export (it has no 'annotations' and no 'data'). "
    "Export as JSON, not as JSON-MIN or CSV, which lose who answered what"
)


def recognises(records: list[Any], header: list[str]) -> bool:
    """Whether the first records of a file are Label Studio's; JSON-MIN is known too, so that it can be refused."""
    del header
    return bool(records) and all(isinstance(record, dict) and _is_task(record) for record in records)


def _is_task(record: Mapping[str, Any]) -> bool:
    lists = ("annotations", "completions", "predictions")
    is_full = isinstance(record.get("data"), dict) and any(isinstance(record.get(key), list) for key in lists)
    return is_full or {"annotator", "annotation_id", "lead_time"} <= record.keys()


@dataclass
class _Asked:
    """What is known about the controls of the project."""

    controls: dict[str, str] = field(default_factory=dict)
    of_regions: set[str] = field(default_factory=set)


def read(path: Path, options: Options) -> Export:
    """Read an export, one task at a time."""
    part = one_part(path)
    collector = Collector(part.title, options)
    asked = _Asked()
    for number, record in walk_json(part, options.encoding):
        collector.n_records = number
        _read_task(record, f"{part.title}: record {number:,}", collector, asked)
    wanted = options.question
    if wanted in asked.of_regions and wanted not in collector.questions:
        raise InputError(
            f"{part.title}: {wanted!r} is asked about regions (boxes, passages), not about whole tasks; "
            "votes on regions cannot be aggregated here"
        )
    return collector.finish(
        NAME,
        path,
        no_annotator="Export with completed_by.",
        no_question=f"no choice control was answered; controls found: {_listed(asked)}",
    )


def _listed(asked: _Asked) -> str:
    named = [
        f"{name!r} ({kind}{' of regions' if name in asked.of_regions else ''})" for name, kind in asked.controls.items()
    ]
    takable = [name for name, kind in asked.controls.items() if kind in _ON_REQUEST]
    hint = f". To take one as classes: question={takable[0]!r} (--question {takable[0]})" if takable else ""
    return (", ".join(named) or "none") + hint


def _read_task(record: Any, where: str, collector: Collector, asked: _Asked) -> None:
    if not isinstance(record, dict):
        raise InputError(f"{where} is a {type(record).__name__}, not a task")
    annotations = record.get("annotations", record.get("completions"))
    if annotations is None and not isinstance(record.get("data"), dict):
        raise InputError(f"{where} {_NOT_THE_EXPORT}")
    task = as_text(record.get("id"), f"{where}: id")
    if task is None:
        raise InputError(f"{where} has no id")
    where = f"{where} (task {task})"
    data = record.get("data")
    collector.remember_keys(data, record)

    def find(name: str) -> Any:
        return look_up(name, data, record)

    for annotation in _objects(annotations, f"{where}: annotations"):
        _read_annotation(annotation, task, where, collector, asked, find)
    drafts = record.get("drafts")
    collector.leave_out(base.DRAFT, len(drafts) if isinstance(drafts, list) else 0)
    for prediction in _objects(record.get("predictions"), f"{where}: predictions"):
        choices = _choices(prediction.get("result"), f"{where}: a prediction", collector, asked)
        if not choices and prediction.get("result"):
            continue  # it answers another question
        model = as_text(prediction.get("model_version"), f"{where}: model_version")
        collector.prediction(task, model, choices, where, find)
    collector.predicted_columns(task, find, where)
    collector.gold_from_column(task, find, where)


def _objects(values: Any, where: str) -> list[Mapping[str, Any]]:
    """A list of objects; a list of ids (an export can be told to hold only those) is an empty one."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{where} is a {type(values).__name__}, not a list")
    return [value for value in values if isinstance(value, dict)]


def _read_annotation(
    annotation: Mapping[str, Any], task: str, where: str, collector: Collector, asked: _Asked, find: Any
) -> None:
    # The controls are noted even where the answer does not count: they say which questions there are.
    choices = _choices(annotation.get("result"), where, collector, asked)
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


def _choices(results: Any, where: str, collector: Collector, asked: _Asked) -> list[str]:
    """What a result list answers to the question that is collected."""
    entries = _objects(results, f"{where}: result")
    regions = {
        str(entry.get("id"))
        for entry in entries
        if isinstance(entry.get("value"), dict) and not _REGION_KEYS.isdisjoint(entry["value"])
    }
    chosen: list[str] = []
    for entry in entries:
        name, kind, value = entry.get("from_name"), entry.get("type"), entry.get("value")
        if not isinstance(name, str) or not isinstance(kind, str):
            continue
        asked.controls.setdefault(name, kind)
        on_request = kind in _ON_REQUEST and name == collector.options.question
        if (kind not in _ASKED and not on_request) or not isinstance(value, dict):
            continue
        if "id" in entry and str(entry["id"]) in regions:
            asked.of_regions.add(name)
            continue
        if collector.takes(name):
            collector.details.setdefault("control", {"to_name": entry.get("to_name"), "type": kind})
            chosen += _chosen(kind, value, f"{where}: {name}", collector)
    return chosen


def _chosen(kind: str, value: Mapping[str, Any], where: str, collector: Collector) -> list[str]:
    given = value.get("selected" if kind == "pairwise" else kind)
    items = given if isinstance(given, list) else [given]
    names = []
    for item in items:
        original = item
        if kind == "taxonomy" and isinstance(item, list):
            item = PATH_MARK.join(as_text(level, where) or "" for level in item)
        name = as_text(item, where)
        if name is not None:
            names.append(name)
            if not isinstance(original, str):
                collector.values.setdefault(name, original)
    return names
