"""Extrapolated EM steps (SQUAREM) over local parameters: squared differences, and the extrapolated point.

From three consecutive points ``t0, t1, t2`` (each an array with one row per task, and an offset per column) with
``r = t1 - t0`` and ``v = (t2 - t1) - r`` the far point is ``t0 + 2 a r + a^2 v``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel

Offset = NDArray[np.float64]


@kernel
def squared_differences(
    t0: NDArray[Any], t1: NDArray[Any], t2: NDArray[Any], o0: Offset, o1: Offset, o2: Offset
) -> tuple[float, float]:
    """Squared norms of ``r`` and of ``v``."""
    first = 0.0
    second = 0.0
    for i in range(t0.shape[0]):
        for d in range(t0.shape[1]):
            middle = t1[i, d] + o1[d]
            r = middle - (t0[i, d] + o0[d])
            v = (t2[i, d] + o2[d]) - middle - r
            first += r * r
            second += v * v
    return first, second


@kernel
def far_point(
    t0: NDArray[Any],
    t1: NDArray[Any],
    t2: NDArray[Any],
    o0: Offset,
    o1: Offset,
    o2: Offset,
    length: float,
    out: NDArray[Any],
    sums: NDArray[np.float64],
) -> None:
    """Write the far point to ``out`` and add its rows to ``sums``."""
    for i in range(t0.shape[0]):
        for d in range(t0.shape[1]):
            begin = t0[i, d] + o0[d]
            middle = t1[i, d] + o1[d]
            r = middle - begin
            v = (t2[i, d] + o2[d]) - middle - r
            far = begin + 2.0 * length * r + length * length * v
            out[i, d] = far
            sums[d] += far
