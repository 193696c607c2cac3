"""Majority vote, plain or weighted by given skills."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray, normalise_rows
from rarevote.crowd.words import counted
from rarevote.em.loop import Callback
from rarevote.em.model import CrowdFacts, Shard, soft_majority
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.parameters import check_choice

OnMissingSkill = Literal["error", "ignore", "value"]


class Answers(NamedTuple):
    """Answers to compare with a result; an identical answer that a worker repeats on a task counts once."""

    task: IntArray
    worker: IntArray
    label: NDArray[Any]
    n_workers: int

    @classmethod
    def of(cls, annotations: Annotations) -> Answers:
        """The answers of a crowd, without repetitions (as crowd-kit counts skills)."""
        task = annotations.task_of_annotation()
        worker, label = annotations.worker.astype(np.int64), annotations.label
        answer = (task * annotations.n_workers + worker) * annotations.n_classes + label
        _, first = np.unique(answer, return_index=True)
        if first.size < task.size:
            task, worker, label = task[first], worker[first], label[first]
        return cls(task, worker, label, annotations.n_workers)

    def agreement(self, labels: IntArray) -> FloatArray:
        """Share of each worker's answers that equal the label given to their task, (n_workers)."""
        right = np.bincount(self.worker, weights=self.label == labels[self.task], minlength=self.n_workers)
        return right / np.maximum(np.bincount(self.worker, minlength=self.n_workers), 1)


class VoteShares(NamedTuple):
    """The plain vote as a model for runners: a starting posterior, and no loop."""

    n_classes: int

    def start_local(self, shard: Shard) -> tuple[FloatArray]:
        """Vote shares per task, (n, K)."""
        return (soft_majority(shard, self.n_classes),)


@dataclass(eq=False, repr=False)
class MajorityVote(Estimator):
    """The class with the most votes; ties go to the first class in sorted order.

    With ``skills`` in ``fit``, the score of a class is the sum of its voters' skills.

    Args:
        default_skill: the skill of workers without one, with ``on_missing_skill="value"``.
        on_missing_skill: what to do about workers without a skill: "error", "ignore" their votes, or give them the
            "value" of ``default_skill``.

    Example:
        >>> from rarevote import MajorityVote
        >>> MajorityVote().fit_predict(([0, 0, 0], ["ann", "bob", "cy"], ["yes", "no", "yes"])).to_dict()
        {0: 'yes'}
    """

    method_name = "majority-vote"
    has_posterior = False

    default_skill: float | None = None
    on_missing_skill: OnMissingSkill = "error"

    def fit(  # type: ignore[override]
        self,
        data: Any,
        skills: Any = None,
        *,
        true_labels: Any = None,
        callback: Callback | None = None,
        **options: Any,
    ) -> Self:
        """Aggregate the annotations.

        Arguments that are not named here are as in :meth:`Estimator.fit`.

        Args:
            skills: weights of the workers: a Series indexed by worker, or a mapping; NaN means no skill.
            true_labels: refused: a majority vote does not learn.
        """
        return self.fit_request(data, true_labels, options, callback=callback, skills=skills)

    def _validate(self, crowd: CrowdFacts) -> None:
        check_choice("on_missing_skill", self.on_missing_skill, "error", "ignore", "value")
        if (self.default_skill is None) == (self.on_missing_skill == "value"):
            raise ParameterError('default_skill and on_missing_skill="value" must be given together')

    def _fit(self, request: Request) -> Fit:
        if request.skills is None:
            return Fit(request.runner.start(VoteShares(request.crowd.n_classes), request.crowd, request.gold))
        votes, ignored = self._weighted_votes(request.annotations, request.skills)
        return Fit(normalise_rows(votes), {"ignored": ignored})

    def _weighted_votes(self, annotations: Annotations, given: Any) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Sums of skills by task and class, and the workers whose votes do not count."""
        items = dict(given) if isinstance(given, Mapping) else dict(given.items())
        known = {name: float(skill) for name, skill in items.items() if not np.isnan(skill)}
        names = annotations.workers.tolist()
        lacking = np.array([name not in known for name in names])
        if lacking.any() and self.on_missing_skill == "error":
            raise InputError(
                f"{counted(lacking.sum(), 'worker has', 'workers have')} no skill "
                f"(first: {names[int(lacking.argmax())]!r}): give one, or "
                'set on_missing_skill to "ignore" or "value"'
            )
        ignored = lacking & (self.on_missing_skill == "ignore")
        default = 0.0 if self.default_skill is None else self.default_skill
        weight = np.array([known.get(name, default) for name in names])[annotations.worker]
        if ignored.any():
            has_weight = (~ignored)[annotations.worker]
            left = np.bincount(annotations.task_of_annotation(), has_weight, minlength=annotations.n_tasks)
            if not left.all():
                raise InputError(
                    f"{counted((left == 0).sum(), 'task has', 'tasks have')} only votes of workers without a skill "
                    f"(first: {annotations.tasks.tolist()[left.argmin()]!r})"
                )
        return annotations.votes(weight), ignored

    @property
    def skills_(self) -> Any:
        """Share of a worker's answers that equal the result; workers that were ignored have none."""
        skills = Answers.of(self.annotations_).agreement(self.label_codes())
        ignored = self.fitted_parameters.get("ignored")
        return self._series("worker", skills, "skill", None if ignored is None else ~ignored)
