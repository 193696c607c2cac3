"""Comparison with the truth: what the result and a majority vote got right, and the calibration of probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import numbered, sort_labels
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.items import Items
from rarevote.errors import InputError
from rarevote.scoring.metrics import Scores, score

_BINS = 10
# Represents no answer: not equal to any class, whatever the names in the data.
_SILENT = object()
# Two-sided 95% of a normal distribution.
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Calibration:
    """Items grouped by the probability of one class; arrays by group, empty groups left out.

    Attributes:
        predicted: mean probability in the group.
        observed: share of the group that has the class.
        low: lower end of the 95% interval of that share (Wilson).
        high: upper end of the interval.
        count: number of items in the group.
        error: mean difference between predicted and observed over all items.
    """

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray
    count: IntArray
    error: float


@dataclass(frozen=True, eq=False)
class TruthCheck:
    """The result compared with the truth, without labels that the fit used as gold.

    An item without votes has no answer: it is a miss of its class for the result and for a majority vote.

    Attributes:
        items: numbers of the items with votes and a true label.
        n_given: number of true labels left out because the fit used them as gold.
        n_unseen: number of true labels for unknown items.
        classes: names of all true or decided classes, sorted.
        truth: number of the true class in ``classes``, per item.
        unvoted: the same for items without votes that have a true label.
        unvoted_label: their labels, likewise, -1 for no answer, as without features.
        label: number of the label in ``classes``, or -1 for no answer, per item.
        majority: number of the majority vote in ``classes``, per item.
        scores: figures of the result.
        majority_scores: figures of the majority vote.
        calibration: calibration of the probabilities of the rare class.
        posterior_calibration: the same for the method's own posterior.
    """

    items: IntArray
    n_given: int
    n_unseen: int
    classes: list[Hashable]
    truth: IntArray
    unvoted: IntArray
    unvoted_label: IntArray
    label: IntArray
    majority: IntArray
    scores: Scores
    majority_scores: Scores
    calibration: Calibration
    posterior_calibration: Calibration

    @property
    def n_checked(self) -> int:
        """Number of items that are compared with the truth."""
        return len(self.items) + len(self.unvoted)

    @property
    def n_true(self) -> IntArray:
        """Number of items of every true class, (n_classes)."""
        return np.bincount(np.concatenate([self.truth, self.unvoted]), minlength=len(self.classes))

    @property
    def n_true_by_name(self) -> dict[Hashable, int]:
        """Number of items of every true class, by name."""
        return dict(zip(self.classes, self.n_true.tolist(), strict=True))

    def confusion(self) -> list[tuple[int, int, int]]:
        """Triples (true class, label, count), the largest count first; indices into ``classes``, -1 for no answer."""
        both = np.concatenate([self.truth, self.unvoted]), np.concatenate([self.label, self.unvoted_label])
        pairs, count = np.unique(np.column_stack(both), axis=0, return_counts=True)
        order = np.argsort(-count, kind="stable")
        return [(int(pairs[i, 0]), int(pairs[i, 1]), int(count[i])) for i in order]


def check_truth(
    items: Items,
    names: NDArray[Any],
    truth: Mapping[Any, Any],
    *,
    rare: int,
    posterior: FloatArray,
    unvoted: Mapping[Any, int],
) -> TruthCheck:
    """Compare the result with the truth.

    Args:
        items: the items with votes.
        names: names of the classes, (n_classes).
        truth: the true label by name of the item.
        rare: number of the class that matters.
        posterior: the method's own posterior, (n_tasks, n_classes).
        unvoted: class number of the label of items without votes, -1 for no answer, by name.

    Raises:
        InputError: no item with votes has a true label, or the fit used all of these as gold.
    """
    answers = [truth.get(name) for name in items.names.tolist()]
    has_answer = np.array([answer is not None for answer in answers], dtype=bool)
    if not has_answer.any():
        raise InputError(f"the truth names none of the tasks (which look like {items.names[0]!r}): check the ids")
    numbers = np.flatnonzero(has_answer & ~items.is_known)
    if not numbers.size:
        raise InputError("every task with a true label was also given as gold: nothing is left to check against")
    true_names = [answers[i] for i in numbers]
    majority_names = names[items.majority[numbers]].tolist()
    by_code = [*names.tolist(), _SILENT]  # last, so that index -1 picks it
    label_names = [by_code[code] for code in items.label[numbers].tolist()]
    without = [name for name in unvoted if truth.get(name) is not None]
    missed = [truth[name] for name in without]
    their_names = [by_code[unvoted[name]] for name in without]
    classes = sort_labels({*true_names, *missed, *names.tolist()})
    place = numbered(classes)

    def codes(values: list[Any]) -> IntArray:
        return np.array([place[value] for value in values], dtype=np.int64)

    silence = [_SILENT] * len(missed)
    is_rare = np.array([name == names[rare] for name in true_names], dtype=np.float64)
    return TruthCheck(
        items=numbers,
        n_given=int((has_answer & items.is_known).sum()),
        n_unseen=len(truth) - int(has_answer.sum()) - len(missed),
        classes=classes,
        truth=codes(true_names),
        unvoted=codes(missed),
        unvoted_label=np.array([place.get(name, ABSTAINED) for name in their_names], dtype=np.int64),
        label=np.array([place.get(name, ABSTAINED) for name in label_names], dtype=np.int64),
        majority=codes(majority_names),
        scores=score([*true_names, *missed], [*label_names, *their_names], unanswered=_SILENT),
        majority_scores=score([*true_names, *missed], [*majority_names, *silence], unanswered=_SILENT),
        calibration=calibration_groups(items.probabilities[numbers, rare], is_rare),
        posterior_calibration=calibration_groups(posterior[numbers, rare], is_rare),
    )


def calibration_groups(probability: FloatArray, is_class: FloatArray) -> Calibration:
    """Group items by probability into ten bins and compare each with the observed share.

    >>> found = calibration_groups(np.array([0.02, 0.04, 0.93, 0.97]), np.array([0.0, 0.0, 1.0, 0.0]))
    >>> found.predicted.round(2).tolist(), found.observed.tolist(), found.count.tolist(), round(found.error, 2)
    ([0.03, 0.95], [0.0, 0.5], [2, 2], 0.24)
    """
    group = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    count = np.bincount(group, minlength=_BINS)
    used = count > 0
    count = count[used]
    predicted = np.bincount(group, weights=probability, minlength=_BINS)[used] / count
    observed = np.bincount(group, weights=is_class, minlength=_BINS)[used] / count
    low, high = wilson(observed, count)
    error = float((count * np.abs(predicted - observed)).sum() / count.sum())
    return Calibration(predicted, observed, low, high, count, error)


def wilson(share: FloatArray, count: IntArray) -> tuple[FloatArray, FloatArray]:
    """The 95% score interval of a share, which stays between 0 and 1 and is never of width 0."""
    squared = _NORMAL_95**2
    centre = (share + squared / (2 * count)) / (1 + squared / count)
    half = _NORMAL_95 / (1 + squared / count) * np.sqrt(share * (1 - share) / count + squared / (4 * count**2))
    # At a share of 0 or 1, the end is that value, except for rounding.
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
