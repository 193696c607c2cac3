"""What to expect of a result: recall, precision and prevalence of a class, and the accuracy of all labels.

People share misconceptions, and votes cannot show that: probabilities that take every vote at its word are too sure,
and no probability tells how many tasks of a class there really are. So what to expect of labels is read off a curve
that may be flatter and higher or lower than the calibrated probabilities ``p_i`` of the class, whose mean is ``f``:

    logit P(task i is of the class) = c + b logit p_i,     c such that the mean is expit(logit f + d)
    (d, log b) ~ t_4(mean, covariance)

``d`` says how far the share of the class is off, ``b`` how much the probabilities tell the tasks apart. Their
distribution was learnt from real crowds with known truth (``benchmarks/expectations.py``, which also shows that the
intervals cover on crowds that had no part in it): on the probabilities of the vote sampler the slope ``b`` is about
0.5, on those of a method that tempers them itself about 1.2, and either may be far off. Every draw of ``(d, b)``
is a crowd as real crowds are; in each, the tasks of the class are drawn, and recall, precision and prevalence counted.
Intervals are quantiles of these counts. Where one is so wide that it says nothing, only an audit can know.

These are expectations, never promises: a crowd may be worse than all that were seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, first_of_best
from rarevote.meaning.calibrate import CalibratedPosterior

BoolArray = NDArray[np.bool_]

#: Share of intervals that should contain the truth.
COVERAGE = 0.9
#: An interval wider than this says nothing.
WIDEST = 0.75
#: What stands in place of a figure whose interval says nothing.
ONLY_AN_AUDIT = "only an audit can know"

_N_DRAWS = 500
_FREEDOM = 4.0
_EDGE = 1e-3  # no vote is worth more than this
_STEP = 0.1  # tasks whose logits round to the same multiple of this share a probability
_MAX_STEPS, _TOLERANCE = 60, 1e-6


@dataclass(frozen=True)
class Curve:
    """How far probabilities are believed: ``(d, log b) ~ t_4(mean, covariance)``.

    Attributes:
        mean: of ``d`` and ``log b``.
        covariance: scale of ``d``, of both, of ``log b``, as variances.
    """

    mean: tuple[float, float]
    covariance: tuple[float, float, float]

    def draws(self, n_draws: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Shifts ``d`` and slopes ``b``, (n_draws) each."""
        of_d, both, of_b = self.covariance
        root = np.array([[of_d**0.5, 0.0], [both / of_d**0.5, (of_b - both**2 / of_d) ** 0.5]])
        heavy = np.sqrt(_FREEDOM / rng.chisquare(_FREEDOM, (n_draws, 1)))
        d, log_b = (np.array(self.mean) + heavy * (rng.standard_normal((n_draws, 2)) @ root.T)).T
        return d, np.exp(np.clip(log_b, -3.0, 2.0))


# Learnt on all 31 datasets, every source group with the same weight: benchmarks/expectations.py.
#: for the rarest class, on probabilities that the method itself reports as calibrated
REPORTED = Curve((-0.131, 0.197), (0.125, 0.041, 0.198))
#: for the rarest class, on those of the vote sampler or of a posterior
SAMPLED = Curve((-0.084, -0.680), (0.122, 0.012, 0.193))
#: for the label of every task, which has no slope to speak of
REPORTED_LABELS = Curve((0.011, 0.0), (0.446, 0.0, 1e-9))
SAMPLED_LABELS = Curve((-0.860, 0.0), (0.465, 0.0, 1e-9))


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


NOTHING = Expected(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Expectations:
    """What to expect of the labels of one class.

    Attributes:
        name: the class.
        recall: share of the tasks of the class that got its label.
        precision: share of the tasks with its label that are of the class; NaN if no task got it.
        prevalence: share of the tasks that are of the class.
        majority_recall: the recall that a majority vote would have, by the same draws; NaN without the votes.
    """

    name: Any
    recall: Expected
    precision: Expected
    prevalence: Expected
    majority_recall: Expected = NOTHING


def expectations(
    calibrated: CalibratedPosterior,
    codes: IntArray,
    number: int,
    votes: FloatArray | None = None,
    *,
    curve: Curve | None = None,
) -> Expectations:
    """What to expect of the labels of one class.

    Args:
        calibrated: probabilities of the classes, (n, K), and which tasks are known.
        codes: class number of every task, -1 for no answer, (n).
        number: the class.
        votes: votes per task and class, (n, K), for what a majority vote would find.
        curve: how far the probabilities are believed; what was learnt from real crowds if not given.

    Example:
        >>> from rarevote.meaning.calibrate import calibrated
        >>> p = calibrated(np.repeat([[0.99, 0.01], [0.02, 0.98]], [900, 100], axis=0), prevalence=[0.9, 0.1])
        >>> expectations(p, np.repeat([0, 1], [900, 100]), 1).prevalence.words
        '0.10 (0.09 to 0.11)'
    """
    known, of_class = calibrated.gold >= 0, calibrated.gold == number
    curve, given = curve or curve_of_class(calibrated), given_share(calibrated, number)

    def drawn(flagged: BoolArray) -> FloatArray:
        """How many tasks of the class are not flagged and flagged, in every draw; the same draws at every call."""
        return drawn_counts(calibrated.score[:, number], of_class, known, flagged.astype(np.int64), 2, curve, given)

    found = codes == number
    counts = drawn(found)
    total, hits = counts.sum(axis=1), counts[:, 1]
    of_majority = NOTHING
    if votes is not None:
        by_majority = drawn(np.where(known, of_class, first_of_best(votes) == number))
        of_majority = expected(by_majority[:, 1], by_majority.sum(axis=1))
    return Expectations(
        calibrated.classes[number],
        expected(hits, total),
        expected(hits, np.full(len(hits), found.sum())),
        expected(total, np.full(len(total), calibrated.n_tasks)),
        of_majority,
    )


def curve_of_class(calibrated: CalibratedPosterior) -> Curve:
    """How far the probabilities of a class are believed."""
    return REPORTED if calibrated.is_reported else SAMPLED


def given_share(calibrated: CalibratedPosterior, number: int) -> float | None:
    """The share of a class, where it was given."""
    return float(calibrated.prevalence[number]) if calibrated.is_given else None


def expected_accuracy(calibrated: CalibratedPosterior, codes: IntArray, *, curve: Curve | None = None) -> Expected:
    """Share of the labels that are right, tasks without one left out."""
    rows = np.flatnonzero(codes >= 0)
    curve = curve or (REPORTED_LABELS if calibrated.is_reported else SAMPLED_LABELS)
    gold, own = calibrated.gold[rows], codes[rows]
    one_kind = np.zeros(rows.size, dtype=np.int64)
    hits = drawn_counts(calibrated.score[rows, own], gold == own, gold >= 0, one_kind, 1, curve)[:, 0]
    return expected(hits, np.full(len(hits), rows.size))


def drawn_counts(
    probability: FloatArray,
    is_true: BoolArray,
    known: BoolArray,
    kind: IntArray,
    n_kinds: int,
    curve: Curve,
    given: float | None = None,
) -> FloatArray:
    """How many tasks of each kind are true, in every draw, (n_draws, n_kinds).

    Args:
        probability: calibrated probability of being true, (n).
        is_true: whether a known task is, (n).
        known: which tasks are known, (n).
        kind: kind of every task, (n).
        n_kinds: number of kinds.
        curve: how far the probabilities are believed.
        given: the share of true tasks, where that is known.
    """
    rng = np.random.default_rng(4)
    logit, size, group = grouped(probability[~known])
    rate = drawn_rates(logit, size, curve, rng, given)
    n_of = np.bincount(group * n_kinds + kind[~known], minlength=size.size * n_kinds).reshape(-1, n_kinds)
    hits = np.stack([rng.binomial(n_of[:, k], rate).sum(axis=1) for k in range(n_kinds)], axis=1)
    return np.asarray(hits + np.bincount(kind[known & is_true], minlength=n_kinds), dtype=np.float64)


def grouped(probability: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Groups of tasks that are about equally probable: their logits, ascending, and sizes; the group of each task."""
    p = np.clip(probability, _EDGE, 1.0 - _EDGE)
    place, group = np.unique(np.rint(np.log(p / (1.0 - p)) / _STEP).astype(np.int64), return_inverse=True)
    size: IntArray = np.bincount(group, minlength=place.size).astype(np.int64)
    return np.asarray(place * _STEP, dtype=np.float64), size, group.astype(np.int64)


def drawn_rates(
    logit: FloatArray, size: IntArray, curve: Curve, rng: np.random.Generator, given: float | None = None
) -> FloatArray:
    """Share of the tasks of each group that are true, in every draw, (n_draws, n_groups)."""
    d, b = curve.draws(_N_DRAWS, rng)
    share = float(_expit(logit) @ size / max(size.sum(), 1)) if given is None else given
    share = min(max(share, _EDGE), 1.0 - _EDGE)
    return rates(logit, size, _expit(np.log(share / (1.0 - share)) + (d if given is None else 0.0 * d)), b)


def rates(logit: FloatArray, size: IntArray, share: FloatArray, slope: FloatArray) -> FloatArray:
    """Share of the tasks of each group that are true, for every share in all and every slope, (len(slope), n_groups).

    Solves ``mean expit(c + slope logit) = share`` for ``c``.
    """
    if not size.size:
        return np.empty((len(slope), 0))
    weight = size / size.sum()
    tilted = slope[:, None] * logit
    # Newton's method, within bounds that close in: the mean rate grows with c.
    c = np.log(share / (1.0 - share)) - tilted @ weight
    low, high = np.full(len(c), -60.0), np.full(len(c), 60.0)
    for _ in range(_MAX_STEPS):
        rate = _expit(c[:, None] + tilted)
        excess = rate @ weight - share
        if np.abs(excess).max() < _TOLERANCE:
            break
        low, high = np.where(excess < 0, c, low), np.where(excess > 0, c, high)
        stepped = c - excess / np.maximum((rate * (1.0 - rate)) @ weight, 1e-12)
        c = np.where((stepped > low) & (stepped < high), stepped, (low + high) / 2)
    return rate


def _expit(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def expected(part: FloatArray, whole: FloatArray) -> Expected:
    """Median and ends of a ratio over the draws in which there is anything to speak of."""
    seen = whole > 0
    if not seen.any():
        return NOTHING
    ratio = part[seen] / whole[seen]
    tail = (1.0 - COVERAGE) / 2
    low, middle, high = np.quantile(ratio, [tail, 0.5, 1.0 - tail]).tolist()
    return Expected(middle, low, high)
