"""What reviews say about the crowd's scores: ``logit p = a + s logit p0``, and how sure that is.

The base rate of a stratum is its mean score, ``p0_b``, mixed with two hundredths of the mean score of the population.
``a ~ N(0, 1.5^2)`` and ``s ~ N(1, 0.5^2)``, ``s >= 0.05``, meet the binomial likelihood of ``k_b`` positives among
``n_b`` reviews. On simulated crowds ``s`` is about 1; where people share misconceptions it may be close to 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.meaning.audit.strata import Strata

_MEAN = np.array([0.0, 1.0])
_PRECISION = np.array([1.5**-2, 0.5**-2])
MIN_SLOPE = 0.05
_MIXED, _EDGE = 0.02, 1e-5
_POOLING = 15.0  # how many reviews of a stratum weigh as much as the recalibrated curve
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
        """``s``: 1 if the crowd's certainty is worth what it says, near 0 if it means nothing."""
        return float(self.parameters[1])


def expit(x: FloatArray) -> FloatArray:
    """The logistic function, without overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


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
    p = expit(found[0] + found[1] * logit_p0)
    rates = (_POOLING * p + positives) / (_POOLING + reviewed)
    return Recalibration(logit_p0, found, _precision(found, logit_p0, reviewed), rates)


def _precision(parameters: FloatArray, logit_p0: FloatArray, reviewed: IntArray) -> FloatArray:
    p = expit(parameters[0] + parameters[1] * logit_p0)
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
    """The most probable parameters, or the most probable ``a`` at the ``s`` of the start unless that is free."""
    used = reviewed > 0
    z, n, k = logit_p0[used], reviewed[used], positives[used]
    here, value = start.copy(), _log_posterior(start, z, n, k)
    for _ in range(_STEPS):
        missing = k - n * expit(here[0] + here[1] * z)
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
