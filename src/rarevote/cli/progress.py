"""The progress of long work: a bar with the time left where a person is watching, else a line now and then."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from rarevote.cli.show import is_quiet, say

if TYPE_CHECKING:
    from rarevote.em.loop import Callback, Progress

# In rich's language, of a bar's task.
LEFT = "{task.fields[left]}"


@contextmanager
def reading_files(title: str) -> Iterator[None]:
    """Shows that files are being read, where a person is watching."""
    if not _is_watched():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"reading {title}"):
        yield


@contextmanager
def fitting(title: str, *, verbose: bool = False) -> Iterator[Callback | None]:
    """A callback that shows how a fit gets on: a bar on a terminal, else a line now and then.

    EM converges about geometrically, so the way from the first change to the tolerance is measured in logarithms.
    """
    if is_quiet():
        yield None
        return
    estimate = StagesLeft()
    if verbose or not sys.stderr.isatty():
        lines = Lines(every=0.0) if verbose else Lines()

        def report(progress: Progress) -> None:
            left = estimate.after(progress)
            lines.say(f"{title}: {_state(progress)}" + (f", {left}" if left else ""))

        yield report
        return
    from rich.progress import TimeElapsedColumn

    with bar(title, 1.0, "{task.fields[state]}", TimeElapsedColumn(), LEFT) as update:
        yield lambda progress: update(left=estimate.after(progress), completed=estimate.done, state=_state(progress))


def _state(progress: Progress) -> str:
    if progress.stage:
        return f"{progress.stage}, step {progress.iteration} of at most {progress.n_iter}"
    return f"iteration {progress.iteration}, change {progress.change:.1e}"


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function that takes how much is done so far: a bar where a person is watching, else a line now and then."""
    if not _is_watched():
        lines = Lines()
        yield lambda done: lines.say(f"{title}: {done:,} of {total:,}") if not is_quiet() else None
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    with bar(title, total, MofNCompleteColumn(), TimeRemainingColumn()) as update:
        yield lambda done: update(completed=done)


def _is_watched() -> bool:
    return sys.stderr.isatty() and not is_quiet()


@contextmanager
def bar(title: str, total: float | None, *columns: Any) -> Iterator[Callable[..., None]]:
    """A bar of rich, with these columns behind it; gives the function that updates its task."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    console = Console(stderr=True)
    with Progress("{task.description}", BarColumn(), *columns, console=console, transient=True) as shown:
        yield partial(shown.update, shown.add_task(title, total=total, state="", left=""))


class Lines:
    """Progress where nobody can see a bar move, such as in a log: a line if the last is a while ago."""

    def __init__(self, every: float = 15.0) -> None:
        self._every, self._last = every, time.perf_counter()

    def say(self, text: str) -> None:
        """Say how far it is."""
        now = time.perf_counter()
        if now - self._last >= self._every:
            self._last = now
            say(text)


class TimeLeft:
    """How far a fit is and how long it will take, from its iterations.

    Nothing is said before the second: the first also loads and compiles what it needs, and would promise hours.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first_change = 0.0
        self._first: tuple[int, float, float] | None = None
        self.done = 0.0

    def after(self, progress: Progress) -> str:
        """The time left in words, after an iteration; "" where it is not known."""
        now = self._clock()
        self.done = self._share_done(progress)
        if self._first is None:
            self._first = (progress.iteration, self.done, now)
            return ""
        iteration, done, begin = self._first
        seconds, iterations = now - begin, progress.iteration - iteration
        if iterations < 1 or self.done >= 1.0:
            return ""
        # As the way goes so far, but no longer than all iterations that there may be.
        by_way = seconds * (1.0 - self.done) / (self.done - done) if self.done > done else math.inf
        return time_left(min(by_way, (progress.n_iter - progress.iteration) * seconds / iterations))

    def _share_done(self, progress: Progress) -> float:
        if progress.stage:  # which has a number of steps, and may end early
            return progress.iteration / progress.n_iter
        target = 1e-4
        change = max(progress.change, 1e-12)
        self._first_change = self._first_change or max(change, 10 * target)
        by_change = math.log(self._first_change / change) / math.log(self._first_change / target)
        return min(max(by_change, progress.iteration / progress.n_iter, 0.0), 1.0)


class StagesLeft:
    """How far a fit is that has stages, each with a time of its own."""

    def __init__(self) -> None:
        self._left, self._last = TimeLeft(), (0, "")

    @property
    def done(self) -> float:
        """The part of the stage that is done."""
        return self._left.done

    def after(self, progress: Progress) -> str:
        """The time left of the stage in words; "" where it is not known."""
        iteration, stage = self._last
        if progress.stage != stage or progress.iteration < iteration:
            self._left = TimeLeft()
        self._last = (progress.iteration, progress.stage)
        return self._left.after(progress)


def time_left(seconds: float) -> str:
    """Seconds to go, in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"about {hours}:{minutes:02d}:{rest:02d} left" if hours else f"about {minutes}:{rest:02d} left"
