"""The diagnosis of a fit: annotators, items and classes, as frozen records without files, charts or text.

Probabilities, expectations and labels are not computed here: they come from the result that is described
(:class:`rarevote.Result`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import Grades
from rarevote.crowd.names import numbered
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.rare import RareClass
from rarevote.crowd.steps import doing
from rarevote.decide.decision import Decision
from rarevote.decide.expectations import Expectations, Expected, believed, majority_recall
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.review import review_gains
from rarevote.diagnose.agreement import AnnotatorAgreement, agreement_of
from rarevote.diagnose.classes import Classes, describe_classes
from rarevote.diagnose.items import Items, Overruled, describe_items, describe_overruled
from rarevote.diagnose.leaning import leaning_of, world_sentences
from rarevote.diagnose.ordered_agreement import OrderedAgreement, ordered_agreement
from rarevote.diagnose.piles import Piles, make_piles
from rarevote.diagnose.shared_errors import ErrorsAlike, errors_alike
from rarevote.diagnose.tail_view import tail_view
from rarevote.diagnose.trade_off import Point, TradeOff, expected_trade_off, trade_off
from rarevote.diagnose.truth import Calibration, TruthCheck, check_truth
from rarevote.diagnose.workers import Profile, Workers, describe_workers
from rarevote.errors import InputError
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

# The largest number of pairs of votes for which every pair of annotators is compared; with more, a page says "unknown".
_MAX_SHARED = 20_000_000
# Each needs a sort of all items and many draws.
_MAX_TRADE_OFFS = 8
# Among many classes, a class with fewer expected items is too small to report.
_MIN_ITEMS = 10
# A class with a larger share of the votes is not rare: unless it is named, all classes are treated alike.
_MAX_SHARE_OF_RARE = 0.2
# With more classes, none stands out unless it is named.
_MAX_FEW = 12
# Up to this many grades are shown in order if there is no space for all classes.
_MAX_IN_ORDER = 6


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The diagnosis of a fitted crowd.

    Attributes:
        crowd: the votes.
        n_items: number of all items, including those without votes.
        rare: number of the class that matters.
        common: number of the most frequent other class.
        workers: about the annotators.
        items: about the items.
        classes: about the classes.
        overruled: the items on which the result differs from a majority vote.
        leading: the main class of the page: the rare one, or None if all classes are treated alike.
        expected: what to expect of the labels of every class.
        majority_recall: the expected recall of a majority vote, for the rare class and up to seven others.
        expected_accuracy: share of all labels that are expected to be right.
        worlds: what to expect of the rare class in each world, and which one the evidence favours, as sentences.
        piles: all items by whether they are worth a review, those with votes first.
        trade_offs: expected trade-offs of the same classes, those with the fewest items first.
        true_trade_offs: the same counted with the truth; empty without it.
        truth: the result compared with the truth, or None.
        shares_from: how the shares of the classes were obtained, as text.
        method: name of the method.
        history: the objective of the fit after each iteration.
        n_iter: number of iterations.
        converged: whether the stopping rule was met.
        status: how the fit ended, as text.
        agreement: how far annotators agree.
        alike: which annotators make the same mistakes.
        on_grades: how far they agree on grades, if the classes have an order.
        grades: the order of the classes.
        leans: how many grades above the crowd's median each annotator rates, (n_workers), if the method estimates it.
        of_tail: the diagnosis of the tail of grades that matters, treated as two classes.
    """

    crowd: Annotations
    n_items: int
    rare: int
    common: int
    workers: Workers
    items: Items
    classes: Classes
    overruled: Overruled
    leading: int | None
    expected: Mapping[int, Expectations]
    majority_recall: Mapping[int, Expected]
    expected_accuracy: Expected
    worlds: tuple[str, ...]
    piles: Piles
    trade_offs: tuple[TradeOff, ...]
    true_trade_offs: tuple[TradeOff, ...]
    truth: TruthCheck | None
    shares_from: str
    method: str
    history: tuple[float, ...]
    n_iter: int
    converged: bool
    status: str
    agreement: AnnotatorAgreement
    alike: ErrorsAlike
    on_grades: OrderedAgreement | None = None
    grades: Grades | None = None
    leans: FloatArray | None = None
    of_tail: Diagnosis | None = None

    @property
    def head(self) -> Diagnosis:
        """The diagnosis for headlines: that of the tail that matters, if there is one."""
        return self.of_tail or self

    @property
    def in_order(self) -> list[int] | None:
        """Numbers of the classes: grades in their order, then those outside the scale; None without an order."""
        if self.grades is None:
            return None
        inside = self.grades.codes(self.classes.names)
        return [*inside, *(k for k in range(len(self.classes.names)) if k not in inside)]

    @property
    def rare_name(self) -> str:
        """Name of the class that matters."""
        return str(self.classes.names[self.rare])

    @property
    def classes_by_weight(self) -> list[int]:
        """Numbers of the classes: few grades in order; otherwise the main class, then those with the most labels."""
        if self.in_order is not None and len(self.in_order) <= _MAX_IN_ORDER:
            return self.in_order
        largest_first = np.argsort(-self.classes.n_labelled, kind="stable").tolist()
        return sorted(largest_first, key=lambda k: k != self.leading)


def diagnose(
    estimator: Estimator,
    probabilities: Probabilities,
    decision: Decision,
    rare: RareClass,
    *,
    truth: Mapping[Any, Any] | None = None,
    models: Iterable[Any] = (),
    grades: Grades | None = None,
) -> Diagnosis:
    """Describe annotators, items and classes of a fitted crowd; see :meth:`rarevote.Fitted.diagnose`.

    Args:
        estimator: the fitted method.
        probabilities: probabilities of all items, those with votes first.
        decision: the labels to describe, and what to expect of them.
        rare: the class that matters.
        truth: true labels to check the result against.
        models: names of the workers that are models.
        grades: the order of the classes, if there is one.

    Raises:
        InputError: there are no votes, or the truth names none of the tasks.
    """
    crowd = estimator.annotations_
    if not crowd.n_annotations:
        raise InputError("no annotations: there is nothing to describe")
    doing("describing annotators and items")
    votes, decided = crowd.votes(), decision.codes[: crowd.n_tasks]
    voted = probabilities.first(crowd.n_tasks)
    mass = voted.p.sum(axis=0)
    others = [int(k) for k in np.argsort(mass, kind="stable") if k != rare.code]
    common = others[-1] if others else rare.code
    # The rarest first, but classes with too few items last.
    telling = sorted(others, key=lambda k: bool(mass[k] < _MIN_ITEMS))
    drawn = [rare.code, *telling[: _MAX_TRADE_OFFS - 1]]
    expected = dict(enumerate(decision.expected))
    mass_of = {k: believed(voted, k) for k in drawn}
    if len(drawn) == crowd.n_classes == 2:
        mass_of[common] = 1.0 - mass_of[rare.code]  # with two classes, one is the rest of the other
    workers = describe_workers(crowd, decided, voted.p, rare=rare.code, common=common)
    items = describe_items(
        estimator,
        decided,
        voted.p,
        typical_accuracy=workers.typical_accuracy,
        is_known=voted.gold >= 0,
    )
    check = None
    pool = decision.codes[crowd.n_tasks :]
    if truth is not None:
        check = check_truth(
            items,
            crowd.classes,
            truth,
            rare=rare.code,
            posterior=estimator.posterior_,
            unvoted={name: int(code) for name, code in zip(crowd.unanswered.tolist(), pool, strict=True)},
        )
    alike = errors_alike(crowd, gold=voted.gold, models=models)
    of_majority = {k: majority_recall(voted, votes, k) for k in drawn}
    found = Diagnosis(
        crowd=crowd,
        n_items=len(probabilities),
        rare=rare.code,
        common=common,
        workers=workers,
        items=items,
        classes=describe_classes(items, workers, crowd.classes, decision.expected, decision.codes),
        overruled=describe_overruled(items),
        leading=rare.code if _leads(crowd, decided, rare) else None,
        expected=expected,
        majority_recall=of_majority,
        expected_accuracy=decision.accuracy,
        worlds=world_sentences(decision, leaning_of(alike)),
        piles=_piles(probabilities, decision),
        trade_offs=tuple(expected_trade_off(items, k, mass_of[k], expected[k], of_majority[k]) for k in drawn),
        true_trade_offs=_true_trade_offs(crowd, items, check, drawn),
        truth=check,
        shares_from=probabilities.how,
        method=estimator.method_name,
        history=tuple(estimator.loss_history_),
        n_iter=estimator.n_iter_,
        converged=estimator.converged_,
        status=estimator.status_,
        agreement=agreement_of(crowd, most_shared=_MAX_SHARED),
        on_grades=None if grades is None else ordered_agreement(crowd, grades),
        alike=alike,
        grades=grades,
        leans=estimator.relative_leans(),
    )
    if rare.is_tail:
        of_tail = tail_view(found, probabilities, decision, rare, estimator.posterior_, truth)
        return replace(found, of_tail=of_tail)
    return found


def _piles(probabilities: Probabilities, decision: Decision) -> Piles:
    """The items worth a review, in the order of a review list of the same decision."""
    costs = decision.costs
    worth = review_gains(probabilities.p, decision.codes, costs)
    cheapest = float(costs[costs > 0].min(initial=np.inf))
    return make_piles(worth, decision.flagged, decision.confidence, cheapest=cheapest if np.isfinite(cheapest) else 1.0)


def _leads(crowd: Annotations, labels: IntArray, rare: RareClass) -> bool:
    """Whether the rare class is the main class of the page: the user named it, or it is clearly rare."""
    if rare.named:
        return True
    n_votes, n_labelled = int(crowd.class_votes[rare.code]), int((labels == rare.code).sum())
    if not rare.is_rare or n_votes > _MAX_SHARE_OF_RARE * crowd.n_annotations:
        return False
    return crowd.n_classes == 2 or bool(min(n_votes, n_labelled) >= _MIN_ITEMS and crowd.n_classes <= _MAX_FEW)


def _true_trade_offs(
    crowd: Annotations, items: Items, check: TruthCheck | None, drawn: Sequence[int]
) -> tuple[TradeOff, ...]:
    if check is None:
        return ()
    place = numbered(check.classes)
    codes = [place[name] for name in crowd.classes[list(drawn)].tolist()]
    return tuple(
        trade_off(items, k, (check.truth == code).astype(np.float64), check.items, int((check.unvoted == code).sum()))
        for k, code in zip(drawn, codes, strict=True)
    )
