"""The loop alone, on a model small enough to follow by hand."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from rarevote.em.engine import Engine
from rarevote.em.loop import Progress, Status, StoppingRule, run_em
from rarevote.em.model import EMModel
from rarevote.errors import RarevoteError


class Sums(NamedTuple):
    gradient: np.ndarray[Any, Any]


class Hill(EMModel[float, Any, Sums]):
    """Climbs ``-(x - 3)**2`` from 0 by steps that overshoot ``stretch`` times; damping shortens them."""

    def __init__(self, stretch: float, broken: bool = False, missing: float = 1.0) -> None:
        self.stretch, self.broken, self.missing = stretch, broken, missing

    def start(self) -> float:
        raise NotImplementedError

    def start_local(self, shard: Any) -> Any:
        raise NotImplementedError

    def empty_stats(self, shared: float) -> Sums:
        return Sums(np.zeros(1))

    def step(self, *_: Any) -> float:
        raise NotImplementedError

    def objective(self, shared: float, stats: Sums) -> float:
        return float("nan") if self.broken and shared != 0 else -((shared - 3.0) ** 2)

    def update(self, shared: float, stats: Sums, damping: float) -> float:
        stretch = self.stretch if damping == 0 else min(self.stretch, 0.9 / damping)
        return shared + stretch * (3.0 - shared)

    def gradient_norm(self, shared: float, stats: Sums) -> float:
        return abs(2 * (3.0 - shared))

    def local_offsets(self, shared: float) -> tuple[Any, ...]:
        return ()

    def shared_distances(self, first: float, second: float, third: float) -> tuple[float, float]:
        return (second - first) ** 2, (third - 2 * second + first) ** 2

    def extrapolate(self, points: tuple[float, float, float], length: float, means: tuple[Any, ...]) -> float:
        first, second, third = points
        return first + 2 * length * (second - first) + length**2 * (third - 2 * second + first) * self.missing

    def stopping_value(self, shared: float, updated: float, stats: Sums, objective: float) -> float:
        return objective


class Counter(Engine[float, Any, Sums]):
    def __init__(self) -> None:
        self.calls: list[tuple[float, bool, float]] = []
        self.depth = self.jumps = self.refused = 0

    def run(self, shared: float, *, refresh: bool, damping: float) -> tuple[Sums, float]:
        self.calls.append((shared, refresh, damping))
        return Sums(np.zeros(1)), 1e-9

    def advance(self) -> None:
        self.depth += 1

    def retreat(self) -> None:
        self.depth -= 1

    def local_distances(self, offsets: Any) -> tuple[float, float]:
        return 0.0, 0.0

    def extrapolate(self, offsets: Any, length: float) -> tuple[Any, ...]:
        self.jumps += 1
        return ()

    def take_plain(self) -> None:
        self.refused += 1


def test_a_falling_step_is_taken_back_and_damped() -> None:
    engine = Counter()
    outcome = run_em(Hill(2.5), engine, 0.0, StoppingRule(50, 1.0, 1e-12))
    assert outcome.status is Status.CONVERGED
    assert (np.diff(outcome.history) >= -1e-12).all()
    assert outcome.n_damped > 0
    assert outcome.shared == pytest.approx(3.0, abs=1e-5)
    assert engine.calls[0][1:] == (False, 0.0)  # the first pass keeps the posterior it was given
    assert any(damping >= 1 for _, _, damping in engine.calls)


def test_a_good_step_is_never_damped() -> None:
    outcome = run_em(Hill(0.5), Counter(), 0.0, StoppingRule(100, 1.0, 1e-9))
    assert outcome.n_damped == 0
    assert outcome.n_passes == outcome.n_iter + 1


def test_a_tolerance_of_zero_never_stops() -> None:
    assert run_em(Hill(1.0), Counter(), 0.0, StoppingRule(30, np.inf, 0.0)).n_iter == 30
    assert run_em(Hill(1.0), Counter(), 0.0, StoppingRule(30, 0.0, 1.0)).n_iter == 30


def test_the_limit_is_a_status() -> None:
    assert run_em(Hill(0.1), Counter(), 0.0, StoppingRule(3, 1.0, 1e-12)).status is Status.LIMIT


def test_exact_m_steps_go_on_until_the_gradient_vanishes() -> None:
    engine = Counter()
    outcome = run_em(Hill(0.5), engine, 0.0, StoppingRule(5, 1.0, 1e-3), exact=True, gradient_tolerance=1e-6)
    assert abs(outcome.shared - 3.0) <= 1e-6
    frozen = [refresh for _, refresh, _ in engine.calls]
    assert frozen.count(False) > 15
    assert outcome.n_iter <= 2


def test_steps_that_can_only_fall_stall_at_the_best_point() -> None:
    class Cliff(Hill):
        def update(self, shared: float, stats: Sums, damping: float) -> float:
            return shared - 1.0

    outcome = run_em(Cliff(1.0), Counter(), 3.0, StoppingRule(50, 1.0, 1e-12))
    assert outcome.status is Status.STALLED
    assert outcome.shared == 3.0


def test_numbers_that_are_none_are_an_error() -> None:
    with pytest.raises(RarevoteError, match="the objective became nan in pass 2"):
        run_em(Hill(1.0, broken=True), Counter(), 0.0, StoppingRule(5, 1.0, 1e-12))


def test_callback() -> None:
    told: list[Progress] = []
    outcome = run_em(Hill(0.5), Counter(), 0.0, StoppingRule(9, 1.0, 1e-12), callback=told.append)
    assert [progress.iteration for progress in told] == list(range(1, outcome.n_iter + 1))
    assert [progress.objective for progress in told] == outcome.history


def test_jumps_save_passes_and_end_at_the_same_top() -> None:
    plain, engine = Counter(), Counter()
    slow = run_em(Hill(0.05), plain, 0.0, StoppingRule(2000, 1.0, 1e-12))
    fast = run_em(Hill(0.05), engine, 0.0, StoppingRule(2000, 1.0, 1e-12), accelerate=True)
    assert engine.jumps > 0
    assert plain.jumps == 0
    assert fast.n_passes < 0.3 * slow.n_passes
    assert (np.diff(fast.history) >= -1e-12).all()
    assert fast.shared == pytest.approx(3.0, abs=1e-5)


def test_a_jump_that_falls_is_not_taken() -> None:
    engine = Counter()
    outcome = run_em(Hill(0.05, missing=0.0), engine, 0.0, StoppingRule(2000, 1.0, 1e-12), accelerate=True)
    assert engine.refused > 0
    assert outcome.n_damped == 0
    assert (np.diff(outcome.history) >= -1e-12).all()
    assert outcome.shared == pytest.approx(3.0, abs=1e-4)
