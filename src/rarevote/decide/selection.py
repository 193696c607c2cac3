"""The selection of a rule, from its name or from the arguments of a decision."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from rarevote.crowd.grades import Grades, order_wanted
from rarevote.decide.balanced import Balanced
from rarevote.decide.costs import Costs
from rarevote.decide.ordered import BalancedMedian, GradeRule, Levelled, MeanGrade, Median
from rarevote.decide.recall_target import CONFIDENCE, ERRORS, check_errors
from rarevote.decide.rules import AbstainBelow, Argmax, LeastCost, MinRecall, OwnLabels, Rule
from rarevote.errors import ParameterError, how

#: rules by name; a rule with a field ``cap`` also takes it after a colon
RULES: dict[str, type[Rule]] = {"labels": OwnLabels, "argmax": Argmax, "balanced": Balanced}
#: rules by name that need the order of the classes
GRADE_RULES: dict[str, type[GradeRule]] = {
    "levelled": Levelled,
    "median": Median,
    "mean": MeanGrade,
    "balanced-median": BalancedMedian,
}


def parse_rule(text: str, grades: Grades | None = None) -> Rule:
    """A rule by name: those of :data:`RULES`, such as ``balanced`` or ``balanced:5``; for grades also others.

    Args:
        text: the name; with an order also one of :data:`GRADE_RULES`, such as ``median`` or ``balanced-median:5``.
        grades: the order of the classes, if there is one.

    >>> parse_rule("balanced:5")
    Balanced(cap=5.0)
    """
    name, colon, cap = text.strip().partition(":") if isinstance(text, str) else ("", "", "")
    kind = RULES.get(name) or GRADE_RULES.get(name)
    if kind is None or (colon and not _takes_cap(kind)):
        of_grades = "" if grades is None else f"; of grades also {rule_names(GRADE_RULES)}"
        raise ParameterError(f"{text!r} is not a decision: there are {rule_names(RULES)}{of_grades}")
    given: dict[str, Any] = {}
    if name in GRADE_RULES:
        if grades is None:
            raise ParameterError(f"{text!r} decides about grades and needs their order: give {order_wanted()}")
        given["grades"] = grades
    try:
        return kind(**given, **({"cap": float(cap)} if colon else {}))
    except ValueError:
        raise ParameterError(f"{name} takes a cap of at least 1, such as {name}:5, not {cap!r}") from None


def _takes_cap(kind: type[Rule]) -> bool:
    return "cap" in inspect.signature(kind).parameters


def rule_names(rules: Mapping[str, type[Rule]]) -> str:
    """The names of the rules, as text.

    >>> rule_names(RULES)
    'labels, argmax, balanced and balanced:CAP'
    """
    *first, last = [*rules, *(f"{name}:CAP" for name, kind in rules.items() if _takes_cap(kind))]
    return f"{', '.join(first)} and {last}"


def rule_of(
    decide: Rule | str | None = None,
    *,
    costs: Costs | None = None,
    min_recall: Mapping[Any, float] | str | None = None,
    abstain_below: float | None = None,
    cap: float | None = None,
    confidence: float = CONFIDENCE,
    random_gold: bool = False,
    errors: Any = ERRORS,
    own: Rule | None = None,
    grades: Grades | None = None,
) -> Rule:
    """The rule that these arguments describe; without any, ``own``, the method's rule.

    Raises:
        ParameterError: several ways to decide at once, or an argument out of range.
    """
    given = {"decide": decide, "costs": costs, "min_recall": min_recall, "cap": cap, "abstain_below": abstain_below}
    chosen = [name for name, value in given.items() if value is not None]
    if len(chosen) > 1:
        raise ParameterError(f"{' and '.join(chosen)} cannot be used together: choose one")
    if check_errors(errors) != ERRORS and min_recall is None:
        raise ParameterError(
            f"{how('errors', '--errors')} {errors} sets how a recall target is counted: use it with "
            f"{how('min_recall', '--min-recall')}"
        )
    if isinstance(decide, Rule):
        return decide
    if decide is not None:
        return parse_rule(decide, grades)
    if cap is not None:
        return Balanced(cap)
    if costs is not None:
        return LeastCost(costs)
    if min_recall is not None:
        return MinRecall(min_recall, confidence, random_gold, grades, errors)
    plain = own or OwnLabels()
    return plain if abstain_below is None else AbstainBelow(abstain_below, plain)
