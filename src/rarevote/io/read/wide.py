"""Wide tables: one row per task and one column per annotator or judge.

Such a table has no columns for workers and labels. It is recognised by a group of columns with the same few values, but
not a single value throughout; the first column without duplicates is the task. If there are several groups, the one
whose columns are named like votes (``score_*``, ``judge_*``, names of models) is used; if that does not decide,
the table is refused. A column with the expected answer is not an annotator: it can be gold.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarevote.crowd.words import listed
from rarevote.errors import ColumnsError, InputError, ParameterError, how
from rarevote.io.duck import identifier
from rarevote.io.read.columns import match_columns, may_be, name_annotators, plain_name
from rarevote.io.read.encode import WHOLE_NUMBER, Choice, not_blank
from rarevote.io.read.options import ReadOptions
from rarevote.io.read.sources import FileTable, asking

# Counting the values of a column takes megabytes, however few there are.
_PROFILED_AT_ONCE = 64
_FEW_VALUES = 20  # most values of a column of answers, to be recognised
_MIN_ANNOTATORS = 2
_EXPECTED = frozenset({
    "truth", "gold", "goldlabel", "goldstandard", "goldanswer", "truelabel", "groundtruth", "expected",
    "expectedanswer", "expectedlabel", "expectedverdict", "reference", "referencelabel", "referenceanswer", "correct",
    "correctanswer", "correctlabel", "answerkey", "target", "label",
})  # fmt: skip
# Names of language models, at the beginning of a word, and generic names for models.
_MODEL = re.compile(
    r"(chat)?gpt|openai|o[134]$|claude|opus|sonnet|haiku|anthropic|gemini|gemma|llama|vicuna|mi[sx]tral|qwen|deepseek|"
    r"phi\d|grok|cohere|falcon|(ro|de)?bert|llm|models?\d*$|judges?\d*$"
)
# Prefixes of columns with votes, before the name or number of the annotator.
_VOTES = re.compile(
    r"(?i)(scores?|judges?|graders?|raters?|ratings?|annotators?|workers?|coders?|reviewers?|votes?|labell?ers?)([^a-z]|$)"
)
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)?")
# Parts of the names of columns with counts or numbers.
_COUNTERS = frozenset({
    "count", "counts", "counter", "epoch", "fallback", "fallbacks", "fold", "id", "index", "latency", "length", "limit",
    "ms", "retries", "retry", "rows", "seconds", "secs", "seed", "time", "token", "tokens", "turn", "turns", "usage",
})  # fmt: skip
_PARTS_OF_NAMES = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")


def is_model_name(name: str) -> bool:
    """Whether an annotator is named like a language model or another automatic judge.

    >>> [is_model_name(name) for name in ("gpt-4o", "judge_2", "model:v3", "Claude Sonnet", "ana", "Modesta")]
    [True, True, True, True, False, False]
    """
    return any(_MODEL.match(part.lower()) for part in _PARTS_OF_NAMES.split(name))


@dataclass(frozen=True)
class WideTable:
    """The columns of a wide table.

    Attributes:
        task: the column that names the task.
        annotators: the columns that hold votes.
        expected: columns that may contain the expected answer.
        others: columns that are neither.
        values: the different votes of annotators who have few.
    """

    task: str
    annotators: list[str]
    expected: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    values: frozenset[str] = frozenset()

    @property
    def choice(self) -> Choice:
        """The columns to read."""
        return Choice({"task": self.task}, self.annotators)

    def notes(self, *, found: bool, gold: str | None) -> list[str]:
        """Notes: how the table was read, if that was detected, and which column may be gold."""
        said = []
        if found:
            aside = f"; not read: {listed(self.others)}" if self.others else ""
            people = listed(self.annotators, 8)
            said.append(f"read as a wide table: the task is {self.task!r}, the annotators are {people}{aside}")
        elif self.others:
            said.append(f"{listed(self.others)}: free text, ignored")
        if self.expected and gold is None:
            name = self.expected[0]
            use = how(f"gold_column={name!r}", f"--gold-column {shlex.quote(name)}")
            said.append(f"column {name!r} looks like the expected answer and is not a vote; to use it as gold: {use}")
        return said


@dataclass(frozen=True)
class ColumnProfile:
    """Profile of a column: number of cells that are not blank, of distinct values, and the values if they are few."""

    n_filled: int
    n_distinct: int
    values: frozenset[str]

    @property
    def is_text(self) -> bool:
        """Whether it has many distinct texts or numbers, which are not votes."""
        return self.n_distinct > _FEW_VALUES and 2 * self.n_distinct > self.n_filled


def recognise_wide(
    source: FileTable, columns: Mapping[str, str] | None, shown: Sequence[str], gold: str | None
) -> WideTable | None:
    """The wide table that is detected, or None."""
    chosen = dict(columns or {})
    if not source.columns or set(chosen) - {"task"} or any(may_be("worker", name) for name in source.columns):
        return None
    n_rows, profiles = column_profiles(source)
    unique = _without_repeats(n_rows, profiles)
    task = chosen.get("task") or next(iter(unique), None)
    if task is None:
        return None
    taken = {task, *shown, *source.partitions}
    small = {name: one.values for name, one in profiles.items() if one.values and name not in taken}
    groups = _groups({name: _without_points(values) for name, values in small.items() if not _counts(name)}, gold)
    if not groups:
        return None
    best = [group for group in groups if group.rank == max(one.rank for one in groups)]
    if len(best) > 1:
        _refuse_groups(source.title, best)
    (group,) = best
    known = {*taken, *group.annotators, *group.expected, gold}
    others = [name for name in source.columns if name not in known]
    return WideTable(task, group.annotators, group.expected, others, _values(profiles, group.annotators))


@dataclass(frozen=True)
class _Group:
    """Columns with the same few values.

    Attributes:
        annotators: columns that may be votes.
        expected: columns that are named like the expected answer.
        rank: how strongly their names suggest votes.
    """

    annotators: list[str]
    expected: list[str]
    rank: int


def _groups(small: dict[str, frozenset[str]], gold: str | None) -> list[_Group]:
    """The groups of columns that look like votes, the largest first."""
    groups = []
    left = dict(small)
    while left:
        alike = max(
            ([other for other in left if _alike(left[name], left[other])] for name in left), key=len, default=[]
        )
        values = frozenset().union(*(left.pop(name) for name in alike))
        expected = [name for name in alike if plain_name(name) in _EXPECTED and name != gold]
        annotators = [name for name in alike if name not in (*expected, gold)]
        called = [name for name in annotators if _VOTES.match(name) or is_model_name(name)]
        if len(called) >= _MIN_ANNOTATORS and all(map(_NUMBER.fullmatch, values)):
            annotators = called  # others can have the same numbers as counts
        varies = any(len(small[name]) > 1 for name in annotators)
        if len(annotators) >= _MIN_ANNOTATORS and varies:
            groups.append(_Group(annotators, expected, min(len(called), _MIN_ANNOTATORS)))
    return groups


def _without_points(values: Iterable[str]) -> frozenset[str]:
    return frozenset(map(without_point, values))


def without_point(value: str) -> str:
    """``1`` for ``1.0``: pandas writes a column of integers with gaps in this way.

    >>> [without_point(value) for value in ("1.0", "1", "1.5", "v1.0")]
    ['1', '1', '1.5', 'v1.0']
    """
    return re.sub(WHOLE_NUMBER, r"\1", value)


def _counts(name: str) -> bool:
    """Whether a column is named like a count or a number."""
    return not _VOTES.match(name) and any(part.lower() in _COUNTERS for part in _PARTS_OF_NAMES.split(name))


def _refuse_groups(title: str, groups: Sequence[_Group]) -> None:
    shown = " or ".join(
        f"{listed(group.annotators)} ({name_annotators(group.annotators)})" for group in groups[: _MIN_ANNOTATORS + 1]
    )
    raise ColumnsError(f"{title}: cannot find the columns of votes. Name them: {shown}")


def wide_table(source: FileTable, options: ReadOptions, shown: Sequence[str]) -> WideTable:
    """The wide table, as requested: all columns except the first, free text and expected answers.

    If the columns with votes are named, these are used, and the first column without duplicates is the task.
    """
    gold, chosen = options.gold_column, dict(options.columns or {})
    if set(chosen) - {"task"}:
        raise ParameterError("a wide table accepts only task: its other columns are the annotators")
    if not source.columns:
        raise InputError(f"{source.title}: no columns")
    n_rows, profiles = column_profiles(source)
    named = options.annotator_columns and match_columns(options.annotator_columns, source.columns, source.title)
    unique = _without_repeats(n_rows, profiles) if named else []
    task = chosen.get("task", next((name for name in unique if name not in named), source.columns[0]))
    if task not in source.columns:
        raise ColumnsError(f"{source.title} has no column {task!r} (for task)")
    answers = [name for name in source.columns if name not in (task, *shown, *source.partitions, gold)]
    expected = [name for name in answers if plain_name(name) in _EXPECTED]
    if named:
        annotators = [name for name in named if name != task]
        expected = [name for name in expected if name not in named]
        return WideTable(task, annotators, expected, values=_values(profiles, annotators))
    texts = [name for name in answers if profiles[name].is_text]
    annotators = [name for name in answers if name not in (*expected, *texts)]
    if not annotators:
        raise ColumnsError(f"{source.title}: a wide table needs one column per annotator besides {task!r}")
    return WideTable(task, annotators, expected, texts, _values(profiles, annotators))


def _values(profiles: Mapping[str, ColumnProfile], annotators: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(profiles[name].values for name in annotators))


def have_points(tables: Sequence[WideTable]) -> bool:
    """Whether some annotators have votes like ``1.0`` where others have ``1``: the same votes, beside gaps.

    >>> have_points([WideTable("id", ["a", "b"], values=frozenset(["0", "1", "1.0"]))])
    True
    """
    values = frozenset().union(*(table.values for table in tables))
    return len(_without_points(values)) < len(values)


def _without_repeats(n_rows: int, profiles: Mapping[str, ColumnProfile]) -> list[str]:
    """The columns without duplicates and without gaps."""
    return [name for name, one in profiles.items() if n_rows > 1 and one.n_distinct == one.n_filled == n_rows]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two columns have the same values; one of them may lack some."""
    return one <= other or other <= one or 2 * len(one & other) >= len(one | other)


def column_profiles(source: FileTable) -> tuple[int, dict[str, ColumnProfile]]:
    """The number of rows of a table, and the profiles of its columns."""
    n_rows, profiles = 0, {}
    with asking(source) as ask:
        for begin in range(0, len(source.columns), _PROFILED_AT_ONCE):
            names = source.columns[begin : begin + _PROFILED_AT_ONCE]
            n_rows, some = _profiles_of(source, names, ask)
            profiles.update(some)
    return n_rows, profiles


def _profiles_of(
    source: FileTable, names: Sequence[str], ask: Callable[[str], Any]
) -> tuple[int, dict[str, ColumnProfile]]:
    filled = []
    for name in names:
        text = source.text(name)
        filled.append(f"CASE WHEN {not_blank(text)} THEN trim({text}) END AS {identifier(name)}")
    cells = f"(SELECT {', '.join(filled)} FROM {source.reader})"
    counts = ", ".join(f"count({name}), count(DISTINCT {name})" for name in map(identifier, names))
    n_rows, *numbers = ask(f"SELECT count(*), {counts} FROM {cells}").fetchone()
    sizes = dict(zip(names, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
    few = [name for name, (_, distinct) in sizes.items() if 0 < distinct <= _FEW_VALUES]
    values: dict[str, frozenset[str]] = {}
    if few:
        lists = ", ".join(f"list(DISTINCT {identifier(name)})" for name in few)
        found = ask(f"SELECT {lists} FROM {cells}").fetchone()
        values = {name: frozenset(texts) - {None} for name, texts in zip(few, found, strict=True)}
    return n_rows, {name: ColumnProfile(*size, values.get(name, frozenset())) for name, size in sizes.items()}
