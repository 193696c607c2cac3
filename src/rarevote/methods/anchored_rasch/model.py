"""Anchored Rasch as a model of the EM loop: abilities and errors around anchors, difficulty integrated out.

::

    P(x_i) = N(0, 1) by G Gauss-Hermite nodes x_g with weights w_g, drawn per item given its class
    p_rkg = sigmoid(alpha_rk - s x_g)
    P_g(y = k | k, r) = p_rkg,      P_g(y = l | k, r) = (1 - p_rkg) e_rkl

    J = sum_i log sum_k pi_k sum_g w_g prod_j P_g(y_ij | k, r_j)
        - sum_rk (alpha_rk - mu_k)^2 / (2 sigma^2) - tau sum_rk KL(e_k. || e_rk.)

with ``pi``, ``mu`` and ``e_k`` from :func:`anchors_from`, fixed during the fit. The only state
of a task is its posterior. Given the posterior, ``e_r`` has a closed form and ``alpha`` takes one Newton
step, which is clipped: otherwise the objective could fall.

The reported probabilities follow from the evidence of the votes:

::

    l_ik = log(q_ik / pi_k)                             taken from the log-sum-exp, never from a rounded posterior
    p_ik ~ pi_k exp(l_ik / (1 + rho (v_i - 1)))         the errors of votes on an item are correlated
    f = mean_i p_i,   reported = (1 - lapse) p_i + lapse f;   gold tasks are certain

This takes two passes, because ``f`` is a sum over all tasks: the first counts ``f``, the second uses it. Any engine
can run both, like the passes of the fit.

Anchors are estimates of classes and errors from the shares of the votes, counted once and fixed during the fit:

::

    q_ik = share of item i's votes for k (gold imposed),   v_i votes,   c_i = 1 / (1 + rho_a (v_i - 1))
    pi_k = mean_i q_ik, at least 1e-6, normalised
    C_rkl = sum_i c_i q_ik [y_ir = l] over items with v_i >= 2 or gold: a single vote cannot confirm itself
    N_rk = sum_l C_rkl,   D_rk = N_rk - C_rkk
    a_k = (sum_r C_rkk / (N_rk + tau) + accuracy * weight) / (sum_r N_rk / (N_rk + tau) + weight),   mu_k = logit a_k
    e_kl ~ sum_r C_rkl / (D_rk + tau) + errors / (K - 1),   l != k, normalised over l

A fixed prior prevents classes from dying out, and prevents the prior from reinforcing itself.

Only sums leave a shard: :func:`count_anchors` counts one shard, its sums are added like those of any pass
(:class:`AnchorCount` is that pass as a model for an engine), and :func:`anchors_from` turns the total into anchors. An
engine on many machines does the same as the local one: ``engine.run((), refresh=False, damping=0.0)`` with an
``AnchorCount`` as the model, before the engine of the fit is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from rarevote.crowd.numerics import FloatArray, sigmoid
from rarevote.em.model import DOUBLE, EMModel, Passes, Posterior, Shard, far_point, once_a_pass, soft_majority
from rarevote.methods.anchored_rasch import plain

_SMALLEST_SHARE = 1e-6


class AnchorSums(NamedTuple):
    """Sums over tasks."""

    counts: FloatArray  # (m, K, K): worker, label, class; C with the label first
    class_mass: FloatArray  # (K): sum of q


class Anchors(NamedTuple):
    """The quantities that are fixed during the fit."""

    log_prior: FloatArray  # (K): log pi
    ability: FloatArray  # (K): mu
    errors: FloatArray  # (K, K): label, class; columns sum to one, the diagonal is 0


@dataclass(frozen=True)
class AnchorSmoothing:
    """How strongly anchors are drawn to default values.

    Attributes:
        tau: number of votes at which a worker has half of the full weight.
        accuracy: the value that ``a_k`` is drawn to.
        weight: the strength of ``accuracy``, in workers.
        errors: the strength of uniform errors, in workers.
    """

    tau: float = 8.0
    accuracy: float = 0.7
    weight: float = 1.0
    errors: float = 2.0


def passes_for(shard: Shard, n_classes: int) -> ModuleType:
    """The module with the passes: in NumPy, or compiled."""
    if shard.is_small(n_classes):
        return plain
    from rarevote.methods.anchored_rasch import kernel

    return kernel


def count_anchors(shard: Shard, discount: float, sums: AnchorSums) -> None:
    """Add the counts of a shard to ``sums``; ``discount`` is ``rho_a``."""
    passes_for(shard, len(sums.class_mass)).count_shares(shard, discount, sums)


def anchors_from(sums: AnchorSums, smoothing: AnchorSmoothing) -> Anchors:
    """Anchors from the sums over all shards."""
    counts, mass = sums
    n_classes = len(mass)
    share = np.maximum(mass / mass.sum(), _SMALLEST_SHARE)
    met = counts.sum(axis=1)
    own = np.arange(n_classes)
    right = counts[:, own, own]
    with_tau = met + smoothing.tau
    accuracy = (right / with_tau).sum(axis=0) + smoothing.accuracy * smoothing.weight
    accuracy /= (met / with_tau).sum(axis=0) + smoothing.weight
    # A loop over labels avoids a second table of (m, K, K).
    errors = np.empty((n_classes, n_classes))
    wrong = met - right + smoothing.tau
    for label in range(n_classes):
        errors[label] = (counts[:, label] / wrong).sum(axis=0)
    errors += smoothing.errors / max(n_classes - 1, 1)
    errors[own, own] = 0.0
    if n_classes > 1:
        errors /= errors.sum(axis=0)
    return Anchors(np.log(share / share.sum()), np.log(accuracy) - np.log1p(-accuracy), errors)


@dataclass(frozen=True)
class AnchorCount(Passes[tuple[()], Posterior, AnchorSums]):
    """The counting pass as a model for an engine: no parameters, no local state; its sums are :class:`AnchorSums`."""

    n_workers: int
    n_classes: int
    discount: float

    def start_local(self, shard: Shard) -> Posterior:
        """No state per task."""
        return Posterior(np.empty((shard.task_ptr.size - 1, 0)))

    def empty_stats(self, shared: tuple[()]) -> AnchorSums:
        """Zeros to add to."""
        return AnchorSums(np.zeros((self.n_workers, self.n_classes, self.n_classes)), np.zeros(self.n_classes))

    def step(
        self,
        shared: tuple[()],
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: AnchorSums,
        refresh: bool,
        damping: float,
    ) -> float:
        """Count a shard."""
        count_anchors(shard, self.discount, stats)
        return 0.0


# The largest change of an ability in a Newton step.
_LARGEST_STEP = 2.0


class AnchoredShared(NamedTuple):
    """Parameters that every task sees."""

    ability: FloatArray  # (m, K): alpha
    log_errors: FloatArray  # (m, K, K): worker, label, class; 0 where label and class are the same


class AnchoredStats(NamedTuple):
    """Sums over tasks."""

    of_workers: FloatArray  # (m, G + K, K): posterior mass per worker and class, by node and then by label
    scalars: FloatArray  # (1): log likelihood

    @property
    def node_mass(self) -> FloatArray:
        """Posterior mass per worker, node and class, (m, G, K)."""
        return self.of_workers[:, : -self.of_workers.shape[2]]

    @property
    def counts(self) -> FloatArray:
        """Posterior mass per worker, label and class, (m, K, K)."""
        return self.of_workers[:, -self.of_workers.shape[2] :]


def empty_sums(n_workers: int, n_classes: int, n_nodes: int) -> AnchoredStats:
    """Zeros to add to."""
    return AnchoredStats(np.zeros((n_workers, n_nodes + n_classes, n_classes)), np.zeros(1))


class VoteTables(NamedTuple):
    """Tables that a NumPy pass and the report look up per vote: logarithms; see the kernel."""

    log_wrong: FloatArray  # (m, G, K): log(1 - p)
    of_vote: FloatArray  # (m, K, K): worker, label, class: log e, and alpha where label and class are the same


class VoteFactors(NamedTuple):
    """Tables that a compiled EM step looks up per vote: the exponentials of :class:`VoteTables`, one row per worker."""

    of_workers: FloatArray  # (m, G + K, K): 1 - p by node, then e, and exp(alpha) where label and class are the same
    powers: FloatArray  # (L + 1, G): exp(-n s x_g) for n votes; products of L votes stay within range


# Products of probabilities are kept within exp(-500) and exp(500), a double ranges from exp(-708) to exp(709).
_PRODUCT_RANGE = 500.0
_MAX_PRODUCT_VOTES = 255


def vote_factors(of_workers: FloatArray, reach: float, nodes: FloatArray) -> VoteFactors:
    """The factors; ``reach`` bounds the absolute sum of the logarithms of one vote."""
    reach += float(np.abs(nodes).max())
    if reach > _PRODUCT_RANGE:
        limit = np.exp(_PRODUCT_RANGE / 2.0)
        np.clip(of_workers, 1.0 / limit, limit, out=of_workers)
    longest = min(int(_PRODUCT_RANGE / max(reach, 1.0)), _MAX_PRODUCT_VOTES)
    return VoteFactors(of_workers, np.exp(-np.arange(longest + 1)[:, None] * nodes))


@dataclass(frozen=True)
class AnchoredModel(EMModel[AnchoredShared, Posterior, AnchoredStats]):
    """The model with its anchors.

    Attributes:
        n_workers: number of workers.
        anchors: the quantities that are fixed during the fit.
        sigma: spread of abilities around their anchors.
        spread: spread of difficulties, s.
        tau: strength of the errors' anchors, in votes.
        n_nodes: G.
        dtype: of the posterior that is kept.
    """

    n_workers: int
    anchors: Anchors
    sigma: float
    spread: float
    tau: float
    n_nodes: int
    dtype: np.dtype[Any] = DOUBLE

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.anchors.log_prior)

    @cached_property
    def weights(self) -> FloatArray:
        """The weights of the nodes, (G), normalised."""
        _, weights = np.polynomial.hermite_e.hermegauss(self.n_nodes)
        return np.asarray(weights / weights.sum())

    @cached_property
    def nodes(self) -> FloatArray:
        """Difficulties at the nodes, ``s x_g``, (G)."""
        nodes, _ = np.polynomial.hermite_e.hermegauss(self.n_nodes)
        return np.asarray(self.spread * nodes)

    def log_odds(self, ability: FloatArray) -> FloatArray:
        """``alpha - s x_g``, (..., K, G)."""
        return np.asarray(ability[..., None] - self.nodes)

    @once_a_pass
    def tables(self, shared: AnchoredShared) -> VoteTables:
        """The tables that a NumPy pass and the report look up."""
        of_vote = shared.log_errors.copy()
        own = np.arange(self.n_classes)
        of_vote[:, own, own] = shared.ability
        return VoteTables(-np.logaddexp(0.0, self._odds_by_node(shared.ability)), of_vote)

    @once_a_pass
    def factors(self, shared: AnchoredShared) -> VoteFactors:
        """The tables that a compiled EM step looks up."""
        ability, log_errors = shared
        n_nodes, own = self.n_nodes, np.arange(self.n_classes)
        rows = np.empty((len(ability), n_nodes + self.n_classes, self.n_classes))
        wrong, of_vote = rows[:, :n_nodes], rows[:, n_nodes:]
        wrong[...] = sigmoid(-self._odds_by_node(ability))
        np.exp(log_errors, out=of_vote)
        of_vote[:, own, own] = np.exp(ability)
        largest = max(float(ability.max(initial=0.0)), -float(ability.min(initial=0.0)))
        of_wrong = float(np.logaddexp(0.0, largest + np.abs(self.nodes).max()))
        return vote_factors(rows, of_wrong + max(largest, -float(log_errors.min(initial=0.0))), self.nodes)

    def _odds_by_node(self, ability: FloatArray) -> FloatArray:
        """``alpha - s x_g``, (m, G, K)."""
        return np.asarray(ability[:, None] - self.nodes[:, None])

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> AnchoredShared:
        """All workers at the anchors."""
        return self.at_anchors(self.n_workers)

    def at_anchors(self, n_workers: int) -> AnchoredShared:
        """Parameters of workers without votes in the fit."""
        shape = (n_workers, self.n_classes)
        ability = np.broadcast_to(self.anchors.ability, shape).copy()
        log_errors = np.broadcast_to(log_off_diagonal(self.anchors.errors), (*shape, self.n_classes)).copy()
        return AnchoredShared(ability, log_errors)

    def start_local(self, shard: Shard) -> Posterior:
        """Shares of the votes; gold tasks have their known class."""
        return Posterior(soft_majority(shard, self.n_classes).astype(self.dtype, copy=False))

    def offsets_of(self, shard: Shard) -> FloatArray:
        """The difference between each task's log prior and that of the classes, (n, K); or of size 0."""
        return np.empty((0, self.n_classes))

    def empty_stats(self, shared: AnchoredShared) -> AnchoredStats:
        """Zeros to add to."""
        return empty_sums(len(shared.ability), self.n_classes, self.n_nodes)

    def step(
        self,
        shared: AnchoredShared,
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: AnchoredStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One pass over a shard (see :mod:`rarevote.methods.anchored_rasch.kernel`)."""
        return em_step(self, shared, shard, self.offsets_of(shard), local, out, stats, refresh)

    def objective(self, shared: AnchoredShared, stats: AnchoredStats) -> float:
        """J."""
        pull = ((shared.ability - self.anchors.ability) ** 2).sum() / (2.0 * self.sigma**2)
        errors = self.anchors.errors
        divergence = len(shared.ability) * (errors * log_off_diagonal(errors)).sum()
        divergence -= np.einsum("rlk,lk->", shared.log_errors, errors)
        return float(stats.scalars[0] - pull - self.tau * divergence)

    def _slopes(self, shared: AnchoredShared, stats: AnchoredStats) -> tuple[FloatArray, FloatArray]:
        """Gradient and curvature of the penalised likelihood in the abilities, (m, K) each."""
        own = np.arange(self.n_classes)
        right = sigmoid(self._odds_by_node(shared.ability))
        weighted = stats.node_mass * right
        precision = 1.0 / self.sigma**2
        gradient = stats.counts[:, own, own] - weighted.sum(axis=1)
        gradient -= precision * (shared.ability - self.anchors.ability)
        return gradient, (weighted * (1.0 - right)).sum(axis=1) + precision

    def gradient_norm(self, shared: AnchoredShared, stats: AnchoredStats) -> float:
        """Norm of the gradient in the abilities; the errors are at their maximum after every step."""
        return float(np.sqrt((self._slopes(shared, stats)[0] ** 2).sum()))

    def update(self, shared: AnchoredShared, stats: AnchoredStats, damping: float) -> AnchoredShared:
        """Take a clipped Newton step in the abilities, halved for each damping; the errors have a closed form."""
        gradient, curvature = self._slopes(shared, stats)
        step = np.clip(gradient / curvature, -_LARGEST_STEP, _LARGEST_STEP)
        if damping > 0.0:
            step *= 0.5 / damping
        own = np.arange(self.n_classes)
        errors = stats.counts.copy()
        errors[:, own, own] = 0.0
        total = errors.sum(axis=1, keepdims=True) + self.tau
        errors += self.tau * self.anchors.errors
        errors /= total
        return AnchoredShared(shared.ability + step, log_off_diagonal(errors))

    # -- acceleration ------------------------------------------------------------------------------------------------

    def extrapolate(
        self,
        points: tuple[AnchoredShared, AnchoredShared, AnchoredShared],
        length: float,
        local_means: tuple[FloatArray, ...],
    ) -> AnchoredShared:
        """The extrapolated point, with errors normalised to sum to one."""
        ability, log_errors = (far_point(values, length) for values in zip(*points, strict=True))
        if self.n_classes <= 2:
            return AnchoredShared(ability, log_errors)  # a wrong vote can only name the other class
        own = np.arange(self.n_classes)
        log_errors[:, own, own] = -np.inf
        log_errors -= log_errors.max(axis=1, keepdims=True)
        log_errors -= np.log(np.exp(log_errors).sum(axis=1, keepdims=True))
        log_errors[:, own, own] = 0.0
        return AnchoredShared(ability, log_errors)


def log_off_diagonal(errors: FloatArray) -> FloatArray:
    """Logarithm of error tables, (..., K, K); 0 where label and class are the same."""
    own = np.arange(errors.shape[-1])
    filled = errors.copy()
    filled[..., own, own] = 1.0
    return np.asarray(np.log(filled, out=filled))


class ReportSums(NamedTuple):
    """Sums over tasks."""

    class_mass: FloatArray  # (K): sum of p, before the lapse


class ReportShared(NamedTuple):
    """Parameters that every task sees."""

    fitted: Any  # the shared parameters of the model
    shares: FloatArray  # (K): f; or of size 0 in the pass that counts it


class VoteTableModel(Protocol):
    """A model whose votes are looked up in :class:`VoteTables` and :class:`VoteFactors`."""

    @property
    def n_classes(self) -> int:
        """K."""

    @property
    def anchors(self) -> Anchors:
        """The quantities that are fixed during the fit."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the probabilities."""

    @property
    def weights(self) -> FloatArray:
        """The weights of the nodes, (G)."""

    @property
    def nodes(self) -> FloatArray:
        """Difficulties at the nodes, (G)."""

    def tables(self, shared: Any) -> VoteTables:
        """The tables that a NumPy pass and the report look up."""

    def factors(self, shared: Any) -> VoteFactors:
        """The tables that a compiled EM step looks up."""


def em_step(
    model: VoteTableModel,
    shared: Any,
    shard: Shard,
    offsets: FloatArray,
    local: Posterior,
    out: Posterior,
    stats: AnchoredStats,
    refresh: bool,
) -> float:
    """One pass over a shard, in NumPy or compiled; ``offsets`` are added to the log prior of its tasks."""
    passes = passes_for(shard, model.n_classes)
    looked_up = model.tables(shared) if passes is plain else model.factors(shared)
    return float(
        passes.em_pass(
            shard, looked_up, model.anchors.log_prior, offsets, model.weights, model.nodes, refresh, local, out, stats
        )
    )


@dataclass(frozen=True)
class AnchoredReport(Passes[ReportShared, Posterior, ReportSums]):
    """The two passes of the report as a model for an engine; the local state is the reported probability.

    The first pass weighs the votes, and its sums give the class shares. The second pass uses these shares to allow for
    lapses in the probabilities of the first.

    Attributes:
        model: the fitted model.
        discount: rho.
        lapse: weight of the shares.
    """

    model: VoteTableModel
    discount: float
    lapse: float

    def start_local(self, shard: Shard) -> Posterior:
        """An array for the probabilities."""
        return Posterior(np.empty((shard.task_ptr.size - 1, self.model.n_classes), dtype=self.model.dtype))

    def empty_stats(self, shared: ReportShared) -> ReportSums:
        """Zeros to add to."""
        return ReportSums(np.zeros(self.model.n_classes))

    def step(
        self,
        shared: ReportShared,
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: ReportSums,
        refresh: bool,
        damping: float,
    ) -> float:
        """Write the probabilities of a shard: from its votes, or from the earlier probabilities and the shares."""
        if shared.shares.size:
            reported = (1.0 - self.lapse) * local.posterior + self.lapse * shared.shares
            known = np.flatnonzero(shard.gold >= 0)
            reported[known] = local.posterior[known]
            out.posterior[...] = reported
            return 0.0
        model = self.model
        passes_for(shard, model.n_classes).report_pass(
            shard,
            model.tables(shared.fitted),
            model.anchors.log_prior,
            model.weights,
            model.nodes,
            self.discount,
            out,
            stats,
        )
        return 0.0
