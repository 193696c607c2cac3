"""Rules: how a label follows from the probabilities of an item, and what that trades.

A rule is an object that says in words what it trades: the method's own label, the most probable class, balanced, least
cost, a recall target, or no answer in doubt. It gets an :class:`ItemBatch` (what is known about some items) and gives a
class number per item. A new rule is one more class here and a line in :func:`rule_of`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, picked
from rarevote.decide.costs import Costs, cost_matrix
from rarevote.decide.recall_target import CONFIDENCE, check_share, one_target
from rarevote.errors import ParameterError

BoolArray = NDArray[np.bool_]

#: the label of an item without an answer
ABSTAINED = -1
#: The cap of ``balanced`` where none is given: a miss counts at most as this many false alarms.
DEFAULT_CAP = 10.0
# Scores this near to each other, relative to the best, are equal.
_TIE = 1e-12


class ItemBatch(NamedTuple):
    """What is known about some items.

    Attributes:
        p: probability of every class, (n, K).
        votes: votes for every class, (n, K).
        own: the method's own label, (n).
        gold: known class or -1, (n).
        ranking: what a promise of a recall ranks items by, (n, K); ``p`` unless gold vouches for it.
    """

    p: FloatArray
    votes: FloatArray
    own: IntArray
    gold: IntArray
    ranking: FloatArray

    def rows(self, chosen: Any) -> ItemBatch:
        """Some of the items."""
        return ItemBatch(*(array[chosen] for array in self))


def best_class(scores: FloatArray, votes: FloatArray, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
    """The class with the best score of each item, (n).

    Ties (within 1e-12, relative) go to the class with more votes, then to the one with the larger share, then to the
    first. Without any class allowed, none is left out.

    Args:
        scores: larger is better, (n, K).
        votes: votes for every class, (n, K).
        shares: of the classes, (K).
        allowed: which classes may be chosen, (n, K); all if not given.

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
    best = scores.max(axis=1, keepdims=True)
    # Classes in the order in which they win a full tie: argmax takes the first.
    order = np.lexsort((np.arange(scores.shape[1]), -shares))
    tied = (scores >= best - _TIE * np.abs(best))[:, order]
    return np.asarray(order[np.where(tied, votes[:, order], -1.0).argmax(axis=1)], dtype=np.int64)


def balance_weights(shares: FloatArray, cap: float) -> FloatArray:
    """How much a class counts under the balanced rule: ``min(max_l f_l / f_k, cap)``, (K)."""
    with np.errstate(divide="ignore"):
        return np.where(shares > 0, np.minimum(shares.max(initial=0.0) / shares, cap), cap)


class Rule(ABC):
    """A way to decide."""

    #: what it is called in the column ``decision``
    name: ClassVar[str] = ""

    @property
    @abstractmethod
    def words(self) -> str:
        """How it decides and what it trades, in words."""

    @abstractmethod
    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """Class number of each item, -1 for no answer.

        Args:
            part: the items.
            shares: mean probability of every class over all items, (K).
            allowed: which classes may be chosen, (n, K); all if not given.
        """

    def answered(self, part: ItemBatch, codes: IntArray) -> IntArray:
        """The classes that were chosen, -1 where the rule gives no answer; asked after the guard, of what is left."""
        del part
        return codes

    def check(self, classes: NDArray[Any]) -> None:  # noqa: B027
        """Refuse, before anything is computed, names that are not classes."""

    def ready(self, classes: NDArray[Any]) -> Rule:
        """The rule with all that names say turned into numbers."""
        del classes
        return self

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """What mistakes cost under this rule, (K, K); every mistake 1 unless it says otherwise."""
        return 1.0 - np.eye(len(classes))

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """What mistakes cost by what the rule trades, (K, K), where the classes have these shares, (K)."""
        del shares
        return self.costs(classes)


@dataclass(frozen=True)
class OwnLabels(Rule):
    """The label that the method itself gives, as its authors publish it."""

    name: ClassVar[str] = "method"

    @property
    def words(self) -> str:
        """How it decides."""
        return "the method's own labels"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The method's label; where that is not allowed, the most probable class that is."""
        if allowed is None:
            return part.own.astype(np.int64)
        kept = picked(allowed, part.own)
        return np.where(kept, part.own, best_class(part.p, part.votes, shares, allowed))


@dataclass(frozen=True)
class Argmax(Rule):
    """The most probable class."""

    name: ClassVar[str] = "argmax"

    @property
    def words(self) -> str:
        """How it decides."""
        return "the most probable class"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the largest probability."""
        return best_class(part.p, part.votes, shares, allowed)


@dataclass(frozen=True)
class Balanced(Rule):
    """The probability divided by the share of its class, at most ``cap`` times: what is rare needs less.

    ::

        label_i = argmax_k  p_ik min(max_l f_l / f_k, cap),      f = mean_i p_i

    The most probable class would hardly ever be a rare one; dividing by the shares alone would flag everything that a
    single person once called rare.
    """

    name: ClassVar[str] = "balanced"
    cap: float = DEFAULT_CAP

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, (int, float, np.number)) or not self.cap >= 1:
            raise ParameterError(f"the cap of balanced must be a number of at least 1, got {self.cap!r}")

    @property
    def words(self) -> str:
        """What it trades."""
        return f"balanced: a miss is weighted by how rare the class is, up to {self.cap:g} false alarms"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class whose probability most exceeds its share, weighed at most ``cap`` times."""
        return best_class(part.p * balance_weights(shares, float(self.cap)), part.votes, shares, allowed)

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """A miss of the class k costs ``min(max_l f_l / f_k, cap)``, as the rule weighs it."""
        return np.asarray(balance_weights(shares, float(self.cap))[:, None] * self.costs(classes))


@dataclass(frozen=True)
class LeastCost(Rule):
    """The class with the least expected cost."""

    name: ClassVar[str] = "cost"
    given: Any

    @property
    def words(self) -> str:
        """What it trades."""
        return "least expected cost"

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse costs that do not fit the classes."""
        cost_matrix(self.given, classes)

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """The costs given."""
        return cost_matrix(self.given, classes)

    def ready(self, classes: NDArray[Any]) -> LeastCost:
        """The rule with its costs as a matrix."""
        return LeastCost(self.costs(classes))

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the least expected cost; the rule is :meth:`ready`."""
        return best_class(-(part.p @ self.given), part.votes, shares, allowed)


@dataclass(frozen=True)
class MinRecall(Rule):
    """As many items of one class as a recall needs; elsewhere the best other class."""

    name: ClassVar[str] = "recall"
    wanted: Mapping[Any, float]
    confidence: float = CONFIDENCE
    random_gold: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise ParameterError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @property
    def words(self) -> str:
        """What it trades."""
        ((name, target),) = self.wanted.items()
        return f"recall of {name} at least {target:g}"

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse targets of several classes, of none that exists, or out of range."""
        one_target(self.wanted, classes)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """Needs a threshold, which depends on all items: see :class:`FlagAbove`."""
        raise NotImplementedError


@dataclass(frozen=True)
class FlagAbove(Rule):
    """One class from a probability on; elsewhere the best other class.

    Attributes:
        number: the class.
        threshold: items whose probability of the class is at least this are flagged.
        promised: whether gold promises a recall: then the ranking decides, and nothing may be left out.
    """

    name: ClassVar[str] = "recall"
    number: int
    threshold: float
    promised: bool = False

    @property
    def words(self) -> str:
        """What it trades."""
        return f"a probability of at least {self.threshold:g}"

    def flags(self, part: ItemBatch) -> BoolArray:
        """Which items reach the threshold, (n)."""
        score = part.ranking if self.promised else part.p
        return np.asarray(score[:, self.number] >= self.threshold)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class where it reaches the threshold."""
        flagged = self.flags(part)
        if allowed is not None and not self.promised:
            flagged &= allowed[:, self.number]
        others = part.p.copy()
        others[:, self.number] = -1.0  # only where nothing else is allowed
        return np.where(flagged, self.number, best_class(others, part.votes, shares, allowed))


@dataclass(frozen=True)
class AbstainBelow(Rule):
    """Another rule's answer, and none where its probability is low."""

    below: float
    rule: Rule = OwnLabels()

    def __post_init__(self) -> None:
        check_share("abstain_below", self.below)
        if isinstance(self.rule, MinRecall):
            raise ParameterError("a recall target leaves no item without an answer: choose it or abstain_below")

    @property
    def words(self) -> str:
        """What it trades."""
        return f"{self.rule.words}, none below a probability of {self.below:g}"

    @property
    def name(self) -> str:  # type: ignore[override]
        """That of the rule behind it."""
        return self.rule.name

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse what the rule behind it refuses."""
        self.rule.check(classes)

    def ready(self, classes: NDArray[Any]) -> AbstainBelow:
        """The rule behind it with all that names say turned into numbers."""
        return AbstainBelow(self.below, self.rule.ready(classes))

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """Those of the rule behind it."""
        return self.rule.costs(classes)

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """Those of the rule behind it."""
        return self.rule.stakes(classes, shares)

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The other rule's answer."""
        return self.rule.choose(part, shares, allowed)

    def answered(self, part: ItemBatch, codes: IntArray) -> IntArray:
        """The other rule's answer where it is probable enough."""
        return np.where(picked(part.p, codes) < self.below, ABSTAINED, codes)


@dataclass(frozen=True)
class TheVotes(Rule):
    """The class with the most votes on the item; of a tie the first class."""

    name: ClassVar[str] = "votes"

    @property
    def words(self) -> str:
        """How it decides."""
        return "the votes themselves"

    def choose(self, part: ItemBatch, shares: FloatArray, allowed: BoolArray | None = None) -> IntArray:
        """The class with the most votes."""
        del shares, allowed
        return np.asarray(part.votes.argmax(axis=1), dtype=np.int64)


def parse_rule(text: str) -> Rule:
    """A rule by name: ``labels`` (the method's own), ``argmax``, ``balanced``, ``balanced:5``.

    >>> parse_rule("balanced:5")
    Balanced(cap=5.0)
    """
    name, colon, cap = text.strip().partition(":")
    if name == "labels" and not colon:
        return OwnLabels()
    if name == "argmax" and not colon:
        return Argmax()
    if name == "balanced":
        try:
            return Balanced(float(cap)) if colon else Balanced()
        except ValueError:
            raise ParameterError(f"balanced takes a cap of at least 1, such as balanced:5, not {cap!r}") from None
    raise ParameterError(f"{text!r} is not a decision: there are labels, argmax, balanced and balanced:CAP")


def rule_of(
    decide: Rule | str | None = None,
    *,
    costs: Costs | None = None,
    min_recall: Mapping[Any, float] | None = None,
    abstain_below: float | None = None,
    cap: float | None = None,
    confidence: float = CONFIDENCE,
    random_gold: bool = False,
    own: Rule | None = None,
) -> Rule:
    """The rule that these arguments mean; without any, ``own``, the method's.

    Raises:
        ParameterError: several ways to decide at once, or an argument out of range.
    """
    given = {"decide": decide, "costs": costs, "min_recall": min_recall, "cap": cap, "abstain_below": abstain_below}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ParameterError(f"{' and '.join(chosen)} contradict each other: each is a way to decide, choose one")
    if isinstance(decide, Rule):
        return decide
    if decide is not None:
        return parse_rule(decide)
    if cap is not None:
        return Balanced(cap)
    if costs is not None:
        return LeastCost(costs)
    if min_recall is not None:
        return MinRecall(min_recall, confidence, random_gold)
    plain = own or OwnLabels()
    return plain if abstain_below is None else AbstainBelow(abstain_below, plain)
