"""Votes drawn from a fitted model, on the same items by the same annotators, to check how well the model fits.

For every item, a class is drawn from its posterior, and other parameters of the item (its difficulty) from their
distribution given the votes; then every annotator of the item votes again with the fitted probabilities::

    z_i ~ q_i,    P(worker r says l on item i) = a if l = z_i, else (1 - a) e_l

with ``a`` the probability of being right and ``e`` the distribution of errors that the method fitted
(:meth:`Estimator.vote_model <rarevote.methods.base.Estimator.vote_model>`). For a large crowd, a random sample of items
is enough: the differences of interest are of some percent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray

# The most votes to draw again, and the most numbers per vote and class in memory at a time.
_MAX_VOTES = 400_000
_MAX_CELLS = 8_000_000


@dataclass(frozen=True, eq=False)
class SomeVotes:
    """The votes on some tasks of a crowd.

    Attributes:
        tasks: numbers of these tasks in the crowd, (n).
        task: index into ``tasks`` of each vote, ascending, (v).
        worker: worker of each vote, (v).
        label: label of each vote, (v).
        n_classes: number of classes of the crowd.
    """

    tasks: IntArray
    task: IntArray
    worker: IntArray
    label: IntArray
    n_classes: int

    @classmethod
    def of(cls, crowd: Annotations) -> SomeVotes:
        """All votes, or those on a random sample of tasks if there are too many."""
        size = np.diff(crowd.task_ptr)
        most = min(_MAX_VOTES, _MAX_CELLS // max(crowd.n_classes, 1))
        tasks = np.arange(crowd.n_tasks)
        if crowd.n_annotations > most:
            drawn = np.random.default_rng(0).permutation(crowd.n_tasks)
            n_kept = max(int(np.searchsorted(np.cumsum(size[drawn]), most, side="right")), 1)
            tasks = np.sort(drawn[:n_kept])
        task = np.repeat(np.arange(len(tasks)), size[tasks])
        begin = np.cumsum(size[tasks]) - size[tasks]
        place = np.arange(len(task)) + np.repeat(crowd.task_ptr[tasks] - begin, size[tasks])
        worker, label = crowd.worker[place].astype(np.int64), crowd.label[place].astype(np.int64)
        return cls(tasks, task, worker, label, crowd.n_classes)

    @cached_property
    def size(self) -> IntArray:
        """Number of votes on each task, (n)."""
        return np.bincount(self.task, minlength=len(self.tasks))

    def counts(self, label: IntArray) -> IntArray:
        """Votes per task and class, (n, K), if the votes are ``label``."""
        n, K = len(self.tasks), self.n_classes
        # Classes first in memory: sums and maxima over few classes then run along the tasks.
        return np.bincount(label * n + self.task, minlength=n * K).reshape(K, n).T

    def of_votes(self, values: NDArray[Any]) -> NDArray[Any]:
        """For each vote, (v), the value of its task, from an array with one value per task."""
        return np.repeat(values, self.size)

    def of_tasks(self, values: FloatArray) -> FloatArray:
        """The rows of these tasks, from an array with one row per task of the crowd."""
        return np.asarray(values[self.tasks], dtype=np.float64)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sums over the votes on each task, (n, ...), from an array with one row per vote."""
        return np.asarray(np.add.reduceat(values, np.cumsum(self.size) - self.size, axis=0))


@dataclass(frozen=True, eq=False)
class VoteModel:
    """How the annotators of a fit vote.

    Attributes:
        votes: the votes that are drawn again.
        posterior: class probabilities of all tasks of the crowd, (n_tasks, K).
        right: the probability that each vote is right, (v), if the tasks of ``votes`` have these classes, (n).
        errors: weights of the labels that these workers give on tasks of these classes, (..., K), if they are wrong;
            uniform over the other classes if None.
    """

    votes: SomeVotes
    posterior: FloatArray
    right: Callable[[IntArray, np.random.Generator], FloatArray]
    errors: Callable[[IntArray, IntArray], FloatArray] | None = None

    @cached_property
    def _below(self) -> FloatArray:
        """Cumulative class probabilities of the tasks, (n, K)."""
        posterior = self.votes.of_tasks(self.posterior)
        total = posterior.sum(axis=1, keepdims=True)
        return np.cumsum(posterior / np.where(total > 0, total, 1.0), axis=1)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Labels of all votes, drawn again, (v)."""
        truth = drawn(self._below, rng)
        z = self.votes.of_votes(truth)
        label = z.copy()
        wrong = np.flatnonzero(rng.random(len(z)) >= self.right(truth, rng))
        label[wrong] = self._instead(wrong, z[wrong], rng)
        return label

    def _instead(self, wrong: IntArray, z: IntArray, rng: np.random.Generator) -> IntArray:
        """The labels of the votes with these numbers, which are wrong about a task of class z."""
        K = self.votes.n_classes
        if K < 2:
            return z
        if K == 2 or self.errors is None:
            return np.asarray((z + 1 + rng.integers(K - 1, size=len(z))) % K)
        worker = self.votes.worker[wrong]
        if self._errors_below is None:
            return drawn(self._weights_below(worker, z), rng)
        return drawn(self._errors_below, rng, worker * K + z)

    @cached_property
    def _errors_below(self) -> FloatArray | None:
        """Cumulative weights of the wrong labels, row ``worker K + class``; None if too many."""
        K, n_workers = self.votes.n_classes, int(self.votes.worker.max()) + 1
        if n_workers * K * K > _MAX_CELLS:
            return None
        worker, z = np.divmod(np.arange(n_workers * K), K)
        return self._weights_below(worker, z)

    def _weights_below(self, worker: IntArray, z: IntArray) -> FloatArray:
        assert self.errors is not None
        weights = self.errors(worker, z)
        np.put_along_axis(weights, z[:, None], 0.0, axis=1)
        return np.cumsum(weights, axis=1)


def drawn(below: FloatArray, rng: np.random.Generator, rows: IntArray | None = None) -> IntArray:
    """A random column for each row, from cumulative weights, (n).

    Args:
        below: cumulative weights, (m, K).
        rng: the generator of random numbers.
        rows: rows of ``below`` to draw from, (n); by default, each row once.

    >>> drawn(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]), np.random.default_rng(0), np.array([0, 1, 1, 0]))
    array([0, 2, 2, 0])
    """
    K = below.shape[1]
    flat = np.ascontiguousarray(below).ravel()
    first = (np.arange(len(below)) if rows is None else rows) * K
    u = rng.random(len(first)) * flat.take(first + (K - 1))
    # The number of weights that are not above u, by bisection: they ascend.
    place = np.zeros(len(first), dtype=np.int64)
    for step in (1 << power for power in reversed(range(K.bit_length()))):
        ahead = place + step
        place = np.where(flat.take(first + (np.minimum(ahead, K) - 1)) <= u, ahead, place)
    return np.asarray(np.minimum(place, K - 1))
