"""The three piles of a class: items surely of it, items worth a look, items surely not of it.

Items are sorted by how far their probabilities are believed (:func:`rarevote.decide.expectations.believed`). Those at
the top of which nine in ten are expected to be of the class are *surely* so; those at the bottom that together hold a
tenth of the class are *surely not*; what is between is worth a look. Items that are equally probable are never
separated. This is what to expect of a crowd like other real ones; only an audit can prove it of this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray

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
