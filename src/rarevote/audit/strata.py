"""The frozen ranking, split into strata: an audit flags strata from the first downwards.

Draws come from SHA-256: they are the same on every machine and do not depend on random generators.

Draw ``index`` (from 0) of round ``round`` (from 1) under a seed of 64 bits hashes the ASCII text ``seed:round:index``,
the seed as 16 hexadecimal digits, the others in decimal. The first 16 bytes of the digest, read as a big-endian whole
number ``A``, choose the stratum, the last 16, ``B``, the item:

- weights ``w_b`` are whole numbers and ``R_b`` items of stratum ``b`` are left, ``Omega = sum w_b R_b``. The stratum is
  the first ``b`` with ``sum_{a <= b} w_a R_a > floor(A Omega / 2^128)``;
- the remaining items of a stratum form a list, at first in the order of the plan. The item at position
  ``floor(B R_b / 2^128)`` (from 0) is drawn, and the last item of the list takes its place.

So every remaining item of stratum ``b`` has probability ``w_b / Omega``. Whole numbers avoid rounding, and a draw
is as cheap among a million items as among ten: only positions that differ from the original list are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.errors import InputError

#: The largest weight of a round: small enough for exact sums of 64-bit integers over two billion items.
MAX_WEIGHT = 2**32
_MAX_TOTAL = 2**63 - 1


def digest(seed: int, *parts: object) -> bytes:
    """SHA-256 of seed and parts, separated by colons.

    >>> digest(1, 2, 3) == sha256(b"0000000000000001:2:3").digest()
    True
    """
    return sha256(":".join([f"{seed:016x}", *map(str, parts)]).encode()).digest()


def shuffle_key(seed: int, *parts: object) -> Callable[[object], bytes]:
    """A key that sorts names into a random order: SHA-256 of seed, parts and the ``repr`` of the name.

    >>> shuffle_key(1, "tie")("a") == sha256(b"0000000000000001:tie:'a'").digest()
    True
    """
    prefix = ":".join([f"{seed:016x}", *map(str, parts), ""])
    return lambda name: sha256(f"{prefix}{name!r}".encode()).digest()


def whole_weights(weights: ArrayLike) -> list[int]:
    """Weights as whole numbers of at least 1; the largest is 2^32.

    >>> whole_weights([1.0, 0.25, 0.0])
    [4294967296, 1073741824, 1]
    """
    return [max(1, round(x)) for x in scaled_weights(weights).tolist()]


def scaled_weights(weights: ArrayLike) -> FloatArray:
    """Weights before :func:`whole_weights` rounds them; the largest is 2^32."""
    w: FloatArray = np.asarray(weights, dtype=np.float64)
    return np.asarray(w / w.max() * MAX_WEIGHT)


def check_weights(weights: Sequence[int], sizes: Sequence[int]) -> None:
    """Refuse weights that cannot be used for draws: their sums must fit into 64-bit integers.

    Args:
        weights: weight of an item of every stratum, ``w_b``, (B).
        sizes: items of each stratum, ``N_b``, (B).

    Raises:
        InputError: the number of weights is wrong, one is not a whole number from 1 to 2^32, or their total over
            all items exceeds 2^63.
    """
    if len(weights) != len(sizes) or not all(type(w) is int and 0 < w <= MAX_WEIGHT for w in weights):
        raise InputError(f"weights are whole numbers from 1 to 2^32, one for each of the {len(sizes)} strata")
    # Python's integers do not overflow.
    if sum(w * size for w, size in zip(weights, sizes, strict=True)) > _MAX_TOTAL:
        raise InputError("the sum of all weights exceeds 2^63 and would not be exact")


class Urn:
    """The remaining items of every stratum, for draws without replacement.

    Args:
        sizes: items of each stratum, ``N_b``.

    Example:
        >>> urn = Urn([2, 3])
        >>> drawn = [urn.draw(7, 1, index, [1, 1]) for index in range(5)]
        >>> sorted(drawn)
        [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    """

    def __init__(self, sizes: Iterable[int]) -> None:
        self.left = list(sizes)
        self._moved: list[dict[int, int]] = [{} for _ in self.left]
        self._weights: list[int] = []
        self._masses: list[int] = []
        self._total = 0

    def draw(self, seed: int, round_number: int, index: int, weights: list[int]) -> tuple[int, int]:
        """Draw an item; returns its stratum and its position in the stratum's original list."""
        hashed = digest(seed, round_number, index)
        if weights != self._weights:
            self._weights = list(weights)
            self._masses = [w * left for w, left in zip(weights, self.left, strict=True)]
            self._total = sum(self._masses)
        masses = self._masses
        point = int.from_bytes(hashed[:16], "big") * self._total >> 128
        stratum = 0
        while point >= masses[stratum]:
            point -= masses[stratum]
            stratum += 1
        place = int.from_bytes(hashed[16:], "big") * self.left[stratum] >> 128
        moved = self._moved[stratum]
        self.left[stratum] -= 1
        masses[stratum] -= weights[stratum]
        self._total -= weights[stratum]
        last = self.left[stratum]
        item = moved.get(place, place)
        moved[place] = moved.pop(last, last)
        return stratum, item


_MIN_EXPECTED = 5.0
_FIRST_SHARE, _MIN_FIRST = 0.6, 3.0
_RATIO, _MIN_STEP = 1.15, 2.0
_LAST_SHARE = 0.97


@dataclass(frozen=True, eq=False)
class Strata:
    """Tasks in the order of their scores, split into strata.

    Attributes:
        tasks: the tasks of every stratum, best first, (B) lists.
        p0: mean score of every stratum, (B).
    """

    tasks: tuple[tuple[Any, ...], ...]
    p0: FloatArray

    @property
    def sizes(self) -> list[int]:
        """Number of tasks of every stratum, ``N_b``."""
        return [len(tasks) for tasks in self.tasks]

    @property
    def n_tasks(self) -> int:
        """Number of tasks, ``N``."""
        return sum(self.sizes)

    @property
    def mean_score(self) -> float:
        """Mean score of the population."""
        return float(np.average(self.p0, weights=self.sizes))


def cuts(n: int, expected: float) -> list[int]:
    """Splits of the ranking: ``round(r)`` for ``r = max(0.6 T, 3)``, then ``r <- max(1.15 r, r + 2)`` up to 0.97 N.

    >>> cuts(100, 40.0)
    [24, 28, 32, 37, 42, 48, 56, 64, 73, 84, 100]
    """
    r = max(_FIRST_SHARE * max(expected, _MIN_EXPECTED), _MIN_FIRST)
    found = []
    while r < _LAST_SHARE * n:
        found.append(round(r))
        r = max(_RATIO * r, r + _MIN_STEP)
    return [*found, n]


def build_strata(tasks: Sequence[Any], scores: ArrayLike, seed: int) -> Strata:
    """Rank tasks by score and split the ranking.

    Ties are in the order of SHA-256 of seed, "tie" and task. Tasks without a score (NaN) form a separate last
    stratum, whose base rate is the mean score.

    Args:
        tasks: the population, (N); text or numbers, each once.
        scores: calibrated probability of the class, (N).

    Raises:
        InputError: there are no tasks, lengths differ, a score is not a probability, or there is no score.
    """
    p: FloatArray = np.asarray(scores, dtype=np.float64)
    if not len(tasks) or p.shape != (len(tasks),):
        raise InputError(f"an audit needs a score for every task, got {p.size:,} for {len(tasks):,} tasks")
    missing = np.isnan(p)
    known = np.flatnonzero(~missing)
    if not known.size:
        raise InputError("no task has a score, so there is no ranking")
    if ((p[known] < 0) | (p[known] > 1)).any():
        bad = int(known[(p[known] < 0) | (p[known] > 1)][0])
        raise InputError(f"task {tasks[bad]!r} has the score {p[bad]:g}: scores are probabilities of the class")
    mean = float(p[known].mean())
    ranked = _ranked(tasks, p, known, seed)
    ends = cuts(len(ranked), mean * len(tasks))
    groups = [ranked[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    p0 = [float(p[group].mean()) for group in groups]
    if missing.any():
        groups.append(np.flatnonzero(missing).tolist())
        p0.append(mean)
    return Strata(tuple(tuple(tasks[i] for i in group) for group in groups), np.array(p0))


def _ranked(tasks: Sequence[Any], p: FloatArray, known: NDArray[np.int64], seed: int) -> list[int]:
    """Positions in order of descending score."""
    _, group, count = np.unique(-p[known], return_inverse=True, return_counts=True)
    order: list[int] = known[np.argsort(group, kind="stable")].tolist()
    key = shuffle_key(seed, "tie")
    start = 0
    for size in count.tolist():
        if size > 1:
            order[start : start + size] = sorted(order[start : start + size], key=lambda i: key(tasks[i]))
        start += size
    return order
