"""GLAD as a model of the EM loop: one ability per worker, one easiness per task.

::

    P(worker r is right on task i) = sigmoid(alpha_r * exp(b_i));  errors uniform over the other classes
    alpha_r ~ N(mean_r, 1),   b_i ~ N(mean_i, 1)                   (means of 1 by default)

    F = sum_i log sum_k pi_k prod_r P(y_ir | k) - 1/2 sum_r (alpha_r - mean_r)^2 - 1/2 sum_i (b_i - mean_i)^2

Given the posterior, a pass takes a Newton step in every ``b`` (each task separately) and then one in every ``alpha`` (a
worker separately, concave). Multiplying all ``alpha`` by ``e^t`` and subtracting ``t`` from all ``b`` changes no
probability, only the two priors: the best ``t`` is found exactly after every pass, which saves the many passes that the
two sides would otherwise need to agree on a scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, dot, log_prior_from_mass
from rarevote.em.model import EMModel, HeldShared, Shard
from rarevote.methods.glad import plain

_MAX_SCALE_STEPS = 50
_SCALE_TOLERANCE = 1e-14


class GLADShared(NamedTuple):
    """Parameters that every task sees."""

    alpha: FloatArray  # (m)
    shift: float  # what the last scale move adds to every b
    log_prior: FloatArray  # (K)


class GLADLocal(NamedTuple):
    """State of each task."""

    posterior: NDArray[Any]  # (n, K)
    easiness: NDArray[Any]  # (n): b before the shift


class GLADStats(NamedTuple):
    """Sums over tasks."""

    gradient: FloatArray  # (m)
    curvature: FloatArray  # (m)
    scalars: FloatArray  # (4): log likelihood, squared gradient in b, sum of (b - mean)**2, sum of new b - mean
    class_mass: FloatArray  # (K): sum of the posterior


@dataclass(frozen=True)
class GLADModel(EMModel[GLADShared, GLADLocal, GLADStats]):
    """The model with its priors resolved.

    Attributes:
        n_tasks: number of tasks in the whole crowd.
        alpha_mean: prior means of the abilities, (m).
        easiness_mean: prior means of b, (n), or (1) for a common mean.
        log_prior: log class prior, (K).
        estimate_prior: whether to learn it.
        task_ptr: where the votes of each task of the whole crowd begin; shows which tasks a shard has, if each has
            its own prior mean.
    """

    n_tasks: int
    alpha_mean: FloatArray
    easiness_mean: FloatArray
    log_prior: FloatArray
    estimate_prior: bool = False
    task_ptr: IntArray | None = None

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> GLADShared:
        """All abilities 1."""
        return GLADShared(np.ones(self.alpha_mean.size), 0.0, self.log_prior)

    def start_local(self, shard: Shard) -> GLADLocal:
        """All ``b`` 1, and the posterior that follows, so that the loop's first step maximises with it."""
        n, K = shard.task_ptr.size - 1, self.log_prior.size
        begin = GLADLocal(np.full((n, K), 1.0 / K), np.ones(n))
        out = GLADLocal(np.empty((n, K)), np.empty(n))
        shared = self.start()
        self.step(shared, shard, begin, out, self.empty_stats(shared), True, 0.0)
        return GLADLocal(out.posterior, begin.easiness)

    def empty_stats(self, shared: GLADShared) -> GLADStats:
        """Zeros to add to."""
        size = shared.alpha.size
        return GLADStats(np.zeros(size), np.zeros(size), np.zeros(4), np.zeros(self.log_prior.size))

    def step(
        self,
        shared: GLADShared,
        shard: Shard,
        local: GLADLocal,
        out: GLADLocal,
        stats: GLADStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One fused pass over a shard (see :mod:`rarevote.methods.glad.kernel`)."""
        return float(
            passes_for(shard, len(shared.log_prior)).glad_pass(
                shard,
                shared,
                self._means_of(shard),
                damping,
                refresh,
                local,
                out,
                stats,
            )
        )

    def _means_of(self, shard: Shard) -> FloatArray:
        if self.task_ptr is None:
            return self.easiness_mean
        first = int(np.searchsorted(self.task_ptr, shard.task_ptr[0]))
        return self.easiness_mean[first : first + shard.task_ptr.size - 1]

    def objective(self, shared: GLADShared, stats: GLADStats) -> float:
        """``F``, without the normalising constants of the priors."""
        deviation = shared.alpha - self.alpha_mean
        return float(stats.scalars[0] - 0.5 * stats.scalars[2] - 0.5 * dot(deviation, deviation))

    def update(self, shared: GLADShared, stats: GLADStats, damping: float) -> GLADShared:
        """Newton step in every ability, then the scale move; a damped pass has summed bounds instead of curvatures."""
        slope = stats.gradient - (shared.alpha - self.alpha_mean)
        alpha = shared.alpha + slope / (stats.curvature + 1.0)
        scale = best_scale(dot(alpha, alpha), dot(alpha, self.alpha_mean), float(stats.scalars[3]), self.n_tasks)
        log_prior = log_prior_from_mass(stats.class_mass) if self.estimate_prior else shared.log_prior
        return GLADShared(alpha * exp(scale), -scale, log_prior)

    def gradient_norm(self, shared: GLADShared, stats: GLADStats) -> float:
        """Norm of the gradient over all ``b`` before the step and all ``alpha`` after the step in ``b``."""
        slope = stats.gradient - (shared.alpha - self.alpha_mean)
        return float(np.sqrt(dot(slope, slope) + stats.scalars[1]))


@dataclass(frozen=True, kw_only=True)
class HeldWorkers(HeldShared[GLADShared, GLADLocal, GLADStats], GLADModel):
    """The same model with abilities and class prior held fixed: only posterior and easiness of the tasks change."""


def best_scale(squares: float, product: float, deviations: float, n_tasks: int) -> float:
    """The ``t`` that minimises the penalty of ``alpha e^t`` and ``b - t``.

    ::

        P(t) = e^2t squares/2 - e^t product - t deviations + n_tasks t^2/2 + constant

    Newton's method from 0 with halving; a negative curvature is replaced by its positive part, so every step goes down.

    Args:
        squares: sum of ``alpha**2``.
        product: sum of ``alpha`` times its prior mean.
        deviations: sum of ``b`` minus its prior mean.
        n_tasks: number of ``b``.
    """

    def penalty(t: float) -> float:
        return 0.5 * exp(2 * t) * squares - exp(t) * product - t * deviations + 0.5 * n_tasks * t * t

    t, value = 0.0, penalty(0.0)
    for _ in range(_MAX_SCALE_STEPS):
        slope = exp(2 * t) * squares - exp(t) * product - deviations + n_tasks * t
        convex = 2 * exp(2 * t) * squares + n_tasks
        bend = convex - exp(t) * product
        step = -slope / (bend if bend > 0.25 * convex else convex)
        step = min(max(step, -1.0), 1.0)
        while abs(step) > _SCALE_TOLERANCE and penalty(t + step) > value:
            step *= 0.5
        if abs(step) <= _SCALE_TOLERANCE:
            break
        t += step
        value = penalty(t)
    return t


def passes_for(shard: Shard, n_classes: int) -> ModuleType:
    """The module with the passes: in NumPy, or compiled."""
    if shard.is_small(n_classes):
        return plain
    from rarevote.methods.glad import kernel

    return kernel
