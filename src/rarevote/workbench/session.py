"""A session: items in order, one answer each, in the journal before anything else happens.

Places count from 0 within the current items; numbers count from 1 over all items of the session, so that a tab
that was left open cannot refer to another item by the same number.
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

#: Choices that are not classes: the expert is not sure; an answer from elsewhere that names no class.
UNSURE, ANOTHER = -1, -2
# Anything longer is a pause and does not count for the pace.
_MAX_SECONDS = 120.0
_MEMORY = 20


class OvertakenError(InputError):
    """A request refers to a state that has changed since, for example in another tab."""


@dataclass(frozen=True)
class SessionProgress:
    """The progress of a session.

    Attributes:
        done: number of answered items.
        unsure: number of items left open as unsure.
        total: number of current items.
        left_in_all: expected number of remaining items, including those that are not drawn yet.
        is_forecast: whether ``left_in_all`` includes items not drawn yet, and so is only a forecast.
        seconds_each: mean time per item, if known.
    """

    done: int
    unsure: int
    total: int
    left_in_all: int
    is_forecast: bool
    seconds_each: float | None


@dataclass(frozen=True)
class Made:
    """A file that a session can create: its title and path."""

    title: str
    path: Path


class ReviewSession:
    """Base class of the sessions for audits and review lists.

    Args:
        about: a line on what is being answered.
        question: the question about every item, unless the instructions have one.
        instructions: the question, and what classes mean.
        labels: the classes, in the type of the data.
        content: the content of the items.
        journal: the journal for answers.
        who: the expert.

    Attributes:
        choices: the classes as they are shown.
        tasks: the current tasks, in order.
        first: number of the first task.
        said: the choice for each task, :data:`UNSURE`, or None while it is open.
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

    #: Whether the session proves something.
    proves = False

    #: The name of the current set of items.
    noun = "list"

    @property
    def is_over(self) -> bool:
        """Whether no more items are needed."""
        return self.next_open() is None

    @property
    def files(self) -> dict[str, Made]:
        """The files that can be created from the answers, by name."""
        raise NotImplementedError

    def make(self, name: str) -> Made:
        """Create a file.

        Raises:
            InputError: it cannot be written.
        """
        raise NotImplementedError

    def claims(self) -> list[str] | None:
        """What is proved so far, as sentences; None if nothing is proved in this session."""
        return None

    def resume(self, *, worst_case: bool = False) -> None:
        """Continue with more items."""

    @property
    def asked(self) -> tuple[str, int]:
        """The identifier in a file of answers: a SHA-256 and the number of the round."""
        raise NotImplementedError

    #: The command that opens this session again, as arguments.
    command: tuple[str, ...] = ()

    def _expected_in_all(self) -> int:
        """Expected number of items, now and later."""
        return len(self.tasks)

    def _took(self, place: int, before: int | None) -> None:
        """Called after an answer was stored or withdrawn; ``before`` is the previous one."""

    # ----------------------------------------------------------------------------------------------------------------
    # what is asked

    def ask(self, tasks: Sequence[Any], said: Sequence[int | None], *, first: int, fixed: Iterable[int] = ()) -> None:
        """Set the current tasks, some of which can have answers; ``fixed`` places keep theirs."""
        self.tasks, self.said, self.first = list(tasks), list(said), first
        self._fixed, self._order, self._front = set(fixed), {}, 0
        self._last = monotonic()
        self._in_all = max(self._expected_in_all(), len(self.tasks))

    def answered_before(self, tasks: Iterable[Any]) -> None:
        """Set the order in which tasks were answered, for undo."""
        place = {task: i for i, task in enumerate(self.tasks)}
        self._order = {place[task]: None for task in tasks if task in place and place[task] not in self._fixed}

    def choice_of(self, label: Any) -> int:
        """The choice for a label.

        Raises:
            InputError: there is no such choice.
        """
        for choice, own in enumerate(self.labels):
            if name_key(own) == name_key(label):
                return choice
        raise InputError(f"{self.journal.path}: {label!r} is not one of the classes ({', '.join(self.choices)})")

    def asks(self, number: int) -> bool:
        """Whether the item with this number is among the current ones."""
        return 0 <= number - self.first < len(self.tasks)

    def task_of(self, number: int) -> Any:
        """The task with this number."""
        return self.tasks[number - self.first]

    def view(self, number: int) -> ItemView:
        """The item as shown to the expert."""
        return self.content.view(self.task_of(number), number)

    def file(self, number: int, column: int) -> Path | None:
        """The file that a column of an item shows; None if there is none."""
        return self.content.file(self.task_of(number), column) if self.asks(number) else None

    def frame(self, number: int, column: int) -> str | None:
        """The page that a column of an item shows in a frame; None if it shows none."""
        return self.content.frame(self.task_of(number), column) if self.asks(number) else None

    @property
    def definitions(self) -> list[tuple[str, str]]:
        """The definitions of classes, by shown name; only defined ones."""
        meant = [(name, self.instructions.definition(label)) for name, label in self._named_labels()]
        return [(name, text) for name, text in meant if text]

    def _named_labels(self) -> list[tuple[str, Any]]:
        """Classes with their shown names and their names in the instructions."""
        return [
            (name, name if label is False else label) for name, label in zip(self.choices, self.labels, strict=True)
        ]

    def choice_at(self, number: int) -> int | None:
        """The current choice."""
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
        """Number of the first item after ``after`` that was left unsure."""
        return next(
            (self.first + i for i, said in enumerate(self.said) if said == UNSURE and self.first + i > after), None
        )

    @property
    def last(self) -> int | None:
        """Number of the item that was answered last, which undo withdraws."""
        return self.first + next(reversed(self._order)) if self._order else None

    @property
    def progress(self) -> SessionProgress:
        """The progress."""
        unsure = self.said.count(UNSURE)
        done = len(self.said) - self.said.count(None) - unsure
        each = median(self._times) if len(self._times) > 2 else None
        beyond = self._in_all > len(self.said)
        return SessionProgress(done, unsure, len(self.said), self._in_all - done - unsure, beyond, each)

    # ----------------------------------------------------------------------------------------------------------------
    # what the expert says

    def answer(self, number: int, choice: int, *, seen: int | None) -> None:
        """Store an answer; it is on the disk when this returns.

        Args:
            number: the item.
            choice: number of the class, or :data:`UNSURE`.
            seen: the choice that the expert saw, so that no tab silently overwrites another.

        Raises:
            OvertakenError: the answer has changed meanwhile, or can no longer change.
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
        """Withdraw the last answer, on the item that the expert saw as the last one.

        Raises:
            OvertakenError: another answer is now the last one.
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
        """A choice as text."""
        if choice is None:
            return "open"
        return {UNSURE: "unsure", ANOTHER: "another answer"}.get(choice) or quoted(self.choices[choice])

    def _tick(self) -> None:
        moment = monotonic()
        if moment - self._last <= _MAX_SECONDS:
            self._times.append(moment - self._last)
        self._last = moment
