"""Evidence: the contributions of the prior and of each vote to the log posterior of a task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarevote.crowd.numerics import IntArray
from rarevote.methods.base import Estimator, FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """The evidence for each class of one task.

    Attributes:
        log_prior: of every class, (n_classes).
        of_votes: log probability of each vote under each class, (n_votes, n_classes); up to a constant per vote.
        ability: probability that the worker behind each vote recognises each class, on a task of average difficulty,
            (n_votes, n_classes).
        difficulty: of the task for each class on the method's scale, larger is harder, (n_classes); None if the
            method has none.
        of_features: what features of the task add to its log prior, (n_classes); None if none are used.
    """

    log_prior: FloatArray
    of_votes: FloatArray
    ability: FloatArray
    difficulty: FloatArray | None = None
    of_features: FloatArray | None = None


class WeighsVotes(Estimator):
    """A method that can show the contribution of each vote to the class of a task.

    If votes are independent given the class, the posterior of a task is a sum in logs::

        log P(class k | votes) = log prior_k + sum over votes log P(vote | class k) + constant

    so every vote has a contribution that can be shown; :mod:`rarevote.diagnose.explain` shows it.
    """

    def evidence(self, task: int) -> Evidence:
        """The evidence on the task with this number; numbers after the last task are items without votes."""
        crowd = self.annotations_
        votes = crowd.votes_on(task)
        return self._evidence(task, crowd.worker[votes].astype(np.int64), crowd.label[votes].astype(np.int64))

    @property
    def item_difficulty_(self) -> FloatArray | None:
        """By how much the task lowers an average worker's log odds of being right, compared with an average task.

        ``(n_tasks)``, or ``(n_tasks, n_classes)`` if it depends on the class; None if the method has none.
        """
        return None

    def _evidence(self, task: int, worker: IntArray, label: IntArray) -> Evidence:
        """The evidence of these votes; ``worker`` and ``label`` are numbers, (n_votes)."""
        raise NotImplementedError


def right_or_uniform(log_odds: FloatArray, label: IntArray) -> FloatArray:
    """Log probability of each vote under each class, if errors are uniform over the other classes.

    Args:
        log_odds: log odds of being right under each class, (n_votes, n_classes).
        label: class that each vote names, (n_votes).
    """
    n_classes = log_odds.shape[1]
    is_right = label[:, None] == np.arange(n_classes)
    # log sigmoid(x) = -log(1 + exp(-x)), and log(1 - sigmoid(x)) = -log(1 + exp(x)): neither can overflow.
    log_right = -np.logaddexp(0.0, -log_odds)
    log_wrong = -np.logaddexp(0.0, log_odds) - np.log(max(n_classes - 1, 1))
    return np.asarray(np.where(is_right, log_right, log_wrong))
