"""The loop behind every method that is fitted by expectation-maximisation.

A method defines three things (:class:`~rarevote.em.model.EMModel`): where to start, what one pass over a
range of tasks computes, and how the sums of all passes change the shared parameters. The loop decides whether a step
is accepted, when to stop, and what to report.

A pass evaluates the objective at the current parameters, so the effect of a step is known one pass later.
If the objective fell, the loop returns to the parameters before that step and repeats it, damped, until it
rises: the history never falls beyond rounding. With a damping of one or more, a model must guarantee ascent.

With the posterior frozen, repeated passes solve the maximisation step to a gradient tolerance (``exact=True``);
otherwise each pass refreshes the posterior and takes one step (generalised EM).

EM is slow if there is little information. With ``accelerate=True``, every second step is extrapolated, or, for a model
whose passes solve for the local parameters, every step is a mixture of the last steps
(:mod:`rarevote.em.acceleration`). A jump that lowers the objective is rejected.

A fit can be saved and resumed (``checkpoint=``). It is saved right after an evaluation, and extrapolation restarts
there, interrupted or not: so there is little state to save, and a resumed fit equals an uninterrupted one exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf, isfinite
from typing import TYPE_CHECKING, Generic

from rarevote.em.acceleration import Anderson, Squarem
from rarevote.em.checkpoint import LoopState
from rarevote.em.engine import Engine
from rarevote.em.model import EMModel, Local, Shared, Stats
from rarevote.errors import RarevoteError

if TYPE_CHECKING:
    from rarevote.em.checkpoint import Checkpoint

_MAX_DAMPINGS = 40
_MAX_INNER_PASSES = 500
_MIN_INNER_PASSES = 8  # after such steps did not converge
# Passes of a maximisation step without a gain before it counts as solved.
_MAX_IDLE_PASSES = 5
# The first steps are far from the geometric convergence that a jump assumes.
_FIRST_JUMP = 3


class Status(Enum):
    """How a fit ended; the value is the message."""

    CONVERGED = "converged"
    LIMIT = "reached the iteration limit before the stopping rule was met"
    STALLED = "no step raises the objective any more"


@dataclass(frozen=True)
class StoppingRule:
    """When to stop: both conditions must hold, on consecutive iterations.

    Attributes:
        n_iter: the largest number of iterations.
        max_change: largest change of a posterior probability that counts as no change; infinity to ignore it.
        min_gain: smallest gain of the stopping value that counts as progress; 0 never stops.
    """

    n_iter: int
    max_change: float
    min_gain: float

    def met(self, change: float, gain: float) -> bool:
        """Whether both conditions hold."""
        # At the optimum, the gain is rounding and can be negative: without the first test, 0 would stop there.
        return self.min_gain > 0.0 and change < self.max_change and gain < self.min_gain


@dataclass(frozen=True)
class Progress:
    """The argument of a callback, after each iteration.

    Attributes:
        iteration: number of iterations so far.
        n_iter: the largest number of iterations.
        objective: the objective, which the fit maximises; NaN in a stage.
        change: the largest change of a probability, or of a score in a stage.
        stage: the name of a stage outside the EM loop: "features".
    """

    iteration: int
    n_iter: int
    objective: float
    change: float
    stage: str = ""


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome(Generic[Shared]):
    """Where a fit ended.

    ``shared`` are the parameters behind the last posterior; ``updated`` the parameters that follow from it.
    The engine's proposed local state holds that posterior, and its current one the local parameters behind it.
    """

    shared: Shared
    updated: Shared
    history: list[float]
    values: list[float]
    n_iter: int
    n_passes: int
    n_damped: int
    status: Status


def run_em(
    model: EMModel[Shared, Local, Stats],
    engine: Engine[Shared, Local, Stats],
    shared: Shared,
    rule: StoppingRule,
    *,
    exact: bool = False,
    gradient_tolerance: float = 1e-6,
    accelerate: bool = False,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> Outcome[Shared]:
    """Fit ``model`` on ``engine`` from ``shared`` until ``rule`` is met.

    Args:
        model: what to fit.
        engine: the engine that runs it.
        shared: starting parameters.
        rule: when to stop.
        exact: solve every maximisation step to ``gradient_tolerance`` with the posterior frozen.
        gradient_tolerance: Euclidean norm of the gradient at which a maximisation step counts as solved.
        accelerate: extrapolate steps; the model must define the functions for that.
        callback: called after every iteration.
        checkpoint: saves the fit at intervals; a saved fit is resumed.
    """
    loop = _Loop(model, engine, shared, exact, gradient_tolerance, accelerate and not exact)
    history: list[float] = []
    values: list[float] = []
    status = Status.LIMIT
    if rule.n_iter == 0:  # the start, and the parameters that follow from it
        stats, _ = loop.evaluate(refresh=False)
        return Outcome(shared, model.update(shared, stats, 0.0), [], [], 0, loop.n_passes, 0, status)
    saved = None if checkpoint is None else checkpoint.load(engine, shared)
    if saved is None:
        loop.maximise(refresh=False)
    else:
        history, values = list(saved.history), list(saved.values)
        loop.resume(saved)
    while True:
        stats, change = loop.evaluate(refresh=True)
        updated = model.update(loop.shared, stats, 0.0)
        history.append(loop.objective)
        values.append(model.stopping_value(loop.shared, updated, stats, loop.objective))
        if callback is not None:
            callback(Progress(len(history), rule.n_iter, loop.objective, change))
        gain = values[-1] - values[-2] if len(values) > 1 else inf
        if loop.stalled:
            status = Status.STALLED
            break
        if rule.met(change, gain):
            status = Status.CONVERGED
            break
        if len(history) >= rule.n_iter:
            break
        if checkpoint is not None and checkpoint.due(len(history)):
            checkpoint.save(engine, loop.state(history, values))
        loop.may_jump = len(history) >= _FIRST_JUMP
        loop.take_step(updated, stats, refresh=True)
    return Outcome(loop.shared, updated, history, values, len(history), loop.n_passes, loop.n_damped, status)


class _Loop(Generic[Shared, Local, Stats]):
    """The state of a running fit: evaluate, step, and step back if the objective fell."""

    def __init__(
        self,
        model: EMModel[Shared, Local, Stats],
        engine: Engine[Shared, Local, Stats],
        shared: Shared,
        exact: bool,
        gradient_tolerance: float,
        accelerate: bool,
    ) -> None:
        self.model, self.engine, self.shared = model, engine, shared
        self.exact, self.gradient_tolerance = exact, gradient_tolerance
        self.accelerate, self.may_jump = accelerate, False
        self._inner_passes = _MAX_INNER_PASSES
        self.objective = -inf
        self.n_passes = self.n_damped = 0
        self.stalled = False
        self._previous: tuple[Shared, bool] | None = None
        self._plain: Shared | None = None  # the result of the last step without the jump
        self._accelerator = Anderson(model) if model.profiles else Squarem(model, engine)

    def state(self, history: list[float], values: list[float]) -> LoopState[Shared]:
        """What to save after an evaluation, which a resumed fit repeats; extrapolation restarts here."""
        self._accelerator.restart()
        done = (history[:-1], values[:-1], self.n_passes - 1, self.n_damped)
        return LoopState(self.shared, *done, self._accelerator.limit)

    def resume(self, saved: LoopState[Shared]) -> None:
        """Restore the saved state of a fit, just before its last evaluation."""
        self.shared, self._accelerator.limit = saved.shared, saved.longest
        self.n_passes, self.n_damped = saved.n_passes, saved.n_damped

    def _run(self, refresh: bool, damping: float = 0.0) -> tuple[Stats, float, float]:
        stats, change = self.engine.run(self.shared, refresh=refresh, damping=damping)
        self.n_passes += 1
        objective = self.model.objective(self.shared, stats)
        if not isfinite(objective):
            raise RarevoteError(
                f"the objective became {objective} in pass {self.n_passes}: the parameters are too extreme for these "
                "data (try smaller sigma values)"
            )
        return stats, change, objective

    def evaluate(self, *, refresh: bool) -> tuple[Stats, float]:
        """One pass at the current parameters; if the objective fell since the last pass, step back and damp first."""
        stats, change, objective = self._run(refresh)
        if self._plain is not None and self._fell(objective):
            self._accelerator.refuse()
            self.shared = self._plain
            stats, change, objective = self._run(refresh)
        self._plain = None
        damping = 1.0
        for _ in range(_MAX_DAMPINGS):
            if self._previous is None or not self._fell(objective):
                self.objective = objective
                return stats, change
            self._retake(damping)
            stats, change, objective = self._run(refresh)
            damping *= 2.0
        # Even a tiny step does not raise the objective: stay where it was highest.
        self.engine.retreat()
        self.shared = self._previous[0]  # type: ignore[index]
        self._previous = None
        stats, change, self.objective = self._run(refresh)
        self.stalled = True
        return stats, change

    def _fell(self, objective: float) -> bool:
        return objective < self.objective - self.model.rounding * (1.0 + abs(self.objective))

    def _retake(self, damping: float) -> None:
        assert self._previous is not None
        self._accelerator.restart()
        self.engine.retreat()
        self.shared, refreshed = self._previous
        stats, _, _ = self._run(refreshed, damping)
        self.shared = self.model.update(self.shared, stats, damping)
        self.engine.advance()
        self.n_damped += 1

    def advance(self, updated: Shared, *, refreshed: bool) -> None:
        """Move to ``updated`` and the local state proposed by the last pass."""
        self._previous = (self.shared, refreshed)
        self.shared = updated
        self.engine.advance()

    def maximise(self, *, refresh: bool) -> None:
        """Evaluate, then step: once, or with the posterior frozen until the gradient vanishes."""
        stats, _ = self.evaluate(refresh=refresh)
        self.take_step(self.model.update(self.shared, stats, 0.0), stats, refresh=refresh)

    def take_step(self, updated: Shared, stats: Stats, *, refresh: bool) -> None:
        """Take the step that the last evaluation proposed, or a longer one; with ``exact``, as many as needed."""
        jump = None
        if self.accelerate and self.may_jump:
            previous = self._previous and self._previous[0]
            jump = self._accelerator.extrapolated(previous, self.shared, updated, stats)
            self._plain = None if jump is None else updated
        self.advance(updated if jump is None else jump, refreshed=refresh)
        if not self.exact:
            return
        idle = 0
        for _ in range(self._inner_passes):
            before = self.objective
            stats, _ = self.evaluate(refresh=False)
            if self.stalled:
                self.stalled = False  # solved to rounding, which does not carry over to the next posterior
                return
            if self.model.gradient_norm(self.shared, stats) <= self.gradient_tolerance:
                return
            # Rounding can keep the gradient of a large or extreme problem above any tolerance: then the objective stops
            # rising.
            idle = 0 if self.objective > before else idle + 1
            if idle >= _MAX_IDLE_PASSES:
                return
            self.advance(self.model.update(self.shared, stats, 0.0), refreshed=False)
        # A maximisation step that was not solved is not fatal: the next ones continue from here.
        self._inner_passes = max(self._inner_passes // 4, _MIN_INNER_PASSES)
