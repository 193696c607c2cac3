"""What the compiled loops do, in whole arrays of NumPy.

Loading a compiler takes longer than fitting a few thousand votes, and compiling for the first time much longer still.
So small data never see numba: their passes are the ``plain`` module of each method, made of the pieces here. They are
also the readable form of the kernels, which the tests compare with them.

Which of the two computes depends on the data alone, never on what a process did before: a fit repeats to the last bit.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.memory import require_address_space

Floats = NDArray[np.float64]

# Up to this many votes a whole fit in NumPy is done before numba and compiled code would be loaded.
MAX_PLAIN_VOTES = 20_000
_ADDRESS_SPACE = 400_000_000
_AT_ONCE = 1 << 17  # rows or cells that stay in the cache while they are counted


def is_small(n_votes: int) -> bool:
    """Whether so many votes are better not given to compiled code; where they are, there must be room for it."""
    if n_votes <= MAX_PLAIN_VOTES:
        return True
    _require_room()
    return False


@cache
def _require_room() -> None:
    # Without, the compiler fails to load, or goes on for ever in a loop that no signal ends.
    require_address_space(_ADDRESS_SPACE, "compiled code (LLVM)")


def extrapolation(n_votes: int) -> ModuleType:
    """The module that extrapolates the local parameters of so many votes: this one, or the compiled one."""
    if is_small(n_votes):
        return sys.modules[__name__]
    from rarevote.kernels import squarem

    return squarem


def task_of_votes(task_ptr: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of the task of every vote, (N).

    >>> task_of_votes(np.array([0, 2, 3]))
    array([0, 0, 1])
    """
    return np.repeat(np.arange(task_ptr.size - 1), np.diff(task_ptr))


def sum_by(group: NDArray[Any], values: Floats, n_groups: int) -> Floats:
    """Add up the values (N) that belong to the same group: (n_groups), in their order."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


class Grouping:
    """Which group each of N rows belongs to, to add up rows pass after pass.

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
        worker: of every vote, (N).
        label: of every vote, (N).
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
        """1 where a vote is for the class, else 0, (N, K)."""
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
    """As :func:`rarevote.kernels.encode.group_by_code`, which does it where there are many rows in any order."""
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
    elif is_small(codes.size):
        np.cumsum(np.bincount(codes, minlength=pointer.size - 1), out=pointer[1:])
        order = np.argsort(codes, kind="stable")
        worker_out[...], label_out[...] = worker_in[order], label_in[order]
    else:
        from rarevote.kernels.encode import group_by_code

        group_by_code(codes, pointer, worker_in, label_in, worker_out, label_out)


def count_votes(task_ptr: NDArray[np.int64], label: NDArray[Any], weight: Floats, votes: Floats) -> None:
    """Add up ``votes[task, class]``; ``weight`` has one value per annotation, or none at all for ones."""
    n_classes = votes.shape[1]
    first, begin = int(task_ptr[0]), 0
    while begin < len(votes):
        end = int(np.searchsorted(task_ptr, task_ptr[begin] + _AT_ONCE))
        end = min(max(end, begin + 1), begin + _AT_ONCE, len(votes))
        ptr = task_ptr[begin : end + 1]
        low, high = int(ptr[0]), int(ptr[-1])
        cell = np.repeat(np.arange(0, (end - begin) * n_classes, n_classes), np.diff(ptr))
        cell += label[low:high]
        part = votes[begin:end]
        weights = weight[low - first : high - first] if weight.size else None
        part += np.bincount(cell, weights, part.size).reshape(part.shape)
        begin = end


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
    """``sum q (joint - log q)``, the bound of the log likelihood at a posterior that is held."""
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


# Rows of the sums of `task_sums`; n is the number of votes of a task, n_k that for class k.
VOTES, MET, SHARE, PAIRED_SHARE, SAME, FOLLOWED, ASKED = range(7)
N_SUMS = 7

# Up to this many pairs of votes on a common task are treated at once, and so many cells of a table by pair and class.
_MAX_PAIRS = 400_000
_MAX_CELLS = 4_000_000


def comparing(task_ptr: NDArray[np.int64], n_classes: int) -> ModuleType:
    """The module that compares the votes of tasks: this one, or the compiled one."""
    size = np.diff(task_ptr)
    n_pairs = int((size * (size - 1) // 2).sum())
    if is_small(int(size.sum())) and n_pairs <= _MAX_PAIRS and n_pairs * n_classes <= _MAX_CELLS:
        return sys.modules[__name__]
    from rarevote.kernels import agreement

    return agreement


def mark_last(task_ptr: NDArray[np.int64], worker: NDArray[Any], n_workers: int, kept: NDArray[np.bool_]) -> int:
    """As :func:`rarevote.kernels.agreement.mark_last`."""
    key = task_of_votes(task_ptr) * n_workers + worker
    kept[:] = False
    kept[key.size - 1 - np.unique(key[::-1], return_index=True)[1]] = True
    return int(kept.size - kept.sum())


def by_worker(worker: NDArray[Any], worker_ptr: NDArray[np.int64], own: NDArray[np.int64]) -> None:
    """As :func:`rarevote.kernels.agreement.by_worker`."""
    np.cumsum(np.bincount(worker, minlength=worker_ptr.size - 1), out=worker_ptr[1:])
    own[:] = np.argsort(worker, kind="stable")


def task_sums(
    task_ptr: NDArray[np.int64],
    label: NDArray[Any],
    group: NDArray[np.int64],
    sums: Floats,
    tasks: Floats,
    coincidences: Floats,
) -> None:
    """As :func:`rarevote.kernels.agreement.task_sums`."""
    n_tasks, n_classes = task_ptr.size - 1, sums.shape[2]
    task = task_of_votes(task_ptr)
    size = np.diff(task_ptr)
    tasks += np.stack([np.bincount(group, size > least, len(tasks)) for least in (0, 1)], axis=1)
    n = size[task].astype(np.float64)
    same = np.bincount(task * n_classes + label, minlength=n_tasks * n_classes)[task * n_classes + label]
    others, paired = same - 1.0, n > 1.0
    rest = np.maximum(n - 1.0, 1.0)
    parts = {
        VOTES: paired,
        MET: others / rest,
        SHARE: 1.0 / n,
        PAIRED_SHARE: paired / n,
        SAME: others / (n * rest),
        FOLLOWED: others,
        ASKED: n - 1.0,
    }
    cell = group[task] * n_classes + label
    for row, part in parts.items():
        sums[:, row] += np.bincount(cell, part, len(sums) * n_classes).reshape(len(sums), n_classes)
    if len(coincidences):
        one, other = _pairs_of_votes(task_ptr)
        one, other = np.concatenate([one, other]), np.concatenate([other, one])
        cell = (group[task[one]] * n_classes + label[one]) * n_classes + label[other]
        coincidences += np.bincount(cell, 1.0 / rest[one], coincidences.size).reshape(coincidences.shape)


def pair_kappas(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    label: NDArray[Any],
    worker_ptr: NDArray[np.int64],
    own: NDArray[np.int64],
    task: NDArray[Any],
    begin: int,
    end: int,
    n_classes: int,
    n_slots: int,
    n_shared: int,
    pairs: NDArray[np.int32],
    kappa: Floats,
    variance: Floats,
    influence: Floats,
) -> int:
    """As :func:`rarevote.kernels.agreement.pair_kappas`."""
    del own, n_slots, n_shared
    one, other = _pairs_of_votes(task_ptr)
    wanted = (worker[one] >= begin) & (worker[one] < end)
    one, other = one[wanted], other[wanted]
    order = np.lexsort((other, one, worker[one]))
    one, other = one[order], other[order]
    # Pairs of workers, numbered in the order in which they are met.
    key = worker[one].astype(np.int64) * (worker_ptr.size - 1) + worker[other]
    _, first, pair = np.unique(key, return_index=True, return_inverse=True)
    met = np.argsort(first, kind="stable")
    pair = np.argsort(met, kind="stable")[pair]
    n_pairs = len(met)
    at = first[met]
    common = np.bincount(pair, minlength=n_pairs)
    equal = np.bincount(pair, label[one] == label[other], n_pairs)
    pairs[:n_pairs] = np.stack([worker[one[at]], worker[other[at]], common, equal], axis=1)

    mine, theirs = pair * n_classes + label[one], pair * n_classes + label[other]
    of_first, of_second = (np.bincount(cell, minlength=n_pairs * n_classes) for cell in (mine, theirs))
    expected = (of_first * of_second).reshape(n_pairs, n_classes).sum(axis=1) / common**2
    observed, missed = equal / common, 1.0 - expected
    has_one = missed > 0.0
    missed = np.where(has_one, missed, 1.0)
    kappa[:n_pairs] = np.where(has_one, (observed - expected) / missed, np.nan)
    pull = (1.0 - observed) / (missed * missed * common)
    slope = (
        (2.0 * expected * pull - observed / (missed * common))[pair]
        - (pull / common)[pair] * (of_second[pair * n_classes + label[one]] + of_first[pair * n_classes + label[other]])
        + np.where(label[one] == label[other], (1.0 / (missed * common))[pair], 0.0)
    )
    slope = np.where(has_one[pair], slope, 0.0)
    influence += np.bincount(task[one], slope, influence.size)
    variance[:n_pairs] = np.where(has_one, np.bincount(pair, slope * slope, n_pairs), np.nan)
    return n_pairs


def pair_errors(
    task_ptr: NDArray[np.int64],
    slot: NDArray[np.int64],
    label: NDArray[Any],
    known: NDArray[np.int64],
    n_classes: int,
    sums: Floats,
) -> None:
    """As :func:`rarevote.kernels.agreement.pair_errors`."""
    task = task_of_votes(task_ptr)
    one, other = _pairs_of_votes(task_ptr)
    wanted = (slot[one] >= 0) & (slot[other] >= 0)
    one, other = one[wanted], other[wanted]
    if known.size:
        truth = known[task[one]]
        counts = truth >= 0
    else:
        cells = np.bincount(task * n_classes + label, minlength=(task_ptr.size - 1) * n_classes)
        left = cells.reshape(-1, n_classes)[task[one]]
        rows = np.arange(len(one))
        left[rows, label[one]] -= 1
        left[rows, label[other]] -= 1
        best = left.max(axis=1)
        truth = left.argmax(axis=1)
        counts = (best > 0) & ((left == best[:, None]).sum(axis=1) == 1)
    one, other, truth = one[counts], other[counts], truth[counts]
    a, b = np.where(slot[one] < slot[other], one, other), np.where(slot[one] < slot[other], other, one)
    first, second = label[a] != truth, label[b] != truth
    n = len(sums)
    cell = slot[a] * n + slot[b]
    for number, part in enumerate((np.ones(len(a)), first, second, first & second)):
        sums[:, :, number] += np.bincount(cell, part, n * n).reshape(n, n)


def _pairs_of_votes(task_ptr: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of every two votes on a common task, the earlier one first."""
    size = np.diff(task_ptr)
    found = [(np.empty(0, dtype=np.int64),) * 2]
    for n in np.unique(size[size > 1]).tolist():
        begin = task_ptr[:-1][size == n, None]
        one, other = np.triu_indices(n, 1)
        found.append(((begin + one).ravel(), (begin + other).ravel()))
    return np.concatenate([one for one, _ in found]), np.concatenate([other for _, other in found])
