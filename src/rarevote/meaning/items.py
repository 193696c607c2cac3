"""What is known about every item and every class: labels, how sure they are, how hard items are, what classes lose.

There are three piles of items: surely of the class, to be looked at, surely not. Sorted by how far their probabilities
are believed (:func:`rarevote.decide.expectations.believed`), the items at the top of which nine in ten are expected to
be of the class are *surely* so; those at the bottom that together hold a tenth of the class are *surely not*; what is
between is worth a look. Items that are equally probable are never separated. This is what to expect of a crowd like
other real ones; only an audit can prove it of this one.

Of a class: how many items, whether a majority vote can find it, what finding more costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, first_of_best, sigmoid
from rarevote.decide.expectations import Expectations, Expected
from rarevote.decide.rules import ABSTAINED
from rarevote.meaning.jury import JuryCondition, jury_condition
from rarevote.meaning.workers import Workers, logit
from rarevote.methods.base import Estimator
from rarevote.methods.evidence import WeighsVotes


@dataclass(frozen=True, eq=False)
class Items:
    """All items; arrays by item, or by item and class, in the order of the crowd.

    Attributes:
        names: as given.
        label: the class number that was decided on, or -1 for no answer.
        majority: the class number of a plain majority vote, ties to the first class.
        votes: votes for every class.
        probabilities: of every class, to be read as such.
        confidence: probability of the label, or of the likeliest class where there is no answer.
        entropy: of the probabilities, 0 (certain) to 1 (all classes alike).
        disputed: entropy of the vote split, 0 (unanimous) to 1 (votes spread evenly over all classes).
        difficulty: for items of its label, against an item of average difficulty, on the logit scale; None where the
            method knows no difficulty.
        typical_accuracy: probability that an average vote on the item is right, if its label is: the accuracy of the
            average vote on that class, moved by the difficulty; None likewise.
        is_known: whether the label was given as gold.
    """

    names: NDArray[np.object_]
    label: IntArray
    majority: IntArray
    votes: IntArray
    probabilities: FloatArray
    confidence: FloatArray
    entropy: FloatArray
    disputed: FloatArray
    difficulty: FloatArray | None
    typical_accuracy: FloatArray | None
    is_known: NDArray[np.bool_]

    @property
    def overruled(self) -> NDArray[np.bool_]:
        """Where the label is not that of the majority vote; no answer overrules nothing."""
        return np.asarray((self.label != self.majority) & (self.label != ABSTAINED))

    def most_telling(self, limit: int) -> IntArray:
        """Numbers of the items to look at first, the least certain ones leading.

        Items are ranked by uncertainty, by dispute and by difficulty; one that stands high in any of the three is
        taken before one that stands high in none.
        """
        measures = [self.entropy, self.disputed]
        if self.typical_accuracy is not None:
            measures.append(-self.typical_accuracy)
        place = np.full(len(self.label), len(self.label))
        for measure in measures:
            rank = np.empty(len(self.label), dtype=np.int64)
            rank[np.argsort(-measure, kind="stable")] = np.arange(len(self.label))
            place = np.minimum(place, rank)
        chosen = np.argsort(place, kind="stable")[:limit]
        return np.asarray(chosen[np.lexsort((chosen, -self.disputed[chosen], -self.entropy[chosen]))])


def describe_items(
    estimator: Estimator,
    labels: IntArray,
    probabilities: FloatArray,
    *,
    typical_accuracy: FloatArray,
    is_known: NDArray[np.bool_],
) -> Items:
    """Describe the items of a fitted crowd.

    Args:
        estimator: the fitted method, for its difficulties.
        labels: class number that each task was given, or -1, (n_tasks).
        probabilities: of every class per task, (n_tasks, n_classes).
        typical_accuracy: of the average vote on each class, (n_classes).
        is_known: which labels were given as gold, (n_tasks).
    """
    crowd = estimator.annotations_
    votes = crowd.votes()
    # Without an answer, how sure and how hard is asked of the likeliest class.
    meant = np.where(labels == ABSTAINED, first_of_best(probabilities), labels)
    difficulty = _difficulty(estimator, meant)
    return Items(
        names=crowd.task_names(),
        label=labels,
        majority=first_of_best(votes),
        votes=votes.astype(np.int64),
        probabilities=probabilities,
        confidence=probabilities[np.arange(len(meant)), meant],
        entropy=relative_entropy(probabilities),
        disputed=relative_entropy(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)),
        difficulty=difficulty,
        typical_accuracy=None if difficulty is None else sigmoid(logit(typical_accuracy)[meant] - difficulty),
        is_known=is_known,
    )


def relative_entropy(shares: FloatArray) -> FloatArray:
    """Entropy of each row as a share of the largest possible, ``-sum p log p / log K``; 0 if there is one class."""
    if shares.shape[1] < 2:
        return np.zeros(len(shares))
    # log 1 in place of log 0: the term is zero either way.
    logs = np.log(np.where(shares > 0, shares, 1.0))
    # Rounding may leave a certain row a hair below zero.
    return np.asarray(np.maximum(-(shares * logs).sum(axis=1) / np.log(shares.shape[1]), 0.0))


def _difficulty(estimator: Estimator, labels: IntArray) -> FloatArray | None:
    """Difficulty of each item for its label, against an average one; None where the method has none."""
    difficulty = estimator.item_difficulty_ if isinstance(estimator, WeighsVotes) else None
    if difficulty is None:
        return None
    per_class = np.broadcast_to(difficulty.reshape(len(labels), -1), estimator.posterior_.shape)
    return np.array(per_class[np.arange(len(labels)), labels])


#: share of the first pile that is expected to be of the class
SURE = 0.9
#: share of the class that is expected in the last pile
MISSED = 0.1
_ROUNDING = 1e-9


class Pile(IntEnum):
    """Where an item lies."""

    SURELY_NOT = 0
    LOOK = 1
    SURELY = 2


@dataclass(frozen=True, eq=False)
class Piles:
    """The piles of one class.

    Attributes:
        pile: of every item, a :class:`Pile`, (n).
        n_items: items in each pile, (3).
        expected: how many of these are expected to be of the class, (3).
    """

    pile: IntArray
    n_items: IntArray
    expected: FloatArray


def make_piles(believed: FloatArray) -> Piles:
    """Sort items into piles.

    Args:
        believed: probability that each item is of the class, (n).

    Example:
        >>> make_piles(np.array([0.99, 0.97, 0.5, 0.3, 0.05, 0.05, 0.05])).pile.tolist()
        [2, 2, 1, 1, 0, 0, 0]
    """
    order = np.argsort(-believed, kind="stable")
    ordered = believed[order]
    # After how many items a pile may end: never between equally probable ones.
    cuts = np.flatnonzero(np.concatenate([[True], np.diff(ordered) != 0, [True]])[: ordered.size + 1])
    above = np.append(0.0, np.cumsum(ordered))[cuts]
    n_sure = cuts[np.flatnonzero(above >= SURE * cuts - _ROUNDING)[-1]]
    first_not = cuts[np.flatnonzero(above[-1] - above <= MISSED * above[-1] + _ROUNDING)[0]]
    first_not = max(first_not, n_sure)
    sizes = [n_sure, first_not - n_sure, ordered.size - first_not]
    pile = np.empty(ordered.size, dtype=np.int64)
    pile[order] = np.repeat([Pile.SURELY, Pile.LOOK, Pile.SURELY_NOT], sizes)
    expected = np.bincount(pile, weights=believed, minlength=3).astype(np.float64)
    return Piles(pile, np.bincount(pile, minlength=3), expected)


# A curve of so many points looks smooth and weighs little.
_CURVE_POINTS = 200


@dataclass(frozen=True, eq=False)
class Classes:
    """All classes; arrays by class, in sorted order.

    Attributes:
        names: as given.
        n_labelled: items that got the class.
        n_majority: items that a majority vote gives it.
        n_expected: items that truly have it, as expected.
        expected_low: lower end of its 90% interval.
        expected_high: its upper end.
        n_votes: votes for the class.
        jury: whether a majority vote of this crowd can recover the class.
    """

    names: NDArray[np.object_]
    n_labelled: IntArray
    n_majority: IntArray
    n_expected: FloatArray
    expected_low: FloatArray
    expected_high: FloatArray
    n_votes: IntArray
    jury: JuryCondition


def describe_classes(
    items: Items, workers: Workers, names: NDArray[np.object_], expected: Sequence[Expectations], n_items: int
) -> Classes:
    """Describe the classes of a crowd; ``expected`` says what to expect of each, of all ``n_items`` items."""
    size = len(names)
    share = np.array([(one.prevalence.value, one.prevalence.low, one.prevalence.high) for one in expected])
    return Classes(
        names=names,
        n_labelled=np.bincount(items.label[items.label != ABSTAINED], minlength=size),
        n_majority=np.bincount(items.majority, minlength=size),
        n_expected=n_items * share[:, 0],
        expected_low=n_items * share[:, 1],
        expected_high=n_items * share[:, 2],
        n_votes=items.votes.sum(axis=0),
        jury=jury_condition(workers.accuracy),
    )


@dataclass(frozen=True)
class Point:
    """A set of flagged items: how many, the share of the class that is in it, the share of it that has the class.

    Recall is nan if nothing has the class, precision if nothing is flagged.
    """

    n_flagged: int
    recall: float
    precision: float


@dataclass(frozen=True, eq=False)
class TradeOff:
    """What flagging fewer or more items as one class gives, the most probable ones first.

    Attributes:
        class_code: the class.
        threshold: items with at least this probability of the class are flagged.
        n_flagged: their number.
        recall: share of the class that is flagged.
        precision: share of the flagged items that have the class.
        chosen: the items that got the label.
        majority: the items that a majority vote would have given it.
        from_truth: whether recall and precision were counted on the truth, or else expected.
    """

    class_code: int
    threshold: FloatArray
    n_flagged: IntArray
    recall: FloatArray
    precision: FloatArray
    chosen: Point
    majority: Point
    from_truth: bool


def expected_trade_off(
    items: Items, class_code: int, believed: FloatArray, expected: Expectations, of_majority: Expected
) -> TradeOff:
    """The trade-off of one class as it is expected.

    Args:
        believed: probability that each item is of the class, as far as it is believed, (n).
        expected: of the labels as they are, which the curve's point repeats: a figure is the same wherever it stands.
        of_majority: the recall expected of a majority vote.
    """
    curve = trade_off(items, class_code, believed, np.arange(len(items.label)))
    chosen = replace(curve.chosen, recall=expected.recall.value, precision=expected.precision.value)
    majority = replace(curve.majority, recall=of_majority.value)
    return replace(curve, chosen=chosen, majority=majority, from_truth=False)


def trade_off(items: Items, class_code: int, is_class: FloatArray, known: IntArray, n_unvoted: int = 0) -> TradeOff:
    """The trade-off of one class, counted on the truth.

    Args:
        is_class: 1 for items that have the class and 0 for the others, (n_known).
        known: numbers of the items that ``is_class`` speaks of.
        n_unvoted: items without votes that have the class: no decision finds them.
    """
    probability = items.probabilities[known, class_code]
    mass = is_class
    order = np.argsort(-probability, kind="stable")
    found, total = np.cumsum(mass[order]), float(mass.sum()) + n_unvoted
    count = np.arange(1, len(order) + 1)
    # Items of equal probability stand or fall together: only the last of them is a point of the curve.
    threshold = probability[order]
    ends = np.flatnonzero(np.append(threshold[:-1] > threshold[1:], True))
    recall = found[ends] / total if total > 0 else np.full(len(ends), np.nan)
    ends = ends[_evenly(recall)]
    return TradeOff(
        class_code=class_code,
        threshold=threshold[ends],
        n_flagged=count[ends],
        recall=found[ends] / total if total > 0 else np.full(len(ends), np.nan),
        precision=found[ends] / count[ends],
        chosen=_point(items.label[known] == class_code, mass, total),
        majority=_point(items.majority[known] == class_code, mass, total),
        from_truth=True,
    )


def _evenly(recall: FloatArray) -> IntArray:
    """Numbers of points that stand about evenly along the recall, the first and the last among them."""
    if len(recall) <= _CURVE_POINTS or not np.isfinite(recall).all():
        return np.arange(len(recall))[:_CURVE_POINTS]
    wanted = np.linspace(recall[0], recall[-1], _CURVE_POINTS)
    return np.unique(np.minimum(np.searchsorted(recall, wanted), len(recall) - 1))


def _point(flagged: NDArray[np.bool_], mass: FloatArray, total: float) -> Point:
    count, found = int(flagged.sum()), float(mass[flagged].sum())
    return Point(count, found / total if total > 0 else float("nan"), found / count if count else float("nan"))


@dataclass(frozen=True, eq=False)
class Overruled:
    """Items whose label is not that of the majority vote, grouped by the move; the largest group first.

    Attributes:
        items: numbers of all of them.
        majority: class that the majority vote gives, (n_moves).
        label: class that they got instead, (n_moves).
        count: how many moved so, (n_moves).
        expected: how many of these truly have the new label, as far as probabilities are to be believed; nan for a
            class of which that was not asked, (n_moves).
    """

    items: IntArray
    majority: IntArray
    label: IntArray
    count: IntArray
    expected: FloatArray


def describe_overruled(items: Items, believed: Mapping[int, FloatArray]) -> Overruled:
    """Count the items on which the result and the majority vote differ.

    Args:
        believed: probability of some classes, (n) each.
    """
    numbers = np.flatnonzero(items.overruled)
    # Pairs rather than a square table: there may be thousands of classes.
    pairs, group = np.unique(
        np.column_stack([items.majority[numbers], items.label[numbers]]), axis=0, return_inverse=True
    )
    group = group.reshape(-1)
    count = np.bincount(group, minlength=len(pairs))
    largest_first = np.argsort(-count, kind="stable")
    unknown = np.full(len(items.label), np.nan)
    right = np.array([believed.get(int(items.label[i]), unknown)[i] for i in numbers])
    expected = np.bincount(group, weights=right, minlength=len(pairs)).astype(np.float64)
    return Overruled(
        items=numbers,
        majority=pairs[largest_first, 0],
        label=pairs[largest_first, 1],
        count=count[largest_first],
        expected=expected[largest_first],
    )
