"""The balanced rule: a class is weighted by how rare it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.rules import BoolArray, ItemBatch, Rule, best_class
from rarevote.errors import ParameterError

#: The default cap of ``balanced``: a miss counts as at most this many false alarms.
DEFAULT_CAP = 10.0


def balance_weights(shares: FloatArray, cap: float) -> FloatArray:
    """The weight of each class under the balanced rule: ``min(max_l f_l / f_k, cap)``, (K)."""
    with np.errstate(divide="ignore"):
        return np.where(shares > 0, np.minimum(shares.max(initial=0.0) / shares, cap), cap)


@dataclass(frozen=True)
class Balanced(Rule):
    """The probability divided by the share of its class, by a factor of at most ``cap``: a rare class needs less.

    ::

        label_i = argmax_k  p_ik min(max_l f_l / f_k, cap),      f = mean_i p_i

    The most probable class is hardly ever a rare one; dividing by the shares without a cap would flag every item that a
    single annotator called rare.
    """

    name: ClassVar[str] = "balanced"
    cap: float = DEFAULT_CAP

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, (int, float, np.number)) or not self.cap >= 1:
            raise ParameterError(f"the cap of balanced must be a number of at least 1, got {self.cap!r}")

    @property
    def description(self) -> str:
        """What the rule trades off."""
        return f"balanced: a miss is weighted by how rare the class is, up to {self.cap:g} false alarms"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class whose probability most exceeds its share, by a factor of at most ``cap``."""
        return best_class(part.p * balance_weights(shares, float(self.cap)), part.votes, shares, allowed)

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """The costs behind the rule: a miss of class k costs ``min(max_l f_l / f_k, cap)``."""
        return np.asarray(balance_weights(shares, float(self.cap))[:, None] * self.costs(classes))
