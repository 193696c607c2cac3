"""The trade-off of a class: what flagging fewer or more items gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.expectations import Expectations, Expected
from rarevote.diagnose.items import Items

# A curve of so many points looks smooth and weighs little.
_CURVE_POINTS = 200


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
