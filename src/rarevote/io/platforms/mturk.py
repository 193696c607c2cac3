"""Amazon Mechanical Turk's batch results: one row per assignment.

A task is ``HITId`` (or the ``Input.`` columns if that is missing), a worker ``WorkerId``. Answers come in several
shapes: ``Answer.<q>`` with the value (several are separated by ``|``), ``Answer.<q>.<option>`` with true or false for
every option, or ``Answer.taskAnswers``, a JSON text of these values. One HIT can show several items
(``Input.x_1 ... x_10``, ``Answer.x_1 ... x_10``); then the task is ``<HIT>:<item>``. Rejected assignments do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rarevote.errors import InputError
from rarevote.io.json_text import parse_json
from rarevote.io.platforms import base
from rarevote.io.platforms.base import ABSENT, Export
from rarevote.io.platforms.collector import Collector, collector_of
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.questions import QuestionSurvey
from rarevote.io.platforms.table_records import (
    PlatformTable,
    choices_in_cell,
    finder,
    json_in_cell,
    open_table,
    task_in,
    text_in,
)
from rarevote.io.read.options import ReadOptions

_INPUT, _ANSWER, _AS_JSON = "Input.", "Answer.", "Answer.taskAnswers"
# The command line tools write these names in lower case.
_WORKER, _HIT = ("WorkerId", "WorkerID", "workerid", "worker_id"), ("HITId", "HitId", "hitid")
_STATUS = ("AssignmentStatus", "assignmentstatus")
_COUNTED = frozenset({"", "approved", "submitted"})
_TICKS = {"true": True, "false": False}
_WITH_WORKERS = "Download the results with WorkerId"
_PLACE = "#"  # the number of an item in a name

_split = partial(choices_in_cell, separator="|")


def recognises(beginning: Beginning) -> bool:
    """Whether a header belongs to batch results."""
    known = {"workerid", "assignmentid", "hitid"}
    header = beginning.header
    return any(name.startswith(_ANSWER) for name in header) and any(name.lower() in known for name in header)


# --------------------------------------------------------------------------------------------------------------------
# which questions there are


@dataclass
class _Question:
    """A question: one value, or one tick per option; for each item if the HIT has several.

    Attributes:
        values: name of the answer, for each item; the item is "" if the HIT is the item.
        options: the options that anyone answered, if the answers are ticks of options.
    """

    values: dict[str, str] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)


class _Answers:
    """Reads the answers of a row by name, in any of their formats."""

    def __init__(self, table: PlatformTable) -> None:
        self._columns = table.beginning_with(_ANSWER)
        table.needed.update(self._columns)

    def of(self, row: Mapping[str, str], where: str) -> dict[tuple[str, str], str]:
        """Values by (question, option); the option is "" if the name has none."""
        found = {}
        for name in self._columns:
            if name != _AS_JSON:
                question, _, option = name.removeprefix(_ANSWER).partition(".")
                found[question, option] = row[name].strip()
        if text_in(row, _AS_JSON):
            where = f"{where}, {_AS_JSON}"
            try:
                given = parse_json(row[_AS_JSON])
            except ValueError as error:
                raise InputError(f"{where} is not JSON: {error}") from None
            for entry in given if isinstance(given, list) else [given]:
                if not isinstance(entry, Mapping):
                    raise InputError(f"{where} is not a list of objects")
                found.update(_flat(entry))
        return found


def _flat(entry: Mapping[str, Any], path: str = "") -> Iterator[tuple[tuple[str, str], str]]:
    """The leaves of nested answers; the innermost name is the option."""
    for name, value in entry.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.{name}" if path else name)
        else:
            key = (path, name) if path else (name, "")
            yield key, base.shown_text(value).strip()


def _find_questions(table: PlatformTable, answers: _Answers) -> dict[str, _Question]:
    """All questions by name, those of several items under one name."""
    ticks: dict[tuple[str, str], bool] = {}  # only answered ones: a form can have unused fields
    for where, row in table.rows():
        for key, value in answers.of(row, where).items():
            if value:
                ticks[key] = ticks.get(key, True) and value.lower() in _TICKS
    single: dict[str, _Question] = {}
    for (name, option), is_tick in ticks.items():
        if option and is_tick:
            single.setdefault(name, _Question({"": name})).options.add(option)
        else:
            full = f"{name}.{option}" if option else name
            single.setdefault(full, _Question({"": full}))
    inputs = [name.removeprefix(_INPUT) for name in table.beginning_with(_INPUT)]
    return _join_items(single, inputs)


def _join_items(single: Mapping[str, _Question], inputs: Iterable[str]) -> dict[str, _Question]:
    """Join the questions whose numbers are those of numbered inputs."""
    numbered_inputs = [set(numbers) for numbers in _numbered(inputs).values() if len(numbers) > 1]
    patterns = {
        pattern: numbers
        for pattern, numbers in _numbered(single).items()
        if len(numbers) > 1 and any(numbers.keys() <= known for known in numbered_inputs)
    }
    joined: dict[str, _Question] = {}
    for name, question in single.items():
        pattern = next((pattern for pattern, _ in _patterns(name) if pattern in patterns), None)
        if pattern is None:
            joined[name] = question
        else:
            members = patterns[pattern]
            options = [single[member].options for member in members.values()]
            together = set().union(*options) if all(options) else set()
            joined.setdefault(_shown_pattern(pattern), _Question(dict(members), together))
    return joined


def _patterns(name: str) -> Iterator[tuple[str, str]]:
    """A name without one of its numbers, and that number; the last number first."""
    for found in reversed(list(re.finditer(r"\d+", name))):
        yield name[: found.start()] + _PLACE + name[found.end() :], found.group()


def _numbered(names: Iterable[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for name in names:
        for pattern, number in _patterns(name):
            found.setdefault(pattern, {})[number] = name
    return found


def _shown_pattern(pattern: str) -> str:
    return pattern.removesuffix(_PLACE).rstrip("_-. ") or pattern


# --------------------------------------------------------------------------------------------------------------------
# reading


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the assignments."""
    table = open_table(files.only())
    answers = _Answers(table)
    questions = _find_questions(table, answers)
    if not questions:
        raise InputError(f"{table.title}: not MTurk's batch results: no column begins with {_ANSWER}")
    name, collector = collector_of(_survey(table, answers, questions, options.question), options)
    if len(questions[name].values) > 1:
        collector.notes.append(f"a HIT shows {len(questions[name].values)} items: tasks are named HIT:item")
    _read_rows(table, answers, name, questions[name], collector)
    return collector.finish("mturk", files.path, no_annotator=f"{_WITH_WORKERS}.")


def _survey(
    table: PlatformTable, answers: _Answers, questions: dict[str, _Question], wanted: str | None
) -> QuestionSurvey:
    plain = (wanted or "").removeprefix(_ANSWER)
    if wanted is not None and plain not in questions:
        # crowd-html elements add a level: category.label answers "category".
        within = [name for name in questions if name.startswith(f"{plain}.")]
        numbered = next((one for one in questions.values() if plain in one.values.values()), None)
        if len(within) == 1:
            wanted = within[0]
        elif numbered is not None:
            # One of several numbered questions, requested by its own name: it is not an item.
            questions[plain] = _Question({"": plain}, numbered.options)
    survey = QuestionSurvey(table.title, wanted, _ANSWER)
    for name in questions:
        survey.found(name)
    if survey.is_open and len(questions) > 1:
        _tally(table, answers, questions, survey)
    return survey


def _tally(table: PlatformTable, answers: _Answers, questions: Mapping[str, _Question], survey: QuestionSurvey) -> None:
    """Pass every answer to the survey; it separates hidden inputs and times from choices by their values."""
    inputs = table.beginning_with(_INPUT)
    for where, row in table.rows():
        given = answers.of(row, where)
        hit, worker = task_in(row, _HIT, inputs), text_in(row, *_WORKER) or None
        for name, question in questions.items():
            for item, answer in question.values.items():
                chosen = _raw_choices(given, answer, question)
                value = json_in_cell(chosen) if isinstance(chosen, str) else chosen
                several = value.split("|") if isinstance(value, str) else value
                survey.note(name, several, f"{hit}:{item}", worker)


def _read_rows(table: PlatformTable, answers: _Answers, name: str, question: _Question, collector: Collector) -> None:
    table.need("the worker", *_WORKER, advice=_WITH_WORKERS)
    inputs = table.beginning_with(_INPUT)
    if table.find(*_HIT) is None and not inputs:
        raise InputError(f"{table.title}: no column HITId and no {_INPUT} column says which task it is")
    collector.finder(dict.fromkeys(table.header))
    numbered = _numbered(table.header)
    inputs_of = _inputs_of_items(table, question)
    hit_of_input: dict[int, str] = {}
    alike: set[str] = set()
    for where, row in table.rows():
        collector.n_records += 1
        hit = task_in(row, _HIT, inputs)
        if not hit:
            raise InputError(f"{where} has no HITId and no input")
        if inputs and hit_of_input.setdefault(hash(tuple(row[name] for name in inputs)), hit) != hit:
            alike.add(hit)
        # An assignment marked for rejection may not have been uploaded yet.
        status = "rejected" if text_in(row, "Reject", "reject") else text_in(row, *_STATUS).lower()
        given = answers.of(row, where)
        ticked = bool(question.options)
        for item, answer in question.values.items():
            task = f"{hit}:{item}" if item else hit
            find = _finder(row, item, numbered)
            # The last HIT of a batch can show fewer items than its form has places for.
            if item not in inputs_of or any(row[name].strip() for name in inputs_of[item]):
                collector.item(task, find)
            collector.named_columns(task, find, where, _split)
            if status not in _COUNTED:
                collector.leave_out(base.REJECTED if status == "rejected" else f"status {status}")
                continue
            choices = _choices(given, answer, question, f"{where}, {_ANSWER}{answer}")
            collector.vote(task, text_in(row, *_WORKER) or None, choices, where, find, empty_is_no=ticked)
    if alike:
        collector.notes.append(f"{len(alike):,} HITs have the inputs of another HIT; each is a separate task here")


def _inputs_of_items(table: PlatformTable, question: _Question) -> dict[str, list[str]]:
    """The columns with the inputs of each item of a HIT; none if the HIT is the item."""
    columns: dict[str, list[str]] = {}
    for numbers in _numbered(table.beginning_with(_INPUT)).values():
        if question.values.keys() <= numbers.keys():
            for item in question.values:
                columns.setdefault(item, []).append(numbers[item])
    return columns


def _choices(given: Mapping[tuple[str, str], str], name: str, question: _Question, where: str) -> list[str]:
    found = _raw_choices(given, name, question)
    return _split(found, where) if isinstance(found, str) else found


def _raw_choices(given: Mapping[tuple[str, str], str], name: str, question: _Question) -> str | list[str]:
    """The ticked options of a question, or the text that answers it."""
    if not question.options:
        plain, _, option = name.partition(".")
        value = given.get((name, ""), "") or given.get((plain, option), "")
        # A name from taskAnswers can have dots in both of its parts.
        return value or next((text for key, text in given.items() if ".".join(filter(None, key)) == name), "")
    options = {
        option: value.lower()
        for (asked, option), value in given.items()
        if asked == name and value and option in question.options
    }
    if len(question.options) == 1:
        # A single box is a separate question: ticked or not. A row can have only the boxes that were ticked.
        return list(options.values())
    return [option for option, value in options.items() if _TICKS.get(value)]


def _finder(row: Mapping[str, str], item: str, numbered: Mapping[str, Mapping[str, str]]) -> Callable[[str], Any]:
    """A function that finds cells to show, by full name, by name without prefix, or by the name that items share."""
    plain = finder(row, _INPUT, _ANSWER)

    def find(name: str) -> Any:
        found = plain(name)
        if found is ABSENT and item:
            for pattern, numbers in numbered.items():
                if item in numbers and name in (_shown_pattern(pattern), _shown_pattern(pattern)[len(_INPUT) :]):
                    found = row[numbers[item]]
        return found

    return find
