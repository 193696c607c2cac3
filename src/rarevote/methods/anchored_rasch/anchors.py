"""Anchors: what the shares of the votes say about classes and errors, counted once and then held for the whole fit.

::

    q_ik = share of item i's votes for k (gold imposed),   v_i votes,   c_i = 1 / (1 + rho_a (v_i - 1))
    pi_k = mean_i q_ik, at least 1e-6, normalised
    C_rkl = sum_i c_i q_ik [y_ir = l] over items with v_i >= 2 or gold: a single vote cannot testify for itself
    N_rk = sum_l C_rkl,   D_rk = N_rk - C_rkk
    a_k = (sum_r C_rkk / (N_rk + tau) + accuracy * weight) / (sum_r N_rk / (N_rk + tau) + weight),   mu_k = logit a_k
    e_kl ~ sum_r C_rkl / (D_rk + tau) + errors / (K - 1),   l != k, normalised over l

A fixed prior keeps classes from dying out, and keeps a prior from feeding on itself.

Only sums leave a shard: :func:`count_anchors` counts one shard, its sums are added like those of any pass
(:class:`AnchorCount` is that pass as an engine sees it), and :func:`anchors_from` turns the total into anchors. An
engine on many machines does what the local one does: ``engine.run((), refresh=False, damping=0.0)`` with an
``AnchorCount`` for a model, before the engine of the fit is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.methods.anchored_rasch import plain

FloatArray = NDArray[np.float64]

_SMALLEST_SHARE = 1e-6


class AnchorSums(NamedTuple):
    """Sums over tasks."""

    counts: FloatArray  # (m, K, K): worker, label, class; C with the label first
    class_mass: FloatArray  # (K): sum of q


class Anchors(NamedTuple):
    """What is held fast during the fit."""

    log_prior: FloatArray  # (K): log pi
    ability: FloatArray  # (K): mu
    errors: FloatArray  # (K, K): label, class; columns sum to one, the diagonal is 0


@dataclass(frozen=True)
class AnchorSmoothing:
    """How strongly anchors are drawn to values that hold without any data.

    Attributes:
        tau: votes at which a worker has half of the full weight.
        accuracy: what ``a_k`` is drawn to.
        weight: with the weight of that many workers.
        errors: weight of uniform errors, in workers.
    """

    tau: float = 8.0
    accuracy: float = 0.7
    weight: float = 1.0
    errors: float = 2.0


def passes_for(shard: Shard) -> ModuleType:
    """The module that computes: in NumPy, or compiled."""
    if shard.is_small:
        return plain
    from rarevote.methods.anchored_rasch import kernel

    return kernel


def count_anchors(shard: Shard, discount: float, sums: AnchorSums) -> None:
    """Add what the votes of a shard say to ``sums``; ``discount`` is ``rho_a``."""
    passes_for(shard).count_shares(shard, discount, *sums)


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
    # A loop over labels: no second table of (m, K, K).
    errors = np.empty((n_classes, n_classes))
    wrong = met - right + smoothing.tau
    for label in range(n_classes):
        errors[label] = (counts[:, label] / wrong).sum(axis=0)
    errors += smoothing.errors / max(n_classes - 1, 1)
    errors[own, own] = 0.0
    if n_classes > 1:
        errors /= errors.sum(axis=0)
    return Anchors(np.log(share / share.sum()), np.log(accuracy) - np.log1p(-accuracy), errors)


class NoTasks(NamedTuple):
    """Local state of a pass that needs none."""

    nothing: FloatArray  # (n, 0)


@dataclass(frozen=True)
class AnchorCount:
    """The counting pass as an engine sees it: no parameters, no local state, sums that are :class:`AnchorSums`."""

    n_workers: int
    n_classes: int
    discount: float

    def start_local(self, shard: Shard) -> NoTasks:
        """Nothing per task."""
        return NoTasks(np.empty((shard.task_ptr.size - 1, 0)))

    def empty_stats(self, shared: tuple[()]) -> AnchorSums:
        """Zeros to add to."""
        del shared
        return AnchorSums(np.zeros((self.n_workers, self.n_classes, self.n_classes)), np.zeros(self.n_classes))

    def step(
        self,
        shared: tuple[()],
        shard: Shard,
        local: NoTasks,
        out: NoTasks,
        stats: AnchorSums,
        refresh: bool,
        damping: float,
    ) -> float:
        """Count a shard."""
        del shared, local, out, refresh, damping
        count_anchors(shard, self.discount, stats)
        return 0.0
