"""Rules for grades: a label in the middle of the probability, or nearest to the mean.

With ``w`` the weights of a rule (``levelled``: ``w_k = min(1, 1 / (K f_k))``; ``balanced-median``: those of
``balanced``; else 1), the median of an item is the lowest grade ``k`` with::

    sum_{l <= k} w_l p_il >= 1/2 sum_l w_l p_il                          over the grades, relative tolerance 1e-12

A class outside the scale is chosen if its ``w p`` is the largest of all. The guard of these rules: the label lies
between the lowest and the highest grade voted on the item; a class outside the scale needs a vote.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import TIE, FloatArray, IntArray, tied_with_best
from rarevote.decide.balanced import DEFAULT_CAP, Balanced, balance_weights
from rarevote.decide.rules import BoolArray, ItemBatch, Rule


@dataclass(frozen=True)
class GradeRule(Rule):
    """A rule that uses the order of the classes.

    Attributes:
        grades: the order.
        position: position of every class on the scale, NaN outside, (K); empty until the rule is :meth:`ready`.
    """

    guard: ClassVar[str] = "the label lay outside the grades voted on the task, so the nearest of these was used"
    grades: Grades
    position: FloatArray = field(default_factory=lambda: np.empty(0), compare=False, repr=False, kw_only=True)

    def ready(self, classes: NDArray[Any]) -> Self:
        """The rule with the positions of the classes."""
        return replace(self, position=self.grades.positions(classes))

    def weights(self, shares: FloatArray) -> FloatArray:
        """The weight of each class's probability, (K)."""
        return np.ones(len(shares))

    @abstractmethod
    def inside(self, mass: FloatArray, places: FloatArray, votes: FloatArray, shares: FloatArray) -> IntArray:
        """Rank of the grade of each item, (n).

        Args:
            mass: weighted probability of the grades, from lowest to highest, (n, R).
            places: positions of the grades on the scale, (R).
            votes: votes for the grades, (n, R).
            shares: shares of the grades, (R).
        """

    def permitted(self, votes: FloatArray) -> BoolArray:
        """The grades between the lowest and the highest with a vote, and classes outside the scale with a vote."""
        voted = votes > 0
        place = np.where(voted & np.isfinite(self.position), self.position, np.nan)
        some = np.isfinite(place).any(axis=1, keepdims=True)
        low = np.where(some, np.where(np.isnan(place), np.inf, place).min(axis=1, keepdims=True), np.inf)
        high = np.where(some, np.where(np.isnan(place), -np.inf, place).max(axis=1, keepdims=True), -np.inf)
        return np.asarray(voted | ((self.position >= low) & (self.position <= high)))

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The grade, or a class outside the scale that outweighs every grade."""
        is_grade = np.isfinite(self.position)
        met = shares > 0 if (shares[is_grade] > 0).any() else np.ones(len(shares), dtype=bool)
        grades = np.flatnonzero(is_grade & met)
        grades = grades[np.argsort(self.position[grades])]
        outside = np.flatnonzero(~is_grade)
        may = np.ones(part.p.shape, dtype=bool) if allowed is None else allowed
        weighed = part.p * self.weights(shares)
        codes = np.full(len(part.p), -1)
        if len(grades):
            rank = self.inside(weighed[:, grades], self.position[grades], part.votes[:, grades], shares[grades])
            # The expected distance is convex in the grade: within a range, the grade nearest to its minimum is the
            # best.
            within = may[:, grades]
            last = len(grades) - 1 - within[:, ::-1].argmax(axis=1)
            rank = np.clip(rank, np.where(within.any(axis=1), within.argmax(axis=1), 0), last)
            codes = grades[rank]
        if len(outside):
            best = weighed[:, grades].max(axis=1, initial=0.0)
            scores = np.where(may[:, outside], weighed[:, outside], -1.0)
            other = outside[_first_of_tied(scores, part.votes[:, outside], shares[outside])]
            top = scores.max(axis=1)
            no_grade = ~may[:, grades].any(axis=1) & (top >= 0)
            tied = np.abs(top - best) <= TIE * np.abs(best)
            # On a tie, as everywhere: more votes, then the grade.
            votes_inside = np.where(weighed[:, grades] >= best[:, None] * (1 - TIE), part.votes[:, grades], -1.0)
            wins = (top > best) & ~tied | (
                tied & (part.votes[np.arange(len(other)), other] > votes_inside.max(axis=1, initial=-1.0))
            )
            codes = np.where(wins | no_grade, other, codes)
        return np.asarray(codes, dtype=np.int64)


def _first_of_tied(scores: FloatArray, votes: FloatArray, shares: FloatArray) -> IntArray:
    """The column with the best score of each row; on a tie, more votes, then the smaller share, the first."""
    order = np.lexsort((np.arange(len(shares)), shares))
    tied = tied_with_best(scores)[:, order]
    return np.asarray(order[np.where(tied, votes[:, order], -1.0).argmax(axis=1)])


@dataclass(frozen=True)
class Median(GradeRule):
    """The middle of the probability: the least expected distance to the true grade."""

    name: ClassVar[str] = "median"

    @property
    def description(self) -> str:
        """How it decides."""
        return "median: the grade in the middle of the probability"

    def inside(self, mass: FloatArray, places: FloatArray, votes: FloatArray, shares: FloatArray) -> IntArray:
        """The lowest grade at which the cumulative mass reaches half; at exactly half, one of the two middle grades."""
        below = np.cumsum(mass, axis=1)
        half, slack = 0.5 * below[:, -1:], TIE * below[:, -1:]
        rank = (below >= half - slack).argmax(axis=1)
        rows = np.flatnonzero(np.abs(below[np.arange(len(rank)), rank] - half[:, 0]) <= slack[:, 0])
        for i in rows.tolist():
            first = int(rank[i])
            above = np.flatnonzero(mass[i, first + 1 :] > slack[i])
            if len(above):
                both = np.array([first, first + 1 + int(above[0])])
                rank[i] = both[_first_of_tied(np.zeros((1, 2)), votes[i][None, both], shares[both])[0]]
        return np.asarray(rank)


@dataclass(frozen=True)
class Levelled(Median):
    """The middle of the probability, with less weight for grades above an equal share, and more for none."""

    name: ClassVar[str] = "levelled"

    @property
    def description(self) -> str:
        """How it decides."""
        return "levelled: the middle of the probability, where a grade beyond its equal share counts less"

    def weights(self, shares: FloatArray) -> FloatArray:
        """``min(1, 1 / (K f_k))`` with K the number of classes with votes, (K)."""
        n_met = max(int((shares > 0).sum()), 1)
        return np.asarray(1.0 / np.maximum(n_met * shares, 1.0))


@dataclass(frozen=True)
class BalancedMedian(Median):
    """The middle of the probability, each grade weighted by how rare it is, by a factor of at most ``cap``."""

    name: ClassVar[str] = "balanced-median"
    cap: float = DEFAULT_CAP

    def __post_init__(self) -> None:
        Balanced(self.cap)  # raises an error for an invalid cap

    @property
    def description(self) -> str:
        """What it trades off."""
        return f"balanced median: the middle of the probability, a grade weighted by how rare it is, up to {self.cap:g}"

    def weights(self, shares: FloatArray) -> FloatArray:
        """The weights of the balanced rule, (K)."""
        return balance_weights(shares, float(self.cap))


@dataclass(frozen=True)
class MeanGrade(GradeRule):
    """The grade nearest to the mean grade: for opinions rather than facts."""

    name: ClassVar[str] = "mean"

    @property
    def description(self) -> str:
        """How it decides."""
        return "mean: the grade nearest to the mean"

    def inside(self, mass: FloatArray, places: FloatArray, votes: FloatArray, shares: FloatArray) -> IntArray:
        """The grade nearest to the mean; halfway between two, the one with more votes."""
        total = mass.sum(axis=1)
        mean = (mass * places).sum(axis=1) / np.where(total > 0, total, 1.0)
        distance = np.abs(places - mean[:, None])
        nearest = distance <= distance.min(axis=1, keepdims=True) + TIE * (1.0 + np.abs(places).max(initial=0.0))
        return _first_of_tied(nearest.astype(np.float64), votes, shares)
