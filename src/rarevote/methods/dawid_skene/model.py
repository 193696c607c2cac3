"""Dawid–Skene and its one-coin form as models of the EM loop.

::

    P(worker r says l | the truth is k) = e_rlk        P(truth is k) = pi_k

The maximisation step has a closed form: ``e`` is the share of each label in a worker's posterior mass per
truth, ``pi`` the mean posterior. So every iteration is one pass, and the observed-data likelihood::

    L = sum_i log sum_k pi_k prod_r e_{r, y_ir, k}      (a gold task: log of the joint probability at its class)

never falls. With Dirichlet smoothing ``s`` the objective is ``L + s sum_rlk log e_rlk``, which is what adding ``s``
to every count maximises.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import TINY, FloatArray, IntArray, dot, log_prior_from_mass
from rarevote.em.model import DOUBLE, EMModel, Posterior, Shard, soft_majority
from rarevote.kernels.plain import is_small
from rarevote.methods.dawid_skene import plain

Bound = Literal["crowd-kit", "exact"]

# Lower than any objective after a maximisation step: the first step, which may use initial errors instead
# of maximising, always counts as a gain.
_LOG_IMPOSSIBLE = -100.0
# For a class without votes: raised above zero like the others, it would get the tasks that no other class explains.
_LOG_ABSENT = -1e9
_NO_MASS = 1e-200  # compiled exponentials underflow at 1e-308


class DawidSkeneShared(NamedTuple):
    """Parameters that every task sees."""

    log_confusion: FloatArray  # (m, K, K): worker, label, truth; 0 for labels that a worker never used
    log_prior: FloatArray  # (K)
    is_start: bool  # whether no maximisation step has been taken yet


class DawidSkeneStats(NamedTuple):
    """Sums over tasks."""

    counts: FloatArray  # (m, K, K): posterior mass per worker, label and truth
    scalars: FloatArray  # (2): log likelihood, entropy of the posterior
    class_mass: FloatArray  # (K): sum of the posterior


class InitialError(NamedTuple):
    """Prior knowledge of the workers, used only by the first maximisation step."""

    counts: FloatArray  # (m, K, K): worker, label, truth
    given: NDArray[np.bool_]  # (m, K): which rows were given
    replaces: bool  # whether it replaces the counts of the data or adds to them


@dataclass(frozen=True)
class DawidSkeneModel(EMModel[DawidSkeneShared, Posterior, DawidSkeneStats]):
    """Full confusion matrices.

    Attributes:
        smoothing: pseudo-count of every (label, truth) pair; at 0 the labels that a worker used share the
            probability, above it all labels.
        bound: the value that the stopping rule uses, per annotation. "exact" is the objective. "crowd-kit" is
            ``sum over annotations sum_k q_ik (log e + log pi_k) - sum q log q``: the evidence lower bound, except
            that it counts ``log pi`` once per annotation instead of once per task.
        dtype: type of the stored posterior.
    """

    n_workers: int
    n_classes: int
    n_annotations: int
    log_prior: FloatArray
    estimate_prior: bool = True
    smoothing: float = 0.0
    bound: Bound = "crowd-kit"
    initial: InitialError | None = None
    dtype: np.dtype[Any] = DOUBLE

    one_posterior = True

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> DawidSkeneShared:
        """Parameters before the first step, which replaces all of them."""
        cells = (self.n_workers, self.n_classes, self.n_classes)
        return DawidSkeneShared(np.full(cells, _LOG_IMPOSSIBLE), self.log_prior, True)

    def start_local(self, shard: Shard) -> Posterior:
        """Soft majority vote; gold tasks have their known class."""
        return Posterior(soft_majority(shard, self.n_classes).astype(self.dtype, copy=False))

    def empty_stats(self, shared: DawidSkeneShared) -> DawidSkeneStats:
        """Zeros to add to."""
        return DawidSkeneStats(np.zeros_like(shared.log_confusion), np.zeros(2), np.zeros(self.n_classes))

    def step(
        self,
        shared: DawidSkeneShared,
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: DawidSkeneStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One pass over a shard (see :mod:`rarevote.methods.dawid_skene.kernel`)."""
        return float(
            passes_for(shard.n_votes, self.n_classes).confusion_pass(
                shard,
                shared.log_confusion,
                shared.log_prior,
                refresh,
                local,
                out,
                stats,
            )
        )

    def objective(self, shared: DawidSkeneShared, stats: DawidSkeneStats) -> float:
        """Log likelihood plus the log density of the smoothing, without its constant."""
        return float(stats.scalars[0]) + self._log_smoothing(shared)

    def update(self, shared: DawidSkeneShared, stats: DawidSkeneStats, damping: float) -> DawidSkeneShared:
        """The maximisation step in closed form.

        Keeping probabilities above zero can lower the objective by rounding. A repeated step (``damping``) keeps
        every parameter that the new value does not improve, so it cannot lower the objective.
        """
        log_confusion = self._maximise(stats.counts, self.initial if shared.is_start else None)
        log_prior = shared.log_prior
        if self.estimate_prior:
            log_prior = np.where(stats.class_mass > _NO_MASS, log_prior_from_mass(stats.class_mass), _LOG_ABSENT)
        if damping > 0.0:
            gain = ((stats.counts + self.smoothing) * (log_confusion - shared.log_confusion)).sum(axis=(1, 2))
            log_confusion = np.where((gain >= 0.0)[:, None, None], log_confusion, shared.log_confusion)
            if dot(stats.class_mass, log_prior - shared.log_prior) < 0.0:
                log_prior = shared.log_prior
        return DawidSkeneShared(log_confusion, log_prior, False)

    def stopping_value(
        self, shared: DawidSkeneShared, updated: DawidSkeneShared, stats: DawidSkeneStats, objective: float
    ) -> float:
        """The chosen bound, per annotation."""
        if self.bound == "exact":
            return objective / self.n_annotations
        counts = stats.counts
        value = dot(counts, updated.log_confusion) + dot(counts.sum(axis=(0, 1)), updated.log_prior)
        return float(value + stats.scalars[1] + self._log_smoothing(updated)) / self.n_annotations

    # -- new tasks ---------------------------------------------------------------------------------------------------

    @property
    def _fills_all_labels(self) -> bool:
        """Whether labels that a worker never gave also have a probability."""
        return self.smoothing > 0.0

    def log_average(self, shared: DawidSkeneShared, votes: IntArray) -> FloatArray:
        """Log confusion matrix, (K, K), of the worker of a random vote: the mean over all votes.

        Args:
            shared: the matrices of the workers.
            votes: how often each worker gave each label, (m, K).
        """
        confusion = np.exp(shared.log_confusion)
        if not self._fills_all_labels:
            confusion[votes == 0] = 0.0
        average = np.einsum("r,rlk->lk", votes.sum(axis=1) / votes.sum(), confusion)
        return np.asarray(np.log(np.maximum(average, TINY)))

    # -- the maximisation step ---------------------------------------------------------------------------------------

    def _maximise(self, counts: FloatArray, initial: InitialError | None) -> FloatArray:
        """Log confusion matrices from the counts: clipped, then normalised over the labels that count."""
        if initial is not None and initial.replaces:
            counts, counted = initial.counts, initial.given
        else:
            # A row of counts sums to how often the worker gave that label, so the sums alone show which labels were
            # used.
            counted = counts[:, :, 0] > 0.0
            for k in range(1, self.n_classes):
                counted |= counts[:, :, k] > 0.0
            if initial is not None:
                counts, counted = counts + initial.counts, counted | initial.given
            if self.smoothing > 0.0:
                counts, counted = counts + self.smoothing, np.ones_like(counted)
        log_confusion = np.empty_like(counts)
        passes_for(self.n_annotations, self.n_classes).normalise_counts(counts, counted, TINY, log_confusion)
        return log_confusion

    def _log_smoothing(self, shared: DawidSkeneShared) -> float:
        return self.smoothing * float(shared.log_confusion.sum()) if self.smoothing > 0.0 else 0.0


@dataclass(frozen=True)
class OneCoinModel(DawidSkeneModel):
    """One accuracy per worker, errors uniform over the other classes: ``e_rkk = s_r, e_rlk = (1 - s_r)/(K - 1)``."""

    @property
    def _fills_all_labels(self) -> bool:
        return True

    def _maximise(self, counts: FloatArray, initial: InitialError | None) -> FloatArray:
        """Accuracy is the mean posterior of the labels that a worker gave."""
        K = self.n_classes
        right = np.einsum("rkk->r", counts)
        skill = right / counts.sum(axis=(1, 2))
        log_right = np.log(np.clip(skill, TINY, 1.0 - TINY))
        log_wrong = np.log(np.clip((1.0 - skill) / max(K - 1, 1), TINY, 1.0 - TINY))
        log_confusion = np.broadcast_to(log_wrong[:, None, None], counts.shape).copy()
        log_confusion[:, np.arange(K), np.arange(K)] = log_right[:, None]
        return log_confusion


def passes_for(n_votes: int, n_classes: int) -> ModuleType:
    """The module with the passes: in NumPy, or compiled."""
    if is_small(n_votes, n_classes):
        return plain
    from rarevote.methods.dawid_skene import kernel

    return kernel
