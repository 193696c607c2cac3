"""The estimator of GLAD: one ability per annotator, one difficulty per item, fitted by EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray, sigmoid
from rarevote.em.loop import StoppingRule
from rarevote.em.model import CrowdFacts
from rarevote.errors import ParameterError
from rarevote.methods.base import Fit, Request
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import Evidence, WeighsVotes, right_or_uniform
from rarevote.methods.glad.model import GLADModel, GLADShared, HeldWorkers
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.parameters import resolve_prior

_SHOWN = 3  # how many names a message quotes


@dataclass(eq=False, repr=False)
class GLAD(EMEstimator, PredictsNewTasks, WeighsVotes):
    """GLAD (Whitehill et al., 2009): an ability per annotator and an easiness per item, any number of classes.

    ::

        P(worker r is right on task i) = sigmoid(alpha_r * exp(b_i)),   errors uniform over the other classes
        alpha_r ~ N(1, 1),   b_i ~ N(1, 1)

    Ability and difficulty do not depend on the class: the model assumes that an annotator is as good at the rare class
    as at the common one. The class prior is uniform and fixed by default. EM maximises the penalised
    likelihood ``F = sum_i log sum_k pi_k prod_r P(y_ir | k) - sum (alpha - 1)^2/2 - sum (b - 1)^2/2`` from
    ``alpha = b = 1`` to convergence; ``F`` never falls. It has several optima; this finds the one that EM reaches from
    there.

    Names and layouts are those of crowd-kit's class, which stops far from the optimum (a maximisation step of at most
    25 conjugate gradient steps to a loose tolerance, and a stopping value that EM does not maximise), so
    probabilities differ; labels differ on few items.

    Args:
        n_iter: the largest number of EM iterations. They are cheap, and most crowds take 10 to 100 of them: the
            default should never be reached.
        tol: stop when ``F`` gains less than this per annotation.
        silent: accepted for compatibility with crowd-kit; has no effect (see ``callback`` in :meth:`fit`).
        labels_priors: class prior by class, as a Series or mapping; another name for ``prior``. A class that is
            named here is a class even if it has no votes.
        alphas_priors_mean: prior means of the abilities: a number, or a Series or mapping by worker.
        betas_priors_mean: prior means of ``b``: a number, or a Series or mapping by task.
        m_step_max_iter: accepted for compatibility with crowd-kit; has no effect, as every pass takes one Newton step.
        m_step_tol: accepted for compatibility with crowd-kit; has no effect.
        prior: class prior: "uniform", "estimate", or values (sequence in class order, or mapping by class).
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.glad.estimator import GLAD
        >>> task = [0, 0, 0, 1, 1, 1]
        >>> worker = ["ann", "bob", "cy", "ann", "bob", "cy"]
        >>> label = ["yes", "yes", "no", "no", "no", "no"]
        >>> model = GLAD().fit((task, worker, label))
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no'}
        >>> alphas = model.alphas_.to_dict()
        >>> alphas["ann"] > alphas["cy"]
        True
    """

    method_name = "glad"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "vk": 2}
    worker_table = "alphas_"
    takes_unseen_workers = True
    saved_arrays: ClassVar[Mapping[str, str]] = {"alpha": "w", "log_prior": "k:log"}

    n_iter: int = 1000
    tol: float = 1e-9
    silent: bool = True
    labels_priors: Any = None
    alphas_priors_mean: Any = None
    betas_priors_mean: Any = None
    m_step_max_iter: int = 25
    m_step_tol: float = 1e-2
    _: KW_ONLY
    prior: Any = "uniform"
    n_jobs: int | None = None

    def fit_request(
        self, data: Any, true_labels: Any = None, options: Mapping[str, Any] | None = None, **asked: Any
    ) -> Self:
        """As for any method; a class with a prior counts even if it has no votes."""
        if hasattr(self.labels_priors, "keys"):
            given = (options or {}).get("classes") or ()
            options = {**(options or {}), "classes": [*given, *self.labels_priors.keys()]}
        return super().fit_request(data, true_labels, options, **asked)

    def _validate(self, crowd: CrowdFacts) -> None:
        if not self.tol >= 0:
            raise ParameterError(f"tol must be at least 0, got {self.tol!r}")
        self._model(crowd)

    def _given_per_task(self) -> str | None:
        return "betas_priors_mean" if _by_name(self.betas_priors_mean) else None

    def _model(self, crowd: CrowdFacts) -> GLADModel:
        if self.labels_priors is None:
            log_prior, estimate = resolve_prior(self.prior, crowd.classes)
        elif isinstance(self.prior, str) and self.prior == "uniform":
            log_prior, estimate = resolve_prior(self.labels_priors, crowd.classes, name="labels_priors")
        else:
            raise ParameterError("labels_priors and prior are two names of one parameter: give only one")
        alphas = _prior_means("alphas_priors_mean", self.alphas_priors_mean, crowd.workers)
        tasks, task_ptr = np.empty(0, dtype=object), None
        if self._given_per_task() is not None and isinstance(crowd, Annotations):
            tasks, task_ptr = crowd.task_names(), crowd.task_ptr
        return GLADModel(
            crowd.n_tasks,
            np.broadcast_to(alphas, (crowd.n_workers,)),
            _prior_means("betas_priors_mean", self.betas_priors_mean, tasks),
            log_prior,
            estimate,
            task_ptr,
        )

    def _fit(self, request: Request) -> Fit:
        rule = StoppingRule(self.n_iter, np.inf, self.tol * request.crowd.n_annotations)
        run = self._em(request, self._model(request.crowd), rule)
        shared, (easiness,) = run.outcome.shared, run.local
        found = {"alpha": shared.alpha, "beta": easiness + shared.shift, "log_prior": shared.log_prior}
        return self._ended(run, found)

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        """Posterior with the abilities held fixed; a worker that the fit has not seen has the prior mean."""
        model = self._model(annotations)
        alpha = np.where(worker >= 0, self._parameter("alpha")[worker], model.alpha_mean)
        held = HeldWorkers.of(model, GLADShared(alpha, 0.0, self._parameter("log_prior")))
        return self._new_posterior(held, annotations)

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        shape = (len(worker), self.annotations_.n_classes)
        alpha, easiness = self._parameter("alpha")[worker], self._parameter("beta")
        return Evidence(
            log_prior=self._parameter("log_prior"),
            of_votes=right_or_uniform(np.broadcast_to((alpha * np.exp(easiness[task]))[:, None], shape), label),
            ability=np.broadcast_to(sigmoid(alpha * np.exp(easiness.mean()))[:, None], shape),
            difficulty=np.full(shape[1], -easiness[task]),
        )

    # -- results -----------------------------------------------------------------------------------------------------

    @property
    def alphas_(self) -> Any:
        """Ability of every annotator; negative for one who is wrong more often than right."""
        return self._series("worker", self._parameter("alpha"), "alpha")

    @property
    def betas_(self) -> Any:
        """Log easiness ``b`` of every task: the logarithm of beta in the GLAD paper, as in crowd-kit."""
        return self._series("task", self._parameter("beta"), "beta")

    @property
    def item_difficulty_(self) -> FloatArray:
        """Log odds of the mean ability on a task of mean ``b``, minus those on each task."""
        easiness = self._parameter("beta")
        return np.asarray(self._parameter("alpha").mean() * (np.exp(easiness.mean()) - np.exp(easiness)))

    @property
    def priors_(self) -> Any:
        """The class prior that was used to compute the posterior."""
        return self._series("label", np.exp(self._parameter("log_prior")), "prior")


def _by_name(given: Any) -> bool:
    return isinstance(given, Mapping) or hasattr(given, "to_dict")


def _prior_means(name: str, given: Any, names: NDArray[Any]) -> FloatArray:
    """Prior means in the order of ``names``, or a single one for all, of size 1."""
    if given is None:
        return np.ones(1)
    wanted: list[Any] = [given]
    if _by_name(given):
        known = given if isinstance(given, Mapping) else given.to_dict()
        lacking = [entry for entry in names.tolist() if entry not in known]
        if lacking:
            quoted = ", ".join(map(repr, lacking[:_SHOWN]))
            raise ParameterError(f"{name} lacks {len(lacking):,} of {len(names):,} names: {quoted}")
        wanted = [known[entry] for entry in names.tolist()]
    try:
        means = np.array(wanted, dtype=np.float64)
    except (TypeError, ValueError):
        means = np.array([np.nan])
    if means.ndim != 1 or not np.isfinite(means).all():
        raise ParameterError(f"{name} must be a number, or a Series or mapping of numbers by name, got {given!r}")
    return means
