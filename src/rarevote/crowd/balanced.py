"""The balanced decision: a class needs less probability the rarer it is, within a limit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_TIE = 1e-12


def balanced_codes(
    reported: NDArray[Any], votes: NDArray[Any], cap: float, *, voted_only: bool = True
) -> NDArray[np.int64]:
    """``argmax_k p_ik min(max_l f_l / f_k, cap)`` with ``f`` the mean of ``p``; ties by votes, then ``f``.

    Args:
        reported: probability of every class, (n, K).
        votes: votes per task and class, (n, K).
        cap: how often a miss may count.
        voted_only: decide among the classes with a vote on the task; a task without any is free.
    """
    n, n_classes = reported.shape
    if not n or n_classes < 2:
        return np.zeros(n, dtype=np.int64)
    share = reported.mean(axis=0)
    weight = np.minimum(share.max() / np.maximum(share, np.finfo(np.float64).tiny), cap)
    scores = reported * weight
    if voted_only:
        scores = np.where((votes > 0) | ~votes.any(axis=1, keepdims=True), scores, -1.0)
    tied = scores >= scores.max(axis=1, keepdims=True) * (1.0 - _TIE)
    counted = np.where(tied, votes, -1.0)
    tied &= counted == counted.max(axis=1, keepdims=True)
    return np.asarray(np.where(tied, share, -1.0).argmax(axis=1))
