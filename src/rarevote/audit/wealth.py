"""The bets: for every flagged set, a wealth that can be expected to grow only if its recall is not below the target.

Flagged set ``F_j`` is strata ``0..j``. With ``c = (1 - rho) / rho`` and ``G`` positives known before the audit its
recall is below ``rho`` exactly if ``D_j = sum_{b>j} K_b - c (sum_{b<=j} K_b + G) > 0``. A draw of an item of stratum
``b``, each with probability ``q_b``, and its answer ``y`` give, with ``v_b`` an estimate of the stratum's positive
rate::

    C_j   = S_j - c sum_{b<=j} R_b v_b          S_j = D_j with the positives found so far instead of all
    X_j   = C_j + y / q_b  if b > j,            C_j - c (y - v_b) / q_b  if b <= j
    top_j = C_j + max(max_{b>j} 1 / q_b, max_{b<=j} c v_b / q_b)  over strata with items left
    log W_j += log(1 - gamma_j X_j / top_j)     or infinity if top_j <= 0: no remaining item could make it fail

The expectation of ``X_j`` is ``D_j`` for any weights, and ``X_j <= top_j``. So if ``D_j > 0``, the wealth is a
non-negative supermartingale that starts at 1: the probability that it ever reaches ``1 / alpha`` is at most ``alpha``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np

from rarevote.audit.strata import check_weights
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import ParameterError

_MAX_DIGITS = 9  # digits of a target: a billion positives times a billion stay below 2^63
# If top_j is within this share of its terms, rational numbers decide.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Stakes:
    """The quantities that are fixed for a round before its first answer.

    Attributes:
        w: weight of an item of every stratum, whole numbers, (B).
        v: current estimate of the positive rate of every stratum, (B).
        gamma: share of the wealth at stake for every set but the last, between 0 and 1, (B - 1).
    """

    w: tuple[int, ...]
    v: FloatArray
    gamma: FloatArray


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of a draw: ``C_j`` and ``top_j``, (..., B - 1); ``1 / q_b``, (..., B), 0 if no items are left."""

    base: FloatArray
    top: FloatArray
    inverse_q: FloatArray


def check_digits(target: Fraction) -> None:
    """Refuse a target with so many digits that products with counts would overflow 64-bit integers.

    Raises:
        ParameterError: numerator or denominator has more than nine digits.
    """
    if max(abs(target.numerator), target.denominator) >= 10**_MAX_DIGITS:
        raise ParameterError(
            f"target {target.numerator}/{target.denominator} has more than {_MAX_DIGITS} digits in its numerator or "
            "denominator: give fewer, such as 0.9 or 9/10"
        )


class Wealth:
    """Counts by stratum and the wealth of all flagged sets.

    Args:
        sizes: items of each stratum, ``N_b``, (B).
        target: the recall ``rho``, a rational number.
        confidence: ``1 - alpha``.
        known_positives: positives known before the audit, ``G``.

    Attributes:
        left: items not yet reviewed, ``R_b``.
        reviewed: items that the expert answered, ``n_b``.
        positives: positives among these, ``k_b``.
        worst: items closed as the worst case; they are neither reviewed nor left.
        log_wealth: ``log W_j``, (B - 1).
        crossed: whether ``W_j`` has ever reached ``1 / alpha``, (B - 1).
    """

    def __init__(
        self, sizes: Sequence[int], *, target: Fraction, confidence: Fraction, known_positives: int = 0
    ) -> None:
        check_digits(target)
        n_sets = len(sizes) - 1
        self._sizes = [int(size) for size in sizes]
        self.sizes: IntArray = np.array(sizes, dtype=np.int64)
        self.target, self.known_positives = target, known_positives
        self.odds = (1 - target) / target
        self.threshold = -log(1 - confidence)
        self.left = self.sizes.copy()
        self.reviewed, self.positives, self.worst = (np.zeros(n_sets + 1, dtype=np.int64) for _ in range(3))
        self.log_wealth = np.zeros(n_sets)
        self.crossed = np.zeros(n_sets, dtype=bool)
        # rho S_j in units of 1 / denominator of rho: a whole number, so that zero is exact.
        self._scaled = np.full(n_sets, -(target.denominator - target.numerator) * known_positives, dtype=np.int64)

    @property
    def surplus(self) -> FloatArray:
        """``S_j = sum_{b>j} k_b - c (sum_{b<=j} k_b + G)``, worst cases counted as missed, (B - 1)."""
        return self._scaled / self.target.numerator

    def terms(self, stakes: Stakes) -> Terms:
        """The terms of the next draw."""
        return self._terms(self.left, self._scaled, stakes)

    def _terms(self, left: IntArray, scaled: IntArray, stakes: Stakes) -> Terms:
        """The terms for any state, or for many along a first axis, with identical bits in both cases."""
        check_weights(stakes.w, self._sizes)
        w, c = np.array(stakes.w, dtype=np.int64), float(self.odds)
        # Whole numbers are exact in any order of addition; they were checked to stay within 64 bits.
        omega = (left * w).sum(axis=-1, keepdims=True)
        inverse_q = np.where(left > 0, omega / w, 0.0)
        surplus = scaled / self.target.numerator
        spent = c * np.cumsum(left * stakes.v, axis=-1)[..., :-1]
        base = surplus - spent
        tail = np.maximum.accumulate(inverse_q[..., ::-1], axis=-1)[..., ::-1][..., 1:]
        flagged = np.maximum.accumulate(c * stakes.v * inverse_q, axis=-1)[..., :-1]
        most = np.maximum(tail, flagged)
        top = base + most
        doubt = _ROUNDING * (np.abs(surplus) + spent + most)
        for place in map(tuple, np.argwhere(np.abs(top) <= doubt).tolist()):
            # Any bound above X_j keeps the bet fair: use one that is safe against rounding.
            exact = self._exact_top(place[-1], left[place[:-1]], int(scaled[place]), stakes)
            top[place] = doubt[place] if exact > 0 else 0.0
        return Terms(base, top, inverse_q)

    def _exact_top(self, j: int, left_now: IntArray, scaled: int, stakes: Stakes) -> Fraction:
        left, v = left_now.tolist(), [Fraction(x) for x in stakes.v.tolist()]
        omega = sum(w * r for w, r in zip(stakes.w, left, strict=True))
        base = Fraction(scaled, self.target.numerator)
        base -= self.odds * sum((r * x for r, x in zip(left[: j + 1], v, strict=False)), Fraction(0))
        tail = [Fraction(omega, stakes.w[b]) for b in range(j + 1, len(left)) if left[b]]
        flagged = [self.odds * v[b] * omega / stakes.w[b] for b in range(j + 1) if left[b]]
        return base + max([*tail, *flagged], default=Fraction(0))

    def settle(self, terms: Terms) -> None:
        """Mark sets that no remaining item could make fail as won, ``log W_j = infinity``."""
        won = terms.top <= 0
        self.log_wealth[won] = np.inf
        self.crossed |= won

    def observe(self, strata: Sequence[int], answers: Sequence[bool | None], stakes: Stakes) -> None:
        """Process answers on items in drawn order.

        The draws and answers determine the state before every draw, so all bets are decided at once.

        Args:
            strata: the stratum of every item, (n).
            answers: whether it is positive; None means the worst case of every set, (n).
            stakes: the stakes of the round in which they were drawn.
        """
        b: IntArray = np.array(strata, dtype=np.int64)
        yes = np.array([answer is True for answer in answers])
        worst = np.array([answer is None for answer in answers])
        in_tail = np.arange(len(self.log_wealth)) < b[:, None]
        drawn = (np.arange(len(self.left)) == b[:, None]).astype(np.int64)
        numerator, denominator = self.target.numerator, self.target.denominator
        step = np.where(in_tail, (yes | worst)[:, None] * numerator, yes[:, None] * (numerator - denominator))
        left = self.left - np.cumsum(drawn, axis=0) + drawn
        terms = self._terms(left, self._scaled + np.cumsum(step, axis=0) - step, stakes)
        live = terms.top > 0
        gain = np.where(in_tail, yes[:, None], -float(self.odds) * (yes[:, None] - stakes.v[b][:, None]))
        x = terms.base + gain * terms.inverse_q[np.arange(len(b)), b][:, None]
        share = np.ones_like(x)
        np.divide(x, terms.top, out=share, where=live & ~worst[:, None])
        growth = np.log1p(-stakes.gamma * share)
        growth[~live] = np.inf
        # In order, as if they had been processed one by one.
        path = np.add.accumulate(np.vstack([self.log_wealth, growth]), axis=0)
        self.log_wealth = path[-1]
        self.crossed |= (path >= self.threshold).any(axis=0)
        self.left = self.left - drawn.sum(axis=0)
        self._scaled = self._scaled + step.sum(axis=0)
        self.worst += drawn[worst].sum(axis=0)
        self.reviewed += drawn[~worst].sum(axis=0)
        self.positives += drawn[yes].sum(axis=0)
        if not self.left.any():
            self.settle(self.terms(stakes))

    @property
    def n_found(self) -> int:
        """Number of known positives, including those from before the audit."""
        return int(self.positives.sum()) + self.known_positives

    @property
    def certified(self) -> int:
        """The certified set: from everything inwards while the next smaller set has ever reached ``1 / alpha``.

        Without any positive, recall is undefined, and everything stays flagged.
        """
        j = len(self.crossed)
        if not self.n_found:
            return j
        while j and self.crossed[j - 1]:
            j -= 1
        return j

    def unreviewed(self, j: int) -> int:
        """Number of items of ``F_j`` without an answer."""
        return int((self.left + self.worst)[: j + 1].sum())
