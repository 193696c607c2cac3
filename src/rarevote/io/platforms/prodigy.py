"""Prodigy's JSON lines: one line per answer.

A task is ``_input_hash`` (never ``_task_hash``: one item has several), an annotator ``_annotator_id`` or else
``_session_id``. Two kinds of questions:

* choices: ``accept`` lists the options chosen; it counts only if ``answer`` is ``accept``. The question is called
  ``accept``;
* yes or no: a line without options asks whether its ``label`` fits, and ``answer`` is ``accept`` or ``reject``. The
  question has the name of the label, or ``answer`` if there is none. With ``multilabel``, all labels are read
  together, under the name ``label``.

Any other key (a text field, the value of a custom block) can be named as the question.

Labels are written back as one line per item with the aggregated answer, for ``prodigy db-in``.

The line is that of the item's first answer, so that text, options and hashes are Prodigy's own; the annotator and the
time are replaced by the method. Prodigy shows the probability of the answer from ``meta``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rarevote.crowd.words import counted
from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, as_text, choices_in_value, task_in_record
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles
from rarevote.io.platforms.json_stream import walk_objects
from rarevote.io.read.options import ReadOptions

if TYPE_CHECKING:
    from rarevote.io.platforms.write_back import ItemLabels


CHOICE, BINARY, LABEL = "accept", "answer", "label"
_SPAN_VIEWS = frozenset(
    {"ner", "ner_manual", "spans", "spans_manual", "pos", "pos_manual", "dep", "relations", "image_manual",
     "audio_manual", "coref"}
)  # fmt: skip
_IGNORED = "ignored"
_NAMELESS = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")  # start time of the server, not the annotator


def recognises(beginning: Beginning) -> bool:
    """Whether the first records of a file are Prodigy's."""
    return bool(beginning.records) and all(
        isinstance(record, Mapping) and bool({"_input_hash", "_task_hash"} & record.keys())
        for record in beginning.records
    )


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the lines."""
    part = files.only()
    collector = Collector(part.title, options)
    spans = 0
    for collector.n_records, where, record in walk_objects(part, "an answer", "line"):
        task = task_in_record(record, where, "_input_hash", ": it is not an answer that Prodigy has stored (db-out)")
        answer = answer_of(record, where, options.question, multilabel=bool(options.multilabel), collector=collector)
        if answer is None:
            spans += 1
            collector.item(task, collector.finder(record, record.get("meta")))
        else:
            _read_line(record, task, answer, where, collector)
    collector.leave_out("answer about passages or boxes, not about the item", spans)
    if nameless := collector.workers_like(_NAMELESS):
        collector.cautions.append(
            f"{counted(nameless, 'annotator is', 'annotators are')} named after the start time of the server, "
            "so one person can have several names and several people one. Prodigy records names if annotators open the "
            "app with ?session=NAME"
        )
    return collector.finish(
        "prodigy",
        files.path,
        no_annotator="Prodigy records names if annotators open the app with ?session=NAME.",
        no_question=(
            f"no line has a choice; {counted(spans, 'line marks', 'lines mark')} spans, which cannot be aggregated"
            if spans
            else "no answers"
        ),
    )


@dataclass(frozen=True)
class StoredAnswer:
    """The answer on a line: its question and choices; ``asked`` if a single option was shown."""

    question: str
    choices: list[str]
    asked: str | None = None


def answer_of(
    record: Mapping[str, Any], where: str, wanted: str | None, *, multilabel: bool, collector: Collector | None = None
) -> StoredAnswer | None:
    """The answer on a line, None if it concerns spans.

    Args:
        record: the line.
        where: for messages.
        wanted: the question, if one was chosen.
        multilabel: whether all labels are read together.
        collector: gets the values that are not text, so that they can be written back unchanged.
    """
    names = choices_in_value if collector is None else collector.names
    if wanted is not None and wanted in record and wanted not in (CHOICE, BINARY, LABEL):
        return StoredAnswer(wanted, names(record[wanted], f"{where}: {wanted}"))
    if "options" in record or "accept" in record:
        return StoredAnswer(CHOICE, names(record.get("accept"), f"{where}: accept"))
    if str(record.get("_view_id")) in _SPAN_VIEWS or (record.get("spans") and "label" not in record):
        return None
    label = as_text(record.get("label"), f"{where}: label") or BINARY
    verdict = record.get("answer")
    if multilabel:
        # Every label is already a separate yes/no problem; without a choice, all of them are read.
        return StoredAnswer(LABEL if wanted in (None, LABEL) else label, [label] if verdict == "accept" else [], label)
    return StoredAnswer(label, [str(verdict)], label)


def _read_line(record: Mapping[str, Any], task: str, answer: StoredAnswer, where: str, collector: Collector) -> None:
    find = collector.finder(record, record.get("meta"))
    collector.named_columns(task, find, where)
    verdict = record.get("answer")
    if verdict not in ("accept", "reject", "ignore"):
        raise InputError(f"{where}: answer is {verdict!r}, not accept, reject or ignore")
    who = record.get("_annotator_id") or record.get("_session_id")
    collector.answering(None if verdict == "ignore" else task, base.shown_text(who) or None)
    collector.note(answer.question, answer.choices)
    taken = collector.takes(answer.question)
    asked = answer.asked if taken and collector.options.multilabel else None
    collector.item(task, find, asked=asked)
    if asked is not None:
        collector.details[base.ONE_CHOICE] = True
    if not taken:
        return
    if isinstance(record.get("versions"), list):
        # Stored by the review recipe; the annotators are in the datasets that were reviewed.
        collector.leave_out("decision of a review, not an annotator's answer")
    elif verdict == "ignore":
        collector.leave_out(_IGNORED)
    elif verdict == "reject" and answer.asked is None:
        # A rejected line can still contain a choice: it is not the annotator's answer.
        collector.leave_out(base.REJECTED)
    else:
        worker = as_text(record.get("_annotator_id"), f"{where}: _annotator_id")
        if worker is None:
            worker = as_text(record.get("_session_id"), f"{where}: _session_id")
        collector.vote(task, worker, answer.choices, where, find, asked=None if asked is None else (asked,))


# --------------------------------------------------------------------------------------------------------------------
# labels back: one line per item with the aggregated answer, for ``prodigy db-in``


_OF_AN_ANSWER = ("_annotator_id", "_session_id", "_timestamp", "answer", "accept", "versions")


def check(_: Mapping[str, Any]) -> None:
    """Do nothing: answers can be written for every form of Prodigy's lines."""


def labelled(
    export: Export, files: ExportFiles, results: Mapping[str, ItemLabels], model_version: str
) -> Iterator[tuple[dict[str, Any], bool]]:
    """One line for each item (and each label of yes/no questions) that has an answer.

    An item (or a label of it) without an answer is left out: ``db-in`` would read it as accepted.
    """
    seen: set[tuple[str, str]] = set()
    for _, where, record in walk_objects(files.only(), "an answer", "line"):
        task = task_in_record(record, where, "_input_hash")
        asked = answer_of(record, where, export.question, multilabel=export.multilabel)
        if asked is None or asked.question != export.question:
            continue
        label = asked.asked if export.multilabel and asked.asked is not None else ""
        result = results.get(task)
        if (task, label) in seen or result is None or (label and label not in result.decided):
            continue
        seen.add((task, label))
        kept = {key: value for key, value in record.items() if key not in _OF_AN_ANSWER}
        kept |= _answered(export, asked.asked, result)
        kept |= {"_annotator_id": model_version, "_session_id": model_version}
        score = result.decided[label][1] if label else result.score
        if score is not None:
            meta = record.get("meta")
            kept["meta"] = {**(meta if isinstance(meta, Mapping) else {}), "score": score}
        yield kept, True


def _answered(export: Export, asked: str | None, result: ItemLabels) -> dict[str, Any]:
    """The keys of an answer: the options chosen, a yes or no, or the value of another key."""
    values = [export.values.get(label, label) for label in result.labels]
    if asked is not None:
        yes = asked in result.labels if export.multilabel else values[:1] == ["accept"]
        return {"answer": "accept" if yes else "reject"}
    if export.question == CHOICE:
        return {CHOICE: values, BINARY: "accept"}
    return {export.question: values if export.multilabel else values[0], BINARY: "accept"}
