"""The items of a crowd: labels, confidence, difficulty, and where the majority vote is overruled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, first_of_best, sigmoid
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.workers import logit
from rarevote.methods.base import Estimator
from rarevote.methods.evidence import WeighsVotes


@dataclass(frozen=True, eq=False)
class Items:
    """All items; arrays by item, or by item and class, in the order of the crowd.

    Attributes:
        names: as given.
        label: the class number of the label, or -1 for no answer.
        majority: the class number of a plain majority vote, ties to the first class.
        votes: votes for every class.
        probabilities: calibrated probability of every class.
        confidence: probability of the label, or of the likeliest class if there is no answer.
        entropy: entropy of the probabilities, 0 (certain) to 1 (all classes equal).
        disputed: entropy of the vote split, 0 (unanimous) to 1 (votes spread evenly over all classes).
        difficulty: for items of its label, relative to an item of average difficulty, on the logit scale; None if the
            method has no difficulty.
        typical_accuracy: probability that an average vote on the item is right, if its label is: the accuracy of the
            average vote on that class, moved by the difficulty; None likewise.
        is_known: whether the label is gold.
    """

    names: NDArray[np.object_]
    label: IntArray
    majority: IntArray
    votes: IntArray
    probabilities: FloatArray
    confidence: FloatArray
    entropy: FloatArray
    disputed: FloatArray
    difficulty: FloatArray | None
    typical_accuracy: FloatArray | None
    is_known: NDArray[np.bool_]

    @property
    def overruled(self) -> NDArray[np.bool_]:
        """Which labels differ from the majority vote; no answer does not count."""
        return np.asarray((self.label != self.majority) & (self.label != ABSTAINED))


def describe_items(
    estimator: Estimator,
    labels: IntArray,
    probabilities: FloatArray,
    *,
    typical_accuracy: FloatArray,
    is_known: NDArray[np.bool_],
) -> Items:
    """Describe the items of a fitted crowd.

    Args:
        estimator: the fitted method, for its difficulties.
        labels: class number of each task's label, or -1, (n_tasks).
        probabilities: of every class per task, (n_tasks, n_classes).
        typical_accuracy: accuracy of the average vote on each class, (n_classes).
        is_known: which labels are gold, (n_tasks).
    """
    crowd = estimator.annotations_
    votes = crowd.votes()
    # Without an answer, confidence and difficulty are those of the likeliest class.
    meant = np.where(labels == ABSTAINED, first_of_best(probabilities), labels)
    difficulty = _difficulty(estimator, meant)
    return Items(
        names=crowd.task_names(),
        label=labels,
        majority=first_of_best(votes),
        votes=votes.astype(np.int64),
        probabilities=probabilities,
        confidence=probabilities[np.arange(len(meant)), meant],
        entropy=relative_entropy(probabilities),
        disputed=relative_entropy(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)),
        difficulty=difficulty,
        typical_accuracy=None if difficulty is None else sigmoid(logit(typical_accuracy)[meant] - difficulty),
        is_known=is_known,
    )


def relative_entropy(shares: FloatArray) -> FloatArray:
    """Entropy of each row as a share of the largest possible, ``-sum p log p / log K``; 0 if there is one class."""
    if shares.shape[1] < 2:
        return np.zeros(len(shares))
    # log 1 in place of log 0: the term is zero either way.
    logs = np.log(np.where(shares > 0, shares, 1.0))
    # Rounding can make a certain row slightly negative.
    return np.asarray(np.maximum(-(shares * logs).sum(axis=1) / np.log(shares.shape[1]), 0.0))


def _difficulty(estimator: Estimator, labels: IntArray) -> FloatArray | None:
    """Difficulty of each item for its label, relative to an average one; None if the method has none."""
    difficulty = estimator.item_difficulty_ if isinstance(estimator, WeighsVotes) else None
    if difficulty is None:
        return None
    per_class = np.broadcast_to(difficulty.reshape(len(labels), -1), estimator.posterior_.shape)
    return np.array(per_class[np.arange(len(labels)), labels])


@dataclass(frozen=True, eq=False)
class Overruled:
    """Items whose label is not that of the majority vote, grouped by the pair of classes; the largest group first.

    Attributes:
        items: numbers of all of them.
        majority: class that the majority vote gives, (n_moves).
        label: class of their label, (n_moves).
        count: number of items in each group, (n_moves).
    """

    items: IntArray
    majority: IntArray
    label: IntArray
    count: IntArray


def describe_overruled(items: Items) -> Overruled:
    """Count the items on which the result and the majority vote differ."""
    numbers = np.flatnonzero(items.overruled)
    # Pairs rather than a square table: there can be thousands of classes.
    pairs, group = np.unique(
        np.column_stack([items.majority[numbers], items.label[numbers]]), axis=0, return_inverse=True
    )
    group = group.reshape(-1)
    count = np.bincount(group, minlength=len(pairs))
    largest_first = np.argsort(-count, kind="stable")
    return Overruled(
        items=numbers,
        majority=pairs[largest_first, 0],
        label=pairs[largest_first, 1],
        count=count[largest_first],
    )
