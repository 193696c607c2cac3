"""Anderson's mixing, on a map whose fixed point is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote.em.loop import StoppingRule, run_em
from tests.em.test_em import Counter, Hill, Sums


class Point(NamedTuple):
    at: NDArray[np.float64]
    solving: bool = False


class Valley(Hill):
    """Climbs ``-(x - 3)' (x - 3)`` by steps that are short by a factor of its own in each of three directions."""

    profiles = True
    shares = np.array([0.02, 0.1, 0.4])

    def __init__(self, mislead: float = 1.0) -> None:
        super().__init__(1.0)
        self.mislead = mislead

    def objective(self, shared: Any, stats: Sums) -> float:
        return -float(((shared.at - 3.0) ** 2).sum())

    def update(self, shared: Any, stats: Sums, damping: float) -> Any:
        return Point(shared.at + self.shares * (3.0 - shared.at), shared.solving)

    def coordinates(self, shared: Any) -> Any:
        return shared.at

    def metric(self, stats: Sums) -> NDArray[np.float64]:
        return np.ones(3)

    def profiled(self, coordinates: NDArray[np.float64], like: Any) -> Any:
        return Point(coordinates * self.mislead, True)


START: Any = Point(np.array([0.0, 1.0, -2.0]))
RULE = StoppingRule(3000, 1.0, 1e-16)


def test_a_linear_map_is_solved_in_as_many_steps_as_it_has_factors() -> None:
    outcome = run_em(Valley(), Counter(), START, RULE, accelerate=True)
    slow = run_em(Valley(), Counter(), START, RULE)
    np.testing.assert_allclose(outcome.shared.at, 3.0, atol=1e-7)
    # Three plain steps, a first point, one for each factor, and one to see that nothing moves any more.
    assert outcome.n_iter <= 9
    assert slow.n_iter > 200
    assert outcome.shared.solving
    assert not slow.shared.solving
    assert (np.diff(outcome.history) >= -1e-12).all()


def test_a_mixture_that_falls_is_not_taken() -> None:
    engine = Counter()
    outcome = run_em(Valley(mislead=0.0), engine, START, RULE, accelerate=True)
    assert outcome.n_passes > 1.9 * outcome.n_iter - 10
    assert (engine.jumps, engine.refused, outcome.n_damped) == (0, 0, 0), "local state is left alone"
    assert (np.diff(outcome.history) >= -1e-12).all()
    assert outcome.shared.at == pytest.approx(3.0, abs=1e-3)
