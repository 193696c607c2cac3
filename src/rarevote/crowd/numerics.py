"""Numerical helpers: sums, shares, and classes from probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Sums = TypeVar("Sums", bound=tuple[Any, ...])

# Probabilities are raised to this value before a logarithm is taken.
TINY = 1e-10


def sigmoid(log_odds: NDArray[Any]) -> FloatArray:
    """``1 / (1 + exp(-log_odds))``, through tanh because that never overflows."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))


def finite_or_none(value: float) -> float | None:
    """The value, or None for NaN and infinity, which JSON and charts do not support."""
    return float(value) if isfinite(value) else None


def added(one: Sums, other: Sums) -> Sums:
    """The sums of two records (named tuples), entry by entry; also of nested records."""
    entries = (added(a, b) if isinstance(a, tuple) else a + b for a, b in zip(one, other, strict=True))
    return type(one)(*entries)


def dot(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The sum of the products of two arrays (broadcast against each other), without BLAS.

    BLAS splits long sums over all cores, which changes the last bits; and its threads keep
    spinning for a while during the next computation.
    """
    return float((one * other).sum())


def column_sums(table: NDArray[Any]) -> FloatArray:
    """The sum of each column of a long table with few columns, (K).

    NumPy would process the rows, a few numbers at a time; contiguous columns are summed several times
    faster, and pairwise, which rounds less.
    """
    return np.asarray(np.ascontiguousarray(table.T).sum(axis=1))


def log_prior_from_mass(mass: NDArray[Any]) -> NDArray[np.float64]:
    """Log of class shares estimated from summed posteriors, kept above zero."""
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
    """The best column of each row; ties go to the first column, which is the first class in sorted order."""
    if scores.shape[1] == 0:
        return np.zeros(scores.shape[0], dtype=np.int64)
    return np.asarray(scores.argmax(axis=1))


#: Scores that differ by less than this, relative to the larger one, are equal: rounding must not decide between them.
TIE = 1e-12


def tied_with_best(scores: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns of each row are as good as the best one, up to rounding.

    >>> tied_with_best(np.array([[0.1 + 0.2, 0.3, 0.2]])).tolist()
    [[True, True, False]]
    """
    best = scores.max(axis=1, keepdims=True, initial=-np.inf)
    return np.asarray(scores >= best - TIE * np.abs(best))


# Cells per part: the work arrays stay in the cache, whatever the number of tasks.
_CELLS = 1 << 16


def row_parts(n: int) -> Iterator[slice]:
    """Slices that cover ``n`` rows, so that work arrays stay small; one slice if there are no rows.

    >>> list(row_parts(0)), len(list(row_parts(100_000)))
    ([slice(0, 65536, None)], 2)
    """
    for begin in range(0, max(n, 1), _CELLS):
        yield slice(begin, begin + _CELLS)


def picked(table: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """``table[i, columns[i]]`` for every row i; processed in parts, to save memory.

    >>> picked(np.array([[1, 2], [3, 4]]), np.array([1, 0])).tolist()
    [2, 3]
    """
    found = np.empty(len(columns), dtype=table.dtype)
    for begin in range(0, len(columns), _CELLS):
        part = columns[begin : begin + _CELLS]
        found[begin : begin + _CELLS] = table[np.arange(begin, begin + len(part)), part]
    return found


class Chooser(Protocol):
    """Chooses the classes of tasks from their probabilities."""

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks; ``votes`` per task and class are counted only if needed."""


@dataclass(frozen=True)
class ByVotes:
    """The most probable class; if it is too close, the class with the most votes (see :func:`best_by_votes`)."""

    margin: float

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return best_by_votes(posterior, self.margin, votes)


def best_by_votes(
    posterior: NDArray[Any], margin: float, votes: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """The best column of each row; among columns within ``margin`` of it, the one with the most votes.

    ``votes`` has the shape of ``posterior`` and is only counted if there is such a row.
    """
    chosen = first_of_best(posterior)
    if not posterior.size:
        return chosen
    tied = posterior >= posterior.max(axis=1, keepdims=True) - margin
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if rows.size:
        chosen[rows] = first_of_best(np.where(tied[rows], votes()[rows], -1.0))
    return chosen
