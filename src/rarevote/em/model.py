"""The model that an EM method states, and the shards of a crowd that its passes run over."""

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
Gold = NDArray[np.int32]  # known class of each task or -1; of size 0 where nothing is known

Shared = TypeVar("Shared")
Local = TypeVar("Local", bound=tuple[Any, ...])
Stats = TypeVar("Stats", bound=tuple[Any, ...])
_Table = TypeVar("_Table")

DOUBLE = np.dtype(np.float64)

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
    task_ptr: IntArray  # (n + 1), absolute positions into worker and label
    worker: NDArray[Any]
    label: NDArray[Any]
    gold: Gold  # (n), the known class or -1; or of size 0


class Shard(_Votes):
    """A run of tasks, as views into the whole."""

    @cached_property
    def blocks(self) -> Blocks:
        """The votes as compiled passes want them, laid out once; see :mod:`rarevote.kernels.blocks`."""
        from rarevote.kernels.blocks import blocks_of

        return blocks_of(self.task_ptr, self.worker, self.label)

    @cached_property
    def alone(self) -> Shard:
        """The votes of its tasks only, as compiled passes without blocks want them: workers of one width."""
        from rarevote.kernels.blocks import WORKER

        own = slice(self.task_ptr[0], self.task_ptr[-1])
        return Shard(self.task_ptr - self.task_ptr[0], self.worker[own].astype(WORKER), self.label[own], self.gold)

    @cached_property
    def rows(self) -> plain.VoteRows:
        """The votes as passes in NumPy want them."""
        return plain.VoteRows(self.task_ptr, self.worker, self.label)

    @property
    def nbytes(self) -> int:
        """Bytes of the votes, laid out in blocks or not."""
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
        """Whether its passes are done in NumPy; see :mod:`rarevote.kernels.plain`."""
        return plain.is_small(self.n_votes, n_classes)


class Start(Protocol):
    """How the tasks of a shard begin: all that a method without a loop states."""

    def start_local(self, shard: Shard) -> Any:
        """Local state of a shard to begin with, the posterior first."""


class Posterior(NamedTuple):
    """Local state of tasks without parameters of their own."""

    posterior: FloatArray  # (n, K)


class Passes(ABC, Generic[Shared, Local, Stats]):
    """What runs over shards and adds up.

    ``Local`` and ``Stats`` are named tuples of arrays. Those of ``Local`` have one row per task, the posterior
    first; they stay with their shard. Those of ``Stats`` are sums over tasks, so that threads, files and machines
    are only different ways of adding.
    """

    @abstractmethod
    def start_local(self, shard: Shard) -> Local:
        """Local state of a shard to begin with: the soft majority vote, gold imposed."""

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
    """What an EM method states; the loop does the rest (:mod:`rarevote.em.loop`).

    The defaults are those of a model in double precision whose maximisation step has a closed form. A fit with
    ``accelerate=True`` also asks for what one of the two ways of :mod:`rarevote.em.acceleration` needs.
    """

    #: of the local state
    dtype: np.dtype[Any] = DOUBLE
    #: how far, relative to its size, the objective may fall because local state is stored in single precision
    single_rounding: ClassVar[float] = 1e-8
    #: whether a step needs no posterior but that of the last pass
    one_posterior: ClassVar[bool] = False
    #: whether accelerated passes solve for the local parameters, so that only the shared ones are left to accelerate
    profiles: bool = False

    @property
    def rounding(self) -> float:
        """How far, relative to its size, the objective may fall by rounding: a sum of a term for each annotation."""
        return 1e-12 if self.dtype == DOUBLE else self.single_rounding

    @abstractmethod
    def start(self) -> Shared:
        """Shared parameters to begin with."""

    @abstractmethod
    def objective(self, shared: Shared, stats: Stats) -> float:
        """The penalised log likelihood at ``shared`` and the local state that came in."""

    @abstractmethod
    def update(self, shared: Shared, stats: Stats, damping: float) -> Shared:
        """New shared parameters from the sums."""

    def gradient_norm(self, shared: Shared, stats: Stats) -> float:
        """Euclidean norm of the gradient that is left in the maximisation step: none after one in closed form."""
        return 0.0

    def stopping_value(self, shared: Shared, updated: Shared, stats: Stats, objective: float) -> float:
        """The value whose gain the stopping rule looks at."""
        return objective

    # -- SQUAREM: the posterior takes no part, it follows from the parameters ----------------------------------------

    def local_offsets(self, shared: Shared) -> tuple[FloatArray, ...]:
        """What has to be added to each local array but the posterior to give the parameters that it stands for."""
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

    # -- Anderson's mixing: of a model that profiles -----------------------------------------------------------------

    def coordinates(self, shared: Shared) -> NDArray[np.float64]:
        """All shared parameters as one vector."""
        raise NotImplementedError

    def metric(self, stats: Stats) -> NDArray[np.float64]:
        """How much each coordinate counts: about the curvature of the objective along it."""
        raise NotImplementedError

    def profiled(self, coordinates: NDArray[np.float64], like: Shared) -> Shared:
        """Shared parameters at ``coordinates``, from where on passes solve for local parameters.

        What takes no part, as what depends on the local state alone, is that of ``like``.
        """
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class HeldShared(EMModel[Shared, Local, Stats]):
    """A model with everything shared held fixed: only the local state moves.

    Mixed into the model of a method, for tasks that its fit has not seen.
    """

    held: Shared

    @classmethod
    def of(cls, model: EMModel[Shared, Local, Stats], held: Shared, **changed: Any) -> Self:
        """The model of a fit, with what is different for new tasks."""
        stated = {one.name: getattr(model, one.name) for one in fields(model)}  # type: ignore[arg-type]
        return cls(**{**stated, **changed}, held=held)

    def start(self) -> Shared:
        """What is held."""
        return self.held

    def update(self, shared: Shared, stats: Stats, damping: float) -> Shared:
        """Nothing to update."""
        return shared


def once_a_pass(make: Callable[[Any, Any], _Table]) -> Callable[[Any, Any], _Table]:
    """A method of a model that makes a table of the shared parameters: the last one is kept, all shards ask for it."""
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
    """The posterior with certainty where the label is known; changes ``posterior`` and returns it."""
    known = np.flatnonzero(gold >= 0)
    posterior[known] = 0.0
    posterior[known, gold[known]] = 1.0
    return posterior
