"""Label Studio's short exports, JSON-MIN, CSV and TSV: one record per annotation, answers beside the task's data.

A task is ``id``, an annotator ``annotator``. An answer is the name of the only choice, or the value of the result as in
the full export (``{"choices": [...]}``, ``[{"taxonomy": [...]}]``). Nothing marks which keys are questions:

* JSON-MIN, and older tables, write them after ``id`` and before ``annotator``;
* newer tables are sorted by name. Then questions are the columns that differ between the annotations of a task, and
  those with the value of a result in them.

Cancelled annotations are not in these files. Which annotations are ground truth, and predictions, are lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rarevote.errors import InputError, ParameterError
from rarevote.io.json_text import parse_json
from rarevote.io.platforms.base import Export, Options, as_text, listed, shown_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.json_records import walk_json
from rarevote.io.platforms.label_studio.controls import Controls, is_of_region, kind_of
from rarevote.io.platforms.parts import Part
from rarevote.io.platforms.questions import ALL, name_question
from rarevote.io.platforms.table_records import open_table

_TASK, _ANNOTATOR = "id", "annotator"
_OWN = frozenset({_TASK, _ANNOTATOR, "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history"})
_SAMPLED_TASKS = 20_000  # by which columns that differ within a task are found; something of each is kept in memory


def has_annotator(keys: Any) -> bool:
    """Whether these are the keys of a record, or the header of a table, of such an export."""
    return {_ANNOTATOR, "annotation_id", "lead_time"} <= set(keys)


def read_short(part: Part, path: Path, options: Options) -> Export:
    """Read the annotations of a file; ``path`` is where the export is."""
    if options.include_predictions and not options.prediction_columns:
        raise ParameterError(f"{part.title}: only Label Studio's full JSON export holds predictions; export as JSON")
    collector, controls = Collector(part.title, options), Controls()
    questions = _questions(part, options)
    for number, (where, record) in enumerate(_records(part, options.encoding), 1):
        collector.n_records = number
        _read_record(record, where, questions, collector, controls)
    controls.check(collector)
    return collector.finish(
        "label-studio",
        path,
        no_annotator="Export as JSON.",
        no_question=f"no choice control was answered; found: {controls.listed()}",
    )


def _records(part: Part, encoding: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if part.kind == "json":
        for number, record in walk_json(part, encoding):
            where = f"{part.title}: record {number:,}"
            if not isinstance(record, dict) or _ANNOTATOR not in record:
                raise InputError(f"{where} is not an annotation of Label Studio's JSON-MIN: it has no annotator")
            yield where, record
    else:
        table = open_table(part, encoding)
        table.need("who answered", _ANNOTATOR, advice="Export as JSON")
        for where, cells in table.rows():
            yield where, dict(zip(table.header, cells, strict=True))


# --------------------------------------------------------------------------------------------------------------------
# which keys are questions


def _questions(part: Part, options: Options) -> list[str]:
    found: dict[str, None] = {}
    keys: dict[str, None] = {}
    first: dict[str, dict[str, int]] = {}
    for _, record in _records(part, options.encoding):
        keys.update(dict.fromkeys(record))
        found.update(dict.fromkeys(_between(list(record))))
        found.update(dict.fromkeys(_differing(record, first)))
        found.update((key, None) for key in record if key not in _OWN and key not in found and _is_result(record[key]))
    if options.question is not None and options.question in keys:
        found[options.question] = None
    if not found and options.question in (None, ALL):
        raise InputError(
            f"{part.title}: which column holds the answers? None differs between the annotations of a task. Say which: "
            f"{name_question('...')}; there is {listed([key for key in keys if key not in _OWN])}"
        )
    return [key for key in keys if key in found]


def _between(keys: list[str]) -> list[str]:
    """The keys after the task's id and before the annotator; none where the order is another.

    The task's data comes before its id; where the id is first, it is a column of the data, or somebody sorted the keys.
    """
    if _TASK not in keys[1:]:
        return []
    return [key for key in keys[keys.index(_TASK) : keys.index(_ANNOTATOR)] if key not in _OWN]


def _differing(record: Mapping[str, Any], first: dict[str, dict[str, int]]) -> list[str]:
    """Keys whose value is another than in the task's first annotation."""
    task = shown_text(record.get(_TASK))
    if task not in first and len(first) == _SAMPLED_TASKS:
        return []
    seen = first.setdefault(task, {})
    texts = {key: hash(shown_text(value)) for key, value in record.items() if key not in _OWN}
    return [key for key, text in texts.items() if seen.setdefault(key, text) != text]


def _is_result(value: Any) -> bool:
    """Whether a value is that of a result and not data that was shown."""
    value = _decoded(value)
    results = value if isinstance(value, list) else [value]
    return bool(results) and all(isinstance(one, dict) and kind_of(one) is not None for one in results)


def _decoded(value: Any) -> Any:
    """A cell of a table as the value it stands for."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except ValueError:
            return value  # a choice may begin with a bracket
    return value


# --------------------------------------------------------------------------------------------------------------------
# annotations


def _read_record(
    record: Mapping[str, Any], where: str, questions: list[str], collector: Collector, controls: Controls
) -> None:
    task = as_text(record.get(_TASK), f"{where}: id")
    if task is None:
        raise InputError(f"{where} has no id")
    where = f"{where} (task {task})"
    find = collector.finder(record)
    collector.answering(task, shown_text(record[_ANNOTATOR]) or None)
    chosen: list[str] = []
    for name in questions:
        chosen += _answer(name, _decoded(record.get(name)), where, collector, controls)
    if as_text(record.get("annotation_id"), f"{where}: annotation_id") is None and not chosen:
        collector.leave_out("task without any annotation")
    else:
        collector.vote(task, _annotator(record[_ANNOTATOR], where), chosen, where, find)
    collector.named_columns(task, find, where)


def _answer(name: str, value: Any, where: str, collector: Collector, controls: Controls) -> list[str]:
    if value is None or value in ("", []):
        return []
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        (value,) = value
    if isinstance(value, list):
        # Several results of one control: a control has one for the task, or one for each of its regions.
        value, of_region, kind = {}, True, "choices" if not isinstance(value[0], dict) else kind_of(value[0])
    elif isinstance(value, dict):
        of_region, kind = is_of_region(value), kind_of(value)
    else:
        value, of_region, kind = {"choices": [value]}, False, "choices"
    answer = controls.answer(name, kind or "other", value, where, collector, of_region=of_region)
    return answer or []


def _annotator(value: Any, where: str) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    name = as_text(value, f"{where}: annotator")
    return None if name == "None" else name  # what a table says of nobody
