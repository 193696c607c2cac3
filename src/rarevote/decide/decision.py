"""The decision: one answer per item with its expected recall, precision and cost."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import object_array
from rarevote.crowd.numerics import FloatArray, IntArray, added, finite_or_none, picked
from rarevote.crowd.rare import RareClass
from rarevote.crowd.steps import doing
from rarevote.decide.expectations import (
    Belief,
    ClassCounts,
    Expectations,
    Expected,
    World,
    accuracy_from,
    count_class,
    count_labels,
    expectations_from,
)
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.recall_target import RecallTarget
from rarevote.decide.rules import ABSTAINED

_ONLY_SHARED = "as in real crowds whose annotators share some of their errors"
_BOTH_WORLDS = f"three quarters {_ONLY_SHARED}, one quarter as if annotators erred independently"


@dataclass(frozen=True, eq=False)
class Decision:
    """One answer per item, and what to expect of these answers.

    Attributes:
        classes: names of the classes, (K).
        rule: how it was decided, as text.
        expected: what to expect of every class: recall, precision, prevalence.
        accuracy: expected share of the labels that are right.
        of_rare: what to expect of the rare class, or of the items flagged for a tail.
        how: how that was estimated, as text.
        costs: cost of deciding (column) for a true class (row), (K, K).
        expected_cost: expected sum of the costs over all items with an answer.
        trivial: the same if all items got one label.
        n_abstained: number of items without an answer.
        target: the outcome of a recall target, if there was one.
        only_shared: why independent errors are not included, as text; empty if they are.
        codes: class number of each item, or -1 for no answer, (n); empty if items are on other machines.
        confidence: probability of the decided class, or of the likeliest without an answer, (n); likewise.
        flagged: items labelled as the rare class, or flagged for a tail, (n); likewise.
    """

    classes: NDArray[Any]
    rule: str
    expected: tuple[Expectations, ...]
    accuracy: Expected
    of_rare: Expectations
    how: str
    costs: FloatArray
    expected_cost: float
    trivial: TrivialCosts
    n_abstained: int
    target: RecallTarget | None = None
    only_shared: str = ""
    codes: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    confidence: FloatArray = field(default_factory=lambda: np.empty(0))
    flagged: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))

    @property
    def cost_description(self) -> str:
        """The expected cost, compared with giving all items one label."""
        return self.trivial.beside(self.expected_cost)

    @property
    def labels(self) -> NDArray[Any]:
        """Name of the decided class per item; None if there is no answer."""
        names = object_array([*self.classes.tolist(), None])  # index -1 picks the last one
        return np.asarray(names[self.codes])


class TrivialCosts(NamedTuple):
    """The expected cost of giving all items with an answer the same label, except those with gold.

    Attributes:
        rare: name of the class that matters.
        other: the other class that costs least.
        flag_all: cost of labelling every item as the class that matters.
        flag_none: cost of labelling every item as the other one.
    """

    rare: Any
    other: Any
    flag_all: float
    flag_none: float

    @classmethod
    def of(cls, constant: FloatArray, classes: NDArray[Any], rare: RareClass) -> TrivialCosts:
        """The costs, from the cost of giving each class to all items, (K)."""
        others = [k for k in range(len(classes)) if k not in rare.codes]
        if not others:
            return cls(rare.name, None, float(constant.sum()), np.nan)
        other = min(others, key=lambda k: constant[k])
        return cls(rare.name, classes[other], float(constant[list(rare.codes)].min()), float(constant[other]))

    def beside(self, cost: float) -> str:
        """The cost of a decision beside these, and whether they are less."""
        words = (
            f"expected cost of these decisions: {cost:,.1f}; of labelling every item {self.rare}: "
            f"{self.flag_all:,.1f}; of labelling no item {self.rare}: {self.flag_none:,.1f}"
        )
        if not self.less_than(cost):
            return words
        all_as = self.rare if self.flag_all <= self.flag_none else self.other
        return f"{words}. Labelling every item {all_as} is expected to cost less than these decisions"

    def less_than(self, cost: float) -> bool:
        """Whether giving all items one label is expected to cost less, beyond rounding."""
        return min(self.flag_all, self.flag_none) < cost * (1.0 - 1e-9)


class DecisionCounts(NamedTuple):
    """The counts of some items that expectations need; counts of two parts add up, entry by entry.

    Attributes:
        n_items: number of items.
        n_labels: number of items with an answer.
        flagged: items that got each class, (K).
        open: items whose class is not known, by class, probability of it and whether they got it, (K, N_BINS, 2).
        known: known items, by class and whether they got it, (K, 2).
        drawn: items in every draw of independent errors, by class and whether they got it, (K, n_draws, 2).
        labels_open: items with a label whose class is not known, by probability of the label, (N_BINS, 1).
        labels_known: known items whose label is right, (1).
        labels_drawn: items whose label is right in every draw of independent errors, (n_draws, 1).
        of_rare: items by probability of the rare class, or of a tail, and whether they are flagged.
        n_rare: number of flagged items.
        cost: expected cost of all answers.
        constant: the same if all items with an answer and without gold got each class, (K).
    """

    n_items: int
    n_labels: int
    flagged: IntArray
    open: IntArray
    known: IntArray
    drawn: IntArray
    labels_open: IntArray
    labels_known: IntArray
    labels_drawn: IntArray
    of_rare: ClassCounts
    n_rare: int
    cost: float
    constant: FloatArray

    @classmethod
    def of(
        cls,
        probabilities: Probabilities,
        codes: IntArray,
        costs: FloatArray,
        rare: RareClass,
        flagged: NDArray[np.bool_] | None = None,
    ) -> DecisionCounts:
        """The counts of some items; ``flagged`` are of the rare class (by default, those labelled so)."""
        flagged = rare.holds(codes) if flagged is None else flagged
        of_class = [count_class(probabilities, k, codes == k) for k in range(len(probabilities.classes))]
        of_labels, n_labels = count_labels(probabilities, codes)
        answered, known = codes != ABSTAINED, probabilities.gold >= 0
        own = expected_costs(probabilities.p, codes, costs) if codes.size else np.empty(0)
        return cls(
            len(codes),
            n_labels,
            np.bincount(codes[answered], minlength=len(of_class)),
            np.stack([one.open for one in of_class]),
            np.stack([one.known for one in of_class]),
            np.stack([one.drawn for one in of_class]),
            *of_labels,
            count_class(probabilities.against_the_rest(rare), 0, flagged) if rare.is_tail else of_class[rare.code],
            int(flagged.sum()),
            float(own[answered].sum()),
            (probabilities.p[answered & ~known] @ costs).sum(axis=0) + own[answered & known].sum(),
        )

    def plus(self, other: DecisionCounts) -> DecisionCounts:
        """The counts of the items of both."""
        return added(self, other)


def expected_decision(
    classes: NDArray[Any],
    counts: DecisionCounts,
    belief: Belief,
    rare: RareClass,
    *,
    rule: str,
    shares_from: str,
    costs: FloatArray,
    given: FloatArray | None = None,
    target: RecallTarget | None = None,
    only_shared: str = "",
) -> Decision:
    """A decision with its expectations.

    Args:
        classes: names of the classes, (K).
        counts: counts of all items.
        belief: how far the probabilities are trusted.
        rare: the class that matters.
        rule: how it was decided, as text.
        shares_from: where the class shares come from, as text.
        costs: costs of mistakes, (K, K).
        given: share of every class, if given, (K).
        target: the outcome of a recall target.
        only_shared: why independent errors are left out, as text.
    """
    found = [
        expectations_from(
            name,
            ClassCounts(counts.open[k], counts.known[k], counts.drawn[k]),
            int(counts.flagged[k]),
            counts.n_items,
            belief.of_class,
            None if given is None else float(given[k]),
        )
        for k, name in enumerate(classes.tolist())
    ]
    if len(found) == 2:
        # With two classes, one is the rest of the other: two draws of the same share would differ slightly.
        other = 1 - rare.code
        found[other] = replace(found[other], prevalence=found[rare.code].prevalence.rest)
    of_rare = found[rare.code]
    if rare.is_tail:
        share = None if given is None else float(rare.mass(given))
        of_rare = expectations_from(rare.name, counts.of_rare, counts.n_rare, counts.n_items, belief.of_class, share)
    return Decision(
        classes,
        rule,
        tuple(found),
        accuracy_from(
            ClassCounts(counts.labels_open, counts.labels_known, counts.labels_drawn), counts.n_labels, belief.of_labels
        ),
        of_rare,
        f"{_ONLY_SHARED if only_shared else _BOTH_WORLDS}; class shares {shares_from}",
        costs,
        counts.cost,
        TrivialCosts.of(counts.constant, classes, rare),
        counts.n_items - counts.n_labels,
        target,
        only_shared,
    )


def with_expectations(
    probabilities: Probabilities,
    codes: IntArray,
    rule: str,
    costs: FloatArray,
    rare: RareClass,
    target: RecallTarget | None = None,
    flagged: NDArray[np.bool_] | None = None,
) -> Decision:
    """The decision ``codes`` on items in memory, with its expectations; ``flagged`` items are of the rare class."""
    doing("estimating recall and precision")
    decision = expected_decision(
        probabilities.classes,
        DecisionCounts.of(probabilities, codes, costs, rare, flagged),
        Belief.in_probabilities(probabilities),
        rare,
        rule=rule,
        shares_from=probabilities.how,
        costs=costs,
        given=probabilities.mean if probabilities.is_given else None,
        target=target,
        only_shared=probabilities.independent.why_not,
    )
    own = rare.holds(codes) if flagged is None else flagged
    return replace(decision, codes=codes, confidence=confidence_of(probabilities.p, codes), flagged=own)


def confidence_of(p: FloatArray, codes: IntArray) -> FloatArray:
    """Probability of each item's decided class, or of the likeliest if there is no answer, (n)."""
    own = picked(p, codes)
    return np.asarray(np.where(codes == ABSTAINED, p.max(axis=1, initial=0.0), own))


def expected_costs(p: FloatArray, codes: IntArray, costs: FloatArray) -> FloatArray:
    """Expected cost of each item's decision, (n); without an answer, that of the best decision."""
    table = p @ costs
    own = picked(table, codes)
    return np.asarray(np.where(codes == ABSTAINED, table.min(axis=1, initial=np.inf), own))


# --------------------------------------------------------------------------------------------------------------------
# in figures


def rare_figures(
    rare: RareClass, class_votes: IntArray, n_flagged: int, n_unvoted: int, n_items: int
) -> dict[str, Any]:
    """Figures of the rare class, or a tail: number of items by the decision, their share, and the share of the votes.

    Args:
        n_flagged: number of items labelled so, or flagged for the tail.
        n_unvoted: number of items flagged without a vote in the tail.
    """
    n_votes = max(int(class_votes.sum()), 1)
    return {
        "class": str(rare.name),
        "is_rare": rare.is_rare,
        "named": rare.named,
        "tasks": n_flagged,
        "share_of_tasks": float(n_flagged / max(n_items, 1)),
        "share_of_votes": float(rare.mass(class_votes) / n_votes),
        **({"is_tail": True, "flagged_without_a_vote": n_unvoted} if rare.is_tail else {}),
    }


def class_figures(
    classes: NDArray[Any], labels: IntArray, class_votes: IntArray, n_items: int
) -> dict[str, dict[str, Any]]:
    """Figures of every class: number of items with the label, their share, and the share of the votes."""
    n_votes = max(int(class_votes.sum()), 1)
    return {
        str(name): {
            "tasks": int(count),
            "share_of_tasks": float(count / max(n_items, 1)),
            "share_of_votes": float(part / n_votes),
        }
        for name, count, part in zip(classes.tolist(), labels, class_votes, strict=True)
    }


def decision_figures(decision: Decision) -> dict[str, Any]:
    """The expectations of a decision as figures; an undefined figure is None."""

    def figure(name: str, found: Expected) -> dict[str, Any]:
        return {name: finite_or_none(found.value), f"{name}_interval": found.interval}

    def figures_of(one: Expectations) -> dict[str, Any]:
        shares = {"share": one.prevalence, "recall": one.recall, "precision": one.precision}
        return {
            **figure("share", one.prevalence),
            **figure("expected_recall", one.recall),
            **figure("expected_precision", one.precision),
            "unknown_without_an_audit": [what for what, found in shares.items() if found.is_unknown],
        }

    def in_world(one: Expectations, world: World) -> dict[str, Any]:
        return {
            **figure("share", one.prevalence.worlds[world]),
            **figure("expected_recall", one.recall.worlds[world]),
            **figure("expected_precision", one.precision.worlds[world]),
        }

    worlds: dict[World, dict[str, Any]] = {
        world: {
            "classes": {str(one.name): in_world(one, world) for one in decision.expected},
            **figure("expected_accuracy", accuracy),
        }
        for world, accuracy in decision.accuracy.worlds.items()
    }
    figures: dict[str, Any] = {
        "rule": decision.rule,
        "how": decision.how,
        "classes": {str(one.name): figures_of(one) for one in decision.expected},
        **figure("expected_accuracy", decision.accuracy),
        "worlds": worlds,
        "only_shared": decision.only_shared or None,
        "n_abstained": decision.n_abstained,
        "expected_cost": decision.expected_cost,
        "cost_of_flagging_all": finite_or_none(decision.trivial.flag_all),
        "cost_of_flagging_none": finite_or_none(decision.trivial.flag_none),
    }
    if all(one is not decision.of_rare for one in decision.expected):
        figures["tail"] = {"name": str(decision.of_rare.name), **figures_of(decision.of_rare)}
        for world, about in worlds.items():
            about["tail"] = in_world(decision.of_rare, world)
    if decision.target is not None:
        figures["recall_target"] = decision.target.figures()
    return figures
