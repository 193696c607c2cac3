"""The simulations behind ``rarevote study theory``: growing crowds, and crowds of one-class specialists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rarevote.meaning.jury import jury_condition
from rarevote.simulate.crowds import simulate_crowd
from rarevote.study.experiment import fit_quietly, fit_simulated

FREQUENT, RARE = 0, 1
CLASS_TITLES = ("frequent class", "rare class")
RARE_SHARE = 1 / 8
# Odd, so that a vote between two classes has no ties, and one above tens, so that shares of a crowd round alike.
SIZES = (11, 21, 31, 51, 81, 131, 211, 401)


@dataclass(frozen=True)
class Jury:
    """A kind of crowd, of any size.

    Attributes:
        title: what is special about it.
        parts: share of the crowd, accuracy on the frequent class, accuracy on the rare class.
    """

    title: str
    parts: tuple[tuple[float, float, float], ...]

    def accuracies(self, size: int) -> NDArray[np.float64]:
        """The accuracies of a crowd of that size, shape ``(size, 2)``; shares rounded, the sum kept."""
        ends = np.floor(np.cumsum([share for share, *_ in self.parts]) * size + 0.5).astype(int)
        counts = np.diff(ends, prepend=0)
        return np.repeat([part[1:] for part in self.parts], counts, axis=0)


JURIES = (
    Jury("1: the condition holds", ((0.70, 0.85, 0.75), (0.30, 0.85, 0.30))),
    Jury("2: it fails, mean accuracy above ½", ((0.50, 0.85, 0.75), (0.40, 0.85, 0.45), (0.10, 0.85, 0.05))),
    Jury("3: it fails, mean accuracy below ½", ((0.35, 0.85, 0.75), (0.65, 0.85, 0.30))),
)


def vote_error(accuracies: NDArray[np.float64]) -> float:
    """Exact probability that a majority of an odd number of independent voters is wrong on a two-class question.

    The number of right votes is a sum of independent coins, whose distribution is built one voter at a time.

    Example:
        >>> round(vote_error(np.array([0.8, 0.8, 0.8])), 6)     # 0.2^3 + 3 0.2^2 0.8
        0.104
    """
    distribution = np.ones(1)
    for accuracy in accuracies:
        distribution = np.convolve(distribution, [1 - accuracy, accuracy])
    return float(distribution[: len(accuracies) // 2 + 1].sum())


@dataclass(frozen=True)
class GrowthRow:
    """A crowd of a kind and size: what the condition says, and what majority vote did."""

    jury: str
    size: int
    class_name: str
    left_side: float
    mean_accuracy: float
    missing_specialists: float
    n_items: int
    error: float
    exact_error: float
    answered_share: float
    exact_answered_share: float


@dataclass(frozen=True)
class GrowthTrial:
    """A crowd to simulate."""

    jury: Jury
    size: int
    n_items: int
    seed: int

    def run(self) -> list[GrowthRow]:
        """Let every worker label every item, vote, and compare with the exact error."""
        accuracy = self.jury.accuracies(self.size)
        n_rare = round(RARE_SHARE * self.n_items)
        truth = (np.arange(self.n_items) < n_rare).astype(np.int64)
        right = np.random.default_rng([self.seed, self.size]).random((self.n_items, self.size)) < accuracy[:, truth].T
        labels = np.where(right, truth[:, None], 1 - truth[:, None])
        task, worker = np.divmod(np.arange(labels.size), self.size)
        votes = (task, worker, labels.ravel())
        answers = fit_quietly("majority-vote", self.seed, votes, classes=[FREQUENT, RARE]).label_codes()
        exact = [vote_error(accuracy[:, k]) for k in (FREQUENT, RARE)]
        answered_rare = RARE_SHARE * (1 - exact[RARE]) + (1 - RARE_SHARE) * exact[FREQUENT]
        jury = jury_condition(accuracy)
        return [
            GrowthRow(
                jury=self.jury.title,
                size=self.size,
                class_name=CLASS_TITLES[k],
                left_side=float(jury.left_side[k]),
                mean_accuracy=float(jury.mean_margin[k]) + 0.5,
                missing_specialists=float(jury.missing_specialists[k]),
                n_items=int((truth == k).sum()),
                error=float((answers[truth == k] != k).mean()),
                exact_error=exact[k],
                answered_share=float((answers == k).mean()),
                exact_answered_share=answered_rare if k == RARE else 1 - answered_rare,
            )
            for k in (FREQUENT, RARE)
        ]


# --------------------------------------------------------------------------------------------------------------------
# specialists of one class

SPECIALIST_ACCURACIES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"majority": (0.95, 0.35), "minority": (0.35, 0.95)}
)
SPECIALIST_SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SPECIALIST_CROWD = {"n_tasks": 2000, "n_workers": 60, "imbalance": 7.0, "votes_per_task": 8.0}


@dataclass(frozen=True)
class SpecialistRow:
    """Recall of one class under one method in a crowd of specialists."""

    majority_specialists: float
    seed: int
    method: str
    class_name: str
    recall: float


@dataclass(frozen=True)
class SpecialistTrial:
    """A crowd in which every worker knows one class."""

    share: float
    seed: int
    methods: tuple[str, ...]

    def run(self) -> list[SpecialistRow]:
        """Draw the crowd and take the recall of both classes under every method."""
        crowd = simulate_crowd(
            **SPECIALIST_CROWD,  # type: ignore[arg-type]
            p_good=0.0,
            p_bad=0.0,
            p_majority=self.share,
            p_minority=1 - self.share,
            accuracies=SPECIALIST_ACCURACIES,
            hard_share=0.0,
            random_state=self.seed,
        )
        rows = []
        for name in self.methods:
            _, found = fit_simulated(name, self.seed, crowd, [FREQUENT, RARE])
            rows += [
                SpecialistRow(self.share, self.seed, name, CLASS_TITLES[k], found.recall.get(k, float("nan")))
                for k in (FREQUENT, RARE)
            ]
        return rows
