"""The balanced decision: a miss counts as much as the classes are unequal, at most as ``cap`` false alarms.

::

    label_i = argmax_k  p_ik min(max_l f_l / f_k, cap),      f = mean_i p_i

among the classes with at least one vote on the item. The most probable class would hardly ever be a rare one; dividing
by the shares alone would flag everything that a single person once called rare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Scores this near to each other, relative to the best, are equal.
_TIE = 1e-12
# Cells at a time: the work arrays stay in the cache, whatever the number of tasks.
_CELLS = 1 << 16


def balanced_codes(
    reported: NDArray[Any],
    votes: NDArray[Any],
    cap: float = 10.0,
    voted_only: bool = True,
    *,
    shares: NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """Class numbers of tasks by the balanced rule.

    Ties go to the class with more votes, then to the one with the larger share, then to the first. A task none of
    whose voted classes is possible (gold says otherwise, or it has no votes) may get any class.

    Args:
        reported: probability of every class, (n, K).
        votes: votes for every class, (n, K).
        cap: the most that a class counts, at least 1; 1 is the most probable class.
        voted_only: whether only classes with a vote on the task can be its label.
        shares: of the classes, (K); the means of ``reported`` if not given.

    Returns:
        int64 (n).

    Example:
        >>> p = np.array([[0.1, 0.9], [0.3, 0.7], [0.0, 1.0], [0.2, 0.8]])
        >>> balanced_codes(p, np.array([[1, 2], [1, 2], [0, 3], [0, 3]])).tolist()
        [1, 0, 1, 1]
    """
    n_tasks, n_classes = reported.shape
    codes = np.zeros(n_tasks, dtype=np.int64)
    if not n_tasks or not n_classes:
        return codes
    if shares is None:
        shares = reported.mean(axis=0, dtype=np.float64)
    largest = shares.max()
    with np.errstate(divide="ignore"):
        weight = np.where(shares > 0, np.minimum(largest / shares, cap), cap)
    # Classes in the order in which they win a full tie: argmax takes the first.
    order = np.lexsort((np.arange(n_classes), -shares))
    rows = max(_CELLS // n_classes, 1)
    for begin in range(0, n_tasks, rows):
        part = slice(begin, begin + rows)
        score = reported[part] * weight
        counted = np.asarray(votes[part])
        if voted_only:
            possible = np.where(counted > 0, score, 0.0)
            stuck = ~(possible.max(axis=1) > 0)
            possible[stuck] = score[stuck]
            score = possible
        best = score.max(axis=1, keepdims=True)
        tied = (score >= best * (1.0 - _TIE))[:, order]
        codes[part] = order[np.where(tied, counted[:, order], -1).argmax(axis=1)]
    return codes


@dataclass(frozen=True, eq=False)
class ByBalance:
    """The balanced rule with the shares of a whole crowd, for a part of its tasks.

    Attributes:
        cap: as in :func:`balanced_codes`.
        shares: as in :func:`balanced_codes`.
    """

    cap: float
    shares: NDArray[Any]

    def codes(self, reported: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return balanced_codes(reported, votes(), self.cap, shares=self.shares)
