"""Worker agreement with aggregate: a majority vote, then one weighted by how often each worker agreed with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import first_of_best, normalise_rows
from rarevote.methods.base import Fit, Request
from rarevote.methods.majority import Answers
from rarevote.methods.new_tasks import PredictsNewTasks


class Wawa(PredictsNewTasks):
    """Weights every vote by the worker's agreement with the plain majority vote.

    ::

        skill_r = share of r's answers that equal the majority vote of their task
        score of class k for a task = sum of the skills of those who voted k

    ``probas_`` are the scores divided by their sum; where every voter of a task has skill 0 they are uniform. Ties of
    the majority vote go to the first class in sorted order, so on tied tasks the skills depend on the order of the
    class names.

    Example:
        >>> from rarevote.methods.wawa import Wawa
        >>> task, worker = [0, 0, 0, 1, 1], ["ann", "bob", "cy", "ann", "bob"]
        >>> model = Wawa().fit((task, worker, ["yes", "no", "yes", "no", "no"]))
        >>> model.skills_.to_dict()
        {'ann': 1.0, 'bob': 0.5, 'cy': 1.0}
        >>> model.predict(([7, 7], ["bob", "cy"], ["no", "yes"])).to_dict()
        {7: 'yes'}
    """

    method_name: ClassVar[str] = "wawa"
    takes_new_labels: ClassVar[bool] = True
    remembers: ClassVar[Mapping[str, str]] = {"skills": "w:p"}

    def _fit(self, request: Request) -> Fit:
        annotations = request.annotations
        skills = Answers.of(annotations).agreement(first_of_best(annotations.votes()))
        return Fit(normalise_rows(annotations.votes(skills[annotations.worker])), {"skills": skills})

    def _posterior_of(self, annotations: Annotations, worker: NDArray[np.int64]) -> NDArray[np.float64]:
        skills = self._parameter("skills")[worker]
        return normalise_rows(annotations.votes(skills[annotations.worker]))

    @property
    def skills_(self) -> Any:
        """Share of a worker's answers that equal the plain majority vote."""
        return self._series("worker", self._parameter("skills"), "skill")
