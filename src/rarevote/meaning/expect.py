"""What to expect of a result: recall, precision and prevalence of a class, and the accuracy of all labels.

People share misconceptions, and votes cannot show that: calibrated probabilities that take every vote at its word are
too sure. What to expect of them is therefore read off a flatter curve. With ``p_i`` the calibrated probability of the
class on task i and ``f`` its mean,

    logit P(task i is of the class) = logit f + a + b (logit p_i - logit f)        (a, log b) ~ N(mean, covariance)

where mean and covariance were learnt from real crowds with known truth. Every draw of ``(a, b)`` is a crowd as real
crowds are; in each, the tasks of the class are drawn, and recall, precision and prevalence counted. Intervals are
quantiles of these counts. Where an interval is so wide that it says nothing, it is not told: only reviews of an expert
(``rarevote audit``) can know.

This is an expectation, never a promise: a crowd may be worse than all those seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import first_of_best
from rarevote.meaning.calibrate import CalibratedPosterior

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Share of intervals that should contain the truth.
COVERAGE = 0.9
#: An interval wider than this says nothing.
WIDEST = 0.6
#: What stands in place of an interval that would say nothing.
ONLY_AN_AUDIT = "only an audit can know"

_N_DRAWS = 1000
_EDGE = 1e-4
_STEP = 0.05  # tasks whose logits round to the same multiple of this share a probability


@dataclass(frozen=True)
class Curve:
    """How far calibrated probabilities are believed: ``(a, log b) ~ N(mean, covariance)``.

    Attributes:
        mean: of ``a`` and ``log b``.
        covariance: variance of ``a``, covariance, variance of ``log b``.
    """

    mean: tuple[float, float]
    covariance: tuple[float, float, float]

    def draws(self, n_draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Intercepts and slopes, (n_draws) each."""
        of_a, both, of_b = self.covariance
        root = np.linalg.cholesky(np.array([[of_a, both], [both, of_b]]))
        drawn = np.array(self.mean) + rng.standard_normal((n_draws, 2)) @ root.T
        return drawn[:, 0], np.exp(drawn[:, 1])


OF_A_CLASS = Curve((0.0, -0.7), (0.4, 0.0, 0.3))
OF_LABELS = Curve((0.0, -0.7), (0.4, 0.0, 0.3))


@dataclass(frozen=True)
class Expected:
    """A figure that is expected, with its 90% interval; NaN where there is nothing to speak of.

    Attributes:
        value: the median.
        low: lower end.
        high: upper end.
    """

    value: float
    low: float
    high: float

    @property
    def is_told(self) -> bool:
        """Whether the interval says anything; if not, only an audit can know."""
        return bool(self.high - self.low <= WIDEST)

    @property
    def words(self) -> str:
        """The figure for a person.

        >>> Expected(0.9, 0.8, 0.95).words, Expected(0.5, 0.1, 0.9).words
        ('0.90 (0.80 to 0.95)', 'only an audit can know')
        """
        if self.value != self.value:
            return "-"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})" if self.is_told else ONLY_AN_AUDIT


@dataclass(frozen=True)
class Expectations:
    """What to expect of the labels of one class.

    Attributes:
        name: the class.
        recall: share of the tasks of the class that got its label.
        precision: share of the tasks with its label that are of the class; NaN if no task got it.
        prevalence: share of the tasks that are of the class.
        majority_recall: the recall that a majority vote would have, by the same probabilities.
        accuracy: share of all labels that are right.
    """

    name: Any
    recall: Expected
    precision: Expected
    prevalence: Expected
    majority_recall: Expected
    accuracy: Expected


def expectations(
    calibrated: CalibratedPosterior, codes: IntArray, number: int, votes: FloatArray, *, seed: int = 0
) -> Expectations:
    """What to expect of labels.

    Args:
        calibrated: probabilities of the classes, (n, K), and which tasks are known.
        codes: class number of every task, -1 for no answer, (n).
        number: the class.
        votes: votes per task and class, (n, K), for what a majority vote would find.
        seed: of the draws.
    """
    found = codes == number
    by_majority = first_of_best(votes) == number
    known = calibrated.gold >= 0
    by_majority = np.where(known, calibrated.gold == number, by_majority)
    share = counted(calibrated.score[:, number], calibrated.gold == number, known, 2 * found + by_majority, 4, seed)
    of_class = share.sum(axis=1)
    right = _of_labels(calibrated, codes, known, seed)
    return Expectations(
        calibrated.classes[number],
        _expected(share[:, 2:].sum(axis=1), of_class),
        _expected(share[:, 2:].sum(axis=1), np.full(len(share), found.sum())),
        _expected(of_class, np.full(len(share), calibrated.n_tasks)),
        _expected(share[:, [1, 3]].sum(axis=1), of_class),
        right,
    )


def _of_labels(calibrated: CalibratedPosterior, codes: IntArray, known: NDArray[np.bool_], seed: int) -> Expected:
    rows = np.flatnonzero(codes >= 0)
    own = calibrated.score[rows, codes[rows]]
    right = calibrated.gold[rows] == codes[rows]
    hits = counted(own, right, known[rows], np.zeros(rows.size, dtype=np.int64), 1, seed, curve=OF_LABELS)
    return _expected(hits[:, 0], np.full(len(hits), rows.size))


def counted(
    probability: FloatArray,
    is_true: NDArray[np.bool_],
    known: NDArray[np.bool_],
    kind: IntArray,
    n_kinds: int,
    seed: int,
    curve: Curve = OF_A_CLASS,
) -> FloatArray:
    """How many tasks of each kind are true, in every draw, (n_draws, n_kinds).

    Args:
        probability: calibrated probability of being true, (n).
        is_true: whether a known task is, (n).
        known: which tasks are known, (n).
        kind: kind of every task, (n).
        n_kinds: number of kinds.
        seed: of the draws.
        curve: how far the probabilities are believed.
    """
    rng = np.random.default_rng([seed, 4])
    a, b = curve.draws(_N_DRAWS, rng)
    p = np.clip(probability, _EDGE, 1.0 - _EDGE)
    mean = float(np.clip(p.mean(), _EDGE, 1.0 - _EDGE)) if p.size else 0.5
    centre = np.log(mean / (1.0 - mean))
    logit = np.log(p[~known] / (1.0 - p[~known]))
    place, inverse = np.unique(np.rint(logit / _STEP).astype(np.int64), return_inverse=True)
    size = np.bincount(inverse * n_kinds + kind[~known], minlength=place.size * n_kinds).reshape(-1, n_kinds)
    chance = _expit(centre + a[:, None] + b[:, None] * (place * _STEP - centre))
    hits = np.stack([rng.binomial(size[:, k], chance).sum(axis=1) for k in range(n_kinds)], axis=1)
    return np.asarray(hits + np.bincount(kind[known & is_true], minlength=n_kinds), dtype=np.float64)


def _expit(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def _expected(part: FloatArray, whole: FloatArray) -> Expected:
    """Median and ends over the draws in which there is anything to speak of."""
    seen = whole > 0
    if not seen.any():
        return Expected(np.nan, np.nan, np.nan)
    tail = (1.0 - COVERAGE) / 2
    low, middle, high = np.quantile(part[seen] / whole[seen], [tail, 0.5, 1.0 - tail]).tolist()
    return Expected(middle, low, high)
