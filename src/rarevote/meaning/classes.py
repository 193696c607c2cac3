"""What is known about every class: how many items, whether a majority vote can find it, what finding more costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.expect import Expectations
from rarevote.meaning.items import Items
from rarevote.meaning.jury import JuryCondition, jury_condition
from rarevote.meaning.workers import Workers

# A curve of so many points looks smooth and weighs little.
_CURVE_POINTS = 200


@dataclass(frozen=True, eq=False)
class Classes:
    """All classes; arrays by class, in sorted order.

    Attributes:
        names: as given.
        n_labelled: items that got the class.
        n_majority: items that a majority vote gives it.
        n_expected: items that truly have it, as expected; nan where that was not asked.
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
    items: Items, workers: Workers, calibration: CalibratedPosterior, expected: Mapping[int, Expectations]
) -> Classes:
    """Describe the classes of a crowd; ``expected`` says what to expect of some of them."""
    size, n_items = len(calibration.classes), len(items.label)
    share = np.full((size, 3), np.nan)
    for k, one in expected.items():
        share[k] = one.prevalence.value, one.prevalence.low, one.prevalence.high
    return Classes(
        names=calibration.classes,
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


def expected_trade_off(items: Items, class_code: int, believed: FloatArray, expected: Expectations) -> TradeOff:
    """The trade-off of one class as it is expected.

    Args:
        items: all items.
        class_code: the class.
        believed: probability that each item is of the class, as far as it is to be believed, (n).
        expected: of the labels as they are, which the two points repeat: a figure is the same wherever it is told.
    """
    curve = trade_off(items, class_code, believed, np.arange(len(items.label)))
    chosen = replace(curve.chosen, recall=expected.recall.value, precision=expected.precision.value)
    majority = replace(curve.majority, recall=expected.majority_recall.value)
    return replace(curve, chosen=chosen, majority=majority, from_truth=False)


def trade_off(items: Items, class_code: int, is_class: FloatArray, known: IntArray) -> TradeOff:
    """The trade-off of one class, counted on the truth.

    Args:
        items: all items.
        class_code: the class.
        is_class: 1 for items that have the class and 0 for the others, (n_known).
        known: numbers of the items that ``is_class`` speaks of.
    """
    probability = items.probabilities[known, class_code]
    mass = is_class
    order = np.argsort(-probability, kind="stable")
    found, total = np.cumsum(mass[order]), float(mass.sum())
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
        items: all items.
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
