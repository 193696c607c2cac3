"""One-coin Dawid–Skene for users: one accuracy per annotator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from rarevote.methods.base import Request
from rarevote.methods.checks import resolve_prior
from rarevote.methods.dawid_skene.estimator import ConfusionEstimator, Strategy
from rarevote.methods.dawid_skene.model import OneCoinModel


@dataclass(eq=False, repr=False)
class OneCoinDawidSkene(ConfusionEstimator):
    """Dawid–Skene with one accuracy per annotator, whatever the class; errors are uniform over the other classes.

    ::

        P(worker r says l | the truth is k) = s_r if l = k, else (1 - s_r)/(K - 1)

    The class prior is learned. Results are those of crowd-kit's class of this name, its start (the soft majority
    vote) and stopping rule included: see :class:`~rarevote.DawidSkene`. Unlike there, gold can be
    given.

    Args:
        n_iter: the most EM iterations.
        tol: stop when crowd-kit's bound, per annotation, gains less than this.
        initial_error_strategy: accepted for crowd-kit's sake; without effect, there as here.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.one_coin import OneCoinDawidSkene
        >>> task = [0, 0, 0, 1, 1, 1]
        >>> worker = ["ann", "bob", "cy", "ann", "bob", "cy"]
        >>> label = ["yes", "yes", "no", "no", "no", "no"]
        >>> model = OneCoinDawidSkene().fit((task, worker, label))
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no'}
    """

    method_name: ClassVar[str] = "one-coin"
    worker_table: ClassVar[str | None] = "skills_"

    n_iter: int = 100
    tol: float = 1e-5
    initial_error_strategy: Strategy = None
    _: KW_ONLY
    n_jobs: int | None = None

    def _model(self, request: Request) -> OneCoinModel:
        crowd = request.crowd
        log_prior, estimate = resolve_prior("estimate", crowd.classes)
        return OneCoinModel(crowd.n_workers, crowd.n_classes, crowd.n_annotations, log_prior, estimate)

    @property
    def skills_(self) -> Any:
        """Accuracy of every annotator after the last iteration."""
        log_confusion = self._parameter("log_confusion")
        accuracy = np.exp(log_confusion[:, 0, 0]) if log_confusion.ndim == 3 else np.empty(0)
        return self._series("worker", accuracy, "skill")
