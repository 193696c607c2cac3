"""The CC-Rasch pass in NumPy: for small data, and a readable reference for the kernel (same arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows

if TYPE_CHECKING:
    from rarevote.methods.cc_rasch.model import CCRaschLocal, CCRaschStats

Floats = NDArray[np.float64]

NO_DIFFICULTY, SHARED_DIFFICULTY, CLASS_DIFFICULTY = 0, 1, 2

# For a task that is solved: the number of steps, the longest step, the rounding of its likelihood, and by what part of
# ``settle`` its posterior can still change.
MAX_LOCAL_STEPS = 20
LONGEST_STEP = 1.0
LOCAL_ROUNDING = 1e-9
SOLVED = 0.1
# A curvature below this part of the penalty's is too small to divide by.
MIN_STIFFNESS = 1e-3


class Penalty(NamedTuple):
    """The penalty that draws the difficulties of a task to their mean."""

    ridge: Floats  # (D): 2 lambda_beta
    pull: Floats  # (D): constant part of the gradient, from the penalty on the mean
    stiffness: Floats  # (D): curvature of the penalties


def fused_pass(
    shard: Shard,
    odds: Floats,  # (m, K), exp(s_k + g_rk)
    log_prior: Floats,  # (K)
    shift: Floats,  # (D), added to the current difficulties
    penalty: Penalty,
    damping: float,  # 0: Newton's curvature, >= 1: that many times its upper bound
    refresh: bool,  # whether to recompute the posterior
    settle: float,  # a task whose posterior would still change by more than this is solved; infinity: one step each
    local: CCRaschLocal,
    out: CCRaschLocal,  # written
    stats: CCRaschStats,  # added to; the log likelihood is a bound if the posterior is held fixed
    *,
    mode: int,  # NO_DIFFICULTY, SHARED_DIFFICULTY or CLASS_DIFFICULTY
    solves: bool,  # whether passes of this fit can solve tasks: this and the next are compile-time constants
    single: bool,  # whether to compute in single precision
) -> float:
    """Posterior, one Newton step on the difficulties, gradient and curvature of the abilities.

    Returns:
        The largest change of a posterior probability.
    """
    del solves, single
    ridge, pull, stiffness = penalty
    of_workers, scalars, squares, moved, class_mass = stats
    n, K = local.posterior.shape
    rows = shard.rows
    by_task, by_worker = rows.by_task, rows.by_worker
    is_own = rows.is_own(K)
    h = local.difficulty + shift if mode != NO_DIFFICULTY else np.zeros((n, 1))
    x = by_worker.spread(odds) * by_task.spread(np.exp(-h))

    # The posterior: a wrong vote names any of the other classes.
    wrong = 1.0 / (1.0 + x)
    right = x * wrong
    likelihood = np.log(np.where(is_own > 0.0, right, wrong / max(K - 1, 1)))
    joint = log_prior + by_task.sums(likelihood, n)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        scalars[0] += log_evidence.sum()
    else:
        q = local.posterior.astype(np.float64)
        scalars[0] += bound_at(joint, q)
    change = float(np.abs(q - local.posterior).max(initial=0.0))
    out.posterior[...] = q
    class_mass += q.sum(axis=0)

    # Newton on the difficulties; one difficulty for all classes uses the sum over classes.
    believed = by_task.spread(q)
    if settle < np.inf and refresh and damping == 0.0 and mode == CLASS_DIFFICULTY:
        problem = _LocalProblem(shard, odds, log_prior, penalty)
        slope = pull - q * by_task.sums(is_own - right, n) - ridge * h
        settled, q_then, visited = problem.settled(h, q, log_evidence, settle)
        out.difficulty[...] = settled
        scalars[1:3] += (slope * slope).sum(), visited
        squares += (h * h).sum(axis=0)
        moved += settled.sum(axis=0)
        x = x * by_task.spread(np.exp(h - settled))
        wrong = 1.0 / (1.0 + x)
        right = x * wrong
        believed = by_task.spread(q_then)
    elif mode != NO_DIFFICULTY:
        residual = believed * (is_own - right)
        weight = believed * (right * wrong if damping == 0.0 else 0.25 * damping)
        if mode == SHARED_DIFFICULTY:
            residual, weight = residual.sum(axis=1, keepdims=True), weight.sum(axis=1, keepdims=True)
        slope = pull - by_task.sums(residual, n) - ridge * h
        step = slope / (by_task.sums(weight, n) + stiffness)
        out.difficulty[...] = h + step
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


class _LocalProblem:
    """The difficulties of tasks given the shared parameters, one row per task; the posterior follows from them."""

    def __init__(self, shard: Shard, odds: Floats, log_prior: Floats, penalty: Penalty) -> None:
        self._rows, self._n = shard.rows, shard.task_ptr.size - 1
        self._odds, self._log_prior = odds, log_prior
        self._ridge, self._pull, self._stiffness = penalty
        self._is_known = shard.gold >= 0 if shard.gold.size else np.zeros(self._n, dtype=bool)
        self._n_votes = np.diff(shard.task_ptr)

    def settled(self, h: Floats, q: Floats, log_evidence: Floats, settle: float) -> tuple[Floats, Floats, int]:
        """New difficulties and the posterior there, (n, K) each, and how many votes were visited.

        If one step would change the posterior by at most ``settle``, the step is taken, and the posterior is updated
        to second order. The others are solved by steps that do not lower the likelihood.
        """
        _, _, r, w = self._votes_at(h)
        step, change = self._marginal_step(h, q, r, w)
        then = q * np.exp(-step * (r + 0.5 * step * w))
        new_h, new_q = h + step, then / then.sum(axis=1, keepdims=True)
        slow = change > settle
        here_h, here_q = h.copy(), q.copy()
        highest = log_evidence - self._penalty(h)
        visited = 0
        for _ in range(MAX_LOCAL_STEPS):
            if not slow.any():
                break
            step *= np.minimum(1.0, LONGEST_STEP / np.maximum(np.abs(step).max(axis=1, keepdims=True), LONGEST_STEP))
            visited += int(self._n_votes[slow].sum())
            at_q, evidence, r, w = self._votes_at(here_h + step)
            value = evidence - self._penalty(here_h + step)
            rises = slow & (value >= highest - LOCAL_ROUNDING)
            here_h[rises] += step[rises]
            here_q[rises], highest[rises] = at_q[rises], value[rises]
            next_step, change = self._marginal_step(here_h, here_q, r, w)
            step = np.where(rises[:, None], next_step, 0.25 * step)
            new_h[slow], new_q[slow] = here_h[slow], here_q[slow]
            slow &= ~rises | (change >= SOLVED * settle)
        return new_h, new_q, visited

    def _votes_at(self, h: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Posterior, log evidence, and the sums of residuals and weights over the votes of each task."""
        by_task = self._rows.by_task
        is_own = self._rows.is_own(h.shape[1])
        x = self._rows.by_worker.spread(self._odds) * by_task.spread(np.exp(-h))
        wrong = 1.0 / (1.0 + x)
        right = x * wrong
        likelihood = np.log(np.where(is_own > 0.0, right, wrong / max(h.shape[1] - 1, 1)))
        joint = self._log_prior + by_task.sums(likelihood, self._n)
        posterior = posterior_of_rows(joint, np.empty(0, dtype=np.int32))
        return *posterior, by_task.sums(is_own - right, self._n), by_task.sums(right * wrong, self._n)

    def _penalty(self, h: Floats) -> Floats:
        return np.asarray((h * (0.5 * self._ridge * h - self._pull)).sum(axis=1))

    def _marginal_step(self, h: Floats, q: Floats, r: Floats, w: Floats) -> tuple[Floats, Floats]:
        """Newton's step with a free posterior, and by how much a probability would change, to first order.

        The negative Hessian is ``diag(a) + u u'`` with ``a = q (w - r^2) + stiffness`` and ``u = q r``. One negative
        entry of the diagonal is offset by the rank-one term if the determinant is positive. If the Hessian is
        not positive, or the class is known, the EM step is taken.
        """
        slope = self._pull - q * r - self._ridge * h
        own = q * (w - r * r) + self._stiffness
        n_negative = (own < 0.0).sum(axis=1)
        is_good = (np.abs(own) > MIN_STIFFNESS * self._stiffness).all(axis=1) & ~self._is_known
        own = np.where(is_good[:, None], own, 1.0)
        bend = 1.0 + ((q * r) ** 2 / own).sum(axis=1)
        is_good &= (n_negative == 0) | ((n_negative == 1) & (bend < -MIN_STIFFNESS))
        along = (q * r * slope / own).sum(axis=1) / np.where(is_good, bend, 1.0)
        step = np.where(is_good[:, None], (slope - q * r * along[:, None]) / own, slope / (q * w + self._stiffness))
        mean = (q * r * step).sum(axis=1, keepdims=True)
        change = np.abs(q * (mean - r * step)).max(axis=1)
        return step, np.where(self._is_known, 0.0, change)
