"""CC-Rasch as a model of the EM loop: an ability per worker and class, a difficulty per task and class.

::

    P(worker r is right on task i | class k) = sigmoid(alpha_rk - beta_ik)
    alpha_rk = mu_alpha_k + g_rk,   sum_r g_rk = 0,   g_rk ~ N(0, sigma_alpha_k^2)
    beta_ik  = mu_beta_k  + h_ik,   sum_i h_ik = 0,   h_ik ~ N(0, sigma_beta_k^2)
    mu_alpha_k ~ N(0, sigma_alpha_mu^2),  mu_beta_k ~ N(0, sigma_beta_mu^2);  errors uniform over the other classes

The votes depend only on ``s_k + g_rk - h_ik`` with the intercept ``s = mu_alpha - mu_beta``, whose prior is Gaussian
with covariance ``V = Cov(mu_alpha) + Cov(mu_beta)``. So the solver has one intercept per class with the penalty
``s' V^-1 s / 2``; the two means follow from it as conditional expectations. Worker and task terms are kept centred:
the mean of a step moves into ``s``, and the gradients account for that, so that a stationary point
of the iteration is one of the centred problem.

Given the posterior, the workers' step is a Newton step in ``(s, g)`` under ``sum g = 0``. Its Hessian is an arrowhead
matrix: eliminating ``g`` and the multiplier of the constraint leaves one number per class.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, column_sums, log_prior_from_mass
from rarevote.em.model import (
    DOUBLE,
    EMModel,
    HeldShared,
    Shard,
    far_point,
    once_a_pass,
    soft_majority,
    squared_distances,
)
from rarevote.methods.cc_rasch import plain

Ability = Literal["per-class", "shared"]
Difficulty = Literal["per-class", "shared"] | None

# Odds beyond this make no difference, and products of a few of them must not overflow.
_LARGEST_LOG_ODDS = 200.0
# Divided by the number of other classes. On crowds of NetEase's size a fifth of it takes the same number of passes and
# visits more votes again; six times as much takes up to twice the passes.
_SETTLE = 0.01


class CCRaschShared(NamedTuple):
    """Parameters that every task sees."""

    intercept: FloatArray  # (K) or (1): s
    ability: FloatArray  # (m, K) or (m, 1): g, centred over workers
    shift: FloatArray  # (D): centres the difficulties that the last pass wrote
    log_prior: FloatArray  # (K)
    settle: float = np.inf  # a pass solves the tasks whose posterior would change by more than this in one step


class CCRaschLocal(NamedTuple):
    """State of each task."""

    posterior: NDArray[Any]  # (n, K)
    difficulty: NDArray[Any]  # (n, D): h before the shift


class CCRaschStats(NamedTuple):
    """Sums over tasks."""

    of_workers: FloatArray  # (m, 2, K): gradient and curvature of the votes per ability
    scalars: FloatArray  # (3): log likelihood, squared norm of the difficulties' gradient, votes visited again
    squares: FloatArray  # (D): sum of h**2
    moved: FloatArray  # (D): sum of the new h
    class_mass: FloatArray  # (K): sum of the posterior


@dataclass(frozen=True)
class CCRaschModel(EMModel[CCRaschShared, CCRaschLocal, CCRaschStats]):
    """The model, with one value of each hyper-parameter per class."""

    n_tasks: int
    n_workers: int
    n_classes: int
    sigma_alpha: FloatArray
    sigma_beta: FloatArray
    sigma_alpha_mu: FloatArray
    sigma_beta_mu: FloatArray
    log_prior: FloatArray
    estimate_prior: bool = False
    ability: Ability = "per-class"
    difficulty: Difficulty = "per-class"
    dtype: np.dtype[Any] = DOUBLE  # of the local state
    profiles: bool = False  # whether passes solve for the difficulties once a fit is accelerated
    single_rounding = 1e-7  # of a sum of rounded terms

    # -- shapes ------------------------------------------------------------------------------------------------------

    @property
    def n_abilities(self) -> int:
        """Columns of ``g``."""
        return self.n_classes if self.ability == "per-class" else 1

    @property
    def n_difficulties(self) -> int:
        """Columns of ``h``; 0 if difficulty is switched off."""
        return {"per-class": self.n_classes, "shared": 1, None: 0}[self.difficulty]

    @property
    def n_intercepts(self) -> int:
        """Number of intercepts: one per class, unless nothing in the model depends on the class."""
        return self.n_classes if "per-class" in (self.ability, self.difficulty) else 1

    @property
    def _n_priors(self) -> int:
        """Number of class probabilities that are estimated."""
        return self.n_classes if self.estimate_prior else 0

    # -- priors ------------------------------------------------------------------------------------------------------

    def _mean_covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariances of ``mu_alpha`` and of ``mu_beta`` as they enter the intercepts."""
        size = self.n_intercepts

        def covariance(per_class: bool, sigma: FloatArray) -> FloatArray:
            if per_class:
                return np.diag(sigma**2)
            return np.full((size, size), float(sigma[0]) ** 2)

        alpha = covariance(self.ability == "per-class", self.sigma_alpha_mu)
        if self.difficulty is None:
            return alpha, np.zeros((size, size))
        return alpha, covariance(self.difficulty == "per-class", self.sigma_beta_mu)

    @property
    def _intercepts_independent(self) -> bool:
        """Whether the penalty on the intercepts separates over classes."""
        return (
            self.ability == self.difficulty
            or self.n_intercepts == 1
            or (self.ability == "per-class" and self.difficulty is None)
        )

    def _precision(self) -> FloatArray:
        """Inverse prior covariance of the intercepts: its diagonal if it is diagonal, else the matrix."""
        if self._intercepts_independent:
            spread = self.sigma_beta_mu if self.difficulty is not None else np.zeros(1)
            variance = self.sigma_alpha_mu**2 + spread**2
            return np.asarray(1.0 / variance[: self.n_intercepts])
        alpha, beta = self._mean_covariances()
        return np.asarray(np.linalg.inv(alpha + beta))

    def _precision_times(self, intercept: FloatArray) -> FloatArray:
        precision = self._precision()
        return np.asarray(precision * intercept if precision.ndim == 1 else precision @ intercept)

    def split_intercept(self, intercept: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means of ability and of difficulty, (K) each, that the intercepts represent.

        Given their difference, the most probable split of two Gaussians is their conditional mean.
        """
        if self._intercepts_independent:
            mu_alpha = self.sigma_alpha_mu[: self.n_intercepts] ** 2 * self._precision() * intercept
        else:
            alpha, beta = self._mean_covariances()
            mu_alpha = alpha @ np.linalg.solve(alpha + beta, intercept)
        return _per_class(mu_alpha, self.n_classes), _per_class(mu_alpha - intercept, self.n_classes)

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> CCRaschShared:
        """All parameters zero."""
        return CCRaschShared(
            np.zeros(self.n_intercepts),
            np.zeros((self.n_workers, self.n_abilities)),
            np.zeros(self.n_difficulties),
            self.log_prior,
        )

    def start_local(self, shard: Shard) -> CCRaschLocal:
        """Soft majority vote, all difficulties 0."""
        posterior = soft_majority(shard, self.n_classes).astype(self.dtype, copy=False)
        return CCRaschLocal(posterior, np.zeros((len(posterior), self.n_difficulties), dtype=self.dtype))

    def empty_stats(self, shared: CCRaschShared) -> CCRaschStats:
        """Zeros to add to."""
        columns = self.n_difficulties
        return CCRaschStats(
            np.zeros((self.n_workers, 2, self.n_classes)),
            np.zeros(3),
            np.zeros(columns),
            np.zeros(columns),
            np.zeros(self.n_classes),
        )

    def step(
        self,
        shared: CCRaschShared,
        shard: Shard,
        local: CCRaschLocal,
        out: CCRaschLocal,
        stats: CCRaschStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One fused pass over a shard (see :mod:`rarevote.methods.cc_rasch.kernel`)."""
        weighted = self._precision_times(shared.intercept)
        precision = self._precision()
        if self.difficulty == "per-class":
            mode, ridge = plain.CLASS_DIFFICULTY, np.asarray(1.0 / self.sigma_beta**2)
            own = _per_class(precision if precision.ndim == 1 else np.diag(precision), self.n_classes)
            pull = _per_class(weighted, self.n_classes) / max(self.n_tasks, 1)
        else:
            mode = plain.SHARED_DIFFICULTY if self.difficulty == "shared" else plain.NO_DIFFICULTY
            ridge = np.asarray(1.0 / self.sigma_beta[:1] ** 2)
            own, pull = (
                precision.sum(keepdims=True).reshape(1),
                weighted.sum(keepdims=True) / max(self.n_tasks, 1),
            )
        return float(
            passes_for(shard, self.n_classes).fused_pass(
                shard,
                self._odds(shared),
                shared.log_prior,
                shared.shift,
                plain.Penalty(ridge, pull, ridge + own / max(self.n_tasks, 1)),
                damping,
                refresh,
                shared.settle,
                local,
                out,
                stats,
                mode=mode,
                solves=self.profiles or shared.settle < np.inf,
                single=self.dtype == np.float32,
            )
        )

    @once_a_pass
    def _odds(self, shared: CCRaschShared) -> FloatArray:
        """``exp(s_k + g_rk)``, (m, K)."""
        log_odds = np.broadcast_to(shared.intercept + shared.ability, (self.n_workers, self.n_classes))
        return np.asarray(np.exp(np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)))

    def objective(self, shared: CCRaschShared, stats: CCRaschStats) -> float:
        """Penalised log likelihood, without the normalising constants of the priors."""
        penalty = 0.5 * float(shared.intercept @ self._precision_times(shared.intercept))
        penalty += 0.5 * float((shared.ability**2 / self.sigma_alpha[: self.n_abilities] ** 2).sum())
        if self.difficulty is not None:
            penalty += 0.5 * float((stats.squares / self.sigma_beta[: self.n_difficulties] ** 2).sum())
        return float(stats.scalars[0]) - penalty

    def _worker_side(self, shared: CCRaschShared, stats: CCRaschStats) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Intercept after the difficulties are centred; gradient and curvature of the votes per ability."""
        intercept = shared.intercept
        if self.difficulty is not None:
            mean = stats.moved / max(self.n_tasks, 1)
            intercept = intercept - (mean if len(mean) == self.n_intercepts else mean[0])
        gradient, curvature = (np.ascontiguousarray(stats.of_workers[:, row]) for row in (0, 1))
        if self.n_intercepts == 1:
            gradient, curvature = gradient.sum(1, keepdims=True), curvature.sum(1, keepdims=True)
        return intercept, gradient, curvature

    def gradient_norm(self, shared: CCRaschShared, stats: CCRaschStats) -> float:
        """Norm of the gradient over all intercept, worker and task terms of the centred problem."""
        intercept, gradient, _ = self._worker_side(shared, stats)
        pull = self._precision_times(intercept)
        if self.n_abilities < self.n_intercepts:
            toward_intercept = gradient.sum(0) - pull
            gradient = gradient.sum(1, keepdims=True) - gradient.sum() / max(self.n_workers, 1)
        else:
            toward_intercept = np.zeros(1)
            gradient = gradient - pull / max(self.n_workers, 1)
        gradient = gradient - shared.ability / self.sigma_alpha[: self.n_abilities] ** 2
        squared = float((gradient**2).sum() + (toward_intercept**2).sum())
        if self.difficulty is not None:
            squared += float(stats.scalars[1])
        return float(np.sqrt(squared))

    def update(self, shared: CCRaschShared, stats: CCRaschStats, damping: float) -> CCRaschShared:
        """Newton step in the intercepts and abilities under ``sum_r g_r = 0``; with bounds as curvatures if damped."""
        intercept, gradient, curvature = self._worker_side(shared, stats)
        ridge = 1.0 / self.sigma_alpha[: self.n_abilities] ** 2
        toward_intercept = column_sums(gradient) - self._precision_times(intercept)
        precision = self._precision()
        if self.n_abilities == self.n_intercepts:
            toward_ability = gradient - ridge * shared.ability
            diagonal = curvature + ridge
            border = column_sums(curvature / diagonal)
            corner = column_sums(1.0 / diagonal)
            pulled = column_sums(toward_ability / diagonal)
            left = column_sums(curvature * (ridge / diagonal)) + border**2 / corner
            right = toward_intercept - column_sums(curvature * toward_ability / diagonal) + border * pulled / corner
            if precision.ndim == 1:
                step = right / (left + precision)
            else:
                step = np.asarray(np.linalg.solve(np.diag(left) + precision, right), dtype=np.float64)
            multiplier = (pulled - border * step) / corner
            ability_step = (toward_ability - curvature * step - multiplier) / diagonal
        else:
            toward_ability = gradient.sum(1) - ridge * shared.ability[:, 0]
            diagonal = curvature.sum(1) + ridge
            scaled = curvature / diagonal[:, None]
            border = column_sums(scaled)
            corner = (1.0 / diagonal).sum()
            pulled = (toward_ability / diagonal).sum()
            matrix = np.diag(column_sums(curvature)) + precision - np.einsum("rk,rl->kl", curvature, scaled)
            matrix += np.outer(border, border) / corner
            right = toward_intercept - column_sums(scaled * toward_ability[:, None]) + border * (pulled / corner)
            step = np.linalg.solve(matrix, right)
            multiplier = (pulled - border @ step) / corner
            ability_step = ((toward_ability - (curvature * step).sum(1) - multiplier) / diagonal)[:, None]
        ability = shared.ability + ability_step
        drift = column_sums(ability) / max(len(ability), 1)  # rounding only
        log_prior = shared.log_prior
        if self.estimate_prior:
            log_prior = log_prior_from_mass(stats.class_mass)
        shift = -stats.moved / max(self.n_tasks, 1)
        return CCRaschShared(intercept + step, ability - drift, shift, log_prior, shared.settle)

    # -- acceleration of shared parameters alone ---------------------------------------------------------------------

    def coordinates(self, shared: CCRaschShared) -> FloatArray:
        """Intercepts, abilities, and the class prior if it is estimated."""
        return np.concatenate([shared.intercept, shared.ability.ravel(), shared.log_prior[: self._n_priors]])

    def metric(self, stats: CCRaschStats) -> FloatArray:
        """Curvatures of the votes and of the penalty on abilities; the class prior is weighted by its tasks."""
        curvature = stats.of_workers[:, 1]
        ability = curvature if self.n_abilities == self.n_classes else curvature.sum(1, keepdims=True)
        intercept = column_sums(curvature) if self.n_intercepts == self.n_classes else curvature.sum(keepdims=True)[0]
        ridge = 1.0 / self.sigma_alpha[: self.n_abilities] ** 2
        return np.concatenate([intercept, (ability + ridge).ravel(), stats.class_mass[: self._n_priors]])

    def profiled(self, coordinates: FloatArray, like: CCRaschShared) -> CCRaschShared:
        """The point with sums over workers of zero and a class prior that sums to one."""
        intercept, abilities, log_prior = np.split(coordinates, [self.n_intercepts, coordinates.size - self._n_priors])
        ability = abilities.reshape(self.n_workers, self.n_abilities)
        log_prior = _summing_to_one(log_prior) if self.estimate_prior else like.log_prior
        settle = _SETTLE / max(self.n_classes - 1, 1)
        return CCRaschShared(intercept, ability - ability.mean(0), like.shift, log_prior, settle)

    # -- acceleration of all parameters ------------------------------------------------------------------------------

    def local_offsets(self, shared: CCRaschShared) -> tuple[FloatArray, ...]:
        """Difficulties are stored before they are centred."""
        return (shared.shift,)

    def shared_distances(
        self, first: CCRaschShared, second: CCRaschShared, third: CCRaschShared
    ) -> tuple[float, float]:
        """Squared norms of the first and second differences over intercepts, abilities and class prior."""
        return squared_distances(_free(first), _free(second), _free(third))

    def extrapolate(
        self,
        points: tuple[CCRaschShared, CCRaschShared, CCRaschShared],
        length: float,
        local_means: tuple[FloatArray, ...],
    ) -> CCRaschShared:
        """The extrapolated point; its sums over workers are zero, and its class prior is normalised."""
        arrays = zip(*(_free(point) for point in points), strict=True)
        intercept, ability, log_prior = (far_point(values, length) for values in arrays)
        return CCRaschShared(intercept, ability - ability.mean(0), -local_means[0], _summing_to_one(log_prior))


@dataclass(frozen=True, kw_only=True)
class HeldWorkers(HeldShared[CCRaschShared, CCRaschLocal, CCRaschStats], CCRaschModel):
    """The same model with everything shared held fixed: only posteriors and difficulties of the tasks change.

    ``n_tasks`` stays that of the fit, so that a new task has the same penalties as in the fit.
    """


def _free(shared: CCRaschShared) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The parameters to extrapolate: the shift follows from the difficulties."""
    return shared.intercept, shared.ability, shared.log_prior


def _summing_to_one(log_prior: FloatArray) -> FloatArray:
    highest = log_prior.max()
    return np.asarray(log_prior - highest - np.log(np.exp(log_prior - highest).sum()))


def _per_class(values: NDArray[Any], n_classes: int) -> FloatArray:
    return np.ascontiguousarray(np.broadcast_to(values, (n_classes,)))


def passes_for(shard: Shard, n_classes: int) -> ModuleType:
    """The module with the passes: in NumPy, or compiled."""
    if shard.is_small(n_classes):
        return plain
    from rarevote.methods.cc_rasch import kernel

    return kernel
