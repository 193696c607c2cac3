"""The piles of a result: items worth a review, and items to accept as labelled.

The worth of a review is the fall of the item's expected cost once its class is known
(:func:`rarevote.decide.review.review_gains`): the order of the piles is the order of a review list. A review is worth
its cost if its worth is

- more than that of a random item, which is the mean, and
- at least a tenth of the cheapest mistake: with equal costs, it changes at least one label in ten.

The pile ends where the next review is no longer worth its cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray

#: a worthwhile review changes at least this share of the labels, if all mistakes cost the same
PAYS = 0.1
#: a label of this probability can be accepted without a review
SURE = 0.9
# If all worths are equal, none is above their mean, whatever the rounding.
_ROUNDING = 1e-9


class Pile(IntEnum):
    """The pile of an item."""

    NOT_FLAGGED = 0
    LOOK = 1
    FLAGGED = 2


@dataclass(frozen=True, eq=False)
class Piles:
    """The piles of a result; arrays by item, those with votes first.

    Attributes:
        pile: the :class:`Pile` of every item, (n).
        worth: by how much a review of the item lowers the expected cost, (n).
        n_items: number of items in each pile, (3).
        least: probability of the least probable label in each pile, NaN for an empty one, (3).
        most: the same for the most probable label, (3).
        n_sure: number of items whose label has a probability of at least :data:`SURE`.
    """

    pile: IntArray
    worth: FloatArray
    n_items: IntArray
    least: FloatArray
    most: FloatArray
    n_sure: int

    @property
    def n_look(self) -> int:
        """Number of items that are worth a review."""
        return int(self.n_items[Pile.LOOK])

    @property
    def by_worth(self) -> IntArray:
        """Numbers of the items, those most worth a review first; ties keep their order."""
        return np.argsort(-self.worth, kind="stable")


def make_piles(
    worth: FloatArray, flagged: NDArray[np.bool_], confidence: FloatArray, *, cheapest: float = 1.0
) -> Piles:
    """Sort items into piles.

    Args:
        worth: by how much a review of each item lowers the expected cost, (n).
        flagged: items of the class that matters, by the decision, (n).
        confidence: probability of each label, (n).
        cheapest: cost of the cheapest mistake.

    Example:
        >>> confidence = np.array([0.99, 0.97, 0.5, 0.7, 0.95, 0.95, 0.95])
        >>> flagged = np.array([True, True, True, False, False, False, False])
        >>> make_piles(1 - confidence, flagged, confidence).pile.tolist()
        [2, 2, 1, 1, 0, 0, 0]
    """
    pile = np.where(flagged, Pile.FLAGGED, Pile.NOT_FLAGGED).astype(np.int64)
    if worth.size:
        pile[(worth > worth.mean() * (1.0 + _ROUNDING)) & (worth >= PAYS * cheapest - _ROUNDING)] = Pile.LOOK
    ends = [(confidence[pile == one].min(), confidence[pile == one].max()) if (pile == one).any() else (np.nan, np.nan)
            for one in Pile]  # fmt: skip
    least, most = np.array(ends).T
    return Piles(pile, worth, np.bincount(pile, minlength=3), least, most, int((confidence >= SURE).sum()))
