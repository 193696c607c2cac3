"""Argilla: its records in every exported form, and labels written back as suggestions.

* ``flat``, version 2 ``to_list(flatten=True)`` or a dataset on the hub: ``<q>.responses``, ``<q>.responses.users`` and
  ``<q>.responses.status`` are parallel lists; ``<q>.suggestion`` comes with ``.agent`` and ``.score``;
* ``nested``, version 2 ``to_disk`` or ``to_list()``: ``responses.<q>`` is a list of ``{value, user_id}`` and has no
  status, because only submitted answers are written;
* ``server``, from its API: ``responses`` is a list of ``{user_id, status, values: {<q>: {value}}}``;
* ``version 1``, on the hub: ``<q>`` is a list of ``{user_id, value, status}`` or an object of such lists, and
  ``<q>-suggestion`` is beside it;
* ``single``, before there were questions: ``annotation`` of one ``annotation_agent`` and ``prediction``, a list of
  ``{label, score}``, of a ``prediction_agent``.

Files are JSON (records, columns, records by id, a page of the API), JSON lines, Parquet, the folder from ``to_disk``,
or that of a dataset on the hub. An answer counts if its status is ``submitted``, or if the form has no status.
The record's own ``status`` is ignored: pending records have votes. If the dataset's ``settings.json`` is beside
the records, it says which questions are choices; without it the values decide, and a text question looks like a choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rarevote.errors import InputError, naming
from rarevote.io.duck import AS_WRITTEN, connection, first_line, literal
from rarevote.io.json_text import parse_json
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, as_text, shown_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.json_stream import walk_objects
from rarevote.io.read.options import ReadOptions
from rarevote.io.unpacked import check_parquet

if TYPE_CHECKING:
    from rarevote.io.platforms.write_back import ItemLabels


# --------------------------------------------------------------------------------------------------------------------
# records


SINGLE = "single"  # the form that cannot be written back
_OF_ANSWER = ("user_id", "value", "status")


class Response(NamedTuple):
    """One answer of one user to one question."""

    user: Any
    value: Any
    status: Any = None


class Suggestion(NamedTuple):
    """A model's suggestion for one question."""

    value: Any
    agent: Any = None


class Record(NamedTuple):
    """A record of any form: its answers and suggestions by question."""

    responses: dict[str, list[Response]]
    suggestions: dict[str, Suggestion]


def walk_records(files: ExportFiles) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and keys of every record, from JSON in any orientation, JSON lines or Parquet."""
    if files.parquet:
        yield from enumerate((record for file in files.parquet for record in _parquet_records(file)), 1)
        return
    for number, _, value in walk_objects(files.only(), "an object"):
        # to_dict(flatten=True) gives columns instead of records.
        by_column = isinstance(value.get("id"), list) or (number == 1 and form_of(value) is None)
        turned = _turned(value) if by_column else None
        yield from [(number, value)] if turned is None else enumerate(turned, 1)


def _turned(value: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Records of an object of columns or of an object by id (``to_dict``), or of a page; None for other objects."""
    for key in ("items", "rows"):  # of the APIs of Argilla and of the hub
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
            # Damage further down shows only when rows are fetched.
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
    form = form_of(fields) or "version 1"  # early records without answers have no mark
    readers = {"nested": _nested, "server": _server, "flat": _flat, "version 1": _version_1, SINGLE: _single}
    return readers[form](fields)


def _responses(answers: Any) -> list[Response]:
    """A list of ``{user_id, value, status}``."""
    listed = answers if isinstance(answers, list) else []
    return [Response(*map(one.get, _OF_ANSWER)) for one in listed if isinstance(one, Mapping)]


def _nested(fields: Mapping[str, Any]) -> Record:
    responses = {
        name: _responses(answers) for name, answers in fields["responses"].items() if isinstance(answers, list)
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
            parallel = (_as_long(value.get(what), size) for what in _OF_ANSWER)
            responses[key] = [Response(*answer) for answer in zip(*parallel, strict=True)]
        else:
            responses[key] = _responses(value)
        about = as_object(fields.get(f"{key}-suggestion-metadata"))
        suggestions[key] = Suggestion(fields.get(f"{key}-suggestion"), about.get("agent"))
    return Record(responses, suggestions)


def _single(fields: Mapping[str, Any]) -> Record:
    status = fields.get("status")
    known = {"Validated": "submitted", "Discarded": "discarded"}
    # Without an annotation, there is no answer yet; the status alone does not show it.
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
        raise InputError(f"{size} answers do not match the users or statuses: {shown_text(values)[:60]}")
    return values


def as_object(value: Any) -> Mapping[str, Any]:
    """An object, even if it is stored as text (the metadata of version 1)."""
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


# --------------------------------------------------------------------------------------------------------------------
# answers and suggestions


_CHOICE_TYPES = ("label_selection", "multi_label_selection", "rating")
_SETTINGS_PLACES = (".argilla/settings.json", "settings.json")


def recognises(beginning: Beginning) -> bool:
    """Whether the first records of a file are Argilla's."""
    if not all(isinstance(record, dict) for record in beginning.records):
        return False
    # Early versions have an empty list without answers: another record shows the form.
    return any(form_of(record) is not None or _turned(record) is not None for record in beginning.records)


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read records of any of the forms."""
    if options.question is not None:
        options = replace(options, question=options.question.removesuffix(".responses"))
    kinds = _question_kinds(files.path)
    title = str(files.path)
    collector = Collector(title, options)
    other: dict[str, str] = {}
    unmarked = 0
    for number, fields in walk_records(files):
        collector.n_records = number
        form = form_of(fields)
        if form is None:
            unmarked += 1
            _read_unmarked(fields, number, f"{title}: record {number:,}", collector)
            continue
        collector.details.setdefault("form", form)
        _read_record(fields, number, f"{title}: record {number:,}", collector, kinds, other)
    if unmarked and unmarked == collector.n_records:
        raise InputError(f"{title}: record 1 is not a record of Argilla: it has no responses")
    if options.question in other and options.question not in collector.questions:
        raise InputError(f"{title}: {options.question!r} is a {other[options.question]} question, not a choice")
    return collector.finish(
        "argilla",
        files.path,
        no_annotator="Argilla writes null for deleted users.",
        no_question=f"no question has choices as answers; found: {', '.join(map(repr, other)) or 'none'}",
    )


def _read_unmarked(fields: Mapping[str, Any], number: int, where: str, collector: Collector) -> None:
    """Read a record of an early version without answers."""
    collector.item(record_id(fields, number, where), collector.finder(as_object(fields.get("metadata")), fields))


def _read_record(
    fields: Mapping[str, Any],
    number: int,
    where: str,
    collector: Collector,
    kinds: Mapping[str, str],
    other: dict[str, str],
) -> None:
    with naming(where):
        record = as_record(fields)
    task = record_id(fields, number, where)
    where = f"{where} (id {task})"
    metadata = as_object(fields.get("metadata"))
    find = collector.finder(fields.get("fields"), fields.get("inputs"), metadata, fields)
    collector.item(task, find)
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
            user = None if user == "None" else user  # how version 2 writes a deleted user
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
    """Whether a question is answered by choosing; without settings, the values decide."""
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
    """Types of the questions, if the dataset's settings are beside the records."""
    folder = path if path.is_dir() else path.parent
    # Beside the records, or, in a clone of the hub, in the parent of the folder with the Parquet files.
    for place in [folder / name for name in _SETTINGS_PLACES] + [folder.parent / _SETTINGS_PLACES[0]]:
        try:
            settings = parse_json(place.read_text(encoding="utf-8"))
            questions = settings["questions"]
            return {str(entry["name"]): str(entry["settings"]["type"]) for entry in questions}
        except (OSError, ValueError, KeyError, TypeError):
            continue  # no settings, or those of another tool: the values decide
    return {}


# --------------------------------------------------------------------------------------------------------------------
# labels back: records in their original form, with the aggregated label as a suggestion


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
    """The records of an export with their labels, and whether each has one."""
    several = export.multilabel or export.details.get("several", False)
    for number, fields in walk_records(files):
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
    """Every record of an export with its fields; without metadata, which may contain a model's answer."""
    for number, record in walk_records(files):
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
    """A record in its own form without its answers."""
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
        # All records of this form have the same keys; without a label, a suggestion of another model stays.
        named = {"": value, ".score": score, ".agent": agent}
        whole = {**record, **{f"{question}.suggestion{ending}": entry for ending, entry in named.items()}}
        return {**whole, **record} if value is None else whole
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
    # Version 1 has one score per suggestion.
    known = [entry for entry in (score if isinstance(score, list) else [score]) if entry is not None]
    about = {"type": "model", "score": min(known, default=None), "agent": agent}
    return {**record, f"{question}-suggestion": value, f"{question}-suggestion-metadata": about}
