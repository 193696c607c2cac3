"""Small pieces of numerical code that several methods share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

# Probabilities are kept this far from zero where a logarithm follows.
TINY = 1e-10


def log_prior_from_mass(mass: NDArray[Any]) -> NDArray[np.float64]:
    """Log of class shares estimated from summed posteriors, kept away from zero."""
    share = np.maximum(mass / max(float(mass.sum()), TINY), TINY)
    return np.asarray(np.log(share / share.sum()))


def normalise_rows(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Rows that sum to one; a row without any mass becomes uniform."""
    total = scores.sum(axis=1, keepdims=True)
    shares = scores / np.where(total > 0, total, 1.0)
    empty = total[:, 0] <= 0
    if empty.any():
        shares[empty] = 1.0 / max(scores.shape[1], 1)
    return np.asarray(shares)


def first_of_best(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The best column of each row; ties go to the first column, that is the first class in sorted order."""
    if scores.shape[1] == 0:
        return np.zeros(scores.shape[0], dtype=np.int64)
    return np.asarray(scores.argmax(axis=1))


class Chooser(Protocol):
    """From the probabilities of some tasks to their classes."""

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks; ``votes`` per task and class are counted only if they are needed."""


@dataclass(frozen=True)
class ByVotes:
    """The most probable class, and the votes where that is too close to tell (see :func:`best_by_votes`)."""

    margin: float

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return best_by_votes(posterior, self.margin, votes)


def best_by_votes(
    posterior: NDArray[Any], margin: float, votes: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """The best column of each row; of columns within ``margin`` of it, the one with the most votes.

    ``votes`` is of the shape of ``posterior`` and only counted if there is such a row.
    """
    chosen = first_of_best(posterior)
    if not posterior.size:
        return chosen
    tied = posterior >= posterior.max(axis=1, keepdims=True) - margin
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if rows.size:
        chosen[rows] = first_of_best(np.where(tied[rows], votes()[rows], -1.0))
    return chosen
