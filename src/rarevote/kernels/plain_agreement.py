"""Who agrees and who errs with whom, in whole arrays of NumPy: for small data, and to read beside the kernels."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels import plain

Floats = NDArray[np.float64]

# Rows of the sums of `task_sums`; n is the number of votes of a task, n_k that for class k.
VOTES, MET, SHARE, PAIRED_SHARE, SAME, FOLLOWED, ASKED = range(7)
N_SUMS = 7

# Up to this many pairs of votes on a common task are treated at once, and so many cells of a table by pair and class.
_MAX_PAIRS = 400_000
_MAX_CELLS = 4_000_000


def counting(task_ptr: NDArray[np.int64], n_classes: int) -> ModuleType:
    """The module that compares the votes of tasks: this one, or the compiled one."""
    size = np.diff(task_ptr)
    n_pairs = int((size * (size - 1) // 2).sum())
    if plain.is_small(int(size.sum())) and n_pairs <= _MAX_PAIRS and n_pairs * n_classes <= _MAX_CELLS:
        return sys.modules[__name__]
    from rarevote.kernels import agreement

    return agreement


def mark_last(task_ptr: NDArray[np.int64], worker: NDArray[Any], n_workers: int, kept: NDArray[np.bool_]) -> int:
    """As :func:`rarevote.kernels.agreement.mark_last`."""
    key = plain.task_of_votes(task_ptr) * n_workers + worker
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
    task = plain.task_of_votes(task_ptr)
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
    task = plain.task_of_votes(task_ptr)
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
