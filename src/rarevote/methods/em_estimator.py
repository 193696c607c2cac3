"""The base of the methods that the EM loop fits: checkpoints, the run of the loop, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.em.checkpoint import Checkpoint, identity_of
from rarevote.em.engine import Run
from rarevote.em.local import LocalRunner
from rarevote.em.loop import Callback, StoppingRule
from rarevote.em.model import EMModel, HeldShared
from rarevote.errors import ConvergenceWarning, ParameterError, warn_user
from rarevote.methods.base import Estimator, Fit, FloatArray, Request

# With the workers held fixed, tasks converge quickly and independently: this is close to rounding.
_NEW_CHANGE = 1e-9


def saved_in(checkpoint: str | Path | None, every: int) -> tuple[str | Path, int] | None:
    """The checkpoint of a request from the arguments of a fit."""
    return None if checkpoint is None else (checkpoint, every)


class EMEstimator(Estimator):
    """Base of the methods that the EM loop fits."""

    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4}

    n_iter: int
    tol: float

    def fit(
        self,
        data: Any,
        true_labels: Any = None,
        *,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 10,
        callback: Callback | None = None,
        **options: Any,
    ) -> Self:
        """Aggregate the annotations.

        Arguments that are not named here are as in :meth:`Estimator.fit`.

        Args:
            checkpoint: a folder where the fit is saved at intervals; after a crash, the same call resumes it.
            checkpoint_every: iterations between two checkpoints.
        """
        kept = saved_in(checkpoint, checkpoint_every)
        return self.fit_request(data, true_labels, options, callback=callback, checkpoint=kept)

    def _em(self, request: Request, model: EMModel[Any, Any, Any], rule: StoppingRule, **options: Any) -> Run:
        """Run the loop with the runner of the request; ``options`` are those of :func:`~rarevote.em.loop.run_em`."""
        if not (isinstance(rule.n_iter, (int, np.integer)) and rule.n_iter >= 0):
            raise ParameterError(f"n_iter must be a whole number of at least 0, got {rule.n_iter!r}")
        crowd, gold, runner = request.crowd, request.gold, request.runner
        checkpoint = None
        if request.checkpoint is not None:
            identity = identity_of(self.method_name, self.get_params(), runner.digest(crowd, gold))
            checkpoint = Checkpoint(*request.checkpoint, identity)
        return runner.run(model, crowd, gold, rule, checkpoint=checkpoint, callback=request.callback, **options)

    def _ended(self, run: Run, parameters: dict[str, Any]) -> Fit:
        """The result of a run; a warning if it did not end by its stopping rule."""
        fit = Fit.of(run, parameters)
        if not fit.converged and self.tol > 0 and fit.n_iter > 0:  # a fit with no iterations returns its starting point
            warn_user(
                f"{type(self).__name__} {fit.status} ({fit.n_iter} iterations); raise n_iter to let it converge",
                ConvergenceWarning,
            )
        return fit

    def _new_posterior(self, held: HeldShared[Any, Any, Any], annotations: Annotations) -> FloatArray:
        """Posterior of new tasks, (n_tasks, n_classes), from a model in which everything else is fixed."""
        rule = StoppingRule(self.n_iter, _NEW_CHANGE, np.inf)
        return LocalRunner(self.n_jobs).run(held, annotations, np.empty(0, dtype=np.int32), rule).posterior
