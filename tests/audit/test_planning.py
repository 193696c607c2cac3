"""Planning and estimates against brute force, SciPy and simulation. None of it can make a certificate false."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy.optimize import brentq, minimize

from rarevote.audit import planning
from rarevote.audit.estimates import Estimates, base_logits, recalibrate
from rarevote.audit.planning import (
    _GAMMAS,
    Forecast,
    Step,
    _candidate_weights,
    _kelly,
    _Tried,
    choices,
    estimate_phase,
    left_to_estimate,
    plan_certificate,
    propose,
    to_be_bought,
)
from rarevote.audit.strata import Strata
from rarevote.audit.wealth import Wealth
from tests.audit.worlds import finished, started


def log_posterior(x: np.ndarray, z: np.ndarray, n: np.ndarray, k: np.ndarray) -> float:
    p = 1 / (1 + np.exp(-(x[0] + x[1] * z)))
    prior = -(x[0] ** 2) / (2 * 1.5**2) - (x[1] - 1) ** 2 / (2 * 0.5**2)
    return float((k * np.log(p) + (n - k) * np.log(1 - p)).sum() + prior)


@pytest.mark.parametrize("reverse", [False, True])
def test_recalibration_is_the_most_probable_curve(reverse: bool) -> None:
    z = np.linspace(2, -4, 9)
    n = np.array([5, 0, 20, 8, 1, 30, 12, 40, 60])
    k = np.array([4, 0, 9, 3, 0, 4, 1, 1, 0])
    k = (n - k) if reverse else k  # a crowd that is wrong where it is sure: the slope stops at its bound
    found = recalibrate(z, n, k)
    best = minimize(lambda x: -log_posterior(x, z, n, k), [0, 1], bounds=[(None, None), (0.05, None)], tol=1e-12)
    np.testing.assert_allclose(found.parameters, best.x, atol=2e-4)
    assert log_posterior(found.parameters, z, n, k) >= -best.fun - 1e-9
    assert (found.slope == 0.05) == reverse
    p = 1 / (1 + np.exp(-(found.parameters[0] + found.parameters[1] * z)))
    np.testing.assert_allclose(found.rates, (15 * p + k) / (15 + n))
    step = 1e-4
    for i in range(2):
        for j in range(2):
            e, f = np.eye(2)[i] * step, np.eye(2)[j] * step
            bend = sum(
                s * t * log_posterior(found.parameters + s * e + t * f, z, n, k) for s in (1, -1) for t in (1, -1)
            )
            assert -bend / (4 * step**2) == pytest.approx(found.precision[i, j], rel=1e-3, abs=1e-3)


def test_base_rates_are_mixed_and_kept_from_zero_and_one() -> None:
    strata = Strata(((1, 2), (3, 4, 5, 6)), np.array([0.5, 0.0]))
    mixed = [0.98 * 0.5 + 0.02 / 6, 0.02 / 6]
    np.testing.assert_allclose(base_logits(strata), [log(p / (1 - p)) for p in mixed])
    np.testing.assert_allclose(base_logits(Strata(((1,),), np.array([0.0]))), [log(1e-5 / (1 - 1e-5))])


def test_kelly_weights_solve_their_equation() -> None:
    for t in (1e-6, 3e-4, 0.1, 1.0, 30.0, 1e5):
        u = brentq(lambda x, t=t: x - np.log1p(x) - t, 1e-9, 2e5 + 10 * t)
        assert float(_kelly(np.array([t]))[0]) == pytest.approx(u, rel=1e-6)
    assert 1 + 1 / _kelly(np.array([np.inf]))[0] == 1


def state() -> tuple[Wealth, np.ndarray]:
    audit, truth = started(400)
    for _ in range(3):
        audit.answer({task: truth[task] for task in audit.round(25)})
    return audit.wealth, audit.recalibration.rates


def test_the_forecast_is_the_cheapest_by_brute_force() -> None:
    wealth, p = state()
    planned = plan_certificate(wealth, p, 1.0)
    assert planned is not None
    forecast, stakes = planned
    J, R, c, total = wealth.certified, wealth.left, float(wealth.odds), int(wealth.left.sum())
    costs = {}
    for j in range(J - 1, -1, -max(1, J // 8)):
        best = -np.inf
        for tau in (3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, np.inf):
            for phi in (0.02, 0.05, 0.12, 0.3, 0.8):
                w = np.array(
                    [
                        phi * np.sqrt(p[b] * (1 - p[b]) + 0.01) if b <= j else 1 + 1 / _kelly(np.array([tau / p[b]]))[0]
                        for b in range(len(p))
                    ]
                )
                inside, omega = (w * R)[: j + 1].sum(), (w * R).sum()
                if inside < 0.2 * omega:
                    w[: j + 1] *= 0.25 * (omega - inside) / inside
                q = w / (w * R).sum()
                C = wealth.surplus[j] - c * (R * p)[: j + 1].sum()
                top = C + max([1 / q[b] if b > j else c * p[b] / q[b] for b in range(len(p)) if R[b]])
                for gamma in _GAMMAS:
                    g = 0.0
                    for b in range(len(p)):
                        if R[b]:
                            for y, chance in ((1, p[b]), (0, 1 - p[b])):
                                X = C + (y / q[b] if b > j else -c * (y - p[b]) / q[b])
                                g += R[b] * q[b] * chance * log(1 - gamma * X / top)
                    best = max(best, g)
        deficit = max(wealth.threshold - wealth.log_wealth[i] for i in range(j, J) if not wealth.crossed[i])
        n_j = total * (1 - exp(-(deficit / best) / total)) if best > 0 else total
        costs[j] = n_j, n_j + wealth.unreviewed(j)
    cheapest = min(costs, key=lambda j: costs[j][1])
    assert forecast.set_index == cheapest
    assert forecast.reviews == pytest.approx(costs[cheapest][0], rel=1e-6)
    assert forecast.cost == pytest.approx(costs[cheapest][1], rel=1e-6)
    assert forecast.staying == wealth.unreviewed(J)
    size = round(min(max(costs[cheapest][0] / 3, 20), 100)) if forecast.cost < forecast.staying else 0
    assert propose(wealth, p, 1.0, 0).size == size
    assert forecast.pays
    assert set(stakes.gamma.tolist()) <= set(_GAMMAS.tolist())


def test_a_fifth_of_the_draws_goes_to_flagged_items_at_least() -> None:
    wealth, p = state()
    candidates = np.array([2, 5])
    weights, sets = _candidate_weights(wealth, p, candidates)
    assert set(sets.tolist()) == {2, 5}
    for j, w in zip(sets.tolist(), weights, strict=True):
        mass = w * wealth.left
        assert mass[: j + 1].sum() >= 0.2 * mass.sum() - 1e-9


def test_the_estimate_phase_is_a_tenth_within_limits() -> None:
    assert [estimate_phase(n) for n in (50, 400, 5000)] == [20, 40, 100]
    audit, truth = started(400, aim="estimate")
    sizes = []
    for _ in range(2):
        review = audit.round()
        sizes.append(len(review))
        audit.answer({task: truth[task] for task in review})
    assert sizes == [25, 15]


def test_estimates_cover_and_support() -> None:
    covered = reached = 0
    for seed in range(40):
        audit, truth = finished(1000, seed=seed, aim="estimate", budget=100)
        found = audit.estimate_of(audit.supported)
        flagged = audit.final_list(audit.supported)
        assert len(flagged) == found.n_flagged
        covered += found.prevalence.low <= sum(truth) / 1000 <= found.prevalence.high
        reached += sum(truth[task] for task in flagged) >= 0.9 * sum(truth)
    assert covered >= 34  # of 40 at 95 %: less than 1 in 500 otherwise
    assert reached >= 34


def test_nothing_left_to_estimate_is_known_exactly() -> None:
    audit, truth = started(60)
    while review := audit.round(30):
        audit.answer({task: truth[task] for task in review})
    found = audit.estimate
    assert found.prevalence.low == found.prevalence.high == pytest.approx(sum(truth) / 60)
    assert found.recall.low == found.recall.high == 1
    assert found.precision.low == 1
    curve = audit.recalibration
    draws = Estimates(audit.wealth, curve, n_gold=0, seed=[1])
    assert draws.supported(Fraction(9, 10), Fraction(19, 20)) == 0  # every positive is on every list


def test_the_grid_of_stakes_is_frozen() -> None:
    assert _GAMMAS.tolist() == [0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98]


def test_nothing_is_left_to_estimate_after_the_phase() -> None:
    assert [left_to_estimate("estimate", 500, n) for n in (0, 49, 50, 51)] == [50, 1, 0, 0]
    assert left_to_estimate("certificate", 500, 0) == 0


def test_all_weights_that_tie_with_the_best_are_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    wealth, p = state()
    weights = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    growth = np.array([0.5, 0.5 * (1 - 1e-12), 0.4])
    one = Forecast(1, 90.0, 10, 100.0, 500.0), _Tried(weights, growth), 0
    dearer = Forecast(0, 95.0, 10, 105.0, 500.0), _Tried(10 * weights, growth), 0
    monkeypatch.setattr(planning, "_considered", lambda *_: [one, dearer])
    reached, size = choices(wealth, p, 1.0, 0)
    assert {tuple(w) for w in reached} == {(1.0, 2.0), (3.0, 4.0)}
    assert size == 30
    # A set that is won grows without end under any weights: only the planner's own count.
    won = one[0], _Tried(weights, np.full(3, np.inf)), 0
    monkeypatch.setattr(planning, "_considered", lambda *_: [won])
    assert [tuple(w) for w in choices(wealth, p, 1.0, 0)[0]] == [(1.0, 2.0)]
    # While the estimate is served, weights are those of the estimate.
    (only,), size = choices(wealth, p, 1.0, 40)
    assert only == pytest.approx(np.sqrt(p * (1 - p)) + 0.02)
    assert size == 25


def test_only_steps_that_shorten_the_list_are_to_be_bought() -> None:
    ahead = [Forecast(3, 80.4, 500, 0.0, 0.0), Forecast(2, 60.0, 400, 0.0, 0.0), Forecast(1, 900.0, 90, 0.0, 0.0)]
    bought = to_be_bought(Step(100, 700), ahead)
    assert bought == [Step(100, 700), Step(160, 400), Step(1000, 90)]  # 500 after 180 reviews is no gain
    assert to_be_bought(Step(100, 90), ahead) == [Step(100, 90)]


@pytest.mark.parametrize("flag_cost", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(
    ("other", "ties"),
    [
        ({"reviews": 500 * (1 + 1e-10)}, True),
        ({"reviews": 500 * (1 + 1e-7)}, False),
        ({"flagged": 1001}, False),
        ({"reviews": 1e5, "growth": -1e-5}, False),
    ],
)
def test_costs_tie_only_by_the_rounding_of_the_reviews(
    flag_cost: float, other: dict[str, float], *, ties: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to the whole cost, a million flags at a million reviews would hide a thousand reviews."""
    wealth, p = state()

    def considered(reviews: float = 500.0, flagged: float = 1000, growth: float = 0.01) -> tuple[Forecast, _Tried, int]:
        weights = np.full((1, 2), growth + reviews + flagged)
        return (
            Forecast(0, reviews, int(flagged), reviews + flag_cost * flagged, 9e9),
            _Tried(weights, np.array([growth])),
            0,
        )

    monkeypatch.setattr(wealth, "left", np.array([100_000]))
    monkeypatch.setattr(planning, "_considered", lambda *_: [considered(), considered(**other)])
    assert len({tuple(w) for w in choices(wealth, p, flag_cost, 0)[0]}) == 1 + ties


def test_sets_that_need_all_reviews_differ_by_their_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    wealth, p = state()
    total = int(wealth.left.sum())
    tried = [_Tried(np.full((1, 2), float(k)), np.array([-1e-6])) for k in range(2)]
    sets = [(Forecast(0, total, k, total + 1e-6 * k, 9e9), tried[k], 0) for k in range(2)]
    monkeypatch.setattr(planning, "_considered", lambda *_: sets)
    assert {tuple(w) for w in choices(wealth, p, 1e-6, 0)[0]} == {(0.0, 0.0)}
    # A cost beyond all numbers ties with no other.
    sets = [(Forecast(0, total, k, np.inf, np.inf), tried[k], 0) for k in range(2)]
    assert {tuple(w) for w in choices(wealth, p, 1.7e308, 0)[0]} == {(0.0, 0.0)}
