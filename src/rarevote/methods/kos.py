"""KOS: messages between tasks and workers (Karger, Oh and Shah 2011)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarevote.crowd.arguments import check_count
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.em.loop import Progress
from rarevote.em.model import CrowdFacts
from rarevote.errors import ParameterError
from rarevote.methods.base import Estimator, Fit, Request


@dataclass(eq=False, repr=False)
class KOS(Estimator):
    """Message passing for two classes: how likely each task is to be positive, and how reliable each worker is.

    With votes ``A_ij`` of worker j on task i as +1 or -1, every vote has two messages::

        x_ij = sum over the other votes on task i of A_ij' y_ij'      what the other votes say about the task
        y_ij = sum over the other votes of worker j of A_i'j x_i'j    how well the worker's other votes fit

    starting from ``y ~ N(1, 1)``; the result is ``sign(sum_j A_ij y_ij)``. Only the direction of the messages matters,
    so they are scaled to a largest value of 1 in every round. The start is drawn in the order of tasks and workers.

    ``probas_`` are the weights of the votes for a class over the weights of all, ``(1 + sum_j A_ij y_ij / sum_j
    |y_ij|) / 2``: a score, not a probability. Ties go to the first class in sorted order.

    Args:
        n_iter: number of rounds.
        random_state: seed of the start.

    Example:
        >>> from rarevote.methods.kos import KOS
        >>> votes = {0: "yyn", 1: "nnn", 2: "yyy", 3: "nny", 4: "yyn"}
        >>> rows = [(task, worker, label) for task, said in votes.items() for worker, label in enumerate(said)]
        >>> KOS().fit(rows).labels_.to_dict()
        {0: 'y', 1: 'n', 2: 'y', 3: 'n', 4: 'y'}
    """

    method_name = "kos"
    has_posterior = False

    n_iter: int = 100
    random_state: int | None = 0

    def _validate(self, crowd: CrowdFacts) -> None:
        check_count("n_iter", self.n_iter, at_least=0)
        if crowd.n_classes > 2:
            raise ParameterError(f"KOS is for two classes; these votes have {crowd.n_classes}")

    def _fit(self, request: Request) -> Fit:
        crowd = request.annotations
        if crowd.n_classes == 1:
            return Fit(np.ones((crowd.n_tasks, 1)), n_iter=0)
        task, worker = crowd.task_of_annotation(), crowd.worker.astype(np.int64)
        order = np.lexsort((worker, task))  # whatever the order of the rows
        worker, sign = worker[order], np.where(crowd.label[order] == 0, 1.0, -1.0)
        trust = np.random.RandomState(self.random_state).normal(1.0, 1.0, len(task))
        for number in range(1, self.n_iter + 1):
            said = _from_others(sign * trust, task, crowd.n_tasks)
            moved = _scaled(_from_others(sign * said, worker, crowd.n_workers))
            if request.callback is not None:
                request.callback(Progress(number, self.n_iter, 0.0, float(np.abs(moved - trust).max(initial=0.0))))
            trust = moved
        weight = np.bincount(task, np.abs(trust), minlength=crowd.n_tasks)
        score = np.bincount(task, sign * trust, minlength=crowd.n_tasks) / np.where(weight > 0, weight, 1.0)
        return Fit(np.column_stack([1 + score, 1 - score]) / 2, n_iter=self.n_iter, n_passes=self.n_iter)


def _from_others(message: FloatArray, group: IntArray, n_groups: int) -> FloatArray:
    """Sum of the messages of all other votes of the same group."""
    return np.asarray(np.bincount(group, message, minlength=n_groups)[group] - message)


def _scaled(message: FloatArray) -> FloatArray:
    largest = np.abs(message).max(initial=0.0)
    return message / largest if largest > 0 else message
