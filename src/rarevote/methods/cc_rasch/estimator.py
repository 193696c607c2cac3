"""The estimator of CC-Rasch: class-conditional abilities and difficulties, fitted by EM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import ByVotes, FloatArray, IntArray, sigmoid
from rarevote.em.loop import StoppingRule
from rarevote.em.model import CrowdFacts
from rarevote.errors import ParameterError
from rarevote.methods.base import Fit, Request, fitted_result
from rarevote.methods.cc_rasch.model import Ability, CCRaschModel, CCRaschShared, Difficulty, HeldWorkers
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import Evidence, WeighsVotes, right_or_uniform
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.parameters import check_choice, per_class, resolve_prior, state_dtype
from rarevote.methods.vote_model import SomeVotes, VoteModel

MStep = Literal["fused", "exact"]

# To stop, the penalised likelihood must gain less than this per annotation, and the posterior must stop changing.
_GAIN_PER_ANNOTATION = 1e-8
# Crowds with more votes are fitted with the difficulties solved for. Small ones have several optima, and which one
# gave the results of the paper depends on every step: for these, all parameters are extrapolated together.
_MAX_UNPROFILED_VOTES = 100_000


@dataclass(eq=False, repr=False)
class CCRasch(EMEstimator, PredictsNewTasks, WeighsVotes):
    """Class-conditional Rasch model: finds the rare class that a majority vote misses.

    Every annotator has an ability per class, every item a difficulty per class::

        P(worker r labels task i correctly | its class is k) = sigmoid(alpha_rk - beta_ik)

    with Gaussian priors around class means, errors uniform over the other classes, and a class prior that is uniform
    by default. The fit maximises the penalised likelihood by EM.

    The uniform prior raises recall of the rare class at the cost of precision: with an estimated prior the
    mean minority recall over the paper's binary datasets falls from 0.86 to 0.80. If one item in a hundred is
    positive, expect false alarms.

    Args:
        n_iter: the largest number of EM iterations.
        tol: stop when no posterior probability changes by this much (and the likelihood stops rising); 0 never stops.
        sigma_alpha: spread of abilities around their class mean; a number, one per class, or a mapping by class.
        sigma_beta: spread of difficulties around their class mean.
        sigma_alpha_mu: spread of the class means of ability around 0.
        sigma_beta_mu: spread of the class means of difficulty around 0.
        prior: class prior: "uniform", "estimate", or values (sequence in class order, or mapping by class).
        ability: "per-class", or "shared" for one ability per annotator.
        difficulty: "per-class", "shared" for one difficulty per item, or None for no difficulty.
        m_step: "fused" takes one Newton step per pass (fast); "exact" solves every M-step to ``m_step_tol``.
        m_step_tol: with "exact", the Euclidean norm of the gradient at which an M-step counts as solved.
        accelerate: extrapolate every second step of the fused iteration (SQUAREM) if that raises the likelihood:
            about half the passes, the same optimum. With more than 100 000 votes, slow tasks are solved within a pass
            and the abilities are mixed from the last steps (Anderson): with three or more classes, this about
            halves them again.
        dtype: "float64", or "float32" for the state of the tasks and within a pass: half their memory, posteriors
            within about ``tol``.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote import CCRasch
        >>> task = [0, 0, 0, 1, 1, 1]
        >>> worker = ["ann", "bob", "cy", "ann", "bob", "cy"]
        >>> label = ["sound", "sound", "defect", "sound", "sound", "sound"]
        >>> CCRasch().fit((task, worker, label)).labels_.to_dict()
        {0: 'sound', 1: 'sound'}
    """

    method_name = "cc-rasch"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 4, "wk": 8, "vk": 10}
    takes_unseen_workers = True
    worker_table = "abilities_"
    saved_arrays: ClassVar[Mapping[str, str]] = {
        "intercept": "c",
        "mu_alpha": "k",
        "mu_beta": "k",
        "ability_deviation": "wc",
        "log_prior": "k:log",
        "n_tasks": ":n",
    }

    n_iter: int = 300
    _: KW_ONLY
    tol: float = 1e-4
    sigma_alpha: Any = 0.5
    sigma_beta: Any = 0.5
    sigma_alpha_mu: Any = 1.0
    sigma_beta_mu: Any = 1.0
    prior: Any = "uniform"
    ability: Ability = "per-class"
    difficulty: Difficulty = "per-class"
    m_step: MStep = "fused"
    m_step_tol: float = 1e-6
    accelerate: bool = True
    dtype: str = "float64"
    n_jobs: int | None = None

    def _validate(self, crowd: CrowdFacts) -> None:
        check_choice("ability", self.ability, "per-class", "shared")
        check_choice("difficulty", self.difficulty, "per-class", "shared", None)
        check_choice("m_step", self.m_step, "fused", "exact")
        if not self.tol >= 0 or not self.m_step_tol > 0:
            raise ParameterError("tol must be at least 0 and m_step_tol above 0")
        self._model(crowd)

    def _model(self, crowd: CrowdFacts) -> CCRaschModel:
        classes = crowd.classes

        def resolved(name: str, class_specific: bool) -> FloatArray:
            value = getattr(self, name)
            if not class_specific and not np.isscalar(value):
                raise ParameterError(f"{name} must be a single number where the parameter is shared by all classes")
            return per_class(name, value, classes)

        log_prior, estimate = resolve_prior(self.prior, classes)
        by_class, hard_by_class = self.ability == "per-class", self.difficulty == "per-class"
        return CCRaschModel(
            crowd.n_tasks,
            crowd.n_workers,
            crowd.n_classes,
            resolved("sigma_alpha", by_class),
            resolved("sigma_beta", hard_by_class),
            resolved("sigma_alpha_mu", by_class),
            resolved("sigma_beta_mu", hard_by_class),
            log_prior,
            estimate,
            self.ability,
            self.difficulty,
            state_dtype(self.dtype),
            profiles=crowd.n_annotations > _MAX_UNPROFILED_VOTES and self.difficulty != "shared",
        )

    def _fit(self, request: Request) -> Fit:
        crowd = request.crowd
        model = self._model(crowd)
        gain = _GAIN_PER_ANNOTATION * crowd.n_annotations if self.tol > 0 else 0.0
        run = self._em(
            request,
            model,
            StoppingRule(self.n_iter, self.tol, gain),
            exact=self.m_step == "exact",
            gradient_tolerance=self.m_step_tol,
            accelerate=self.accelerate,
        )
        shared, (difficulty,) = run.outcome.shared, run.local
        mu_alpha, mu_beta = model.split_intercept(shared.intercept)
        deviation = difficulty + shared.shift if difficulty.size else np.zeros((len(difficulty), 1))
        return self._ended(
            run,
            {
                "intercept": shared.intercept,
                "mu_alpha": mu_alpha,
                "mu_beta": mu_beta,
                "ability_deviation": shared.ability,
                "difficulty_deviation": deviation,
                "log_prior": shared.log_prior,
                # A new task has the penalties of the fit, which depend on the number of tasks in the fit.
                "n_tasks": np.array(crowd.n_tasks),
            },
        )

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        """Posterior of new tasks with the workers held fixed; a worker that the fit has not seen counts as average."""
        fitted = self._model(self.annotations_)
        parameters = self._result.parameters
        deviation = np.where((worker >= 0)[:, None], parameters["ability_deviation"][worker], 0.0)
        shared = CCRaschShared(
            parameters["intercept"], deviation, np.zeros(fitted.n_difficulties), parameters["log_prior"]
        )
        model = HeldWorkers.of(fitted, shared, n_workers=len(worker), n_tasks=int(parameters["n_tasks"]))
        return self._new_posterior(model, annotations)

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        shape = (len(worker), self.annotations_.n_classes)
        log_odds = np.broadcast_to(self._parameter("intercept") + self._parameter("ability_deviation")[worker], shape)
        deviation = np.broadcast_to(self._parameter("difficulty_deviation")[task], shape[1:])
        return Evidence(
            log_prior=self._parameter("log_prior"),
            of_votes=right_or_uniform(log_odds - deviation, label),
            ability=sigmoid(log_odds),
            difficulty=self._parameter("mu_beta") + deviation if self.difficulty is not None else None,
        )

    def vote_model(self, votes: SomeVotes) -> VoteModel:
        """Votes drawn from the abilities; each task's difficulty is drawn around the fitted one (Laplace)."""
        K, tasks = votes.n_classes, np.arange(len(votes.tasks))
        log_odds = self._parameter("intercept") + self._parameter("ability_deviation")
        log_odds = np.broadcast_to(log_odds, (len(log_odds), K))
        fitted = votes.of_tasks(self._parameter("difficulty_deviation"))
        difficulty = np.broadcast_to(fitted, (len(tasks), K))
        deviation = None
        if self.difficulty is not None:
            recognise = sigmoid(log_odds[votes.worker] - difficulty[votes.task])
            information = votes.of_tasks(self.posterior_) * votes.sums(recognise * (1.0 - recognise))
            if fitted.shape[1] == 1:
                information = np.broadcast_to(information.sum(axis=1, keepdims=True), information.shape)
            spread = per_class("sigma_beta", self.sigma_beta, self.classes_)
            deviation = 1.0 / np.sqrt(1.0 / spread**2 + information)

        def right(truth: IntArray, rng: np.random.Generator) -> FloatArray:
            beta = difficulty[tasks, truth]
            if deviation is not None:
                beta = beta + deviation[tasks, truth] * rng.standard_normal(len(truth))
            return sigmoid(log_odds[votes.worker, truth[votes.task]] - beta[votes.task])

        return VoteModel(votes, self.posterior_, right)

    @property
    def chooser(self) -> ByVotes:
        """The most probable class; among classes within ``tol`` of it, the one with the most votes.

        On very small crowds, every class can be equally likely at the optimum, and which one is a millionth
        higher depends on where the iteration stopped.
        """
        return ByVotes(self.tol)

    # -- results -----------------------------------------------------------------------------------------------------

    @fitted_result
    def abilities_(self) -> Any:
        """Ability of every annotator per class, on the logit scale: a frame worker x class."""
        shape = (self.annotations_.n_workers, self.annotations_.n_classes)
        alpha = self._parameter("mu_alpha") + np.broadcast_to(self._parameter("ability_deviation"), shape)
        return self._worker_by_class(alpha.reshape(shape))

    @fitted_result
    def difficulties_(self) -> Any:
        """Difficulty of every item per class, on the logit scale: a frame task x class."""
        shape = (self.annotations_.n_tasks, self.annotations_.n_classes)
        beta = self._parameter("mu_beta") + np.broadcast_to(self._parameter("difficulty_deviation"), shape)
        return self._task_by_class(beta.reshape(shape))

    @property
    def item_difficulty_(self) -> FloatArray | None:
        """Difficulty of every item relative to the mean of the class; None without ``difficulty``."""
        return None if self.difficulty is None else self._parameter("difficulty_deviation")

    @property
    def mu_alpha_(self) -> Any:
        """Mean ability per class."""
        return self._series("label", self._parameter("mu_alpha"), "mu_alpha")

    @property
    def mu_beta_(self) -> Any:
        """Mean difficulty per class."""
        return self._series("label", self._parameter("mu_beta"), "mu_beta")

    @property
    def priors_(self) -> Any:
        """The class prior that was used to compute the posterior."""
        return self._series("label", np.exp(self._parameter("log_prior")), "prior")
