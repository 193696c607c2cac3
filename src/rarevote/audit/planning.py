"""Planning a round: what to review next, how much to stake, and whether to continue. It affects only efficiency.

Weights, rates and stakes can depend on all earlier answers in any way; no choice here can make a certificate
false. For a candidate set ``F_j`` the expected growth of its log wealth at the next draw is::

    g_j = sum_b R_b q_b [p_b log(1 - gamma X_j(y=1) / top_j) + (1 - p_b) log(1 - gamma X_j(y=0) / top_j)]

The numbers and steps of this module are frozen as planner 1: :mod:`rarevote.audit.replanning` plans every
recorded round again. A new planner gets a new number, and this one stays for the plans that it made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, inf, isfinite, log1p, ulp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.audit.strata import whole_weights
from rarevote.audit.wealth import Stakes, Wealth
from rarevote.crowd.numerics import FloatArray, IntArray

_GAMMAS = np.array([0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
_TAUS = np.array([3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, inf])
_PHIS = np.array([0.02, 0.05, 0.12, 0.3, 0.8])
_CANDIDATES = 8
_MIN_FLAGGED_SHARE = 0.2
_MIN_ROUND, _MAX_ROUND = 20, 100
_ESTIMATE_ROUND = 25
_KELLY_STEPS = 8

#: Two choices reach the same objective if it differs by no more than this share: logarithms differ in the last place
#: between machines, so ties can be broken differently.
TIE = 1e-9
# Rounding error of a sum, relative to the sum of its absolute terms.
_NOISE = 1e-14

#: The cost of a flag in reviews: the default, and the range. Beyond it, reviews or flags would vanish in the rounding
#: of their sum: all sets would tie, and a forger could choose between their weights after the answers.
FLAG_COST, MIN_FLAG_COST, MAX_FLAG_COST = 1.0, 1e-6, 1e6


@dataclass(frozen=True)
class Forecast:
    """What further reviews would cost and gain.

    Attributes:
        set_index: the set ``F_j`` to certify next.
        reviews: expected number of further reviews, ``n_j``; can be off by a factor of two.
        flagged: number of items of that set without an answer.
        cost: ``n_j + kappa * flagged``, in reviews.
        staying: the cost of the currently certified set, ``kappa * unreviewed``.
    """

    set_index: int
    reviews: float
    flagged: int
    cost: float
    staying: float

    @property
    def pays(self) -> bool:
        """Whether further reviews are cheaper than stopping."""
        return self.cost < self.staying


@dataclass(frozen=True, eq=False)
class Proposal:
    """The planner's proposal for the next round.

    Attributes:
        stakes: stakes of the next round.
        size: number of items to draw; 0 if further reviews are not worth their cost.
    """

    stakes: Stakes
    size: int


def propose(wealth: Wealth, rates: FloatArray, flag_cost: float, n_to_estimate: int) -> Proposal:
    """Stakes and size of the next round.

    Args:
        wealth: the state of the audit.
        rates: current positive rate of every stratum, ``p_b``, (B).
        flag_cost: cost of a flagged item, in reviews, ``kappa``.
        n_to_estimate: remaining reviews for the estimate: :func:`left_to_estimate`.
    """
    planned = None if n_to_estimate else plan_certificate(wealth, rates, flag_cost)
    if planned is None:
        stakes = stakes_for(wealth, rates, _estimate_weights(rates))
        return Proposal(stakes, min(_ESTIMATE_ROUND, n_to_estimate))
    forecast, stakes = planned
    return Proposal(stakes, _round_size(forecast))


def _round_size(forecast: Forecast) -> int:
    return round(min(max(forecast.reviews / 3, _MIN_ROUND), _MAX_ROUND)) if forecast.pays else 0


def plan_certificate(wealth: Wealth, rates: FloatArray, flag_cost: float) -> tuple[Forecast, Stakes] | None:
    """The cheapest set to certify next: forecast and stakes; None if there is no smaller set.

    Args:
        wealth: the state of the audit.
        rates: current positive rate of every stratum, ``p_b``, (B).
        flag_cost: cost of a flagged item, in reviews, ``kappa``.
    """
    considered = _considered(wealth, rates, flag_cost)
    if not considered:
        return None
    forecast, tried, best = min(considered, key=lambda one: one[0].cost)
    return forecast, stakes_for(wealth, rates, tried.weights[best])


def forecasts(wealth: Wealth, rates: FloatArray, flag_cost: float) -> list[Forecast]:
    """What further reviews would cost and gain for every considered set, the largest first."""
    return [forecast for forecast, _, _ in _considered(wealth, rates, flag_cost)]


class _Tried(NamedTuple):
    """Candidate weights for one set, (A, B), and the growth of its wealth under each, (A)."""

    weights: FloatArray
    growth: FloatArray


def _considered(wealth: Wealth, rates: FloatArray, flag_cost: float) -> list[tuple[Forecast, _Tried, int]]:
    """Sets inside the certified one, with the candidate weights of each and the one that certifies the set first."""
    certified, total = wealth.certified, int(wealth.left.sum())
    if not certified or not total:
        return []
    candidates = np.arange(certified - 1, -1, -max(1, certified // _CANDIDATES))
    weights, sets = _candidate_weights(wealth, rates, candidates)
    growth = _best_growth(_next_draws(wealth, rates, weights, sets))[0]
    staying = flag_cost * wealth.unreviewed(certified)
    found = []
    for j in candidates.tolist():
        tried = _Tried(weights[sets == j], growth[sets == j])
        best = int(tried.growth.argmax())
        needed, flagged = _reviews_needed(wealth, j, certified, float(tried.growth[best]), total), wealth.unreviewed(j)
        found.append((Forecast(j, needed, flagged, needed + flag_cost * flagged, staying), tried, best))
    return found


def _estimate_weights(rates: FloatArray) -> FloatArray:
    """Weights while the aim is an estimate: review the least certain items."""
    return np.asarray(np.sqrt(rates * (1 - rates)) + 0.02)


def estimate_phase(n_tasks: int) -> int:
    """The number of reviews for the estimate, if that is the aim."""
    return min(max(n_tasks // 10, 20), 100)


def left_to_estimate(aim: str, n_tasks: int, n_drawn: int) -> int:
    """The number of remaining reviews for the estimate.

    >>> left_to_estimate("estimate", 500, 30), left_to_estimate("certificate", 500, 30)
    (20, 0)
    """
    return max(estimate_phase(n_tasks) - n_drawn, 0) if aim == "estimate" else 0


def choices(wealth: Wealth, rates: FloatArray, flag_cost: float, n_to_estimate: int) -> tuple[list[FloatArray], int]:
    """Every choice of weights that reaches the planner's objective, (B) each, and the size of the round.

    The arguments are those of :func:`propose`. The first choice is that of the planner, the others tie with it.
    """
    considered = [] if n_to_estimate else _considered(wealth, rates, flag_cost)
    if not considered:
        return [_estimate_weights(rates)], min(_ESTIMATE_ROUND, n_to_estimate)
    first = min(considered, key=lambda one: one[0].cost)
    cheapest, total = first[0], int(wealth.left.sum())
    off = _cost_error(*first, total)
    reached = []
    for one in considered:
        forecast, tried, best = one
        # Subtracted, so that a cost that is not finite ties with no other.
        if one is not first and not forecast.cost - cheapest.cost <= off + _cost_error(*one, total):
            continue
        reached.append(tried.weights[best])
        most = float(tried.growth[best])
        # The growth of a won set is infinite for any weights: every machine takes the same first choice.
        if isfinite(most):
            reached += list(tried.weights[most - tried.growth <= TIE * abs(most) + _NOISE])
    return reached, _round_size(cheapest)


def _cost_error(forecast: Forecast, tried: _Tried, best: int, total: int) -> float:
    """How far the cost of a set can be off between machines.

    Only the reviews ``n = R (1 - exp(-x))`` depend on logarithms, by ``x = deficit / g / R``: if the growth ``g`` is
    off by a share ``e``, they are off by ``e x (R - n)``. The flags are counted, and their cost is only rounded.
    """
    rounding = 4 * ulp(forecast.cost)
    growth = float(tried.growth[best])
    if forecast.reviews >= total or not 0 < growth < inf:
        return rounding
    share = TIE + min(_NOISE / growth, 1.0)
    return rounding - share * log1p(-forecast.reviews / total) * (total - forecast.reviews)


def gamma_reaches(wealth: Wealth, stakes: Stakes) -> NDArray[np.bool_]:
    """Whether the gamma of every set is in the planner's grid and grows as fast as the best, (B - 1)."""
    draws = _draws_of_all(wealth, stakes.v, stakes.w)
    best, terms = _best_growth(draws)[0], draws.terms(stakes.gamma)
    short = best - terms.sum(axis=(0, 2))
    reached = draws.won | (short <= TIE * np.abs(best) + _NOISE * np.abs(terms).sum(axis=(0, 2)))
    return np.asarray(reached & np.isin(stakes.gamma, _GAMMAS))


def stakes_for(wealth: Wealth, rates: FloatArray, weights: FloatArray) -> Stakes:
    """Stakes for given weights: for every set, the ``gamma`` in the grid with the fastest growth."""
    w = tuple(whole_weights(weights))
    return Stakes(w, rates, _best_growth(_draws_of_all(wealth, rates, w))[1])


def _draws_of_all(wealth: Wealth, rates: FloatArray, w: tuple[int, ...]) -> _Draws:
    """The outcomes of the next draw for every set under the same weights."""
    sets = np.arange(len(w) - 1)
    return _next_draws(wealth, rates, np.tile(np.array(w, dtype=np.float64), (len(sets), 1)), sets)


def _reviews_needed(wealth: Wealth, j: int, certified: int, growth: float, total: int) -> float:
    """``Rtot (1 - exp(-(deficit / g) / Rtot))`` for the largest deficit of the sets not yet won down to ``F_j``."""
    between = slice(j, certified)
    waiting = ~wealth.crossed[between]
    deficit = float(np.max(wealth.threshold - wealth.log_wealth[between][waiting], initial=0.0))
    if growth <= 0:
        return float(total)
    return total * (1 - exp(-(deficit / growth) / total))


def _candidate_weights(wealth: Wealth, rates: FloatArray, candidates: IntArray) -> tuple[FloatArray, IntArray]:
    """Candidate weights, Kelly's for the tail and a flat share for the flagged items, (A, B), and their sets, (A).

    Flagged items that would get less than a fifth of the draws are raised to a fifth. Candidates that become equal:
    one is kept.
    """
    tail = 1 + 1 / _kelly(_TAUS[:, None] / rates)
    flagged = np.sqrt(rates * (1 - rates) + 0.01)
    is_flagged = np.arange(len(rates)) <= candidates[:, None]
    inside = np.where(is_flagged, flagged * wealth.left, 0.0).sum(axis=-1)[:, None, None]
    outside = np.where(is_flagged[:, None, :], 0.0, tail * wealth.left).sum(axis=-1)[:, :, None]
    wanted = outside * _MIN_FLAGGED_SHARE / (1 - _MIN_FLAGGED_SHARE)
    least = np.divide(wanted, inside, out=np.zeros_like(wanted), where=inside > 0)
    scale = np.maximum(_PHIS, least)
    kept = np.diff(scale, axis=-1, prepend=0.0) > 0
    i, tau, phi = np.nonzero(kept)
    weights = np.where(is_flagged[i], scale[i, tau, phi][:, None] * flagged, tail[tau])
    return weights, candidates[i]


def _kelly(t: FloatArray) -> FloatArray:
    """The ``u`` with ``u - log(1 + u) = t``, by Newton's method from above (the left side is convex)."""
    finite = np.where(np.isinf(t), 1.0, t)
    u = finite + np.sqrt(2 * finite)
    for _ in range(_KELLY_STEPS):
        u -= (u - np.log1p(u) - finite) * (1 + u) / u
    return np.where(np.isinf(t), inf, u)


class _Draws(NamedTuple):
    """The outcomes of the next draw for some sets, each under its own weights.

    Attributes:
        chances: probability of a stratum and its answer, yes and no, (2, A, B).
        share: ``X / top`` for these, (2, A, B).
        won: whether no remaining item could make the set fail, (A).
    """

    chances: FloatArray
    share: FloatArray
    won: NDArray[np.bool_]

    def terms(self, gamma: FloatArray) -> FloatArray:
        """The terms of the expected log growth, for a gamma of every set, (2, A, B)."""
        return np.asarray(self.chances * np.log1p(-gamma[:, None] * self.share))


def _next_draws(wealth: Wealth, rates: FloatArray, weights: FloatArray, sets: IntArray) -> _Draws:
    """The outcomes of the next draw for set ``sets[i]`` under ``weights[i]``."""
    c, left = float(wealth.odds), wealth.left.astype(np.float64)
    open_ = left > 0
    # Empty strata cannot be drawn.
    place, rates_left, left, weights = np.flatnonzero(open_), rates[open_], left[open_], weights[:, open_]
    tail = place > sets[:, None]
    chance = weights * left
    omega = chance.sum(axis=1, keepdims=True)
    chance /= omega
    inverse_q = omega / weights
    base = wealth.surplus[sets] - c * np.cumsum(wealth.left * rates)[sets]
    top = base + np.where(tail, inverse_q, c * rates_left * inverse_q).max(axis=1)
    won = top <= 0
    top = np.where(won, 1.0, top)[:, None]
    gain = inverse_q / top
    share = np.empty((2, *chance.shape))  # X / top for a yes and for a no
    share[0] = np.where(tail, gain, -c * (1 - rates_left) * gain)
    share[1] = np.where(tail, 0.0, c * rates_left * gain)
    share += base[:, None] / top
    return _Draws(np.stack([chance * rates_left, chance * (1 - rates_left)]), share, won)


def _best_growth(draws: _Draws) -> tuple[FloatArray, FloatArray]:
    """Largest expected log growth of every set, infinite if won, and its gamma, (A).

    Growth is concave in gamma, so its slope, which needs no logarithm, shows on which side of a grid value the
    best one lies; logarithms are taken for the last two.
    """
    share, n_sets = draws.share, len(draws.won)
    weighted = draws.chances * share
    low, high = np.zeros(n_sets, dtype=np.int64), np.full(n_sets, len(_GAMMAS) - 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        slope = -(weighted / (1 - _GAMMAS[middle][:, None] * share)).sum(axis=(0, 2))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    ends = [draws.terms(_GAMMAS[end]).sum(axis=(0, 2)) for end in (low, high)]
    growth = np.where(draws.won, inf, np.maximum(*ends))
    return growth, _GAMMAS[np.where(ends[1] > ends[0], high, low)]


@dataclass(frozen=True)
class Step:
    """A point on the curve of flagged items against reviews.

    Attributes:
        reviews: number of items that the expert answered.
        flagged: number of items of the certified set without a review.
    """

    reviews: int
    flagged: int


def step_of(wealth: Wealth) -> Step:
    """The current point of an audit."""
    return Step(int(wealth.reviewed.sum()), wealth.unreviewed(wealth.certified))


def to_be_bought(here: Step, forecasts: Iterable[Forecast]) -> list[Step]:
    """The expected further points: fewer flagged items for more reviews.

    >>> ahead = [Forecast(3, 80.0, 500, 0.0, 0.0), Forecast(2, 60.0, 400, 0.0, 0.0), Forecast(1, 900.0, 90, 0.0, 0.0)]
    >>> [(step.reviews, step.flagged) for step in to_be_bought(Step(100, 700), ahead)]
    [(100, 700), (160, 400), (1000, 90)]
    """
    kept = [here]
    for forecast in sorted(forecasts, key=lambda one: (one.reviews, one.flagged)):
        if forecast.flagged < kept[-1].flagged:
            kept.append(Step(here.reviews + round(forecast.reviews), forecast.flagged))
    return kept
