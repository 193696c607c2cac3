"""What to expect of labels: recall, precision and prevalence of a class, and the accuracy of all labels.

Votes cannot prove a recall, and two worlds explain them. In the one, annotators err *independently* of one another: a
sampler draws the true class of every item (:mod:`rarevote.decide.sampled`). In the other they *share* misconceptions,
as people in real crowds do, and votes cannot show that: probabilities that take every vote at its word are too sure,
and no probability says how many items of a class there really are. So what to expect there is read off a curve that may
be flatter, and higher or lower, than the probabilities ``p_i`` of the class, whose mean is ``f``:

    logit P(item i is of the class) = c + b logit p_i,     c such that the mean is expit(logit f + d)
    (d, log b) ~ t_4(mean, covariance)

``d`` says how far the share of the class is off, ``b`` how well the probabilities separate the items. Their
distribution was learnt from real crowds with known truth (``benchmarks/expectations.py``, which also shows that the
intervals cover on crowds that had no part in it). Every draw of ``(d, b)`` is a crowd like the real ones; in each, the
items of the class are drawn.

Three quarters of all draws are of shared errors, one quarter of independent ones; in each, recall, precision and
prevalence are counted, and intervals are quantiles of these counts: of each world, and of both together, which is what
is expected (:class:`ByWorld`). Where an interval is so wide that it says nothing, the figure is unknown without an
audit. Where the votes cannot be sampled, the curve stands alone.

All of it is computed from counts of items by how probable they are, and by draw (:class:`ClassCounts`), which add up
over any split of the items: threads, files or machines. These are expectations, never promises: a crowd may be worse
than all that were seen.

**For a recall target**: :func:`mass_by_bin` says how many items of every bin of the probability are of the class, in
each draw of each world. Flagging the items of the bins from ``m`` on upwards then has, in every draw, the recall
``mass[:, m:].sum(axis=1) / mass.sum(axis=1)``; ``.shared``, ``.independent`` and ``.pooled`` are the draws to take the
median over.
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
#: how annotators err: independently of one another, or sharing errors as in real crowds
World = Literal["independent", "shared"]

#: Share of intervals that should contain the truth.
COVERAGE = 0.9
#: An interval wider than this says nothing.
WIDEST = 0.75
#: What stands in place of a figure whose interval says nothing.
UNKNOWN = "unknown without an audit"

# Three times as many as those of independent errors: three quarters of all.
_N_DRAWS = 3 * N_DRAWS
_FREEDOM = 4.0
_EDGE = 1e-3  # no vote is worth more than this
_STEP = 0.1  # items whose logits round to the same multiple of this share a probability
_MIDDLE = int(np.rint(np.log((1.0 - _EDGE) / _EDGE) / _STEP))
#: how many different probabilities there are
N_BINS = 2 * _MIDDLE + 1
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


#: for the rarest class, on the probabilities of the default method; learnt on 60 real crowds
DEFAULT = Curve((-0.134, 0.141), (0.190, -0.046, 0.375))
# Learnt on all 31 datasets, every source group with the same weight: benchmarks/expectations.py.
#: for the rarest class, on those of other methods
TEMPERED = Curve((-0.107, 0.0), (0.208, 0.001, 0.286))
#: for the label of every item, which has no slope to speak of
DEFAULT_LABELS = Curve((0.011, 0.0), (0.446, 0.0, 1e-9))
TEMPERED_LABELS = Curve((-0.249, 0.0), (0.565, 0.0, 1e-9))
#: for the label of every item where models cast most of the votes: on 9 real juries, far fewer are right than they say
JURY_LABELS = Curve((-1.0, 0.0), (0.45, 0.0, 1e-9))


class Belief(NamedTuple):
    """How far the probabilities of a fit are believed: of a class, and of labels."""

    of_class: Curve
    of_labels: Curve

    @classmethod
    def in_probabilities(cls, probabilities: Probabilities) -> Belief:
        """As learnt for the method that they are of, and for juries of models."""
        of_class, of_labels = (DEFAULT, DEFAULT_LABELS) if probabilities.is_default else (TEMPERED, TEMPERED_LABELS)
        return cls(of_class, JURY_LABELS if probabilities.is_jury else of_labels)


@dataclass(frozen=True)
class Expected(Described):
    """A figure that is expected, with its 90% interval; NaN where it is undefined.

    Attributes:
        value: the median over the draws of both worlds.
        low: lower end.
        high: upper end.
        worlds: the same in each world that was drawn, "independent" and "shared"; empty for a figure of one world.
    """

    value: float
    low: float
    high: float
    worlds: Mapping[World, Expected] = field(default_factory=dict, compare=False)

    @property
    def is_told(self) -> bool:
        """Whether the interval says anything; if not, the figure is unknown without an audit."""
        return bool(self.high - self.low <= WIDEST)

    @property
    def description(self) -> str:
        """The figure for a person.

        >>> Expected(0.9, 0.8, 0.95).description, Expected(0.5, 0.1, 0.9).description
        ('90% (80% to 95%)', 'unknown without an audit')
        """
        return UNKNOWN if self.is_unknown else self.figures

    @property
    def figures(self) -> str:
        """The figure with its interval, however wide that is."""
        return "-" if self.value != self.value else f"{percent(self.value)} ({self.percent_range})"

    @property
    def is_unknown(self) -> bool:
        """Whether there is a figure, but one that the votes do not show."""
        return self.value == self.value and not self.is_told

    @property
    def interval(self) -> list[float | None]:
        """Both ends for JSON."""
        return [finite_or_none(self.low), finite_or_none(self.high)]

    @property
    def percent_range(self) -> str:
        """Both ends of the interval for a person."""
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
        recall: share of the items of the class that got its label.
        precision: share of the items with its label that are of the class; NaN if no item got it.
        prevalence: share of the items that are of the class.
    """

    name: Any
    recall: Expected
    precision: Expected
    prevalence: Expected


#: each world in words, for the beginning of a sentence
IN_WORDS: Mapping[World, str] = {
    "independent": "if annotators err independently",
    "shared": "if they share errors as real crowds do",
}


class ByWorld(NamedTuple):
    """Something in the draws of each world, with the draws along the first axis.

    Attributes:
        shared: in draws of crowds that share errors, as real ones do.
        independent: in draws of annotators who err independently; no rows where there are none.
    """

    shared: FloatArray
    independent: FloatArray

    def map(self, of_draws: Callable[[FloatArray], FloatArray]) -> ByWorld:
        """The same function of the draws of each."""
        return ByWorld(of_draws(self.shared), of_draws(self.independent))

    @property
    def pooled(self) -> FloatArray:
        """In all draws, three quarters of them of shared errors; where nothing else was drawn, in those alone."""
        return np.concatenate([self.shared, self.independent])


class ClassCounts(NamedTuple):
    """Items by how probable something is; they add up over any split of the items.

    Attributes:
        open: items of which it is not known, by bin of the probability and by kind, (N_BINS, n_kinds).
        known: items of which it is known to be true, by kind, (n_kinds).
        drawn: items of which it is true, known ones included, in every draw of independent errors, by kind,
            (n_draws, n_kinds); no rows where nothing was drawn.
    """

    open: IntArray
    known: IntArray
    drawn: IntArray


def bin_of(probability: FloatArray) -> IntArray:
    """The bin that each probability falls into, (n)."""
    p = np.clip(probability, _EDGE, 1.0 - _EDGE)
    return np.rint(np.log(p / (1.0 - p)) / _STEP).astype(np.int64) + _MIDDLE


def logit_of(bins: IntArray) -> FloatArray:
    """The log odds that the items of a bin share."""
    return np.asarray((bins - _MIDDLE) * _STEP, dtype=np.float64)


def count_items(
    probability: FloatArray,
    is_true: BoolArray,
    known: BoolArray,
    kind: IntArray,
    n_kinds: int,
    drawn: BoolArray,
) -> ClassCounts:
    """Count items by how probable something is.

    Args:
        probability: that it is true, (n).
        is_true: whether it is, of items of which that is known, (n).
        known: which items those are, (n).
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
    """Items of each kind of which something is true, in every draw, (n_draws, n_kinds)."""
    found = np.empty((len(drawn), n_kinds), dtype=np.int64)
    for row, is_true in zip(found, drawn, strict=True):
        row[:] = np.bincount(kind[is_true], minlength=n_kinds)
    return found


def count_class(probabilities: Probabilities, number: int, flagged: BoolArray) -> ClassCounts:
    """Count the items by how probable a class is and by whether they are flagged."""
    draws = probabilities.independent.classes

    def some(part: slice) -> ClassCounts:
        p, gold, kind = probabilities.p[part, number], probabilities.gold[part], flagged[part].astype(np.int64)
        return count_items(p, gold == number, gold >= 0, kind, 2, np.asarray(draws[:, part] == number))

    return reduce(added, map(some, row_parts(len(flagged))))


def mass_by_bin(
    probabilities: Probabilities, number: int, some: BoolArray | None = None, *, curve: Curve | None = None
) -> ByWorld:
    """How many items of every bin of the probability are of a class, in each draw of each world, (n_draws, N_BINS).

    In draws of shared errors these are expected numbers; known items are in the first and the last bin.
    The draws of two calls are the same, so that those of some items can be divided by those of all.

    Args:
        probabilities: of all items, and which are known.
        number: the class.
        some: which items count, (n); all if not given.
        curve: how far the probabilities are believed; what was learnt from real crowds if not given.
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
    """Count the items with a label by how probable it is; and how many those are."""
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
        name: of the class.
        counts: the items by how probable the class is and by whether they are flagged (second column).
        n_flagged: items that got its label.
        n_items: all items.
        curve: how far the probabilities are believed.
        given: the share of the class, where that is known.
    """
    hits = drawn_counts(counts, curve, given)
    # How many items are of the class does not depend on which are flagged: drawn apart, it is the same for every rule.
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
        probabilities: of all items, and which are known.
        codes: class number of every item, -1 for no answer, (n).
        number: the class.
        curve: how far the probabilities are believed; what was learnt from real crowds if not given.
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
    """The recall of a class that a majority vote would have, by the same draws; ``votes`` are (n, K)."""
    gold = probabilities.gold
    by_votes = (first_of_best(votes) == number) & (votes[:, number] > 0)
    flagged = np.where(gold >= 0, gold == number, by_votes)
    codes = np.where(flagged, number, -1)
    return expectations(probabilities, codes, number).recall


def given_share(probabilities: Probabilities, number: int) -> float | None:
    """The share of a class, where it was given."""
    return float(probabilities.mean[number]) if probabilities.is_given else None


def expected_accuracy(probabilities: Probabilities, codes: IntArray, *, curve: Curve | None = None) -> Expected:
    """Share of the labels that are right, items without one left out."""
    counts, n_labels = count_labels(probabilities, codes)
    return accuracy_from(counts, n_labels, curve or Belief.in_probabilities(probabilities).of_labels)


def accuracy_from(counts: ClassCounts, n_labels: int, curve: Curve) -> Expected:
    """Share of ``n_labels`` labels that are right, from their counts by how probable they are."""
    hits = drawn_counts(counts, curve).map(lambda one: one[:, 0])
    return expected(hits, hits.map(lambda one: np.full(len(one), n_labels)))


def believed(probabilities: Probabilities, number: int) -> FloatArray:
    """Probability that each item is of a class, as far as probabilities of real crowds are believed, (n).

    The median over the draws of both worlds, for all items of a bin alike; more probable items are never believed less.
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
    """How many items of each kind it is true of, in every draw, (n_draws, n_kinds); the same draws at every call.

    Args:
        counts: the items.
        curve: how far the probabilities are believed.
        given: the share of items that it is true of, where that is known.
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
    """Share of the items of each bin that it is true of, in every draw, (n_draws, n_bins)."""
    d, b = curve.draws(_N_DRAWS, rng)
    share = float(sigmoid(logit) @ size / max(size.sum(), 1)) if given is None else given
    share = min(max(share, _EDGE), 1.0 - _EDGE)
    return rates(logit, size, sigmoid(np.log(share / (1.0 - share)) + (d if given is None else 0.0 * d)), b)


def rates(logit: FloatArray, size: IntArray, share: FloatArray, slope: FloatArray) -> FloatArray:
    """Share of the items of each bin that it is true of, for every share in all and every slope, (n_slopes, n_bins).

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


def expected(part: ByWorld, whole: ByWorld) -> Expected:
    """What to expect of a ratio, over the draws of both worlds and of each."""
    worlds: dict[World, Expected] = {}
    if len(part.independent):
        worlds["independent"] = quantiles(part.independent, whole.independent)
    worlds["shared"] = quantiles(part.shared, whole.shared)
    return replace(quantiles(part.pooled, whole.pooled), worlds=worlds)


def quantiles(part: FloatArray, whole: FloatArray) -> Expected:
    """Median and ends of a ratio over the draws in which it is defined."""
    seen = whole > 0
    if not seen.any():
        return NOTHING
    ratio = part[seen] / whole[seen]
    tail = (1.0 - COVERAGE) / 2
    low, middle, high = np.quantile(ratio, [tail, 0.5, 1.0 - tail]).tolist()
    return Expected(middle, low, high)
