"""Votes weighted by how far workers agree with the result: once (Wawa), or repeatedly with a falling step size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import check_count, check_number
from rarevote.crowd.numerics import Chooser, FloatArray, IntArray, first_of_best, normalise_rows, tied_with_best
from rarevote.em.loop import Progress
from rarevote.em.model import CrowdFacts
from rarevote.methods.base import Fit, Request
from rarevote.methods.majority import Answers
from rarevote.methods.new_tasks import PredictsNewTasks


class FirstOfTied:
    """The class with the largest share; among shares equal up to rounding, the first class in sorted order."""

    def codes(self, posterior: FloatArray, votes: Callable[[], FloatArray]) -> IntArray:
        """Class numbers of tasks."""
        return first_of_best(tied_with_best(posterior))


class WeightedVote(PredictsNewTasks):
    """A vote in which every worker is weighted by their skill."""

    has_posterior = False
    takes_new_labels = True
    saved_arrays: ClassVar[Mapping[str, str]] = {"skills": "w"}

    @property
    def chooser(self) -> Chooser:
        """The largest share: the order in which skills were added must not decide between equal ones."""
        return FirstOfTied()

    def _posterior_of(self, annotations: Annotations, worker: IntArray) -> FloatArray:
        return shares_of(annotations, self._parameter("skills")[worker])

    @property
    def skills_(self) -> Any:
        """The skill of every worker: the share of their answers that equal the result, or gold if there is any."""
        return self._series("worker", self._parameter("skills"), "skill")


def shares_of(annotations: Annotations, skills: FloatArray) -> FloatArray:
    """Each class's share of the skills of a task's voters, (n_tasks, n_classes)."""
    return normalise_rows(annotations.votes(skills[annotations.worker]))


class Wawa(WeightedVote):
    """Weights every vote by the worker's agreement with the plain majority vote.

    ::

        skill_r = share of r's answers that equal the majority vote of their task
        score of class k for a task = sum of the skills of those who voted k

    ``probas_`` are the scores divided by their sum; if every voter of a task has skill 0, they are uniform. Ties of
    the majority vote go to the first class in sorted order, so on tied tasks the skills depend on the order of the
    class names.

    Example:
        >>> from rarevote.methods.weighted import Wawa
        >>> task, worker = [0, 0, 0, 1, 1], ["ann", "bob", "cy", "ann", "bob"]
        >>> model = Wawa().fit((task, worker, ["yes", "no", "yes", "no", "no"]))
        >>> model.skills_.to_dict()
        {'ann': 1.0, 'bob': 0.5, 'cy': 1.0}
        >>> model.predict(([7, 7], ["bob", "cy"], ["no", "yes"])).to_dict()
        {7: 'yes'}
    """

    method_name = "wawa"
    saved_arrays: ClassVar[Mapping[str, str]] = {"skills": "w:p"}

    def _fit(self, request: Request) -> Fit:
        annotations = request.annotations
        skills = Answers.of(annotations).agreement(first_of_best(annotations.votes()))
        return Fit(shares_of(annotations, skills), {"skills": skills})


@dataclass(eq=False, repr=False)
class ZeroBasedSkill(WeightedVote):
    """Weights every vote by a skill that follows the worker's agreement with the weighted vote.

    All workers start with the skill ``1/K + eps``. Each iteration labels the tasks by the vote weighted with the
    skills, then moves every skill toward the share of the worker's answers that equal those labels::

        skill_r += rate * (agreement_r - skill_r)

    which is a gradient step on the squared difference. The rate begins at ``lr_init`` and is multiplied by
    ``lr_reduce_factor`` in every ``lr_steps_to_reduce``-th iteration. ``probas_`` are the final scores divided by
    their sum. There is no objective that must rise; the fit stops early only when the skills stop changing
    exactly. Ties go to the first class in sorted order.

    Args:
        n_iter: the largest number of iterations.
        lr_init: the first step size, in (0, 1].
        lr_steps_to_reduce: after how many iterations the step size falls.
        lr_reduce_factor: what it is multiplied by, in (0, 1].
        eps: added to the first skill, at least 0.

    Example:
        >>> from rarevote.methods.weighted import ZeroBasedSkill
        >>> task, worker = [0, 0, 0, 1, 1], ["ann", "bob", "cy", "ann", "bob"]
        >>> model = ZeroBasedSkill().fit((task, worker, ["yes", "no", "yes", "no", "no"]))
        >>> {name: round(skill, 6) for name, skill in model.skills_.to_dict().items()}
        {'ann': 1.0, 'bob': 0.5, 'cy': 1.0}
    """

    method_name = "zero-based-skill"

    n_iter: int = 100
    lr_init: float = 1.0
    lr_steps_to_reduce: int = 20
    lr_reduce_factor: float = 0.5
    eps: float = 1e-5

    def _validate(self, crowd: CrowdFacts) -> None:
        check_count("n_iter", self.n_iter, at_least=0)
        check_count("lr_steps_to_reduce", self.lr_steps_to_reduce)
        for name in ("lr_init", "lr_reduce_factor"):
            check_number(name, getattr(self, name), above=0, at_most=1)
        check_number("eps", self.eps, at_least=0)

    def _fit(self, request: Request) -> Fit:
        annotations = request.annotations
        n_voted = np.count_nonzero(np.bincount(annotations.label))
        skills = np.full(annotations.n_workers, 1.0 / n_voted + self.eps)
        rate = self.lr_init
        answers = Answers.of(annotations)
        iteration = 0
        for iteration in range(1, self.n_iter + 1):
            if iteration % self.lr_steps_to_reduce == 0:
                rate *= self.lr_reduce_factor
            scores = annotations.votes(skills[annotations.worker])
            agreed = answers.agreement(first_of_best(tied_with_best(scores)))
            moved = skills + rate * (agreed - skills)
            change = float(np.abs(moved - skills).max())
            skills = moved
            if request.callback is not None:
                request.callback(Progress(iteration, self.n_iter, -float(((agreed - skills) ** 2).sum()), change))
            if change == 0.0:
                break  # the labels, hence every later iteration, would be the same
        return Fit(shares_of(annotations, skills), {"skills": skills}, n_iter=iteration, n_passes=iteration)
