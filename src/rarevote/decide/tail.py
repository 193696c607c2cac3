"""The tail of a scale: items of a grade or beyond, from the sum of their probabilities.

With ``t_i`` the sum of the probabilities of the grades of a tail and ``f`` its mean, an item is flagged if::

    t_i min(max((1 - f) / f, 1), 10) >= (1 - t_i) min(max(f / (1 - f), 1), 10)

as the balanced rule would decide between the tail and the rest. An item that is flagged for a narrower tail is flagged
for every wider one. A flag needs no vote in the tail: an item with votes for 3, 3 and 5 can be more likely 4 or 5 than
not. An item without votes has no flag, and if a recall target or the majority vote decides, the labels are the
flags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rarevote.crowd.numerics import TIE, FloatArray
from rarevote.crowd.rare import RareClass
from rarevote.decide.balanced import DEFAULT_CAP
from rarevote.decide.rules import BoolArray


def tail_flags(tail: RareClass, p: FloatArray, shares: FloatArray) -> BoolArray:
    """Which items are flagged for a tail, or for a narrower one, (n).

    Args:
        tail: its grades, from the end of the scale inwards.
        p: probability of every class, (n, K).
        shares: mean probability of every class, (K).

    Example:
        >>> tail = RareClass((2, 1), ">=mid", named=True, is_tail=True)
        >>> p = np.array([[0.9, 0.05, 0.05], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5]])
        >>> tail_flags(tail, p, np.array([0.75, 0.15, 0.1])).tolist()
        [False, True, True]
    """
    found = np.zeros(len(p), dtype=bool)
    for end in range(1, len(tail.codes) + 1):
        narrower = replace(tail, codes=tail.codes[:end])
        t, f = narrower.mass(p), min(float(narrower.mass(shares)), 1.0)
        odds = (1.0 - f) / f if f > 0 else np.inf
        mine, others = (min(max(weight, 1.0), DEFAULT_CAP) for weight in (odds, 1.0 / odds if odds else np.inf))
        found |= t * mine >= (1.0 - t) * others * (1.0 - TIE)
    return found


@dataclass(frozen=True, eq=False)
class Found:
    """Items of a class, or of a tail of grades.

    Attributes:
        name: the class or tail.
        tasks: names of all items, (n).
        p: probability that each item belongs to it, (n).
        flagged: whether each item belongs to it, by the decision, (n).
    """

    name: Any
    tasks: Any
    p: FloatArray
    flagged: BoolArray
