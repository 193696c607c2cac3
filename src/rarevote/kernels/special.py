"""Functions of the gamma family over arrays, for the variational methods."""

from __future__ import annotations

from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel

# From here on the asymptotic series of the digamma function, cut after x**-12, is exact to the last place or two.
_ASYMPTOTIC_FROM = 10.0


@kernel
def _digamma_of(x: float) -> float:
    shifted = 0.0
    while x < _ASYMPTOTIC_FROM:
        shifted -= 1.0 / x
        x += 1.0
    u = 1.0 / (x * x)
    series = 691.0 / 32760.0
    series = 1.0 / 132.0 - u * series
    series = 1.0 / 240.0 - u * series
    series = 1.0 / 252.0 - u * series
    series = 1.0 / 120.0 - u * series
    series = 1.0 / 12.0 - u * series
    return shifted + log(x) - 0.5 / x - u * series


@kernel
def _fill_digamma(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for position in range(x.shape[0]):
        out[position] = _digamma_of(x[position])


@kernel
def _fill_log_gamma(x: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    for position in range(x.shape[0]):
        out[position] = lgamma(x[position])


def digamma(x: NDArray[Any]) -> NDArray[np.float64]:
    """Derivative of the log of the gamma function at positive numbers, of any shape.

    >>> digamma(np.array([1.0])).round(12)
    array([-0.57721566])
    """
    flat = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    out = np.empty_like(flat)
    _fill_digamma(flat, out)
    return out.reshape(x.shape)


def log_gamma(x: NDArray[Any]) -> NDArray[np.float64]:
    """Log of the gamma function at positive numbers, of any shape.

    >>> np.exp(log_gamma(np.array([5.0]))).round(9)
    array([24.])
    """
    flat = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
    out = np.empty_like(flat)
    _fill_log_gamma(flat, out)
    return out.reshape(x.shape)
