"""PLAT: a vote whose threshold is taken from the histogram of positive shares (Zhang, Wu and Sheng 2015).

When annotators are biased against the rare class, its items get less than half of the votes. They still form a separate
peak in the histogram of "share of positive votes per item"; PLAT puts the threshold into the valley between the
two peaks and extends the positive side a little, instead of using one half.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError
from rarevote.io.tables import Table
from rarevote.methods.base import Estimator, Fit, Request, fitted_result

# Shares this close count as equal: 1/3 and 2/6 must fall into the same bin.
_SAME_SHARE = 1e-5
# A bump lower than this part of the mean bin is noise, not a peak.
_LEAST_BUMP = 0.03
_NONE = -1


class Landmarks(NamedTuple):
    """Bins that explain a threshold; -1 for a missing one."""

    peak1: int
    peak2: int
    valley: int
    cut: int  # t: the last bin below the first threshold
    highest_negative: int  # the last negative bin after the positive side was extended


def find_landmarks(share: FloatArray, count: IntArray) -> Landmarks:
    """Peaks, valley and threshold of a histogram.

    Args:
        share: (m), share of positive votes per bin, ascending.
        count: (m), items per bin.
    """
    f, c = share.tolist(), count.tolist()
    m, n_items = len(c), sum(c)
    peaks, valleys = _extremes(c, int(_LEAST_BUMP * n_items / m))

    low = [j for j in peaks if f[j] < 0.5]
    peak1 = max(low, key=lambda j: (c[j], j)) if low else peaks[0]
    peak2 = max((j for j in peaks if j > peak1), key=lambda j: (c[j], -j), default=_NONE)
    valley = _NONE
    if peak2 != _NONE:
        between = [j for j in valleys if peak1 < j < peak2 and f[j] < 0.5 and c[j] < c[peak1]]
        if between:
            valley = min(between, key=lambda j: (c[j], j))
        else:
            valley = next((j for j in range(m) if f[j] > 0.5), m) - 1

    cut = valley if peak2 != _NONE else peak1
    n_left = sum(c[: cut + 1])
    while m > 2 and n_left < n_items // 2:
        cut += 1
        n_left += c[cut]
    n_positive = n_right = n_items - n_left
    most_positive = (n_left - n_right) * n_right // n_items + n_right
    middle = (f[0] + f[cut]) / 2
    k = cut
    while k >= 0 and f[k] > middle and n_positive + c[k] < most_positive:
        n_positive += c[k]
        k -= 1
    return Landmarks(peak1, peak2, valley, cut, k)


def _extremes(c: list[int], least_bump: int) -> tuple[list[int], list[int]]:
    """Local maxima and minima of the histogram, each at least ``least_bump`` away from the last of the other kind."""
    peaks, valleys = [0], []
    for j in range(1, len(c) - 1):
        rise, next_rise = c[j] - c[j - 1], c[j + 1] - c[j]
        if rise <= 0 <= next_rise and c[peaks[-1]] - c[j] >= least_bump:
            valleys.append(j)
        if rise >= 0 >= next_rise and c[j] - (c[valleys[-1]] if valleys else 0) >= least_bump:
            peaks.append(j)
    return peaks, valleys


class PLAT(Estimator):
    """Positive label frequency threshold: a two-class vote with a threshold learned from the data.

    The positive class is the one with fewer votes; if both have the same number, the last in sorted order (``1`` of 0
    and 1, ``"yes"`` of no and yes). Items are sorted into bins by their share of positive votes, and items above the
    threshold are positive. The threshold starts in the valley between the two highest peaks of the histogram, and is
    then lowered as long as the positive side stays within a bound set by the sizes of both sides. It does not matter
    who voted, but only the last vote of a repeated (task, worker) pair counts, whatever ``keep`` says.

    ``probas_`` follow the decision: the share of positive votes, stretched by two straight lines so that the
    threshold falls on 1/2. They rank items and agree with ``labels_``; they are not calibrated probabilities.

    The method is for two classes. With a single class, every item gets that class; more than two raise an error.

    Example:
        >>> from rarevote.methods.plat import PLAT
        >>> votes = {"a": "nnnnn", "b": "nnnnn", "c": "nnnnn", "d": "nnnny", "e": "nnyyn", "f": "nyyny"}
        >>> task = [name for name in votes for _ in range(5)]
        >>> model = PLAT().fit((task, list(range(5)) * 6, list("".join(votes.values()))))
        >>> model.positive_class_, model.threshold_
        ('y', 0.2)
        >>> "".join(model.labels_.to_dict().values())
        'nnnnyy'
    """

    method_name = "plat"
    has_posterior = False

    def _fit(self, request: Request) -> Fit:
        annotations = request.annotations
        if annotations.n_classes > 2:
            names = ", ".join(map(str, annotations.classes[:5]))
            raise InputError(
                f"PLAT is for two classes, these data have {annotations.n_classes} ({names}"
                f"{', ...' if annotations.n_classes > 5 else ''}): merge classes, or choose another method"
            )
        votes = _last_votes(annotations)
        # Without a second class there is no positive one: every share is 0.
        positive = annotations.n_classes - 1 if annotations.n_classes == 2 else _NONE
        if positive == 1 and votes[:, 0].sum() < votes[:, 1].sum():
            positive = 0
        of_task = votes[:, positive] / votes.sum(axis=1) if positive != _NONE else np.zeros(annotations.n_tasks)
        share, bin_of_task = _bins(of_task)
        count = np.bincount(bin_of_task, minlength=share.size)
        landmarks = find_landmarks(share, count)
        probability = _stretched(share, landmarks.highest_negative)[bin_of_task]
        posterior = np.ones((annotations.n_tasks, annotations.n_classes))
        if positive != _NONE:
            posterior[:, positive] = probability
            posterior[:, 1 - positive] = 1.0 - probability
        return Fit(
            posterior,
            {
                "share": share,
                "count": count,
                "landmarks": np.array(landmarks, dtype=np.int64),
                "positive_class": np.array(positive, dtype=np.int64),
            },
        )

    # -- results -----------------------------------------------------------------------------------------------------

    def _to_calibrate(self) -> FloatArray:
        """The shares of the votes, not those of ``probas_``, which are stretched to the threshold."""
        votes = _last_votes(self.annotations_)
        return np.asarray(votes / votes.sum(axis=1, keepdims=True))

    def _landmark(self, name: str) -> float | None:
        """Share of positive votes at a landmark, or None."""
        if not self.annotations_.n_annotations:
            return None
        place = getattr(Landmarks(*self._parameter("landmarks").tolist()), name)
        return None if place == _NONE else float(self._parameter("share")[place])

    @property
    def positive_class_(self) -> Any:
        """The class with fewer votes; None if there is only one."""
        crowd = self.annotations_
        if not crowd.n_annotations or int(self._parameter("positive_class")) == _NONE:
            return None
        return crowd.classes.tolist()[int(self._parameter("positive_class"))]

    @property
    def threshold_(self) -> float | None:
        """Items with a larger share of positive votes are positive; None without annotations."""
        return self._landmark("highest_negative")

    @property
    def first_threshold_(self) -> float | None:
        """The threshold before the positive side was extended."""
        return self._landmark("cut")

    @property
    def peak1_(self) -> float | None:
        """Share at the peak of the negative items."""
        return self._landmark("peak1")

    @property
    def peak2_(self) -> float | None:
        """Share at the peak of the positive items; None if the histogram has a single peak."""
        return self._landmark("peak2")

    @property
    def valley_(self) -> float | None:
        """Share at the valley between the peaks; None if the histogram has a single peak."""
        return self._landmark("valley")

    @fitted_result
    def histogram_(self) -> Any:
        """Items per share of positive votes: ``count``, and whether they are ``positive``."""
        if self.annotations_.n_annotations:
            share, count = self._parameter("share"), self._parameter("count")
            highest_negative = Landmarks(*self._parameter("landmarks").tolist()).highest_negative
        else:
            share, count, highest_negative = np.empty(0), np.empty(0, dtype=np.int64), 0
        positive = np.arange(share.size) > highest_negative
        return self._fitted.source.deliver(Table({"share": share}, {"count": count, "positive": positive}))


def _last_votes(annotations: Annotations) -> FloatArray:
    """Votes per task and class, (n_tasks, K), with only the last vote of each (task, worker) pair."""
    pair = annotations.task_of_annotation() * annotations.n_workers + annotations.worker
    distinct, from_the_end = np.unique(pair[::-1], return_index=True)
    if distinct.size == pair.size:
        return annotations.votes()
    counts = np.zeros(pair.size)
    counts[pair.size - 1 - from_the_end] = 1.0
    return annotations.votes(counts)


def _bins(of_task: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct shares in ascending order, and the bin of every task."""
    distinct, place = np.unique(of_task, return_inverse=True)
    bin_of_distinct = np.empty(distinct.size, dtype=np.int64)
    shares: list[float] = []
    for position, share in enumerate(distinct.tolist()):
        if not shares or share - shares[-1] > _SAME_SHARE:
            shares.append(share)
        bin_of_distinct[position] = len(shares) - 1
    return np.array(shares), bin_of_distinct[place]


def _stretched(share: FloatArray, highest_negative: int) -> FloatArray:
    """Shares mapped so that the middle between the highest negative and the lowest positive one falls on 1/2."""
    if highest_negative == share.size - 1:
        return np.asarray(share / 3.0)  # nothing is positive: any factor below a half keeps it so
    middle = (share[highest_negative] + share[highest_negative + 1]) / 2
    above = 0.5 + 0.5 * (share - middle) / (1.0 - middle)
    return np.asarray(np.where(share < middle, 0.5 * share / middle, above))
