"""Labels back to Argilla: its records, in the form in which they came, with the aggregated label as a suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms.argilla.records import SINGLE, as_object, as_record, form_of, record_id, walk_records
from rarevote.io.platforms.base import Export
from rarevote.io.platforms.parts import ExportFiles
from rarevote.io.platforms.write_back import ItemLabels

_NOT_FIELDS = ("id", "external_id", "_server_id", "status", "metadata", "event_timestamp")


def check(details: Mapping[str, Any]) -> None:
    """Refuse the form without suggestions, by the details of an :class:`Export`."""
    if details.get("form") == SINGLE:
        raise InputError(
            "records with a single annotation cannot take suggestions; move the dataset to Argilla 2 first"
        )


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The records of an export with their labels, and whether each got one."""
    several = export.multilabel or export.details.get("several", False)
    for number, fields in walk_records(files, export.encoding):
        item = record_id(fields, number, f"{export.path}: record {number:,}")
        result = results.get(item)
        value: Any = None
        score: Any = None
        if result is not None:
            values = [export.values.get(label, label) for label in result.labels]
            value, score = (values, result.scores) if several else (values[0], result.score)
        agent = None if result is None else model_version
        yield _with_suggestion(fields, export.question, value, score, agent), result is not None


def items(export: Export, files: ExportFiles) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every record of an export with its fields; metadata, which may hold a model's word, are not among them."""
    for number, record in walk_records(files, export.encoding):
        yield record_id(record, number, f"{export.path}: record {number:,}"), _fields(record)


def _fields(record: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("fields", "inputs"):
        if isinstance(record.get(key), Mapping):
            return dict(record[key])
    # The forms without "fields" have them beside everything else.
    said = re.compile(r"\.(responses|suggestion)|-suggestion|^(annotation|prediction)")
    return {
        key: value
        for key, value in record.items()
        if isinstance(value, str) and key not in _NOT_FIELDS and not said.search(key)
    }


def _without_answers(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A record in its own form with its answers taken out."""
    form = form_of(fields)
    if form in ("nested", "server"):
        return {**fields, "responses": {} if form == "nested" else []}
    if form == "flat":
        return {key: value for key, value in fields.items() if not re.search(r"\.responses(\.users|\.status)?$", key)}
    questions = as_record(fields).responses
    return {key: [] if key in questions else value for key, value in fields.items()}


def _with_suggestion(
    fields: Mapping[str, Any], question: str, value: Any, score: Any, agent: str | None
) -> dict[str, Any]:
    """A record without its answers and with a suggestion, in the record's own form; value None for none."""
    form, record = form_of(fields), _without_answers(fields)
    if form == "flat":
        # All records of this form have the same keys.
        named = {"": value, ".score": score, ".agent": agent}
        return {**record, **{f"{question}.suggestion{ending}": entry for ending, entry in named.items()}}
    if value is None:
        return record
    if form == "nested":
        suggestion = {"value": value, "score": score, "agent": agent}
        return {**record, "suggestions": {**as_object(record.get("suggestions")), question: suggestion}}
    if form == "server":
        given = record.get("suggestions")
        others = [entry for entry in given or () if as_object(entry).get("question_name") != question]
        own = {"question_name": question, "type": "model", "value": value, "score": score, "agent": agent}
        return {**record, "suggestions": [*others, own]}
    # Version 1 knows one score per suggestion.
    known = [entry for entry in (score if isinstance(score, list) else [score]) if entry is not None]
    about = {"type": "model", "score": min(known, default=None), "agent": agent}
    return {**record, f"{question}-suggestion": value, f"{question}-suggestion-metadata": about}
