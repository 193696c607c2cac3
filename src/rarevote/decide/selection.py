"""The selection of a rule, from its name or from the arguments of a decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarevote.crowd.grades import Grades, order_wanted
from rarevote.decide.balanced import Balanced
from rarevote.decide.costs import Costs
from rarevote.decide.ordered import BalancedMedian, GradeRule, Levelled, MeanGrade, Median
from rarevote.decide.recall_target import CONFIDENCE
from rarevote.decide.rules import AbstainBelow, Argmax, LeastCost, MinRecall, OwnLabels, Rule
from rarevote.errors import ParameterError

_OF_GRADES: dict[str, type[GradeRule]] = {"levelled": Levelled, "median": Median, "mean": MeanGrade}
#: rules that need the order of the classes
GRADE_RULES = (*_OF_GRADES, BalancedMedian.name)


def parse_rule(text: str, grades: Grades | None = None) -> Rule:
    """A rule by name: ``labels`` (the method's own), ``argmax``, ``balanced``, ``balanced:5``; of grades also others.

    Args:
        text: the name; with an order also ``levelled``, ``median``, ``mean``, ``balanced-median``,
            ``balanced-median:5``.
        grades: the order of the classes, where there is one.

    >>> parse_rule("balanced:5")
    Balanced(cap=5.0)
    """
    name, colon, cap = text.strip().partition(":")
    if name == BalancedMedian.name or (name in _OF_GRADES and not colon):
        if grades is None:
            raise ParameterError(f"{text!r} decides about grades and needs their order: give {order_wanted()}")
        if name in _OF_GRADES:
            return _OF_GRADES[name](grades)
        try:
            return BalancedMedian(grades, cap=float(cap)) if colon else BalancedMedian(grades)
        except ValueError:
            raise ParameterError(f"{name} takes a cap of at least 1, such as {name}:5, not {cap!r}") from None
    if name == "labels" and not colon:
        return OwnLabels()
    if name == "argmax" and not colon:
        return Argmax()
    if name == "balanced":
        try:
            return Balanced(float(cap)) if colon else Balanced()
        except ValueError:
            raise ParameterError(f"balanced takes a cap of at least 1, such as balanced:5, not {cap!r}") from None
    of_grades = "" if grades is None else f"; of grades also {', '.join(GRADE_RULES)} and {BalancedMedian.name}:CAP"
    raise ParameterError(f"{text!r} is not a decision: there are labels, argmax, balanced and balanced:CAP{of_grades}")


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
    grades: Grades | None = None,
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
        return parse_rule(decide, grades)
    if cap is not None:
        return Balanced(cap)
    if costs is not None:
        return LeastCost(costs)
    if min_recall is not None:
        return MinRecall(min_recall, confidence, random_gold)
    plain = own or OwnLabels()
    return plain if abstain_below is None else AbstainBelow(abstain_below, plain)
