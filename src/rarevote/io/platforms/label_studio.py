"""Label Studio: its JSON export, its short exports, and writing labels back.

The JSON export is a list of tasks, each with its annotations. A task is ``id``, an annotator
``annotations[].completed_by`` (a number, or an object with an e-mail), an answer the result of a control whose
``from_name`` is the question. These are not votes: cancelled annotations, drafts, annotations that a reviewer
rejected, and ``ground_truth`` annotations, which are gold and would leak if they were also votes. Imported annotations
are also marked so: if a task has several, or all of an export are marked, they are votes. A page of tasks from the API
is read like an export.

The controls ``Choices`` and ``Taxonomy`` are questions; ``Rating``, ``Number`` and ``Pairwise`` are only if they are
named. A choice about a part of the item (a box, a passage, one picture of several) is not a vote on
the task.

The short exports, JSON-MIN, CSV and TSV, have one record per annotation, with answers beside the task's data. A task is
``id``, an annotator ``annotator``. An answer is the name of the only choice, or the value of the result as in the full
export (``{"choices": [...]}``, ``[{"taxonomy": [...]}]``). Questions are not marked:

* JSON-MIN, and older tables, write them after ``id`` and before ``annotator``;
* newer tables are sorted by name. Then questions are the columns that differ between the annotations of a task, and
  those that contain the value of a result.

Cancelled annotations are not in these files. They do not show ground truth and predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError, how
from rarevote.io.json_text import parse_json
from rarevote.io.platforms import base
from rarevote.io.platforms.base import ALL, Export, as_text, shown_names, shown_text, task_in_record
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles, Part
from rarevote.io.platforms.json_stream import first_records, walk_json, walk_objects
from rarevote.io.platforms.label_studio_controls import PATH_MARK, Controls, is_of_region, kind_of
from rarevote.io.platforms.questions import name_question
from rarevote.io.platforms.table_records import open_table
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.io.platforms.write_back import ItemLabels


# --------------------------------------------------------------------------------------------------------------------
# the JSON export


_NOT_THE_EXPORT = (
    "is not a task of Label Studio's JSON export (it has no 'annotations' and no 'data'), and not an annotation of "
    "JSON-MIN (it has no 'annotator'). Export as JSON"
)


def recognises(beginning: Beginning) -> bool:
    """Whether a file is one of Label Studio's exports."""
    if records := beginning.records:
        return all(
            isinstance(record, dict) and (_is_task(record) or has_annotator(record) or _is_page(record))
            for record in records
        )
    return has_annotator(beginning.header)


def _is_task(record: Mapping[str, Any]) -> bool:
    lists = ("annotations", "completions", "predictions")
    return isinstance(record.get("data"), dict) and any(isinstance(record.get(key), list) for key in lists)


def _is_page(record: Mapping[str, Any]) -> bool:
    """Whether a record is a page of tasks, as the API returns it."""
    tasks = record.get("tasks")
    return isinstance(tasks, list) and all(isinstance(one, dict) and isinstance(one.get("data"), dict) for one in tasks)


def _tasks(part: Part, totals: set[int] | None = None) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    """Number, location and keys of every task; adds the number of tasks that the pages state to ``totals``."""
    number = 0
    for _, where, record in walk_objects(part, "a task"):
        is_page = _is_page(record)
        if is_page and totals is not None and isinstance(record.get("total"), int):
            totals.add(record["total"])
        for task in record["tasks"] if is_page else [record]:
            number += 1
            yield number, f"{part.title}: task {number:,} of a page" if is_page else where, task


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read an export, one task at a time."""
    part = files.only()
    if _is_short(part):
        return read_short(part, files.path, options)
    collector, controls = Collector(part.title, options), Controls()
    bare, totals = 0, set[int]()
    truth = _GroundTruth(options.ground_truth, part)
    for collector.n_records, where, record in _tasks(part, totals):
        if "annotators" in record and "annotations" not in record and "completions" not in record:
            raise InputError(f"{where} has no annotations: ask the API for them (GET /api/tasks?...&fields=all)")
        bare += _read_task(record, where, collector, controls, truth)
    controls.check(collector)
    collector.leave_out("annotation given only by its id", bare)
    collector.notes += truth.notes()
    if totals and collector.n_records < max(totals):
        collector.cautions.append(
            f"{collector.n_records:,} of the project's {max(totals):,} tasks are in this file: ask the API for all of "
            "them (page_size)"
        )
    return collector.finish(
        "label-studio",
        files.path,
        no_annotator="Export with completed_by.",
        no_question=(
            f"{counted(bare, 'annotation is', 'annotations are')} given only by their ids; export with full annotations"
            if bare
            else f"no choice control has answers; controls found: {controls.listed()}"
        ),
    )


def _is_short(part: Part) -> bool:
    if part.kind != "json":
        return part.kind == "table"
    first = next(iter(first_records(part, 1)), None)
    return isinstance(first, dict) and "annotator" in first and not _is_task(first)


class _GroundTruth:
    """The role of annotations that are marked as ground truth.

    Args:
        asked: their role, if the user gives it.
        part: the export.
    """

    def __init__(self, asked: str | None, part: Part) -> None:
        self._asked, self._part = asked, part
        self._all: bool | None = None
        self._n_votes = 0

    def role(self, annotations: list[Mapping[str, Any]]) -> str:
        """The role of the marked annotations of a task."""
        n_marked = sum(map(_is_marked, annotations))
        if self._all is None and not _are_marked(annotations):
            self._all = False
        if self._asked is not None or not n_marked:
            return self._asked or "gold"
        role = "votes" if n_marked > 1 or self._are_all() else "gold"
        self._n_votes += n_marked if role == "votes" else 0
        return role

    def _are_all(self) -> bool:
        """Whether all annotations of the export are marked; reads up to the first that is not."""
        if self._all is None:
            given = (_objects(_annotations(task), where) for _, where, task in _tasks(self._part))
            self._all = all(map(_are_marked, given))
        return self._all

    def notes(self) -> list[str]:
        """Notes about them."""
        if not self._n_votes:
            return []
        gold = how('ground_truth="gold"', "--ground-truth gold")
        marked = f"{counted(self._n_votes, 'annotation is', 'annotations are')} marked as ground truth"
        return [f"{marked}, which Label Studio does on import; they are read as votes ({gold} uses them as gold)"]


def _is_marked(annotation: Mapping[str, Any]) -> bool:
    return bool(annotation.get("ground_truth") or annotation.get("honeypot"))


def _are_marked(annotations: list[Mapping[str, Any]]) -> bool:
    """Whether all annotations of a task that answer something are marked."""
    return all(_is_marked(one) for one in annotations if one.get("result"))


def _annotations(record: Mapping[str, Any]) -> Any:
    return record.get("annotations", record.get("completions"))


def _read_task(
    record: Mapping[str, Any], where: str, collector: Collector, controls: Controls, truth: _GroundTruth
) -> int:
    """Read a task; returns how many of its annotations are only ids."""
    annotations = _annotations(record)
    if annotations is None and not isinstance(record.get("data"), dict):
        raise InputError(f"{where} {_NOT_THE_EXPORT}")
    task = task_in_record(record, where)
    where = f"{where} (task {task})"
    find = collector.finder(record.get("data"), record)
    collector.item(task, find)
    whole = _objects(annotations, f"{where}: annotations")
    role = truth.role(whole)
    for annotation in whole:
        _read_annotation(annotation, task, where, collector, controls, find, role)
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
    """A list of objects; a list of ids (exports can be limited to these) becomes empty."""
    if values is None:
        return []
    if not isinstance(values, list):
        raise InputError(f"{where} is a {type(values).__name__}, not a list")
    return [value for value in values if isinstance(value, dict)]


def _read_annotation(
    annotation: Mapping[str, Any], task: str, where: str, collector: Collector, controls: Controls, find: Any, role: str
) -> None:
    # The controls are recorded even if the answer does not count: they show which questions exist.
    collector.answering(task, base.shown_text(annotation.get("completed_by")) or None)
    choices = _choices(annotation.get("result"), where, collector, controls)
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        collector.leave_out(base.CANCELLED)
    elif _is_rejected(annotation):
        collector.leave_out(base.REJECTED)
    elif role != "votes" and _is_marked(annotation) and (choices or collector.options.multilabel):
        collector.leave_out(base.TAKEN_AS_GOLD if role == "gold" else base.IGNORED_TRUTH)
        if role == "gold":
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
                if number is None:
                    return name
                # The same person as a bare number, or with an earlier address, elsewhere in the file is not another.
                collector.aliases[number] = name
                break
        return number
    if completed_by is None:
        completed_by = annotation.get("created_username")  # before version 1.0
    return as_text(completed_by, f"{where}: completed_by")


def _choices(results: Any, where: str, collector: Collector, controls: Controls) -> list[str]:
    """The answer of a result list to the collected question."""
    entries = _objects(results, f"{where}: result")
    regions = {str(entry.get("id")) for entry in entries if is_of_region(entry.get("value"))}
    chosen: list[str] = []
    for entry in entries:
        name, kind = entry.get("from_name"), entry.get("type")
        if not isinstance(name, str) or not isinstance(kind, str):
            continue
        # One of several pictures is also a part of the item.
        of_region = ("id" in entry and str(entry["id"]) in regions) or entry.get("item_index") is not None
        answer = controls.answer(name, kind, entry.get("value"), where, collector, of_region=of_region)
        if answer is not None:
            collector.details.setdefault("control", {"to_name": entry.get("to_name"), "type": kind})
            chosen += answer
    return chosen


# --------------------------------------------------------------------------------------------------------------------
# the short exports


_TASK, _ANNOTATOR = "id", "annotator"
_OWN = frozenset({_TASK, _ANNOTATOR, "annotation_id", "created_at", "updated_at", "lead_time", "agreement", "history"})
_SAMPLED_TASKS = 20_000  # tasks used to find columns that differ within a task; part of each is kept in memory


def has_annotator(keys: Any) -> bool:
    """Whether these are the keys of a record, or the header of a table, of a short export."""
    return {_ANNOTATOR, "annotation_id", "lead_time"} <= set(keys)


def read_short(part: Part, path: Path, options: ReadOptions) -> Export:
    """Read the annotations of a file; ``path`` is where the export is."""
    if options.ground_truth:
        raise ParameterError(f"{part.title}: only Label Studio's full JSON export marks ground truth; export as JSON")
    if options.include_predictions and not options.prediction_columns:
        raise ParameterError(f"{part.title}: only Label Studio's full JSON export has predictions; export as JSON")
    collector, controls = Collector(part.title, options), Controls()
    questions, controls.of_regions = _questions(part, options)
    for number, (where, record) in enumerate(_records(part), 1):
        collector.n_records = number
        _read_record(record, where, questions, collector, controls)
    controls.check(collector)
    return collector.finish(
        "label-studio",
        path,
        no_annotator="Export as JSON.",
        no_question=f"no choice control has answers; found: {controls.listed()}",
    )


def _records(part: Part) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if part.kind == "json":
        for number, record in walk_json(part):
            where = f"{part.title}: record {number:,}"
            if not isinstance(record, dict) or _ANNOTATOR not in record:
                raise InputError(f"{where} is not an annotation of Label Studio's JSON-MIN: it has no annotator")
            yield where, record
    else:
        table = open_table(part)
        table.need("who answered", _ANNOTATOR, advice="Export as JSON")
        yield from table.rows()


# --------------------------------------------------------------------------------------------------------------------
# which keys are questions


def _questions(part: Part, options: ReadOptions) -> tuple[list[str], set[str]]:
    """The keys that are questions, and those that are asked about regions by at least one annotation."""
    found: dict[str, None] = {}
    of_regions: set[str] = set()
    keys: dict[str, None] = {}
    first: dict[str, dict[str, int]] = {}
    for _, record in _records(part):
        keys.update(dict.fromkeys(record))
        found.update(dict.fromkeys(_between(list(record))))
        found.update(dict.fromkeys(_differing(record, first)))
        for key in record.keys() - _OWN - (found.keys() & of_regions):
            value = _decoded(record[key])
            if _is_result(value):
                found[key] = None
            if isinstance(value, (list, dict)) and value and _result(value)[2]:
                of_regions.add(key)
    if options.question is not None and options.question in keys:
        found[options.question] = None
    if not found and options.question in (None, ALL):
        raise InputError(
            f"{part.title}: cannot find the column of answers. None differs between the annotations of a task. Name "
            f"it: {name_question('...')}; the columns are {shown_names([key for key in keys if key not in _OWN])}"
        )
    return [key for key in keys if key in found], of_regions


def _between(keys: list[str]) -> list[str]:
    """The keys after the task's id and before the annotator; none if the order is different.

    The task's data comes before its id; if the id is first, it is a column of the data, or the keys were sorted.
    """
    if _TASK not in keys[1:]:
        return []
    return [key for key in keys[keys.index(_TASK) : keys.index(_ANNOTATOR)] if key not in _OWN]


def _differing(record: Mapping[str, Any], first: dict[str, dict[str, int]]) -> list[str]:
    """Keys whose value differs from the task's first annotation."""
    task = shown_text(record.get(_TASK))
    if task not in first and len(first) == _SAMPLED_TASKS:
        return []
    seen = first.setdefault(task, {})
    texts = {key: hash(shown_text(value)) for key, value in record.items() if key not in _OWN}
    return [key for key, text in texts.items() if seen.setdefault(key, text) != text]


def _is_result(value: Any) -> bool:
    """Whether a value is that of a result and not data that was shown."""
    results = value if isinstance(value, list) else [value]
    return bool(results) and all(isinstance(one, dict) and kind_of(one) is not None for one in results)


def _decoded(value: Any) -> Any:
    """A cell of a table as the value that it represents."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return parse_json(value)
        except ValueError:
            return value  # a choice can begin with a bracket
    return value


# --------------------------------------------------------------------------------------------------------------------
# annotations


def _read_record(
    record: Mapping[str, Any], where: str, questions: list[str], collector: Collector, controls: Controls
) -> None:
    task = task_in_record(record, where)
    where = f"{where} (task {task})"
    find = collector.finder(record)
    collector.item(task, find)
    collector.answering(task, shown_text(record[_ANNOTATOR]) or None)
    chosen: list[str] = []
    for name in questions:
        chosen += _answer(name, _decoded(record.get(name)), where, collector, controls)
    if chosen or as_text(record.get("annotation_id"), f"{where}: annotation_id") is not None:
        collector.vote(task, _short_annotator(record[_ANNOTATOR], where), chosen, where, find)
    collector.named_columns(task, find, where)


def _answer(name: str, value: Any, where: str, collector: Collector, controls: Controls) -> list[str]:
    if value is None or value in ("", []):
        return []
    value, kind, of_region = _result(value)
    # An annotation with a single region does not show that its answer is about a region; others do.
    of_region |= name in controls.of_regions
    answer = controls.answer(name, kind or "other", value, where, collector, of_region=of_region)
    return answer or []


def _result(value: Any) -> tuple[Any, str | None, bool]:
    """The value of a result as in the full export, its kind, and whether it is about regions."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        (value,) = value
    if isinstance(value, list):
        # Several results of one control: a control has one for the task, or one for each of its regions.
        return {}, "choices" if not isinstance(value[0], dict) else kind_of(value[0]), True
    if isinstance(value, dict):
        return value, kind_of(value), is_of_region(value)
    return {"choices": [value]}, "choices", False


def _short_annotator(value: Any, where: str) -> str | None:
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, dict):
        value = value.get("email") or value.get("id")
    name = as_text(value, f"{where}: annotator")
    return None if name == "None" else name  # the text in a table for no annotator


# --------------------------------------------------------------------------------------------------------------------
# labels back: tasks with the aggregated label as a prediction


_KEPT = ("id", "data", "meta")  # of a task


def check(details: Mapping[str, Any]) -> None:
    """Refuse the short exports, by the details of an :class:`Export`."""
    if "control" not in details:
        raise InputError(
            "labels can be written back only to Label Studio's full JSON export: JSON-MIN and CSV do not say what is "
            "data and what the controls are called. Export as JSON"
        )


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """The tasks of an export with their labels, and whether each has one."""
    control = export.details["control"]
    for _, where, record in _tasks(files.only()):
        task = task_in_record(record, where)
        result = results.get(task)
        kept = {key: record[key] for key in _KEPT if key in record}
        predictions = []
        if result is not None:
            entry = {
                "id": f"rarevote-{task}",
                "from_name": export.question,
                "to_name": control["to_name"],
                "type": control["type"],
                "value": _value(export, control["type"], result.labels),
            }
            chosen = [entry] if result.labels else []  # nothing ticked is an empty result
            prediction = {"model_version": model_version, "score": result.score, "result": chosen}
            predictions.append({key: value for key, value in prediction.items() if value is not None})
        yield {**kept, "predictions": predictions}, result is not None


def items(export: Export, files: ExportFiles) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every task of an export with its data; none from the short exports, which do not mark what is data."""
    if "control" not in export.details:
        return
    for _, where, record in _tasks(files.only()):
        if isinstance(record.get("data"), dict):
            ours = own_columns(record)
            shown = {name: value for name, value in record["data"].items() if name not in ours}
            yield task_in_record(record, where), shown


#: the key of a task's ``meta`` that lists the columns of its data that ``rarevote push`` wrote
OWN_COLUMNS = "rarevote_columns"


def own_columns(record: Mapping[str, Any]) -> frozenset[str]:
    """Columns of a task's data that ``rarevote push`` wrote; annotators must not see them.

    >>> own_columns({"data": {"p_defect": 0.9}, "meta": {"rarevote_columns": ["p_defect"]}})
    frozenset({'p_defect'})
    """
    meta = record.get("meta")
    names = meta.get(OWN_COLUMNS) if isinstance(meta, dict) else None
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _value(export: Export, kind: str, labels: list[str]) -> dict[str, Any]:
    values = [export.values.get(label, label) for label in labels]
    if not values:
        return {}
    if kind == "taxonomy":
        paths = [value if isinstance(value, list) else value.split(PATH_MARK) for value in values]
        return {"taxonomy": paths}
    if kind == "pairwise":
        return {"selected": values[0]}
    return {kind: values if kind == "choices" else values[0]}
