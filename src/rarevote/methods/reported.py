"""The one probability of every class of every item, from a fitted method and its features."""

from __future__ import annotations

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.sampled import DrawsLater
from rarevote.methods.base import Estimator
from rarevote.methods.registry import DEFAULT_METHOD


def reported_probabilities(method: Estimator, votes: Annotations, is_jury: bool, draws: DrawsLater) -> Probabilities:
    """Probabilities of items with votes, then of items without, from their features or the mean.

    Args:
        method: a fitted method.
        votes: the votes that it was fitted to.
        is_jury: whether models cast most of the votes.
        draws: makes the draws with independent errors of annotators.
    """
    calibration, outcome = method.calibration_, method.feature_outcome
    mean = np.zeros(votes.n_classes) if calibration is None else calibration.mean
    p, gold = np.asarray(method.reported_), method.gold_codes_.astype(np.int64)
    if n_unvoted := len(votes.unanswered):
        pool = np.broadcast_to(mean, (n_unvoted, votes.n_classes)) if outcome is None else outcome.pool(mean)
        p = np.concatenate([p, pool])
        gold = np.concatenate([gold, np.full(n_unvoted, -1) if outcome is None else outcome.pool_gold])
    return Probabilities(
        votes.classes,
        p,
        mean,
        gold,
        is_default=method.method_name == DEFAULT_METHOD,
        is_jury=is_jury,
        free=None if outcome is None else outcome.free,
        has_features=outcome is not None and outcome.record.used,
        draws=draws,
    )
