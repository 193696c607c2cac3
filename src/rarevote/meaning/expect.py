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

These are expectations, never promises: a crowd may be worse than all that were seen. For a recall target as many of the
highest-ranked tasks are flagged as make the *expected* recall reach it. Gold that is a *random sample* of the tasks can
promise: with ``g`` of them of the class, flagging all tasks that score at least as high as the ``(r + 1)``-th lowest of
them misses the target with probability at most ``P(Binomial(g, 1 - target) <= r)``. Where they are so few that this
cannot be small, nothing is promised, and what remains is an audit, whose cost has a floor that nobody gets below.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, comb, floor, inf, lgamma, log, log1p, perm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import find_name, some_names
from rarevote.crowd.numerics import FloatArray, IntArray, first_of_best, sigmoid
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
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
    share = float(sigmoid(logit) @ size / max(size.sum(), 1)) if given is None else given
    share = min(max(share, _EDGE), 1.0 - _EDGE)
    return rates(logit, size, sigmoid(np.log(share / (1.0 - share)) + (d if given is None else 0.0 * d)), b)


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
        rate = sigmoid(c[:, None] + tilted)
        excess = rate @ weight - share
        if np.abs(excess).max() < _TOLERANCE:
            break
        low, high = np.where(excess < 0, c, low), np.where(excess > 0, c, high)
        stepped = c - excess / np.maximum((rate * (1.0 - rate)) @ weight, 1e-12)
        c = np.where((stepped > low) & (stepped < high), stepped, (low + high) / 2)
    return rate


def expected(part: FloatArray, whole: FloatArray) -> Expected:
    """Median and ends of a ratio over the draws in which there is anything to speak of."""
    seen = whole > 0
    if not seen.any():
        return NOTHING
    ratio = part[seen] / whole[seen]
    tail = (1.0 - COVERAGE) / 2
    low, middle, high = np.quantile(ratio, [tail, 0.5, 1.0 - tail]).tolist()
    return Expected(middle, low, high)


Share = str | int | float | Fraction | Decimal

# Differences of logarithms below this are decided in whole numbers.
_CLOSE = 1e-6


def exact_share(value: Share, what: str) -> Fraction:
    """A share as the rational number that was written: 0.9 is 9/10 and not the binary number next to it.

    >>> exact_share(0.9, "target"), exact_share("19/20", "confidence")
    (Fraction(9, 10), Fraction(19, 20))
    """
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"{what} must be a share between 0 and 1 such as 0.9 or 9/10, got {value!r}") from None


def positives_that_break(found: int, target: Fraction) -> int:
    """The fewest missed positives ``m`` with which the recall of ``found`` falls below ``target``.

    >>> positives_that_break(9, Fraction(9, 10)), positives_that_break(500, Fraction(9, 10))
    (2, 56)
    """
    return floor(found * (1 - target) / target) + 1


def floor_reviews(found: int, unflagged: int, *, target: Share = 0.9, confidence: Share = 0.95) -> int:
    """The fewest reviews of unflagged items that can certify a recall, whatever the method.

    With ``K`` positives found among the flagged items, ``U`` items not flagged and no positive among those of them that
    were reviewed, a world in which ``m = floor(K (1 - rho) / rho) + 1`` random unflagged items are positive has a
    recall below ``rho`` and would leave the same record with probability ``C(U - m, n) / C(U, n)``. An assumption-free
    sample of fixed size ``n`` must make that at most ``alpha``.

    Args:
        found: positives among the flagged items, ``K``.
        unflagged: items that are not flagged, ``U``.
        target: the recall ``rho``, above 0 and at most 1.
        confidence: ``1 - alpha``, between 0 and 1.

    Returns:
        The smallest ``n`` with ``C(U - m, n) / C(U, n) <= alpha``; 0 if even ``U`` misses would not break the target.

    Example:
        >>> floor_reviews(500, 500), floor_reviews(375, 2300), floor_reviews(10, 950)
        (25, 157, 738)
    """
    rho, alpha = exact_share(target, "target"), 1 - exact_share(confidence, "confidence")
    if not 0 < rho <= 1 or not 0 < alpha < 1:
        raise ParameterError(f"target and confidence must be shares between 0 and 1, got {target} and {confidence}")
    m = positives_that_break(found, rho)
    if m > unflagged:
        return 0
    # With unflagged - m + 1 reviewed, fewer than m items are left.
    return bisect_left(range(unflagged - m + 1), True, lo=1, key=lambda n: _is_enough(n, unflagged, m, alpha))


def _is_enough(n: int, unflagged: int, m: int, alpha: Fraction) -> bool:
    """Whether ``C(U - m, n) / C(U, n) = perm(U - n, m) / perm(U, m) <= alpha``."""
    left = unflagged - n
    log_chance = _log_perm(left, m) - _log_perm(unflagged, m) if left >= m else -inf
    margin = log_chance - log(alpha)
    if abs(margin) > _CLOSE:
        return margin < 0
    return perm(left, m) * alpha.denominator <= perm(unflagged, m) * alpha.numerator


def _log_perm(n: int, m: int) -> float:
    return lgamma(n + 1) - lgamma(n - m + 1)


def most_positives(chances: list[float], left: int, *, confidence: Fraction) -> int:
    """How many positives there can be among the items left if no draw has shown one, with no assumption.

    With ``m`` of them left and every item drawn at step ``i`` with probability ``q_i`` at least, a draw shows none with
    probability ``1 - m q_i`` at most; ``1 / prod (1 - m q_i)`` is a fortune as in :mod:`rarevote.meaning.audit.wealth`,
    so the bound holds at any number of looks.

    Args:
        chances: the smallest probability of any item at each draw, ``q_i``.
        left: items that are left.
        confidence: ``1 - alpha``.

    Example:
        >>> most_positives([1 / (100 - i) for i in range(20)], 80, confidence=Fraction(19, 20))
        12
    """

    def is_refuted(m: int) -> bool:
        return sum(log1p(-m * q) if m * q < 1 else -inf for q in chances) <= log(1 - confidence)

    return bisect_left(range(left + 1), True, lo=1, key=is_refuted) - 1


#: How sure a promise must be.
CONFIDENCE = 0.8


@dataclass(frozen=True)
class RecallTarget:
    """What came of a recall target.

    Attributes:
        name: the class.
        target: the recall asked for.
        confidence: how sure it should be.
        threshold: tasks whose calibrated probability of the class is at least this are flagged.
        promised: whether the target is promised, by a random sample of known tasks.
        n_flagged: tasks flagged.
        floor: reviews of unflagged tasks below which no audit can certify the target for this list.
        words: the promise, or what is expected, and where to go from there.
    """

    name: Any
    target: float
    confidence: float
    threshold: float
    promised: bool
    n_flagged: int
    floor: int
    words: str


def check_share(name: str, value: Any) -> None:
    """Refuse anything but a share above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value <= 1.0:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}")


def one_target(wanted: Mapping[Any, float], classes: NDArray[Any]) -> tuple[int, float]:
    """Number of the class and its recall target.

    Raises:
        ParameterError: not exactly one class, one that does not exist, or a target out of range.
    """
    if len(wanted) != 1:
        raise ParameterError(
            f"min_recall takes one class, because targets of several can exclude each other; got {wanted}"
        )
    ((name, target),) = wanted.items()
    number = find_name(name, classes)
    if number is None:
        raise ParameterError(f"min_recall names {name!r}, which is no class ({some_names(classes.tolist())})")
    check_share(f"the recall target of {name}", target)
    return number, float(target)


def gold_threshold(scores: FloatArray, target: float, confidence: float) -> float | None:
    """The highest threshold that known tasks of a class, a random sample, allow; None if they are too few."""
    n = len(scores)
    allowed, probability = -1, 0.0
    while allowed + 1 < n:
        misses = allowed + 1
        probability += comb(n, misses) * (1.0 - target) ** misses * target ** (n - misses)
        if probability > 1.0 - confidence:
            break
        allowed = misses
    return None if allowed < 0 else float(np.sort(scores)[allowed])


def expected_threshold(calibrated: CalibratedPosterior, number: int, target: float, allowed: BoolArray) -> float:
    """The highest threshold at which the expected recall of unknown tasks reaches the target; the lowest if none."""
    unknown = calibrated.gold < 0
    score, may = calibrated.score[unknown, number], allowed[unknown]
    if not may.any():
        return np.inf
    logit, size, group = grouped(score)
    given = given_share(calibrated, number)
    rate = drawn_rates(logit, size, curve_of_class(calibrated), np.random.default_rng(4), given)
    within = np.bincount(group[may], minlength=size.size)
    found = np.cumsum((rate * within)[:, ::-1], axis=1)  # most probable group first
    recall = np.concatenate([[0.0], np.median(found / (rate @ size)[:, None], axis=0)])
    last = int(np.searchsorted(recall, target - 1e-9))
    if last > size.size:
        return float(score[may].min())
    # Of the group within which the target is reached, as many tasks as the way from one end to the other needs.
    needed = (target - recall[last - 1]) / max(recall[last] - recall[last - 1], 1e-12)
    inside = np.sort(score[may & (group == size.size - last)])[::-1]
    return float(inside[min(max(ceil(needed * inside.size - 1e-9), 1), inside.size) - 1])


def flag(
    calibrated: CalibratedPosterior,
    number: int,
    target: float,
    confidence: float,
    random_gold: bool,
    allowed: BoolArray | None = None,
) -> tuple[RecallTarget, BoolArray]:
    """Which tasks to flag for a recall of the class, and what came of the target.

    Args:
        random_gold: whether the known tasks are a random sample of all tasks.
        allowed: which tasks may be flagged where nothing is promised, (n); all if not given.
    """
    score, unknown = calibrated.score[:, number], calibrated.gold < 0
    of_gold = score[calibrated.gold == number] if random_gold else np.empty(0)
    n_gold = of_gold.size
    bound = gold_threshold(of_gold, target, confidence) if target < 1.0 else None
    if bound is None:
        may = np.ones(len(score), dtype=bool) if allowed is None else allowed
        threshold = expected_threshold(calibrated, number, target, may)
    else:
        # A promise that some samples could not make would be made by the lucky ones alone: nothing may be left out.
        may, threshold = np.ones(len(score), dtype=bool), bound
    flagged = np.where(unknown, (score >= threshold) & may, calibrated.gold == number)
    expected = expectations(calibrated, np.where(flagged, number, -1), number)
    n_flagged = int(flagged.sum())
    hits = 0 if not n_flagged else round(n_flagged * expected.precision.value)
    floor = floor_reviews(hits, len(score) - n_flagged, target=target, confidence=confidence)
    name, sure = calibrated.classes[number], f"{100 * confidence:g}% confidence"
    if bound is not None:
        words = f"recall of {name} at least {target:g} with {sure}, gold included, by {n_gold} random known tasks"
    else:
        words = (
            f"no promise on the recall of {name}: expected is {expected.recall.words}. "
            f"{_what_would_promise(calibrated, number, target, confidence, n_gold)}"
        )
    words += (
        f". Nobody can certify it for this list, whatever the crowd, with fewer than {counted(floor, 'review')} of the "
        f"{counted(len(score) - n_flagged, 'task')} that are not on it: see rarevote audit"
    )
    return RecallTarget(name, target, confidence, threshold, bound is not None, n_flagged, floor, words), flagged


def _what_would_promise(
    calibrated: CalibratedPosterior, number: int, target: float, confidence: float, n_gold: int
) -> str:
    """How much gold could promise the target, in words."""
    if target >= 1.0:
        return "No sample can promise that nothing is missed: lower the target"
    # Without a single miss allowed, target^g is the chance of being wrong.
    n_needed = ceil(log(1.0 - confidence) / log(target))
    share = max(float(calibrated.prevalence[number]), 1.0 / max(calibrated.n_tasks, 1))
    have = f" ({n_gold} are known)" if n_gold else ""
    return (
        f"A random sample could promise it: {n_needed} known tasks of class {calibrated.classes[number]}{have}, about "
        f"{ceil(n_needed / share):,} tasks drawn at random and labelled by an expert"
    )
