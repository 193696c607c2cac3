"""What a fit says about its annotators, items and classes, as frozen records; no file, no chart, no text.

A label is a decision, a probability is a statement about the world, and the two may come from different fits. CC-Rasch
decides under a uniform class prior, which buys recall of the rare class; but under that prior the model also explains
the votes as if half of all items were rare, so neither its posteriors nor its abilities describe the crowd: on a crowd
with one rare item in eight it sees almost as many rare items as common ones. Abilities, probabilities and
expected counts are therefore read from a *reference*: the same model with the class shares estimated
(:func:`reference_fit`). Methods that learn the shares anyway are their own reference.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations
from rarevote.diagnose.classes import (
    Classes,
    Overruled,
    Point,
    TradeOff,
    describe_classes,
    describe_overruled,
    trade_off,
)
from rarevote.diagnose.items import Items, describe_items
from rarevote.diagnose.truth import Calibration, TruthCheck, check_truth
from rarevote.diagnose.workers import Profile, Workers, describe_workers
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.estimator import Estimator

__all__ = [
    "Calibration",
    "Classes",
    "Diagnosis",
    "Items",
    "Overruled",
    "Point",
    "Profile",
    "TradeOff",
    "TruthCheck",
    "Workers",
    "diagnose",
    "reference_fit",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Each costs a sort of all items.
_MOST_TRADE_OFFS = 8


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything that is known about a fitted crowd.

    Attributes:
        crowd: the votes.
        rare: number of the class that matters.
        common: number of the most frequent other class.
        workers: about the annotators.
        items: about the items.
        classes: about the classes.
        overruled: where the result differs from a majority vote.
        trade_offs: expected, of the rare class and up to seven others, those with the fewest expected items first.
        true_trade_offs: the same counted on known answers; empty without them.
        truth: the result against known answers, or None.
        history: the objective of the fit after each iteration.
        n_iter: iterations done.
        converged: whether the stopping rule was met.
        status: how the fit ended, in words.
    """

    crowd: Annotations
    rare: int
    common: int
    workers: Workers
    items: Items
    classes: Classes
    overruled: Overruled
    trade_offs: tuple[TradeOff, ...]
    true_trade_offs: tuple[TradeOff, ...]
    truth: TruthCheck | None
    history: tuple[float, ...]
    n_iter: int
    converged: bool
    status: str


def reference_fit(estimator: Estimator, gold: Mapping[Any, Any] | None = None) -> Estimator:
    """The fit whose abilities and probabilities describe the crowd: with the class shares estimated.

    Args:
        estimator: a fitted method.
        gold: the known labels that it was given.

    Returns:
        The same method with ``prior="estimate"``, fitted to the same votes; the estimator itself if it learns the
        shares, was told them, or has no such parameter.
    """
    parameters = estimator.get_params()
    told = parameters.get("labels_priors") is not None
    if told or not (isinstance(parameters.get("prior"), str) and parameters["prior"] == "uniform"):
        return estimator
    other = type(estimator)(**{**parameters, "prior": "estimate"})
    with warnings.catch_warnings():
        # Whether it settled is in the record; the gold was warned of when the estimator itself was fitted.
        warnings.simplefilter("ignore", RarevoteWarning)
        return other.fit(estimator.annotations_, gold)


def diagnose(
    estimator: Estimator,
    *,
    reference: Estimator | None = None,
    labels: NDArray[Any] | None = None,
    shares: Sequence[FloatArray] | None = None,
    rare: Any = None,
    truth: Mapping[Any, Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
) -> Diagnosis:
    """Describe annotators, items and classes of a fitted crowd.

    Args:
        estimator: the fitted method, whose labels these are.
        reference: the fit that abilities and probabilities are read from; made by :func:`reference_fit` if not given.
        labels: class numbers of another decision than the method's own, (n_tasks).
        shares: lower and upper ends of the share of items that have each class, if known.
        rare: the class that matters; the one with the fewest expected items among those with votes if not given.
        truth: known answers to check the result against.
        gold: known answers that the fit was given.

    Raises:
        InputError: there are no votes, or the truth names none of the tasks.
        ParameterError: ``rare`` is no class.

    Example:
        >>> from rarevote import MajorityVote
        >>> workers = ["ann", "bob", "cy", "ann", "bob", "ann"]
        >>> found = diagnose(MajorityVote().fit(([0, 0, 0, 1, 1, 2], workers, ["no", "no", "yes", "no", "no", "yes"])))
        >>> found.classes.names[found.rare], found.classes.n_labelled.tolist(), found.workers.n_votes.tolist()
        ('yes', [2, 1], [3, 2, 1])
    """
    crowd = estimator.annotations_
    if not crowd.n_annotations:
        raise InputError("no annotations: there is nothing to describe")
    reference = reference_fit(estimator, gold) if reference is None else reference
    decided = estimator.label_codes() if labels is None else np.asarray(labels, dtype=np.int64)
    probabilities = reference.posterior_
    known = set(gold or ())
    is_known = np.array([name in known for name in crowd.tasks.tolist()], dtype=bool)
    items = describe_items(reference, decided, probabilities, is_known=is_known)
    rare_code = _rare_class(crowd, items, rare)
    expected = items.probabilities.sum(axis=0)
    others = [int(k) for k in np.argsort(expected, kind="stable") if k != rare_code]
    common = others[-1] if others else rare_code
    drawn = [rare_code, *others[: _MOST_TRADE_OFFS - 1]]
    workers = describe_workers(reference, decided, probabilities, rare=rare_code, common=common)
    check = None
    if truth is not None:
        check = check_truth(items, crowd.classes, truth, rare=rare_code, posterior=estimator.posterior_)
    return Diagnosis(
        crowd=crowd,
        rare=rare_code,
        common=common,
        workers=workers,
        items=items,
        classes=describe_classes(crowd.classes, items, workers, shares),
        overruled=describe_overruled(items),
        trade_offs=tuple(trade_off(items, k) for k in drawn),
        true_trade_offs=_true_trade_offs(crowd, items, check, drawn),
        truth=check,
        history=tuple(estimator.loss_history_),
        n_iter=estimator.n_iter_,
        converged=estimator.converged_,
        status=estimator.status_,
    )


def _rare_class(crowd: Annotations, items: Items, wanted: Any) -> int:
    names = crowd.classes.tolist()
    if wanted is not None:
        # On the command line a class is text, whatever type it has in the file.
        matches = [k for k, name in enumerate(names) if name == wanted or str(name) == str(wanted)]
        if not matches:
            shown = ", ".join(str(name) for name in names[:12]) + (" ..." if len(names) > 12 else "")
            raise ParameterError(f"rare={wanted!r} is no class of these data; there are {shown}")
        return matches[0]
    expected = np.where(items.votes.sum(axis=0) > 0, items.probabilities.sum(axis=0), np.inf)
    return int(expected.argmin())


def _true_trade_offs(
    crowd: Annotations, items: Items, check: TruthCheck | None, drawn: Sequence[int]
) -> tuple[TradeOff, ...]:
    if check is None:
        return ()
    place = {name: code for code, name in enumerate(check.classes)}
    has_class = (check.truth == place[name] for name in crowd.classes[list(drawn)].tolist())
    return tuple(
        trade_off(items, k, own.astype(np.float64), check.items) for k, own in zip(drawn, has_class, strict=True)
    )
