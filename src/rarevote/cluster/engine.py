"""Many machines: shards stay on dask workers, sums are added in a tree, parameters are sent once per pass.

The driver stores the shared parameters and a log of what it sent to the hosts (:mod:`rarevote.cluster.host`); neither
grows with the tasks. A host that dies with its worker is recreated from its files and that log, in exactly the state
it had, so that the fit continues as if nothing had happened, to the last bit. At intervals, the hosts save their state,
which keeps the log short.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd
from rarevote.cluster.host import (
    Block,
    CountVotes,
    Lost,
    OnShards,
    Operation,
    Pass,
    State,
    Sums,
    call,
    lost_among,
    make_host,
    merge,
    perform,
)
from rarevote.em.engine import Engine
from rarevote.em.local import n_threads
from rarevote.em.model import Local, Offsets, Passes, Shared, Stats
from rarevote.em.shards import read_local, write_local
from rarevote.errors import MissingExtraError, RarevoteError
from rarevote.io.write.atomic import make_folder

# A lost host repeats the log: the hosts save their state when that would take too long, or when the
# parameters in it take too much of the driver's memory.
_MAX_LOGGED_PASSES = 50
_MAX_LOGGED_BYTES = 256_000_000
_MERGED_AT_ONCE = 8
# The driver adds up to this many sums itself, which is faster than another task.
_MERGED_BY_DRIVER = 2
# Up to this many bytes for all workers together, the driver sends parameters to each of them along with the task; more
# are passed from worker to worker.
_MAX_SENT = 4_000_000
_MAX_LOSSES = 20  # in one pass; more, and something else is wrong
_SECONDS_BETWEEN_LOOKS = 2.0


class DaskEngine(Engine[Shared, Local, Stats]):
    """Runs passes on a dask cluster; a context manager, because it holds memory there.

    Args:
        client: a ``distributed.Client``.
        model: what to fit.
        crowd: the crowd with the encoded shards.
    """

    def __init__(self, client: Any, model: Passes[Shared, Local, Stats], crowd: StagedCrowd) -> None:
        self._client = client
        self._crowd = crowd
        self._base: Path | None = None
        self._log: list[Operation] = []
        self._pending: list[Operation] = []
        self._position = 0
        self._parts: list[Any] = []
        threads = _threads(client)
        self._blocks = [
            Block(number, model, crowd.folder, shards, crowd.n_shards)
            for number, shards in enumerate(spread(crowd.annotations_of_shard, list(threads.values())))
        ]
        self._hosts = [self._made(block, address) for block, address in zip(self._blocks, threads, strict=False)]
        self._places = list(threads)[: len(self._blocks)]

    def __enter__(self) -> DaskEngine[Shared, Local, Stats]:
        return self

    def __exit__(self, *_: object) -> None:
        self._hosts, self._parts = [], []
        self._remove_base()

    # -- called by the loop ------------------------------------------------------------------------------------------

    def run(self, shared: Shared, *, refresh: bool, damping: float) -> tuple[Stats, float]:
        """One pass over all shards."""
        sums = self._sums(Pass(shared, refresh, damping))
        passes = sum(isinstance(entry, Pass) for entry in self._log)
        if passes > _MAX_LOGGED_PASSES or (passes > 1 and _nbytes(self._log) > _MAX_LOGGED_BYTES):
            self._write_down(self._crowd.folder / f"state-{self._position:08d}", everything=True)
        (total,) = sums.nodes.values()
        return total, sums.change

    def advance(self) -> None:
        """Make the proposed local state the current one."""
        self._turn("advance")

    def retreat(self) -> None:
        """Return to the local state before the last advance."""
        self._turn("retreat")

    def take_plain(self) -> None:
        """Make the saved state the current one instead of the extrapolated point."""
        self._turn("take_plain")

    def _turn(self, method: str) -> None:
        """Queue an operation: only references change, so it can wait for the next message."""
        self._pending.append(OnShards(call(method), alters=True))

    def local_distances(self, offsets: Offsets) -> tuple[float, float]:
        """Squared norms of the first and second differences of the local parameters."""
        found = self.ask(call("distances", offsets))
        return sum(first for first, _ in found), sum(second for _, second in found)

    def extrapolate(self, offsets: Offsets, length: float) -> tuple[NDArray[Any], ...]:
        """Propose the extrapolated point and save what was proposed."""
        parts = self._answers(OnShards(call("extrapolate", offsets, length), alters=True))
        n_tasks = max(self._crowd.n_tasks, 1)
        return tuple(np.asarray(sum(arrays) / n_tasks) for arrays in zip(*parts, strict=True))

    def save(self, folder: Path) -> None:
        """Let the workers write the current local state."""
        self._write_down(folder.resolve(), everything=False)

    def load(self, folder: Path) -> None:
        """Let the workers read the current local state from files."""
        self.ask(partial(read_local, folder.resolve()))
        self._base, self._log = folder.resolve(), []

    # -- further queries ---------------------------------------------------------------------------------------------

    def count_votes(self) -> NDArray[np.int64]:
        """Votes per worker and class, (n_workers, n_classes)."""
        ((votes,),) = self._sums(CountVotes(self._crowd.n_workers, self._crowd.n_classes)).nodes.values()
        return cast("NDArray[np.int64]", votes)

    def ask(self, action: Callable[[int, State], Any]) -> list[Any]:
        """The results of a read-only action for every shard, in order."""
        return self._answers(OnShards(action))

    # -- communication -----------------------------------------------------------------------------------------------

    def _made(self, block: Block, address: str) -> Any:
        """A host in the state that the driver expects; on another worker if its worker is gone."""
        made = (block, self._base, self._log, self._position)
        return self._client.submit(make_host, *made, workers=[address], allow_other_workers=True, pure=False)

    def _sums(self, operation: Operation) -> Sums:
        """The sums that the hosts answer with, added by the workers in a tree."""
        n_shards = self._crowd.n_shards

        def ask(parts: list[Any]) -> Sums | Lost:
            while len(parts) > _MERGED_BY_DRIVER:
                parts = [
                    self._client.submit(merge, n_shards, *parts[begin : begin + _MERGED_AT_ONCE], pure=False)
                    for begin in range(0, len(parts), _MERGED_AT_ONCE)
                ]
            answers = self._gathered(parts)
            return answers if isinstance(answers, Lost) else merge(n_shards, *answers)

        return cast("Sums", self._told(operation, ask))

    def _answers(self, operation: Operation) -> list[Any]:
        """The answers per shard, in the order of the shards."""

        def ask(parts: list[Any]) -> list[Any] | Lost:
            answers = self._gathered(parts)
            if isinstance(answers, Lost):
                return answers
            return lost_among(answers) or [entry for answer in answers for entry in answer]

        return cast("list[Any]", self._told(operation, ask))

    def _gathered(self, parts: list[Any]) -> list[Any] | Lost:
        """The values of futures, or the hosts whose workers are gone."""
        from distributed import wait

        while True:
            try:
                wait(parts, timeout=_SECONDS_BETWEEN_LOOKS)
                return list(self._client.gather(parts))
            except TimeoutError:
                # Dask recreates a lost host itself, but not if the last worker died: then the host
                # waits for that worker, even if others join.
                there = self._client.nthreads()
                gone = [number for number, place in enumerate(self._places) if place not in there]
                if there and gone:
                    return Lost(frozenset(gone))

    def _told(self, operation: Operation, ask: Callable[[list[Any]], Any]) -> Any:
        """Send the pending operations and this one to all hosts; lost hosts are recreated and get them again."""
        from distributed import KilledWorker

        operations = [*self._pending, operation]
        message: Any = operations
        if _nbytes(operations) * len(self._blocks) > _MAX_SENT:
            (message,) = self._client.scatter([operations], broadcast=True, hash=False)
        parts = self._performed(self._blocks, message)
        # Dropping futures also sends a message: the old ones are dropped after the new ones are sent.
        self._parts = parts
        for _ in range(_MAX_LOSSES):
            try:
                found = ask(parts)
            except CancelledError:
                # The message itself was lost with the only worker that had it.
                parts = self._performed(self._blocks, operations)
                continue
            except KilledWorker as error:
                raise RarevoteError(
                    f"dask workers keep dying on the same shards ({error}), most often for lack of memory: use more or "
                    "larger workers"
                ) from None
            if not isinstance(found, Lost):
                self._log += [entry for entry in operations if entry.alters]
                self._pending = []
                self._position += len(operations)
                return found
            lost = [self._blocks[number] for number in sorted(found.blocks)]
            self._recreate(lost)
            for block, part in zip(lost, self._performed(lost, operations), strict=True):
                parts[block.number] = part
        raise RarevoteError(f"dask workers were lost {_MAX_LOSSES} times in a row in one pass: see their logs")

    def _performed(self, blocks: Sequence[Block], message: Any) -> list[Any]:
        """A task for each of these hosts, all in one message: a client waits ten milliseconds between two.

        A task whose only large input is a host runs on its worker; without restrictions, many tasks with the same name
        would run anywhere.
        """
        numbers = [block.number for block in blocks]
        return list(
            self._client.map(
                perform,
                [self._hosts[number] for number in numbers],
                numbers,
                [self._position] * len(blocks),
                [message] * len(blocks),
                workers=[self._places[number] for number in numbers],
                allow_other_workers=True,
                pure=False,
            )
        )

    def _recreate(self, lost: Sequence[Block]) -> None:
        """Recreate lost hosts, each on the worker that has the fewest shards per thread."""
        threads = _threads(self._client)
        load = dict.fromkeys(threads, 0)
        for number, place in enumerate(self._places):
            if self._blocks[number] not in lost and place in load:
                load[place] += len(self._blocks[number].shards)
        for block in lost:
            place = min(load, key=lambda address: (load[address] + len(block.shards)) / threads[address])
            load[place] += len(block.shards)
            self._places[block.number] = place
            self._hosts[block.number] = self._made(block, place)

    def _write_down(self, folder: Path, *, everything: bool) -> None:
        """Let the workers save their state; hosts lost later start from it."""
        assert not self._pending
        make_folder(folder)
        self.ask(partial(write_local, folder, everything=everything))
        self._remove_base()
        self._base = folder
        # The proposed state of the last pass was not saved.
        self._log = [self._log[-1]]

    def _remove_base(self) -> None:
        """Remove the state that this engine saved for itself, but not that of a checkpoint."""
        if self._base is not None and self._base.parent == self._crowd.folder:
            shutil.rmtree(self._base, ignore_errors=True)


def spread(sizes: Sequence[int], threads: Sequence[int]) -> list[range]:
    """Neighbouring shards for each worker, in proportion to its threads; workers without shards are left out.

    Shards differ slightly in size, and a pass waits for the worker with the most: the split is as even as possible.

    >>> spread([5, 5, 5, 5, 5, 5], [1, 2])
    [range(0, 2), range(2, 6)]
    >>> spread([49, 50, 51, 51], [1, 1])
    [range(0, 2), range(2, 4)]
    >>> spread([5], [1, 1])
    [range(0, 1)]
    """
    filled = np.cumsum([0, *sizes])
    targets = np.cumsum(threads) / sum(threads) * filled[-1]
    above = np.minimum(np.searchsorted(filled, targets), len(sizes))
    below = np.maximum(above - 1, 0)
    # On a tie, the earlier worker gets the shard.
    ends = np.where(filled[above] - targets <= targets - filled[below], above, below)
    ends[-1] = len(sizes)
    begins = [0, *ends[:-1].tolist()]
    return [range(begin, end) for begin, end in zip(begins, ends.tolist(), strict=True) if end > begin]


def _threads(client: Any) -> dict[str, int]:
    """Threads of every worker, by address; waits for one if there is none."""
    while not (threads := client.nthreads()):
        client.wait_for_workers(1)
    return {address: int(threads[address]) for address in sorted(threads)}


def _nbytes(operations: Iterable[Operation]) -> int:
    """Bytes of the parameters in these operations."""
    sent = [entry.shared for entry in operations if isinstance(entry, Pass)]
    arrays = [array for shared in sent for array in (shared if isinstance(shared, tuple) else (shared,))]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


# --------------------------------------------------------------------------------------------------------------------
# clusters


@contextmanager
def connected(client: Any = None, scheduler: str | None = None) -> Iterator[Any]:
    """A client of the named cluster, or of a local cluster for the duration of the block.

    Raises:
        MissingExtraError: dask is not installed.
        RarevoteError: no scheduler responds at the address.
    """
    try:
        distributed, _ = import_module("distributed"), import_module("dask.dataframe")
    except ImportError as error:
        raise MissingExtraError(f"the dask engine needs dask ({error}): pip install 'rarevote[dask]'") from None
    if client is not None:
        yield client
    elif scheduler is not None:
        before = import_module("dask").config.get("scheduler", None)
        try:
            made = distributed.Client(scheduler)
        except (OSError, ValueError) as error:
            # Dask already has the failed client as its default.
            import_module("dask").config.set(scheduler=before)
            raise RarevoteError(f"no dask scheduler responds at {scheduler} ({error})") from None
        with made:
            yield made
    else:
        # Errors on a worker are shown by the exception that reaches the driver, not by the workers' logs.
        with (
            distributed.LocalCluster(
                n_workers=n_threads(None),
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # not visible on the network
                security=True,  # a scheduler runs any code sent to it: use keys for this run and this machine only
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster) as made,
        ):
            yield made
