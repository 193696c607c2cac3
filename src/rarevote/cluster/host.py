"""The part of the dask engine that runs on a dask worker: a host has neighbouring shards and runs operations on them.

A host is the value of a dask future, created only from files: the encoded shards, a base (a saved local state, or the
start) and the operations since. So a host that is lost with its worker can be recreated anywhere, in exactly the
state it had, and only the lost shards are computed again.

Hosts have a position: the number of operations done. If an operation finds its host at another position than
the driver expects, it does nothing and reports that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Passes, Shard
from rarevote.em.shards import Node, ShardState, Summation, add_to, added, combine, read_local
from rarevote.errors import InputError
from rarevote.io.arrays import load_arrays
from rarevote.io.write.atomic import replacing

State = ShardState[Any, Any, Any]
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Lost(NamedTuple):
    """The answer of hosts that are not at the position that the driver expects."""

    blocks: frozenset[int]


class Sums(NamedTuple):
    """Sums over some shards, as nodes of the tree that all shards form, and the largest change of a probability."""

    nodes: dict[Node, Any]
    change: float = 0.0


@dataclass(frozen=True)
class Block:
    """The definition of a host.

    Attributes:
        number: number of the host.
        model: what is fitted.
        folder: the folder of the encoded shards.
        shards: numbers of the shards.
        n_shards: total number of shards.
    """

    number: int
    model: Passes[Any, Any, Any]
    folder: Path
    shards: range
    n_shards: int


# --------------------------------------------------------------------------------------------------------------------
# files


def shard_file(folder: Path, number: int) -> Path:
    """The file with the votes of a shard."""
    return folder / f"shard-{number:05d}.npz"


def names_file(folder: Path, number: int) -> Path:
    """The file with the names of a shard's tasks; it is read only when results are written."""
    return folder / f"shard-{number:05d}.parquet"


def read_names(path: Path) -> NDArray[Any]:
    """Names from the only column of a Parquet file."""
    import pyarrow
    from pyarrow import parquet

    try:
        return np.asarray(parquet.read_table(path).column(0).to_numpy(zero_copy_only=False))
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None


def write_names(path: Path, names: NDArray[Any]) -> None:
    """Write names as the only column of a Parquet file, completely or not at all."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"name": pyarrow.array(names.tolist() if names.dtype == object else names)})
    with replacing(path) as temporary:
        parquet.write_table(table, temporary)


def read_shard(folder: Path, number: int) -> Shard:
    """The votes of a shard."""
    path = shard_file(folder, number)
    arrays = load_arrays(path)
    for name in ("task_ptr", "worker", "label"):
        if name in arrays:
            arrays[name].setflags(write=False)  # as in memory, so that the same compiled kernels are used
    try:
        return Shard(*(arrays[name] for name in Shard._fields))
    except KeyError as error:
        raise InputError(f"{path}: damaged (no {error})") from None


# --------------------------------------------------------------------------------------------------------------------
# the host


class Host:
    """Neighbouring shards on a dask worker, in the state after some operations."""

    def __init__(
        self, block: Block, base: Path | None, operations: Sequence[Operation], position: int, n_threads: int
    ) -> None:
        self.block = block
        self.position = position
        self.answer: Any = None  # the answer to the last message, in case it is requested again
        # The driver already has the sums of a pass when the next one starts.
        self.summation: Summation[Any] = Summation(block.model, block.shards, block.n_shards)
        self.pool = ThreadPoolExecutor(n_threads, thread_name_prefix="rarevote") if n_threads > 1 else None
        model = block.model
        self.states: list[State] = self.each(
            lambda number: ShardState(model, read_shard(block.folder, number)), block.shards
        )
        if base is not None:
            OnShards(partial(read_local, base)).perform(self)
        for operation in operations:
            operation.perform(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Local state is not copied: a copy of a host (dask can move or spill any value) reports that
        # its state is missing, and the driver recreates it.
        return Lost, (frozenset([self.block.number]),)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(state.nbytes for state in self.states)

    def each(self, action: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
        """Call ``action`` on every item, in threads; results in order."""
        return list(self.pool.map(action, items) if self.pool is not None else map(action, items))

    def numbered(self) -> Iterator[tuple[int, State]]:
        """The shards with their numbers."""
        return zip(self.block.shards, self.states, strict=True)


def make_host(block: Block, base: Path | None, operations: Sequence[Operation], position: int) -> Host:
    """A host on the dask worker that this runs on, with as many threads as the worker has."""
    from distributed import get_worker

    return Host(block, base, operations, position, get_worker().state.nthreads)


def perform(host: Host | Lost, block: int, position: int, operations: Sequence[Operation]) -> Any:
    """Run the driver's operations, if the host is at the expected position; returns the answer of the last one."""
    if isinstance(host, Lost):
        return Lost(frozenset([block]))
    if host.position == position + len(operations):
        return host.answer  # already done: dask can run a task twice
    if host.position != position:
        return Lost(frozenset([block]))
    for operation in operations:
        host.answer = operation.perform(host)
    host.position += len(operations)
    return host.answer


def lost_among(answers: Iterable[Any]) -> Lost | None:
    """Which hosts are lost; None if none is."""
    lost = [answer.blocks for answer in answers if isinstance(answer, Lost)]
    return Lost(frozenset().union(*lost)) if lost else None


def merge(n_shards: int, *answers: Sums | Lost) -> Sums | Lost:
    """The sums of several hosts; if any host is lost, the lost hosts."""
    if lost := lost_among(answers):
        return lost
    found = [answer for answer in answers if isinstance(answer, Sums)]
    nodes = {node: sums for answer in found for node, sums in answer.nodes.items()}
    return Sums(combine(nodes, n_shards, added), max(answer.change for answer in found))


# --------------------------------------------------------------------------------------------------------------------
# operations


class Operation(Protocol):
    """Something that a host can do."""

    @property
    def alters(self) -> bool:
        """Whether a recreated host must repeat it."""

    def perform(self, host: Host) -> Any:
        """Run it; returns the answer to the driver."""


@dataclass(frozen=True, eq=False)
class OnShards:
    """An action on every shard; the answer is a list of results.

    Attributes:
        action: called with the number of a shard and its state.
        alters: whether a recreated host must repeat it.
    """

    action: Callable[[int, State], Any]
    alters: bool = False

    def perform(self, host: Host) -> list[Any]:
        """The results of the action for every shard, in order."""
        return host.each(lambda numbered: self.action(*numbered), host.numbered())


def call(method: str, *arguments: Any) -> Callable[[int, State], Any]:
    """A method of the state of a shard as an action."""
    return partial(_call, method, arguments)


def _call(method: str, arguments: tuple[Any, ...], number: int, state: State) -> Any:
    return getattr(state, method)(*arguments)


@dataclass(frozen=True, eq=False)
class Pass:
    """One pass: sums and the largest change."""

    alters: ClassVar[bool] = True

    shared: Any
    refresh: bool
    damping: float

    def perform(self, host: Host) -> Sums:
        """The sums of the complete nodes of this host."""
        return Sums(
            *host.summation.run(host.states, self.shared, refresh=self.refresh, damping=self.damping, pool=host.pool)
        )


@dataclass(frozen=True)
class CountVotes:
    """Votes per worker and class."""

    alters: ClassVar[bool] = False

    n_workers: int
    n_classes: int

    def perform(self, host: Host) -> Sums:
        """One array of whole numbers, (n_workers, n_classes)."""
        nodes: dict[Node, Any] = {}
        for number, state in host.numbered():
            cell = state.shard.worker.astype(np.int64) * self.n_classes + state.shard.label
            counted = np.bincount(cell, minlength=self.n_workers * self.n_classes)
            nodes[number, number + 1] = (counted.reshape(self.n_workers, self.n_classes),)
            nodes = combine(nodes, host.block.n_shards, add_to)
        return Sums(nodes)
