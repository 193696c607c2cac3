"""The one loop behind every method that is fitted by expectation and maximisation.

A method states three things and never loops (:class:`Model`): where to start, what one pass over a run of tasks
computes, and how the sums of all passes change the shared parameters. The loop decides whether a step counts, when
to stop, and what to report.

A pass evaluates the objective at the parameters that came in, so whether a step was good is known one pass later.
If the objective fell, the loop goes back to the parameters before that step and takes it again, damped, until it
rises: the history never falls beyond rounding. With a damping of one or more a model must promise ascent.

With the posterior frozen, repeated passes solve the maximisation step to a gradient tolerance (``exact=True``);
otherwise each pass refreshes the posterior and takes one step (generalised EM).

EM creeps where little is known. With ``accelerate=True`` every second step is lengthened (SQUAREM, Varadhan and
Roland 2008): from three consecutive points ``t0, t1, t2`` with ``r = t1 - t0`` and ``v = (t2 - t1) - r`` the loop jumps
to ``t0 + 2 a r + a^2 v``, ``a = |r| / |v|``, over shared and local parameters alike. Local state needs nothing but two
sums to agree on ``a``. A jump that lowers the objective is not taken.

A fit can be kept and gone on with (``checkpoint=``). That happens right after an evaluation, and lengthening begins
anew there, interrupted or not: little state is alive then, and a resumed fit equals an undisturbed one bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from math import inf, isfinite, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.em.checkpoint import LoopState
from rarevote.errors import RarevoteError

if TYPE_CHECKING:
    from rarevote.em.checkpoint import Checkpoint

FloatArray = NDArray[Any]

Shared = TypeVar("Shared")
Local = TypeVar("Local", bound=tuple[Any, ...])
Stats = TypeVar("Stats", bound=tuple[Any, ...])

Offsets = tuple[tuple[FloatArray, ...], tuple[FloatArray, ...], tuple[FloatArray, ...]]

_MOST_DAMPINGS = 40
_MOST_INNER_PASSES = 500
# The first steps are far from the geometric regime that a jump assumes.
_FIRST_JUMP = 3
# A jump may be this many steps long; the limit grows while jumps reach it and shrinks when one is not taken.
_SHORTEST_LIMIT = 4.0
_LIMIT_FACTOR = 4.0
# The objective is a sum of as many terms as there are annotations: this is its rounding, relative to its size.
_ROUNDING = 1e-12


class Shard(NamedTuple):
    """A run of tasks, as views into the whole."""

    task_ptr: NDArray[np.int64]
    worker: NDArray[Any]
    label: NDArray[Any]
    gold: NDArray[np.int32]

    def votes(self, n_classes: int) -> NDArray[np.float64]:
        """Votes per task and class, (n, K)."""
        from rarevote.kernels.encode import count_votes

        counted = np.zeros((self.task_ptr.size - 1, n_classes))
        count_votes(self.task_ptr, self.label, np.empty(0), counted)
        return counted


class Model(Protocol[Shared, Local, Stats]):
    """What an EM method states.

    ``Local`` and ``Stats`` are named tuples of arrays. Those of ``Local`` have one row per task, the posterior
    first; they stay with their shard. Those of ``Stats`` are sums over tasks, so that threads, files and machines
    are only different ways of adding.
    """

    def start(self, annotations: Annotations) -> Shared:
        """Shared parameters to begin with."""

    def start_local(self, shard: Shard) -> Local:
        """Local state of a shard to begin with: the soft majority vote, gold imposed."""

    def empty_stats(self, shared: Shared) -> Stats:
        """Zeros to add to."""

    def step(
        self,
        shared: Shared,
        shard: Shard,
        local: Local,
        out: Local,
        stats: Stats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One pass over a shard: write its new local state to ``out``, add to ``stats``.

        Returns:
            The largest change of any posterior probability.
        """

    def objective(self, shared: Shared, stats: Stats) -> float:
        """The penalised log likelihood at ``shared`` and the local state that came in."""

    def update(self, shared: Shared, stats: Stats, damping: float) -> Shared:
        """New shared parameters from the sums."""

    def gradient_norm(self, shared: Shared, stats: Stats) -> float:
        """Euclidean norm of the gradient that is left in the maximisation step (used with ``exact=True``)."""

    def stopping_value(self, shared: Shared, updated: Shared, stats: Stats, objective: float) -> float:
        """The value whose gain the stopping rule looks at; the objective, unless history has it otherwise."""

    # A model whose local state is stored with less than double precision has a property ``rounding`` that says how
    # far, relative to its size, the objective may fall for that reason.


class AcceleratedModel(Model[Shared, Local, Stats], Protocol):
    """A model whose parameters can be extrapolated. The posterior takes no part: it follows from the parameters."""

    def local_offsets(self, shared: Shared) -> tuple[FloatArray, ...]:
        """What has to be added to each local array but the posterior to give the parameters that it stands for."""

    def shared_distances(self, first: Shared, second: Shared, third: Shared) -> tuple[float, float]:
        """Squared norms of ``second - first`` and of ``third - 2 second + first``."""

    def extrapolate(
        self, points: tuple[Shared, Shared, Shared], length: float, local_means: tuple[FloatArray, ...]
    ) -> Shared:
        """Shared parameters at the far point; ``local_means`` are the means of the extrapolated local arrays."""


class Engine(ABC, Generic[Shared, Local, Stats]):
    """Runs a model's step over all shards and keeps the local state: as it was, as it is, as proposed."""

    @abstractmethod
    def run(self, shared: Shared, *, refresh: bool, damping: float) -> tuple[Stats, float]:
        """One pass; returns the sums over all shards and the largest change of a posterior probability."""

    @abstractmethod
    def advance(self) -> None:
        """Make the proposed local state the current one."""

    @abstractmethod
    def retreat(self) -> None:
        """Go back to the local state before the last advance."""

    @abstractmethod
    def local_distances(self, offsets: Offsets) -> tuple[float, float]:
        """As ``shared_distances``, summed over the local parameters as they were, are, and are proposed."""

    @abstractmethod
    def extrapolate(self, offsets: Offsets, length: float) -> tuple[FloatArray, ...]:
        """Propose the far point in place of what is proposed, which is kept aside; returns the means of each array."""

    @abstractmethod
    def take_plain(self) -> None:
        """After an advance to the far point: make what was kept aside the current state instead."""

    def save(self, folder: Path) -> None:
        """Write the current local state to files in ``folder``."""
        raise RarevoteError(f"{type(self).__name__} keeps no checkpoints")

    def load(self, folder: Path) -> None:
        """Take the current local state from the files that :meth:`save` wrote."""
        raise RarevoteError(f"{type(self).__name__} keeps no checkpoints")


class Status(Enum):
    """How a fit ended; the value is the message."""

    CONVERGED = "converged"
    LIMIT = "reached the iteration limit before the stopping rule was met"
    STALLED = "no step raises the objective any more"


@dataclass(frozen=True)
class StoppingRule:
    """When to stop: both conditions, each on consecutive iterations.

    Attributes:
        n_iter: the most iterations.
        max_change: largest change of a posterior probability that counts as none; infinity to ignore it.
        min_gain: smallest gain of the stopping value that counts as progress; 0 never stops.
    """

    n_iter: int
    max_change: float
    min_gain: float

    def met(self, change: float, gain: float) -> bool:
        """Whether both conditions hold."""
        # At the top the gain is rounding and may be negative: without the first test, 0 would stop there.
        return self.min_gain > 0.0 and change < self.max_change and gain < self.min_gain


@dataclass(frozen=True)
class Progress:
    """What a callback is told after each iteration."""

    iteration: int
    n_iter: int
    objective: float
    change: float


Callback = Callable[[Progress], None]


@dataclass(frozen=True)
class Outcome(Generic[Shared]):
    """Where a fit ended.

    ``shared`` are the parameters of the last posterior; ``updated`` the parameters that the last posterior gives.
    The engine's proposed local state holds that posterior, its current one the local parameters behind it.
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
    model: Model[Shared, Local, Stats],
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
        engine: where to run it.
        shared: parameters to begin with.
        rule: when to stop.
        exact: solve every maximisation step to ``gradient_tolerance`` with the posterior frozen.
        gradient_tolerance: Euclidean norm of the gradient at which a maximisation step counts as solved.
        accelerate: lengthen every second step; the model must be an :class:`AcceleratedModel`.
        callback: told about every iteration.
        checkpoint: keeps the fit now and then; what it has kept is gone on with.
    """
    loop = _Loop(model, engine, shared, exact, gradient_tolerance, accelerate and not exact)
    history: list[float] = []
    values: list[float] = []
    status = Status.LIMIT
    kept = None if checkpoint is None else checkpoint.load(engine, shared)
    if kept is None:
        loop.maximise(refresh=False)
    else:
        history, values = list(kept.history), list(kept.values)
        loop.go_on_from(kept)
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
        loop.take_step(updated, refresh=True)
    return Outcome(loop.shared, updated, history, values, len(history), loop.n_passes, loop.n_damped, status)


class _Loop(Generic[Shared, Local, Stats]):
    """The state of a running fit: evaluate here, step, and step back if the objective fell."""

    def __init__(
        self,
        model: Model[Shared, Local, Stats],
        engine: Engine[Shared, Local, Stats],
        shared: Shared,
        exact: bool,
        gradient_tolerance: float,
        accelerate: bool,
    ) -> None:
        self.model, self.engine, self.shared = model, engine, shared
        self.exact, self.gradient_tolerance = exact, gradient_tolerance
        self.accelerate, self.may_jump = accelerate, False
        self._rounding = float(getattr(model, "rounding", _ROUNDING))
        self.objective = -inf
        self.n_passes = self.n_damped = 0
        self.stalled = False
        self._before: tuple[Shared, bool] | None = None
        self._plain: Shared | None = None  # where the last step would have led without the jump
        self._since_jump = 0
        self._longest = _SHORTEST_LIMIT

    def state(self, history: list[float], values: list[float]) -> LoopState[Shared]:
        """What to keep after an evaluation, which a resumed fit repeats; lengthening begins anew here."""
        self._since_jump = 0
        return LoopState(self.shared, history[:-1], values[:-1], self.n_passes - 1, self.n_damped, self._longest)

    def go_on_from(self, kept: LoopState[Shared]) -> None:
        """Be where a fit was kept, just before its last evaluation."""
        self.shared, self._longest = kept.shared, kept.longest
        self.n_passes, self.n_damped = kept.n_passes, kept.n_damped

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
        """One pass at the current parameters; if the objective fell since the last, step back and damp first."""
        stats, change, objective = self._run(refresh)
        if self._plain is not None and self._fell(objective):
            self.engine.take_plain()
            self.shared = self._plain
            self._longest = max(_SHORTEST_LIMIT, self._longest / _LIMIT_FACTOR)
            stats, change, objective = self._run(refresh)
        self._plain = None
        damping = 1.0
        for _ in range(_MOST_DAMPINGS):
            if self._before is None or not self._fell(objective):
                self.objective = objective
                return stats, change
            self._retake(damping)
            stats, change, objective = self._run(refresh)
            damping *= 2.0
        # Not even a tiny step rises: stay where the objective was highest.
        self.engine.retreat()
        self.shared = self._before[0]  # type: ignore[index]
        self._before = None
        stats, change, self.objective = self._run(refresh)
        self.stalled = True
        return stats, change

    def _fell(self, objective: float) -> bool:
        return objective < self.objective - self._rounding * (1.0 + abs(self.objective))

    def _retake(self, damping: float) -> None:
        assert self._before is not None
        self._since_jump = 0
        self.engine.retreat()
        self.shared, refreshed = self._before
        stats, _, _ = self._run(refreshed, damping)
        self.shared = self.model.update(self.shared, stats, damping)
        self.engine.advance()
        self.n_damped += 1

    def advance(self, updated: Shared, *, refreshed: bool) -> None:
        """Move to ``updated`` and the local state proposed by the last pass."""
        self._before = (self.shared, refreshed)
        self.shared = updated
        self.engine.advance()

    def maximise(self, *, refresh: bool) -> None:
        """Evaluate, then step: once, or with the posterior frozen until the gradient vanishes."""
        stats, _ = self.evaluate(refresh=refresh)
        self.take_step(self.model.update(self.shared, stats, 0.0), refresh=refresh)

    def take_step(self, updated: Shared, *, refresh: bool) -> None:
        """Take the step that the last evaluation proposed, or a longer one; with ``exact``, as many as it takes."""
        target = updated
        if self.accelerate and self.may_jump:
            target = self._lengthened(updated)
        self.advance(target, refreshed=refresh)
        if not self.exact:
            return
        for _ in range(_MOST_INNER_PASSES):
            stats, _ = self.evaluate(refresh=False)
            if self.stalled:
                self.stalled = False  # solved to rounding, which says nothing about the next posterior
                return
            if self.model.gradient_norm(self.shared, stats) <= self.gradient_tolerance:
                return
            self.advance(self.model.update(self.shared, stats, 0.0), refreshed=False)

    def _lengthened(self, updated: Shared) -> Shared:
        """Where to go from three consecutive points: far ahead every second time, else the plain step."""
        self._since_jump += 1
        if self._since_jump < 2 or self._before is None:
            return updated
        model = cast("AcceleratedModel[Shared, Local, Stats]", self.model)
        points = (self._before[0], self.shared, updated)
        offsets = cast("Offsets", tuple(model.local_offsets(point) for point in points))
        ours, theirs = model.shared_distances(*points), self.engine.local_distances(offsets)
        first, second = ours[0] + theirs[0], ours[1] + theirs[1]
        length = sqrt(first / second) if second > 0.0 else 1.0
        if length >= self._longest:
            length = self._longest
            self._longest *= _LIMIT_FACTOR
        if length <= 1.0:
            return updated  # not longer than the step itself
        self._since_jump = 0
        self._plain = updated
        return model.extrapolate(points, length, self.engine.extrapolate(offsets, length))
