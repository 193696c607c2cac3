"""The steps of long work: code reports what it does and how far it is, and a listener, where there is one, shows it.

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
    """What long work does, and how far it is.

    Attributes:
        what: what is done, such as "fitting anchored-rasch".
        done: how many parts of it are done.
        total: how many parts there are, or the most there may be; 0 where that is not known.
        state: how far it is, in words.
        share: the part that is done, 0 to 1, where it is not ``done / total``.
        left: the time left in words, where the work itself knows better than its pace so far.
    """

    what: str
    done: int = 0
    total: int = 0
    state: str = ""
    share: float | None = None
    left: str | None = None

    @property
    def part(self) -> float | None:
        """The part that is done, 0 to 1; None where that is not known."""
        return self.share if self.share is not None else self.done / self.total if self.total else None


Listener = Callable[[ProgressStep], None]

_listener: ContextVar[Listener | None] = ContextVar("rarevote steps", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Steps of the work within go to this listener; with None to no one."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def has_listener() -> bool:
    """Whether steps are shown at all."""
    return _listener.get() is not None


def report(step: ProgressStep) -> None:
    """Report a step."""
    listener = _listener.get()
    if listener is not None:
        listener(step)


def doing(what: str) -> None:
    """Report the start of work that is done in one piece."""
    report(ProgressStep(what))


def steps(what: str, values: Collection[T]) -> Iterator[T]:
    """The values one by one; reports how many the caller is done with."""
    total = len(values)
    report(_counted(what, 0, total))
    for done, value in enumerate(values, 1):
        yield value
        report(_counted(what, done, total))


def _counted(what: str, done: int, total: int) -> ProgressStep:
    return ProgressStep(what, done, total, f"{done:,} of {total:,}")


@contextmanager
def alone() -> Iterator[Listener]:
    """A function that reports a step; steps that the work within reports are not shown."""
    listener = _listener.get() or (lambda _step: None)
    with listening(None):
        yield listener


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function that takes how many parts are done; steps that the work within reports are not shown."""
    with alone() as show:
        yield lambda done: show(_counted(what, done, total))


@contextmanager
def within(title: str) -> Iterator[None]:
    """Steps of the work within begin with this title, if it is not empty.

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
