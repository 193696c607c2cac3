"""The choice of a question in an export.

Forms contain more than the label: comments, hidden inputs, times. The answers to each question are counted while
the export is read (:class:`QuestionSurvey`); those that look like a choice are ranked, and a single one is used or
all of them are proposed. Free text, even if it was chosen by name, is not a set of classes (:func:`is_free_text`).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rarevote.crowd.words import counted
from rarevote.errors import InputError, how
from rarevote.io.platforms.base import ABSENT, ALL, shown_names, shown_text

_MAX_DISTINCT = 2_000  # most distinct answers counted for a question; no choice has more
_SAMPLED = 20_000  # most tasks and workers whose first answer is stored
# With fewer answers, anything can be equal by chance.
_MIN_ANSWERS = 10
_MIN_COMPARED = 5
_FEW = 10  # this many distinct answers can be a choice even in a small file
_SHARE_OF_ANSWERS = 10  # the largest mean number of equal answers in free text
_MIN_REMARKS = 8
_PROSE = 40  # mean length of an answer
_SHOWN = 6
_OF_ITEM, _OF_ANNOTATOR = "always the same for one item", "always the same for one annotator"

_COMMENT = re.compile(r"(?i)(^|[^a-z])(comments?|feedback|remarks?|notes?|suggestions?)($|[^a-z])")
_TIME = re.compile(
    r"(?i)(^|[^a-z])(times?|timestamp|duration|elapsed|seconds?|secs?|ms|started|submitted|date)($|[^a-z])"
)
_HIDDEN = re.compile(
    r"(?i)(^|[^a-z])(ua|user_?agent|browser|ip|ip_?address|session|token|uuid|time_?zone|screen_?(size|width|height)|"
    r"assignment_?id|worker_?id|hit_?id|version)($|[^a-z])"
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"\s*[-+]?\d+([.,]\d+)?\s*")
_MOMENT = re.compile(  # a day, an hour, or seconds since 1970
    r".*(\d{4}-\d\d-\d\d|\d{1,2}[:/.]\d\d[:/.]\d{2,4}|\d{1,2}:\d\d|\b(GMT|UTC|PDT|PST)\b).*|\d{10}|\d{13}", re.DOTALL
)


class EveryQuestionError(InputError):
    """Every question is requested, but one is read at a time: the caller reads them in turn, or refuses.

    Attributes:
        questions: the questions that look like a choice, best first, and whether an answer can have several choices.
    """

    def __init__(self, title: str, questions: dict[str, bool]) -> None:
        self.questions = questions
        every = how("rarevote.read_each(...)", "rarevote aggregate --question all --out FOLDER")
        super().__init__(f"{title}: one question at a time; {every} answers each of {shown_names(list(questions))}")


def name_question(name: str) -> str:
    """What to type to choose a question."""
    return how(f"question={name!r}", f"--question {shlex.quote(name)}")


def is_free_text(counts: Counter[str], n_answers: int) -> bool:
    """Whether answers are free text, not a choice between a few.

    They are free text if the distinct ones are more than a tenth of the answers; in a small file, where that means
    little, there must also be more than ten, or they must be long, or have several words and hardly ever repeat.

    >>> is_free_text(Counter(yes=3, no=2), 5), is_free_text(Counter(str(n) for n in range(30)), 200)
    (False, True)
    """
    if len(counts) * _SHARE_OF_ANSWERS <= n_answers:
        return False
    n_phrases = sum(" " in text.strip() for text in counts)
    remarks = 2 * n_phrases > len(counts) and n_answers >= _MIN_REMARKS and 4 * len(counts) > 3 * n_answers
    return len(counts) > _FEW or sum(map(len, counts)) > _PROSE * len(counts) or remarks


def refuse_free_text(title: str, question: str, counts: Counter[str], n_answers: int) -> None:
    """Refuse a question whose answers are not classes.

    Raises:
        InputError: they are free text.
    """
    if is_free_text(counts, n_answers):
        first = next(iter(counts))
        shown = repr(first if len(first) <= _PROSE else first[: _PROSE - 1] + "…")
        anyway = how("free_text=True", "--free-text")
        raise InputError(
            f"{title}: the answers to {question!r} are free text: {len(counts):,} different ones in {n_answers:,} "
            f"answers (such as {shown}), so annotators can hardly agree. Choose another question; to use them as "
            f"classes anyway: {anyway}"
        )


@dataclass
class _Tally:
    """The answers to one question."""

    n_answers: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    several: bool = False
    structured: bool = False
    by_task: _Constancy = field(default_factory=lambda: _Constancy())
    by_worker: _Constancy = field(default_factory=lambda: _Constancy())

    def add(self, given: Sequence[str], task: str, worker: str | None) -> None:
        self.n_answers += 1
        self.several |= len(given) > 1
        for name in given:
            if name in self.counts or len(self.counts) < _MAX_DISTINCT:
                self.counts[name] += 1
        answer = hash(tuple(given))
        self.by_task.add(task, answer)
        if worker is not None:
            self.by_worker.add(worker, answer)

    @property
    def names_items(self) -> bool:
        """Whether there are nearly as many distinct answers as items, as for names of items."""
        return len(self.counts) > _FEW and 2 * len(self.counts) > len(self.by_task.first)

    @property
    def description(self) -> str:
        """The answers, most frequent first, for a proposal."""
        names = [name for name, _ in self.counts.most_common(_SHOWN)]
        more = ", ..." if len(self.counts) > len(names) else ""
        return f"{', '.join(names)}{more}; {counted(self.n_answers, 'answer')}"


@dataclass
class _Constancy:
    """Whether the answers for each key (a task, a worker) are always the same."""

    first: dict[str, int] = field(default_factory=dict)
    compared: set[str] = field(default_factory=set)
    differs: bool = False

    def add(self, whose: str, answer: int) -> None:
        if self.differs or (whose not in self.first and len(self.first) == _SAMPLED):
            return
        if whose not in self.first:
            self.first[whose] = answer
            return
        self.compared.add(whose)
        self.differs = self.first[whose] != answer

    @property
    def holds(self) -> bool:
        """Whether that holds, and not by chance: several keys have repeated answers, which are not all equal."""
        return not self.differs and len(self.compared) >= _MIN_COMPARED and len(set(self.first.values())) > 1


class QuestionSurvey:
    """All questions of an export, and the answers to each.

    Args:
        title: the name of the export in messages.
        wanted: the requested question, if any.
        prefix: the platform's prefix of the names.
        marked: whether the platform marks what is a question, and what else was shown with the item.
    """

    def __init__(self, title: str, wanted: str | None, prefix: str = "", *, marked: bool = True) -> None:
        self.title, self.wanted, self._prefix, self._marked = title, wanted, prefix, marked
        self._tallies: dict[str, _Tally] = {}

    @property
    def names(self) -> list[str]:
        """The questions found, in their order."""
        return list(self._tallies)

    @property
    def is_open(self) -> bool:
        """Whether answers are needed to choose the question."""
        return self.wanted in (None, ALL)

    def found(self, question: str) -> None:
        """Record that a question exists."""
        self._tallies.setdefault(question, _Tally())

    def note(self, question: str, given: Any, task: str, worker: str | None) -> None:
        """Record an answer to a question: a name or a list of names, a number, any other value."""
        tally = self._tallies.setdefault(question, _Tally())
        if not self.is_open or given is ABSENT:
            return
        items = given if isinstance(given, (list, tuple)) else [given]
        tally.structured |= any(isinstance(item, dict) for item in items)
        if texts := [text for item in items if (text := shown_text(item).strip())]:
            tally.add(texts, task, worker)

    def choose(self) -> str:
        """The requested question, or the only one that looks like a choice.

        Raises:
            InputError: there is no such question, or several are possible; the message proposes them, best first.
            EveryQuestionError: all are requested.
        """
        names = self.names
        if self.wanted is not None:
            plain = self.wanted.removeprefix(self._prefix)
            for name in names:
                if plain == name or self.wanted == name:
                    return name
            if self.wanted != ALL:
                raise InputError(f"{self.title}: no question {self.wanted!r}; it has {shown_names(names)}")
        if not names:
            raise InputError(f"{self.title}: no question was found")
        plausible, others = self.ranked()
        if self.wanted == ALL:
            if not plausible:
                raise InputError(f"{self.title}: no question looks like a choice: {_reasons(others)}")
            raise EveryQuestionError(self.title, {name: self._tallies[name].several for name in plausible})
        if len(names) == 1 and others.get(names[0]) != _OF_ITEM:
            return names[0]
        if len(plausible) == 1:
            return plausible[0]
        asked = f"{self.title}: {counted(len(names), 'question was', 'questions were')} asked: {shown_names(names)}. "
        if not plausible:
            # A value that is the same for all answers to an item cannot show who is right.
            nearest = next((name for name in names if others.get(name) != _OF_ITEM), names[0])
            is_text = others.get(nearest) != _OF_ITEM
            take = f"{name_question(nearest)}{how(', free_text=True', ' --free-text') if is_text else ''}"
            raise InputError(f"{asked}None looks like a choice: {_reasons(others)}. To use one anyway: {take}")
        proposed = " or ".join(
            f"{name_question(name)} ({self._tallies[name].description})" for name in plausible[:_SHOWN]
        )
        aside = f". Not proposed: {_reasons(others)}" if others else ""
        every = how("rarevote.read_each(...)", "--question all")
        raise InputError(f"{asked}Choose one: {proposed}; all of them: {every}{aside}")

    def ranked(self) -> tuple[list[str], dict[str, str]]:
        """The questions that look like a choice, best first, and why the others do not."""
        most = max((tally.n_answers for tally in self._tallies.values()), default=0)
        others = {
            name: reason for name, tally in self._tallies.items() if (reason := _why_not(name, tally)) is not None
        }
        # A value that is the same for all answers to an item, or of a person, is a hidden input; but if that holds for
        # every question, the crowd simply agrees, unless it is a name of the item, or was shown with it.
        left = {name: tally for name, tally in self._tallies.items() if name not in others}
        named = [
            name for name, tally in left.items() if tally.by_task.holds and (tally.names_items or not self._marked)
        ]
        others |= dict.fromkeys(named, _OF_ITEM)
        left = {name: tally for name, tally in left.items() if name not in named}
        for what, constancy in ((_OF_ITEM, "by_task"), (_OF_ANNOTATOR, "by_worker")):
            constant = [name for name, tally in left.items() if getattr(tally, constancy).holds]
            if len(constant) < len(left):
                others |= dict.fromkeys(constant, what)
                left = {name: tally for name, tally in left.items() if name not in constant}

        def merit(name: str) -> tuple[bool, int, int]:
            tally = left[name]
            return 2 * tally.n_answers < most, len(tally.counts), -tally.n_answers

        return sorted(left, key=merit), others


def _why_not(name: str, tally: _Tally) -> str | None:
    """Why a question does not look like a choice; None if it does."""
    apart = _CAMEL.sub("_", name)
    numeric = bool(tally.counts) and all(_NUMBER.fullmatch(text) for text in tally.counts)
    if not tally.n_answers:
        return "structured data" if tally.structured else "not answered"
    if tally.structured:
        return "structured data"
    if all(_MOMENT.fullmatch(text) for text in tally.counts) or (numeric and _TIME.search(apart)):
        return "times"
    if _HIDDEN.search(apart):
        return "a hidden input"
    if _COMMENT.search(apart) or is_free_text(tally.counts, tally.n_answers):
        return "numbers" if numeric else "free text"
    if len(tally.counts) == 1 and tally.n_answers >= _MIN_ANSWERS:
        return "always the same"
    return None


def _reasons(others: dict[str, str]) -> str:
    return ", ".join(f"{name} ({why})" for name, why in list(others.items())[: 2 * _SHOWN])
