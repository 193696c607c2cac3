"""The piles of a result: items worth a look, and items to take as they are labelled.

What a look at an item is worth is the fall of its expected cost once its class is known
(:func:`rarevote.decide.review.review_gains`): the order of the piles is the order of a review list. A look *pays* where
it is worth

- more than a look at an item picked at random, which is worth the mean, and
- at least a tenth of the cheapest mistake: where all mistakes cost the same, it changes at least one label in ten.

The pile ends where the next look no longer pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray

#: a look that pays changes at least this share of the labels, where all mistakes cost the same
PAYS = 0.1
#: a label of this probability can be taken without a look
SURE = 0.9
# Of worths that are all equal none is above their mean, whatever the rounding.
_ROUNDING = 1e-9


class Pile(IntEnum):
    """Where an item lies."""

    NOT_FLAGGED = 0
    LOOK = 1
    FLAGGED = 2


@dataclass(frozen=True, eq=False)
class Piles:
    """The piles of a result; arrays by item, those with votes first.

    Attributes:
        pile: of every item, a :class:`Pile`, (n).
        worth: by how much a look at the item lowers the expected cost, (n).
        n_items: items in each pile, (3).
        least: probability of the least probable label in each pile, NaN for an empty one, (3).
        most: the same of the most probable label, (3).
        n_sure: items whose label has a probability of :data:`SURE` or more.
    """

    pile: IntArray
    worth: FloatArray
    n_items: IntArray
    least: FloatArray
    most: FloatArray
    n_sure: int

    @property
    def n_look(self) -> int:
        """Items that are worth a look."""
        return int(self.n_items[Pile.LOOK])

    @property
    def by_worth(self) -> IntArray:
        """Numbers of the items, those most worth a look first; ties in their order."""
        return np.argsort(-self.worth, kind="stable")


def make_piles(
    worth: FloatArray, flagged: NDArray[np.bool_], confidence: FloatArray, *, cheapest: float = 1.0
) -> Piles:
    """Sort items into piles.

    Args:
        worth: by how much a look at each item lowers the expected cost, (n).
        flagged: items that are of the class that matters by the decision, (n).
        confidence: probability of each label, (n).
        cheapest: what the cheapest mistake costs.

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
