"""The base of methods with anchors, which are counted once and fixed during the fit.

:class:`~rarevote.AnchoredRasch` and :class:`~rarevote.AnchoredOrdered` share these steps: classes without votes are
left out, anchors are counted, the EM loop runs, two more passes report, and the reported probabilities decide the
labels.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.arguments import check_number
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.decider import Decider
from rarevote.decide.probabilities import AsReported, Calibrator, FitCalibration
from rarevote.decide.rules import ItemBatch
from rarevote.em.engine import Run
from rarevote.em.local import LocalRunner
from rarevote.em.loop import StoppingRule
from rarevote.em.model import Gold
from rarevote.errors import InputError
from rarevote.methods.anchored_rasch.model import (
    AnchorCount,
    AnchoredReport,
    Anchors,
    AnchorSmoothing,
    AnchorSums,
    ReportShared,
    ReportSums,
    anchors_from,
)
from rarevote.methods.base import Fit, Request
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import WeighsVotes
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.parameters import state_dtype

if TYPE_CHECKING:
    from rarevote.methods.anchored_rasch.with_features import FeatureOutcome

# Replaces the prior of a class without votes before a logarithm is taken.
NO_PRIOR = 1e-300
# To stop, the objective must gain less than this per annotation, and the posterior must stop changing.
_GAIN_PER_ANNOTATION = 1e-8


class ReportedFit(NamedTuple):
    """A fit on the classes with votes, and what it reports.

    Attributes:
        run: the run of the EM loop.
        shares: mean reported probability of every class, (K).
        reported: reported probability of every class, (n_tasks, K).
    """

    run: Run
    shares: FloatArray
    reported: FloatArray


class Anchored(EMEstimator, PredictsNewTasks, WeighsVotes):
    """A method whose class prior and errors are drawn to anchors."""

    tau: float
    rho: float
    lapse: float
    anchor_accuracy: float
    anchor_weight: float
    anchor_errors: float
    rho_a: float
    dtype: str
    accelerate: bool = False

    # -- what a method defines ----------------------------------------------------------------------------------------

    @abstractmethod
    def _model(self, anchors: Anchors, n_workers: int, classes: NDArray[Any]) -> Any:
        """The model for these classes."""

    @abstractmethod
    def _known(self, model: Any, shared: Any, kept: IntArray, n_classes: int) -> dict[str, FloatArray]:
        """Fitted arrays over all classes; only the classes ``kept`` were fitted."""

    @abstractmethod
    def _held(self, kept: IntArray, worker: IntArray) -> tuple[Any, Any]:
        """The fitted model on its classes, and the parameters of these workers; worker -1 is at the anchors."""

    # -- the fit -----------------------------------------------------------------------------------------------------

    def _validate_anchored(self, *spreads: str) -> None:
        """Check the parameters that all anchored methods have, and further spreads by name."""
        for name in (*spreads, "tau", "anchor_weight", "anchor_errors"):
            check_number(name, getattr(self, name), above=0)
        for name in ("tol", "rho", "rho_a"):
            check_number(name, getattr(self, name), at_least=0)
        check_number("lapse", self.lapse, at_least=0, at_most=1)
        check_number("anchor_accuracy", self.anchor_accuracy, above=0, at_most=1 - 1e-9)
        state_dtype(self.dtype)

    def _fit(self, request: Request) -> Fit:
        facts, runner = request.crowd, request.runner
        n_classes = facts.n_classes
        counting = AnchorCount(facts.n_workers, n_classes, float(self.rho_a))
        sums = runner.sums(counting, facts, request.gold, ())
        # A class whose only votes are on known items of another class is kept, as annotators do give that label.
        kept = np.flatnonzero((sums.class_mass > 0) | (sums.counts.sum(axis=(0, 2)) > 0))
        if len(kept) < n_classes:
            request, sums = _without_empty_classes(request, sums, kept)
        crowd, gold = request.crowd, request.gold
        smoothing = AnchorSmoothing(self.tau, self.anchor_accuracy, self.anchor_weight, self.anchor_errors)
        model = self._model(anchors_from(sums, smoothing), crowd.n_workers, crowd.classes)
        gain = _GAIN_PER_ANNOTATION * crowd.n_annotations if self.tol > 0 else 0.0
        rule = StoppingRule(self.n_iter, self.tol, gain)
        run = self._em(request, model, rule, accelerate=self.accelerate, is_last=False)
        shared = run.outcome.shared
        shares = np.zeros(model.n_classes)

        def then(found: ReportSums) -> ReportShared:
            shares[:] = found.class_mass / crowd.n_tasks
            return ReportShared(shared, shares)

        report = AnchoredReport(model, float(self.rho), float(self.lapse))
        reported = runner.report(report, crowd, gold, ReportShared(shared, np.empty(0)), then)
        found, outcome = self._refitted(request, model, ReportedFit(run, shares, reported), rule)
        return self._ended(
            replace(found.run, posterior=widened(found.run.posterior, kept, n_classes)),
            {
                **self._known(model, found.run.outcome.shared, kept, n_classes),
                "shares": widened(found.shares[None], kept, n_classes)[0],
                "reported": widened(found.reported, kept, n_classes),
                **({} if outcome is None else {"features": outcome.widened(kept, n_classes)}),
            },
        )

    def _refitted(
        self, request: Request, model: Any, found: ReportedFit, rule: StoppingRule
    ) -> tuple[ReportedFit, FeatureOutcome | None]:
        """The fit to report and the outcome of the features; no outcome unless the method supports features."""
        return found, None

    @property
    def _kept(self) -> IntArray:
        """Numbers of the classes that were fitted."""
        return np.flatnonzero(self._parameter("prior") > 0)

    # -- new tasks and decisions -------------------------------------------------------------------------------------

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        """Reported probabilities of new tasks; workers, prior and class shares are those of the fit."""
        kept = self._kept
        votes = np.bincount(annotations.label, minlength=annotations.n_classes)
        votes[kept] = 0
        if votes.any():
            name = annotations.classes.tolist()[int(votes.argmax())]
            raise InputError(
                f"label {name!r} has no votes in the fit, so nothing is known about votes for "
                "it: fit again with these data, or name it in abstain if it is not a vote"
            )
        no_gold = np.empty(0, dtype=np.int32)
        crowd, _ = _restricted(annotations, no_gold, kept)
        model, shared = self._held(kept, worker)
        report = AnchoredReport(model, float(self.rho), float(self.lapse))
        shares = self._parameter("shares")[kept]
        second = ReportShared(shared, shares)
        reported = LocalRunner(self.n_jobs).report(
            report, crowd, no_gold, ReportShared(shared, np.empty(0)), lambda _: second
        )
        return widened(reported, kept, annotations.n_classes)

    def label_codes(self) -> IntArray:
        """Class number of every task, decided by the method's own rule from the reported probabilities."""
        return self._decided(self.reported_, self.annotations_, self.gold_codes_.astype(np.int64), self._free)

    def _choose(self, posterior: FloatArray, annotations: Annotations) -> IntArray:
        return self._decided(posterior, annotations, np.full(len(posterior), -1))

    @property
    def _free(self) -> NDArray[np.bool_] | None:
        """Tasks whose label needs no vote, (n_tasks); None for none."""
        return None

    def _decided(
        self, p: FloatArray, votes: Annotations, gold: IntArray, free: NDArray[np.bool_] | None = None
    ) -> IntArray:
        if not len(p):
            return np.empty(0, dtype=np.int64)
        batch = ItemBatch(p, votes.votes(), np.full(len(p), -1), gold, p, free)
        return Decider(self.own_rule().ready(votes.classes), self._parameter("shares")).codes(batch)[0]

    # -- results -----------------------------------------------------------------------------------------------------

    def _calibrator(self, vote_shares: FloatArray) -> Calibrator:
        return AsReported()

    @property
    def calibration_(self) -> FitCalibration:
        """The class shares of the fit; the method computes reported probabilities itself."""
        return FitCalibration(AsReported(), self._parameter("shares"))

    @property
    def reported_(self) -> NDArray[Any]:
        """Calibrated probabilities, (n_tasks, n_classes), in the order of :attr:`annotations_`."""
        return np.asarray(self._parameter("reported"))

    @property
    def published(self) -> NDArray[Any]:
        """The reported probabilities: this method's calibrated posterior."""
        return self.reported_

    @property
    def priors_(self) -> Any:
        """The class prior, fixed during the fit: the mean share of the votes."""
        return self._series("label", self._parameter("prior"), "prior")


# --------------------------------------------------------------------------------------------------------------------
# classes without votes


def _without_empty_classes(request: Request, sums: AnchorSums, kept: IntArray) -> tuple[Request, AnchorSums]:
    """The request with only the classes ``kept``, which are all classes that votes and gold name."""
    if not isinstance(request.crowd, Annotations):
        empty = sorted(set(range(request.crowd.n_classes)) - set(kept.tolist()))
        names = ", ".join(map(str, request.crowd.classes[empty].tolist()[:5]))
        raise InputError(f"no vote is for {names}: on dask, leave out classes without votes (--class)")
    crowd, gold = _restricted(request.crowd, request.gold, kept)
    fewer = AnchorSums(np.ascontiguousarray(sums.counts[:, kept][:, :, kept]), sums.class_mass[kept])
    return replace(request, crowd=crowd, gold=gold), fewer


def _restricted(crowd: Annotations, gold: Gold, kept: IntArray) -> tuple[Annotations, Gold]:
    if len(kept) == crowd.n_classes:
        return crowd, gold
    code = np.zeros(crowd.n_classes, dtype=np.int32)
    code[kept] = np.arange(len(kept))
    label = code[crowd.label].astype(smallest_unsigned(len(kept)))
    known = np.where(gold >= 0, code[gold], -1).astype(np.int32)
    return replace(crowd, label=label, classes=crowd.classes[kept]), known


def widened(values: NDArray[Any], kept: IntArray, n_classes: int, absent: float = 0.0) -> NDArray[Any]:
    """Columns for all classes, from those of the classes ``kept``."""
    if len(kept) == n_classes:
        return values
    wide = np.full((len(values), n_classes), absent, dtype=values.dtype)
    wide[:, kept] = values
    return wide
