"""How well probabilities rank and how well they are meant: average precision, log loss, calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LOWEST = 1e-6  # probabilities below this count as this in the log loss
_BINS = 10


def average_precision(is_positive: ArrayLike, score: ArrayLike) -> float:
    """Mean precision at the positives, from the highest score down.

    Items of equal score stand in no order: among ``p`` positives and ``n`` negatives of one score, the ``t``-th
    positive is taken to come after ``n t / p`` of the negatives.
    """
    positive, given = np.asarray(is_positive, dtype=bool), np.asarray(score, dtype=np.float64)
    order = np.argsort(-given, kind="stable")
    ordered = given[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(ordered)) + 1]) if ordered.size else np.zeros(0, int)
    found = np.add.reduceat(positive[order].astype(np.float64), starts)
    size = np.diff(np.append(starts, ordered.size))
    above, all_above = np.cumsum(found) - found, np.cumsum(size) - size
    total = 0.0
    for p, n, hits, items in zip(found, size - found, above, all_above, strict=True):
        t = np.arange(1, int(p) + 1)
        total += float(((hits + t) / (items + t + n * t / max(p, 1.0))).sum())
    return total / max(float(positive.sum()), 1.0)


def clipped_log_loss(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Mean of ``-log p`` of the true class, (n) class numbers and (n, K) probabilities."""
    of_truth = probabilities[np.arange(len(truth)), truth].astype(np.float64)
    return float(-np.log(np.clip(of_truth, _LOWEST, 1.0)).mean())


def calibration_error(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Mean distance between confidence and accuracy of the most probable class, over ten equal bins of confidence."""
    top = probabilities.argmax(axis=1)
    confidence, right = probabilities.max(axis=1), top == truth
    place = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    gaps = np.bincount(place, right - confidence, minlength=_BINS)
    return float(np.abs(gaps).sum() / len(truth))
