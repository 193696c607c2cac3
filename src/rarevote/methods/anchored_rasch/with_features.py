"""Anchored Rasch with a prior for each item, from its features: a refit of the workers, and the report.

The prior ``pi_i`` of item ``i`` replaces ``pi``, the anchors stay the same, and the fit continues from the votes-only
fit. Votes and features are then tempered together; the features count as one more vote::

    p_ik ~ pi_k exp((L_ik + log pi_ik - log pi_k) / (1 + rho v_i))

and ``pi_i`` itself for an item without votes. An item without features is reported from its votes alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray, column_sums
from rarevote.decide.probabilities import certain
from rarevote.em.engine import Run
from rarevote.em.model import Gold, Shard
from rarevote.features.model import FeatureModel
from rarevote.features.prior import FeaturePrior, VoteEvidence
from rarevote.features.record import FeatureRecord
from rarevote.methods.anchored_rasch import plain
from rarevote.methods.anchored_rasch.model import AnchoredModel, AnchoredShared

_TASKS_AT_ONCE = 1 << 16
_NOT_THIS = -50.0  # log likelihood of a class that a known item does not have


@dataclass(frozen=True, kw_only=True)
class ItemPriorModel(AnchoredModel):
    """The model with a prior for every task, started from the votes-only fit.

    Attributes:
        begin: the parameters to start from.
        offsets: log of each task's prior relative to the class prior, (n, K).
        task_ptr: of all tasks.
    """

    begin: AnchoredShared
    offsets: FloatArray
    task_ptr: NDArray[np.int64]

    @classmethod
    def of(cls, model: AnchoredModel, **more: Any) -> ItemPriorModel:
        """The votes-only model with priors."""
        return cls(**{one.name: getattr(model, one.name) for one in fields(model)}, **more)

    def start(self) -> AnchoredShared:
        """The workers of the votes-only fit."""
        return self.begin

    def offsets_of(self, shard: Shard) -> FloatArray:
        """The offsets of the tasks of a shard, which are a contiguous range of all tasks."""
        first = int(np.searchsorted(self.task_ptr, shard.task_ptr[0]))
        return self.offsets[first : first + shard.task_ptr.size - 1]

    def step(self, shared: Any, shard: Any, local: Any, out: Any, stats: Any, refresh: bool, damping: float) -> float:
        """One pass over a shard; the first pass also computes the posterior, as it does not start from vote shares."""
        return super().step(shared, shard, local, out, stats, True, damping)


def log_likelihoods(model: AnchoredModel, shared: AnchoredShared, crowd: Annotations) -> FloatArray:
    """Log probability of the votes on each task given its class, (n_tasks, K)."""
    found = np.empty((crowd.n_tasks, model.n_classes))
    tables, no_gold = model.tables(shared), np.empty(0, dtype=np.int32)
    for begin in range(0, crowd.n_tasks, _TASKS_AT_ONCE):
        end = min(begin + _TASKS_AT_ONCE, crowd.n_tasks)
        shard = Shard(crowd.task_ptr[begin : end + 1], crowd.worker, crowd.label, no_gold)
        found[begin:end] = plain.log_likelihoods(shard, tables, model.weights, model.nodes)
    return found


def evidence_of(
    model: AnchoredModel, shared: AnchoredShared, posterior: FloatArray, crowd: Annotations, gold: Gold
) -> VoteEvidence:
    """The evidence of votes and gold on all items, items without votes last; ``gold`` covers all items or is empty."""
    n, K = crowd.n_tasks + len(crowd.unanswered), model.n_classes
    q, likelihood = np.zeros((n, K)), np.zeros((n, K))
    q[: crowd.n_tasks] = posterior
    likelihood[: crowd.n_tasks] = log_likelihoods(model, shared, crowd)
    known = np.flatnonzero(gold >= 0)
    q[known], likelihood[known] = np.eye(K)[gold[known]], _NOT_THIS * (1.0 - np.eye(K)[gold[known]])
    n_votes = np.zeros(n, dtype=np.int64)
    n_votes[: crowd.n_tasks] = np.diff(crowd.task_ptr)
    speaks = n_votes > 0
    speaks[known] = True
    return VoteEvidence(
        q,
        likelihood,
        np.exp(model.anchors.log_prior),
        speaks,
        n_votes,
        crowd.task_of_annotation(),
        crowd.label,
        lambda votes: shared.ability[crowd.worker[votes]],
    )


@dataclass(frozen=True, eq=False)
class FeatureOutcome:
    """The result of using features, for all items; items without votes are the pool.

    Attributes:
        found: the priors, and the record of how the features were used.
        pool_gold: known class of each item without votes, or -1.
        pool_reported: the reported probabilities of the pool; empty if the features were not used.
        pool_posterior: the posterior probabilities of the pool; likewise.
        classes: numbers of the classes that the priors cover; None for all.
    """

    found: FeaturePrior
    pool_gold: Gold
    pool_reported: FloatArray
    pool_posterior: FloatArray
    classes: IntArray | None = None

    @property
    def record(self) -> FeatureRecord:
        """How the features were used."""
        return self.found.record

    @property
    def priors(self) -> FloatArray:
        """The priors of all items, (n, K)."""
        return self.found.priors

    def pool(self, mean: FloatArray) -> FloatArray:
        """Reported probabilities of items without votes, (m, K): the mean of all items if features were not used."""
        reported = self.pool_reported if self.record.used else np.broadcast_to(mean, (len(self.pool_gold), len(mean)))
        return certain(reported, self.pool_gold)

    @property
    def model(self) -> FeatureModel:
        """The model that predicts new items."""
        kept = np.arange(self.priors.shape[1]) if self.classes is None else self.classes
        return FeatureModel(kept, self.found.scorer, self.found.weight)

    @property
    def free(self) -> NDArray[np.bool_]:
        """Items whose label needs no vote, (n): their features are used, or they have features but no votes."""
        has_row = self.found.has_row
        pool = np.arange(len(has_row)) >= len(has_row) - len(self.pool_gold)
        return np.asarray(has_row & (pool | self.record.used))

    def widened(self, kept: IntArray, n_classes: int) -> FeatureOutcome:
        """This outcome with further classes that have no votes."""
        if len(kept) == n_classes:
            return self

        def wide(table: FloatArray) -> FloatArray:
            found = np.zeros((len(table), n_classes))
            found[:, kept] = table if table.size else 0.0
            return found

        pool = np.where(self.pool_gold >= 0, kept[self.pool_gold], -1).astype(np.int32)
        found = replace(self.found, priors=wide(self.found.priors))
        return FeatureOutcome(found, pool, wide(self.pool_reported), wide(self.pool_posterior), kept)


class FeatureFit(NamedTuple):
    """A fit with features: the outcome and, if features are used, the result that replaces the votes-only fit."""

    outcome: FeatureOutcome
    run: Run
    shares: FloatArray = np.empty(0)
    reported: FloatArray = np.empty(0)


class ItemReport(NamedTuple):
    """Probabilities of all items.

    Attributes:
        p: reported probabilities, (n, K).
        shares: their mean before lapses, (K).
        posterior: posterior of the fit; the prior for items without votes, (n, K).
    """

    p: FloatArray
    shares: FloatArray
    posterior: FloatArray


def report_items(
    likelihood: FloatArray,
    priors: FloatArray,
    prior: FloatArray,
    n_votes: IntArray,
    has_row: NDArray[np.bool_],
    gold: Gold,
    *,
    discount: float,
    lapse: float,
) -> ItemReport:
    """Reported probabilities of all items.

    Args:
        likelihood: log probability of the votes on each item given its class, (n, K); 0 without votes.
        priors: of each item, (n, K).
        prior: of the classes, (K).
        n_votes: number of votes on each item, (n).
        has_row: items with features, (n).
        gold: known class of each item or -1, (n), or empty.
        discount: rho.
        lapse: weight of the shares.
    """
    offsets = np.log(priors) - np.log(prior)
    heard = n_votes - 1 + has_row
    scores = np.log(prior) + (likelihood + offsets) / (1.0 + discount * np.maximum(heard, 0))[:, None]
    scores[n_votes == 0] = np.log(priors[n_votes == 0])
    p = certain(_normalised(scores), gold)
    speaks = (n_votes > 0) | has_row  # all others have the mean
    shares = column_sums(p[speaks]) / max(int(speaks.sum()), 1)
    p[~speaks] = shares
    posterior = certain(_normalised(likelihood + np.log(priors)), gold)
    return ItemReport(certain((1.0 - lapse) * p + lapse * shares, gold), shares, posterior)


def _normalised(scores: FloatArray) -> FloatArray:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
