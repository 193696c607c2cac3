"""The compiled loops as operations on whole NumPy arrays.

Loading a compiler takes longer than fitting a hundred thousand votes, and compiling for the first time takes seconds.
So small data do not use numba: their passes are in the ``plain`` module of each method, built from these functions.
They are also the readable form of the kernels, which the tests compare with them.

The choice between the two depends only on the data, not on what a process did before: a fit repeats to the last bit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.memory import require_address_space

Floats = NDArray[np.float64]

# Up to this many votes times classes a whole fit in NumPy finishes before numba and compiled code would be loaded, and
# long before it would be compiled (benchmarks/first_result.py).
MAX_PLAIN_CELLS = 400_000
# Votes are sorted once and passed over many times: up to this factor more votes, NumPy's sort is faster than compiling
# one.
_SORTED_ONCE = 5
_ADDRESS_SPACE = 400_000_000
_AT_ONCE = 1 << 17  # rows or cells that stay in the cache while they are counted


def is_small(n_votes: int, n_classes: int) -> bool:
    """Whether this many votes are computed in NumPy; otherwise there must be address space for compiled code."""
    if n_votes * max(n_classes, 1) <= MAX_PLAIN_CELLS:
        return True
    _require_room()
    return False


@cache
def _require_room() -> None:
    # Otherwise the compiler fails to load, or hangs in a loop that no signal ends.
    require_address_space(_ADDRESS_SPACE, "compiled code (LLVM)")


def extrapolation(n_votes: int, n_classes: int) -> ModuleType:
    """The module that extrapolates the local parameters for this many votes: this one, or the compiled one."""
    if is_small(n_votes, n_classes):
        return sys.modules[__name__]
    from rarevote.kernels import squarem

    return squarem


def task_of_votes(task_ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the task of every vote, (N).

    >>> task_of_votes(np.array([0, 2, 3]))
    array([0, 0, 1])
    """
    return np.repeat(np.arange(task_ptr.size - 1), np.diff(task_ptr))


def runs(pointer: NDArray[np.int64], most: int = _AT_ONCE) -> Iterator[tuple[int, int]]:
    """First and last group (plus one) of runs of groups, each of about ``most`` rows; a longer group is its own run.

    Args:
        pointer: the start of the rows of each group, and the end of the last one.
        most: rows, and groups, of a run.

    >>> list(runs(np.array([0, 2, 4, 9, 10]), 4))
    [(0, 2), (2, 3), (3, 4)]
    """
    begin, n_groups = 0, pointer.size - 1
    while begin < n_groups:
        end = int(np.searchsorted(pointer, pointer[begin] + most))
        end = min(max(end, begin + 1), begin + most, n_groups)
        yield begin, end
        begin = end


def sum_by(group: NDArray[Any], values: NDArray[Any], n_groups: int) -> Floats:
    """Add up the values (N) that belong to the same group: (n_groups), in their order."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


class Grouping:
    """Which group each of N rows belongs to, to add up rows in every pass.

    >>> Grouping(np.array([0, 1, 0])).sums(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 2)
    array([[6., 8.],
           [3., 4.]])
    """

    def __init__(self, group: NDArray[Any]) -> None:
        self.group = group.astype(np.intp)
        self._cells: dict[int, NDArray[np.intp]] = {}  # of flat sums, by the number of columns

    def sums(self, values: Floats, n_groups: int) -> Floats:
        """Add up the rows of ``values`` (N, C) that belong to the same group: (n_groups, C), in their order."""
        columns = values.shape[1]
        if columns not in self._cells:
            self._cells[columns] = np.asarray(self.group[:, None] * columns + np.arange(columns), dtype=np.intp).ravel()
        return sum_by(self._cells[columns], values.ravel(), n_groups * columns).reshape(n_groups, columns)

    def spread(self, values: Floats) -> Floats:
        """The row of its group for each of the N rows, (N, C), from (n_groups, C)."""
        return np.take(values, self.group, axis=0)


class VoteRows:
    """Votes row by row, and how they group.

    Attributes:
        worker: worker of every vote, (N).
        label: label of every vote, (N).
        by_task: votes of the same task.
        by_worker: votes of the same worker.
    """

    def __init__(self, task_ptr: NDArray[np.int64], worker: NDArray[Any], label: NDArray[Any]) -> None:
        own = slice(task_ptr[0], task_ptr[-1])
        self.worker, self.label = worker[own].astype(np.intp), label[own].astype(np.intp)
        self.by_task, self.by_worker = Grouping(task_of_votes(task_ptr)), Grouping(self.worker)
        self._by_answer: dict[int, Grouping] = {}
        self._is_own: dict[int, Floats] = {}

    def is_own(self, n_classes: int) -> Floats:
        """1 if a vote is for the class, else 0, (N, K)."""
        if n_classes not in self._is_own:
            self._is_own[n_classes] = (self.label[:, None] == np.arange(n_classes)).astype(np.float64)
        return self._is_own[n_classes]

    def by_answer(self, n_classes: int) -> Grouping:
        """Votes of the same worker for the same label; groups are the rows of a table (m * K)."""
        if n_classes not in self._by_answer:
            self._by_answer[n_classes] = Grouping(self.worker * n_classes + self.label)
        return self._by_answer[n_classes]


def group_by_code(
    codes: NDArray[Any],
    pointer: NDArray[np.int64],
    worker_in: NDArray[Any],
    label_in: NDArray[Any],
    worker_out: NDArray[Any],
    label_out: NDArray[Any],
) -> None:
    """As :func:`rarevote.kernels.encode.group_by_code`, which is used for many rows in any order."""
    blocks = range(0, codes.size, _AT_ONCE)
    later = codes[1:]
    if all(
        (later[begin : begin + _AT_ONCE] >= codes[begin : begin + _AT_ONCE][: later.size - begin]).all()
        for begin in blocks
    ):
        for begin in blocks:
            block = codes[begin : begin + _AT_ONCE]
            low, high = int(block[0]), int(block[-1])
            pointer[low + 1 : high + 2] += np.bincount((block - low).astype(np.int64, copy=False))
        np.cumsum(pointer, out=pointer)
        worker_out[...], label_out[...] = worker_in, label_in
    elif is_small(-(-codes.size // _SORTED_ONCE), 1):
        np.cumsum(np.bincount(codes, minlength=pointer.size - 1), out=pointer[1:])
        order = np.argsort(codes, kind="stable")
        worker_out[...], label_out[...] = worker_in[order], label_in[order]
    else:
        from rarevote.kernels.encode import group_by_code

        group_by_code(codes, pointer, worker_in, label_in, worker_out, label_out)


def count_votes(task_ptr: NDArray[np.int64], label: NDArray[Any], weight: Floats, votes: Floats) -> None:
    """Add up ``votes[task, class]``; ``weight`` has one value per annotation, or is empty for ones."""
    n_classes, first = votes.shape[1], int(task_ptr[0])
    for begin, end in runs(task_ptr):
        ptr = task_ptr[begin : end + 1]
        low, high = int(ptr[0]), int(ptr[-1])
        cell = np.repeat(np.arange(0, (end - begin) * n_classes, n_classes), np.diff(ptr))
        cell += label[low:high]
        part = votes[begin:end]
        weights = weight[low - first : high - first] if weight.size else None
        part += np.bincount(cell, weights, part.size).reshape(part.shape)


def posterior_of_rows(joint: Floats, gold: NDArray[Any]) -> tuple[Floats, Floats]:
    """Normalise ``exp(joint)`` (n, K) over classes; a gold task is certain of its class.

    Returns:
        The posterior (n, K), and the log probability of the votes (with the known class, for a gold task) (n).
    """
    top = joint.max(axis=1, keepdims=True)
    q = np.exp(joint - top)
    total = q.sum(axis=1, keepdims=True)
    q /= total
    log_evidence = (top + np.log(total))[:, 0]
    if gold.size:
        known = np.flatnonzero(gold >= 0)
        log_evidence[known] = joint[known, gold[known]]
        q[known] = 0.0
        q[known, gold[known]] = 1.0
    return q, log_evidence


def bound_at(joint: Floats, posterior: Floats) -> float:
    """``sum q (joint - log q)``, the bound of the log likelihood at a fixed posterior."""
    return float((posterior * (joint - np.log(np.where(posterior > 0.0, posterior, 1.0)))).sum())


def squared_differences(
    t0: NDArray[Any], t1: NDArray[Any], t2: NDArray[Any], o0: Floats, o1: Floats, o2: Floats
) -> tuple[float, float]:
    """As :func:`rarevote.kernels.squarem.squared_differences`."""
    middle = t1 + o1
    r = middle - (t0 + o0)
    v = (t2 + o2) - middle - r
    return float((r * r).sum()), float((v * v).sum())


def far_point(
    t0: NDArray[Any],
    t1: NDArray[Any],
    t2: NDArray[Any],
    o0: Floats,
    o1: Floats,
    o2: Floats,
    length: float,
    out: NDArray[Any],
    sums: Floats,
) -> None:
    """As :func:`rarevote.kernels.squarem.far_point`."""
    begin, middle = t0 + o0, t1 + o1
    r = middle - begin
    v = (t2 + o2) - middle - r
    far = begin + 2.0 * length * r + length * length * v
    out[...] = far
    sums += far.sum(axis=0)
