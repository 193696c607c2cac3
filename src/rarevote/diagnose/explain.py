"""Why an item has its label: contributions of the prior and of each vote, which add up to the posterior.

In log odds of the label against its strongest rival::

    log P(label) / P(rival) = prior + sum of the contributions of the votes

For methods whose posterior is not such a sum (a majority vote, a threshold, a network), only votes and posterior are
shown.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import in_kind, positions_of
from rarevote.crowd.numerics import FloatArray, first_of_best
from rarevote.crowd.population import item_name
from rarevote.crowd.words import counted
from rarevote.errors import InputError
from rarevote.methods.base import Estimator

# The remaining difference between parameters and posterior of a fit; below this, it is rounding.
_ROUNDING = 1e-9
# Searching for a similar name among more names takes too long.
_MAX_COMPARED = 20_000


@dataclass(frozen=True, eq=False)
class Weighed:
    """The evidence on one item, in log odds of the label against the rival.

    Attributes:
        prior: contribution of the class prior.
        votes: contribution of each vote, (n_votes).
        rest: the difference between the posterior and the sum of prior and votes: the last step of a fit that reports
            parameters one step ahead of its posterior (Dawid–Skene), or rounding of a posterior in single precision;
            else 0.
        total: log odds of the posterior; the sum of all contributions.
        ability: probability that each voter recognises each class, on an item of average difficulty,
            (n_votes, n_classes).
        difficulty: difficulty of the item for each class on the method's scale, larger is harder, (n_classes), or None.
        features: contribution of the item's features, or None if none are used.
    """

    prior: float
    votes: FloatArray
    rest: float
    total: float
    ability: FloatArray
    difficulty: FloatArray | None
    features: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The explanation of one item.

    Attributes:
        number: number of the item in the population.
        task: its name.
        classes: names of all classes.
        label: number of its class.
        rival: number of the class that the label is compared with: that of the majority vote if it differs,
            else the second most probable.
        majority: number of the majority vote, ties to the first class; -1 without votes.
        workers: who voted, (n_votes).
        labels: number of the class that each vote names, (n_votes).
        votes: votes for every class, (n_classes).
        p: probability of every class, (n_classes).
        posterior: the method's own posterior, to which the evidence adds up, (n_classes).
        is_gold: whether the label is gold.
        weighed: the evidence, or None if the method's posterior is not a sum of evidence (or the label is gold).
        has_answer: whether the item has a label; without one, ``label`` is the likeliest class.
        method: name of the method.
        shown: columns to show about the item, by name.
    """

    number: int
    task: Any
    classes: NDArray[Any]
    label: int
    rival: int
    majority: int
    workers: NDArray[Any]
    labels: NDArray[np.int64]
    votes: NDArray[np.int64]
    p: FloatArray
    posterior: FloatArray
    is_gold: bool
    weighed: Weighed | None
    has_answer: bool = True
    method: str = ""
    shown: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        label = self.classes[self.label] if self.has_answer else "no answer"
        return f"Explanation({self.task}: {label}, {counted(len(self.labels), 'vote')})"

    def __str__(self) -> str:
        from rarevote.diagnose.explain_text import explanation_text

        return explanation_text(self)


def explain(
    estimator: Estimator,
    number: int,
    label: int,
    p: FloatArray,
    *,
    is_gold: bool = False,
    shown: Mapping[str, NDArray[Any]] | None = None,
) -> Explanation:
    """Explain the label of one item; see :meth:`rarevote.Result.explain`.

    Args:
        estimator: the fitted method.
        number: number of the item; items without votes come last.
        label: number of its class, or -1 for no answer.
        p: probability of every class, (n_classes).
        is_gold: whether the label is gold.
        shown: columns of the population to show.
    """
    crowd = estimator.annotations_
    own = crowd.votes_on(number)
    labels = crowd.label[own].astype(np.int64)
    votes = np.bincount(labels, minlength=crowd.n_classes)
    majority = int(first_of_best(votes[None])[0]) if len(labels) else -1
    # Without an answer, explain the likeliest class.
    weighed_label = label if label >= 0 else int(p.argmax())
    others = p.copy()
    others[weighed_label] = -1.0
    rival = majority if majority not in (-1, weighed_label) else int(others.argmax())
    posterior = _posterior_of(estimator, number, p)
    weighed = None
    if estimator.capabilities.explain and not is_gold and crowd.n_classes > 1:
        weighed = _weighed(estimator, number, weighed_label, rival, posterior)
    return Explanation(
        number,
        item_name(crowd, number),
        crowd.classes,
        weighed_label,
        rival,
        majority,
        crowd.workers[crowd.worker[own]],
        labels,
        votes,
        p,
        posterior,
        is_gold,
        weighed,
        has_answer=label >= 0,
        method=estimator.method_name,
        shown={name: str(texts[number]) for name, texts in (shown or {}).items()},
    )


def _posterior_of(estimator: Estimator, number: int, p: FloatArray) -> FloatArray:
    """The method's own posterior; for an item without votes, the prior from its features, if it has any."""
    if number < estimator.annotations_.n_tasks:
        return np.asarray(estimator.posterior_[number])
    outcome = estimator.feature_outcome
    return p if outcome is None else np.asarray(outcome.priors[number])


def find_task(crowd: Annotations, name: Any, title: str = "the data", *, free: NDArray[np.bool_] | None = None) -> int:
    """The number of a task, given by its name in the data or as text.

    Args:
        crowd: the votes.
        name: name of the task.
        title: the name of the data in messages.
        free: items of the population whose label needs no vote, (n); None for none.

    Raises:
        InputError: there is no such task; the message names similar ones.
    """
    (number,) = positions_of(crowd.tasks, in_kind([name], crowd.tasks)).tolist()
    if number >= 0:
        return int(number)
    if len(crowd.unanswered):
        (place,) = positions_of(crowd.unanswered, in_kind([name], crowd.unanswered)).tolist()
        if place >= 0 and free is not None and free[crowd.n_tasks + place]:
            return int(crowd.n_tasks + place)
        if place >= 0:
            without = "votes" if free is None else "votes and no features"
            raise InputError(f"{title}: task {name!r} has no {without}, so it has no label to explain")
    few = list(map(str, crowd.tasks[:_MAX_COMPARED].tolist()))
    near = difflib.get_close_matches(str(name), few, n=3)
    hint = f"similar: {', '.join(near)}" if near else f"tasks look like {few[0]}"
    raise InputError(f"{title}: there is no task {name!r}; {hint}")


def _weighed(estimator: Estimator, task: int, label: int, rival: int, posterior: FloatArray) -> Weighed:
    found = estimator.evidence(task)
    prior = float(found.log_prior[label] - found.log_prior[rival])
    votes = found.of_votes[:, label] - found.of_votes[:, rival]
    features = None if found.of_features is None else float(found.of_features[label] - found.of_features[rival])
    total = prior + (features or 0.0) + float(votes.sum())
    rest = 0.0
    # A probability that underflows to zero carries no information about the odds.
    if posterior[rival] > np.finfo(posterior.dtype).tiny:
        rest = float(np.log(float(posterior[label])) - np.log(float(posterior[rival]))) - total
        rest = rest if abs(rest) > _ROUNDING * max(1.0, abs(total)) else 0.0
    return Weighed(prior, votes, rest, total + rest, found.ability, found.difficulty, features)
