"""What is known about every item: its label, how sure that is, how the votes fell, how hard it is, and its pile.

There are three piles: surely of the class, to be looked at, surely not. Sorted by how far their probabilities are to be
believed (:func:`believed`), the items at the top of which nine in ten are expected to be of the class are *surely* so;
those at the bottom that together hold a tenth of the class are *surely not*; what is between is worth a look. Items
that are equally probable are never separated. This is what to expect of a crowd as real ones mostly are; only an audit
can prove it of this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray, first_of_best
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.decide import ABSTAINED
from rarevote.meaning.expect import curve_of_class, drawn_rates, given_share, grouped
from rarevote.meaning.workers import logit, sigmoid
from rarevote.methods.base import Estimator
from rarevote.methods.evidence import WeighsVotes


@dataclass(frozen=True, eq=False)
class Items:
    """All items; arrays by item, or by item and class, in the order of the crowd.

    Attributes:
        names: as given.
        label: the class number that was decided on, or -1 for no answer.
        majority: the class number of a plain majority vote, ties to the first class.
        votes: votes for every class.
        probabilities: of every class, to be read as such.
        confidence: probability of the label, or of the likeliest class where there is no answer.
        entropy: of the probabilities, 0 (certain) to 1 (all classes alike).
        disputed: entropy of the vote split, 0 (unanimous) to 1 (votes spread evenly over all classes).
        difficulty: for items of its label, against an item of average difficulty, on the logit scale; None where the
            method knows no difficulty.
        typical_accuracy: probability that an average vote on the item is right, if its label is: the accuracy of the
            average vote on that class, moved by the difficulty; None likewise.
        is_known: whether the label was given as gold.
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
        """Where the label is not that of the majority vote; no answer overrules nothing."""
        return np.asarray((self.label != self.majority) & (self.label != ABSTAINED))

    def most_telling(self, limit: int) -> IntArray:
        """Numbers of the items to look at first, the least certain ones leading.

        Items are ranked by uncertainty, by dispute and by difficulty; one that stands high in any of the three is
        taken before one that stands high in none.
        """
        measures = [self.entropy, self.disputed]
        if self.typical_accuracy is not None:
            measures.append(-self.typical_accuracy)
        place = np.full(len(self.label), len(self.label))
        for measure in measures:
            rank = np.empty(len(self.label), dtype=np.int64)
            rank[np.argsort(-measure, kind="stable")] = np.arange(len(self.label))
            place = np.minimum(place, rank)
        chosen = np.argsort(place, kind="stable")[:limit]
        return np.asarray(chosen[np.lexsort((chosen, -self.disputed[chosen], -self.entropy[chosen]))])


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
        labels: class number that each task was given, or -1, (n_tasks).
        probabilities: of every class per task, (n_tasks, n_classes).
        typical_accuracy: of the average vote on each class, (n_classes).
        is_known: which labels were given as gold, (n_tasks).
    """
    crowd = estimator.annotations_
    votes = crowd.votes()
    # Without an answer, how sure and how hard is asked of the likeliest class.
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
    # Rounding may leave a certain row a hair below zero.
    return np.asarray(np.maximum(-(shares * logs).sum(axis=1) / np.log(shares.shape[1]), 0.0))


def _difficulty(estimator: Estimator, labels: IntArray) -> FloatArray | None:
    """Difficulty of each item for its label, against an average one; None where the method has none."""
    difficulty = estimator.item_difficulty_ if isinstance(estimator, WeighsVotes) else None
    if difficulty is None:
        return None
    per_class = np.broadcast_to(difficulty.reshape(len(labels), -1), estimator.posterior_.shape)
    return np.array(per_class[np.arange(len(labels)), labels])


#: share of the first pile that is expected to be of the class
SURE = 0.9
#: share of the class that is expected in the last pile
MISSED = 0.1
_ROUNDING = 1e-9


class Pile(IntEnum):
    """Where an item lies."""

    SURELY_NOT = 0
    LOOK = 1
    SURELY = 2


@dataclass(frozen=True, eq=False)
class Piles:
    """The piles of one class.

    Attributes:
        pile: of every item, a :class:`Pile`, (n).
        n_items: items in each pile, (3).
        expected: how many of these are expected to be of the class, (3).
    """

    pile: IntArray
    n_items: IntArray
    expected: FloatArray


def believed(calibrated: CalibratedPosterior, number: int) -> FloatArray:
    """Probability that each item is of a class, as far as probabilities of real crowds are to be believed, (n).

    The median over the draws of :mod:`rarevote.meaning.expect`, each a crowd as real crowds are.

    Args:
        calibrated: probabilities of the classes, and which items are known.
        number: the class.
    """
    open_items = calibrated.gold < 0
    logit, size, group = grouped(calibrated.score[open_items, number])
    given = given_share(calibrated, number)
    rates = drawn_rates(logit, size, curve_of_class(calibrated), np.random.default_rng(4), given)
    found = (calibrated.gold == number).astype(np.float64)
    found[open_items] = np.median(rates, axis=0)[group]
    return np.asarray(found)


def make_piles(believed: FloatArray) -> Piles:
    """Sort items into piles.

    Args:
        believed: probability that each item is of the class, (n).

    Example:
        >>> make_piles(np.array([0.99, 0.97, 0.5, 0.3, 0.05, 0.05, 0.05])).pile.tolist()
        [2, 2, 1, 1, 0, 0, 0]
    """
    order = np.argsort(-believed, kind="stable")
    ordered = believed[order]
    # After how many items a pile may end: never between equally probable ones.
    cuts = np.flatnonzero(np.concatenate([[True], np.diff(ordered) != 0, [True]])[: ordered.size + 1])
    above = np.append(0.0, np.cumsum(ordered))[cuts]
    n_sure = cuts[np.flatnonzero(above >= SURE * cuts - _ROUNDING)[-1]]
    first_not = cuts[np.flatnonzero(above[-1] - above <= MISSED * above[-1] + _ROUNDING)[0]]
    first_not = max(first_not, n_sure)
    sizes = [n_sure, first_not - n_sure, ordered.size - first_not]
    pile = np.empty(ordered.size, dtype=np.int64)
    pile[order] = np.repeat([Pile.SURELY, Pile.LOOK, Pile.SURELY_NOT], sizes)
    expected = np.bincount(pile, weights=believed, minlength=3).astype(np.float64)
    return Piles(pile, np.bincount(pile, minlength=3), expected)
