"""The measures of the study: their names and directions, the score of a fit against the truth, intervals.

Means have intervals by Student's t, shares by Wilson's score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import sort_labels
from rarevote.decide.balanced import Balanced
from rarevote.decide.rules import ItemBatch
from rarevote.methods.base import Estimator
from rarevote.scoring import ranking
from rarevote.scoring.metrics import score
from rarevote.study.libraries import library


class Measure(NamedTuple):
    """A measure of a method on a dataset.

    Attributes:
        title: its heading.
        better: 1 if larger is better, -1 if smaller is, 0 if neither.
    """

    title: str
    better: int = 1

    @property
    def heading(self) -> str:
        """The title with an arrow that says which way is better."""
        return self.title + {1: " ↑", -1: " ↓", 0: ""}[self.better]


#: measures of the decision: the method's own labels
DECISION = {
    "minority_recall": Measure("Recall"),
    "minority_precision": Measure("Precision"),
    "balanced_accuracy": Measure("Bal.-Acc."),
    "macro_f1": Measure("F1"),
    "flags_per_item": Measure("Flags per true item", 0),
}
#: measures of the ranking: the probabilities alone, whatever the labels are
RANKING = {
    "average_precision": Measure("AP"),
    "mean_average_precision": Measure("mAP"),
    "roc_auc": Measure("ROC-AUC"),
    "recall_at_ds": Measure("Recall @DS"),
    "r_precision": Measure("R-precision"),
    "flags_90_per_item": Measure("Flags for 90%", -1),
    "flags_95_per_item": Measure("Flags for 95%", -1),
}
#: measures of calibration
CALIBRATION = {
    "log_loss": Measure("Log loss", -1),
    "ece": Measure("ECE", -1),
}
MEASURES = DECISION | RANKING | CALIBRATION

#: how to read the headings
MEASURE_NOTES = (
    "The rarest true class of each dataset against the others, on items with truth. AP: average precision, the area "
    "under precision against recall. mAP: its mean over all classes. Recall @DS: share of the class among as many of "
    "the highest-ranked items as Dawid–Skene labels with it. R-precision: among as many as truly have it. Flags for "
    "90%: how many of the highest-ranked items must be looked at to find so much of the class, per item that has it.",
    "Log loss counts probabilities below 0.000001 as that. ECE: expected calibration error of the likeliest class, ten "
    "bins. Anchored Rasch is judged by the probabilities that it reports, all others by their posterior.",
)


#: figures of a decision
SCORES = ("minority_recall", "minority_precision", "balanced_accuracy", "macro_f1", "accuracy")
#: figures of probabilities
RANKS = (
    *("average_precision", "mean_average_precision", "roc_auc", "log_loss", "ece"),
    *("r_precision", "flags_90", "flags_95"),
)


def score_fit(fitted: Estimator, truth: Mapping[Any, Any]) -> dict[str, Any]:
    """All figures of a fit that a cell stores, on the tasks with truth.

    A true class without votes counts: its probability is 0, and its items count as missed. If no item
    got the rarest class, its precision counts as 0.

    Returns:
        The :data:`SCORES` of the method's own labels; ``balanced``, the same scores for the balanced rule on its
        probabilities; the :data:`RANKS`; ``minority_items``, the number of items of the rarest true class; ``flagged``,
        the number of items labelled so; and ``curve``, the corners of found against flagged items of that class.
    """
    crowd = fitted.annotations_
    names = crowd.classes.tolist()
    probabilities = np.asarray(fitted.published, dtype=np.float64)
    even = _balanced(probabilities, crowd)
    place = {task: number for number, task in enumerate(crowd.tasks.tolist())}
    items = [place[task] for task in truth if task in place]
    true = [label for task, label in truth.items() if task in place]
    own = _decided(true, [names[code] for code in fitted.label_codes()[items]])

    classes = [*names, *sort_labels(set(true).difference(names))]
    number = {name: code for code, name in enumerate(classes)}
    codes = np.array([number[label] for label in true])
    p = np.zeros((len(items), len(classes)))
    p[:, : len(names)] = probabilities[items]
    rare = number[own.pop("minority_class")]
    curve = ranking.flag_curve(p[:, rare], codes == rare)
    needed = ranking.flags_needed(p[:, rare], codes == rare, (0.9, 0.95))
    balanced = _decided(true, [names[code] for code in even[items]])
    return {
        **own,
        "balanced": {name: balanced[name] for name in (*SCORES, "flagged")},
        "minority_items": curve.total,
        "average_precision": ranking.average_precision(p[:, rare], codes == rare),
        "mean_average_precision": ranking.mean_average_precision(p, codes),
        "roc_auc": _or_none(ranking.roc_auc(p[:, rare], codes == rare)),
        "log_loss": ranking.log_loss_of(p, codes),
        "ece": ranking.calibration_error(p.max(axis=1), p.argmax(axis=1) == codes),
        "r_precision": float(curve.recall_at(curve.total)),
        "flags_90": needed[0],
        "flags_95": needed[1],
        "curve": [curve.flagged.tolist(), curve.found.tolist()],
    }


def _balanced(probabilities: NDArray[np.float64], crowd: Annotations) -> NDArray[np.int64]:
    """Class numbers by the balanced rule on the method's own probabilities, among the classes voted for."""
    votes, none = crowd.votes(), np.full(crowd.n_tasks, -1)
    part = ItemBatch(probabilities, votes, none, none, probabilities)
    return Balanced().choose(part, probabilities.mean(axis=0), votes > 0)


def _decided(true: list[Any], labels: list[Any]) -> dict[str, Any]:
    found = score(true, labels)
    rare = found.minority_class
    return {
        "minority_class": rare,
        "minority_recall": found.minority_recall,
        "minority_precision": found.precision.get(rare, 0.0),
        "balanced_accuracy": found.balanced_accuracy,
        "macro_f1": found.macro_f1,
        "accuracy": found.accuracy,
        "flagged": labels.count(rare),
    }


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else value


CONFIDENCE = 0.95


class MeanInterval(NamedTuple):
    """A mean with the limits of its confidence interval."""

    mean: float
    low: float
    high: float


def mean_interval(values: Sequence[float]) -> MeanInterval:
    """The mean with its t interval, ``mean ± t_{n-1} s / sqrt(n)``.

    Values that are not a number (a score that could not be computed) are left out. A single value has no spread: its
    interval is the value itself, which is right only for a deterministic method on fixed data.

    Example:
        >>> [round(value, 4) for value in mean_interval([0.0, 1.0, 2.0])]
        [1.0, -1.4841, 3.4841]
    """
    sample = np.asarray(values, dtype=np.float64)
    sample = sample[~np.isnan(sample)]
    if not sample.size:
        return MeanInterval(nan, nan, nan)
    mean = float(sample.mean())
    if sample.size == 1:
        return MeanInterval(mean, mean, mean)
    stats = library("scipy.stats")
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, sample.size - 1) * stats.sem(sample))
    return MeanInterval(mean, mean - half, mean + half)


def share_interval(hits: int, total: int) -> MeanInterval:
    """A share ``hits / total`` with Wilson's 95% score interval, which also works at 0 and at 1."""
    interval = library("scipy.stats").binomtest(hits, total).proportion_ci(CONFIDENCE, method="wilson")
    return MeanInterval(hits / total, float(interval.low), float(interval.high))
