"""What to expect of labels: recall, precision and prevalence of a class, and the accuracy of all labels.

Votes cannot prove a recall, and two worlds can explain them. In one, errors of annotators are *independent*: a
sampler draws the true class of every item (:mod:`rarevote.decide.sampled`). In the other, annotators *share*
misconceptions, as in real crowds, and votes cannot show that: probabilities that trust every vote are too confident,
and no probability says how many items of a class there really are. So the expectation follows from a curve that can
be flatter, and higher or lower, than the probabilities ``p_i`` of the class, whose mean is ``f``:

    logit P(item i is of the class) = c + b logit p_i,     c such that the mean is expit(logit f + d)
    (d, log b) ~ t_4(mean, covariance)

``d`` is the error of the share of the class, ``b`` says how well the probabilities separate the items. Their
distribution was learned from real crowds with known truth (``benchmarks/expectations.py``, which also shows that the
intervals cover the truth on crowds that were not used for it). Every draw of ``(d, b)`` is a crowd like the real ones;
in each, the items of the class are drawn.

Three quarters of all draws have shared errors, one quarter independent ones; in each, recall, precision and
prevalence are counted, and intervals are quantiles of these counts: for each world, and for both together, which is
the expectation (:class:`ByWorld`). If an interval is too wide to be useful, the figure is unknown without an
audit. If the votes cannot be sampled, only the curve is used.

Everything is computed from counts of items by their probability, and by draw (:class:`ClassCounts`), which add up
over any split of the items: threads, files or machines. These are expectations, not guarantees: a crowd can be worse
than all crowds that were studied.

**For a recall target**: :func:`mass_by_bin` counts the items of the class in every bin of the probability, in
each draw of each world. Flagging the items of the bins from ``m`` upwards then has, in every draw, the recall
``mass[:, m:].sum(axis=1) / mass.sum(axis=1)``; take the median over the draws in ``.shared``,
``.independent`` or ``.pooled``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, added, finite_or_none, first_of_best, row_parts, sigmoid
from rarevote.crowd.words import Described, percent
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.sampled import N_DRAWS

BoolArray = NDArray[np.bool_]
#: errors of annotators: independent, or shared as in real crowds
World = Literal["independent", "shared"]

#: Share of intervals that should contain the truth.
COVERAGE = 0.9
#: An interval wider than this is not useful.
WIDEST = 0.75
#: Shown instead of a figure whose interval is too wide.
UNKNOWN = "unknown without an audit"

# Three times as many as draws of independent errors: three quarters of all.
_N_DRAWS = 3 * N_DRAWS
_FREEDOM = 4.0
_EDGE = 1e-3  # probabilities are kept this far from 0 and 1
_STEP = 0.1  # items whose logits round to the same multiple of this are in one bin
_MIDDLE = int(np.rint(np.log((1.0 - _EDGE) / _EDGE) / _STEP))
#: number of bins
N_BINS = 2 * _MIDDLE + 1
_MAX_STEPS, _TOLERANCE = 60, 1e-6


@dataclass(frozen=True)
class Curve:
    """How far probabilities are trusted: ``(d, log b) ~ t_4(mean, covariance)``.

    Attributes:
        mean: mean of ``d`` and ``log b``.
        covariance: variance of ``d``, covariance, variance of ``log b``.
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


#: for the rarest class, on the probabilities of the default method; learned from 60 real crowds
DEFAULT = Curve((-0.134, 0.141), (0.190, -0.046, 0.375))
# Learned from all 31 datasets, every source group with the same weight: benchmarks/expectations.py.
#: for the rarest class, on the probabilities of other methods
TEMPERED = Curve((-0.107, 0.0), (0.208, 0.001, 0.286))
#: for the label of every item, with a negligible slope
DEFAULT_LABELS = Curve((0.011, 0.0), (0.446, 0.0, 1e-9))
TEMPERED_LABELS = Curve((-0.249, 0.0), (0.565, 0.0, 1e-9))
#: for the label of every item if models cast most of the votes: in 9 real juries, far fewer are right than predicted
JURY_LABELS = Curve((-1.0, 0.0), (0.45, 0.0, 1e-9))


class Belief(NamedTuple):
    """How far the probabilities of a fit are trusted: for a class, and for labels."""

    of_class: Curve
    of_labels: Curve

    @classmethod
    def in_probabilities(cls, probabilities: Probabilities) -> Belief:
        """The curves for the method of these probabilities, and for juries of models."""
        of_class, of_labels = (DEFAULT, DEFAULT_LABELS) if probabilities.is_default else (TEMPERED, TEMPERED_LABELS)
        return cls(of_class, JURY_LABELS if probabilities.is_jury else of_labels)


@dataclass(frozen=True)
class Expected(Described):
    """An expected figure with its 90% interval; NaN if it is undefined.

    Attributes:
        value: the median over the draws of both worlds.
        low: lower end.
        high: upper end.
        worlds: the figure in each world that was drawn, "independent" and "shared"; empty for a figure of one world.
    """

    value: float
    low: float
    high: float
    worlds: Mapping[World, Expected] = field(default_factory=dict, compare=False)

    @property
    def is_told(self) -> bool:
        """Whether the interval is useful; if not, the figure is unknown without an audit."""
        return bool(self.high - self.low <= WIDEST)

    @property
    def description(self) -> str:
        """The figure as text.

        >>> Expected(0.9, 0.8, 0.95).description, Expected(0.5, 0.1, 0.9).description
        ('90% (80% to 95%)', 'unknown without an audit')
        """
        return UNKNOWN if self.is_unknown else self.figures

    @property
    def figures(self) -> str:
        """The figure with its interval as text, however wide it is."""
        return "-" if self.value != self.value else f"{percent(self.value)} ({self.percent_range})"

    @property
    def is_unknown(self) -> bool:
        """Whether the figure is defined, but cannot be estimated from the votes."""
        return self.value == self.value and not self.is_told

    @property
    def interval(self) -> list[float | None]:
        """Both ends of the interval for JSON."""
        return [finite_or_none(self.low), finite_or_none(self.high)]

    @property
    def percent_range(self) -> str:
        """Both ends of the interval as text."""
        return f"{percent(self.low)} to {percent(self.high)}"

    @property
    def rest(self) -> Expected:
        """One minus the figure."""
        worlds = {name: one.rest for name, one in self.worlds.items()}
        return Expected(1.0 - self.value, 1.0 - self.high, 1.0 - self.low, worlds)


NOTHING = Expected(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Expectations:
    """What to expect of the labels of one class.

    Attributes:
        name: the class.
        recall: share of the items of the class that have its label.
        precision: share of the items with its label that are of the class; NaN if no item has it.
        prevalence: share of the items that are of the class.
    """

    name: Any
    recall: Expected
    precision: Expected
    prevalence: Expected


#: each world as text, for the beginning of a sentence
IN_WORDS: Mapping[World, str] = {
    "independent": "if annotators err independently",
    "shared": "if they share errors as real crowds do",
}


class ByWorld(NamedTuple):
    """A value in the draws of each world, with the draws along the first axis.

    Attributes:
        shared: in draws with shared errors, as in real crowds.
        independent: in draws with independent errors; no rows if there are none.
    """

    shared: FloatArray
    independent: FloatArray

    def map(self, of_draws: Callable[[FloatArray], FloatArray]) -> ByWorld:
        """Apply a function to the draws of each world."""
        return ByWorld(of_draws(self.shared), of_draws(self.independent))

    @property
    def pooled(self) -> FloatArray:
        """All draws, three quarters of them with shared errors; only those if nothing else was drawn."""
        return np.concatenate([self.shared, self.independent])


class ClassCounts(NamedTuple):
    """Counts of items by the probability of a statement; they add up over any split of the items.

    Attributes:
        open: items for which it is not known, by bin of the probability and by kind, (N_BINS, n_kinds).
        known: items for which it is known to be true, by kind, (n_kinds).
        drawn: items for which it is true, including known ones, in every draw of independent errors, by kind,
            (n_draws, n_kinds); no rows if nothing was drawn.
    """

    open: IntArray
    known: IntArray
    drawn: IntArray


def bin_of(probability: FloatArray) -> IntArray:
    """The bin of each probability, (n)."""
    p = np.clip(probability, _EDGE, 1.0 - _EDGE)
    return np.rint(np.log(p / (1.0 - p)) / _STEP).astype(np.int64) + _MIDDLE


def logit_of(bins: IntArray) -> FloatArray:
    """The common log odds of the items in a bin."""
    return np.asarray((bins - _MIDDLE) * _STEP, dtype=np.float64)


def count_items(
    probability: FloatArray,
    is_true: BoolArray,
    known: BoolArray,
    kind: IntArray,
    n_kinds: int,
    drawn: BoolArray,
) -> ClassCounts:
    """Count items by the probability of a statement.

    Args:
        probability: that it is true, (n).
        is_true: whether it is true, for items for which that is known, (n).
        known: whether it is known for each item, (n).
        kind: kind of every item, (n).
        n_kinds: number of kinds.
        drawn: whether it is true in every draw of independent errors, (n_draws, n).
    """
    cell = bin_of(probability[~known]) * n_kinds + kind[~known]
    counted = np.bincount(cell, minlength=N_BINS * n_kinds).reshape(N_BINS, n_kinds)
    return ClassCounts(
        counted, np.bincount(kind[known & is_true], minlength=n_kinds), count_drawn(drawn, kind, n_kinds)
    )


def count_drawn(drawn: BoolArray, kind: IntArray, n_kinds: int) -> IntArray:
    """Number of items of each kind for which a statement is true, in every draw, (n_draws, n_kinds)."""
    found = np.empty((len(drawn), n_kinds), dtype=np.int64)
    for row, is_true in zip(found, drawn, strict=True):
        row[:] = np.bincount(kind[is_true], minlength=n_kinds)
    return found


def count_class(probabilities: Probabilities, number: int, flagged: BoolArray) -> ClassCounts:
    """Count the items by the probability of a class and by whether they are flagged."""
    draws = probabilities.independent.classes

    def some(part: slice) -> ClassCounts:
        p, gold, kind = probabilities.p[part, number], probabilities.gold[part], flagged[part].astype(np.int64)
        return count_items(p, gold == number, gold >= 0, kind, 2, np.asarray(draws[:, part] == number))

    return reduce(added, map(some, row_parts(len(flagged))))


def mass_by_bin(
    probabilities: Probabilities, number: int, some: BoolArray | None = None, *, curve: Curve | None = None
) -> ByWorld:
    """Number of items of a class in every bin of the probability, in each draw of each world, (n_draws, N_BINS).

    In draws of shared errors these are expected numbers; known items are in the first and the last bin.
    The draws of two calls are the same, so the result for some items can be divided by that for all items.

    Args:
        probabilities: probabilities of all items, and which are known.
        number: the class.
        some: which items count, (n); all by default.
        curve: how far the probabilities are trusted; by default, the curve learned from real crowds.
    """
    every, gold = bin_of(probabilities.p[:, number]), probabilities.gold
    chosen = np.ones(len(every), dtype=bool) if some is None else some
    curve = curve or Belief.in_probabilities(probabilities).of_class
    of_all = np.bincount(every[gold < 0], minlength=N_BINS)
    used = np.flatnonzero(of_all)
    rate = drawn_rates(
        logit_of(used), of_all[used], curve, np.random.default_rng(4), given_share(probabilities, number)
    )
    shared = np.zeros((len(rate), N_BINS))
    shared[:, used] = rate * np.bincount(every[chosen & (gold < 0)], minlength=N_BINS)[used]
    shared[:, -1] += (chosen & (gold == number)).sum()
    drawn = probabilities.independent.of_class(number) & chosen
    return ByWorld(shared, count_drawn(drawn, every, N_BINS).astype(np.float64))


def count_labels(probabilities: Probabilities, codes: IntArray) -> tuple[ClassCounts, int]:
    """Count the items with a label by its probability; also returns their number."""
    draws = probabilities.independent.classes

    def some(part: slice) -> ClassCounts:
        rows = part.start + np.flatnonzero(codes[part] >= 0)
        gold, own = probabilities.gold[rows], codes[rows]
        one_kind = np.zeros(rows.size, dtype=np.int64)
        drawn = np.asarray(draws[:, rows] == own)
        return count_items(probabilities.p[rows, own], gold == own, gold >= 0, one_kind, 1, drawn)

    return reduce(added, map(some, row_parts(len(codes)))), int((codes >= 0).sum())


def expectations_from(
    name: Any, counts: ClassCounts, n_flagged: int, n_items: int, curve: Curve, given: float | None = None
) -> Expectations:
    """What to expect of the labels of one class.

    Args:
        name: name of the class.
        counts: the items by probability of the class and by whether they are flagged (second column).
        n_flagged: number of items with its label.
        n_items: number of all items.
        curve: how far the probabilities are trusted.
        given: the share of the class, if it is known.
    """
    hits = drawn_counts(counts, curve, given)
    # The number of items of the class does not depend on the flags: drawn separately, it is the same for every rule.
    merged = ClassCounts(
        counts.open.sum(axis=1, keepdims=True), counts.known.sum(keepdims=True), counts.drawn.sum(axis=1, keepdims=True)
    )
    total = drawn_counts(merged, curve, given)
    found = hits.map(lambda of_kind: of_kind[:, 1])
    return Expectations(
        name,
        expected(found, hits.map(lambda of_kind: of_kind.sum(axis=1))),
        expected(found, found.map(lambda one: np.full(len(one), n_flagged))),
        expected(total.map(lambda one: one[:, 0]), total.map(lambda one: np.full(len(one), n_items))),
    )


def expectations(
    probabilities: Probabilities, codes: IntArray, number: int, *, curve: Curve | None = None
) -> Expectations:
    """What to expect of the labels of one class.

    Args:
        probabilities: probabilities of all items, and which are known.
        codes: class number of every item, -1 for no answer, (n).
        number: the class.
        curve: how far the probabilities are trusted; by default, the curve learned from real crowds.
    """
    flagged = codes == number
    return expectations_from(
        probabilities.classes[number],
        count_class(probabilities, number, flagged),
        int(flagged.sum()),
        len(probabilities),
        curve or Belief.in_probabilities(probabilities).of_class,
        given_share(probabilities, number),
    )


def majority_recall(probabilities: Probabilities, votes: FloatArray, number: int) -> Expected:
    """The recall of a class that a majority vote would have, in the same draws; ``votes`` are (n, K)."""
    gold = probabilities.gold
    by_votes = (first_of_best(votes) == number) & (votes[:, number] > 0)
    flagged = np.where(gold >= 0, gold == number, by_votes)
    codes = np.where(flagged, number, -1)
    return expectations(probabilities, codes, number).recall


def given_share(probabilities: Probabilities, number: int) -> float | None:
    """The share of a class, if it was given."""
    return float(probabilities.mean[number]) if probabilities.is_given else None


def expected_accuracy(probabilities: Probabilities, codes: IntArray, *, curve: Curve | None = None) -> Expected:
    """Share of the labels that are right; items without a label are left out."""
    counts, n_labels = count_labels(probabilities, codes)
    return accuracy_from(counts, n_labels, curve or Belief.in_probabilities(probabilities).of_labels)


def accuracy_from(counts: ClassCounts, n_labels: int, curve: Curve) -> Expected:
    """Share of ``n_labels`` labels that are right, from their counts by probability."""
    hits = drawn_counts(counts, curve).map(lambda one: one[:, 0])
    return expected(hits, hits.map(lambda one: np.full(len(one), n_labels)))


def believed(probabilities: Probabilities, number: int) -> FloatArray:
    """Probability that each item is of a class, corrected by what was learned from real crowds, (n).

    This is the median over the draws of both worlds, the same for all items of a bin; it never falls with the
    probability.
    """
    gold = probabilities.gold
    rows = np.flatnonzero(gold < 0)
    used, group, size = np.unique(bin_of(probabilities.p[rows, number]), return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    curve = Belief.in_probabilities(probabilities).of_class
    shared = drawn_rates(logit_of(used), size, curve, np.random.default_rng(4), given_share(probabilities, number))
    drawn = count_drawn(probabilities.independent.of_class(number)[:, rows], group, used.size)
    found = (gold == number).astype(np.float64)
    found[rows] = np.maximum.accumulate(np.median(ByWorld(shared, drawn / size).pooled, axis=0))[group]
    return np.asarray(found)


def drawn_counts(counts: ClassCounts, curve: Curve, given: float | None = None) -> ByWorld:
    """Items of each kind for which it is true, in every draw, (n_draws, n_kinds); the same draws at every call.

    Args:
        counts: the items.
        curve: how far the probabilities are trusted.
        given: the share of items for which it is true, if that is known.
    """
    rng = np.random.default_rng(4)
    used = np.flatnonzero(counts.open.sum(axis=1))
    of_kind = counts.open[used]
    rate = drawn_rates(logit_of(used), of_kind.sum(axis=1), curve, rng, given)
    hits = np.stack([rng.binomial(of_kind[:, k], rate).sum(axis=1) for k in range(of_kind.shape[1])], axis=1)
    return ByWorld(np.asarray(hits + counts.known, dtype=np.float64), counts.drawn.astype(np.float64))


def drawn_rates(
    logit: FloatArray, size: IntArray, curve: Curve, rng: np.random.Generator, given: float | None = None
) -> FloatArray:
    """Share of the items of each bin for which it is true, in every draw, (n_draws, n_bins)."""
    d, b = curve.draws(_N_DRAWS, rng)
    share = float(sigmoid(logit) @ size / max(size.sum(), 1)) if given is None else given
    share = min(max(share, _EDGE), 1.0 - _EDGE)
    return rates(logit, size, sigmoid(np.log(share / (1.0 - share)) + (d if given is None else 0.0 * d)), b)


def rates(logit: FloatArray, size: IntArray, share: FloatArray, slope: FloatArray) -> FloatArray:
    """Share of the items of each bin for which it is true, for every overall share and slope, (n_slopes, n_bins).

    Solves ``mean expit(c + slope logit) = share`` for ``c``.
    """
    if not size.size:
        return np.empty((len(slope), 0))
    weight = size / size.sum()
    tilted = slope[:, None] * logit
    # Newton's method, within shrinking bounds: the mean rate grows with c.
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


def expected(part: ByWorld, whole: ByWorld) -> Expected:
    """The expectation of a ratio, over the draws of both worlds and of each."""
    worlds: dict[World, Expected] = {}
    if len(part.independent):
        worlds["independent"] = quantiles(part.independent, whole.independent)
    worlds["shared"] = quantiles(part.shared, whole.shared)
    return replace(quantiles(part.pooled, whole.pooled), worlds=worlds)


def quantiles(part: FloatArray, whole: FloatArray) -> Expected:
    """Median and interval of a ratio over the draws in which it is defined."""
    seen = whole > 0
    if not seen.any():
        return NOTHING
    ratio = part[seen] / whole[seen]
    tail = (1.0 - COVERAGE) / 2
    low, middle, high = np.quantile(ratio, [tail, 0.5, 1.0 - tail]).tolist()
    return Expected(middle, low, high)
