"""The CC-Rasch pass in NumPy: for small data, and to read beside the kernel, whose arguments it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows

Floats = NDArray[np.float64]

NO_DIFFICULTY, SHARED_DIFFICULTY, CLASS_DIFFICULTY = 0, 1, 2


def fused_pass(
    shard: Shard,
    odds: Floats,  # (m, K), exp(s_k + g_rk)
    log_prior: Floats,  # (K)
    shift: Floats,  # (D), added to the difficulties that come in
    ridge: Floats,  # (D), 2 lambda_beta
    pull: Floats,  # (D), constant part of the difficulty's gradient, from the penalty on the mean
    stiffness: Floats,  # (D), curvature of the penalties
    damping: float,  # 0: Newton's curvature, >= 1: that many times its upper bound
    refresh: bool,  # whether to recompute the posterior
    mode: int,  # NO_DIFFICULTY, SHARED_DIFFICULTY or CLASS_DIFFICULTY
    posterior_in: NDArray[Any],  # (n, K)
    difficulty_in: NDArray[Any],  # (n, D)
    posterior_out: NDArray[Any],  # (n, K)
    difficulty_out: NDArray[Any],  # (n, D)
    of_workers: Floats,  # (m, 2, K), added to: gradient and curvature
    scalars: Floats,  # (2), added to: log likelihood (or its bound), squared norm of the difficulties' gradient
    squares: Floats,  # (D), added to: sum of h**2 as it came in
    moved: Floats,  # (D), added to: sum of the new h
    class_mass: Floats,  # (K), added to: sum of the posterior
) -> float:
    """Posterior, one Newton step on the difficulties, gradient and curvature of the abilities.

    Returns:
        The largest change of a posterior probability.
    """
    n, K = posterior_in.shape
    rows = shard.rows
    by_task, by_worker = rows.by_task, rows.by_worker
    is_own = rows.label[:, None] == np.arange(K)
    h = difficulty_in + shift if mode != NO_DIFFICULTY else np.zeros((n, 1))
    x = by_worker.spread(odds) * by_task.spread(np.exp(-h))

    # The posterior: a wrong vote names any of the other classes.
    wrong = 1.0 / (1.0 + x)
    right = x * wrong
    likelihood = np.log(np.where(is_own, right, wrong / max(K - 1, 1)))
    joint = log_prior + by_task.sums(likelihood, n)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        scalars[0] += log_evidence.sum()
    else:
        q = posterior_in.astype(np.float64)
        scalars[0] += bound_at(joint, q)
    change = float(np.abs(q - posterior_in).max(initial=0.0))
    posterior_out[...] = q
    class_mass += q.sum(axis=0)

    # Newton on the difficulties; one for all classes sees the sum over classes.
    believed = by_task.spread(q)
    if mode != NO_DIFFICULTY:
        residual = believed * (is_own - right)
        weight = believed * (right * wrong if damping == 0.0 else 0.25 * damping)
        if mode == SHARED_DIFFICULTY:
            residual, weight = residual.sum(axis=1, keepdims=True), weight.sum(axis=1, keepdims=True)
        slope = pull - by_task.sums(residual, n) - ridge * h
        step = slope / (by_task.sums(weight, n) + stiffness)
        difficulty_out[...] = h + step
        scalars[1] += (slope * slope).sum()
        squares += (h * h).sum(axis=0)
        moved += (h + step).sum(axis=0)
        x = x * by_task.spread(np.exp(-step))
        wrong = 1.0 / (1.0 + x)
        right = x * wrong

    of_workers[:, 0] += by_worker.sums(believed * (is_own - right), len(odds))
    curvature = right * wrong if damping == 0.0 else 0.25 * damping
    of_workers[:, 1] += by_worker.sums(believed * curvature, len(odds))
    return change
