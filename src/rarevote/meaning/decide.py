"""From probabilities to decisions: what each task is called, by which rule, and what to expect of that.

A rule is an object that says in words what it trades: the method's own label, balanced, least cost, a recall target, or
no answer in doubt. It gets a :class:`Basis` (what is known about the tasks) and gives a class number per task. Where
the basis says which classes are allowed on each task, a rule stays within them: that is how :class:`rarevote.Fitted`
never gives a label that nobody voted for. A new rule is one more class here and a line in :func:`rule_of`.

A decision says what it expects: recall, precision and prevalence of every class and the accuracy of the labels, with
90% intervals (:mod:`rarevote.meaning.expect`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, balanced_codes, first_of_best, picked
from rarevote.errors import ParameterError
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.costs import Costs, cost_matrix
from rarevote.meaning.expect import (
    CONFIDENCE,
    Expectations,
    Expected,
    RecallTarget,
    check_share,
    expectations,
    expected_accuracy,
    flag,
    one_target,
)

ABSTAINED = -1
#: The cap of ``balanced`` where none is given: a miss counts at most as this many false alarms.
DEFAULT_CAP = 10.0


@dataclass(frozen=True, eq=False)
class Basis:
    """What a rule decides on.

    Attributes:
        own: the method's own label, (n).
        probabilities: what the method calls the probability of each class, (n, K).
        votes: votes per task and class, (n, K), or None where they are not at hand.
        calibrated: probabilities to be read as such, for rules that need them.
        only_voted: whether only classes with a vote on the task may be decided.
        likeliest: the method's most probable class, (n), where its own label is another one; None where it is not.
    """

    own: IntArray
    probabilities: FloatArray
    votes: FloatArray | None = None
    calibrated: CalibratedPosterior | None = None
    only_voted: bool = False
    likeliest: IntArray | None = None

    @property
    def allowed(self) -> NDArray[np.bool_] | None:
        """Which classes may be decided on each task, (n, K); None for all."""
        return self.votes > 0 if self.only_voted and self.votes is not None else None

    @property
    def calibration(self) -> CalibratedPosterior:
        """The calibrated probabilities, of a rule that needs them."""
        assert self.calibrated is not None
        return self.calibrated


class Chosen(NamedTuple):
    """What a rule gives: class numbers (-1 for no answer), and what came of a recall target."""

    codes: IntArray
    target: RecallTarget | None = None


def best_allowed(scores: FloatArray, basis: Basis) -> IntArray:
    """The best class of each task among those allowed; ties by votes, then the first class."""
    allowed = basis.allowed
    within = scores if allowed is None else np.where(allowed, scores, -np.inf)
    best = within.argmax(axis=1)
    if basis.votes is None or not within.size:
        return np.asarray(best)
    tied = within == within.max(axis=1, keepdims=True)
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    best[rows] = np.where(tied[rows], basis.votes[rows], -1.0).argmax(axis=1)
    return np.asarray(best)


class Rule(ABC):
    """A way to decide."""

    #: whether it needs calibrated probabilities
    calibrates: ClassVar[bool] = True
    #: what it is called in the column ``decision``
    name: ClassVar[str] = ""

    @property
    @abstractmethod
    def words(self) -> str:
        """How it decides and what it trades, in words."""

    @property
    def vouched(self) -> bool:
        """Whether gold vouches for what comes of it: then tasks are ranked by a fit that did not learn from gold."""
        return False

    @abstractmethod
    def choose(self, basis: Basis) -> Chosen:
        """Decide on every task."""

    def check(self, classes: NDArray[Any]) -> None:  # noqa: B027
        """Refuse, before anything is computed, names that are no class."""

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """What mistakes cost under this rule, (K, K); every mistake 1 unless told."""
        return 1.0 - np.eye(len(classes))

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """What mistakes cost by what the rule trades, (K, K), where the classes have these shares, (K)."""
        del shares
        return self.costs(classes)


@dataclass(frozen=True)
class Argmax(Rule):
    """The method's most probable class."""

    calibrates: ClassVar[bool] = False
    name: ClassVar[str] = "method"

    @property
    def words(self) -> str:
        """How it decides."""
        return "the most probable class"

    def choose(self, basis: Basis) -> Chosen:
        """The most probable class; where that is not allowed, the most probable one that is."""
        allowed = basis.allowed
        codes = (basis.own if basis.likeliest is None else basis.likeliest).copy()
        if allowed is None:
            return Chosen(codes)
        refused = np.flatnonzero(~picked(allowed, codes))
        if refused.size:
            votes = None if basis.votes is None else basis.votes[refused]
            codes[refused] = best_allowed(basis.probabilities[refused], replace(basis, votes=votes))
        return Chosen(codes)


@dataclass(frozen=True)
class Balanced(Rule):
    """The posterior divided by the mean of its class, at most ``cap`` times: what is rare needs less."""

    calibrates: ClassVar[bool] = False
    name: ClassVar[str] = "balanced"
    cap: float = DEFAULT_CAP

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, (int, float, np.number)) or not self.cap >= 1:
            raise ParameterError(f"the cap of balanced must be a number of at least 1, got {self.cap!r}")

    @property
    def words(self) -> str:
        """What it trades."""
        return f"balanced: a miss counts as much as the classes are unequal, at most as {self.cap:g} false alarms"

    def choose(self, basis: Basis) -> Chosen:
        """The class whose probability most exceeds its share, weighed at most ``cap`` times."""
        votes = np.zeros_like(basis.probabilities) if basis.votes is None else basis.votes
        return Chosen(balanced_codes(basis.probabilities, votes, float(self.cap), basis.only_voted))

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """A miss of the class k costs ``min(max_l f_l / f_k, cap)``, as the rule weighs it."""
        weight = np.minimum(shares.max(initial=0.0) / np.maximum(shares, 1e-300), float(self.cap))
        return np.asarray(weight[:, None] * self.costs(classes))


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

    def choose(self, basis: Basis) -> Chosen:
        """The class with the least expected cost under the calibrated probabilities."""
        expected = basis.calibration.posterior @ self.costs(basis.calibration.classes)
        return Chosen(best_allowed(-expected, basis))


@dataclass(frozen=True)
class MinRecall(Rule):
    """As many tasks of one class as a recall needs; elsewhere the best other class."""

    name: ClassVar[str] = "recall"
    wanted: Mapping[Any, float]
    confidence: float = CONFIDENCE
    random_gold: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.confidence < 1.0:
            raise ParameterError(f"confidence must lie between 0 and 1, got {self.confidence!r}")

    @property
    def vouched(self) -> bool:
        """Whether gold is to vouch for it."""
        return self.random_gold

    @property
    def words(self) -> str:
        """What it trades."""
        ((name, target),) = self.wanted.items()
        return f"recall of {name} at least {target:g}"

    def check(self, classes: NDArray[Any]) -> None:
        """Refuse targets of several classes, of none that exists, or out of range."""
        one_target(self.wanted, classes)

    def choose(self, basis: Basis) -> Chosen:
        """Flag by the calibrated probability of the class."""
        calibrated = basis.calibration
        number, wanted = one_target(self.wanted, calibrated.classes)
        allowed = None if basis.allowed is None else basis.allowed[:, number]
        target, flagged = flag(calibrated, number, wanted, self.confidence, self.random_gold, allowed)
        others = calibrated.posterior.copy()
        others[:, number] = -1.0  # only where nothing else is allowed
        codes = np.where(flagged, number, best_allowed(others, basis))
        return Chosen(codes, target)


@dataclass(frozen=True)
class AbstainBelow(Rule):
    """Another rule's answer, and none where its probability is low."""

    below: float
    rule: Rule = Argmax()

    def __post_init__(self) -> None:
        check_share("abstain_below", self.below)

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

    def costs(self, classes: NDArray[Any]) -> FloatArray:
        """Those of the rule behind it."""
        return self.rule.costs(classes)

    def stakes(self, classes: NDArray[Any], shares: FloatArray) -> FloatArray:
        """Those of the rule behind it."""
        return self.rule.stakes(classes, shares)

    def choose(self, basis: Basis) -> Chosen:
        """The other rule's answer where it is probable enough."""
        codes, target = self.rule.choose(basis)
        probability = picked(basis.calibration.posterior, codes)
        return Chosen(np.where(probability < self.below, ABSTAINED, codes), target)


def parse_rule(text: str) -> Rule:
    """A rule by name: ``argmax``, ``balanced``, ``balanced:5``.

    >>> parse_rule("balanced:5")
    Balanced(cap=5.0)
    """
    name, colon, cap = text.strip().partition(":")
    if name == "argmax" and not colon:
        return Argmax()
    if name == "balanced":
        try:
            return Balanced(float(cap)) if colon else Balanced()
        except ValueError:
            raise ParameterError(f"balanced takes a cap of at least 1, such as balanced:5, not {cap!r}") from None
    raise ParameterError(f"no decision is called {text!r}: there are argmax, balanced and balanced:CAP")


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
    plain = own or Argmax()
    return plain if abstain_below is None else AbstainBelow(abstain_below, plain)


@dataclass(frozen=True, eq=False)
class Decision:
    """One answer per task, and what to expect of them.

    Attributes:
        classes: names of the classes, (K).
        codes: class number of each task, or -1 for no answer, (n).
        confidence: calibrated probability of the decided class, of the likeliest where there is no answer, (n).
        rule: how it was decided, in words.
        expected: what to expect of every class: recall, precision, prevalence.
        accuracy: expected share of the labels that are right.
        how: how that was estimated, in words.
        costs: cost of deciding (column) for a true class (row), (K, K).
        expected_cost: expected sum of the costs over all tasks with an answer.
        target: what came of a recall target, if there was one.
    """

    classes: NDArray[Any]
    codes: IntArray
    confidence: FloatArray
    rule: str
    expected: tuple[Expectations, ...]
    accuracy: Expected
    how: str
    costs: FloatArray
    expected_cost: float
    target: RecallTarget | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """Name of the decided class per task; None where there is no answer."""
        names = np.empty(len(self.classes) + 1, dtype=object)
        names[:-1] = self.classes
        names[-1] = None  # what -1 picks
        return np.asarray(names[self.codes])

    @property
    def n_abstained(self) -> int:
        """Number of tasks without an answer."""
        return int((self.codes == ABSTAINED).sum())


def decide(
    calibrated: CalibratedPosterior,
    *,
    costs: Costs | None = None,
    min_recall: Mapping[Any, float] | None = None,
    abstain_below: float | None = None,
    confidence: float = CONFIDENCE,
    random_gold: bool = False,
) -> Decision:
    """Decide on every task. Without further arguments: the label of the method, as in the paper.

    Tasks with gold always get their gold label.

    Args:
        costs: what it costs to decide one class where another is true; least expected cost decides. See
            :func:`rarevote.meaning.costs.cost_matrix` for the forms it may have.
        min_recall: one class and the recall that it should reach, such as ``{"defect": 0.95}``.
        abstain_below: give no answer where the method's label has a calibrated probability below this.
        confidence: with ``min_recall``, how sure a promise must be.
        random_gold: whether the known tasks are a random sample of all tasks. Only then can they promise a recall;
            reviewed tasks are not, because they were chosen for being doubtful. And only if ``calibrated.score`` is of
            a fit that did not learn from them: :meth:`rarevote.Fitted.decide` sees to that, here the caller has to.

    Raises:
        ParameterError: arguments out of range or at odds with each other.

    Example:
        >>> from rarevote.calibrate import calibrated
        >>> p = calibrated(np.array([[0.9, 0.1], [0.4, 0.6]]), prevalence=[0.5, 0.5], classes=np.array(["no", "yes"]))
        >>> decide(p).labels.tolist(), decide(p, costs="no:yes=1,yes:no=20").labels.tolist()
        (['no', 'yes'], ['yes', 'yes'])
    """
    rule = rule_of(
        costs=costs,
        min_recall=min_recall,
        abstain_below=abstain_below,
        confidence=confidence,
        random_gold=random_gold,
    )
    rule.check(calibrated.classes)
    basis = Basis(first_of_best(calibrated.method), calibrated.method, calibrated=calibrated)
    chosen = rule.choose(basis)
    codes = np.where(calibrated.gold >= 0, calibrated.gold, chosen.codes).astype(np.int64)
    return with_expectations(calibrated, codes, rule.words, rule.costs(calibrated.classes), chosen.target)


def confidence_of(probabilities: FloatArray, codes: IntArray) -> FloatArray:
    """Probability of each task's decided class, of the likeliest where there is no answer, (n)."""
    own = picked(probabilities, codes)
    return np.asarray(np.where(codes == ABSTAINED, probabilities.max(axis=1, initial=0.0), own))


def expected_costs(calibrated: CalibratedPosterior, codes: IntArray, costs: FloatArray) -> FloatArray:
    """Expected cost of each task's decision, (n); without an answer, that of the best there is."""
    table = calibrated.posterior @ costs
    own = picked(table, codes)
    return np.asarray(np.where(codes == ABSTAINED, table.min(axis=1, initial=np.inf), own))


# --------------------------------------------------------------------------------------------------------------------
# what to expect


def with_expectations(
    calibrated: CalibratedPosterior,
    codes: IntArray,
    rule: str,
    costs: FloatArray,
    target: RecallTarget | None = None,
) -> Decision:
    """The decision ``codes`` with what to expect of it."""
    answered = codes != ABSTAINED
    spent = float(expected_costs(calibrated, codes, costs)[answered].sum()) if codes.size else 0.0
    return Decision(
        calibrated.classes,
        codes,
        confidence_of(calibrated.posterior, codes),
        rule,
        tuple(expectations(calibrated, codes, k) for k in range(len(calibrated.classes))),
        expected_accuracy(calibrated, codes),
        f"as in real crowds whose annotators share some of their errors; class shares {calibrated.how}",
        costs,
        spent,
        target,
    )
