"""The tasks of a simulated crowd and their workers, before any answer is drawn.

Tasks are drawn in blocks of 10 000. Every block has its own random stream, derived from the seed and the
block's number, so blocks can be grouped freely and made one at a time without changing the crowd.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import ParameterError

BLOCK_TASKS = 10_000
MAX_CLASSES = 65_535
# Beyond these NumPy refuses to draw, and no crowd has that many workers or votes.
_MAX_EXACT_TASKS = 10**9 - 1
_MAX_WORKERS = 2**31 - 1
_MAX_VOTES = 1e9


class Stream(IntEnum):
    """The purpose of each random stream of a seed; ``BLOCK`` and ``SHARED_ERRORS`` are followed by a block's number."""

    WORKERS = 0
    BLOCK = 1
    CLASS_COUNTS = 2
    DIFFICULTIES = 3
    SHARED_ERRORS = 4


class TaskBlock(NamedTuple):
    """Up to 10 000 consecutive tasks and their workers, before any answer."""

    first_task: int
    truth: NDArray[np.int32]
    row: IntArray  # the task of each annotation, counted from first_task
    worker: NDArray[np.int32]
    stream: np.random.Generator

    @property
    def number(self) -> int:
        """Number of the block."""
        return self.first_task // BLOCK_TASKS

    @property
    def task(self) -> IntArray:
        """The task of each annotation, counted over the whole crowd."""
        return self.row + self.first_task

    def answers(self, chance: FloatArray, n_classes: int) -> NDArray[np.int32]:
        """Answer with the truth with probability ``chance``, else with any other class, all equally likely."""
        wrong = np.flatnonzero(self.stream.random(len(self.row)) >= chance)
        return self.with_errors(wrong, self.stream.integers(n_classes - 1, size=len(wrong), dtype=np.int32))

    def with_errors(self, wrong: IntArray, other: NDArray[np.int32]) -> NDArray[np.int32]:
        """The true class of every annotation; for those that are ``wrong``, the ``other``-th of the other classes."""
        label = self.truth[self.row]
        # 0 .. K-2, shifted up from the true class on, are all other classes.
        label[wrong] = other + (other >= label[wrong])
        return label


class CrowdPlan:
    """Checked sizes of a crowd, and the blocks of tasks that follow from them and a seed."""

    def __init__(
        self,
        n_tasks: int,
        n_workers: int,
        n_classes: int,
        imbalance: float,
        votes_per_task: float,
        exact_counts: bool,
        random_state: int | None,
    ) -> None:
        for name, value in (("n_tasks", n_tasks), ("n_workers", n_workers), ("n_classes", n_classes)):
            require_whole(name, value)
        require(2 <= n_classes <= MAX_CLASSES, f"n_classes must be 2 to {MAX_CLASSES}, not {n_classes}")
        require(n_workers <= _MAX_WORKERS, f"n_workers must be at most {_MAX_WORKERS}, not {n_workers}")
        require(1 <= imbalance < math.inf, f"imbalance must be at least 1 and finite, not {imbalance}")
        require(1 <= votes_per_task <= _MAX_VOTES, f"votes_per_task must be at least 1, not {votes_per_task}")
        require(
            not exact_counts or n_tasks <= _MAX_EXACT_TASKS,
            f"exact_counts is possible for at most {_MAX_EXACT_TASKS} tasks, not {n_tasks}",
        )
        if random_state is not None:
            require_whole("random_state", random_state, least=0)
        self.n_tasks = n_tasks
        self.n_workers = n_workers
        sizes = imbalance ** (-np.arange(n_classes) / (n_classes - 1))
        self.class_shares = sizes / sizes.sum()
        self.votes_per_task = votes_per_task
        self.exact_counts = exact_counts
        self.seed = secrets.randbits(128) if random_state is None else int(random_state)

    def stream(self, *key: int) -> np.random.Generator:
        """Return the random stream of this key; PCG64 by name, because NumPy's default may change."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def blocks(self) -> Iterator[TaskBlock]:
        """Draw truth, votes and workers of one block of tasks after another."""
        left = rounded_counts(self.class_shares, self.n_tasks)
        urn = self.stream(Stream.CLASS_COUNTS)
        thresholds = self.class_shares.cumsum()[:-1]
        for first_task in range(0, self.n_tasks, BLOCK_TASKS):
            n_tasks = min(BLOCK_TASKS, self.n_tasks - first_task)
            stream = self.stream(Stream.BLOCK, first_task // BLOCK_TASKS)
            if self.exact_counts:
                # Drawing blocks without replacement gives a random order of all tasks without storing it.
                taken = urn.multivariate_hypergeometric(left, n_tasks)
                left = left - taken
                truth = stream.permutation(np.repeat(np.arange(len(left)), taken))
            else:
                truth = np.searchsorted(thresholds, stream.random(n_tasks), side="right")
            votes = np.minimum(1 + stream.poisson(self.votes_per_task - 1, size=n_tasks), self.n_workers)
            row, worker = np.divmod(_draw_workers(stream, votes, self.n_workers), self.n_workers)
            yield TaskBlock(first_task, truth.astype(np.int32), row, worker.astype(np.int32), stream)


def require(condition: bool, message: str) -> None:
    """Raise `ParameterError` unless the condition holds."""
    if not condition:
        raise ParameterError(message)


def require_whole(name: str, value: int, least: int = 1) -> None:
    """Raise `ParameterError` unless the value is a whole number of at least ``least``."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    require(is_whole and value >= least, f"{name} must be a whole number of at least {least}, not {value!r}")


def rounded_counts(shares: FloatArray, total: int) -> IntArray:
    """Split ``total`` by shares into whole numbers that sum to it, the largest remainders rounded up."""
    # A product such as 0.7 * 10 can fall just short of the whole number that it should be.
    exact = np.round(shares * total, 6)
    counts = np.floor(exact).astype(np.int64)
    largest_first = np.argsort(counts - exact, kind="stable")
    counts[largest_first[: total - int(counts.sum())]] += 1
    return counts


def _draw_workers(stream: np.random.Generator, votes: IntArray, n_workers: int) -> IntArray:
    """Draw ``votes[i]`` different workers for task ``i``, all sets equally likely, as sorted ``i * n_workers +
    worker``.

    Workers drawn twice are drawn again. For a task that needs more than half of the workers, those who are left
    out are drawn instead: so a redraw succeeds at least half of the time, however small the crowd.
    """
    few = np.minimum(votes, n_workers - votes)
    drawn = np.empty(0, dtype=np.int64)
    wanted = np.repeat(np.arange(len(votes)), few)
    while len(wanted):
        proposed = np.sort(wanted * n_workers + stream.integers(n_workers, size=len(wanted)))
        is_new = np.ones(len(proposed), dtype=bool)
        is_new[1:] = proposed[1:] != proposed[:-1]
        if len(drawn):
            nearest = np.minimum(np.searchsorted(drawn, proposed), len(drawn) - 1)
            is_new &= drawn[nearest] != proposed
        # The stable sort merges two sorted runs in linear time.
        drawn = np.sort(np.concatenate([drawn, proposed[is_new]]), kind="stable")
        wanted = proposed[~is_new] // n_workers

    inverted = np.flatnonzero(few < votes)
    if not len(inverted):
        return drawn
    row_of = np.full(len(votes), -1)
    row_of[inverted] = np.arange(len(inverted))
    task, worker = np.divmod(drawn, n_workers)
    absent = row_of[task] >= 0
    present = np.ones((len(inverted), n_workers), dtype=bool)
    present[row_of[task[absent]], worker[absent]] = False
    row, worker = np.nonzero(present)
    return np.sort(np.concatenate([drawn[~absent], inverted[row] * n_workers + worker]), kind="stable")
