"""Does a fitted model explain the votes? Its predictions compared with the votes, without any truth.

All votes are drawn again from the model (:mod:`rarevote.methods.vote_model`), 200 times with a fixed seed, and the
same figures are computed as for the real votes: how many items are unanimous, how large the share of the leading
label is, how often two votes on an item agree, how often each class is voted for and, if one annotator votes for it,
how many of the others do. A figure is *off* if it lies outside the range of 99% of the replicates, for all figures
together (Bonferroni), and the difference is large enough to matter: with a million votes, every difference is
significant, and few are relevant.

Pairs of annotators who agree more than the model expects of independent annotators with their skills are also reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import plain_name
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.steps import steps
from rarevote.crowd.words import capital, percent
from rarevote.methods.base import Estimator
from rarevote.methods.vote_model import SomeVotes

#: how often the votes are drawn again
N_REPLICATES = 200
_OUTSIDE = 0.01
# Differences that matter: this much in a share of all votes ...
_RELEVANT = 0.05
# ... in the share of unanimous items, which varies most, and
_RELEVANT_UNANIMOUS = 0.1
# ... in how many others agree with a vote for a class, which rests on fewer votes ...
_RELEVANT_JOINED = 0.1
# ... or, if a class is rare, this fraction of its share.
_RELEVANT_PART, _MIN_VOTES_OF_CLASS = 0.25, 20
# Pairs of annotators: common items, how much more often they agree than predicted, and how many are compared.
_MIN_COMMON = 20
_RELEVANT_PAIR = 0.1
_MAX_PAIRS = 2_000
_MAX_MEETINGS = 500_000


@dataclass(frozen=True)
class Statistic:
    """A figure of the votes compared with the model's prediction.

    Attributes:
        name: "unanimous", "top_share", "agreement", "share" or "joined".
        label: its class; None for all classes.
        observed: the value in the votes.
        predicted: mean of the replicates.
        low: lower end of the range of the replicates.
        high: upper end of the range.
        is_off: whether the votes lie outside, by enough to matter.
    """

    name: str
    label: Any
    observed: float
    predicted: float
    low: float
    high: float
    is_off: bool

    @property
    def description(self) -> str:
        """The figure as a sentence."""
        fine = self.name == "share"
        seen = percent(self.observed, fine=fine)
        said = {
            "unanimous": f"votes are unanimous on {seen} of the items with several",
            "top_share": f"the leading label has {seen} of the votes on an item",
            "agreement": f"two votes on an item agree in {seen} of the cases",
            "share": f"{seen} of the votes are for {self.label}",
            "joined": f"where one votes {self.label}, {seen} of the others on the item do so too",
        }
        return f"{said[self.name]}; the model predicts {percent(self.predicted, fine=fine)}"


@dataclass(frozen=True)
class CloseAgreement:
    """Two annotators who agree more than the model expects.

    Attributes:
        first: name of one annotator.
        second: name of the other.
        n_common: number of compared items that both voted on.
        observed: share of them on which they agree.
        predicted: the share that the model expects.
    """

    first: Any
    second: Any
    n_common: int
    observed: float
    predicted: float

    @property
    def description(self) -> str:
        """The pair as a sentence."""
        return (
            f"{self.first} and {self.second} say the same on {percent(self.observed)} of {self.n_common:,} common "
            f"items; the model expects {percent(self.predicted)}"
        )


@dataclass(frozen=True)
class ModelFit:
    """The predictions of a model compared with the votes.

    Attributes:
        statistics: all figures.
        pairs: pairs of annotators who agree more than the model expects, the most striking first.
        share_in_pairs: the share of votes by annotators in ``pairs``.
        n_pairs: number of pairs that were compared.
        n_tasks: number of items that were used.
        n_replicates: how often the votes were drawn again.
    """

    statistics: tuple[Statistic, ...]
    pairs: tuple[CloseAgreement, ...]
    share_in_pairs: float
    n_pairs: int
    n_tasks: int
    n_replicates: int

    @property
    def off(self) -> tuple[Statistic, ...]:
        """The figures that the model does not explain, the largest difference first."""
        found = (one for one in self.statistics if one.is_off)
        return tuple(sorted(found, key=lambda one: -abs(one.observed - one.predicted)))

    def figures(self) -> dict[str, Any]:
        """The comparison as plain values for JSON."""
        return {
            "n_replicates": self.n_replicates,
            "n_tasks": self.n_tasks,
            "statistics": [
                {
                    "name": one.name,
                    "class": None if one.label is None else str(one.label),
                    "observed": one.observed,
                    "predicted": one.predicted,
                    "interval": [one.low, one.high],
                    "is_off": one.is_off,
                }
                for one in self.statistics
            ],
            "n_pairs": self.n_pairs,
            "share_in_pairs": self.share_in_pairs,
            "pairs": [
                {
                    "annotators": [str(pair.first), str(pair.second)],
                    "n_common": pair.n_common,
                    "observed": pair.observed,
                    "predicted": pair.predicted,
                }
                for pair in self.pairs
            ],
        }


def model_fit(estimator: Estimator, *, n_replicates: int = N_REPLICATES) -> ModelFit | None:
    """Compare the predictions of a fitted model with the votes.

    Args:
        estimator: the fitted method.
        n_replicates: how often the votes are drawn again.

    Returns:
        None for a method without probabilities of votes.

    Example:
        >>> from rarevote import DawidSkene
        >>> task, worker = [i for i in range(40) for _ in range(3)], ["ann", "bob", "cy"] * 40
        >>> label = ["sound"] * 60 + ["defect", "defect", "sound"] * 20
        >>> found = model_fit(DawidSkene().fit((task, worker, label)))
        >>> found.statistics[0].observed, found.off
        (0.5, ())
    """
    crowd = estimator.annotations_
    votes = SomeVotes.of(crowd)
    if not estimator.capabilities.replicate or not len(votes.task):
        return None
    model = estimator.vote_model(votes)
    meetings = _Meetings.of(votes, crowd)
    drawn = np.empty((n_replicates, 3 + 2 * crowd.n_classes))
    of_pairs = np.zeros((2, len(meetings.first)))
    rng = np.random.default_rng(0)
    for number in steps("simulating votes from the model", range(n_replicates)):
        label = model.draw(rng)
        drawn[number] = statistics_of(votes, label)
        agree = meetings.agreement(label)
        of_pairs += agree, agree**2
    found = _judged(statistics_of(votes, votes.label), drawn, votes, crowd)
    mean, square = of_pairs / n_replicates
    pairs, share = meetings.close(mean, np.sqrt(np.maximum(square - mean**2, 0.0)), crowd)
    return ModelFit(found, pairs, share, len(meetings.first), len(votes.tasks), n_replicates)


def statistics_of(votes: SomeVotes, label: IntArray) -> FloatArray:
    """The figures if the votes are ``label``, (3 + 2 K); NaN if undefined.

    Unanimous items, share of the leading label, agreement of two votes, shares of the classes in the votes, and the
    share of other votes that agree with a vote for each class.
    """
    counts = votes.counts(label)
    size = votes.size
    several = size > 1
    n_several = several.sum()
    top = counts.max(axis=1)
    of_class = counts.sum(axis=0).astype(np.float64)
    # Whole numbers: sums do not depend on the order.
    joined = (counts * (counts - 1)).sum(axis=0).astype(np.float64)
    asked = (counts * (size - 1)[:, None]).sum(axis=0).astype(np.float64)
    out = np.full(3 + 2 * votes.n_classes, np.nan)
    if n_several:
        out[0] = (top[several] == size[several]).sum() / n_several
        out[1] = (top[several] / size[several]).mean()
        out[2] = joined.sum() / asked.sum()
    K = votes.n_classes
    out[3 : 3 + K] = of_class / len(label)
    np.divide(joined, asked, out=out[3 + K :], where=asked > 0)
    return out


def _judged(observed: FloatArray, drawn: FloatArray, votes: SomeVotes, crowd: Annotations) -> tuple[Statistic, ...]:
    K = crowd.n_classes
    of_class = np.bincount(votes.label, minlength=K)
    told = np.concatenate([np.ones(3, dtype=bool), np.tile(of_class >= _MIN_VOTES_OF_CLASS, 2)])
    told &= np.isfinite(observed) & np.isfinite(drawn).any(axis=0)
    if K == 2:
        told[4] &= not told[3]  # with two classes, one is the rest of the other
    places = np.flatnonzero(told)
    if not len(places):
        return ()
    far = NormalDist().inv_cdf(1.0 - _OUTSIDE / 2 / len(places))
    values = drawn[:, places]
    mean, deviation = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    # With few votes, the replicates are not normally distributed: the ends must not lie inside their range.
    low = np.minimum(mean - far * deviation, np.nanquantile(values, _OUTSIDE / 2, axis=0))
    high = np.maximum(mean + far * deviation, np.nanquantile(values, 1.0 - _OUTSIDE / 2, axis=0))
    found = []
    for place, predicted, lower, upper in zip(places.tolist(), mean, low, high, strict=True):
        name = ("unanimous", "top_share", "agreement")[place] if place < 3 else "share" if place < 3 + K else "joined"
        label = None if place < 3 else crowd.classes[(place - 3) % K]
        seen = float(observed[place])
        outside = seen < lower - 1e-12 or seen > upper + 1e-12
        off = bool(outside and _matters(name, seen, float(predicted)))
        found.append(Statistic(name, label, seen, float(predicted), float(lower), float(upper), off))
    return tuple(found)


def _matters(name: str, observed: float, predicted: float) -> bool:
    difference = abs(observed - predicted)
    if name == "share" and difference >= _RELEVANT_PART * max(observed, predicted):
        return True
    return difference >= {"joined": _RELEVANT_JOINED, "unanimous": _RELEVANT_UNANIMOUS}.get(name, _RELEVANT)


@dataclass(frozen=True, eq=False)
class _Meetings:
    """Pairs of votes on a task by two workers who have enough of them.

    Attributes:
        votes: the votes.
        one: number of one vote, (x).
        other: number of the other vote, (x).
        pair: pair of workers of each pair of votes, (x).
        first: worker of each pair, (p).
        second: the other worker, (p).
        common: number of common tasks of each pair, (p).
    """

    votes: SomeVotes
    one: IntArray
    other: IntArray
    pair: IntArray
    first: IntArray
    second: IntArray
    common: IntArray

    @classmethod
    def of(cls, votes: SomeVotes, crowd: Annotations) -> _Meetings:
        """All pairs, or those on random tasks if there are too many."""
        size = votes.size
        n_met = size * (size - 1) // 2
        wanted = np.ones(len(size), dtype=bool)
        if n_met.sum() > _MAX_MEETINGS:
            drawn = np.random.default_rng(0).permutation(len(size))
            wanted[drawn[np.cumsum(n_met[drawn]) > _MAX_MEETINGS]] = False
        end = np.cumsum(size)
        last = end[votes.task]
        rows = np.flatnonzero(wanted[votes.task])
        parts = []
        for apart in range(1, int(size[wanted].max(initial=0))):
            rows = rows[rows + apart < last[rows]]
            parts.append(np.stack([rows, rows + apart]))
        one, other = np.concatenate(parts, axis=1) if parts else np.empty((2, 0), dtype=np.int64)
        a, b = votes.worker[one], votes.worker[other]
        key = np.minimum(a, b) * crowd.n_workers + np.maximum(a, b)
        kept = np.flatnonzero(a != b)
        names, pair, common = np.unique(key[kept], return_inverse=True, return_counts=True)
        busy = np.argsort(-common, kind="stable")[:_MAX_PAIRS]
        busy = busy[common[busy] >= _MIN_COMMON]
        place = np.full(len(names), -1)
        place[busy] = np.arange(len(busy))
        pair = place[pair]
        kept, pair = kept[pair >= 0], pair[pair >= 0]
        first, second = np.divmod(names[busy], max(crowd.n_workers, 1))
        return cls(votes, one[kept], other[kept], pair, first, second, common[busy])

    def agreement(self, label: IntArray) -> FloatArray:
        """Share of the common tasks on which each pair agrees, (p), if the votes are ``label``."""
        equal = label[self.one] == label[self.other]
        return np.asarray(np.bincount(self.pair[equal], minlength=len(self.first)) / np.maximum(self.common, 1))

    def close(
        self, mean: FloatArray, deviation: FloatArray, crowd: Annotations
    ) -> tuple[tuple[CloseAgreement, ...], float]:
        """Pairs that agree more than the replicates, beyond chance and enough to matter; the share of their votes."""
        if not len(self.first):
            return (), 0.0
        observed = self.agreement(self.votes.label)
        far = NormalDist().inv_cdf(1.0 - _OUTSIDE / 2 / len(self.first))
        # If no replicate differs, a single additional vote must not count as significant.
        error = np.maximum(deviation, 1.0 / self.common)
        excess = observed - mean
        found = np.flatnonzero((excess >= _RELEVANT_PAIR) & (excess > far * error))
        found = found[np.argsort(-excess[found] / error[found], kind="stable")]
        pairs = tuple(
            CloseAgreement(
                plain_name(crowd.workers[self.first[p]]),
                plain_name(crowd.workers[self.second[p]]),
                int(self.common[p]),
                float(observed[p]),
                float(mean[p]),
            )
            for p in found.tolist()
        )
        theirs = np.isin(self.votes.worker, np.concatenate([self.first[found], self.second[found]]))
        return pairs, float(theirs.mean())


def fit_sentences(found: ModelFit, method: str) -> list[str]:
    """Sentences on the results: which figures are off, or that none is, with familiar figures."""
    if found.off:
        return [f"{capital(one.description)}." for one in found.off[:4]]
    said = [f"The votes match what {method} predicts: no difference is large enough to matter."]
    agreement = next((one for one in found.statistics if one.name == "agreement"), None)
    if agreement is not None:
        said.append(f"{capital(agreement.description)}.")
    return said
