"""The weight of features, learned from held-out votes, and the guard that leaves useless features out.

With scores ``eta_i``, weight ``lam`` and class prior ``pi``::

    pi_i = (1 - eps) softmax(lam eta_i + c) + eps pi,     c such that the mean of the softmax is pi
    M = sum_i log sum_k pi_ik exp(L_ik) - log sum_k pi_k exp(L_ik)

``c`` is the anchor: features move probability between items, never the shares of the classes. ``M`` is a held-out gain
in nats, with an expectation of 0 or less for useless features.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from rarevote.crowd.numerics import FloatArray
from rarevote.features.ridge import softmax

_ANCHOR_STEPS = 1000
_ANCHOR_TOL = 1e-8


def anchored(eta: FloatArray, lam: float, prior: FloatArray) -> FloatArray:
    """The offsets ``c``, (K), with which the mean of ``softmax(lam eta + c)`` is the prior."""
    scores, log_prior = lam * eta, np.log(prior)
    offsets = log_prior.copy()
    for _ in range(_ANCHOR_STEPS):
        gap = log_prior - np.log(softmax(scores + offsets).mean(axis=0))
        offsets = offsets + gap
        if np.abs(gap).max() < _ANCHOR_TOL:
            break
    return offsets


@dataclass(frozen=True, eq=False)
class Weight:
    """How a score becomes a prior.

    Attributes:
        tau2: tau2 of the scores; None for predicted probabilities.
        lam: weight of the scores.
        offsets: c, (K).
        prior: class prior, (K).
        lapse: eps.
    """

    tau2: float | None
    lam: float
    offsets: FloatArray
    prior: FloatArray
    lapse: float

    def priors(self, eta: FloatArray) -> FloatArray:
        """``pi_i`` of items with these scores, (n, K)."""
        return np.asarray((1.0 - self.lapse) * softmax(self.lam * eta + self.offsets) + self.lapse * self.prior)


def item_gains(priors: FloatArray, prior: FloatArray, log_likelihood: FloatArray) -> FloatArray:
    """The held-out gain of each item in nats, (n)."""
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return np.asarray(np.log((priors * likelihood).sum(axis=1)) - np.log((prior * likelihood).sum(axis=1)))


def standard_error(gains: FloatArray) -> float:
    """Standard error of the sum of the gains."""
    return float(np.sqrt(len(gains)) * gains.std())


@dataclass(frozen=True, eq=False)
class Candidate:
    """A weight and its gains.

    Attributes:
        weight: the weight.
        gains: gain of each item, (n).
        spread: standard deviation of the weighted scores over items and classes.
    """

    weight: Weight
    gains: FloatArray
    spread: float

    @property
    def gain(self) -> float:
        """M."""
        return float(self.gains.sum())


def candidate(
    tau2: float | None, lam: float, eta: FloatArray, prior: FloatArray, log_likelihood: FloatArray, lapse: float
) -> Candidate:
    """The candidate for a weight, on items with votes whose scores are ``eta``, (n, K)."""
    weight = Weight(tau2, lam, anchored(eta, lam, prior), prior, lapse)
    return Candidate(weight, item_gains(weight.priors(eta), prior, log_likelihood), float((lam * eta).std()))


def choose(candidates: Iterable[Candidate]) -> Candidate:
    """The smallest weight within one standard error of the difference from the best."""
    listed = list(candidates)
    best = max(listed, key=lambda one: one.gain)
    near = [one for one in listed if best.gain - one.gain <= standard_error(best.gains - one.gains)]
    return min(near, key=lambda one: one.spread)
