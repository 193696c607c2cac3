"""The trade-off of a class: recall and precision for fewer or more flagged items."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.expectations import Expectations, Expected
from rarevote.diagnose.items import Items

# A curve with this many points looks smooth and takes little space.
_CURVE_POINTS = 200


@dataclass(frozen=True)
class Point:
    """A set of flagged items: its size, recall and precision for the class.

    Recall is NaN if no item has the class, precision if no item is flagged.
    """

    n_flagged: int
    recall: float
    precision: float


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Recall and precision of one class for fewer or more flagged items, the most probable first.

    Attributes:
        class_code: the class.
        threshold: items with at least this probability of the class are flagged.
        n_flagged: number of flagged items.
        recall: share of the class that is flagged.
        precision: share of the flagged items that have the class.
        chosen: the items with the label.
        majority: the items to which a majority vote gives it.
        from_truth: whether recall and precision were counted with the truth (or are expected).
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
    """The expected trade-off of one class.

    Args:
        believed: corrected probability that each item is of the class, (n).
        expected: expectations of the current labels, shown at their point: a figure must be the same everywhere.
        of_majority: the expected recall of a majority vote.
    """
    curve = trade_off(items, class_code, believed, np.arange(len(items.label)))
    chosen = replace(curve.chosen, recall=expected.recall.value, precision=expected.precision.value)
    majority = replace(curve.majority, recall=of_majority.value)
    return replace(curve, chosen=chosen, majority=majority, from_truth=False)


def trade_off(items: Items, class_code: int, is_class: FloatArray, known: IntArray, n_unvoted: int = 0) -> TradeOff:
    """The trade-off of one class, counted with the truth.

    Args:
        is_class: 1 for items that have the class and 0 for the others, (n_known).
        known: numbers of the items in ``is_class``.
        n_unvoted: number of items without votes that have the class: no decision finds them.
    """
    probability = items.probabilities[known, class_code]
    mass = is_class
    order = np.argsort(-probability, kind="stable")
    found, total = np.cumsum(mass[order]), float(mass.sum()) + n_unvoted
    count = np.arange(1, len(order) + 1)
    # Items of equal probability are flagged together: only the last of them is a point of the curve.
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
    """Numbers of points that are about evenly spaced along the recall, including the first and the last."""
    if len(recall) <= _CURVE_POINTS or not np.isfinite(recall).all():
        return np.arange(len(recall))[:_CURVE_POINTS]
    wanted = np.linspace(recall[0], recall[-1], _CURVE_POINTS)
    return np.unique(np.minimum(np.searchsorted(recall, wanted), len(recall) - 1))


def _point(flagged: NDArray[np.bool_], mass: FloatArray, total: float) -> Point:
    count, found = int(flagged.sum()), float(mass[flagged].sum())
    return Point(count, found / total if total > 0 else float("nan"), found / count if count else float("nan"))
