"""Pairs of workers: the votes of two workers on a common task, and Cohen's kappa of every pair with common tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.io.tables import Table
from rarevote.kernels.plain import runs, sum_by, task_of_votes

# The number of pairs of votes compared at once, and of cells in a table by pair of workers and class.
AT_ONCE = 400_000
_MAX_CELLS = 4_000_000
_NORMAL = 1.959963984540054


class LastVotes(NamedTuple):
    """Votes by task, one per task and worker."""

    task_ptr: IntArray
    worker: NDArray[Any]
    label: NDArray[Any]


def last_votes(task_ptr: IntArray, worker: NDArray[Any], label: NDArray[Any]) -> LastVotes:
    """The votes, with only the last vote of a worker on a task.

    >>> last_votes(np.array([0, 3, 4]), np.array([7, 8, 7, 7]), np.array([0, 1, 1, 0])).label
    array([1, 1, 0])
    """
    kept = np.ones(worker.size, dtype=bool)
    for begin, end in runs(task_ptr):
        ptr = task_ptr[begin : end + 1]
        task, of = task_of_votes(ptr), worker[ptr[0] : ptr[-1]]
        order = np.lexsort((of, task))
        task, of = task[order], of[order]
        kept[ptr[0] + order[:-1][(task[1:] == task[:-1]) & (of[1:] == of[:-1])]] = False
    if kept.all():
        return LastVotes(task_ptr, worker, label)
    return LastVotes(pointer_to(kept)[task_ptr], worker[kept], label[kept])


def pointer_to(sizes: NDArray[Any]) -> IntArray:
    """The start of each group, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def pairs_with_later(votes: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """The positions of all pairs of a vote and a later vote on its task.

    Args:
        votes: positions of the first votes.
        end: end of the task of every vote, (N).

    >>> pairs_with_later(np.arange(4), np.array([3, 3, 3, 4]))
    (array([0, 0, 1]), array([1, 2, 2]))
    """
    n_later = end[votes] - votes - 1
    # The k-th later vote of a vote is k + 1 positions after it.
    begin = np.cumsum(n_later) - n_later
    return np.repeat(votes, n_later), np.arange(n_later.sum()) + np.repeat(votes + 1 - begin, n_later)


@dataclass(frozen=True, eq=False)
class PairKappas:
    """Cohen's kappa of every two workers with a common task.

    With ``p_o`` the share of equal votes, ``p_e = sum_k a_k b_k`` from the shares of each class in the votes of both on
    their common tasks, ``kappa = (p_o - p_e) / (1 - p_e)``; NaN if both only used one and the same class. Its
    derivative with respect to the weight of a task is the task's contribution to ``influence`` and, squared, to
    ``error``.

    Attributes:
        pairs: first worker, second worker, common tasks, equal votes, (p, 4).
        kappa: (p).
        error: its standard error, (p).
        influence: derivative of the mean kappa with respect to the weight of each task, (n).
    """

    pairs: NDArray[np.int32]
    kappa: FloatArray
    error: FloatArray
    influence: FloatArray

    @classmethod
    def of(cls, votes: LastVotes, n_workers: int, n_classes: int) -> PairKappas:
        """Compare every two workers, in batches of first workers."""
        task_ptr, worker, label = votes
        task = task_of_votes(task_ptr)
        order = np.lexsort((worker, task))
        worker, label = worker[order].astype(np.int64), label[order].astype(np.int64)
        by_worker = np.argsort(worker, kind="stable")
        worker_ptr = pointer_to(np.bincount(worker, minlength=n_workers))
        end = np.repeat(task_ptr[1:], np.diff(task_ptr))
        n_later = np.bincount(worker, end - np.arange(worker.size) - 1, n_workers)
        found, influence = [cls.none(0)], np.zeros(task_ptr.size - 1)
        for first, last in runs(pointer_to(n_later), AT_ONCE):
            one, other = pairs_with_later(by_worker[worker_ptr[first] : worker_ptr[last]], end)
            part = _compared(worker[one] * n_workers + worker[other], label[one], label[other], n_workers, n_classes)
            influence += sum_by(task[one], part.influence, influence.size)
            found.append(part)
        pairs, kappa, error = (np.concatenate([getattr(part, name) for part in found]) for name in _BY_PAIR)
        return cls(pairs, kappa, error, influence / max(int(np.isfinite(kappa).sum()), 1))

    @classmethod
    def none(cls, n_tasks: int) -> PairKappas:
        """An instance without pairs."""
        return cls(np.empty((0, 4), dtype=np.int32), np.empty(0), np.empty(0), np.zeros(n_tasks))

    def mean_kappa(self) -> float:
        """The mean over the pairs that have a kappa; NaN if none has."""
        counted = np.isfinite(self.kappa)
        return float(self.kappa[counted].mean()) if counted.any() else float("nan")

    def table(self, workers: NDArray[Any]) -> Table:
        """One row per pair."""
        first, second, common, equal = self.pairs.T
        return Table(
            {"worker": workers[first], "other": workers[second]},
            {
                "common": common,
                "raw": equal / np.maximum(common, 1),
                "cohen_kappa": self.kappa,
                "low": np.maximum(self.kappa - _NORMAL * self.error, -1.0),
                "high": np.minimum(self.kappa + _NORMAL * self.error, 1.0),
            },
        )


_BY_PAIR = ("pairs", "kappa", "error")


def _compared(key: IntArray, mine: IntArray, theirs: IntArray, n_workers: int, n_classes: int) -> PairKappas:
    """Kappas from all common votes of some pairs, with the influence of each common vote on its pair.

    Args:
        key: ``first worker * n_workers + second worker`` of each common vote.
        mine: label of the first worker.
        theirs: label of the second worker.
        n_workers: number of workers.
        n_classes: number of classes.
    """
    # Pairs are numbered in the order of first occurrence. Narrow keys are sorted faster.
    keys, at, pair = np.unique(key.astype(np.min_scalar_type(n_workers**2)), return_index=True, return_inverse=True)
    met = np.argsort(at, kind="stable")
    pair = np.argsort(met, kind="stable")[pair]
    n_pairs, is_equal = len(met), mine == theirs
    common, equal = np.bincount(pair, minlength=n_pairs), np.bincount(pair[is_equal], minlength=n_pairs)

    mine, theirs = pair * n_classes + mine, pair * n_classes + theirs
    n_cells = n_pairs * n_classes
    if n_cells > _MAX_CELLS:  # only those that occur
        mine, theirs = np.unique(np.stack([mine, theirs]), return_inverse=True)[1].reshape(2, -1)
        n_cells = 2 * len(pair)
    of_first, of_second = np.bincount(mine, minlength=n_cells), np.bincount(theirs, minlength=n_cells)
    expected = sum_by(pair, of_second[mine], n_pairs) / common**2
    observed, missed = equal / common, 1.0 - expected
    has_one = missed > 0.0
    missed = np.where(has_one, missed, 1.0)
    pull = (1.0 - observed) / (missed * missed * common)
    slope = (
        (2.0 * expected * pull - observed / (missed * common))[pair]
        - (pull / common)[pair] * (of_second[mine] + of_first[theirs])
        + np.where(is_equal, (1.0 / (missed * common))[pair], 0.0)
    )
    slope = np.where(has_one[pair], slope, 0.0)
    workers = np.divmod(keys[met].astype(np.int64), n_workers)
    return PairKappas(
        pairs=np.stack([*workers, common, equal], axis=1).astype(np.int32),
        kappa=np.where(has_one, (observed - expected) / missed, np.nan),
        error=np.sqrt(np.where(has_one, sum_by(pair, slope * slope, n_pairs), np.nan)),
        influence=slope,
    )
