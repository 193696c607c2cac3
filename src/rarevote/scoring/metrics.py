"""Metrics of answers when the truth is known, with a focus on the rare class.

Accuracy means little if one class is rare: answering "sound" for every rail is 96% accurate if 4% are
broken. Hence *minority recall*, the share of the least frequent true class that was found, comes first here;
balanced accuracy and macro-F1 give all classes the same weight.

Truth and prediction are paired **by task** if both have task ids (pandas Series with their index, mappings,
results of a fit), and **by position** if neither has (lists, arrays). A mix is refused: the pairs
could only be guessed. Classes are in sorted order (`rarevote.crowd.annotations.sort_labels`), and a
tie for the least frequent class goes to the first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rarevote.crowd.names import numbered, sort_labels
from rarevote.crowd.numerics import IntArray
from rarevote.crowd.words import counted
from rarevote.errors import InputError, MissingValuesError, warn_user
from rarevote.io.tables import Table
from rarevote.scoring.ranking import log_loss_of

#: Labels by position (a sequence, an array) or by task (a mapping, a pandas Series, or ``labels_``).
Labels = Any

_MISSING_TYPES = frozenset({"NoneType", "NAType", "NaTType"})
_ROW_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Scores:
    """All figures of one comparison of answers with the truth.

    Attributes:
        minority_class: the least frequent true class.
        n_items: number of items compared.
        minority_recall: recall of ``minority_class``.
        balanced_accuracy: mean recall over the classes that occur in the truth.
        macro_f1: mean of ``F1_k = 2 TP_k / (2 TP_k + FP_k + FN_k)`` over the classes that occur in the truth or in the
            answers, so a class that was answered but never occurs counts as 0, as in scikit-learn.
        accuracy: share of items answered correctly.
        recall: recall of every class that occurs in the truth.
        precision: precision of every class that was answered; the others have none.
        log_loss: mean of ``-log p`` of the true class, in nats; None without probabilities.
        calibration_error: mean difference between confidence and share of right answers, over bins of confidence;
            likewise.
    """

    minority_class: Hashable
    n_items: int
    minority_recall: float
    balanced_accuracy: float
    macro_f1: float
    accuracy: float
    recall: dict[Hashable, float]
    precision: dict[Hashable, float]
    log_loss: float | None = None
    calibration_error: float | None = None

    def figures(self, rare: str) -> dict[str, Any]:
        """The figures of labels for JSON, those of the class ``rare`` first; classes by their names as text."""
        recall, precision = (
            {str(name): value for name, value in part.items()} for part in (self.recall, self.precision)
        )
        return {
            "n_items": self.n_items,
            "rare_class": rare,
            "rare_recall": recall.get(rare),
            "rare_precision": precision.get(rare),
            "balanced_accuracy": self.balanced_accuracy,
            "macro_f1": self.macro_f1,
            "accuracy": self.accuracy,
            "recall": recall,
            "precision": precision,
        }


def score(truth: Labels, predicted: Labels, *, unanswered: Hashable | None = None) -> Scores:
    """Compute all metrics of this module that need only labels.

    Args:
        truth: true labels, by position or by task.
        predicted: answers, likewise. By task, only tasks with a true label count.
        unanswered: the value in ``predicted`` for no answer. It counts as a miss of the true class, and not as a false
            alarm.

    Returns:
        A frozen record of the figures.

    Raises:
        InputError: the input is empty, a label is missing, or truth and answers cannot be paired: lengths differ, only
            one of them has task ids, or they have no common task.

    Example:
        >>> scores = score(["sound", "sound", "sound", "defect"], ["sound", "defect", "sound", "defect"])
        >>> scores.minority_class, scores.minority_recall, scores.precision["defect"]
        ('defect', 1.0, 0.5)
    """
    return scores_of_tally(_tally(truth, predicted, unanswered))


def scores_of_tally(tally: Tally) -> Scores:
    """The scores from counts."""
    minority = _least_frequent(tally.classes, tally.n_true)
    recall = _ratio_per_class(tally.classes, tally.n_hit, tally.n_true)
    # 2 TP + FP + FN = n_true + n_answered, never zero: every class here occurs on one side or the other.
    f1 = 2 * tally.n_hit / (tally.n_true + tally.n_answered)
    n_items = int(tally.n_true.sum())
    return Scores(
        minority_class=minority,
        n_items=n_items,
        minority_recall=recall[minority],
        balanced_accuracy=float(np.mean(list(recall.values()))),
        macro_f1=float(f1.mean()),
        accuracy=float(tally.n_hit.sum() / n_items),
        recall=recall,
        precision=_ratio_per_class(tally.classes, tally.n_hit, tally.n_answered),
    )


def minority_class(truth: Labels, classes: Iterable[Hashable] | None = None) -> Hashable:
    """Return the least frequent class among those that occur in the truth.

    Args:
        truth: true labels, shape ``(n,)``.
        classes: the order for ties, where the first class wins; by default, sorted order.
            Classes that never occur in the truth are ignored.

    Example:
        >>> minority_class(["b", "a", "c", "c"])
        'a'
        >>> minority_class(["b", "a", "c", "c"], classes=["c", "b", "a", "z"])
        'b'
    """
    labels = _as_list(truth, "truth")
    order = _class_order(classes, labels)
    frequency = Counter(labels)
    return _least_frequent(order, np.array([frequency[name] for name in order], dtype=np.int64))


def confusion_matrix(truth: Labels, predicted: Labels, *, classes: Iterable[Hashable] | None = None) -> IntArray:
    """Count the items of every pair of true class and answer.

    Args:
        truth: true labels, shape ``(n,)``.
        predicted: answers in the same order, shape ``(n,)``.
        classes: the classes of rows and columns; by default, the sorted union of true and answered ones.

    Returns:
        Counts of shape ``(K, K)``; ``[j, k]`` is the number of items of true class ``j`` answered as ``k``.

    Raises:
        InputError: a label is not among ``classes``.

    Example:
        >>> confusion_matrix(["a", "a", "b"], ["a", "b", "b"]).tolist()
        [[1, 1], [0, 1]]
    """
    true_labels, answers = _paired(truth, predicted)
    order = _class_order(classes, true_labels, answers)
    cells = _encode(true_labels, order) * len(order) + _encode(answers, order)
    counts = np.bincount(cells, minlength=len(order) ** 2)
    return counts.reshape(len(order), len(order)).astype(np.int64)


def log_loss(truth: Labels, probabilities: ArrayLike, *, classes: Iterable[Hashable]) -> float:
    """Return the log loss ``-(1/n) sum_i log p_i(truth_i)``, in nats.

    Probabilities below a millionth count as a millionth (:func:`rarevote.scoring.ranking.log_loss_of`), so that one
    certain and wrong answer does not make the mean infinite.

    Args:
        truth: true labels, shape ``(n,)``.
        probabilities: one row of class probabilities per item, shape ``(n, K)``, rows summing to 1.
        classes: the ``K`` classes in the order of the columns.

    Raises:
        InputError: the shapes do not match, a row is not a distribution, or a true label is not among ``classes``.

    Example:
        >>> round(log_loss(["a", "b"], [[0.5, 0.5], [0.75, 0.25]], classes=["a", "b"]), 6)
        1.039721
    """
    order = list(classes)
    by_task = _by_task(probabilities, _rows_of(probabilities, order))
    if by_task is not None:
        truth, found = aligned(truth, by_task)
        probabilities = np.array(found)
    labels = _as_list(truth, "truth")
    order = _class_order(order, labels)
    table = np.asarray(probabilities, dtype=np.float64)
    if table.shape != (len(labels), len(order)):
        raise InputError(f"probabilities have shape {table.shape}, not {len(labels)} items by {len(order)} classes")
    # Written so that NaN, for which every comparison is false, also fails.
    is_distribution = (table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1) <= _ROW_SUM_TOLERANCE)
    if not is_distribution.all():
        row = int(np.argmin(is_distribution))
        raise InputError(f"probabilities of item {row} are not a distribution: {table[row].tolist()}")
    return log_loss_of(table, _encode(labels, order))


def _as_list(values: Labels, name: str) -> list[Hashable]:
    """Return the labels as Python objects, checked for shape, hashability and missing values."""
    if isinstance(values, str | Set):
        raise InputError(f"{name} must be a sequence of labels, one per item, not a {type(values).__name__}")
    # tolist turns NumPy scalars into Python ones, which hash faster and print plainly.
    named = _by_task(values)
    if named is not None:
        values = list(named.values())
    labels = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{name} must have one dimension, but its shape is {values.shape}")
    if not labels:
        raise InputError(f"{name} is empty: there is nothing to score")
    try:
        distinct = set(labels)
    except TypeError:
        raise InputError(f"{name} holds a value that cannot be a label, because it is not hashable") from None
    for label in distinct:
        if type(label).__name__ in _MISSING_TYPES or (isinstance(label, float) and label != label):
            raise MissingValuesError(f"{name} holds a missing label ({label}); leave such items out")
    return labels


def _class_order(classes: Iterable[Hashable] | None, *columns: list[Hashable]) -> list[Hashable]:
    """Return the given classes, or the sorted union of the columns; every label must be among them."""
    occurring = set().union(*columns)
    if classes is None:
        return list(sort_labels(occurring))
    order = list(classes)
    if len(set(order)) != len(order):
        raise InputError("classes names a class twice")
    unknown = occurring.difference(order)
    if unknown:
        raise InputError(f"label {sort_labels(unknown)[0]!r} is not among the classes {order}")
    return order


def _encode(labels: list[Hashable], classes: list[Hashable]) -> IntArray:
    """Return the position of every label in ``classes``."""
    position = numbered(classes)
    return np.fromiter((position[label] for label in labels), dtype=np.int64, count=len(labels))


def _paired(truth: Labels, predicted: Labels) -> tuple[list[Hashable], list[Hashable]]:
    """Return both sides as lists of equal length with comparable labels."""
    truth, predicted = aligned(truth, predicted)
    true_labels, answers = _as_list(truth, "truth"), _as_list(predicted, "predicted")
    if len(true_labels) != len(answers):
        raise InputError(
            f"truth has {len(true_labels)} items and predicted {len(answers)}; give one answer for each item"
        )
    _refuse_text_against_numbers(true_labels, answers)
    return true_labels, answers


def _index_of(values: Any) -> list[Any] | None:
    """The tasks of values, if they have an index; None for values by position."""
    if isinstance(values, Mapping):
        return list(values)
    if isinstance(values, Table):
        return list(next(iter(values.index.values())).tolist())
    index = getattr(values, "index", None)
    return None if index is None or callable(index) else list(index.tolist())  # lists have a method of that name


def _values_of(values: Any) -> list[Any]:
    if isinstance(values, Mapping):
        return list(values.values())
    column = next(iter(values.values.values())) if isinstance(values, Table) else values
    return list(column.tolist())


def _by_task(values: Any, rows: Any = None) -> dict[Any, Any] | None:
    """Labels (or rows, if given) by task; None if there are no task ids."""
    names = _index_of(values)
    if names is None:
        return None
    if rows is None:
        rows = _values_of(values)
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise InputError(f"the index names {twice!r} more than once; one label per task is needed")
    return dict(zip(names, rows, strict=True))


def aligned(truth: Any, predicted: Any) -> tuple[Any, Any]:
    """Both sides in the same order.

    Raises:
        InputError: only one of them has task ids, or they have no common task.
    """
    true, answers = _by_task(truth), _by_task(predicted)
    if true is None and answers is None:
        return truth, predicted
    if true is None or answers is None:
        named, other, what = (truth, predicted, "truth") if answers is None else (predicted, truth, "predicted")
        names = _index_of(named)
        if names == list(range(len(named))) and not isinstance(named, Mapping):  # the default index of pandas
            return (named.tolist(), other) if answers is None else (other, named.tolist())
        raise InputError(
            f"{what} says whose labels they are (by index or task) and the other side does not: give both with an "
            "index, or both as plain lists in the same order"
        )
    if not true or not answers:
        return list(true.values()), list(answers.values())
    common = [task for task in true if task in answers]
    if not common:
        raise InputError(
            f"truth and predicted name no common task ({next(iter(true))!r} there, {next(iter(answers))!r} here): "
            "check ids and their types"
        )
    if len(common) < len(true):
        lacking = next(task for task in true if task not in answers)
        warn_user(
            f"left out: {counted(len(true) - len(common), 'task')} of the truth without an answer (first: {lacking!r})"
        )
    return [true[task] for task in common], [answers[task] for task in common]


def _rows_of(table: Any, classes: list[Hashable]) -> list[Any] | None:
    """The rows of a frame of probabilities, columns in the order of the classes; None for a plain array."""
    if not isinstance(table, Table) and not hasattr(table, "columns"):
        return None
    columns = table.values if isinstance(table, Table) else table
    lacking = [name for name in classes if name not in columns]
    if lacking:
        raise InputError(f"probabilities have no column for the class {lacking[0]!r}")
    return list(np.stack([np.asarray(columns[name]) for name in classes], axis=1))


class Tally(NamedTuple):
    """Counts per class: true items, items with this answer, and items with both."""

    classes: list[Hashable]
    n_true: IntArray
    n_answered: IntArray
    n_hit: IntArray

    @classmethod
    def of_codes(cls, classes: list[Hashable], truth: IntArray, answers: IntArray) -> Tally:
        """Count per class rather than per pair of classes, so that thousands of classes need no square table.

        Args:
            classes: in sorted order; each occurs.
            truth: number of the true class of every item, (n).
            answers: class number of the answer, ``len(classes)`` for no answer, (n).
        """
        counts = (
            np.bincount(codes, minlength=len(classes) + 1)[: len(classes)]
            for codes in (truth, answers, truth[truth == answers])
        )
        return cls(classes, *counts)


def _tally(truth: Labels, predicted: Labels, unanswered: Hashable | None) -> Tally:
    true_labels, answers = _paired(truth, predicted)
    given = answers if unanswered is None else [answer for answer in answers if answer != unanswered]
    classes = _class_order(None, true_labels, given)
    # One number more than there are classes, for no answer; it is not counted.
    position = numbered(classes)
    answer_codes = np.array([position.get(answer, len(classes)) for answer in answers], dtype=np.int64)
    return Tally.of_codes(classes, _encode(true_labels, classes), answer_codes)


def _refuse_text_against_numbers(truth: list[Hashable], predicted: list[Hashable]) -> None:
    """Refuse to compare ``1`` with ``"1"``: no item could match, and all scores would silently be zero."""
    kinds = [{_kind(label) for label in set(labels)} for labels in (truth, predicted)]
    if kinds in ([{"text"}, {"number"}], [{"number"}, {"text"}]):
        raise InputError(
            f"truth holds {'text' if kinds[0] == {'text'} else 'numbers'} and predicted does not "
            f"({truth[0]!r} against {predicted[0]!r}); convert one of them"
        )


def _kind(label: Hashable) -> str:
    if isinstance(label, str):
        return "text"
    return "number" if isinstance(label, Number) else "other"


def _least_frequent(classes: list[Hashable], frequency: IntArray) -> Hashable:
    """Return the first of the least frequent classes among those that occur."""
    occurring = np.flatnonzero(frequency)
    return classes[int(occurring[np.argmin(frequency[occurring])])]


def _ratio_per_class(classes: list[Hashable], part: IntArray, whole: IntArray) -> dict[Hashable, float]:
    """Return ``part / whole`` of every class whose whole is not empty."""
    return {name: int(p) / int(w) for name, p, w in zip(classes, part, whole, strict=True) if w > 0}
