"""How well probabilities rank and are calibrated, when the truth is known; decisions are not involved.

A decision is one point of the ranking: from the most suspicious item down, each further flag can find one more of a
class. Comparing methods by their labels compares ranking and operating point together; here the ranking is measured
alone. Items of equal score have no order: figures are averages over all
orders (a share of the tied items contains the same share of the class among them), except for :func:`flags_needed`,
which keeps ties together. ``scores`` are of every item, (n), larger is more suspicious, ``is_class`` says whether it
has the class; ``probabilities`` are of every class, (n, K), and ``truth`` are class numbers, (n).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray, IntArray

_BINS = 10
_MIN_PROBABILITY = 1e-6


class FlagCurve(NamedTuple):
    """How many items of a class are found by how many flags, from the highest score down.

    Attributes:
        flagged: number of flags at the corners of the curve, ascending, from 0 to all items.
        found: number of items of the class among them. Between two corners the curve is straight.
    """

    flagged: IntArray
    found: IntArray

    @property
    def total(self) -> int:
        """Number of items of the class."""
        return int(self.found[-1])

    def recall_at(self, n_flags: ArrayLike) -> FloatArray:
        """Share of the class among the first ``n_flags`` items, of any shape; NaN if no item has the class."""
        found = np.interp(np.asarray(n_flags, dtype=np.float64), self.flagged, self.found)
        return np.asarray(found / self.total if self.total else np.full_like(found, np.nan))


def flag_curve(scores: ArrayLike, is_class: ArrayLike) -> FlagCurve:
    """The curve of one class.

    Example:
        >>> curve = flag_curve([0.9, 0.8, 0.8, 0.1], [True, False, True, True])
        >>> curve.flagged.tolist(), curve.found.tolist()
        ([0, 1, 3, 4], [0, 1, 2, 3])
        >>> curve.recall_at(2).round(3).tolist()
        0.5
    """
    values, own = np.asarray(scores, dtype=np.float64), np.asarray(is_class, dtype=bool)
    distinct, group = np.unique(-values, return_inverse=True)
    flagged = np.cumsum(np.bincount(group, minlength=distinct.size))
    found = np.cumsum(np.bincount(group[own], minlength=distinct.size))
    flagged, found = np.append(0, flagged), np.append(0, found)
    # If nothing is found on either side, the curve does not bend.
    rises = np.diff(found) > 0
    bends = (
        np.append(True, np.append(rises[:-1] | rises[1:], True)) if rises.size else np.ones(flagged.size, dtype=bool)
    )
    return FlagCurve(flagged[bends], found[bends])


def flags_needed(scores: ArrayLike, is_class: ArrayLike, recalls: Iterable[float]) -> list[int]:
    """How many of the highest-scored items must be reviewed to find these shares of a class.

    Items of equal score are reviewed together, since they have no order.

    Example:
        >>> flags_needed([0.9, 0.8, 0.8, 0.1], [True, False, True, True], (0.3, 0.6, 1.0))
        [1, 3, 4]
    """
    curve = flag_curve(scores, is_class)
    wanted = [share * curve.total - 1e-9 for share in recalls]
    return [int(curve.flagged[np.searchsorted(curve.found, count)]) if count > 0 else 0 for count in wanted]


def recall_at(scores: ArrayLike, is_class: ArrayLike, n_flags: float) -> float:
    """Share of a class among the ``n_flags`` highest-scored items.

    With as many flags as items of the class, this is the *R-precision*: recall and precision are then equal.

    Example:
        >>> recall_at([0.9, 0.8, 0.8, 0.1], [True, False, True, True], 2)
        0.5
    """
    return float(flag_curve(scores, is_class).recall_at(n_flags))


def average_precision(scores: ArrayLike, is_class: ArrayLike) -> float:
    """Area under the precision-recall curve: the mean, over the items of a class, of the precision where each is found.

    ``(1/P) sum_t t / rank_t``. Among ``p`` items of the class and ``n`` others of one score, the ``t``-th of the former
    is assumed to come after ``n t / p`` of the latter. Without ties this is scikit-learn's ``average_precision_score``,
    which gives all tied items the precision at the end of the tie.

    Returns:
        NaN if no item has the class.

    Example:
        >>> average_precision([0.9, 0.8, 0.7], [True, False, True])
        0.8333333333333333
    """
    curve = flag_curve(scores, is_class)
    if not curve.total:
        return float("nan")
    total = 0.0
    for before, hits, size, p in zip(
        curve.flagged, curve.found, np.diff(curve.flagged), np.diff(curve.found), strict=False
    ):
        t = np.arange(1, p + 1)
        total += float(((hits + t) / (before + t * size / p)).sum()) if p else 0.0
    return total / curve.total


def roc_auc(scores: ArrayLike, is_class: ArrayLike) -> float:
    """Probability that an item of a class has a higher score than one of another, equal scores counting half.

    Returns:
        NaN unless there are items of both kinds.

    Example:
        >>> roc_auc([0.9, 0.8, 0.8, 0.1], [True, False, True, False])
        0.875
    """
    curve = flag_curve(scores, is_class)
    found, others = curve.found.astype(np.float64), (curve.flagged - curve.found).astype(np.float64)
    pairs = found[-1] * others[-1]
    return float((np.diff(others) * (found[:-1] + found[1:]) / 2).sum() / pairs) if pairs else float("nan")


def mean_average_precision(probabilities: NDArray[np.floating], truth: IntArray) -> float:
    """Mean of :func:`average_precision` over the classes that occur in the truth."""
    return float(np.mean([average_precision(probabilities[:, k], truth == k) for k in np.unique(truth).tolist()]))


def log_loss_of(probabilities: NDArray[np.floating], truth: IntArray) -> float:
    """Mean of ``-log p`` of the true class, in nats; probabilities below a millionth count as a millionth.

    Posteriors of many votes are 0 or 1 in floating point, where the plain mean depends more on rounding than on the
    method; a millionth bounds the cost of one mistake.
    """
    return float(log_losses(probabilities, truth).mean())


def log_losses(probabilities: NDArray[np.floating], truth: IntArray) -> FloatArray:
    """The contribution of each item to :func:`log_loss_of`, (n)."""
    of_truth = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return np.asarray(-np.log(np.clip(of_truth, _MIN_PROBABILITY, 1.0)))


def calibration_error(confidence: FloatArray, right: NDArray[np.bool_]) -> float:
    """The expected calibration error: ``sum_b n_b / n |right_b - confidence_b|`` over ten bins of equal width.

    Args:
        confidence: probability of the given label, (n).
        right: whether it was the true one, (n).

    Example:
        >>> round(calibration_error(np.array([0.9, 0.9]), np.array([True, False])), 6)
        0.4
    """
    place = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    gaps = np.bincount(place, right - confidence, minlength=_BINS)
    return float(np.abs(gaps).sum() / max(len(confidence), 1))
