"""The shards of any engine: local state in rotating buffers, and sums that are added in a fixed order.

The order in which shards are added is that of a binary tree over their numbers::

    ((0 + 1) + (2 + 3)) + ((4 + 5) + 6)

A process with neighbouring shards can add up its part of the tree alone, and the parts of several processes fit
together: the sum is the same to the last bit however the shards are distributed over threads and machines. A process
with one half, quarter or eighth sends a single sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.em.model import Local, Offsets, Passes, Shard, Shared, Stats
from rarevote.errors import InputError
from rarevote.io.arrays import load_arrays, save_arrays
from rarevote.kernels import plain

if TYPE_CHECKING:
    from concurrent.futures import Executor

_Point = tuple[NDArray[Any], NDArray[Any]]
_Tables = tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, FloatArray, FloatArray]
Node = tuple[int, int]  # a part of the tree: (4, 7) is the sum of the shards 4, 5 and 6
_Sums = TypeVar("_Sums", bound=tuple[Any, ...])


class ShardState(Generic[Shared, Local, Stats]):
    """A shard with its local state: previous, current, proposed and saved.

    Args:
        model: the model whose state it is.
        shard: the votes.
        room: memory for the four states, if the caller provides it; by default the shard allocates its own.
    """

    def __init__(
        self, model: Passes[Shared, Local, Stats], shard: Shard, room: tuple[Local, Local, Local, Local] | None = None
    ) -> None:
        self.shard = shard
        self.current: Local = model.start_local(shard)
        self._room: Local | None = None
        if room is None:
            self.proposed, self._previous = _like(self.current), _like(self.current)
        else:
            start = self.current
            self.current, self.proposed, self._previous, self._room = room
            for place, array in zip(self.current, start, strict=True):
                place[...] = array
        self._saved: Local | None = None  # created when the first step is extrapolated
        self._model = model

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self.shard.task_ptr.size - 1

    @property
    def nbytes(self) -> int:
        """Bytes of the votes and of all local state."""
        saved = () if self._saved is None else self._saved[1:]
        held = (*self.current, *self.proposed, *self._previous, *saved)
        return self.shard.nbytes + sum(int(array.nbytes) for array in held)

    # -- methods that an engine calls ----------------------------------------------------------------------------------

    def run(self, shared: Shared, stats: Stats, *, refresh: bool, damping: float) -> float:
        """Run one pass: fills ``stats``, proposes local state, returns the largest change of a probability."""
        for array in stats:
            array.fill(0.0)
        return self._model.step(shared, self.shard, self.current, self.proposed, stats, refresh, damping)

    def advance(self) -> None:
        """Make the proposed state the current one."""
        self._previous, self.current, self.proposed = self.current, self.proposed, self._previous

    def retreat(self) -> None:
        """Return to the state before the last advance."""
        self._previous, self.current, self.proposed = self.proposed, self._previous, self.current

    def distances(self, offsets: Offsets) -> tuple[float, float]:
        """Squared norms of the first and second differences of the local parameters."""
        differences = self._extrapolation().squared_differences
        found = [differences(*_as_tables(*points)) for points in self._points(offsets)]
        return sum(first for first, _ in found), sum(second for _, second in found)

    def extrapolate(self, offsets: Offsets, length: float) -> list[NDArray[Any]]:
        """Save ``t2`` and propose ``t0 + 2 a r + a^2 v`` in its place; returns the sums over tasks."""
        far_point = self._extrapolation().far_point
        if self._saved is None:
            self._saved = _like(self.current) if self._room is None else self._room
        # The extrapolated point has no posterior yet: both states share the proposed one, which is not written to.
        far, totals = type(self._saved)(self.proposed[0], *self._saved[1:]), []
        for out, points in zip(far[1:], self._points(offsets), strict=True):
            total = np.zeros(out.shape[1:])
            far_point(*_as_tables(*points), length, out.reshape(len(out), total.size), total.reshape(-1))
            totals.append(total)
        self.proposed, self._saved = far, self.proposed
        return totals

    def _extrapolation(self) -> ModuleType:
        return plain.extrapolation(self.shard.n_votes, self.current[0].shape[1])

    def take_plain(self) -> None:
        """After an advance to the extrapolated point: make the saved state the current one instead."""
        assert self._saved is not None
        self.current, self._saved = self._saved, self.current

    def _points(self, offsets: Offsets) -> list[tuple[_Point, _Point, _Point]]:
        """For each local array but the posterior: previous, current and proposed, each with its offset."""
        states = (self._previous, self.current, self.proposed)
        columns = [zip(state[1:], offset, strict=True) for state, offset in zip(states, offsets, strict=True)]
        return list(zip(*columns, strict=True))

    # -- on disk -----------------------------------------------------------------------------------------------------

    def arrays(self, *, everything: bool = False) -> dict[str, NDArray[Any]]:
        """The current state by name; with ``everything`` also what only a running acceleration cycle needs.

        The proposed state is left out: the next pass writes it again.
        """
        states = {"current": self.current}
        if everything:
            states["previous"] = self._previous
            if self._saved is not None:
                states["saved"] = self._saved
        return {f"{name}.{number}": array for name, state in states.items() for number, array in enumerate(state)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that :meth:`arrays` returned.

        Raises:
            ValueError: the arrays have other shapes.
        """
        if absent := {f"current.{number}" for number in range(len(self.current))} - set(arrays):
            raise ValueError(f"{', '.join(sorted(absent))} is missing")
        if "saved.0" in arrays:
            self._saved = _like(self.current)
        states = {"current": self.current, "previous": self._previous, "saved": self._saved}
        for key, array in arrays.items():
            name, _, number = key.partition(".")
            state = states.get(name)
            place = state[int(number)] if state is not None and number in map(str, range(len(state))) else None
            if place is None or (place.shape, place.dtype) != (array.shape, array.dtype):
                raise ValueError(f"{key} has shape {array.shape} and type {array.dtype}, which does not fit")
            place[...] = array


def _as_tables(t0: _Point, t1: _Point, t2: _Point) -> _Tables:
    """Three states and their offsets in the layout of the kernels: two-dimensional, one offset per column."""

    def table(state: NDArray[Any]) -> NDArray[Any]:
        return state.reshape(len(state), prod(state.shape[1:]))

    def row(offset: NDArray[Any]) -> FloatArray:
        return np.ascontiguousarray(offset, dtype=np.float64).reshape(-1)

    return table(t0[0]), table(t1[0]), table(t2[0]), row(t0[1]), row(t1[1]), row(t2[1])


def _like(local: Local) -> Local:
    return type(local)(*(np.empty_like(array) for array in local))


def write_local(folder: Path, number: int, state: ShardState[Any, Any, Any], *, everything: bool = False) -> None:
    """Write the local state of a shard to its file."""
    save_arrays(_local_file(folder, number), state.arrays(everything=everything))


def read_local(folder: Path, number: int, state: ShardState[Any, Any, Any]) -> None:
    """Read the local state of a shard from its file.

    Raises:
        InputError: the file is absent, damaged, or belongs to something else.
    """
    path = _local_file(folder, number)
    arrays = load_arrays(path)
    try:
        state.restore(arrays)
    except ValueError as error:
        raise InputError(f"{path}: from other data or another method ({error})") from None


def _local_file(folder: Path, number: int) -> Path:
    return folder / f"local-{number:05d}.npz"


# --------------------------------------------------------------------------------------------------------------------
# sums in a fixed order


def combine(nodes: Mapping[Node, _Sums], n_shards: int, add: Callable[[_Sums, _Sums], _Sums]) -> dict[Node, _Sums]:
    """Add neighbouring nodes of the tree wherever both are present; with all shards, one node remains.

    >>> combine({(0, 1): ("a",), (1, 2): ("b",), (2, 3): ("c",)}, 3, lambda x, y: (f"({x[0]}{y[0]})",))
    {(0, 3): ('((ab)c)',)}
    >>> combine({(1, 2): ("b",), (2, 3): ("c",)}, 3, lambda x, y: (f"({x[0]}{y[0]})",))
    {(1, 2): ('b',), (2, 3): ('c',)}
    """
    found = dict(nodes)
    first, last = min(begin for begin, _ in found), max(end for _, end in found)

    def add_halves(begin: int, end: int) -> None:
        if (begin, end) in found or end - begin < 2 or end <= first or begin >= last:
            return
        middle = (begin + end + 1) // 2
        add_halves(begin, middle)
        add_halves(middle, end)
        if (begin, middle) in found and (middle, end) in found:
            found[begin, end] = add(found.pop((begin, middle)), found.pop((middle, end)))

    add_halves(0, n_shards)
    return found


class Summation(Generic[Stats]):
    """Passes over neighbouring shards: their sums are added while further shards are computed.

    So the number of sums in memory is only the depth of the tree, and their memory is reused from pass to pass.

    Args:
        model: the model whose passes to run.
        shards: numbers of the shards.
        n_shards: the total number of shards.
    """

    def __init__(self, model: Passes[Any, Any, Stats], shards: range, n_shards: int) -> None:
        self._model, self._shards, self._n_shards = model, shards, n_shards
        self._free: list[Stats] = []
        self._handed_out: list[Stats] = []

    def run(
        self,
        states: Sequence[ShardState[Shared, Any, Stats]],
        shared: Shared,
        *,
        refresh: bool,
        damping: float,
        pool: Executor | None,
    ) -> tuple[dict[Node, Stats], float]:
        """Run one pass; returns the sums of complete nodes of the tree, and the largest change of a probability.

        The sums are valid until the next pass.
        """
        free, self._handed_out = [*self._free, *self._handed_out], []

        def one(state: ShardState[Shared, Any, Stats]) -> tuple[Stats, float]:
            try:
                sums = free.pop()  # no check beforehand: another thread could take it meanwhile
            except IndexError:
                sums = self._model.empty_stats(shared)
            return sums, state.run(shared, sums, refresh=refresh, damping=damping)

        def add(first: Stats, second: Stats) -> Stats:
            add_to(first, second)
            free.append(second)
            return first

        nodes: dict[Node, Stats] = {}
        change = 0.0
        results = map(one, states) if pool is None else pool.map(one, states)
        for number, (sums, moved) in zip(self._shards, results, strict=True):
            nodes[number, number + 1] = sums
            nodes = combine(nodes, self._n_shards, add)
            change = max(change, moved)
        self._free, self._handed_out = free, list(nodes.values())
        return nodes, change


def added(first: _Sums, second: _Sums) -> _Sums:
    """The sums of two parts, without changing them."""
    return _made(first, [one + other for one, other in zip(first, second, strict=True)])


def add_to(first: _Sums, second: _Sums) -> _Sums:
    """Add the sums of the second part to the first."""
    for one, other in zip(first, second, strict=True):
        one += other
    return first


def _made(like: _Sums, arrays: list[Any]) -> _Sums:
    return type(like)(*arrays) if hasattr(like, "_fields") else type(like)(arrays)
