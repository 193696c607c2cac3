"""Counting sort of annotations by task."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel


@kernel
def group_by_code(
    codes: NDArray[Any],
    pointer: NDArray[np.int64],
    worker_in: NDArray[Any],
    label_in: NDArray[Any],
    worker_out: NDArray[Any],
    label_out: NDArray[Any],
) -> None:
    """Write workers and labels grouped by code, rows of one code in their given order.

    ``pointer`` (n + 1 zeros) is filled with where each code's run begins. It is advanced while writing and moved back
    at the end, which saves a second array of its size.
    """
    n_codes = pointer.shape[0] - 1
    for position in range(codes.shape[0]):
        pointer[codes[position] + 1] += 1
    for code in range(n_codes):
        pointer[code + 1] += pointer[code]
    for position in range(codes.shape[0]):
        code = codes[position]
        place = pointer[code]
        worker_out[place] = worker_in[position]
        label_out[place] = label_in[position]
        pointer[code] = place + 1
    for code in range(n_codes, 0, -1):
        pointer[code] = pointer[code - 1]
    pointer[0] = 0
