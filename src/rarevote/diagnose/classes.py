"""The classes of a crowd: how many items each has, and whether a majority vote can find it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.expectations import Expectations
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.items import Items
from rarevote.diagnose.jury import JuryCondition, jury_condition
from rarevote.diagnose.workers import Workers


@dataclass(frozen=True, eq=False)
class Classes:
    """All classes; arrays by class, in sorted order.

    Attributes:
        names: as given.
        n_labelled: number of items with the label.
        n_majority: number of items to which a majority vote gives it.
        n_expected: expected number of items that truly have it.
        expected_low: lower end of the 90% interval.
        expected_high: upper end of the interval.
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
    items: Items, workers: Workers, names: NDArray[np.object_], expected: Sequence[Expectations], labels: IntArray
) -> Classes:
    """Describe the classes of a crowd; ``expected`` has their expectations, ``labels`` the labels of all items."""
    size, n_items = len(names), len(labels)
    share = np.array([(one.prevalence.value, one.prevalence.low, one.prevalence.high) for one in expected])
    return Classes(
        names=names,
        n_labelled=np.bincount(labels[labels != ABSTAINED], minlength=size),
        n_majority=np.bincount(items.majority, minlength=size),
        n_expected=n_items * share[:, 0],
        expected_low=n_items * share[:, 1],
        expected_high=n_items * share[:, 2],
        n_votes=items.votes.sum(axis=0),
        jury=jury_condition(workers.accuracy),
    )
