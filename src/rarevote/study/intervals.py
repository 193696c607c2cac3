"""Means with confidence intervals: Student's t for means, Wilson's score interval for shares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import cos, nan, pi, sin, sqrt, tan
from typing import NamedTuple

import numpy as np

from rarevote.meaning.truth import wilson

CONFIDENCE = 0.95


class MeanInterval(NamedTuple):
    """A mean and the ends of its confidence interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: Sequence[float], *, confidence: float = CONFIDENCE) -> MeanInterval:
    """The mean with its t interval, ``mean ± t_{n-1} s / sqrt(n)``.

    Values that are not a number (a score that could not be computed) are left out. A single value has no spread: its
    interval is the value itself, which is honest only for a method without chance on data without chance.

    Example:
        >>> [round(value, 4) for value in mean_interval([0.0, 1.0, 2.0])]
        [1.0, -1.4841, 3.4841]
    """
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[~np.isnan(sample)]
    if not sample.size:
        return MeanInterval(nan, nan, nan)
    mean = float(sample.mean())
    if sample.size == 1:
        return MeanInterval(mean, mean, mean)
    half = student_quantile(sample.size - 1, confidence) * float(sample.std(ddof=1)) / sqrt(sample.size)
    return MeanInterval(mean, mean - half, mean + half)


def share_interval(hits: int, total: int) -> MeanInterval:
    """A share ``hits / total`` with Wilson's 95% score interval, which also works at 0 and at 1."""
    low, high = wilson(np.array(hits / total), np.array(total))
    return MeanInterval(hits / total, float(low), float(high))


@lru_cache(maxsize=256)
def student_quantile(degrees: int, confidence: float = CONFIDENCE) -> float:
    """The ``t`` with ``P(|T| <= t) = confidence`` for Student's T with that many degrees of freedom.

    For whole degrees the probability is a finite sum of powers of ``cos(atan(t / sqrt(degrees)))``, so that bisection
    on the angle needs no library of special functions.
    """
    low, high = 0.0, pi / 2
    for _ in range(80):
        middle = (low + high) / 2
        if _within(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return sqrt(degrees) * tan(low)


def _within(angle: float, degrees: int) -> float:
    """``P(|T| <= sqrt(degrees) tan(angle))``."""
    odd = degrees % 2 == 1
    term = cos(angle) if odd else 1.0
    total = term if degrees > 1 else 0.0
    for power in range(3 if odd else 2, degrees - 1, 2):
        term *= cos(angle) ** 2 * (power - 1) / power
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of the least-squares line of ``y`` on ``x``."""
    return float(np.polynomial.polynomial.polyfit(np.asarray(x), np.asarray(y), 1)[1])
