"""The display of progress: a bar with the time left on a terminal, otherwise a line at intervals.

:func:`showing` opens the display for the steps of some work (:mod:`rarevote.crowd.steps`); ``progress=True`` in Python
and every command use it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from rarevote.crowd.steps import Listener, ProgressStep, has_listener, listening, report
from rarevote.crowd.words import printable

if TYPE_CHECKING:
    from rarevote.em.loop import Callback, Progress

P = ParamSpec("P")
R = TypeVar("R")

#: ``progress`` of public functions: whether to show the progress, or a function that is called with each step
Watch = bool | Listener

#: seconds between two lines, if there is no bar
LINES_IN_PYTHON, LINES_IN_A_LOG = 2.0, 15.0


def shows_progress(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator for public functions: opens the display that their argument ``progress`` requests."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with showing(kwargs.pop("progress", False)):  # type: ignore[arg-type]
            return function(*args, **kwargs)

    return call


@contextmanager
def showing(progress: Watch = True) -> Iterator[None]:
    """Show the steps of the work in this context.

    Args:
        progress: True for a bar in a terminal or a notebook, elsewhere lines on standard error; a function is called
            with each :class:`~rarevote.ProgressStep` instead. With False, an active display of steps continues.
    """
    if not isinstance(progress, bool):
        with listening(progress):
            yield
    elif not progress or _display.get() is not None:
        yield
    else:
        with displayed(Display(_has_bar_in_python(), _print_line, LINES_IN_PYTHON)):
            yield


def _print_line(text: str) -> None:
    print(printable(text), file=sys.stderr)


def _has_bar_in_python() -> bool:
    """Whether a bar can be shown: in a terminal, and in a notebook in which rich can update its output."""
    from rich.console import Console

    console = Console(stderr=True)
    return bool(find_spec("ipywidgets")) if console.is_jupyter else console.is_terminal


@contextmanager
def displayed(display: Display) -> Iterator[None]:
    """Show the steps of the work in this context on this display."""
    token = _display.set(display)
    try:
        with listening(display):
            yield
    finally:
        _display.reset(token)
        display.hide()


def hide() -> None:
    """Remove the bar, if there is one, before anything is printed; the next step shows it again."""
    if (display := _display.get()) is not None:
        display.hide()


class Display:
    """Shows what long work does and how much of it is done.

    Args:
        has_bar: whether a bar can be shown.
        say: prints a line, if there is no bar.
        every: seconds between two lines.
        is_quiet: whether nothing is shown at all.
    """

    def __init__(
        self,
        has_bar: bool,
        say: Callable[[str], None],
        every: float,
        is_quiet: Callable[[], bool] = lambda: False,
    ) -> None:
        self._has_bar, self._is_quiet = has_bar, is_quiet
        self._lines, self._pace = Lines(say, every), Pace()
        self._bar: Any = None
        self._task: tuple[str, bool, Any] | None = None

    def __call__(self, step: ProgressStep) -> None:
        """Show a step."""
        left = self._pace.after(step)
        left = left if step.left is None else step.left
        if self._is_quiet():
            return
        if self._has_bar:
            self._draw(step, left)
        else:
            self._lines.say(": ".join(filter(None, (step.what, ", ".join(filter(None, (step.state, left)))))))

    def _draw(self, step: ProgressStep, left: str) -> None:
        if self._bar is None:
            self._bar = _new_bar()
            self._bar.start()
        kind = (step.what, step.part is None)
        is_new = self._task is None or self._task[:2] != kind
        if self._task is None or is_new:
            if self._task is not None:
                self._bar.remove_task(self._task[2])
            total = None if step.part is None else 1.0
            self._task = (*kind, self._bar.add_task(printable(step.what), total=total, state="", left=""))
        self._bar.update(self._task[2], completed=step.part or 0.0, state=step.state, left=left, refresh=is_new)

    def hide(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar, self._task = None, None


_display: ContextVar[Display | None] = ContextVar("rarevote display", default=None)


def _new_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    texts = (
        TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[state]", "fields[left]")
    )
    what, state, left = texts
    columns = (what, BarColumn(bar_width=20), state, TimeElapsedColumn(), left)
    # Standard output is for data, and never passes through the bar.
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False)


class Lines:
    """Progress where a bar cannot be updated, such as in a log: a line if the last one was long enough ago."""

    def __init__(self, say: Callable[[str], None], every: float = LINES_IN_A_LOG) -> None:
        self._say, self._every, self._last = say, every, time.perf_counter()

    def say(self, text: str) -> None:
        """Print how much is done."""
        now = time.perf_counter()
        if now - self._last >= self._every:
            self._last = now
            self._say(text)


# --------------------------------------------------------------------------------------------------------------------
# the time left


class Pace:
    """Estimates the time left from the pace of the steps so far, for each piece of work separately."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._what, self._begin, self._first = "", 0.0, 0.0

    def after(self, step: ProgressStep) -> str:
        """The time left as text; "" in the first second and if it is not known."""
        now, part = self._clock(), step.part
        if step.what != self._what or part is None:
            self._what, self._begin, self._first = step.what, now, part or 0.0
            return ""
        seconds, done = now - self._begin, part - self._first
        return time_left(seconds * (1.0 - part) / done) if seconds >= 1.0 and done > 0 and part < 1 else ""


def fit_steps(title: str, callback: Callback | None = None) -> Callback | None:
    """A callback for a fit that reports its iterations as steps, and then calls another callback.

    EM converges about geometrically, so progress from the first change to the tolerance is measured in logarithms.
    """
    if not has_listener():
        return callback
    estimate = StagesLeft()
    report(ProgressStep(title))

    def after(progress: Progress) -> None:
        left = estimate.after(progress)
        state = f"iteration {progress.iteration}, change {progress.change:.1e}"
        if progress.stage:
            state = f"{progress.stage}, step {progress.iteration} of at most {progress.n_iter}"
        report(ProgressStep(title, progress.iteration, progress.n_iter, state, estimate.done, left))
        if callback is not None:
            callback(progress)

    return after


class TimeLeft:
    """Estimates how much of a fit is done and how long it will take, from its iterations.

    There is no estimate before the second iteration: the first also loads and compiles code, and would suggest hours.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._first_change = 0.0
        self._first: tuple[int, float, float] | None = None
        self.done = 0.0

    def after(self, progress: Progress) -> str:
        """The time left as text, after an iteration; "" if it is not known."""
        now = self._clock()
        self.done = max(self.done, self._share_done(progress))  # a change can grow again, but a bar must not shrink
        if self._first is None:
            self._first = (progress.iteration, self.done, now)
            return ""
        iteration, done, begin = self._first
        seconds, iterations = now - begin, progress.iteration - iteration
        if iterations < 1 or self.done >= 1.0:
            return ""
        # Extrapolate from the progress so far, but not beyond the iteration limit.
        by_way = seconds * (1.0 - self.done) / (self.done - done) if self.done > done else math.inf
        return time_left(min(by_way, (progress.n_iter - progress.iteration) * seconds / iterations))

    def _share_done(self, progress: Progress) -> float:
        if progress.stage:  # it has a fixed number of steps, and can end early
            return progress.iteration / progress.n_iter
        target = 1e-4
        change = max(progress.change, 1e-12)
        self._first_change = self._first_change or max(change, 10 * target)
        by_change = math.log(self._first_change / change) / math.log(self._first_change / target)
        return min(max(by_change, progress.iteration / progress.n_iter, 0.0), 1.0)


class StagesLeft:
    """Estimates the time left of a fit with stages, each timed separately."""

    def __init__(self) -> None:
        self._left, self._last = TimeLeft(), (0, "")

    @property
    def done(self) -> float:
        """The share of the stage that is done."""
        return self._left.done

    def after(self, progress: Progress) -> str:
        """The time left in the stage as text; "" if it is not known."""
        iteration, stage = self._last
        if progress.stage != stage or progress.iteration < iteration:
            self._left = TimeLeft()
        self._last = (progress.iteration, progress.stage)
        return self._left.after(progress)


def time_left(seconds: float) -> str:
    """The remaining seconds as text."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"about {hours}:{minutes:02d}:{rest:02d} left" if hours else f"about {minutes}:{rest:02d} left"
