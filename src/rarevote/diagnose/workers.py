"""The annotators: votes, accuracy per class with its interval, and profile.

The accuracy of annotator ``r`` on class ``k`` is the share of class ``k`` that they recognise, on typical items.
The classes of the items are not certain, so each vote is weighted by the probability of the class
(:mod:`rarevote.decide.probabilities`)::

    a_rk ~ Beta(hits_rk + s m_k, misses_rk + s (1 - m_k)),    s = 4

with the expected hits and misses, and ``m_k`` the share that all annotators together recognise: as if each had
answered four more items like the average annotator, so that none is perfect after one vote. The probabilities are
tempered, which draws recalls of a rare class towards the average: on the shipped rail example 25 of 40 intervals cover
the recall of defects that the truth shows (33 of 40 with Dawid–Skene's probabilities).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import object_array
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.words import quoted
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.agreement import agreement_figures

if TYPE_CHECKING:
    from rarevote.diagnose.diagnosis import Diagnosis


_MADE_UP_VOTES = 4.0
_MAX_DRAWS, _MIN_DRAWS = 200, 40
_MAX_VALUES = 40_000_000  # size of all draws together, to bound memory for a large crowd
_TAILS = (0.025, 0.975)


class Profile(IntEnum):
    """Which of the majority and the minority class an annotator recognises more often than by chance."""

    NEITHER = 0
    MAJORITY_ONLY = 1
    MINORITY_ONLY = 2
    BOTH = 3


PROFILE_WORDS: dict[Profile, str] = {
    Profile.BOTH: "both classes",
    Profile.MAJORITY_ONLY: "majority class only",
    Profile.MINORITY_ONLY: "rare class only",
    Profile.NEITHER: "neither",
}


def profile_meanings(rare: Any, common: Any) -> dict[Profile, str]:
    """The meaning of each profile for these two classes: only what the intervals support."""
    return {
        Profile.BOTH: "clearly better than chance on both",
        Profile.MAJORITY_ONLY: f"on {quoted(str(rare))}, chance is not ruled out",
        Profile.MINORITY_ONLY: f"on {quoted(str(common))}, chance is not ruled out",
        Profile.NEITHER: "chance is not ruled out: few votes, or many errors",
    }


def chance_words(n_classes: int) -> str:
    """How often a guess is right."""
    return f"chance is 1 in {n_classes:,}"


@dataclass(frozen=True, eq=False)
class Workers:
    """All annotators; arrays by worker, or by worker and class, in the order of the crowd.

    Attributes:
        names: as given.
        n_votes: number of votes of each.
        n_abstentions: number of answers that were not votes.
        agreement: share of a worker's votes that equal the label of their item, among items that have one.
        seen: expected number of a worker's votes on items of each class, ``sum_i P(class of i is k)``.
        accuracy: probability of recognising a class.
        low: lower end of the 95% interval of the accuracy.
        high: upper end of the interval.
        profile: the :class:`Profile` of each.
    """

    names: NDArray[np.object_]
    n_votes: IntArray
    n_abstentions: IntArray
    agreement: FloatArray
    seen: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    profile: IntArray

    @property
    def ability(self) -> FloatArray:
        """The accuracy on the logit scale: ``log(a / (1 - a))``."""
        return logit(self.accuracy)

    @property
    def typical_accuracy(self) -> FloatArray:
        """Accuracy of the average vote on each class, (n_classes)."""
        return np.asarray((self.seen * self.accuracy).sum(axis=0) / np.maximum(self.seen.sum(axis=0), 1e-12))

    def count(self, profile: Profile) -> int:
        """Number of annotators with this profile."""
        return int((self.profile == profile).sum())


def describe_workers(crowd: Annotations, labels: IntArray, p: FloatArray, *, rare: int, common: int) -> Workers:
    """Describe the annotators of a crowd.

    Args:
        labels: class number of each task's label, or -1, (n_tasks).
        p: probability of every class, (n_tasks, n_classes).
    """
    worker = crowd.worker.astype(np.int64)
    n_votes = np.bincount(worker, minlength=crowd.n_workers)
    label_of_task = labels[crowd.task_of_annotation()]
    n_compared = np.bincount(worker, weights=label_of_task != ABSTAINED, minlength=crowd.n_workers)
    n_equal = np.bincount(worker, weights=crowd.label == label_of_task, minlength=crowd.n_workers)
    accuracy, low, high = recognition(crowd, p)
    return Workers(
        names=crowd.workers,
        n_votes=n_votes,
        n_abstentions=np.array([crowd.abstentions.get(name, 0) for name in crowd.workers.tolist()], dtype=np.int64),
        agreement=n_equal / np.maximum(n_compared, 1),
        seen=_weighed(crowd, p)[1],
        accuracy=accuracy,
        low=low,
        high=high,
        profile=profiles(low, rare=rare, common=common),
    )


def profiles(low: FloatArray, *, rare: int, common: int) -> IntArray:
    """The :class:`Profile` of every worker: a class is recognised if the whole interval is above chance, 1 / K.

    Args:
        low: lower ends of the intervals, (n_workers, K).
    """
    above = low > 1 / low.shape[1]
    return np.asarray(above[:, common] * int(Profile.MAJORITY_ONLY) + above[:, rare] * int(Profile.MINORITY_ONLY))


def logit(shares: FloatArray) -> FloatArray:
    """``log(shares / (1 - shares))``, with shares kept a thousandth away from 0 and 1."""
    inside = np.clip(shares, 0.001, 0.999)
    return np.asarray(np.log(inside / (1 - inside)))


def recognition(crowd: Annotations, p: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Accuracy of every worker per class with its interval: mean, lower and upper end, (n_workers, n_classes) each.

    The class probabilities weight a worker's votes; the intervals cover only the sampling error of the votes.
    """
    rng = np.random.default_rng(0)
    size = crowd.n_workers * crowd.n_classes
    n_draws = int(np.clip(_MAX_VALUES // max(size, 1), _MIN_DRAWS, _MAX_DRAWS))
    right, wrong = _right_and_wrong(crowd, p)
    mean = right / (right + wrong)
    sampled = np.empty((n_draws, *mean.shape), dtype=np.float32)
    for number in range(n_draws):
        sampled[number] = rng.beta(right, wrong)
    low, high = np.quantile(sampled, _TAILS, axis=0, overwrite_input=True)
    # A mean can lie outside the central interval of a very skewed distribution, which would look wrong in a chart.
    return mean, np.minimum(low, mean), np.maximum(high, mean)


def mean_recognition(crowd: Annotations, p: FloatArray) -> FloatArray:
    """Only the means of :func:`recognition`, without the draws for its intervals, (n_workers, n_classes)."""
    right, wrong = _right_and_wrong(crowd, p)
    return right / (right + wrong)


def _right_and_wrong(crowd: Annotations, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Per worker and class: expected hits and misses, with a few votes of the average annotator added to both."""
    hits, seen = _weighed(crowd, p)
    average = (hits.sum(axis=0) + 1) / (seen.sum(axis=0) + 2)
    return hits + _MADE_UP_VOTES * average, np.maximum(seen - hits, 0.0) + _MADE_UP_VOTES * (1 - average)


def _weighed(crowd: Annotations, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Per worker and class: expected hits, and expected votes on items of that class."""
    size = np.diff(crowd.task_ptr)
    shape = (crowd.n_workers, crowd.n_classes)
    hits, seen = np.zeros(shape), np.zeros(shape)
    for k in range(crowd.n_classes):  # one class at a time: no array of annotations by classes
        weight = np.repeat(probabilities[:, k], size)
        own = np.flatnonzero(crowd.label == k)
        seen[:, k] = np.bincount(crowd.worker, weights=weight, minlength=crowd.n_workers)
        hits[:, k] = np.bincount(crowd.worker[own], weights=weight[own], minlength=crowd.n_workers)
    return hits, seen


# Up to this many classes, each has its columns in the file; with more, only the rare and the most frequent one.
_MAX_CLASSES = 50


def annotator_order(found: Diagnosis, sort: str) -> NDArray[Any]:
    """Numbers of the annotators in the requested order; ties go to the one with more votes."""
    workers = found.workers
    busy = -workers.n_votes
    if sort == "name":
        return np.arange(len(workers.names))
    if sort == "votes":
        return np.argsort(busy, kind="stable")
    # The lower end of the interval, so that one lucky vote does not lead a list.
    key = -workers.low[:, found.rare] if sort == "rare" else -workers.agreement
    return np.lexsort((busy, key))


def told_classes(found: Diagnosis, most: int) -> list[int]:
    """Numbers of the classes to show, the rare one first."""
    names = range(len(found.classes.names))
    if len(names) > most:
        return list(dict.fromkeys((found.rare, found.common)))
    return sorted(names, key=lambda k: k != found.rare)


def lean_words(lean: float) -> str:
    """How many grades high or low an annotator rates, as text.

    >>> lean_words(0.62), lean_words(-1.0), lean_words(0.04)
    ('0.6 grades high', '1.0 grades low', 'as the crowd')
    """
    if abs(lean) < 0.05:
        return "as the crowd"
    return f"{abs(lean):.1f} grades {'high' if lean > 0 else 'low'}"


def annotator_rows(found: Diagnosis, order: NDArray[Any]) -> dict[str, Any]:
    """One row per annotator, in this order: votes, agreement, profile, and the recall of each class with interval."""
    workers, names = found.workers, found.classes.names
    profile = object_array([PROFILE_WORDS[Profile(code)] for code in workers.profile[order].tolist()])
    columns: dict[str, Any] = {
        "worker": workers.names[order],
        "votes": workers.n_votes[order],
        "abstained": workers.n_abstentions[order],
        "agreement": workers.agreement[order],
        "profile": profile,
    }
    if found.leans is not None:
        columns["lean"] = found.leans[order]
    for k in told_classes(found, _MAX_CLASSES):
        columns[f"recall:{names[k]}"] = workers.accuracy[order, k]
        columns[f"recall_low:{names[k]}"] = workers.low[order, k]
        columns[f"recall_high:{names[k]}"] = workers.high[order, k]
        columns[f"seen:{names[k]}"] = workers.seen[order, k]
    return columns


def recall_names(classes: Sequence[Any]) -> list[str]:
    """The columns ``recall:<class>`` of :func:`annotator_rows`; none if only some classes will have columns."""
    return [f"recall:{name}" for name in classes] if len(classes) <= _MAX_CLASSES else []


def annotator_figures(found: Diagnosis, method: str, columns: dict[str, Any]) -> dict[str, Any]:
    """Figures of the annotators, profiles and the jury condition."""
    jury, names = found.classes.jury, found.classes.names
    lists = {name: values.tolist() for name, values in columns.items()}
    return {
        "rare_class": found.rare_name,
        "common_class": str(names[found.common]),
        "method": method,
        "n_annotators": len(found.workers.names),
        "profiles": {words: found.workers.count(profile) for profile, words in PROFILE_WORDS.items()},
        "jury": {
            str(name): {
                "holds": bool(jury.holds[k]),
                "left_side": float(jury.left_side[k]),
                "mean_recall": float(jury.mean_margin[k] + 0.5),
                "n_specialists": int(jury.n_good[k]),
                # JSON has no infinity, which is the value if no annotator is above one half.
                "missing_specialists": int(missing) if isfinite(missing := jury.missing_specialists[k]) else None,
            }
            for k, name in enumerate(names.tolist())
        },
        "agreement": agreement_figures(found.agreement),
        **({} if found.on_grades is None else {"agreement_on_grades": found.on_grades.figures()}),
        "errors_alike": found.alike.figures(),
        "annotators": [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)],
    }
