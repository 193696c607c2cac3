"""A session: items in order, one answer each, in the journal before anything else happens.

Places count from 0 within what is asked now; numbers count from 1 over everything that was ever asked, so that a tab
that was left open cannot mean another item by the same number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

from rarevote.audit.instructions import Instructions
from rarevote.audit.journal import Entry, Journal
from rarevote.audit.opening import now
from rarevote.crowd.names import name_key
from rarevote.crowd.words import quoted
from rarevote.errors import InputError
from rarevote.workbench.content import ItemContent, ItemView

#: Choices that are no class: the expert is not sure; an answer from elsewhere that names no class.
UNSURE, ANOTHER = -1, -2
# Longer than this is a pause and says nothing about the pace.
_MAX_SECONDS = 120.0
_MEMORY = 20


class OvertakenError(InputError):
    """What was sent is about a state that has changed since, such as by another tab."""


@dataclass(frozen=True)
class SessionProgress:
    """How far it is.

    Attributes:
        done: items answered.
        unsure: items left open as unsure.
        total: items asked now.
        left_in_all: items still to come, those that are not drawn yet included, as far as that can be foreseen.
        is_forecast: whether ``left_in_all`` is more than what is asked now, and so only a forecast.
        seconds_each: what an item takes, if known.
    """

    done: int
    unsure: int
    total: int
    left_in_all: int
    is_forecast: bool
    seconds_each: float | None


@dataclass(frozen=True)
class Made:
    """A file that a session can make: what it is called, and where it goes."""

    title: str
    path: Path


class ReviewSession:
    """What audits and review lists share.

    Args:
        about: what is being answered, in a line.
        question: what the expert is asked of every item, unless the instructions say it.
        instructions: the lead's own question, and what classes mean.
        labels: the classes, in the data's own type.
        content: what there is to see of an item.
        journal: where answers go.
        who: the expert.

    Attributes:
        choices: the classes as they are shown.
        tasks: what is asked now, in order.
        first: number of the first of them.
        said: for each the choice, :data:`UNSURE`, or None while it is open.
    """

    def __init__(
        self,
        *,
        about: str,
        question: str,
        labels: Sequence[Any],
        content: ItemContent,
        journal: Journal,
        who: str | None,
        instructions: Instructions | None = None,
    ) -> None:
        self.about, self.content = about, content
        self.instructions = instructions or Instructions()
        self.question = self.instructions.question or question
        self.labels = list(labels)
        self.choices = list(map(str, labels))
        self.journal, self.who = journal, who
        self.tasks: list[Any] = []
        self.first = 1
        self.said: list[int | None] = []
        self._fixed: set[int] = set()
        self._order: dict[int, None] = {}  # places as they were answered
        self._front = 0  # no place before it is open
        self._in_all = 0
        self._times: deque[float] = deque(maxlen=_MEMORY)
        self._last = monotonic()

    # ----------------------------------------------------------------------------------------------------------------
    # what audits and lists differ in

    #: Whether there is something to prove.
    proves = False

    #: What is asked now, in a word.
    noun = "list"

    @property
    def is_over(self) -> bool:
        """Whether nothing more is asked."""
        return self.next_open() is None

    @property
    def files(self) -> dict[str, Made]:
        """What can be made of the answers, by name."""
        raise NotImplementedError

    def make(self, name: str) -> Made:
        """Make a file.

        Raises:
            InputError: it cannot be written.
        """
        raise NotImplementedError

    def claims(self) -> list[str] | None:
        """What is proved so far, in sentences; None where nothing is to be proved."""
        return None

    def resume(self, *, worst_case: bool = False) -> None:
        """Ask for more."""

    @property
    def asked(self) -> tuple[str, int]:
        """What is asked, as a file of answers names it: a SHA-256 and the number of the round."""
        raise NotImplementedError

    #: The command that opens this session again, as arguments.
    command: tuple[str, ...] = ()

    def _expected_in_all(self) -> int:
        """Items of what is asked now and, as far as that can be foreseen, afterwards."""
        return len(self.tasks)

    def _took(self, place: int, before: int | None) -> None:
        """An answer was kept or taken back; it was ``before``."""

    # ----------------------------------------------------------------------------------------------------------------
    # what is asked

    def ask(self, tasks: Sequence[Any], said: Sequence[int | None], *, first: int, fixed: Iterable[int] = ()) -> None:
        """Ask for these tasks now, of which some may have answers; ``fixed`` places keep theirs."""
        self.tasks, self.said, self.first = list(tasks), list(said), first
        self._fixed, self._order, self._front = set(fixed), {}, 0
        self._last = monotonic()
        self._in_all = max(self._expected_in_all(), len(self.tasks))

    def answered_before(self, tasks: Iterable[Any]) -> None:
        """In which order the tasks were answered that have an answer, for undo."""
        place = {task: i for i, task in enumerate(self.tasks)}
        self._order = {place[task]: None for task in tasks if task in place and place[task] not in self._fixed}

    def choice_of(self, label: Any) -> int:
        """The choice that a label is.

        Raises:
            InputError: it is none.
        """
        for choice, own in enumerate(self.labels):
            if name_key(own) == name_key(label):
                return choice
        raise InputError(f"{self.journal.path}: {label!r} is not one of the classes ({', '.join(self.choices)})")

    def asks(self, number: int) -> bool:
        """Whether the item of that number is asked now."""
        return 0 <= number - self.first < len(self.tasks)

    def task_of(self, number: int) -> Any:
        """The task of that number."""
        return self.tasks[number - self.first]

    def view(self, number: int) -> ItemView:
        """What the expert sees of an item."""
        return self.content.view(self.task_of(number), number)

    def file(self, number: int, column: int) -> Path | None:
        """The file that a column of an item shows; None if there is none."""
        return self.content.file(self.task_of(number), column) if self.asks(number) else None

    def frame(self, number: int, column: int) -> str | None:
        """The page that a column of an item shows in a frame; None if it shows none."""
        return self.content.frame(self.task_of(number), column) if self.asks(number) else None

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """What classes mean, as they are shown; only those that were defined."""
        meant = [(name, self.instructions.definition(label)) for name, label in self._named_labels()]
        return [(name, text) for name, text in meant if text]

    def _named_labels(self) -> list[tuple[str, Any]]:
        """Classes as they are shown and as the instructions name them."""
        return [
            (name, name if label is False else label) for name, label in zip(self.choices, self.labels, strict=True)
        ]

    def choice_at(self, number: int) -> int | None:
        """The choice that stands."""
        return self.said[number - self.first]

    def is_fixed(self, number: int) -> bool:
        """Whether the answer can no longer change."""
        return number - self.first in self._fixed

    def next_open(self) -> int | None:
        """Number of the first item without an answer."""
        while self._front < len(self.said) and self.said[self._front] is not None:
            self._front += 1
        return self.first + self._front if self._front < len(self.said) else None

    def next_unsure(self, after: int = 0) -> int | None:
        """Number of the first item behind ``after`` that was left unsure."""
        return next(
            (self.first + i for i, said in enumerate(self.said) if said == UNSURE and self.first + i > after), None
        )

    @property
    def last(self) -> int | None:
        """Number of the item that was answered last, which undo takes back."""
        return self.first + next(reversed(self._order)) if self._order else None

    @property
    def progress(self) -> SessionProgress:
        """How far it is."""
        unsure = self.said.count(UNSURE)
        done = len(self.said) - self.said.count(None) - unsure
        each = median(self._times) if len(self._times) > 2 else None
        beyond = self._in_all > len(self.said)
        return SessionProgress(done, unsure, len(self.said), self._in_all - done - unsure, beyond, each)

    # ----------------------------------------------------------------------------------------------------------------
    # what the expert says

    def answer(self, number: int, choice: int, *, seen: int | None) -> None:
        """Keep an answer; it is on the disk when this returns.

        Args:
            number: the item.
            choice: number of the class, or :data:`UNSURE`.
            seen: the choice that stood when the expert looked, so that no tab overwrites another unseen.

        Raises:
            OvertakenError: something else stands meanwhile, or the answer can no longer change.
            InputError: it cannot be written; nothing has changed.
        """
        place = self._place(number)
        before = self.said[place]
        if before == choice:
            return  # sent twice
        if before != seen:
            raise OvertakenError(
                f"This item was answered in the meantime: {self.name_of(before)}. Check it, then choose again."
            )
        self._keep(place, choice)
        self._order.pop(place, None)
        self._order[place] = None
        self._tick()

    def undo(self, number: int) -> None:
        """Take the last answer back, of the item that was last when the expert looked.

        Raises:
            OvertakenError: another answer is the last one now.
            InputError: it cannot be written; nothing has changed.
        """
        place = self._place(number)
        if self.said[place] is None:
            return  # sent twice
        if number != self.last:
            raise OvertakenError("Another item was answered in the meantime; undo removes only the last answer.")
        self._keep(place, None)
        del self._order[place]
        self._front = min(self._front, place)

    def _place(self, number: int) -> int:
        place = number - self.first
        if not self.asks(number):
            raise OvertakenError("This item is no longer open; its answer is final.")
        if place in self._fixed:
            raise OvertakenError(
                f"The answer to this item is in the plan and is final: {self.name_of(self.said[place])}."
            )
        return place

    def _keep(self, place: int, choice: int | None) -> None:
        label = None if choice is None or choice == UNSURE else self.labels[choice]
        self.journal.append(Entry(self.tasks[place], label, self.who, now(), undo=choice is None))
        before, self.said[place] = self.said[place], choice
        self._took(place, before)

    def name_of(self, choice: int | None) -> str:
        """A choice in words."""
        if choice is None:
            return "open"
        return {UNSURE: "unsure", ANOTHER: "another answer"}.get(choice) or quoted(self.choices[choice])

    def _tick(self) -> None:
        moment = monotonic()
        if moment - self._last <= _MAX_SECONDS:
            self._times.append(moment - self._last)
        self._last = moment
