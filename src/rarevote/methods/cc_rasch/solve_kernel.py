"""The difficulties of one task, solved within a CC-Rasch pass.

EM is slow for a task between two classes: its posterior decides how far its difficulties move, and they decide
the posterior. So these Newton steps maximise the likelihood itself, in which the posterior is not a parameter. Few
tasks need more than one; these loops solve them one task at a time. The NumPy version is ``_LocalProblem``
of :mod:`rarevote.methods.cc_rasch.plain`.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import piece
from rarevote.kernels.fast_math import exp_fast
from rarevote.kernels.posterior import SMALLEST_PRODUCT
from rarevote.methods.cc_rasch.plain import (
    LOCAL_ROUNDING,
    LONGEST_STEP,
    MAX_LOCAL_STEPS,
    MIN_STIFFNESS,
    SOLVED,
    Penalty,
)

Floats = NDArray[np.float64]


@piece
def marginal_step(
    here: Floats,  # (4, K): difficulty, posterior, and the sums of residuals and weights over the votes
    penalty: Penalty,
    is_known: bool,
    step: Floats,
) -> float:
    """Newton's step on the difficulties of a task with a free posterior, written to ``step``.

    The negative Hessian is ``diag(a) + u u'`` with ``a = q (w - r^2) + stiffness`` and ``u = q r``. If it is not
    positive, or the class is known, the EM step is taken.

    Returns:
        By how much a posterior probability would change, to first order.
    """
    K = step.shape[0]
    ridge, pull, stiffness = penalty
    difficulty, q, r, w = here[0], here[1], here[2], here[3]
    along, bend = 0.0, 1.0
    n_negative, is_marginal = 0, not is_known
    for k in range(K):
        own = q[k] * (w[k] - r[k] * r[k]) + stiffness[k]
        is_marginal = is_marginal and abs(own) > MIN_STIFFNESS * stiffness[k]
        n_negative += 1 if own < 0.0 else 0
        step[k] = pull[k] - q[k] * r[k] - ridge[k] * difficulty[k]
        along += q[k] * r[k] * step[k] / own
        bend += (q[k] * r[k]) ** 2 / own
    # One negative entry of the diagonal is offset by the rank-one term if the determinant is positive.
    is_marginal = is_marginal and (n_negative == 0 or (n_negative == 1 and bend < -MIN_STIFFNESS))
    for k in range(K):
        if is_marginal:
            step[k] = (step[k] - q[k] * r[k] * along / bend) / (q[k] * (w[k] - r[k] * r[k]) + stiffness[k])
        else:
            step[k] /= q[k] * w[k] + stiffness[k]
    if is_known:
        return 0.0
    mean = 0.0
    for k in range(K):
        mean += q[k] * r[k] * step[k]
    change = 0.0
    for k in range(K):
        change = max(change, abs(q[k] * (mean - r[k] * step[k])))
    return change


@piece
def solve_task(
    signed_odds: Floats,  # for the votes of the task's block, at its difficulties
    level_ptr: NDArray[np.int64],
    first_level: int,  # these two are of the block
    last_level: int,
    lane: int,  # of the task
    log_prior: Floats,
    penalty: Penalty,
    of_others: float,
    settle: float,
    evidence: float,  # log probability of its votes at its difficulties
    here: Floats,  # (4, K), as above; moved to the solution
    step: Floats,  # (K), the first step
) -> int:
    """Repeat Newton's step on one task's difficulties until its posterior stops changing; the likelihood never falls.

    Returns:
        How many votes were visited.
    """
    K = step.shape[0]
    ridge, pull, _ = penalty
    first_vote = level_ptr[first_level]
    at, begin, joint = np.empty((4, K)), np.empty(K), np.empty(K)
    highest = evidence
    for k in range(K):
        begin[k] = here[0, k]
        highest -= here[0, k] * (0.5 * ridge[k] * here[0, k] - pull[k])
    n_visited = 0
    for _ in range(MAX_LOCAL_STEPS):
        longest = LONGEST_STEP
        for k in range(K):
            longest = max(longest, abs(step[k]))
        for k in range(K):
            step[k] *= LONGEST_STEP / longest
        top = -np.inf
        for k in range(K):
            at[0, k] = here[0, k] + step[k]
            factor = exp_fast(begin[k] - at[0, k])
            product, taken_out, r, w = 1.0, 0.0, 0.0, 0.0
            for level in range(first_level, last_level):
                active = level_ptr[level + 1] - level_ptr[level]
                if lane >= active:
                    break
                o = signed_odds[(level_ptr[level] - first_vote) * K + k * active + lane] * factor
                x = abs(o)
                wrong = 1.0 / (1.0 + x)
                right = x * wrong
                product *= right if o > 0.0 else wrong * of_others
                r += wrong if o > 0.0 else -right
                w += right * wrong
                n_visited += 1
                if product < SMALLEST_PRODUCT:
                    taken_out += log(product)
                    product = 1.0
            at[2, k], at[3, k] = r, w
            joint[k] = log(product) + taken_out + log_prior[k]
            top = max(top, joint[k])
        mass, cost = 0.0, 0.0
        for k in range(K):
            at[1, k] = exp_fast(joint[k] - top)
            mass += at[1, k]
            cost += at[0, k] * (0.5 * ridge[k] * at[0, k] - pull[k])
        value = top + log(mass) - cost
        if value < highest - LOCAL_ROUNDING:
            for k in range(K):
                step[k] *= 0.25
            continue
        highest = value
        for k in range(K):
            here[0, k], here[1, k] = at[0, k], at[1, k] / mass
            here[2, k], here[3, k] = at[2, k], at[3, k]
        if marginal_step(here, penalty, False, step) < SOLVED * settle:
            break
    return int(n_visited // K)
