"""What a person sees: plain tables and a progress line, on stderr or stdout as told."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rarevote.em import Callback, Progress


def say(text: str = "") -> None:
    """A line of talk, on stderr."""
    print(text, file=sys.stderr)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text: first column left, the others right."""
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)])


def share(value: float) -> str:
    """A share with three decimals."""
    return f"{value:.3f}"


@contextmanager
def fitting(title: str, *, quiet: bool) -> Iterator[Callback | None]:
    """A callback that shows how a fit gets on, where a person is watching.

    EM converges about geometrically, so the way from the first change to the tolerance is measured in logarithms.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as ProgressBar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=1.0, state="")
        first: list[float] = []

        def report(progress: Progress) -> None:
            state = f"iteration {progress.iteration}, change {progress.change:.1e}"
            bar.update(task, completed=_share_done(progress, first), state=state)

        yield report


def _share_done(progress: Progress, first: list[float]) -> float:
    target = 1e-4
    change = max(progress.change, 1e-12)
    if not first:
        first.append(max(change, 10 * target))
    by_change = math.log(first[0] / change) / math.log(first[0] / target)
    return min(max(by_change, progress.iteration / progress.n_iter, 0.0), 1.0)


@contextmanager
def counting(title: str, total: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A function that takes how much is done so far, shown as a bar where a person is watching."""
    if quiet or not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)
