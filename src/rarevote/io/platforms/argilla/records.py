"""Argilla's records in every form in which they leave it.

* ``flat``, version 2 ``to_list(flatten=True)`` or a dataset on the hub: ``<q>.responses``, ``<q>.responses.users`` and
  ``<q>.responses.status`` are parallel lists; ``<q>.suggestion`` comes with ``.agent`` and ``.score``;
* ``nested``, version 2 ``to_disk`` or ``to_list()``: ``responses.<q>`` is a list of ``{value, user_id}`` and has no
  status, because only submitted answers are written;
* ``server``, what its API gives: ``responses`` is a list of ``{user_id, status, values: {<q>: {value}}}``;
* ``version 1``, on the hub: ``<q>`` is a list of ``{user_id, value, status}`` or an object of such lists, and
  ``<q>-suggestion`` stands beside it;
* ``single``, before there were questions: ``annotation`` of one ``annotation_agent`` and ``prediction``, a list of
  ``{label, score}``, of a ``prediction_agent``.

Files are JSON (records, columns, records by id, a page of the API), JSON lines, Parquet, the folder that ``to_disk``
makes, or that of a dataset on the hub.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.duck import AS_WRITTEN, connection, first_line, literal
from rarevote.io.json_text import parse_json
from rarevote.io.parquet_sizes import check_parquet
from rarevote.io.platforms.base import as_text, shown_text
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.parts import ExportFiles

SINGLE = "single"  # the form without a way back


@dataclass(frozen=True)
class Response:
    """One answer of one user to one question."""

    user: Any
    value: Any
    status: Any = None


@dataclass(frozen=True)
class Suggestion:
    """What a model suggests for one question."""

    value: Any
    agent: Any = None


@dataclass(frozen=True)
class Record:
    """A record of any form: its answers and suggestions by question."""

    responses: dict[str, list[Response]] = field(default_factory=dict)
    suggestions: dict[str, Suggestion] = field(default_factory=dict)


def walk_records(files: ExportFiles, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and keys of every record, from JSON in any orientation, JSON lines or Parquet."""
    if files.parquet:
        yield from enumerate((record for file in files.parquet for record in _parquet_records(file)), 1)
        return
    part = files.only()
    for number, value in walk_json(part, encoding):
        if not isinstance(value, dict):
            raise InputError(f"{part.title}: record {number:,} is a {type(value).__name__}, not an object")
        if number == 1 and form_of(value) is None:
            turned = _turned(value)
            if turned is not None:
                yield from enumerate(turned, 1)
                continue
        elif isinstance(value.get("id"), list):  # to_dict(flatten=True): columns instead of records
            yield from enumerate(_turned(value) or [], 1)
            continue
        yield number, value


def is_turned(value: dict[str, Any]) -> bool:
    """Whether an object holds all records at once, as columns or by id."""
    return _turned(value) is not None


def _turned(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Records of an object of columns or of an object by id (``to_dict``), or of a page; None if it is none of them."""
    for key in ("items", "rows"):  # of Argilla's API, of the hub's
        page = value.get(key)
        if isinstance(page, list) and page and all(isinstance(item, dict) for item in page):
            records = [item["row"] if isinstance(item.get("row"), dict) else item for item in page]
            if any(form_of(record) is not None for record in records):
                return records
    if isinstance(value.get("id"), list) and any(key.endswith(".responses") or key == "responses" for key in value):
        columns = {key: column for key, column in value.items() if isinstance(column, list)}
        if len({len(column) for column in columns.values()}) == 1:
            return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if value and all(isinstance(item, dict) and form_of(item) is not None for item in value.values()):
        return [{"id": key, **item} for key, item in value.items()]
    return None


def first_parquet_records(path: Path, count: int) -> list[dict[str, Any]]:
    """The first records of a Parquet file, none if it cannot be read."""
    try:
        return list(islice(_parquet_records(path), count))
    except InputError:
        return []


def _parquet_records(path: Path) -> Iterator[dict[str, Any]]:
    import duckdb

    with connection() as database:
        try:
            rows_of = f"SELECT * FROM read_parquet(?, {AS_WRITTEN})", [literal(str(path))]
            kinds = {name: kind for name, kind, *_ in database.execute(f"DESCRIBE {rows_of[0]}", rows_of[1]).fetchall()}
            check_parquet(database, path, str(path), kinds)
            database.execute(*rows_of)
            names = list(kinds)
            # What is damaged further down shows only when it is fetched.
            while rows := database.fetchmany(1_000):
                for row in rows:
                    yield dict(zip(names, row, strict=True))
        except duckdb.Error as error:
            raise InputError(f"{path}: not a readable Parquet file ({first_line(error)})") from None


def record_id(fields: Mapping[str, Any], number: int, where: str) -> str:
    """The id of a record; version 1 exports often have none, then its number is the id."""
    for key in ("id", "external_id", "_server_id"):
        name = as_text(fields.get(key), f"{where}: {key}")
        if name is not None:
            return name
    return str(number)


def form_of(fields: Mapping[str, Any]) -> str | None:
    """Which of the forms a record has."""
    responses = fields.get("responses")
    if isinstance(fields.get("fields"), Mapping) and isinstance(responses, (Mapping, list)):
        return "nested" if isinstance(responses, Mapping) else "server"
    if any(key.endswith((".responses", ".suggestion")) for key in fields) and not isinstance(fields.get("id"), list):
        return "flat"
    if any(f"{key}-suggestion" in fields for key in fields) or any(map(_is_version_1, fields.values())):
        return "version 1"
    return SINGLE if {"annotation", "annotation_agent", "prediction"} <= fields.keys() else None


def _is_version_1(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) and {"user_id", "value"} <= item.keys() for item in value)
    return isinstance(value, Mapping) and {"user_id", "value"} <= value.keys() and isinstance(value["value"], list)


def as_record(fields: Mapping[str, Any]) -> Record:
    """The answers and suggestions of a record of any form."""
    form = form_of(fields) or "version 1"  # early records that nobody has answered have no mark
    readers = {"nested": _nested, "server": _server, "flat": _flat, "version 1": _version_1, SINGLE: _single}
    return readers[form](fields)


def _nested(fields: Mapping[str, Any]) -> Record:
    responses = {
        name: [
            Response(answer.get("user_id"), answer.get("value"), answer.get("status"))
            for answer in answers
            if isinstance(answer, Mapping)
        ]
        for name, answers in fields["responses"].items()
        if isinstance(answers, list)
    }
    suggestions = {
        name: Suggestion(suggestion.get("value"), suggestion.get("agent"))
        for name, suggestion in as_object(fields.get("suggestions")).items()
        if isinstance(suggestion, Mapping)
    }
    return Record(responses, suggestions)


def _server(fields: Mapping[str, Any]) -> Record:
    responses: dict[str, list[Response]] = {}
    for answer in fields["responses"]:
        for name, value in as_object(as_object(answer).get("values")).items():
            given = value.get("value") if isinstance(value, Mapping) else value
            responses.setdefault(name, []).append(Response(answer.get("user_id"), given, answer.get("status")))
    listed = fields.get("suggestions")
    suggestions = {
        str(suggestion["question_name"]): Suggestion(suggestion.get("value"), suggestion.get("agent"))
        for suggestion in (listed if isinstance(listed, list) else [])
        if isinstance(suggestion, Mapping) and "question_name" in suggestion
    }
    return Record(responses, suggestions)


def _flat(fields: Mapping[str, Any]) -> Record:
    responses, suggestions = {}, {}
    for key, value in fields.items():
        if key.endswith(".responses"):
            name = key.removesuffix(".responses")
            values = value if isinstance(value, list) else []
            users, statuses = (_as_long(fields.get(f"{key}.{what}"), len(values)) for what in ("users", "status"))
            responses[name] = [Response(*answer) for answer in zip(users, values, statuses, strict=True)]
        elif key.endswith(".suggestion"):
            suggestions[key.removesuffix(".suggestion")] = Suggestion(value, fields.get(f"{key}.agent"))
    return Record(responses, suggestions)


def _version_1(fields: Mapping[str, Any]) -> Record:
    responses, suggestions = {}, {}
    for key, value in fields.items():
        if f"{key}-suggestion" not in fields and not _is_version_1(value):
            continue
        if isinstance(value, Mapping) and _is_version_1(value):
            size = len(value["value"])
            parallel = (_as_long(value.get(what), size) for what in ("user_id", "value", "status"))
            responses[key] = [Response(*answer) for answer in zip(*parallel, strict=True)]
        else:
            responses[key] = [
                Response(answer.get("user_id"), answer.get("value"), answer.get("status"))
                for answer in (value if isinstance(value, list) else ())
                if isinstance(answer, Mapping)
            ]
        about = as_object(fields.get(f"{key}-suggestion-metadata"))
        suggestions[key] = Suggestion(fields.get(f"{key}-suggestion"), about.get("agent"))
    return Record(responses, suggestions)


def _single(fields: Mapping[str, Any]) -> Record:
    status = fields.get("status")
    known = {"Validated": "submitted", "Discarded": "discarded"}
    # Without an annotation nobody has answered yet; the status alone says nothing.
    answered = fields["annotation"] is not None or status == "Discarded"
    answer = Response(fields["annotation_agent"], fields["annotation"], known.get(str(status), status))
    listed = fields["prediction"]
    scores = {entry.get("label"): entry.get("score") for entry in listed or () if isinstance(entry, Mapping)}
    if fields.get("multi_label"):
        best: Any = [label for label, score in scores.items() if (score or 0.0) >= 0.5]
    else:
        best = max(scores, key=lambda label: scores[label] or 0.0, default=None)
    suggested = {"annotation": Suggestion(best, fields.get("prediction_agent"))} if scores else {}
    return Record({"annotation": [answer] if answered else []}, suggested)


def _as_long(values: Any, size: int) -> list[Any]:
    if values is None:
        return [None] * size
    if not isinstance(values, list) or len(values) != size:
        raise InputError(f"{size} answers do not go with these users or statuses: {shown_text(values)[:60]}")
    return values


def as_object(value: Any) -> Mapping[str, Any]:
    """An object, also where it is written as text (the metadata of version 1)."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}
