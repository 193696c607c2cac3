"""What an EM method states: facts of a crowd, shards of it, the model that a pass runs over them; and its shortcuts.

**SQUAREM** (Varadhan and Roland 2008): every second step of a creeping EM is extrapolated. From three consecutive
points ``t0, t1, t2`` with ``r = t1 - t0`` and ``v = (t2 - t1) - r`` the loop jumps to ``t0 + 2 a r + a^2 v``, ``a = |r|
/ |v|``, over shared and local parameters alike. Local state needs nothing but two sums to agree on ``a``.

**Anderson's mixing** (1965) of the shared parameters, for models that profile their local ones out. With local
parameters at their best for given shared ones, EM is a map of the shared parameters alone, ``x -> G(x)``. From the last
few points ``x_j`` with steps ``f_j = G(x_j) - x_j`` the loop goes to

    G(x) - sum_j c_j (dx_j + df_j),    c = the least squares of  f - sum_j c_j df_j

where ``dx_j`` and ``df_j`` are differences of consecutive points and steps. Nothing is kept per task: the local state
that a pass proposes is the same whether the shared parameters are mixed or not, so that a mixture that lowers the
objective is taken back by taking the plain step instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import sqrt
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import dot, normalise_rows
from rarevote.kernels import plain

if TYPE_CHECKING:
    from rarevote.em.engine import Engine
    from rarevote.kernels.blocks import Blocks

FloatArray = NDArray[Any]

Shared = TypeVar("Shared")
Local = TypeVar("Local", bound=tuple[Any, ...])
Stats = TypeVar("Stats", bound=tuple[Any, ...])

# What to add to each local array of three consecutive points.
Offsets = tuple[tuple[FloatArray, ...], tuple[FloatArray, ...], tuple[FloatArray, ...]]


class CrowdFacts(Protocol):
    """What a model is built from: sizes and names, and nothing that there is one of per task.

    :class:`~rarevote.crowd.annotations.Annotations` has it, and so has a crowd whose votes are on other machines.
    """

    @property
    def n_tasks(self) -> int:
        """Number of tasks with at least one vote."""

    @property
    def n_workers(self) -> int:
        """Number of workers."""

    @property
    def n_classes(self) -> int:
        """Number of classes."""

    @property
    def n_annotations(self) -> int:
        """Number of votes."""

    @property
    def workers(self) -> NDArray[Any]:
        """Names of the workers, sorted."""

    @property
    def classes(self) -> NDArray[Any]:
        """Names of the classes, sorted."""


class _Votes(NamedTuple):
    task_ptr: NDArray[np.int64]  # (n + 1), absolute positions into worker and label
    worker: NDArray[Any]
    label: NDArray[Any]
    gold: NDArray[np.int32]  # (n), the known class or -1; or of size 0


class Shard(_Votes):
    """A run of tasks, as views into the whole."""

    @cached_property
    def blocks(self) -> Blocks:
        """The votes as compiled passes want them, laid out once; see :mod:`rarevote.kernels.blocks`."""
        from rarevote.kernels.blocks import blocks_of

        return blocks_of(self.task_ptr, self.worker, self.label)

    @cached_property
    def rows(self) -> plain.VoteRows:
        """The votes as passes in NumPy want them."""
        return plain.VoteRows(self.task_ptr, self.worker, self.label)

    @property
    def nbytes(self) -> int:
        """Bytes of the votes, laid out in blocks or not."""
        laid_out = self.blocks if "blocks" in self.__dict__ else ()
        return sum(array.nbytes for array in (*self, *laid_out))

    def votes(self, n_classes: int) -> NDArray[np.float64]:
        """Votes per task and class, (n, K)."""
        counted = np.zeros((self.task_ptr.size - 1, n_classes))
        plain.count_votes(self.task_ptr, self.label, np.empty(0), counted)
        return counted

    @property
    def n_votes(self) -> int:
        """Number of votes on its tasks."""
        return int(self.task_ptr[-1] - self.task_ptr[0])

    @property
    def is_small(self) -> bool:
        """Whether its passes are done in NumPy; see :mod:`rarevote.kernels.plain`."""
        return plain.is_small(self.n_votes)


class Start(Protocol):
    """How the tasks of a shard begin: all that a method without a loop states."""

    def start_local(self, shard: Shard) -> Any:
        """Local state of a shard to begin with, the posterior first."""


class Model(Protocol[Shared, Local, Stats]):
    """What an EM method states.

    ``Local`` and ``Stats`` are named tuples of arrays. Those of ``Local`` have one row per task, the posterior
    first; they stay with their shard. Those of ``Stats`` are sums over tasks, so that threads, files and machines
    are only different ways of adding.
    """

    def start(self) -> Shared:
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

    # A model that asks for no posterior but that of the last pass has a property ``one_posterior`` that says so.
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
        """Shared parameters at the extrapolated point; ``local_means`` are the means of the local arrays there."""


def squared_distances(
    first: Iterable[FloatArray], second: Iterable[FloatArray], third: Iterable[FloatArray]
) -> tuple[float, float]:
    """Squared norms of ``second - first`` and of ``third - 2 second + first`` over all arrays."""
    near = far = 0.0
    for t0, t1, t2 in zip(first, second, third, strict=True):
        r = t1 - t0
        v = (t2 - t1) - r
        near += dot(r, r)
        far += dot(v, v)
    return near, far


class ProfiledModel(Model[Shared, Local, Stats], Protocol):
    """A model whose passes can solve for the local parameters, so that only the shared ones are left to accelerate."""

    @property
    def profiles(self) -> bool:
        """Whether to do so; else it is an :class:`AcceleratedModel`."""

    def coordinates(self, shared: Shared) -> NDArray[np.float64]:
        """All shared parameters as one vector."""

    def metric(self, stats: Stats) -> NDArray[np.float64]:
        """How much each coordinate counts: about the curvature of the objective along it."""

    def profiled(self, coordinates: NDArray[np.float64], like: Shared) -> Shared:
        """Shared parameters at ``coordinates``, from where on passes solve for local parameters.

        What takes no part, as what depends on the local state alone, is that of ``like``.
        """


def soft_majority(shard: Shard, n_classes: int) -> NDArray[np.float64]:
    """Vote shares per task, (n, K); a gold task is certain of its class."""
    shares = normalise_rows(shard.votes(n_classes))
    if shard.gold.size:
        known = np.flatnonzero(shard.gold >= 0)
        shares[known] = 0.0
        shares[known, shard.gold[known]] = 1.0
    return shares


# A jump may be this many steps long; the limit grows while jumps reach it and shrinks when one is not taken.
_SHORTEST_LIMIT = 4.0
_LIMIT_FACTOR = 4.0


class Squarem(Generic[Shared, Stats]):
    """Decides when to jump, and how far."""

    def __init__(self, model: AcceleratedModel[Shared, Any, Stats], engine: Engine[Shared, Any, Stats]) -> None:
        self._model, self._engine = model, engine
        self._since_jump = 0
        self.limit = _SHORTEST_LIMIT  # that the next jump has to keep

    def restart(self) -> None:
        """Forget the points so far: the next jump needs new ones."""
        self._since_jump = 0

    def refuse(self) -> None:
        """The last jump was not taken: back to the plain step, and the next ones are shorter."""
        self._engine.take_plain()
        self.limit = max(_SHORTEST_LIMIT, self.limit / _LIMIT_FACTOR)

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared | None:
        """Where to jump from three consecutive points, every second time; None for the plain step."""
        del stats
        self._since_jump += 1
        if self._since_jump < 2 or previous is None:
            return None
        points = (previous, current, proposed)
        offsets = cast("Offsets", tuple(self._model.local_offsets(point) for point in points))
        shared, local = self._model.shared_distances(*points), self._engine.local_distances(offsets)
        first, second = shared[0] + local[0], shared[1] + local[1]
        length = sqrt(first / second) if second > 0.0 else 1.0
        if length >= self.limit:
            length = self.limit
            self.limit *= _LIMIT_FACTOR
        if length <= 1.0:
            return None  # not longer than the step itself
        self._since_jump = 0
        return self._model.extrapolate(points, length, self._engine.extrapolate(offsets, length))


_MAX_DEPTH = 5
# Differences that are this much like others, relative and squared, are noise.
_SAME = 1e-13


class Anderson(Generic[Shared, Stats]):
    """Decides where to go from the last points and the steps from there."""

    limit = 1.0  # of a jump; there is none to keep

    def __init__(self, model: ProfiledModel[Shared, Any, Stats]) -> None:
        self._model = model
        self._points: list[NDArray[np.float64]] = []
        self._steps: list[NDArray[np.float64]] = []

    def restart(self) -> None:
        """Forget the points so far."""
        self._points, self._steps = [], []

    def refuse(self) -> None:
        """The last mixture was not taken: only its origin is worth remembering."""
        self._points, self._steps = self._points[-1:], self._steps[-1:]

    def extrapolated(self, previous: Shared | None, current: Shared, proposed: Shared, stats: Stats) -> Shared:
        """Where to go instead of ``proposed``; from the first point on, tasks are to be solved."""
        del previous
        begin, end = self._model.coordinates(current), self._model.coordinates(proposed)
        self._points = [*self._points[-_MAX_DEPTH:], begin]
        self._steps = [*self._steps[-_MAX_DEPTH:], end - begin]
        changes = [after - before for before, after in zip(self._steps, self._steps[1:], strict=False)]
        if changes:
            moves = [after - before for before, after in zip(self._points, self._points[1:], strict=False)]
            shares = _least_squares(changes, end - begin, self._model.metric(stats))
            for share, move, change in zip(shares, moves, changes, strict=True):
                end = end - share * (move + change)
        return self._model.profiled(end, proposed)


def _least_squares(
    columns: list[NDArray[np.float64]], target: NDArray[np.float64], weight: NDArray[np.float64]
) -> list[float]:
    """Coefficients of the columns whose sum is nearest to the target, squares weighted.

    Sums are those of NumPy, whose order depends on nothing but the length.
    """
    scales = [float(np.sqrt((weight * column * column).sum())) or 1.0 for column in columns]
    gram = np.array([[float((weight * one * other).sum()) for other in columns] for one in columns])
    right = np.array([float((weight * column * target).sum()) for column in columns])
    gram = gram / np.outer(scales, scales)
    found: list[float] = (np.linalg.lstsq(gram, right / scales, rcond=_SAME)[0] / scales).tolist()
    return found
