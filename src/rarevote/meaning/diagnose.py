"""What a fit says about its annotators, items and classes, as frozen records; no file, no chart, no text.

A label is a decision, a probability is a statement about the world, and the two come from different places. CC-Rasch
decides under a uniform class prior, which buys recall of the rare class; its posteriors and abilities are then those of
a world in which all classes are equally frequent. What is called a probability, an expectation or an accuracy here
comes from :mod:`rarevote.meaning.calibrate` instead; what the method itself says is kept beside it where it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.rare import rare_class
from rarevote.errors import InputError
from rarevote.meaning.agreement import AnnotatorAgreement, agreement_of
from rarevote.meaning.calibrate import CalibratedPosterior, calibrate_fit
from rarevote.meaning.classes import (
    Classes,
    Overruled,
    Point,
    TradeOff,
    describe_classes,
    describe_overruled,
    trade_off,
)
from rarevote.meaning.errors_alike import ErrorsAlike, errors_alike
from rarevote.meaning.items import Items, describe_items
from rarevote.meaning.truth import Calibration, TruthCheck, check_truth
from rarevote.meaning.workers import Profile, Workers, describe_workers
from rarevote.methods.base import Estimator

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
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Pairs of votes up to which every pair of annotators is looked at: a page of the rest says "unknown".
_MAX_SHARED = 20_000_000
# Each costs a sort of all items.
_MAX_TRADE_OFFS = 8


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
        true_trade_offs: the same counted on the truth; empty without it.
        truth: the result against the truth, or None.
        shares_from: how the shares of the classes were obtained, in words.
        history: the objective of the fit after each iteration.
        n_iter: iterations done.
        converged: whether the stopping rule was met.
        status: how the fit ended, in words.
        agreement: how far annotators agree.
        alike: who errs alike.
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
    shares_from: str
    history: tuple[float, ...]
    n_iter: int
    converged: bool
    status: str
    agreement: AnnotatorAgreement
    alike: ErrorsAlike


def diagnose(
    estimator: Estimator,
    *,
    calibration: CalibratedPosterior | None = None,
    labels: NDArray[Any] | None = None,
    rare: Any = None,
    truth: Mapping[Any, Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
    models: Iterable[Any] = (),
) -> Diagnosis:
    """Describe annotators, items and classes of a fitted crowd.

    Args:
        estimator: the fitted method, whose labels these are.
        calibration: its probabilities; computed by :func:`calibrate_fit` if not given.
        labels: class numbers of another decision than the method's own, -1 for no answer, (n_tasks).
        rare: the class that matters; the one with the fewest votes if not given (:mod:`rarevote.crowd.rare`).
        truth: true labels to check the result against.
        gold: true labels that the fit was given.
        models: names of the workers that are models.

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
    calibration = calibrate_fit(estimator, gold) if calibration is None else calibration
    decided = estimator.label_codes() if labels is None else np.asarray(labels, dtype=np.int64)
    expected = calibration.posterior.sum(axis=0)
    rare_code = rare_class(crowd, rare)
    others = [int(k) for k in np.argsort(expected, kind="stable") if k != rare_code]
    common = others[-1] if others else rare_code
    drawn = [rare_code, *others[: _MAX_TRADE_OFFS - 1]]
    workers = describe_workers(crowd, decided, calibration, rare=rare_code, common=common)
    items = describe_items(
        estimator,
        decided,
        calibration.posterior,
        typical_accuracy=workers.typical_accuracy,
        is_known=calibration.gold >= 0,
    )
    check = None
    if truth is not None:
        check = check_truth(items, crowd.classes, truth, rare=rare_code, posterior=estimator.posterior_)
    return Diagnosis(
        crowd=crowd,
        rare=rare_code,
        common=common,
        workers=workers,
        items=items,
        classes=describe_classes(items, workers, calibration),
        overruled=describe_overruled(items),
        trade_offs=tuple(trade_off(items, k) for k in drawn),
        true_trade_offs=_true_trade_offs(crowd, items, check, drawn),
        truth=check,
        shares_from=calibration.how,
        history=tuple(estimator.loss_history_),
        n_iter=estimator.n_iter_,
        converged=estimator.converged_,
        status=estimator.status_,
        agreement=agreement_of(crowd, most_shared=_MAX_SHARED),
        alike=errors_alike(crowd, gold=calibration.gold.astype(np.int64), models=models),
    )


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
