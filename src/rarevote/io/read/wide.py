"""Wide tables: one row per task and one column per annotator or judge.

Such a table has no column for workers and labels. It is known by columns that hold the same few values; the first
column without any value twice is the task. A column with the expected answer is no annotator: it may be gold.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rarevote.crowd.words import listed
from rarevote.errors import ColumnsError, InputError, ParameterError, how
from rarevote.io.duck import identifier
from rarevote.io.read.columns import may_be, plain_name
from rarevote.io.read.encode import Choice, not_blank
from rarevote.io.read.sources import FileTable, asking

_FEW_VALUES = 20  # that columns with answers have at most, to be known by them
_MIN_ANNOTATORS = 2
_EXPECTED = frozenset({
    "truth", "gold", "goldlabel", "goldstandard", "goldanswer", "truelabel", "groundtruth", "expected",
    "expectedanswer", "expectedlabel", "expectedverdict", "reference", "referencelabel", "referenceanswer", "correct",
    "correctanswer", "correctlabel", "answerkey", "target", "label",
})  # fmt: skip
# What language models are called, at the beginning of a word, and what people call whatever model it is.
_MODEL = re.compile(
    r"(chat)?gpt|openai|o[134]$|claude|opus|sonnet|haiku|anthropic|gemini|gemma|llama|vicuna|mi[sx]tral|qwen|deepseek|"
    r"phi\d|grok|cohere|falcon|(ro|de)?bert|llm|models?\d*$|judges?\d*$"
)
_PARTS_OF_NAMES = re.compile(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])")


def is_model_name(name: str) -> bool:
    """Whether an annotator is called as language models and other automatic judges are.

    >>> [is_model_name(name) for name in ("gpt-4o", "judge_2", "model:v3", "Claude Sonnet", "ana", "Modesta")]
    [True, True, True, True, False, False]
    """
    return any(_MODEL.match(part.lower()) for part in _PARTS_OF_NAMES.split(name))


@dataclass(frozen=True)
class WideTable:
    """What the columns of a wide table are.

    Attributes:
        task: the column that names the task.
        annotators: the columns that hold votes.
        expected: columns that may hold the expected answer.
        others: columns that are neither.
    """

    task: str
    annotators: list[str]
    expected: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def choice(self) -> Choice:
        """What to read of it."""
        return Choice({"task": self.task}, self.annotators)

    def notes(self, *, found: bool, gold: str | None) -> list[str]:
        """What to tell: how the table was read, if nobody said so, and what may be gold."""
        said = []
        if found:
            aside = f"; not read: {listed(self.others)}" if self.others else ""
            people = listed(self.annotators, 8)
            said.append(f"read as a wide table: the task is {self.task!r}, the annotators are {people}{aside}")
        elif self.others:
            said.append(f"{listed(self.others)}: free text, which nobody votes by, and not read")
        if self.expected and gold is None:
            name = self.expected[0]
            use = how(f"gold_column={name!r}", f"--gold-column {shlex.quote(name)}")
            said.append(f"column {name!r} looks like the expected answer and is no vote; to learn from it: {use}")
        return said


@dataclass(frozen=True)
class ColumnProfile:
    """Of one column: cells that are not blank, different values, and those values where they are few."""

    n_filled: int
    n_distinct: int
    values: frozenset[str]

    @property
    def is_text(self) -> bool:
        """Whether it holds texts or numbers of many kinds, which nobody votes by."""
        return self.n_distinct > _FEW_VALUES and 2 * self.n_distinct > self.n_filled


def recognise_wide(
    source: FileTable, columns: Mapping[str, str] | None, shown: Sequence[str], gold: str | None
) -> WideTable | None:
    """The wide table that this is although nobody said so, or None."""
    chosen = dict(columns or {})
    if not source.columns or set(chosen) - {"task"} or any(may_be("worker", name) for name in source.columns):
        return None
    n_rows, profiles = column_profiles(source)
    unique = [name for name, one in profiles.items() if n_rows > 1 and one.n_distinct == one.n_filled == n_rows]
    task = chosen.get("task") or next(iter(unique), None)
    if task is None:
        return None
    taken = {task, *shown, *source.partitions}
    small = {name: one.values for name, one in profiles.items() if one.values and name not in taken}
    alike = max(
        ([other for other in small if _alike(small[name], small[other])] for name in small), key=len, default=[]
    )
    expected = [name for name in alike if plain_name(name) in _EXPECTED and name != gold]
    annotators = [name for name in alike if name not in (*expected, gold)]
    if len(annotators) < _MIN_ANNOTATORS:
        return None
    others = [name for name in source.columns if name not in {*taken, *alike, gold}]
    return WideTable(task, annotators, expected, others)


def wide_table(
    source: FileTable, columns: Mapping[str, str] | None, shown: Sequence[str], gold: str | None
) -> WideTable:
    """The wide table that somebody says this is: all columns but the first, free text and expected answers apart."""
    chosen = dict(columns or {})
    if set(chosen) - {"task"}:
        raise ParameterError("of a wide table only the task can be named: its other columns are the annotators")
    if not source.columns:
        raise InputError(f"{source.title}: no columns")
    task = chosen.get("task", source.columns[0])
    if task not in source.columns:
        raise ColumnsError(f"{source.title} has no column {task!r} (for task)")
    answers = [name for name in source.columns if name not in (task, *shown, *source.partitions, gold)]
    expected = [name for name in answers if plain_name(name) in _EXPECTED]
    _, profiles = column_profiles(source)
    texts = [name for name in answers if profiles[name].is_text]
    annotators = [name for name in answers if name not in (*expected, *texts)]
    if not annotators:
        raise ColumnsError(f"{source.title}: a wide table needs a column for each annotator beside {task!r}")
    return WideTable(task, annotators, expected, texts)


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two columns hold the same values: one may never have used some of them."""
    return one <= other or other <= one or 2 * len(one & other) >= len(one | other)


def column_profiles(source: FileTable) -> tuple[int, dict[str, ColumnProfile]]:
    """How many rows a table has, and what its columns hold."""
    filled = []
    for name in source.columns:
        text = source.text(name)
        filled.append(f"CASE WHEN {not_blank(text)} THEN trim({text}) END AS {identifier(name)}")
    cells = f"(SELECT {', '.join(filled)} FROM {source.reader})"
    with asking(source) as ask:
        counts = ", ".join(f"count({name}), count(DISTINCT {name})" for name in map(identifier, source.columns))
        n_rows, *numbers = ask(f"SELECT count(*), {counts} FROM {cells}").fetchone()
        sizes = dict(zip(source.columns, zip(numbers[::2], numbers[1::2], strict=True), strict=True))
        few = [name for name, (_, distinct) in sizes.items() if 0 < distinct <= _FEW_VALUES]
        values: dict[str, frozenset[str]] = {}
        if few:
            lists = ", ".join(f"list(DISTINCT {identifier(name)})" for name in few)
            found = ask(f"SELECT {lists} FROM {cells}").fetchone()
            values = {name: frozenset(texts) - {None} for name, texts in zip(few, found, strict=True)}
    return n_rows, {name: ColumnProfile(*size, values.get(name, frozenset())) for name, size in sizes.items()}
