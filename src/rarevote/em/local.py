"""One machine: shards in a thread pool, sums added in a fixed order.

The shards depend only on the data, not on the number of threads, and their sums are added in the order of a tree
over the shards: results are the same to the last bit for any ``n_jobs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import IntArray
from rarevote.em.checkpoint import Checkpoint, digest_of
from rarevote.em.engine import Engine, Run, Runner
from rarevote.em.loop import Callback, StoppingRule, run_em
from rarevote.em.model import CrowdFacts, EMModel, FloatArray, Gold, Local, Offsets, Passes, Shard, Shared, Start, Stats
from rarevote.em.shards import ShardState, Summation, read_local, write_local

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Fewer annotations than this do not justify a thread. One of four shards has at least half of them, which
# is too many for NumPy passes.
_ANNOTATIONS_PER_SHARD = 420_000
_MAX_SHARDS = 64
# Five equal shards take two threads as long as six would: a multiple of this suits two and four threads.
_SHARDS_MULTIPLE = 4

_Result = TypeVar("_Result")


def shard_bounds(annotations: Annotations) -> list[int]:
    """Task numbers at which the shards begin and end, about equal in annotations."""
    n_shards = min(max(annotations.n_annotations // _ANNOTATIONS_PER_SHARD, 1), _MAX_SHARDS)
    if n_shards > 1:
        n_shards = -(-n_shards // _SHARDS_MULTIPLE) * _SHARDS_MULTIPLE
    targets = np.linspace(0, annotations.n_annotations, n_shards + 1)[1:-1]
    inner = np.searchsorted(annotations.task_ptr, targets)
    return [0, *(int(task) for task in inner), annotations.n_tasks]


def shards_of(annotations: Annotations, gold: Gold) -> list[Shard]:
    """The crowd in shards, which depend only on the data."""
    return [
        Shard(
            annotations.task_ptr[begin : end + 1],
            annotations.worker,
            annotations.label,
            gold[begin:end] if gold.size else gold,
        )
        for begin, end in pairwise(shard_bounds(annotations))
    ]


def n_threads(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: all cores by default or for -1, as in scikit-learn."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None or n_jobs == 0:
        return cores
    return max(1, n_jobs if n_jobs > 0 else cores + 1 + n_jobs)


def _pool_of(threads: int) -> ThreadPoolExecutor | None:
    """A pool of this many threads; None for one thread, which needs no pool."""
    if threads < 2:
        return None
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads, thread_name_prefix="rarevote")


class LocalRunner(Runner):
    """Runs models in threads of this process; the crowd must be in memory, as ``Annotations``.

    Args:
        n_jobs: threads; None or -1 for all cores. Results do not depend on it.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self._cut: tuple[Annotations, Gold, list[Shard]] | None = None

    def _engine(
        self, model: Passes[Any, Any, Any], crowd: CrowdFacts, gold: Gold, *, one_posterior: bool = False
    ) -> LocalEngine[Any, Any, Any]:
        """An engine over the shards of the crowd; the shards of the last crowd are reused if it is the same."""
        votes = _here(crowd)
        if self._cut is None or self._cut[0] is not votes or self._cut[1] is not gold:
            self._cut = votes, gold, shards_of(votes, gold)
        return LocalEngine(model, votes, gold, self.n_jobs, shards=self._cut[2], one_posterior=one_posterior)

    def run(
        self,
        model: EMModel[Any, Any, Any],
        crowd: CrowdFacts,
        gold: Gold,
        rule: StoppingRule,
        *,
        checkpoint: Checkpoint | None = None,
        callback: Callback | None = None,
        is_last: bool = True,
        **options: Any,
    ) -> Run:
        """Fit a model; a checkpoint is cleared once that is done."""
        # If every pass refreshes the posterior, an earlier one is not needed, except for a checkpoint.
        mixes = model.profiles and bool(options.get("accelerate")) and not options.get("exact")
        alone = model.one_posterior or mixes
        with self._engine(model, crowd, gold, one_posterior=alone and checkpoint is None) as engine:
            shared = model.start()
            outcome = run_em(model, engine, shared, rule, callback=callback, checkpoint=checkpoint, **options)
            found = Run(outcome, engine.posterior(), engine.local_parameters())
        if checkpoint is not None:
            checkpoint.clear()
        return found

    def start(self, model: Start, crowd: CrowdFacts, gold: Gold) -> FloatArray:
        """The starting posterior of the tasks, (n_tasks, n_classes)."""
        votes = _here(crowd)
        posterior: FloatArray = model.start_local(Shard(votes.task_ptr, votes.worker, votes.label, gold))[0]
        return posterior

    def sums(self, model: Passes[Any, Any, Any], crowd: CrowdFacts, gold: Gold, shared: Any) -> Any:
        """The sums of a single pass."""
        with self._engine(model, crowd, gold) as engine:
            return engine.run(shared, refresh=False, damping=0.0)[0]

    def report(
        self,
        model: Passes[Any, Any, Any],
        crowd: CrowdFacts,
        gold: Gold,
        shared: Any,
        then: Callable[[Any], Any],
    ) -> FloatArray:
        """Run two passes; returns what the second writes, (n_tasks, n_classes)."""
        with self._engine(model, crowd, gold, one_posterior=True) as engine:
            second = then(engine.run(shared, refresh=True, damping=0.0)[0])
            engine.advance()
            engine.run(second, refresh=True, damping=0.0)
            return engine.posterior()

    def worker_votes(self, crowd: CrowdFacts) -> IntArray:
        """How often each worker gave each label, (n_workers, n_classes)."""
        votes = _here(crowd)
        counted = np.zeros(votes.n_workers * votes.n_classes, dtype=np.int64)
        for begin, end in pairwise(votes.task_ptr[shard_bounds(votes)].tolist()):
            cell = votes.worker[begin:end].astype(np.int64) * votes.n_classes + votes.label[begin:end]
            counted += np.bincount(cell, minlength=counted.size)
        return counted.reshape(votes.n_workers, votes.n_classes)

    def digest(self, crowd: CrowdFacts, gold: Gold) -> str:
        """A fingerprint of the votes and of gold."""
        return digest_of(_here(crowd), gold)


def _here(crowd: CrowdFacts) -> Annotations:
    if not isinstance(crowd, Annotations):
        raise TypeError(f"the votes of this {type(crowd).__name__} are not on this machine")
    return crowd


class LocalEngine(Engine[Shared, Local, Stats]):
    """Runs passes on this machine; a context manager, because it owns threads.

    Args:
        model: what to run.
        annotations: the votes.
        gold: known class of each task or -1; or of size 0.
        n_jobs: threads.
        shards: the votes in shards, if they exist already.
        one_posterior: keep only the posterior of the last pass. After a step back, changes are relative to it, not to
            the one before.
    """

    def __init__(
        self,
        model: Passes[Shared, Local, Stats],
        annotations: Annotations,
        gold: Gold,
        n_jobs: int | None = None,
        *,
        shards: Sequence[Shard] | None = None,
        one_posterior: bool = False,
    ) -> None:
        shards = shards_of(annotations, gold) if shards is None else shards
        ends = np.cumsum([shard.task_ptr.size - 1 for shard in shards]).tolist()
        # All shards rotate their states at the same time, so the proposed states of all are in the same array, and the
        # result needs no copy. Memory that is never written to is not allocated.
        states = _room_for(model.start_local(shards[0]), annotations.n_tasks, one_posterior)
        self._states: list[ShardState[Shared, Local, Stats]] = [
            ShardState(model, shard, _rows(states, end - shard.task_ptr.size + 1, end))
            for shard, end in zip(shards, ends, strict=True)
        ]
        self._n_tasks = annotations.n_tasks
        self._summation: Summation[Stats] = Summation(model, range(len(self._states)), len(self._states))
        self._pool = _pool_of(min(n_threads(n_jobs), len(self._states)))

    def __enter__(self) -> LocalEngine[Shared, Local, Stats]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    # -- passes ------------------------------------------------------------------------------------------------------

    def run(self, shared: Shared, *, refresh: bool, damping: float) -> tuple[Stats, float]:
        """One pass over all shards."""
        nodes, change = self._summation.run(self._states, shared, refresh=refresh, damping=damping, pool=self._pool)
        (total,) = nodes.values()
        return total, change

    def advance(self) -> None:
        """Make the proposed local state the current one."""
        for state in self._states:
            state.advance()

    def retreat(self) -> None:
        """Return to the local state before the last advance."""
        for state in self._states:
            state.retreat()

    # -- extrapolation -----------------------------------------------------------------------------------------------

    def local_distances(self, offsets: Offsets) -> tuple[float, float]:
        """Squared norms of the first and second differences of the local parameters."""
        found = self._each(lambda number: self._states[number].distances(offsets))
        return sum(first for first, _ in found), sum(second for _, second in found)

    def extrapolate(self, offsets: Offsets, length: float) -> tuple[NDArray[Any], ...]:
        """Propose the extrapolated point and save what was proposed; returns the means of each array."""
        parts = self._each(lambda number: self._states[number].extrapolate(offsets, length))
        return tuple(np.asarray(sum(arrays) / max(self._n_tasks, 1)) for arrays in zip(*parts, strict=True))

    def take_plain(self) -> None:
        """Make the saved state the current one in place of the extrapolated point."""
        for state in self._states:
            state.take_plain()

    # -- on disk -----------------------------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write the current local state, one file per shard."""
        for number, state in enumerate(self._states):
            write_local(folder, number, state)

    def load(self, folder: Path) -> None:
        """Read the current local state from the files that :meth:`save` wrote."""
        for number, state in enumerate(self._states):
            read_local(folder, number, state)

    # -- results -----------------------------------------------------------------------------------------------------

    def posterior(self) -> NDArray[Any]:
        """The posterior that the last pass computed, (n_tasks, n_classes)."""
        return _whole([state.proposed[0] for state in self._states])

    def local_parameters(self) -> tuple[NDArray[Any], ...]:
        """The local parameters behind that posterior: every local array but the posterior."""
        columns = zip(*(state.current[1:] for state in self._states), strict=True)
        return tuple(_whole(parts) for parts in columns)

    def _each(self, action: Callable[[int], _Result]) -> list[_Result]:
        """The results of ``action`` for the number of every shard, in order."""
        numbers = range(len(self._states))
        return list(self._pool.map(action, numbers) if self._pool is not None else map(action, numbers))


_FourStates = tuple[Local, Local, Local, Local]


def _room_for(like: Local, n_tasks: int, one_posterior: bool) -> _FourStates[Local]:
    """Memory for four copies of the local state of all tasks; ``like`` is the state of some tasks."""

    def one() -> Local:
        return type(like)(*(np.empty((n_tasks, *array.shape[1:]), dtype=array.dtype) for array in like))

    first = one()
    if one_posterior:
        second, third, fourth = (type(like)(first[0], *one()[1:]) for _ in range(3))
        return first, second, third, fourth
    return first, one(), one(), one()


def _rows(states: _FourStates[Local], begin: int, end: int) -> _FourStates[Local]:
    first, second, third, fourth = (type(state)(*(array[begin:end] for array in state)) for state in states)
    return first, second, third, fourth


def _whole(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The array of all tasks whose consecutive rows these are."""
    whole: NDArray[Any] = parts[0].base  # type: ignore[assignment]
    assert all(part.base is whole for part in parts)
    return whole
