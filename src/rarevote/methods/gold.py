"""Methods that learn about workers from tasks whose label is known, and then label the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import check_number
from rarevote.crowd.names import find_name
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.em.model import CrowdFacts, Gold, impose_gold
from rarevote.errors import ParameterError, how
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.evidence import Evidence, WeighsVotes
from rarevote.methods.majority import Answers
from rarevote.methods.new_tasks import PredictsNewTasks, posterior_from_votes
from rarevote.methods.parameters import check_choice
from rarevote.methods.weighted import WeightedVote, shares_of

Toward = Literal["crowd", "uniform"]


def require_gold(method: Estimator, gold: Gold) -> None:
    """Refuse to fit without any gold."""
    if not (gold >= 0).any():
        raise ParameterError(
            how(
                f"{type(method).__name__} learns from gold: give some as fit(data, true_labels), "
                "a mapping or Series from task to label",
                f"{method.method_name} learns from gold: give some with --gold FILE (columns task and label)",
            )
        )


@dataclass(eq=False, repr=False)
class GoldMajorityVote(WeightedVote):
    """A vote in which every worker is weighted by their accuracy on the gold tasks.

    ::

        skill_r = share of r's answers on gold tasks that are right; an identical repeated answer counts once
        score of class k for a task = sum of the skills of those who voted k

    ``probas_`` are the scores divided by their sum, or uniform if every voter has skill 0. Gold tasks get their known
    label. Needs ``fit(data, true_labels)``; if a task has several gold labels, each of them counts as right.

    Args:
        default_skill: the skill of workers without an answer on a gold task, and, in :meth:`predict`, of workers that
            the fit has not seen; None for the mean skill of the workers that have one.

    Example:
        >>> from rarevote.methods.gold import GoldMajorityVote
        >>> task, worker = [0, 0, 1, 1, 1], ["ann", "bob", "ann", "bob", "cy"]
        >>> model = GoldMajorityVote().fit((task, worker, ["yes", "no", "yes", "no", "no"]), {0: "yes"})
        >>> model.skills_.to_dict()
        {'ann': 1.0, 'bob': 0.0, 'cy': 0.5}
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'yes'}
    """

    method_name = "gold-majority-vote"
    takes_unseen_workers = True
    saved_arrays: ClassVar[Mapping[str, str]] = {"skills": "w:n", "default_skill": ":n"}

    _: KW_ONLY
    default_skill: float | None = None

    def _validate(self, crowd: CrowdFacts) -> None:
        if self.default_skill is not None:
            check_number("default_skill", self.default_skill, at_least=0)

    def _fit(self, request: Request) -> Fit:
        annotations, gold = request.annotations, request.gold
        require_gold(self, gold)
        answers = Answers.of(annotations)
        truth = gold[answers.task]
        is_right = truth == answers.label
        for task, label in request.more_gold:
            place, code = find_name(task, annotations.task_names()), find_name(label, annotations.classes)
            is_right |= (answers.task == place) & (answers.label == code)
        given = np.bincount(answers.worker[truth >= 0], minlength=annotations.n_workers)
        right = np.bincount(answers.worker[is_right], minlength=annotations.n_workers)
        seen = given > 0
        skills = right / np.maximum(given, 1)
        default = float(skills[seen].mean()) if self.default_skill is None else float(self.default_skill)
        skills = np.where(seen, skills, default)
        return Fit(
            impose_gold(shares_of(annotations, skills), gold), {"skills": skills, "default_skill": np.array(default)}
        )

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        skills = np.where(worker >= 0, self._parameter("skills")[worker], self._parameter("default_skill"))
        return shares_of(annotations, skills)


@dataclass(eq=False, repr=False)
class GoldDawidSkene(PredictsNewTasks, WeighsVotes):
    """Dawid–Skene with confusion matrices and class shares counted on the gold tasks, then kept fixed.

    ::

        e_r(y | k) = (times r answered y on gold tasks of class k + s K p(y | k)) / (such answers + s K)
        pi_k       = (gold tasks of class k + s) / (gold tasks + s K)
        posterior of a task:  q_k ∝ pi_k prod_r e_r(y_r | k)

    with ``s`` = ``smoothing``, a Dirichlet prior with the weight of ``s`` answers per cell. Its mean ``p`` is the
    confusion matrix of the whole crowd, ``p(y | k) = (all such answers + s) / (all answers on class k + s K)``: a
    worker with few gold answers resembles the crowd, and a worker without any gets exactly the crowd's matrix. Gold
    tasks get their gold label. Needs ``fit(data, true_labels)``.

    Args:
        smoothing: weight of the prior, above 0.
        toward: the prior's mean: "crowd" as above, or "uniform" for ``p = 1/K``, for which workers without gold
            answers do not count.

    Example:
        >>> from rarevote.methods.gold import GoldDawidSkene
        >>> task, worker = [0, 0, 1, 1, 2, 2], ["ann", "bob"] * 3
        >>> label = ["yes", "no", "no", "yes", "yes", "no"]
        >>> model = GoldDawidSkene().fit((task, worker, label), {0: "yes", 1: "no"})
        >>> model.labels_.to_dict()
        {0: 'yes', 1: 'no', 2: 'yes'}
    """

    method_name = "gold-dawid-skene"
    memory_model: ClassVar[Mapping[str, float]] = {"tk": 3, "wkk": 3}
    takes_unseen_workers = True
    saved_arrays: ClassVar[Mapping[str, str]] = {"errors": "wkk:p", "prior_mean": "kk", "priors": "k:p"}

    _: KW_ONLY
    smoothing: float = 1.0
    toward: Toward = "crowd"

    def _validate(self, crowd: CrowdFacts) -> None:
        check_number("smoothing", self.smoothing, above=0)
        check_choice("toward", self.toward, "crowd", "uniform")

    def _fit(self, request: Request) -> Fit:
        annotations, gold = request.annotations, request.gold
        require_gold(self, gold)
        K = annotations.n_classes
        answers = _answers_on_gold(annotations, gold)
        prior_mean = np.full((K, K), 1.0 / K)
        if self.toward == "crowd":
            total = answers.sum(axis=0) + self.smoothing
            prior_mean = total / total.sum(axis=0)
        smoothed = answers + self.smoothing * K * prior_mean
        errors = smoothed / smoothed.sum(axis=1, keepdims=True)
        shares = np.bincount(gold[gold >= 0], minlength=K) + self.smoothing
        priors = shares / shares.sum()
        posterior = _posterior(annotations, errors, priors)
        return Fit(impose_gold(posterior, gold), {"errors": errors, "prior_mean": prior_mean, "priors": priors})

    def _class_prior(self) -> FloatArray:
        return np.asarray(self._parameter("priors"))

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        errors, own = self._parameter("errors")[worker], np.arange(self.annotations_.n_classes)
        votes = np.arange(len(worker))
        return Evidence(np.log(self._parameter("priors")), np.log(errors[votes, label]), errors[:, own, own])

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        known = (worker >= 0)[:, None, None]
        errors = np.where(known, self._parameter("errors")[worker], self._parameter("prior_mean"))
        return _posterior(annotations, errors, self._parameter("priors"))

    @property
    def errors_(self) -> Any:
        """Probability of each answer given the true class: a frame (worker, label) x true class."""
        return self._worker_label_by_class(self._parameter("errors"))

    @property
    def priors_(self) -> Any:
        """Smoothed class shares of the gold tasks."""
        return self._series("label", self._parameter("priors"), "prior")


def _answers_on_gold(annotations: Annotations, gold: Gold) -> FloatArray:
    """Answers by worker, label and true class, (n_workers, K, K)."""
    K = annotations.n_classes
    truth = gold[annotations.task_of_annotation()].astype(np.int64)
    counted = truth >= 0
    cell = (annotations.worker[counted].astype(np.int64) * K + annotations.label[counted]) * K + truth[counted]
    return np.bincount(cell, minlength=annotations.n_workers * K * K).reshape(-1, K, K).astype(np.float64)


def _posterior(annotations: Annotations, errors: FloatArray, priors: FloatArray) -> FloatArray:
    """Posterior per task from the errors of each worker, (n_workers, K, K)."""
    # Logarithms of the whole table: NumPy 1.26 does not round those of a single column consistently.
    of_votes = np.log(errors[annotations.worker, annotations.label])
    return posterior_from_votes(annotations, of_votes, np.log(priors))
