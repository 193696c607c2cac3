"""Rules: how a label follows from the probabilities of an item, and what that trades off.

A rule is an object with a description of what it trades off: the method's own label, the most probable class, balanced,
least cost, a recall target, or no answer in doubt. It takes an :class:`ItemBatch` (what is known about some items) and
returns a class number per item. A new rule needs a class here and a line in :mod:`rarevote.decide.selection`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import FloatArray, IntArray, picked, tied_with_best
from rarevote.crowd.rare import RareClass
from rarevote.decide.costs import cost_matrix
from rarevote.decide.expectations import World
from rarevote.decide.recall_target import CONFIDENCE, ERRORS, Flags, check_errors, check_share, one_target
from rarevote.errors import ParameterError

BoolArray = NDArray[np.bool_]

#: the label of an item without an answer
ABSTAINED = -1


class ItemBatch(NamedTuple):
    """What is known about some items.

    Attributes:
        p: probability of every class, (n, K).
        votes: votes for every class, (n, K).
        own: the method's own label, (n).
        gold: known class or -1, (n).
        ranking: the values that rank items for a guaranteed recall, (n, K); ``p`` unless gold guarantees it.
        free: items whose label needs no vote, because their features are used, (n); None without features.
    """

    p: FloatArray
    votes: FloatArray
    own: IntArray
    gold: IntArray
    ranking: FloatArray
    free: BoolArray | None = None

    def rows(self, chosen: Any) -> ItemBatch:
        """Some of the items."""
        return ItemBatch(*(array if array is None else array[chosen] for array in self))  # type: ignore[arg-type]

    @property
    def bound(self) -> BoolArray:
        """Items whose label needs a vote, (n)."""
        return np.ones(len(self.p), dtype=bool) if self.free is None else ~self.free


def best_class(scores: FloatArray, votes: FloatArray, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
    """The class with the best score of each item, (n).

    Ties (within 1e-12, relative) go to the class with more votes, then to the one with the larger share, then to the
    first. If no class is allowed, all are.

    Args:
        scores: larger is better, (n, K).
        votes: votes for every class, (n, K).
        shares: shares of the classes, (K).
        allowed: which classes can be chosen, (n, K); all by default.

    Example:
        >>> scores = np.array([[0.5, 0.5], [0.2, 0.8]])
        >>> best_class(scores, np.array([[2, 1], [1, 2]]), np.array([0.1, 0.9])).tolist()
        [0, 1]
    """
    if not scores.size:
        return np.zeros(len(scores), dtype=np.int64)
    if allowed is not None:
        stuck = ~allowed.any(axis=1, keepdims=True)
        scores = np.where(allowed | stuck, scores, -np.inf)
    # Classes in the order of precedence for a full tie: argmax takes the first.
    order = np.lexsort((np.arange(scores.shape[1]), -shares))
    tied = tied_with_best(scores)[:, order]
    return np.asarray(order[np.where(tied, votes[:, order], -1.0).argmax(axis=1)], dtype=np.int64)


class Rule(ABC):
    """A way to decide."""

    #: its name in the column ``decision``
    name: ClassVar[str] = ""
    #: what is done if the label would be a class that the votes do not permit, as text
    guard: ClassVar[str] = "the top label had no votes, so the best voted label was used"

    @property
    @abstractmethod
    def description(self) -> str:
        """How it decides and what it trades off, as text."""

    @abstractmethod
    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """Class number of each item, -1 for no answer.

        Args:
            part: the items.
            shares: mean probability of every class over all items, (K).
            allowed: which classes can be chosen, (n, K); all by default.
        """

    def permitted(self, votes: FloatArray) -> BoolArray:
        """Which classes the votes on an item permit as its label, (n, K): those with a vote."""
        return np.asarray(votes > 0)

    def answered(self, part: ItemBatch, codes: IntArray) -> IntArray:
        """The chosen classes, or -1 if the rule gives no answer; called after the guard."""
        del part
        return codes

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse names that are not classes, before anything is computed."""
        self.ready(classes)

    def ready(self, classes: NDArray[Any]) -> Rule:
        """The rule with names replaced by numbers."""
        del classes
        return self

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """The costs of mistakes under this rule, (K, K); every mistake costs 1 by default."""
        return 1.0 - np.eye(len(classes))

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """The costs of mistakes that the rule implies, (K, K), for classes with these shares, (K)."""
        del shares
        return self.costs(classes)


@dataclass(frozen=True)
class OwnLabels(Rule):
    """The label that the method itself gives, as its authors publish it."""

    name: ClassVar[str] = "method"

    description = "the method's own labels"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The method's label; if it is not allowed, the most probable class that is."""
        if allowed is None:
            return part.own.astype(np.int64)
        kept = picked(allowed, part.own)
        return np.where(kept, part.own, best_class(part.p, part.votes, shares, allowed))


@dataclass(frozen=True)
class Argmax(Rule):
    """The most probable class."""

    name: ClassVar[str] = "argmax"

    description = "the most probable class"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the largest probability."""
        return best_class(part.p, part.votes, shares, allowed)


@dataclass(frozen=True)
class LeastCost(Rule):
    """The class with the least expected cost."""

    name: ClassVar[str] = "cost"
    given: Any

    description = "least expected cost"

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """The given costs."""
        return cost_matrix(self.given, classes)

    def ready(self, classes: NDArray[Any]) -> LeastCost:
        """The rule with its costs as a matrix."""
        return LeastCost(self.costs(classes))

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the least expected cost; the rule must be :meth:`ready`."""
        return best_class(-(part.p @ self.given), part.votes, shares, allowed)


@dataclass(frozen=True)
class MinRecall(Rule):
    """As many items of one class as a recall needs; for all others, the best other class."""

    name: ClassVar[str] = "recall"
    wanted: Mapping[Any, float] | str
    confidence: float = CONFIDENCE
    random_gold: bool = False
    grades: Grades | None = None
    errors: World = ERRORS

    def __post_init__(self) -> None:
        check_errors(self.errors)
        if not isinstance(self.confidence, (int, float, np.number)) or not 0.0 < self.confidence < 1.0:
            raise ParameterError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @property
    def description(self) -> str:
        """What it trades off."""
        if isinstance(self.wanted, str):
            name, _, recall = self.wanted.rpartition("=")
            return f"recall of {name.strip()} at least {recall.strip()}"
        ((name, target),) = self.wanted.items()
        return f"recall of {name} at least {target:g}"

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse targets for several classes, for unknown classes, or out of range."""
        self.target(classes)

    def target(self, classes: NDArray[Any]) -> tuple[RareClass, float]:
        """The class, or the tail of grades, and its target."""
        return one_target(self.wanted, classes, self.grades)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """Not possible: it needs a threshold, which depends on all items; see :class:`FlagAbove`."""
        raise NotImplementedError


@dataclass(frozen=True)
class FlagAbove(Rule):
    """One class, or the best grade of a tail, above a threshold; for all other items, the best other class.

    Attributes:
        rare: the class, or the tail.
        threshold: items with at least this probability of it are flagged.
        promised: whether gold guarantees a recall: then the ranking decides, and no item can be left out.
        needed: how many items each world needs; None if that does not matter.
    """

    name: ClassVar[str] = "recall"
    rare: RareClass
    threshold: float
    promised: bool = False
    needed: Flags | None = None

    @property
    def description(self) -> str:
        """What it trades off."""
        return f"a probability of at least {self.threshold:g}"

    def flags(self, part: ItemBatch) -> BoolArray:
        """Which items reach the threshold, (n)."""
        score = part.ranking if self.promised else part.p
        return np.asarray(self.rare.mass(score) >= self.threshold)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class for items that reach the threshold."""
        flagged, own = self.flags(part), self.rare.holds(np.arange(part.p.shape[1]))
        if allowed is not None and not self.promised:
            flagged &= allowed[:, own].any(axis=1)
        mine = np.full(len(flagged), self.rare.code)
        if own.sum() > 1:
            of_tail = own & (part.votes > 0 if allowed is None else allowed)
            mine = best_class(np.where(own, part.p, -1.0), part.votes, shares, of_tail)
        others = np.where(own, -1.0, part.p)  # only if nothing else is allowed
        return np.where(flagged, mine, best_class(others, part.votes, shares, allowed))


@dataclass(frozen=True)
class AbstainBelow(Rule):
    """Another rule's answer, or no answer if its probability is low."""

    below: float
    rule: Rule = OwnLabels()

    def __post_init__(self) -> None:
        check_share("abstain_below", self.below)
        if isinstance(self.rule, MinRecall):
            raise ParameterError("a recall target answers every item: give it or abstain_below, not both")

    @property
    def description(self) -> str:
        """What it trades off."""
        return f"{self.rule.description}, none below a probability of {self.below:g}"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the underlying rule."""
        return self.rule.name

    @property
    def guard(self) -> str:  # type: ignore[override]
        """The guard of the underlying rule."""
        return self.rule.guard

    def permitted(self, votes: FloatArray) -> BoolArray:
        """The classes that the underlying rule permits."""
        return self.rule.permitted(votes)

    def ready(self, classes: NDArray[Any]) -> AbstainBelow:
        """The rule with names replaced by numbers in the underlying rule."""
        return AbstainBelow(self.below, self.rule.ready(classes))

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """The costs of the underlying rule."""
        return self.rule.costs(classes)

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """The stakes of the underlying rule."""
        return self.rule.stakes(classes, shares)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The underlying rule's answer."""
        return self.rule.choose(part, shares, allowed)

    def answered(self, part: ItemBatch, codes: IntArray) -> IntArray:
        """The underlying rule's answer if it is probable enough."""
        return np.where(picked(part.p, codes) < self.below, ABSTAINED, codes)


@dataclass(frozen=True)
class TheVotes(Rule):
    """The class with the most votes on the item; on a tie, the first class."""

    name: ClassVar[str] = "votes"

    description = "the votes themselves"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the most votes."""
        del shares, allowed
        return np.asarray(part.votes.argmax(axis=1), dtype=np.int64)
