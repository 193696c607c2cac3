"""The frozen ranking, cut into strata: what an audit may flag, from the first stratum downwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.errors import InputError
from rarevote.meaning.audit.draws import shuffle_key

_MIN_EXPECTED = 5.0
_FIRST_SHARE, _MIN_FIRST = 0.6, 3.0
_RATIO, _MIN_STEP = 1.15, 2.0
_LAST_SHARE = 0.97


@dataclass(frozen=True, eq=False)
class Strata:
    """Tasks in the order of their scores, cut into strata.

    Attributes:
        tasks: the tasks of every stratum, best first, (B) lists.
        p0: mean score of every stratum, (B).
    """

    tasks: tuple[tuple[Any, ...], ...]
    p0: FloatArray

    @property
    def sizes(self) -> list[int]:
        """Number of tasks of every stratum, ``N_b``."""
        return [len(tasks) for tasks in self.tasks]

    @property
    def n_tasks(self) -> int:
        """Number of tasks, ``N``."""
        return sum(self.sizes)

    @property
    def mean_score(self) -> float:
        """Mean score of the population."""
        return float(np.average(self.p0, weights=self.sizes))


def cuts(n: int, expected: float) -> list[int]:
    """Where the ranking is cut: ``round(r)`` for ``r = max(0.6 T, 3)``, then ``r <- max(1.15 r, r + 2)`` up to 0.97 N.

    >>> cuts(100, 40.0)
    [24, 28, 32, 37, 42, 48, 56, 64, 73, 84, 100]
    """
    r = max(_FIRST_SHARE * max(expected, _MIN_EXPECTED), _MIN_FIRST)
    found = []
    while r < _LAST_SHARE * n:
        found.append(round(r))
        r = max(_RATIO * r, r + _MIN_STEP)
    return [*found, n]


def build_strata(tasks: Sequence[Any], scores: ArrayLike, seed: int) -> Strata:
    """Rank tasks by score and cut the ranking.

    Ties are in the order of SHA-256 of seed, "tie" and task. Tasks without a score (NaN) form a last stratum of their
    own, whose base rate is the mean score.

    Args:
        tasks: the population, (N); text or numbers, each once.
        scores: calibrated probability of the class, (N).
        seed: seed of the audit.

    Raises:
        InputError: no tasks, lengths that differ, a score that is no probability, or no score at all.
    """
    p: FloatArray = np.asarray(scores, dtype=np.float64)
    if not len(tasks) or p.shape != (len(tasks),):
        raise InputError(f"an audit needs a score for every task, got {p.size:,} for {len(tasks):,} tasks")
    missing = np.isnan(p)
    known = np.flatnonzero(~missing)
    if not known.size:
        raise InputError("no task has a score: there is nothing to rank by")
    if ((p[known] < 0) | (p[known] > 1)).any():
        bad = int(known[(p[known] < 0) | (p[known] > 1)][0])
        raise InputError(f"task {tasks[bad]!r} has the score {p[bad]:g}: scores are probabilities of the class")
    mean = float(p[known].mean())
    ranked = _ranked(tasks, p, known, seed)
    ends = cuts(len(ranked), mean * len(tasks))
    groups = [ranked[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    p0 = [float(p[group].mean()) for group in groups]
    if missing.any():
        groups.append(np.flatnonzero(missing).tolist())
        p0.append(mean)
    return Strata(tuple(tuple(tasks[i] for i in group) for group in groups), np.array(p0))


def _ranked(tasks: Sequence[Any], p: FloatArray, known: NDArray[np.int64], seed: int) -> list[int]:
    """Positions by falling score."""
    _, group, count = np.unique(-p[known], return_inverse=True, return_counts=True)
    order: list[int] = known[np.argsort(group, kind="stable")].tolist()
    key = shuffle_key(seed, "tie")
    start = 0
    for size in count.tolist():
        if size > 1:
            order[start : start + size] = sorted(order[start : start + size], key=lambda i: key(tasks[i]))
        start += size
    return order
