"""The Rasch model for tasks whose truth is known: abilities and difficulties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.arguments import check_number
from rarevote.crowd.numerics import FloatArray, IntArray, sigmoid
from rarevote.em.loop import StoppingRule
from rarevote.em.model import CrowdFacts, Gold, impose_gold
from rarevote.methods.base import Fit, Request
from rarevote.methods.cc_rasch.model import CCRaschModel
from rarevote.methods.em_estimator import EMEstimator
from rarevote.methods.evidence import Evidence, WeighsVotes, right_or_uniform
from rarevote.methods.gold import require_gold
from rarevote.methods.new_tasks import PredictsNewTasks, posterior_from_log_scores

_RIGHT = 0
_GAIN_PER_ANNOTATION = 1e-9


@dataclass(eq=False, repr=False)
class Rasch(PredictsNewTasks, EMEstimator, WeighsVotes):
    """Ability of workers and difficulty of tasks from answers that are known to be right or wrong.

    ::

        P(worker r is right on task i) = sigmoid(theta_r - beta_i)
        theta_r = mu_theta + g_r,  sum_r g_r = 0,  g_r ~ N(0, sigma_theta^2),  mu_theta ~ N(0, sigma_theta_mu^2)
        beta_i  = mu_beta  + h_i,  sum_i h_i = 0,  h_i ~ N(0, sigma_beta^2),   mu_beta  ~ N(0, sigma_beta_mu^2)

    The fit is the most probable ``theta`` and ``beta``, solved by Newton steps to a gradient tolerance; the priors
    keep workers who are always right (or wrong) at a finite ability. This is CC-Rasch with its latent class observed
    and one ability and one difficulty for all classes.

    Needs ``fit(data, true_labels)``. Only tasks with gold inform the fit, and they get that label. Workers
    without an answer on them have the mean ability, other tasks the mean difficulty; those are labelled with the
    abilities, a uniform class prior and errors uniform over the other classes.

    Args:
        n_iter: the largest number of rounds; a round solves the problem with up to 500 passes, and two are usually
            enough.
        tol: the Euclidean norm of the gradient at which the problem counts as solved.
        sigma_theta: spread of abilities around their mean.
        sigma_beta: spread of difficulties around their mean.
        sigma_theta_mu: spread of the mean ability around 0.
        sigma_beta_mu: spread of the mean difficulty around 0.
        n_jobs: threads; None or -1 for all cores. The result does not depend on it.

    Example:
        >>> from rarevote.methods.rasch import Rasch
        >>> task, worker = [0, 0, 1, 1], ["ann", "bob", "ann", "bob"]
        >>> model = Rasch().fit((task, worker, ["yes", "no", "no", "no"]), {0: "yes", 1: "no"})
        >>> ability = model.abilities_.to_dict()
        >>> ability["ann"] > ability["bob"]
        True
        >>> difficulty = model.difficulties_.to_dict()
        >>> difficulty[0] > difficulty[1]
        True
    """

    method_name = "rasch"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 2}
    takes_unseen_workers = True
    saved_arrays: ClassVar[Mapping[str, str]] = {"abilities": "w", "mu_theta": "", "mu_beta": ""}

    n_iter: int = 20
    _: KW_ONLY
    tol: float = 1e-6
    sigma_theta: float = 1.0
    sigma_beta: float = 1.0
    sigma_theta_mu: float = 1.0
    sigma_beta_mu: float = 1.0
    n_jobs: int | None = None

    def _validate(self, crowd: CrowdFacts) -> None:
        for name in ("tol", "sigma_theta", "sigma_beta", "sigma_theta_mu", "sigma_beta_mu"):
            check_number(name, getattr(self, name), above=0)

    def _fit(self, request: Request) -> Fit:
        annotations, gold = request.annotations, request.gold
        require_gold(self, gold)
        scored, of_worker, of_task = _right_or_wrong(annotations, gold)
        model = CCRaschModel(
            scored.n_tasks,
            scored.n_workers,
            2,
            np.full(2, self.sigma_theta),
            np.full(2, self.sigma_beta),
            np.full(2, self.sigma_theta_mu),
            np.full(2, self.sigma_beta_mu),
            np.zeros(2),  # the class is known, so its prior would only add a constant
            ability="shared",
            difficulty="shared",
        )
        of_scored = replace(request, crowd=scored, gold=np.full(scored.n_tasks, _RIGHT, dtype=np.int32))
        rule = StoppingRule(self.n_iter, np.inf, _GAIN_PER_ANNOTATION * scored.n_annotations)
        run = self._em(of_scored, model, rule, exact=True, gradient_tolerance=self.tol)
        shared, (deviation,) = run.outcome.shared, run.local
        (mu_theta, *_), (mu_beta, *_) = model.split_intercept(shared.intercept)
        ability = np.full(annotations.n_workers, mu_theta)
        ability[of_worker] += shared.ability[:, 0]
        difficulty = np.full(annotations.n_tasks, mu_beta)
        difficulty[of_task] += (deviation + shared.shift)[:, 0]
        posterior = _weighted_vote(annotations, ability - mu_beta)
        return self._ended(
            replace(run, posterior=impose_gold(posterior, gold)),
            {
                "abilities": ability,
                "difficulties": difficulty,
                "mu_theta": np.array(mu_theta),
                "mu_beta": np.array(mu_beta),
            },
        )

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        ability = np.where(worker >= 0, self._parameter("abilities")[worker], self._parameter("mu_theta"))
        return _weighted_vote(annotations, ability - self._parameter("mu_beta"))

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        n_classes = self.annotations_.n_classes
        # Tasks without gold are assumed to have the mean difficulty.
        log_odds = (self._parameter("abilities")[worker] - self._parameter("mu_beta"))[:, None]
        return Evidence(
            log_prior=np.full(n_classes, -np.log(n_classes)),
            of_votes=right_or_uniform(np.broadcast_to(log_odds, (len(worker), n_classes)), label),
            ability=np.broadcast_to(sigmoid(log_odds), (len(worker), n_classes)),
            difficulty=np.full(n_classes, self._parameter("difficulties")[task]),
        )

    @property
    def abilities_(self) -> Any:
        """Ability of every worker on the logit scale; the mean for workers without an answer on a gold task."""
        return self._series("worker", self._parameter("abilities"), "ability")

    @property
    def difficulties_(self) -> Any:
        """Difficulty of every task on the logit scale; the mean for tasks without gold."""
        return self._series("task", self._parameter("difficulties"), "difficulty")

    @property
    def item_difficulty_(self) -> FloatArray:
        """Difficulty of every task relative to the mean; 0 for tasks without gold."""
        return np.asarray(self._parameter("difficulties") - self._parameter("mu_beta"))


def _right_or_wrong(annotations: Annotations, gold: Gold) -> tuple[Annotations, IntArray, IntArray]:
    """The votes on gold tasks with "right" and "wrong" as labels, and the numbers of their workers and tasks.

    Other workers are left out, because abilities are centred over the workers of the fit.
    """
    of_task = np.flatnonzero(gold >= 0)
    truth = gold[annotations.task_of_annotation()]
    counted = truth >= 0
    of_worker, worker = np.unique(annotations.worker[counted], return_inverse=True)
    task_ptr = np.concatenate([[0], np.cumsum(np.diff(annotations.task_ptr)[of_task])]).astype(np.int64)
    scored = Annotations(
        task_ptr,
        worker.astype(smallest_unsigned(of_worker.size)),
        (annotations.label[counted] != truth[counted]).astype(np.uint8),
        annotations.tasks[of_task],
        annotations.workers[of_worker],
        np.array(["right", "wrong"], dtype=object),
    )
    return scored, of_worker.astype(np.int64), of_task


def _weighted_vote(annotations: Annotations, log_odds: FloatArray) -> FloatArray:
    """Posterior if worker ``r`` is right with these odds and errors are uniform over the other classes."""
    log_others = np.log(max(annotations.n_classes - 1, 1))
    return posterior_from_log_scores(annotations.votes((log_odds + log_others)[annotations.worker]))
