"""The fused GLAD pass over a range of tasks.

For every task: its posterior at the current parameters, one safeguarded Newton step on its log easiness ``b``,
and with the new ``b`` its share of the sums per worker, a gradient and a curvature.

A vote's log odds of being right are ``x = alpha[worker] * exp(b)``, so each of the two stages costs one
``exp`` per annotation; one logarithm per task is taken, of the product of its ``1 + exp(-|x|)``. Tasks are processed
in blocks whose work arrays stay in the first-level cache, and the stages are loops over contiguous memory that the
compiler vectorises.
"""

from __future__ import annotations

from math import exp, log, log1p
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.compile import kernel, piece
from rarevote.kernels.fast_math import exp_fast, log_fast
from rarevote.kernels.posterior import posterior_of_block
from rarevote.methods.glad.plain import LEAST_CURVATURE, LONGEST_STEP, MAX_HALVINGS, ROUNDING

if TYPE_CHECKING:
    from rarevote.methods.glad.model import GLADLocal, GLADShared, GLADStats

_BLOCK = 64
_LARGEST_PRODUCT = 1e150
# Replaces a share of zero before its logarithm is taken; the logarithm is then multiplied by zero.
_SMALLEST = 1e-300


def glad_pass(shard: Shard, *rest: Any) -> float:
    """The compiled pass. See ``_pass_over_tasks`` below for its arguments."""
    return _pass_over_tasks(shard.alone, *rest)


@kernel
def _pass_over_tasks(
    shard: Shard,
    shared: GLADShared,
    easiness_mean: NDArray[np.float64],  # (n) or (1), prior mean of b
    damping: float,  # 0: Newton's curvature for the workers, >= 1: that many times an upper bound
    refresh: bool,  # whether to recompute the posterior
    local: GLADLocal,
    out: GLADLocal,  # written
    stats: GLADStats,  # added to; the log likelihood is a bound if the posterior is held fixed
) -> float:
    """See the module; returns the largest change of any posterior probability."""
    task_ptr, worker, label, gold = shard
    alpha, shift, log_prior = shared
    (posterior_in, easiness_in), (posterior_out, easiness_out) = local, out
    gradient, curvature, scalars, class_mass = stats
    K = log_prior.shape[0]
    n = task_ptr.shape[0] - 1
    log_others = log(K - 1.0) if K > 2 else 0.0
    own_mean = easiness_mean.shape[0] > 1
    most = 0
    for begin in range(0, n, _BLOCK):
        most = max(most, task_ptr[min(begin + _BLOCK, n)] - task_ptr[begin])
    # One entry per annotation of a block.
    log_odds = np.empty(most)
    factor = np.empty(most)
    right = np.empty(most)
    believed = np.empty(most)  # posterior probability that the vote is right
    # One entry per task of a block.
    b = np.empty(_BLOCK)
    mean = np.empty(_BLOCK)
    ease = np.empty(_BLOCK)
    value = np.empty(_BLOCK)
    base = np.empty(_BLOCK)
    top = np.empty(_BLOCK)
    total = np.empty(_BLOCK)
    moved = np.empty(_BLOCK)
    certain = np.empty(_BLOCK)
    # One entry per (task, class) of a block.
    score = np.empty(_BLOCK * K)
    q = np.empty(_BLOCK * K)
    change = 0.0
    loglik = 0.0
    norm = 0.0
    squares = 0.0
    deviations = 0.0

    for begin in range(0, n, _BLOCK):
        end = min(begin + _BLOCK, n)
        size = end - begin
        first = task_ptr[begin]
        votes = task_ptr[end] - first
        for i in range(size):
            mean[i] = easiness_mean[begin + i] if own_mean else easiness_mean[0]
            b[i] = easiness_in[begin + i] + shift
        for i in range(size):
            ease[i] = exp_fast(b[i])
        _votes_at(task_ptr, worker, alpha, begin, size, ease, log_odds)
        _logistic(votes, log_odds, factor, right)
        _log_all_wrong(task_ptr, begin, size, log_odds, factor, certain, base)

        # Log joint probability of the votes and each class, up to base.
        for i in range(size):
            for k in range(K):
                score[i * K + k] = log_prior[k]
            for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                score[i * K + label[a]] += log_odds[a - first] + log_others
        if refresh:
            posterior_of_block(score, gold, begin, size, K, q, top, total)
        else:
            for i in range(size):
                top[i] = 0.0
                for k in range(K):
                    share = posterior_in[begin + i, k]
                    q[i * K + k] = share
                    top[i] += share * (score[i * K + k] - log_fast(max(share, _SMALLEST)))
        for i in range(size):
            n_votes = task_ptr[begin + i + 1] - task_ptr[begin + i]
            loglik += top[i] + base[i] - n_votes * log_others
            for k in range(K):
                change = max(change, abs(q[i * K + k] - posterior_in[begin + i, k]))
                posterior_out[begin + i, k] = q[i * K + k]
                class_mass[k] += q[i * K + k]

        # Newton on b; its objective is sum (c x - log(1 + exp x)) - (b - mean)**2 / 2.
        for i in range(size):
            pull = 0.0
            spread = 1.0
            expected = 0.0
            for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                t = a - first
                c = q[i * K + label[a]]
                believed[t] = c
                x = log_odds[t]
                pull += (c - right[t]) * x
                spread += right[t] * (1.0 - right[t]) * x * x
                expected += c * x
            deviation = b[i] - mean[i]
            slope = pull - deviation
            bend = max(spread - pull, LEAST_CURVATURE * spread)
            moved[i] = b[i] + min(max(slope / bend, -LONGEST_STEP), LONGEST_STEP)
            value[i] = expected + base[i] - 0.5 * deviation * deviation
            norm += slope * slope
            squares += deviation * deviation
        for i in range(size):
            ease[i] = exp_fast(moved[i])
        _votes_at(task_ptr, worker, alpha, begin, size, ease, log_odds)
        _logistic(votes, log_odds, factor, right)
        _log_all_wrong(task_ptr, begin, size, log_odds, factor, certain, base)
        for i in range(size):
            here = base[i] - 0.5 * (moved[i] - mean[i]) ** 2
            for t in range(task_ptr[begin + i] - first, task_ptr[begin + i + 1] - first):
                here += believed[t] * log_odds[t]
            if here < value[i] - ROUNDING * (1.0 + abs(value[i])):
                votes_of_task = slice(task_ptr[begin + i] - first, task_ptr[begin + i + 1] - first)
                moved[i] = _shorten(
                    b[i],
                    moved[i],
                    mean[i],
                    value[i],
                    worker[task_ptr[begin + i] : task_ptr[begin + i + 1]],
                    alpha,
                    believed[votes_of_task],
                    log_odds[votes_of_task],
                    right[votes_of_task],
                )
                ease[i] = exp(moved[i])
            easiness_out[begin + i] = moved[i]
            deviations += moved[i] - mean[i]

        for i in range(size):
            for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                t = a - first
                r = worker[a]
                p = right[t]
                if damping == 0.0:
                    weight = p * (1.0 - p)
                else:
                    # The curvature of the tightest parabola that touches the log likelihood here from below.
                    x = log_odds[t]
                    weight = damping * ((p - 0.5) / x if abs(x) > 1e-4 else 0.25)
                gradient[r] += (believed[t] - p) * ease[i]
                curvature[r] += weight * ease[i] * ease[i]

    scalars[0] += loglik
    scalars[1] += norm
    scalars[2] += squares
    scalars[3] += deviations
    return change


@piece
def _votes_at(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    alpha: NDArray[np.float64],
    begin: int,
    size: int,
    ease: NDArray[np.float64],
    log_odds: NDArray[np.float64],
) -> None:
    """Log odds of every vote of a block being right."""
    first = task_ptr[begin]
    for i in range(size):
        for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
            log_odds[a - first] = alpha[worker[a]] * ease[i]


@piece
def _logistic(
    votes: int, log_odds: NDArray[np.float64], factor: NDArray[np.float64], right: NDArray[np.float64]
) -> None:
    """``1 + exp(-|x|)`` and the logistic function of ``x``."""
    for t in range(votes):
        x = log_odds[t]
        small = exp_fast(-abs(x))
        factor[t] = 1.0 + small
        share = 1.0 / (1.0 + small)
        right[t] = share if x >= 0.0 else small * share


@piece
def _log_all_wrong(
    task_ptr: NDArray[np.int64],
    begin: int,
    size: int,
    log_odds: NDArray[np.float64],
    factor: NDArray[np.float64],
    certain: NDArray[np.float64],
    base: NDArray[np.float64],
) -> None:
    """Log probability that every vote of a task is wrong, ``-sum log(1 + exp x)``; ``certain`` is scratch."""
    first = task_ptr[begin]
    for i in range(size):
        out = 0.0
        running = 1.0
        for t in range(task_ptr[begin + i] - first, task_ptr[begin + i + 1] - first):
            out += max(log_odds[t], 0.0)
            running *= factor[t]
            if running > _LARGEST_PRODUCT:
                out += log(running)
                running = 1.0
        base[i] = running
        certain[i] = out
    for i in range(size):
        base[i] = -certain[i] - log_fast(base[i])


@piece
def _shorten(
    start: float,
    proposed: float,
    mean: float,
    value: float,
    worker: NDArray[Any],
    alpha: NDArray[np.float64],
    believed: NDArray[np.float64],
    log_odds: NDArray[np.float64],
    right: NDArray[np.float64],
) -> float:
    """The first of repeatedly halved steps from ``start`` that raises a task's objective above ``value``, or none."""
    b = proposed
    for halving in range(MAX_HALVINGS + 1):
        b = 0.5 * (b + start) if halving < MAX_HALVINGS else start
        ease = exp(b)
        here = -0.5 * (b - mean) ** 2
        for t in range(worker.shape[0]):
            x = alpha[worker[t]] * ease
            small = exp(-abs(x))
            log_odds[t] = x
            right[t] = 1.0 / (1.0 + small) if x >= 0.0 else small / (1.0 + small)
            here += believed[t] * x - max(x, 0.0) - log1p(small)
        if here >= value:
            break
    return b
