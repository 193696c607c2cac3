"""The estimates (SUPPORTED): intervals from the same reviews, under one assumption, not proved.

The assumption is that the crowd's error rate changes smoothly with its confidence. Draws of the recalibration
(:func:`recalibrate`) give rates ``r_b``, and these give the rates and positives of the strata::

    theta_b ~ Beta(20 r_b + k_b, 20 (1 - r_b) + n_b - k_b)        K_b = k_b + Binomial(R_b, theta_b)

Every draw has a prevalence, and a recall and a precision for every list; intervals are quantiles of the draws.

The recalibration corrects the crowd's scores by the reviews, ``logit p = a + s logit p0``. The base rate of a stratum
is its mean score, ``p0_b``, mixed with 2% of the mean score of the population. ``a ~ N(0, 1.5^2)`` and ``s
~ N(1, 0.5^2)``, ``s >= 0.05``, are combined with the binomial likelihood of ``k_b`` positives among ``n_b`` reviews. On
simulated crowds ``s`` is about 1; if annotators share misconceptions, it can be close to 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rarevote.audit.strata import Strata
from rarevote.audit.wealth import Wealth
from rarevote.crowd.numerics import FloatArray, IntArray, sigmoid

_MEAN = np.array([0.0, 1.0])
_PRECISION = np.array([1.5**-2, 0.5**-2])
MIN_SLOPE = 0.05
_MIXED, _EDGE = 0.02, 1e-5
_POOLING = 15.0  # the weight of the recalibrated curve, in reviews of a stratum
_STEPS, _TOLERANCE = 60, 1e-12


@dataclass(frozen=True, eq=False)
class Recalibration:
    """The curve at its most probable parameters.

    Attributes:
        logit_p0: logit of the base rates, (B).
        parameters: ``a`` and ``s``, (2).
        precision: negative second derivative of the log posterior there, (2, 2).
        rates: positive rate of every stratum, ``p_b = (15 p + k_b) / (15 + n_b)``, (B).
    """

    logit_p0: FloatArray
    parameters: FloatArray
    precision: FloatArray
    rates: FloatArray

    @property
    def slope(self) -> float:
        """``s``: 1 if the crowd's confidence is right, near 0 if it carries no information."""
        return float(self.parameters[1])


def base_logits(strata: Strata) -> FloatArray:
    """Logit of the base rates, (B)."""
    p0 = np.clip((1 - _MIXED) * strata.p0 + _MIXED * strata.mean_score, _EDGE, 1 - _EDGE)
    return np.asarray(np.log(p0 / (1 - p0)))


def recalibrate(logit_p0: FloatArray, reviewed: IntArray, positives: IntArray) -> Recalibration:
    """Find the most probable curve by Newton's method.

    Args:
        logit_p0: logit of the base rates, (B).
        reviewed: reviews of every stratum, ``n_b``, (B).
        positives: positives among them, ``k_b``, (B).
    """
    found = _newton(logit_p0, reviewed, positives, free=True, start=_MEAN)
    if found[1] < MIN_SLOPE:
        start = np.array([found[0], MIN_SLOPE])
        found = _newton(logit_p0, reviewed, positives, free=False, start=start)
    p = sigmoid(found[0] + found[1] * logit_p0)
    rates = (_POOLING * p + positives) / (_POOLING + reviewed)
    return Recalibration(logit_p0, found, _precision(found, logit_p0, reviewed), rates)


def _precision(parameters: FloatArray, logit_p0: FloatArray, reviewed: IntArray) -> FloatArray:
    p = sigmoid(parameters[0] + parameters[1] * logit_p0)
    weight = reviewed * p * (1 - p)
    tilt = weight * logit_p0
    bend = np.array([[weight.sum(), tilt.sum()], [tilt.sum(), tilt @ logit_p0]])
    return np.asarray(bend + np.diag(_PRECISION))


def _log_posterior(parameters: FloatArray, logit_p0: FloatArray, reviewed: IntArray, positives: IntArray) -> float:
    eta = parameters[0] + parameters[1] * logit_p0
    prior = -0.5 * float(_PRECISION @ (parameters - _MEAN) ** 2)
    return float(positives @ eta - reviewed @ np.logaddexp(0.0, eta)) + prior


def _newton(
    logit_p0: FloatArray, reviewed: IntArray, positives: IntArray, *, free: bool, start: FloatArray
) -> FloatArray:
    """The most probable parameters, or the most probable ``a`` at the starting ``s`` unless that is free."""
    used = reviewed > 0
    z, n, k = logit_p0[used], reviewed[used], positives[used]
    here, value = start.copy(), _log_posterior(start, z, n, k)
    for _ in range(_STEPS):
        missing = k - n * sigmoid(here[0] + here[1] * z)
        slope = np.array([missing.sum(), missing @ z]) - _PRECISION * (here - _MEAN)
        (h00, h01), (_, h11) = _precision(here, z, n).tolist()
        if free:
            step = np.array([h11 * slope[0] - h01 * slope[1], h00 * slope[1] - h01 * slope[0]]) / (h00 * h11 - h01**2)
        else:
            step = np.array([slope[0] / h00, 0.0])
        while True:
            there = here + step
            new = _log_posterior(there, z, n, k)
            if new >= value or np.abs(step).max() < _TOLERANCE:
                break
            step *= 0.5
        here, value = there, max(new, value)
        if np.abs(step).max() < _TOLERANCE:
            break
    return here


_N_DRAWS = 300
_FREEDOM = 8
_SPREAD = 20.0
_QUANTILES = (0.5, 0.025, 0.975)


@dataclass(frozen=True)
class Interval:
    """A median and the ends of a 95% interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What the reviews support about a list: flagged set ``F_j``, without reviewed negatives, with reviewed positives.

    Attributes:
        set_index: ``j``.
        n_flagged: number of items on the list.
        prevalence: share of positives among all items, including gold.
        recall: recall of the list and the gold positives together.
        recall_without_gold: recall of the list, among the items that are not gold.
        precision: precision of the list.
    """

    set_index: int
    n_flagged: int
    prevalence: Interval
    recall: Interval
    recall_without_gold: Interval
    precision: Interval


class Estimates:
    """Draws of the number of positives of every stratum.

    Args:
        wealth: the counts of the audit.
        curve: the recalibration from the same counts.
        n_gold: number of gold items, positive or not.
        seed: seed of the draws.
    """

    def __init__(self, wealth: Wealth, curve: Recalibration, *, n_gold: int, seed: list[int]) -> None:
        generator = np.random.default_rng(seed)
        spread = np.linalg.cholesky(np.linalg.inv(curve.precision))
        normal = generator.standard_normal((_N_DRAWS, 2)) @ spread.T
        scale = np.sqrt(_FREEDOM / generator.chisquare(_FREEDOM, (_N_DRAWS, 1)))
        drawn = curve.parameters + normal * scale
        a, s = drawn[:, :1], np.maximum(drawn[:, 1:], MIN_SLOPE)
        rate = sigmoid(a + s * curve.logit_p0)
        n, k = wealth.reviewed, wealth.positives
        # A rate that rounds to 0 or 1 would leave no Beta distribution.
        theta = generator.beta(np.maximum(_SPREAD * rate + k, 1e-9), np.maximum(_SPREAD * (1 - rate) + n - k, 1e-9))
        # Items closed as the worst case are unknown, like items that were never drawn.
        self._unknown = wealth.left + wealth.worst
        self.positives: IntArray = k + generator.binomial(self._unknown, theta)
        self._wealth, self._n_gold = wealth, n_gold

    def _found(self) -> FloatArray:
        """Positives on the list of every set, (draws, B)."""
        reviewed = self._wealth.positives
        inside = np.cumsum(self.positives - reviewed, axis=1)
        return np.asarray(inside + reviewed.sum(), dtype=np.float64)

    def list_sizes(self) -> IntArray:
        """Items on the list of every set, (B)."""
        return np.asarray(np.cumsum(self._unknown) + self._wealth.positives.sum())

    def supported(self, target: Fraction, confidence: Fraction) -> int:
        """The smallest set whose list reaches the target in a share ``confidence`` of the draws."""
        known = self._wealth.known_positives
        found, total = self._found() + known, self.positives.sum(axis=1, keepdims=True) + known
        # Whole numbers on both sides: a recall of exactly the target counts. Without positives, none does.
        reached = (found * target.denominator >= total * target.numerator) & (total > 0)
        # Python's integers, because a confidence can have many digits.
        times = reached.sum(axis=0).tolist()
        last = len(times) - 1
        return next((j for j in range(last) if times[j] >= confidence * len(found)), last)

    def of(self, j: int) -> Estimate:
        """The estimate for the list of ``F_j``."""
        known, size = self._wealth.known_positives, int(self.list_sizes()[j])
        found, total = self._found()[:, j], self.positives.sum(axis=1).astype(np.float64)
        n_items = int(self._wealth.sizes.sum()) + self._n_gold
        return Estimate(
            set_index=j,
            n_flagged=size,
            prevalence=_interval((total + known) / n_items),
            recall=_interval(_ratio(found + known, total + known)),
            recall_without_gold=_interval(_ratio(found, total)),
            precision=_interval(_ratio(found, np.full(len(found), float(size)))),
        )


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _interval(values: FloatArray) -> Interval:
    """Quantiles of the draws in which the value is defined."""
    known = values[np.isfinite(values)]
    if not known.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    return Interval(*(float(x) for x in np.quantile(known, _QUANTILES)))
