"""The steps of long work: code reports what it does and how much is done, and a listener, if there is one, shows it.

>>> def show(one):
...     print(one.what, one.state)
>>> with listening(show):
...     total = sum(steps("adding", [4, 5]))
adding 0 of 2
adding 1 of 2
adding 2 of 2
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ProgressStep:
    """A step of long work: what is done, and how much of it.

    Attributes:
        what: what is done, such as "fitting anchored-rasch".
        done: number of parts that are done.
        total: number of parts, or its upper limit; 0 if it is not known.
        state: the progress as text.
        share: the share that is done, 0 to 1, if it is not ``done / total``.
        left: the time left as text, if the work itself has a better estimate than its pace so far.
    """

    what: str
    done: int = 0
    total: int = 0
    state: str = ""
    share: float | None = None
    left: str | None = None

    @property
    def part(self) -> float | None:
        """The share that is done, 0 to 1; None if it is not known."""
        return self.share if self.share is not None else self.done / self.total if self.total else None


Listener = Callable[[ProgressStep], None]

_listener: ContextVar[Listener | None] = ContextVar("rarevote steps", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send the steps of the work in this context to this listener; None for no listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def has_listener() -> bool:
    """Whether there is a listener."""
    return _listener.get() is not None


def report(step: ProgressStep) -> None:
    """Report a step."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


def doing(what: str) -> None:
    """Report the start of work that has no parts."""
    report(ProgressStep(what))


def steps(what: str, values: Collection[T]) -> Iterator[T]:
    """Iterate over the values; reports how many the caller has processed."""
    total = len(values)
    report(_counted(what, 0, total))
    for done, value in enumerate(values, 1):
        yield value
        report(_counted(what, done, total))


def _counted(what: str, done: int, total: int) -> ProgressStep:
    return ProgressStep(what, done, total, f"{done:,} of {total:,}")


@contextmanager
def alone() -> Iterator[Listener]:
    """A function that reports a step; steps of the work in this context are not shown."""
    listener = _listener.get() or (lambda _step: None)
    with listening(None):
        yield listener


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function that takes the number of finished parts; steps of the work in this context are not shown."""
    with alone() as show:
        yield lambda done: show(_counted(what, done, total))


@contextmanager
def within(title: str) -> Iterator[None]:
    """Put this title before the steps of the work in this context, if it is not empty.

    >>> with listening(lambda one: print(one.what)), within("health"):
    ...     doing("reading")
    health: reading
    """
    outer = _listener.get()
    if outer is None or not title:
        yield
        return
    with listening(lambda step: outer(replace(step, what=f"{title}: {step.what}"))):
        yield
