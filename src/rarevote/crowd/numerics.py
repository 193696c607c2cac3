"""Small pieces of numerical code that several methods share: class shares, and from probabilities to classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Probabilities are kept this far from zero where a logarithm follows.
TINY = 1e-10


def sigmoid(log_odds: NDArray[Any]) -> FloatArray:
    """``1 / (1 + exp(-log_odds))``, through tanh because that never overflows."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))


def log_prior_from_mass(mass: NDArray[Any]) -> NDArray[np.float64]:
    """Log of class shares estimated from summed posteriors, kept away from zero."""
    share = np.maximum(mass / max(float(mass.sum()), TINY), TINY)
    return np.asarray(np.log(share / share.sum()))


def normalise_rows(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Rows that sum to one; a row without any mass becomes uniform."""
    total = scores.sum(axis=1, keepdims=True)
    shares = scores / np.where(total > 0, total, 1.0)
    empty = total[:, 0] <= 0
    if empty.any():
        shares[empty] = 1.0 / max(scores.shape[1], 1)
    return np.asarray(shares)


def first_of_best(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The best column of each row; ties go to the first column, that is the first class in sorted order."""
    if scores.shape[1] == 0:
        return np.zeros(scores.shape[0], dtype=np.int64)
    return np.asarray(scores.argmax(axis=1))


class Chooser(Protocol):
    """From the probabilities of some tasks to their classes."""

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks; ``votes`` per task and class are counted only if they are needed."""


@dataclass(frozen=True)
class ByVotes:
    """The most probable class, and the votes where that is too close to tell (see :func:`best_by_votes`)."""

    margin: float

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return best_by_votes(posterior, self.margin, votes)


def best_by_votes(
    posterior: NDArray[Any], margin: float, votes: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """The best column of each row; of columns within ``margin`` of it, the one with the most votes.

    ``votes`` is of the shape of ``posterior`` and only counted if there is such a row.
    """
    chosen = first_of_best(posterior)
    if not posterior.size:
        return chosen
    tied = posterior >= posterior.max(axis=1, keepdims=True) - margin
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if rows.size:
        chosen[rows] = first_of_best(np.where(tied[rows], votes()[rows], -1.0))
    return chosen


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

    A miss counts as much as the classes are unequal, at most as ``cap`` false alarms::

        label_i = argmax_k  p_ik min(max_l f_l / f_k, cap),      f = mean_i p_i

    among the classes with at least one vote on the item. The most probable class would hardly ever be a rare one;
    dividing by the shares alone would flag everything that a single person once called rare.

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
