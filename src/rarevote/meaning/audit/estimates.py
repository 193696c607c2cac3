"""The estimates (SUPPORTED): honest intervals from the same reviews, under one assumption, without proof.

Assumed is that how often the crowd is wrong changes smoothly with how sure it looks. Draws of the recalibration
(:mod:`rarevote.meaning.audit.recalibration`) give rates ``r_b``, these the rates and positives of the strata::

    theta_b ~ Beta(20 r_b + k_b, 20 (1 - r_b) + n_b - k_b)        K_b = k_b + Binomial(R_b, theta_b)

Every draw has a prevalence, and a recall and a precision for every list; intervals are quantiles of the draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.meaning.audit.recalibration import MIN_SLOPE, Recalibration, expit
from rarevote.meaning.audit.wealth import Wealth

_N_DRAWS = 300
_FREEDOM = 8
_SPREAD = 20.0
_QUANTILES = (0.5, 0.025, 0.975)


@dataclass(frozen=True)
class Interval:
    """A middle value (the median) and the ends of a 95% interval."""

    middle: float
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What the reviews support about one list: flagged set ``F_j``, reviewed negatives out, reviewed positives in.

    Attributes:
        set_index: ``j``.
        n_flagged: items on the list.
        prevalence: share of positives among all items, gold included.
        recall: of the list and the gold positives together.
        recall_without_gold: of the list, among the items that were not gold.
        precision: of the list.
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
        n_gold: items known before the audit, positive or not.
        seed: seed of the draws.
    """

    def __init__(self, wealth: Wealth, curve: Recalibration, *, n_gold: int, seed: list[int]) -> None:
        generator = np.random.default_rng(seed)
        spread = np.linalg.cholesky(np.linalg.inv(curve.precision))
        normal = generator.standard_normal((_N_DRAWS, 2)) @ spread.T
        scale = np.sqrt(_FREEDOM / generator.chisquare(_FREEDOM, (_N_DRAWS, 1)))
        drawn = curve.parameters + normal * scale
        a, s = drawn[:, :1], np.maximum(drawn[:, 1:], MIN_SLOPE)
        rate = expit(a + s * curve.logit_p0)
        n, k = wealth.reviewed, wealth.positives
        # A rate that rounds to 0 or 1 would leave no Beta distribution.
        theta = generator.beta(np.maximum(_SPREAD * rate + k, 1e-9), np.maximum(_SPREAD * (1 - rate) + n - k, 1e-9))
        # Items closed as the worst case are as unknown as those never drawn.
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
        # Whole numbers on both sides: a recall of exactly the target reaches it. Without positives none is reached.
        reached = (found * target.denominator >= total * target.numerator) & (total > 0)
        enough = reached.sum(axis=0) * confidence.denominator >= confidence.numerator * len(found)
        enough[-1] = True
        return int(enough.argmax())

    def of(self, j: int) -> Estimate:
        """What is known about the list of ``F_j``."""
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
    """Quantiles of the draws in which there is something to speak of."""
    known = values[np.isfinite(values)]
    if not known.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    return Interval(*(float(x) for x in np.quantile(known, _QUANTILES)))
