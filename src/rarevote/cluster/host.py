"""The part of the dask engine that runs on a dask worker: a host keeps neighbouring shards and does as it is told.

A host is the value of a dask future, made from files alone: the encoded shards, a base (a saved local state, or the
start) and the operations since. So a host that is lost with its worker can be recreated anywhere, in exactly the
state it was in, and nothing but the lost shards is computed again.

Hosts have a position: how many operations they have done. An operation that finds its host at another position than
the driver believes it to be does nothing and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import Chooser, FloatArray, IntArray, column_sums, first_of_best
from rarevote.decide.decider import CrowdSums, Decider, Deciding, Labelled
from rarevote.decide.decision import DecisionCounts, confidence_of
from rarevote.decide.probabilities import Calibrator, Probabilities, certain, reweighted
from rarevote.decide.rules import ABSTAINED, ItemBatch
from rarevote.em.model import Offsets, Passes, Shard
from rarevote.em.shards import Node, ShardState, Summation, add_to, added, combine, read_local, write_local
from rarevote.errors import InputError
from rarevote.io.arrays import load_arrays, save_arrays
from rarevote.io.write.atomic import replacing

_Result = TypeVar("_Result")


class Lost(NamedTuple):
    """The answer of hosts that are not where the driver believes them to be."""

    blocks: frozenset[int]


class Sums(NamedTuple):
    """Sums over some shards, as nodes of the tree that all shards form, and the largest change of a probability."""

    nodes: dict[Node, Any]
    change: float = 0.0


@dataclass(frozen=True)
class Block:
    """What a host is made from.

    Attributes:
        number: which of the hosts.
        model: what is fitted.
        folder: where the encoded shards are.
        shards: numbers of the shards.
        n_shards: how many there are in all.
    """

    number: int
    model: Passes[Any, Any, Any]
    folder: Path
    shards: range
    n_shards: int


# --------------------------------------------------------------------------------------------------------------------
# files


def shard_file(folder: Path, number: int) -> Path:
    """Where the votes of a shard are."""
    return folder / f"shard-{number:05d}.npz"


def names_file(folder: Path, number: int) -> Path:
    """Where the names of a shard's tasks are; they are read only when results are written."""
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
    """Write names as the only column of a Parquet file, whole or not at all."""
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
            arrays[name].setflags(write=False)  # as in memory: the kernels that are compiled for it serve here, too
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
        self.answer: Any = None  # to the last message, in case it is asked for again
        # The driver has long had the sums of a pass when the next one comes.
        self._summation: Summation[Any] = Summation(block.model, block.shards, block.n_shards)
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix="rarevote") if n_threads > 1 else None
        model = block.model
        self.states = self.each(lambda number: ShardState(model, read_shard(block.folder, number)), list(block.shards))
        if base is not None:
            Load(base).perform(self)
        for operation in operations:
            operation.perform(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Local state stays where it is: whoever copies a host (dask may move or spill any value) gets the word that
        # it is not there, upon which the driver recreates it.
        return Lost, (frozenset([self.block.number]),)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(state.nbytes for state in self.states)

    def each(self, action: Callable[[Any], _Result], items: Sequence[Any] | None = None) -> list[_Result]:
        """Call ``action`` on every shard (or item), in threads; results in order."""
        given = self.states if items is None else items
        return list(self._pool.map(action, given) if self._pool is not None else map(action, given))

    def numbered(self) -> list[tuple[int, ShardState[Any, Any, Any]]]:
        """The shards with their numbers."""
        return list(zip(self.block.shards, self.states, strict=True))

    def run(self, shared: Any, *, refresh: bool, damping: float) -> Sums:
        """One pass: sums as far as this host has them all."""
        found = self._summation.run(self.states, shared, refresh=refresh, damping=damping, pool=self._pool)
        return Sums(*found)


def make_host(block: Block, base: Path | None, operations: Sequence[Operation], position: int) -> Host:
    """A host on the dask worker that this runs on, with as many threads as the worker has."""
    from distributed import get_worker

    return Host(block, base, operations, position, get_worker().state.nthreads)


def perform(host: Host | Lost, block: int, position: int, operations: Sequence[Operation]) -> Any:
    """Do what the driver says, if the host is where the driver believes it to be; the last operation answers."""
    if isinstance(host, Lost):
        return Lost(frozenset([block]))
    if host.position == position + len(operations):
        return host.answer  # done before: dask may run a task twice
    if host.position != position:
        return Lost(frozenset([block]))
    for operation in operations:
        host.answer = operation.perform(host)
    host.position += len(operations)
    return host.answer


def merge(n_shards: int, *answers: Sums | Lost) -> Sums | Lost:
    """The sums of several hosts; if any host is lost, which ones."""
    lost = [answer for answer in answers if isinstance(answer, Lost)]
    if lost:
        return Lost(frozenset().union(*(answer.blocks for answer in lost)))
    found = [answer for answer in answers if isinstance(answer, Sums)]
    nodes = {node: sums for answer in found for node, sums in answer.nodes.items()}
    return Sums(combine(nodes, n_shards, added), max(answer.change for answer in found))


# --------------------------------------------------------------------------------------------------------------------
# operations


class Operation:
    """Something that a host can do."""

    #: whether a host that is recreated has to do it again
    alters: ClassVar[bool] = False

    def perform(self, host: Host) -> Any:
        """Do it; returns the answer to the driver."""
        raise NotImplementedError


@dataclass(frozen=True)
class Pass(Operation):
    """One pass."""

    alters: ClassVar[bool] = True

    shared: Any
    refresh: bool
    damping: float

    def perform(self, host: Host) -> Sums:
        """Sums and the largest change."""
        return host.run(self.shared, refresh=self.refresh, damping=self.damping)


@dataclass(frozen=True)
class Turn(Operation):
    """Another of the states becomes the current one."""

    alters: ClassVar[bool] = True

    how: Literal["advance", "retreat", "take_plain"]

    def perform(self, host: Host) -> None:
        """Only references change."""
        for state in host.states:
            getattr(state, self.how)()


@dataclass(frozen=True)
class Distances(Operation):
    """How far the local parameters moved."""

    offsets: Offsets

    def perform(self, host: Host) -> list[tuple[float, float]]:
        """A pair per shard."""
        return host.each(lambda state: state.distances(self.offsets))


@dataclass(frozen=True)
class Extrapolate(Operation):
    """Propose the extrapolated point."""

    alters: ClassVar[bool] = True

    offsets: Offsets
    length: float

    def perform(self, host: Host) -> list[list[NDArray[Any]]]:
        """For each shard the sums of its local arrays."""
        return host.each(lambda state: state.extrapolate(self.offsets, self.length))


@dataclass(frozen=True)
class Save(Operation):
    """Write the local state to files, one per shard."""

    folder: Path
    everything: bool = False

    def perform(self, host: Host) -> None:
        """Every file is there whole or not at all."""

        host.each(lambda entry: write_local(self.folder, *entry, everything=self.everything), host.numbered())


@dataclass(frozen=True)
class Load(Operation):
    """Take the local state from files."""

    folder: Path

    def perform(self, host: Host) -> None:
        """One file per shard."""
        host.each(lambda entry: read_local(self.folder, *entry), host.numbered())


@dataclass(frozen=True)
class KeepPosterior(Operation):
    """Write the posterior of the last pass to files, one per shard: another model is about to take its place."""

    folder: Path

    def perform(self, host: Host) -> None:
        """Every file is there whole or not at all."""

        def one(numbered: tuple[int, ShardState[Any, Any, Any]]) -> None:
            number, state = numbered
            save_arrays(_posterior_file(self.folder, number), {"posterior": np.asarray(state.proposed[0])})

        host.each(one, host.numbered())


def _posterior_file(folder: Path, number: int) -> Path:
    return folder / f"posterior-{number:05d}.npz"


@dataclass(frozen=True)
class CountVotes(Operation):
    """Votes per worker and class."""

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


# --------------------------------------------------------------------------------------------------------------------
# from posteriors to labels, as on one machine (rarevote.decide)


@dataclass(frozen=True, eq=False)
class Reported:
    """How the probabilities of a shard follow from its state.

    Attributes:
        of_last_pass: whether the last pass has the posterior, or the state before it.
        calibrator: from posterior to probabilities.
        mean: mean probability of every class, (K); of size 0 as long as it is not known.
        chooser: how the method's own labels follow from the posterior; the most probable class without one.
        own_from_posterior: whether they do; else they follow from the probabilities.
        wanted: class shares that were given, (K).
    """

    of_last_pass: bool
    calibrator: Calibrator
    mean: FloatArray
    chooser: Chooser | None = None
    own_from_posterior: bool = True
    wanted: FloatArray | None = None

    def posterior(self, state: ShardState[Any, Any, Any]) -> NDArray[Any]:
        """What the method computed."""
        return np.asarray((state.proposed if self.of_last_pass else state.current)[0])

    def discounted(self, state: ShardState[Any, Any, Any]) -> FloatArray:
        """Probabilities before lapses, (n, K)."""
        found = self.calibrator.discounted(self.posterior(state), np.diff(state.shard.task_ptr))
        return certain(found, state.shard.gold)

    def part(self, state: ShardState[Any, Any, Any]) -> ItemBatch:
        """What is known about the tasks of a shard."""
        shard, posterior = state.shard, self.posterior(state)
        votes = partial(shard.votes, posterior.shape[1])
        gold = shard.gold.astype(np.int64) if shard.gold.size else np.full(state.n_tasks, -1)
        p = self.calibrator.reported(self.discounted(state), self.mean)
        if self.wanted is not None:
            p = reweighted(p, self.mean, self.wanted)
        p = certain(p, gold)
        own = np.full(state.n_tasks, ABSTAINED)
        if self.own_from_posterior:
            own = first_of_best(posterior) if self.chooser is None else self.chooser.codes(posterior, votes)
        return ItemBatch(p, votes(), own, gold, p)


@dataclass(frozen=True, eq=False)
class SumProbabilities(Operation):
    """Add the probabilities before lapses."""

    how: Reported

    def perform(self, host: Host) -> list[FloatArray]:
        """A sum for each shard, (K)."""
        return host.each(lambda state: column_sums(self.how.discounted(state)))


@dataclass(frozen=True, eq=False)
class Look(Operation):
    """What the tasks tell the decider."""

    how: Reported
    deciding: Deciding

    def perform(self, host: Host) -> list[CrowdSums]:
        """Sums for each shard."""

        def one(state: ShardState[Any, Any, Any]) -> CrowdSums:
            part = self.deciding.with_own(self.how.part(state))
            begin = state.shard.task_ptr - state.shard.task_ptr[0]
            return self.deciding.look(part, begin, state.shard.worker)

        return host.each(one)


@dataclass(frozen=True, eq=False)
class CountAtLeast(Operation):
    """How many tasks that may be flagged have at least these probabilities of a class."""

    how: Reported
    deciding: Deciding
    number: int
    thresholds: FloatArray

    def perform(self, host: Host) -> list[IntArray]:
        """A count for each threshold, for each shard."""

        def one(state: ShardState[Any, Any, Any]) -> IntArray:
            part = self.how.part(state)
            scores = np.sort(part.p[self.deciding.may(part) & (part.gold < 0), self.number])
            return np.asarray(scores.size - np.searchsorted(scores, self.thresholds), dtype=np.int64)

        return host.each(one)


@dataclass(frozen=True, eq=False)
class WriteResults(Operation):
    """Write one row per task to a Parquet file per shard: task, label, confidence, votes, p:<class>.

    Attributes:
        folder: for the files.
        classes: names of the classes.
        how: where probabilities come from.
        deciding: what is decided.
        decider: how labels follow.
        costs: of mistakes, (K, K).
        with_posterior: whether to write ``posterior:<class>``, too.
        posteriors: folder of :class:`KeepPosterior`; None where the hosts hold the posterior.
    """

    folder: Path
    classes: NDArray[Any]
    how: Reported
    deciding: Deciding
    decider: Decider
    costs: FloatArray
    with_posterior: bool = False
    posteriors: Path | None = None

    def perform(self, host: Host) -> list[tuple[Labelled, DecisionCounts]]:
        """For each shard, what came of its tasks."""
        from rarevote.io.write.columns import write_columns

        def one(numbered: tuple[int, ShardState[Any, Any, Any]]) -> tuple[Labelled, DecisionCounts]:
            number, state = numbered
            part = self.deciding.with_own(self.how.part(state))
            codes, n_guarded = self.decider.codes(part)
            found = self.deciding.labelled(self.decider, part, codes, n_guarded)
            some = Probabilities(self.classes, part.p, self.how.mean, part.gold)
            counts = DecisionCounts.of(some, codes, self.costs)
            if not state.n_tasks:  # few tasks on many shards; a file without rows would have no types
                return found, counts
            names = np.append(self.classes.astype(object), "")  # what -1 picks
            columns = {
                "task": read_names(names_file(host.block.folder, number)),
                "label": self.classes[codes] if (codes >= 0).all() else names[codes],
                "confidence": confidence_of(part.p, codes),
                "votes": np.diff(state.shard.task_ptr),
            }
            tables = {"p": part.p} | ({"posterior": self._posterior(numbered)} if self.with_posterior else {})
            for begin, table in tables.items():
                for k, name in enumerate(self.classes.tolist()):
                    columns[f"{begin}:{name}"] = np.ascontiguousarray(table[:, k])
            write_columns(columns, self.folder / f"part-{number:05d}.parquet")
            return found, counts

        return host.each(one, host.numbered())

    def _posterior(self, numbered: tuple[int, ShardState[Any, Any, Any]]) -> NDArray[Any]:
        """The posterior as published: what the hosts hold, unless a report took its place."""
        number, state = numbered
        if self.posteriors is None:
            return self.how.posterior(state)
        return load_arrays(_posterior_file(self.posteriors, number))["posterior"]
