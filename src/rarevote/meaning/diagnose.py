"""What a fit says about its annotators, items and classes, as frozen records; no file, no chart, no text.

A label is a decision, a probability is a statement about the world, and the two come from different places. CC-Rasch
decides under a uniform class prior, which buys recall of the rare class; its posteriors and abilities are then those of
a world in which all classes are equally frequent. What is called a probability, an expectation or an accuracy here
comes from :mod:`rarevote.meaning.calibrate` instead; what the method itself says is kept beside it where it matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import IntArray, rare_class
from rarevote.errors import InputError
from rarevote.meaning.agreement import AnnotatorAgreement, agreement_of
from rarevote.meaning.calibrate import CalibratedPosterior, calibrate_fit
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.errors_alike import ErrorsAlike, errors_alike
from rarevote.meaning.expect import Expectations, Expected, expectations, expected_accuracy
from rarevote.meaning.items import (
    Classes,
    Items,
    Overruled,
    Piles,
    Point,
    TradeOff,
    believed,
    describe_classes,
    describe_items,
    describe_overruled,
    expected_trade_off,
    make_piles,
    trade_off,
)
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

# Pairs of votes up to which every pair of annotators is looked at: a page of the rest says "unknown".
_MAX_SHARED = 20_000_000
# Each costs a sort of all items and many draws.
_MAX_TRADE_OFFS = 8
# Of many classes, one that is expected less often than this is a chance of the sample and no class to speak of.
_MIN_ITEMS = 10
# Of more classes than these none stands out by itself.
_MAX_FEW = 12


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Everything that is known about a fitted crowd.

    Attributes:
        crowd: the votes.
        rare: number of the class that matters; of several classes one that has enough items to be spoken of.
        common: number of the most frequent other class.
        workers: about the annotators.
        items: about the items.
        classes: about the classes.
        overruled: where the result differs from a majority vote.
        leading: the class that a headline speaks of: the rare one, or None where it is one of many.
        expected: what to expect of the labels of the rare class and up to seven others.
        expected_accuracy: share of all labels that are expected to be right.
        piles: the items by how sure it is that they are of the rare class.
        trade_offs: expected, of the same classes, those with the fewest items first.
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
    leading: int | None
    expected: Mapping[int, Expectations]
    expected_accuracy: Expected
    piles: Piles
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
        rare: the class that matters; the one with the fewest votes if not given (:mod:`rarevote.crowd.numerics`).
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
    mass = calibration.posterior.sum(axis=0)
    rare_code, leads = _class_to_describe(crowd, decided, rare)
    others = [int(k) for k in np.argsort(mass, kind="stable") if k != rare_code]
    common = others[-1] if others else rare_code
    # The rarest first, but those of which there are too few to say anything last.
    telling = sorted(others, key=lambda k: bool(mass[k] < _MIN_ITEMS))
    drawn = [rare_code, *telling[: _MAX_TRADE_OFFS - 1]]
    expected = {k: expectations(calibration, decided, k, crowd.votes()) for k in drawn}
    mass_of = {k: believed(calibration, k) for k in drawn}
    if len(drawn) == crowd.n_classes == 2:
        # What is not of the one class is of the other.
        expected[common] = replace(expected[common], prevalence=_all_but(expected[rare_code].prevalence))
        mass_of[common] = 1.0 - mass_of[rare_code]
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
        classes=describe_classes(items, workers, calibration, expected),
        overruled=describe_overruled(items, mass_of),
        leading=rare_code if leads else None,
        expected=expected,
        expected_accuracy=expected_accuracy(calibration, decided),
        piles=make_piles(mass_of[rare_code]),
        trade_offs=tuple(expected_trade_off(items, k, mass_of[k], expected[k]) for k in drawn),
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


def _all_but(share: Expected) -> Expected:
    return Expected(1.0 - share.value, 1.0 - share.high, 1.0 - share.low)


def _class_to_describe(crowd: Annotations, labels: IntArray, rare: Any) -> tuple[int, bool]:
    """The class that the records are about, and whether a headline may speak of it.

    That is the rare class, but for more than two classes of which it has too few items to say anything: then it is the
    rarest that has enough. Of many classes none stands out, unless somebody named one.
    """
    found = rare_class(crowd, rare)
    if crowd.n_classes <= 2 or (rare is not None and found != rare_class(crowd)):
        return found, True
    voted = (crowd.votes() > 0).sum(axis=0)
    labelled = np.bincount(labels[labels != ABSTAINED], minlength=crowd.n_classes)
    telling = np.flatnonzero(np.minimum(voted, labelled) >= _MIN_ITEMS)
    if not telling.size:
        return found, False
    n_votes = crowd.class_votes
    rarest = int(telling[n_votes[telling].argmin()])
    return rarest, crowd.n_classes <= _MAX_FEW


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
