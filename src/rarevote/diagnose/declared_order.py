"""The declared order of grades: the method for it, and doubts about the order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import MIN_GRADES, Grades
from rarevote.crowd.names import as_name_array, some_names
from rarevote.diagnose.order import order_doubt
from rarevote.errors import ParameterError, warn_user
from rarevote.methods.base import Estimator
from rarevote.methods.registry import DEFAULT_METHOD, ORDERED_METHOD, find_method


def with_order(method: str | Estimator | None, ordered: Any) -> tuple[Estimator, Grades | None]:
    """The method, and the order of the classes if there is one; raises an error if they do not match."""
    grades = None if ordered is None else Grades.of(ordered)
    if not isinstance(method, Estimator):
        method = find_method(method or (DEFAULT_METHOD if grades is None else ORDERED_METHOD)).load()()
    estimator = method
    if not estimator.capabilities.ordered:
        return estimator, grades
    if grades is not None:
        own = estimator.get_params()["ordered"]
        if own is not None and Grades.of(own).text != grades.text:
            raise ParameterError("the order is given twice, and differs: leave ordered out of the method or of fit")
        estimator.set_params(ordered=list(grades.names))
    return estimator, estimator.grades


def for_grades(estimator: Estimator, grades: Grades, votes: Annotations, known: Mapping[Any, Any]) -> Estimator:
    """The method for these grades: the default if too few of them have votes or gold to form an order."""
    voted = votes.classes[votes.class_votes > 0].tolist()
    met = as_name_array(list(dict.fromkeys([*voted, *known.values()])))
    for words in (grades.doubt(met), order_doubt(votes, grades)):
        if words is not None:
            warn_user(words)
    found = grades.met(met)
    if len(found) >= MIN_GRADES or not estimator.capabilities.ordered:
        return estimator
    warn_user(
        f"only {some_names(found)} of the grades {'has' if len(found) == 1 else 'have'} votes, and an order "
        f"needs at least {MIN_GRADES}: {DEFAULT_METHOD} is fitted instead"
    )
    return find_method(DEFAULT_METHOD).load()().set_params(n_jobs=estimator.n_jobs)
