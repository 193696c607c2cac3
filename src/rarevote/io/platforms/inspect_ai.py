"""Inspect's logs (inspect-ai): every scorer of an evaluation is a judge of every sample.

A log is a ``.eval`` archive or a JSON file; ``samples_df(...)`` gives a table of logs, one row per sample with a column
``score_<scorer>`` for each scorer. A task is the ``id`` of a sample, with ``:<epoch>`` if samples were run several
times, and the sample's ``uuid`` if several evaluations ran the same samples: each run has another output, and
scorers judge outputs. A worker is a scorer, marked as a model; an answer is the value of its score. A score with
several values gives several questions. Only the summaries of the archive are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rarevote.errors import InputError
from rarevote.io.platforms import base
from rarevote.io.platforms.base import Export, as_text
from rarevote.io.platforms.collector import Collector
from rarevote.io.platforms.export_files import Beginning, ExportFiles, Part
from rarevote.io.platforms.json_stream import walk_json
from rarevote.io.platforms.table_records import open_table, value_in_cell
from rarevote.io.read.columns import match_columns, name_annotators
from rarevote.io.read.options import ReadOptions

_VALUE = "value"  # the question if a score is one value
_SCORE = "score_"
_TABLE = frozenset({"sample_id", "eval_id", "epoch", "id"})
_SUMMARIES = "summaries"
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")
_FOLDERS = ("_journal/summaries/", "samples/")  # for a truncated archive, and for old ones


@dataclass(frozen=True)
class _Sample:
    """One run of a sample.

    Attributes:
        where: the record, for messages.
        record: its keys.
        names: its possible names, the shortest first.
        scores: the value of each scorer.
    """

    where: str
    record: Mapping[str, Any]
    names: tuple[str, str, str]
    scores: dict[str, Any]


def recognises(beginning: Beginning) -> bool:
    """Whether a file is one of Inspect's logs, or a table of them."""
    if beginning.records:
        first = beginning.records[0]
        return isinstance(first, Mapping) and isinstance(first.get("eval"), Mapping) and "version" in first
    return set(beginning.header) >= _TABLE and any(name.startswith(_SCORE) for name in beginning.header)


def read(files: ExportFiles, options: ReadOptions) -> Export:
    """Read the scores of all samples."""
    samples = list(_samples(files))
    scorers = list(dict.fromkeys(name for sample in samples for name in sample.scores))
    if wanted := [name.removeprefix(_SCORE) for name in options.annotator_columns]:
        scorers = match_columns(wanted, scorers, str(files.path))
    kinds = _Kinds()
    # The shortest name that no two runs share.
    level = next((n for n in range(2) if len({one.names[n] for one in samples}) == len(samples)), 2)
    collector = Collector(str(files.path), options)
    for collector.n_records, sample in enumerate(samples, 1):
        task = sample.names[level]
        find = collector.finder(sample.record, sample.record.get("metadata"))
        collector.item(task, find)
        collector.named_columns(task, find, sample.where)
        for scorer in scorers:
            if scorer in sample.scores:
                _read_score(scorer, sample.scores[scorer], task, sample.where, collector, find, kinds)
    if level:
        named = "id:epoch" if level == 1 else "the uuid of the sample"
        collector.notes.append(f"the samples were run several times, so a task is {named}")
    export = collector.finish("inspect-ai", files.path, no_question="no sample has a score: score the log first")
    kinds.check(export)
    return export


class _Kinds:
    """The kinds of values of the scorers for the question: letters, numbers, booleans."""

    def __init__(self) -> None:
        self._scorers: dict[str, dict[str, None]] = {}

    def add(self, scorer: str, value: Any) -> None:
        kind = "numbers" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__
        self._scorers.setdefault(kind, {})[scorer] = None

    def check(self, export: Export) -> None:
        """Refuse scores that cannot be compared.

        Raises:
            InputError: scorers give values of different kinds.
        """
        if len(self._scorers) > 1:
            proposed = " or ".join(name_annotators(list(names)) for names in self._scorers.values())
            raise InputError(
                f"{export.path}: the scorers of {export.question!r} give values of different kinds, which are "
                f"different classes. Choose which to compare: {proposed}"
            )


def _read_score(scorer: str, value: Any, task: str, where: str, collector: Collector, find: Any, kinds: _Kinds) -> None:
    collector.judges.add(scorer)
    collector.answering(task, scorer)
    # Scorers with several values answer several questions.
    for question, given in (value if isinstance(value, Mapping) else {_VALUE: value}).items():
        collector.note(str(question), given)
        if collector.takes(str(question)):
            choices = [] if given is None else base.choices_in_value(given, f"{where}: {scorer}")
            if choices:
                kinds.add(scorer, given)
            collector.vote(task, scorer, choices, where, find)


# --------------------------------------------------------------------------------------------------------------------
# samples


def _samples(files: ExportFiles) -> Iterator[_Sample]:
    parts = _with_samples(files)
    if len(files.parts) == 1 and files.parts[0].kind == "table":
        yield from _rows(files.parts[0])
        return
    for part in parts:
        for number, record in walk_json(part):
            if isinstance(record, dict) and isinstance(record.get("samples"), list):
                for place, sample in enumerate(record["samples"], 1):
                    yield _of_log(sample, f"{part.title}: sample {place:,}")
            elif not isinstance(record, dict) or "eval" not in record:
                # Those of the journal are also lists, which are read already.
                yield _of_log(record, f"{part.title}: record {number:,}")
            else:
                raise InputError(
                    f"{part.title}: the log has no samples: write it with log_samples=True, and read it whole, not its "
                    "header only"
                )


def _with_samples(files: ExportFiles) -> list[Part]:
    """The files of a log that contain samples: the only file, or those of an archive."""
    if len(files.parts) < 2:
        return [files.only()]
    named = {part.title.removeprefix(f"{files.path}: "): part for part in files.parts}
    if f"{_SUMMARIES}.json" in named:
        return [named[f"{_SUMMARIES}.json"]]
    for folder in _FOLDERS:
        if found := [part for name, part in named.items() if name.startswith(folder)]:
            return found
    raise InputError(f"{files.path}: an archive without samples; give one log of Inspect at a time")


def _of_log(record: Any, where: str) -> _Sample:
    if not isinstance(record, dict):
        raise InputError(f"{where} is not a sample of Inspect's log")
    scores = record.get("scores")
    values = {
        str(name): score.get("value") if isinstance(score, dict) else score
        for name, score in (scores.items() if isinstance(scores, dict) else ())
    }
    return _named(where, record, values, record.get("uuid"))


def _rows(part: Part) -> Iterator[_Sample]:
    table = open_table(part)
    columns = table.beginning_with(_SCORE)
    for name in sorted(_TABLE):
        table.need("of a table of samples", name)
    for where, row in table.rows():
        scores = {name.removeprefix(_SCORE): _value_in(row[name]) for name in columns}
        yield _named(where, row, scores, row["sample_id"])


def _value_in(cell: str) -> Any:
    """The value in a log for the text in a table."""
    text = cell.strip()
    if text in ("", "True", "False"):
        return text == "True" if text else None
    return float(text) if _NUMBER.fullmatch(text) else value_in_cell(text)


def _named(where: str, record: Mapping[str, Any], scores: dict[str, Any], uuid: Any) -> _Sample:
    sample = as_text(record.get("id"), f"{where}: id")
    if sample is None:
        raise InputError(f"{where} has no id")
    epoch = as_text(record.get("epoch"), f"{where}: epoch") or "1"
    unique = as_text(uuid, f"{where}: uuid") or where
    return _Sample(where, record, (sample, f"{sample}:{epoch}", unique), scores)
