"""One machine: shards in a thread pool, sums added in a fixed order.

The shards depend on the data alone, never on the number of threads, and their sums are added in the order of the
shards: results are the same to the last bit for any ``n_jobs``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations
from rarevote.em import Engine, Local, Model, Shard, Shared, Stats

# Fewer annotations than this are not worth a thread of their own.
_ANNOTATIONS_PER_SHARD = 400_000
_MOST_SHARDS = 64


def shard_bounds(annotations: Annotations) -> list[int]:
    """Task numbers at which the shards begin and end, about equal in annotations."""
    n_shards = min(max(annotations.n_annotations // _ANNOTATIONS_PER_SHARD, 1), _MOST_SHARDS)
    targets = np.linspace(0, annotations.n_annotations, n_shards + 1)[1:-1]
    inner = np.searchsorted(annotations.task_ptr, targets)
    return [0, *(int(task) for task in inner), annotations.n_tasks]


def n_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: all cores by default or for -1, as scikit-learn counts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None or n_jobs == 0:
        return cores
    return max(1, n_jobs if n_jobs > 0 else cores + 1 + n_jobs)


class LocalEngine(Engine[Shared, Local, Stats]):
    """Runs passes on this machine; a context manager, because it owns threads."""

    def __init__(
        self,
        model: Model[Shared, Local, Stats],
        annotations: Annotations,
        gold: NDArray[np.int32],
        n_jobs: int | None = None,
    ) -> None:
        bounds = shard_bounds(annotations)
        self._model = model
        self._shards = [
            Shard(
                annotations.task_ptr[begin : end + 1],
                annotations.worker,
                annotations.label,
                gold[begin:end] if gold.size else gold,
            )
            for begin, end in pairwise(bounds)
        ]
        self._current: list[Local] = [model.start_local(shard) for shard in self._shards]
        self._proposed = [_like(local) for local in self._current]
        self._previous = [_like(local) for local in self._current]
        self._stats: list[Stats] | None = None
        threads = min(n_threads(n_jobs), len(self._shards))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rarevote") if threads > 1 else None

    def __enter__(self) -> LocalEngine[Shared, Local, Stats]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, shared: Shared, *, refresh: bool, damping: float) -> tuple[Stats, float]:
        """One pass over all shards."""
        if self._stats is None:
            self._stats = [self._model.empty_stats(shared) for _ in self._shards]
        stats = self._stats

        def step(index: int) -> float:
            for array in stats[index]:
                array.fill(0.0)
            return self._model.step(
                shared,
                self._shards[index],
                self._current[index],
                self._proposed[index],
                stats[index],
                refresh,
                damping,
            )

        indices = range(len(self._shards))
        changes = list(self._pool.map(step, indices) if self._pool is not None else map(step, indices))
        total = stats[0]
        for part in stats[1:]:
            for sum_so_far, term in zip(total, part, strict=True):
                sum_so_far += term
        return total, max(changes)

    def advance(self) -> None:
        """Make the proposed local state the current one."""
        self._previous, self._current, self._proposed = self._current, self._proposed, self._previous

    def retreat(self) -> None:
        """Go back to the local state before the last advance."""
        self._previous, self._current, self._proposed = self._proposed, self._previous, self._current

    def posterior(self) -> NDArray[Any]:
        """The posterior that the last pass computed, (n_tasks, n_classes)."""
        return _join([local[0] for local in self._proposed])

    def local_parameters(self) -> tuple[NDArray[Any], ...]:
        """The local parameters behind that posterior: every local array but the posterior."""
        columns = zip(*(local[1:] for local in self._current), strict=True)
        return tuple(_join(parts) for parts in columns)


def _like(local: Local) -> Local:
    return type(local)(*(np.empty_like(array) for array in local))


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
