"""Functions of the gamma family over arrays, for the variational methods."""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray

# From here on, the asymptotic series of the digamma function up to x**-12 is exact to the last place or two.
_ASYMPTOTIC_FROM = 10
_log_gamma = np.frompyfunc(lgamma, 1, 1)


def digamma(x: NDArray[Any]) -> NDArray[np.float64]:
    """Derivative of the log of the gamma function at positive numbers, of any shape.

    >>> digamma(np.array([1.0])).round(12)
    array([-0.57721566])
    """
    x = np.array(x, dtype=np.float64)
    shifted = np.zeros_like(x)
    for _ in range(_ASYMPTOTIC_FROM):
        is_low = x < _ASYMPTOTIC_FROM
        shifted -= np.where(is_low, 1.0 / x, 0.0)
        x += is_low
    u = 1.0 / (x * x)
    series = 691.0 / 32760.0
    for term in (1.0 / 132.0, 1.0 / 240.0, 1.0 / 252.0, 1.0 / 120.0, 1.0 / 12.0):
        series = term - u * series
    return np.asarray(shifted + np.log(x) - 0.5 / x - u * series)


def log_gamma(x: NDArray[Any]) -> NDArray[np.float64]:
    """Log of the gamma function at positive numbers, of any shape.

    >>> np.exp(log_gamma(np.array([5.0]))).round(9)
    array([24.])
    """
    return np.asarray(_log_gamma(x), dtype=np.float64)
