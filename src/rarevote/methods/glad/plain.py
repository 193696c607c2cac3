"""The GLAD pass in NumPy: for small data, and a readable reference for the kernel (same arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows, sum_by

if TYPE_CHECKING:
    from rarevote.methods.glad.model import GLADLocal, GLADShared, GLADStats

Floats = NDArray[np.float64]

# A step of b multiplies all odds of a task's votes: beyond this the quadratic model does not hold.
LONGEST_STEP = 1.0
# The objective of a task is not concave in b; Newton's curvature is used if it is at least this share of the concave
# part.
LEAST_CURVATURE = 0.25
MAX_HALVINGS = 30
ROUNDING = 1e-13


def glad_pass(
    shard: Shard,
    shared: GLADShared,
    easiness_mean: Floats,  # (n) or (1), prior mean of b
    damping: float,  # 0: Newton's curvature for the workers, >= 1: that many times an upper bound
    refresh: bool,  # whether to recompute the posterior
    local: GLADLocal,
    out: GLADLocal,  # written
    stats: GLADStats,  # added to; the log likelihood is a bound if the posterior is held fixed
) -> float:
    """Posterior, one safeguarded step on ``b``, gradient and curvature of the abilities.

    Returns:
        The largest change of a posterior probability.
    """
    alpha, shift, log_prior = shared
    gradient, curvature, scalars, class_mass = stats
    n, K = local.posterior.shape
    rows = shard.rows
    task, worker, label = rows.by_task.group, rows.worker, rows.label
    n_votes = np.diff(shard.task_ptr)
    log_others = np.log(max(K - 1, 1))

    def by_task(values: Floats) -> Floats:
        return sum_by(task, values, n)

    def at(b: Floats) -> tuple[Floats, Floats, Floats]:
        """Log odds of every vote being right, their logistic function, log probability that all on a task are wrong."""
        x = alpha[worker] * np.exp(b)[task]
        return x, 0.5 * (1.0 + np.tanh(0.5 * x)), -by_task(np.logaddexp(0.0, x))

    b = local.easiness + shift
    x, right, base = at(b)
    cell = task * K + label
    joint = log_prior + sum_by(cell, x + log_others, n * K).reshape(n, K)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        scalars[0] += log_evidence.sum()
    else:
        q = local.posterior.astype(np.float64)
        scalars[0] += bound_at(joint, q)
    scalars[0] += (base - n_votes * log_others).sum()
    change = float(np.abs(q - local.posterior).max(initial=0.0))
    out.posterior[...] = q
    class_mass += q.sum(axis=0)

    # Newton on b; its objective is sum (c x - log(1 + exp x)) - (b - mean)**2 / 2, c the posterior of a right vote.
    believed = q.ravel()[cell]
    deviation = b - easiness_mean
    pull = by_task((believed - right) * x)
    spread = 1.0 + by_task(right * (1.0 - right) * x * x)
    slope = pull - deviation
    step = slope / np.maximum(spread - pull, LEAST_CURVATURE * spread)
    value = by_task(believed * x) + base - 0.5 * deviation**2
    moved = b + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    scalars[1] += (slope * slope).sum()
    scalars[2] += (deviation * deviation).sum()
    lowest = value - ROUNDING * (1.0 + np.abs(value))
    for halving in range(MAX_HALVINGS + 2):
        x, right, base = at(moved)
        fell = by_task(believed * x) + base - 0.5 * (moved - easiness_mean) ** 2 < lowest
        if halving > MAX_HALVINGS or not fell.any():
            break
        lowest = np.where(fell, value, lowest)  # a shortened step must raise the objective by more than rounding
        moved = np.where(fell, 0.5 * (moved + b) if halving < MAX_HALVINGS else b, moved)
    out.easiness[...] = moved
    scalars[3] += (moved - easiness_mean).sum()

    if damping == 0.0:
        weight = right * (1.0 - right)
    else:
        # The curvature of the tightest parabola that touches the log likelihood here from below.
        near = np.abs(x) <= 1e-4
        weight = damping * np.where(near, 0.25, (right - 0.5) / np.where(near, 1.0, x))
    ease = np.exp(moved)[task]
    gradient += sum_by(worker, (believed - right) * ease, alpha.size)
    curvature += sum_by(worker, weight * ease * ease, alpha.size)
    return change
