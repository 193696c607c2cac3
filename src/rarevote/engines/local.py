"""One machine: shards in a thread pool, sums added in a fixed order.

The shards depend on the data alone, never on the number of threads, and their sums are added in the order of the
shards: results are the same to the last bit for any ``n_jobs``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations
from rarevote.em import Engine, Local, Model, Offsets, Shard, Shared, Stats

# Fewer annotations than this are not worth a thread of their own.
_ANNOTATIONS_PER_SHARD = 400_000
_MOST_SHARDS = 64
# Extrapolation works through this many tasks at a time, so that its temporaries stay in the cache.
_ROWS_AT_ONCE = 8192

_Point = tuple[NDArray[Any], NDArray[Any]]
_Result = TypeVar("_Result")


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
        self._aside: list[Local] | None = None  # made when the first step is lengthened
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

        changes = self._map(step)
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

    def local_distances(self, offsets: Offsets) -> tuple[float, float]:
        """Squared norms of the first and second differences of the local parameters."""

        def of_shard(index: int) -> tuple[float, float]:
            first = second = 0.0
            for t0, t1, t2 in self._points(index, offsets):
                for begin in range(0, len(t0[0]), _ROWS_AT_ONCE):
                    rows = slice(begin, begin + _ROWS_AT_ONCE)
                    r, v = _differences(rows, t0, t1, t2)
                    first += float(np.vdot(r, r))
                    second += float(np.vdot(v, v))
            return first, second

        found = self._map(of_shard)
        return sum(first for first, _ in found), sum(second for _, second in found)

    def extrapolate(self, offsets: Offsets, length: float) -> tuple[NDArray[Any], ...]:
        """Propose ``t0 + 2 a r + a^2 v`` in place of ``t2``, which is kept aside."""
        if self._aside is None:
            self._aside = [_like(local) for local in self._current]
        aside = self._aside

        def of_shard(index: int) -> list[NDArray[Any]]:
            sums = []
            aside[index][0][:] = self._proposed[index][0]
            for out, (t0, t1, t2) in zip(aside[index][1:], self._points(index, offsets), strict=True):
                total = np.zeros(out.shape[1:])
                for begin in range(0, len(out), _ROWS_AT_ONCE):
                    rows = slice(begin, begin + _ROWS_AT_ONCE)
                    r, v = _differences(rows, t0, t1, t2)
                    far = t0[0][rows] + t0[1] + 2.0 * length * r + length**2 * v
                    out[rows] = far
                    total += far.sum(0)
                sums.append(total)
            return sums

        parts = self._map(of_shard)
        self._proposed, self._aside = self._aside, self._proposed
        n_tasks = max(sum(len(local[0]) for local in self._current), 1)
        return tuple(sum(arrays) / n_tasks for arrays in zip(*parts, strict=True))

    def take_plain(self) -> None:
        """Make what was kept aside the current state in place of the far point."""
        assert self._aside is not None
        self._current, self._aside = self._aside, self._current

    def _points(self, index: int, offsets: Offsets) -> list[tuple[_Point, _Point, _Point]]:
        """For each local array but the posterior: as it was, is, and is proposed, each with its offset."""
        states = (self._previous[index], self._current[index], self._proposed[index])
        columns = [zip(state[1:], offset, strict=True) for state, offset in zip(states, offsets, strict=True)]
        return list(zip(*columns, strict=True))

    def _map(self, action: Callable[[int], _Result]) -> list[_Result]:
        indices = range(len(self._shards))
        return list(self._pool.map(action, indices) if self._pool is not None else map(action, indices))

    def posterior(self) -> NDArray[Any]:
        """The posterior that the last pass computed, (n_tasks, n_classes)."""
        return _join([local[0] for local in self._proposed])

    def local_parameters(self) -> tuple[NDArray[Any], ...]:
        """The local parameters behind that posterior: every local array but the posterior."""
        columns = zip(*(local[1:] for local in self._current), strict=True)
        return tuple(_join(parts) for parts in columns)


def _differences(rows: slice, t0: _Point, t1: _Point, t2: _Point) -> tuple[NDArray[Any], NDArray[Any]]:
    """First and second difference of three consecutive points, over some rows."""
    r = (t1[0][rows] + t1[1]) - (t0[0][rows] + t0[1])
    return r, (t2[0][rows] + t2[1]) - (t1[0][rows] + t1[1]) - r


def _like(local: Local) -> Local:
    return type(local)(*(np.empty_like(array) for array in local))


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
