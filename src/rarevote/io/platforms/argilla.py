"""Argilla: records with responses per question, in every form in which they leave it.

* version 2, ``to_list(flatten=True)`` or a dataset on the hub: ``<q>.responses``, ``<q>.responses.users`` and
  ``<q>.responses.status`` are parallel lists; ``<q>.suggestion`` comes with ``.agent`` and ``.score``;
* version 2, ``to_disk`` or ``to_list()``: ``responses.<q>`` is a list of ``{value, user_id}`` and has no status,
  because only submitted answers are written;
* the server's own form: ``responses`` is a list of ``{user_id, status, values: {<q>: {value}}}``;
* version 1 on the hub: ``<q>`` is a list of ``{user_id, value, status}`` or an object of such lists,
  ``<q>-suggestion`` stands beside it.

Files are JSON, JSON lines, Parquet, or the folder that ``to_disk`` makes. The record's own ``status`` is no filter:
pending records hold votes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, Options, as_text, look_up
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import json_records
from rarevote.io.platforms.parts import one_part

NAME = "argilla"
TITLE = "Argilla"

_CHOICE_TYPES = ("label_selection", "multi_label_selection", "rating")
_SETTINGS_PLACES = (".argilla/settings.json", "settings.json")


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

    form: str
    responses: dict[str, list[Response]] = field(default_factory=dict)
    suggestions: dict[str, Suggestion] = field(default_factory=dict)


def recognises(records: list[Any], header: list[str]) -> bool:
    """Whether the first records of a file are Argilla's."""
    del header
    return bool(records) and all(
        isinstance(record, dict) and (_form(record) is not None or _turned(record) is not None) for record in records
    )


def read(path: Path, options: Options) -> Export:
    """Read records of any of the forms."""
    if options.question is not None:
        options = replace(options, question=options.question.removesuffix(".responses"))
    kinds = _question_kinds(path)
    title = str(path)
    collector = Collector(title, options)
    other: dict[str, str] = {}
    for number, fields in argilla_records(path, options.encoding):
        collector.n_records = number
        where = f"{title}: record {number:,}"
        if _form(fields) is None:
            raise InputError(f"{where} is not a record of Argilla: it has no responses")
        collector.details.setdefault("form", _form(fields))
        _read_record(fields, number, where, collector, kinds, other)
    if options.question in other and options.question not in collector.questions:
        raise InputError(f"{title}: {options.question!r} is a {other[options.question]} question, not a choice")
    return collector.finish(
        NAME,
        path,
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
    metadata = _as_object(fields.get("metadata"))
    places = (fields.get("fields"), metadata, fields)
    collector.remember_keys(*places)

    def find(name: str) -> Any:
        return look_up(name, *places)

    for question, responses in record.responses.items():
        values = [response.value for response in responses]
        if not _is_choice(question, values, collector, kinds, other) or not collector.takes(question):
            continue
        for response in responses:
            status = as_text(response.status, f"{where}: status of {question}")
            if status not in (None, "submitted"):
                collector.leave_out({"draft": base.DRAFT, "discarded": base.CANCELLED}.get(status, f"status {status}"))
                continue
            choices = _choices(response.value, f"{where}: {question}", collector)
            user = as_text(response.user, f"{where}: user of {question}")
            # A question left open has no value; an empty list is a submitted "none of them".
            collector.vote(task, user, choices, where, find, empty_is_no=isinstance(response.value, list))
    for question, suggestion in record.suggestions.items():
        if suggestion.value is None:
            continue
        if _is_choice(question, [suggestion.value], collector, kinds, other) and collector.takes(question):
            choices = _choices(suggestion.value, f"{where}: suggestion of {question}", collector)
            agent = as_text(suggestion.agent, f"{where}: agent of {question}")
            collector.prediction(task, agent, choices, where, find)
    collector.predicted_columns(task, find, where)
    collector.gold_from_column(task, find, where)


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
    names = []
    for item in value if isinstance(value, list) else [value]:
        name = as_text(item, where)
        if name is not None:
            names.append(name)
            if not isinstance(item, str):
                collector.values.setdefault(name, item)
    return names


# --------------------------------------------------------------------------------------------------------------------
# records and their forms


def argilla_records(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and keys of every record, from JSON in any orientation, JSON lines or Parquet."""
    if path.is_file() and path.suffix.lower() in (".parquet", ".pq"):
        yield from _parquet_records(path)
        return
    part = one_part(path)
    for number, value in json_records(part, encoding):
        if not isinstance(value, dict):
            raise InputError(f"{part.title}: record {number:,} is a {type(value).__name__}, not an object")
        if number == 1 and _form(value) is None:
            turned = _turned(value)
            if turned is not None:
                yield from enumerate(turned, 1)
                continue
        elif isinstance(value.get("id"), list):  # to_dict(flatten=True): columns instead of records
            yield from enumerate(_turned(value) or [], 1)
            continue
        yield number, value


def _turned(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Records of an object of columns or of an object by id (``to_dict``), None if it is neither."""
    if isinstance(value.get("id"), list) and any(key.endswith(".responses") or key == "responses" for key in value):
        columns = {key: column for key, column in value.items() if isinstance(column, list)}
        if len({len(column) for column in columns.values()}) == 1:
            return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if value and all(isinstance(item, dict) and _form(item) is not None for item in value.values()):
        return [{"id": key, **item} for key, item in value.items()]
    return None


def _parquet_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    import duckdb

    connection = duckdb.connect()
    try:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        try:
            connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
        except duckdb.Error as error:
            raise InputError(f"{path}: not a readable Parquet file ({str(error).splitlines()[0]})") from None
        names = [column[0] for column in connection.description or ()]
        number = 0
        while rows := connection.fetchmany(1_000):
            for row in rows:
                number += 1
                yield number, dict(zip(names, row, strict=True))
    finally:
        connection.close()


def record_id(fields: Mapping[str, Any], number: int, where: str) -> str:
    """The id of a record; version 1 exports often have none, then its number is the id."""
    for key in ("id", "external_id", "_server_id"):
        name = as_text(fields.get(key), f"{where}: {key}")
        if name is not None:
            return name
    return str(number)


def _form(fields: Mapping[str, Any]) -> str | None:
    """Which of the forms a record has."""
    responses = fields.get("responses")
    if isinstance(fields.get("fields"), Mapping) and isinstance(responses, (Mapping, list)):
        return "nested" if isinstance(responses, Mapping) else "server"
    if any(key.endswith((".responses", ".suggestion")) for key in fields) and not isinstance(fields.get("id"), list):
        return "flat"
    if any(f"{key}-suggestion" in fields for key in fields) or any(map(_is_version_1, fields.values())):
        return "version 1"
    return None


def _is_version_1(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) and {"user_id", "value"} <= item.keys() for item in value)
    return isinstance(value, Mapping) and {"user_id", "value"} <= value.keys() and isinstance(value["value"], list)


def as_record(fields: Mapping[str, Any]) -> Record:
    """The answers and suggestions of a record of any form."""
    form = _form(fields) or "nested"
    return {"nested": _nested, "server": _server, "flat": _flat, "version 1": _version_1}[form](fields)


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
        for name, suggestion in _as_object(fields.get("suggestions")).items()
        if isinstance(suggestion, Mapping)
    }
    return Record("nested", responses, suggestions)


def _server(fields: Mapping[str, Any]) -> Record:
    responses: dict[str, list[Response]] = {}
    for answer in fields["responses"]:
        for name, value in _as_object(_as_object(answer).get("values")).items():
            given = value.get("value") if isinstance(value, Mapping) else value
            responses.setdefault(name, []).append(Response(answer.get("user_id"), given, answer.get("status")))
    listed = fields.get("suggestions")
    suggestions = {
        str(suggestion["question_name"]): Suggestion(suggestion.get("value"), suggestion.get("agent"))
        for suggestion in (listed if isinstance(listed, list) else [])
        if isinstance(suggestion, Mapping) and "question_name" in suggestion
    }
    return Record("server", responses, suggestions)


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
    return Record("flat", responses, suggestions)


def _version_1(fields: Mapping[str, Any]) -> Record:
    responses, suggestions = {}, {}
    for key, value in fields.items():
        if f"{key}-suggestion" not in fields and not _is_version_1(value):
            continue
        if isinstance(value, Mapping):
            size = len(value["value"])
            parallel = (_as_long(value.get(what), size) for what in ("user_id", "value", "status"))
            responses[key] = [Response(*answer) for answer in zip(*parallel, strict=True)]
        else:
            responses[key] = [
                Response(answer.get("user_id"), answer.get("value"), answer.get("status"))
                for answer in value or ()
                if isinstance(answer, Mapping)
            ]
        about = _as_object(fields.get(f"{key}-suggestion-metadata"))
        suggestions[key] = Suggestion(fields.get(f"{key}-suggestion"), about.get("agent"))
    return Record("version 1", responses, suggestions)


def _as_long(values: Any, size: int) -> list[Any]:
    if values is None:
        return [None] * size
    if not isinstance(values, list) or len(values) != size:
        raise InputError(f"{size} answers do not go with these users or statuses: {base.shown_text(values)[:60]}")
    return values


def _as_object(value: Any) -> Mapping[str, Any]:
    """An object, also where it is written as text (the metadata of version 1)."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _question_kinds(path: Path) -> dict[str, str]:
    """Types of the questions where the dataset's settings lie beside the records."""
    folder = path if path.is_dir() else path.parent
    for place in _SETTINGS_PLACES:
        try:
            settings = json.loads((folder / place).read_text(encoding="utf-8"))
            questions = settings["questions"]
            return {str(entry["name"]): str(entry["settings"]["type"]) for entry in questions}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no settings, or somebody else's: the values tell
    return {}
