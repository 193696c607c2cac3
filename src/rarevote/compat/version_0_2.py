"""Names of version 0.2, kept for one more version: each warns, and calls its replacement."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.api import Fitted
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray
from rarevote.decide.decision import Decision
from rarevote.decide.probabilities import Shares
from rarevote.decide.review import ReviewPlan
from rarevote.diagnose.explain import Explanation
from rarevote.errors import ParameterError
from rarevote.methods.base import Estimator
from rarevote.page.report import Report

__all__ = [
    "CalibratedPosterior",
    "Decision",
    "Explanation",
    "Report",
    "ReviewPlan",
    "calibrate",
    "calibrated",
    "decide",
    "explain",
    "plan_review",
    "write_report",
]


def _warn(old: str, new: str, *, further: int = 0) -> None:
    """Warn at the user's call; ``further`` is the number of our calls in between."""
    message = f"{old} is deprecated and will be removed in version 0.4: use {new}"
    warnings.warn(message, DeprecationWarning, stacklevel=3 + further)


@dataclass(frozen=True, eq=False)
class CalibratedPosterior:
    """The result of ``Fitted.calibrate`` in version 0.2.

    Attributes:
        fitted: the fit.
        given: class shares, as in :meth:`rarevote.Fitted.decide`.
        classes: names of the classes, (K).
        method: the method's own posterior of tasks with votes, (n_tasks, K).
        posterior: the reported probability of every class, (n, K).
        prevalence: expected share of every class, (K).
        low: lower end of its interval, (K).
        high: upper end, (K).
        how: where the class shares come from, as text.
        gold: known class of each item or -1, (n).
    """

    fitted: Fitted
    given: Shares
    classes: NDArray[Any]
    method: FloatArray
    posterior: FloatArray
    prevalence: FloatArray
    low: FloatArray
    high: FloatArray
    how: str
    gold: NDArray[np.int64]

    @property
    def score(self) -> FloatArray:
        """The same as ``posterior``."""
        return self.posterior

    @property
    def counts(self) -> FloatArray:
        """Expected number of items of each class, (K)."""
        return self.prevalence * len(self.posterior)


def calibrate(fitted: Fitted, prevalence: Shares = "estimate", *, sampled: bool = False) -> CalibratedPosterior:
    """See :attr:`rarevote.Fitted.probabilities`, and :attr:`rarevote.Result.decision` for class shares."""
    del sampled
    _warn("Fitted.calibrate()", "Fitted.probabilities, and Result.expect() for class shares with intervals", further=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fitted.decide(prevalence=prevalence)
    shares = np.array([[e.prevalence.value, e.prevalence.low, e.prevalence.high] for e in result.decision.expected])
    found = result.probabilities
    values = (*shares.T, found.how, found.gold)
    return CalibratedPosterior(fitted, prevalence, found.classes, fitted.method.posterior_, found.p, *values)


def calibrated(posterior: Any, prior: Any = None, *, annotations: Annotations | None = None, **options: Any) -> Any:
    """Removed: a posterior without its votes has no calibrated probabilities."""
    del posterior, prior, annotations, options
    raise ParameterError(
        "rarevote.calibrate.calibrated() was removed, because probabilities need the votes: use "
        "rarevote.fit(votes, method).probabilities"
    )


def decide(calibrated: CalibratedPosterior, **options: Any) -> Decision:
    """See :meth:`rarevote.Fitted.decide`, which has the same arguments."""
    _warn("rarevote.decide.decide()", "Fitted.decide()")
    if not isinstance(calibrated, CalibratedPosterior):
        raise ParameterError("decide() takes the value of Fitted.calibrate(); use rarevote.fit(votes).decide(...)")
    return calibrated.fitted.decide(prevalence=calibrated.given, **options).decision


def explain(estimator: Estimator, task: Any, *, gold: Any = None, calibration: Any = None) -> Explanation:
    """See :meth:`rarevote.Result.explain`."""
    del gold, calibration
    _warn("rarevote.explain.explain()", "Fitted.explain() or Result.explain()")
    return Fitted.of(estimator).explain(task)


def plan_review(
    calibrated: CalibratedPosterior, decision: Decision, annotations: Annotations, *, max_review: int
) -> ReviewPlan:
    """See :meth:`rarevote.Result.review`."""
    del decision, annotations
    _warn("rarevote.review.plan_review()", "Result.review()")
    return calibrated.fitted.decide(prevalence=calibrated.given).review(max_review)


def write_report(
    estimator: Estimator,
    path: str | Path,
    *,
    source: str = "your data",
    truth: Mapping[Any, Any] | None = None,
    rare: Any = None,
    charts: str | Path | None = None,
    **gone: Any,
) -> Report:
    """See :meth:`rarevote.Result.report`."""
    _warn("rarevote.report.write_report()", "Result.report()")
    if gone:
        raise ParameterError(
            f"write_report() no longer takes {', '.join(gone)}: use rarevote.fit(votes).decide().report()"
        )
    return Fitted.of(estimator, rare).decide().report(path, source=source, truth=truth, charts=charts)
