"""Argilla: answers and suggestions of records, whichever way they left it (see :mod:`.records`).

An answer counts if its status is ``submitted``, or if the form has no status. The record's own ``status`` is no filter:
pending records hold votes. Where the dataset's ``settings.json`` lies beside the records, it says which questions are
choices; without it the values tell, and a text question looks like a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.json_text import parse_json
from rarevote.io.platforms import base
from rarevote.io.platforms.argilla.records import as_object, as_record, form_of, is_turned, record_id, walk_records
from rarevote.io.platforms.base import Export, Options, as_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.parts import Beginning, ExportFiles

_CHOICE_TYPES = ("label_selection", "multi_label_selection", "rating")
_SETTINGS_PLACES = (".argilla/settings.json", "settings.json")


def recognises(beginning: Beginning) -> bool:
    """Whether the first records of a file are Argilla's."""
    if not all(isinstance(record, dict) for record in beginning.records):
        return False
    # Early versions leave an empty list where nobody has answered: another record tells.
    return any(form_of(record) is not None or is_turned(record) for record in beginning.records)


def read(files: ExportFiles, options: Options) -> Export:
    """Read records of any of the forms."""
    if options.question is not None:
        options = replace(options, question=options.question.removesuffix(".responses"))
    kinds = _question_kinds(files.path)
    title = str(files.path)
    collector = Collector(title, options)
    other: dict[str, str] = {}
    unanswered = 0
    for number, fields in walk_records(files, options.encoding):
        collector.n_records = number
        form = form_of(fields)
        if form is None:
            unanswered += 1
            continue
        collector.details.setdefault("form", form)
        _read_record(fields, number, f"{title}: record {number:,}", collector, kinds, other)
    if unanswered and unanswered == collector.n_records:
        raise InputError(f"{title}: record 1 is not a record of Argilla: it has no responses")
    collector.leave_out("record without any response", unanswered)
    if options.question in other and options.question not in collector.questions:
        raise InputError(f"{title}: {options.question!r} is a {other[options.question]} question, not a choice")
    return collector.finish(
        "argilla",
        files.path,
        no_annotator="Argilla writes null for users that it no longer knows.",
        no_question=f"no question was answered by a choice; found: {', '.join(map(repr, other)) or 'none'}",
    )


def _read_record(
    fields: Mapping[str, Any],
    number: int,
    where: str,
    collector: Collector,
    kinds: Mapping[str, str],
    other: dict[str, str],
) -> None:
    try:
        record = as_record(fields)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    task = record_id(fields, number, where)
    where = f"{where} (id {task})"
    metadata = as_object(fields.get("metadata"))
    find = collector.finder(fields.get("fields"), fields.get("inputs"), metadata, fields)
    for question, responses in record.responses.items():
        values = [response.value for response in responses]
        if not responses:
            continue
        if not _is_choice(question, values, collector, kinds, other):
            continue
        taken = collector.takes(question)
        for response in responses:
            collector.answering(task, base.shown_text(response.user) or None)
            collector.note(question, response.value)
            if not taken:
                continue
            status = as_text(response.status, f"{where}: status of {question}")
            if status not in (None, "submitted"):
                collector.leave_out({"draft": base.DRAFT, "discarded": "discarded"}.get(status, f"status {status}"))
                continue
            choices = _choices(response.value, f"{where}: {question}", collector)
            user = as_text(response.user, f"{where}: user of {question}")
            user = None if user == "None" else user  # how version 2 writes a user that is gone
            # A question left open has no value; an empty list is a submitted "none of them".
            collector.vote(task, user, choices, where, find, empty_is_no=isinstance(response.value, list))
    for question, suggestion in record.suggestions.items():
        if suggestion.value is None:
            continue
        if _is_choice(question, [suggestion.value], collector, kinds, other) and collector.takes(question):
            choices = _choices(suggestion.value, f"{where}: suggestion of {question}", collector)
            agent = as_text(suggestion.agent, f"{where}: agent of {question}")
            collector.prediction(task, agent, choices, where, find)
    collector.named_columns(task, find, where)


def _is_choice(
    question: str, values: list[Any], collector: Collector, kinds: Mapping[str, str], other: dict[str, str]
) -> bool:
    """Whether a question is answered by choosing; without settings the values tell."""
    kind = kinds.get(question)
    if kind is None and any(isinstance(value, Mapping) or _is_structured(value) for value in values):
        kind = "ranking or span"
    if kind is None or kind in _CHOICE_TYPES or question in collector.questions:
        return True
    other[question] = kind
    return kind == "text" and question == collector.options.question


def _is_structured(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, (Mapping, list)) for item in value)


def _choices(value: Any, where: str, collector: Collector) -> list[str]:
    collector.details["several"] = collector.details.get("several", False) or isinstance(value, list)
    return collector.names(value, where)


def _question_kinds(path: Path) -> dict[str, str]:
    """Types of the questions where the dataset's settings lie beside the records."""
    folder = path if path.is_dir() else path.parent
    # Beside the records, or, in a clone of the hub, above the folder with the Parquet files.
    for place in [folder / name for name in _SETTINGS_PLACES] + [folder.parent / _SETTINGS_PLACES[0]]:
        try:
            settings = parse_json(place.read_text(encoding="utf-8"))
            questions = settings["questions"]
            return {str(entry["name"]): str(entry["settings"]["type"]) for entry in questions}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no settings, or somebody else's: the values tell
    return {}
