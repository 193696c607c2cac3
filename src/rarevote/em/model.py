"""The model that an EM method defines, and the shards of a crowd that its passes run over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import IntArray, dot, normalise_rows
from rarevote.kernels import plain

if TYPE_CHECKING:
    from rarevote.kernels.blocks import Blocks

FloatArray = NDArray[Any]
Gold = NDArray[np.int32]  # known class of each task or -1; of size 0 if nothing is known

Shared = TypeVar("Shared")
Local = TypeVar("Local", bound=tuple[Any, ...])
Stats = TypeVar("Stats", bound=tuple[Any, ...])
_Table = TypeVar("_Table")

DOUBLE = np.dtype(np.float64)

# The offset of each local array, for three consecutive points.
Offsets = tuple[tuple[FloatArray, ...], tuple[FloatArray, ...], tuple[FloatArray, ...]]


class CrowdFacts(Protocol):
    """What a model is built from: sizes and names, but nothing per task.

    :class:`~rarevote.crowd.annotations.Annotations` has these attributes, and so does a crowd whose votes are on other
    machines.
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
    task_ptr: IntArray  # (n + 1), absolute positions into worker and label
    worker: NDArray[Any]
    label: NDArray[Any]
    gold: Gold  # (n), the known class or -1; or of size 0


class Shard(_Votes):
    """A range of tasks, as views into the whole crowd."""

    @cached_property
    def blocks(self) -> Blocks:
        """The votes in the layout of compiled passes, computed once; see :mod:`rarevote.kernels.blocks`."""
        from rarevote.kernels.blocks import blocks_of

        return blocks_of(self.task_ptr, self.worker, self.label)

    @cached_property
    def alone(self) -> Shard:
        """The votes of its tasks, in the layout of compiled passes without blocks: workers in one integer type."""
        from rarevote.kernels.blocks import WORKER

        own = slice(self.task_ptr[0], self.task_ptr[-1])
        return Shard(self.task_ptr - self.task_ptr[0], self.worker[own].astype(WORKER), self.label[own], self.gold)

    @cached_property
    def rows(self) -> plain.VoteRows:
        """The votes in the layout of NumPy passes."""
        return plain.VoteRows(self.task_ptr, self.worker, self.label)

    @property
    def nbytes(self) -> int:
        """Bytes of the votes, in blocks or not."""
        laid_out = (*self.__dict__.get("blocks", ()), *self.__dict__.get("alone", ()))
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

    def is_small(self, n_classes: int) -> bool:
        """Whether its passes run in NumPy; see :mod:`rarevote.kernels.plain`."""
        return plain.is_small(self.n_votes, n_classes)


class Start(Protocol):
    """The starting state of the tasks of a shard: all that a method without a loop defines."""

    def start_local(self, shard: Shard) -> Any:
        """Starting local state of a shard, the posterior first."""


class Posterior(NamedTuple):
    """Local state of tasks that have no parameters."""

    posterior: FloatArray  # (n, K)


class Passes(ABC, Generic[Shared, Local, Stats]):
    """Passes that run over shards and add up.

    ``Local`` and ``Stats`` are named tuples of arrays. Those of ``Local`` have one row per task, the posterior
    first; they stay with their shard. Those of ``Stats`` are sums over tasks, so that threads, files and machines
    are only different ways of adding.
    """

    @abstractmethod
    def start_local(self, shard: Shard) -> Local:
        """Starting local state of a shard: the soft majority vote; gold tasks have their known class."""

    @abstractmethod
    def empty_stats(self, shared: Shared) -> Stats:
        """Zeros to add to."""

    @abstractmethod
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


class EMModel(Passes[Shared, Local, Stats]):
    """What an EM method defines; the loop does the rest (:mod:`rarevote.em.loop`).

    The defaults are those of a model in double precision whose maximisation step has a closed form. A fit with
    ``accelerate=True`` also needs the functions of one of the two schemes in :mod:`rarevote.em.acceleration`.
    """

    #: type of the local state
    dtype: np.dtype[Any] = DOUBLE
    #: how far, relative to its size, the objective can fall because local state is stored in single precision
    single_rounding: ClassVar[float] = 1e-8
    #: whether a step needs only the posterior of the last pass
    one_posterior: ClassVar[bool] = False
    #: whether accelerated passes solve for the local parameters, so that only the shared ones are left to accelerate
    profiles: bool = False

    @property
    def rounding(self) -> float:
        """How far, relative to its size, the objective can fall by rounding: it has one term per annotation."""
        return 1e-12 if self.dtype == DOUBLE else self.single_rounding

    @abstractmethod
    def start(self) -> Shared:
        """Starting shared parameters."""

    @abstractmethod
    def objective(self, shared: Shared, stats: Stats) -> float:
        """The penalised log likelihood at ``shared`` and the current local state."""

    @abstractmethod
    def update(self, shared: Shared, stats: Stats, damping: float) -> Shared:
        """New shared parameters from the sums."""

    def gradient_norm(self, shared: Shared, stats: Stats) -> float:
        """Euclidean norm of the remaining gradient of the maximisation step: 0 if it has a closed form."""
        return 0.0

    def stopping_value(self, shared: Shared, updated: Shared, stats: Stats, objective: float) -> float:
        """The value whose gain the stopping rule uses."""
        return objective

    # -- SQUAREM: without the posterior, which follows from the parameters -------------------------------------------

    def local_offsets(self, shared: Shared) -> tuple[FloatArray, ...]:
        """The offset to add to each local array, except the posterior, to get the parameters."""
        return ()

    def shared_distances(self, first: Shared, second: Shared, third: Shared) -> tuple[float, float]:
        """Squared norms of ``second - first`` and of ``third - 2 second + first``, over all arrays by default."""
        points: Any = (first, second, third)
        return squared_distances(*points)

    def extrapolate(
        self, points: tuple[Shared, Shared, Shared], length: float, local_means: tuple[FloatArray, ...]
    ) -> Shared:
        """Shared parameters at the extrapolated point; ``local_means`` are the means of the local arrays there."""
        raise NotImplementedError

    # -- Anderson's mixing: for a model that profiles ----------------------------------------------------------------

    def coordinates(self, shared: Shared) -> NDArray[np.float64]:
        """All shared parameters as one vector."""
        raise NotImplementedError

    def metric(self, stats: Stats) -> NDArray[np.float64]:
        """The weight of each coordinate: about the curvature of the objective along it."""
        raise NotImplementedError

    def profiled(self, coordinates: NDArray[np.float64], like: Shared) -> Shared:
        """Shared parameters at ``coordinates``, after which passes solve for local parameters.

        Parameters that are not coordinates, such as those that depend only on the local state, are taken from ``like``.
        """
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HeldShared(EMModel[Shared, Local, Stats]):
    """A model with everything shared held fixed: only the local state changes.

    Mixed into the model of a method, for tasks that its fit has not seen.
    """

    held: Shared

    @classmethod
    def of(cls, model: EMModel[Shared, Local, Stats], held: Shared, **changed: Any) -> Self:
        """The model of a fit, with changes for new tasks."""
        stated = {one.name: getattr(model, one.name) for one in fields(model)}  # type: ignore[arg-type]
        return cls(**{**stated, **changed}, held=held)

    def start(self) -> Shared:
        """The fixed parameters."""
        return self.held

    def update(self, shared: Shared, stats: Stats, damping: float) -> Shared:
        """Nothing to update."""
        return shared


def once_a_pass(make: Callable[[Any, Any], _Table]) -> Callable[[Any, Any], _Table]:
    """Decorator of a method that computes a table from the shared parameters: caches it for all shards of a pass."""
    place = f"_last_{make.__name__}"

    @wraps(make)
    def table(self: Any, shared: Any) -> _Table:
        last: tuple[Any, _Table] | None = vars(self).get(place)
        if last is None or last[0] is not shared:
            vars(self)[place] = last = shared, make(self, shared)
        return last[1]

    return table


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


def far_point(points: Iterable[FloatArray], length: float) -> FloatArray:
    """``t0 + 2 a r + a^2 v``, the point that SQUAREM jumps to; ``a`` is the length."""
    t0, t1, t2 = points
    r = t1 - t0
    return np.asarray(t0 + 2.0 * length * r + length**2 * ((t2 - t1) - r))


def soft_majority(shard: Shard, n_classes: int) -> NDArray[np.float64]:
    """Vote shares per task, (n, K); a gold task is certain of its class."""
    shares = normalise_rows(shard.votes(n_classes))
    return impose_gold(shares, shard.gold)


def impose_gold(posterior: FloatArray, gold: Gold) -> FloatArray:
    """Set the known class of gold tasks to probability 1; changes ``posterior`` and returns it."""
    known = np.flatnonzero(gold >= 0)
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior
