"""Majority vote, plain or weighted by given skills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations
from rarevote.em import Callback
from rarevote.errors import InputError, ParameterError
from rarevote.estimator import Estimator, Fit
from rarevote.numerics import first_of_best, normalise_rows

OnMissingSkill = Literal["error", "ignore", "value"]


def agreement(annotations: Annotations, labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of each worker's answers that equal the label given to their task, (n_workers)."""
    agrees = annotations.label == labels[annotations.task_of_annotation()]
    right = np.bincount(annotations.worker, weights=agrees, minlength=annotations.n_workers)
    given = np.bincount(annotations.worker, minlength=annotations.n_workers)
    return right / np.maximum(given, 1)


class MajorityVote(Estimator):
    """The class with the most votes; ties go to the first class in sorted order.

    With ``skills`` in ``fit``, the score of a class is the sum of its voters' skills.

    Args:
        on_missing_skill: what to do about workers without a skill: "error", "ignore" their votes, or give them the
            "value" of ``default_skill``.
        default_skill: the skill of workers without one, with ``on_missing_skill="value"``.

    Example:
        >>> from rarevote import MajorityVote
        >>> MajorityVote().fit_predict(([0, 0, 0], ["ann", "bob", "cy"], ["yes", "no", "yes"])).to_dict()
        {0: 'yes'}
    """

    method_name: ClassVar[str] = "majority-vote"

    def __init__(self, on_missing_skill: OnMissingSkill = "error", default_skill: float | None = None) -> None:
        self.on_missing_skill = on_missing_skill
        self.default_skill = default_skill

    def fit(self, data: Any, skills: Any = None, **options: Any) -> Self:  # type: ignore[override]
        """Aggregate the annotations.

        Args:
            data: as in :meth:`Estimator.fit`.
            skills: weights of the workers: a Series indexed by worker, or a mapping.
            **options: as in :meth:`Estimator.fit`.
        """
        self._given_skills = skills
        try:
            return super().fit(data, **options)
        finally:
            del self._given_skills

    def _validate(self, annotations: Annotations) -> None:
        if self.on_missing_skill not in ("error", "ignore", "value"):
            raise ParameterError(
                f'on_missing_skill must be "error", "ignore" or "value", got {self.on_missing_skill!r}'
            )
        if (self.default_skill is None) == (self.on_missing_skill == "value"):
            raise ParameterError('default_skill goes with on_missing_skill="value", and that needs it')

    def _fit(self, annotations: Annotations, gold: NDArray[np.int32], callback: Callback | None) -> Fit:
        if self._given_skills is None:
            votes = annotations.votes()
        else:
            votes = self._weighted_votes(annotations)
        posterior = normalise_rows(votes)
        return Fit(posterior, {"skills": agreement(annotations, first_of_best(posterior))})

    def _weighted_votes(self, annotations: Annotations) -> NDArray[np.float64]:
        given = self._given_skills
        known = dict(given) if isinstance(given, Mapping) else dict(given.items())
        names = annotations.workers.tolist()
        lacking = np.array([name not in known for name in names])
        if lacking.any() and self.on_missing_skill == "error":
            raise InputError(
                f"{lacking.sum():,} workers have no skill (first: {names[int(lacking.argmax())]!r}): give them one, or "
                'set on_missing_skill to "ignore" or "value"'
            )
        default = 0.0 if self.default_skill is None else self.default_skill
        weight = np.array([float(known.get(name, default)) for name in names])[annotations.worker]
        if lacking.any() and self.on_missing_skill == "ignore":
            counted = (~lacking)[annotations.worker]
            left = np.bincount(annotations.task_of_annotation(), counted, minlength=annotations.n_tasks)
            if not left.all():
                raise InputError(
                    f"{(left == 0).sum():,} tasks have only votes of workers without a skill "
                    f"(first: {annotations.tasks[int(left.argmin())]!r})"
                )
        return annotations.votes(weight)

    @property
    def skills_(self) -> Any:
        """Share of a worker's answers that equal the result."""
        return self._series("worker", self._parameter("skills"), "skill")
