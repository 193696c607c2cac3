"""Which two workers err together: errors of every pair against known classes, or against what all others say."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel


@kernel
def pair_errors(
    task_ptr: NDArray[np.int64],
    slot: NDArray[np.int64],
    label: NDArray[Any],
    known: NDArray[np.int64],
    n_classes: int,
    sums: NDArray[np.float64],
) -> None:
    """Count common tasks and errors of every pair.

    The reference of a pair on a task is its known class, or where nothing is known the class that most others (those
    not of the pair) voted for; without a single such class the task does not count for the pair.

    Args:
        task_ptr: where the votes of each task begin.
        slot: number of the worker of each vote among those that are compared, or -1; each votes once on a task.
        label: class of each vote.
        known: class of each task, or -1; of size 0 where no class is known.
        n_classes: number of classes.
        sums: zeros, (compared, compared, 4): for each pair ``a < b`` common tasks, errors of a, of b, of both.
    """
    counts = np.zeros(n_classes, np.int64)
    used = np.empty(n_classes, np.int64)
    by_known = known.shape[0] > 0
    for task in range(task_ptr.shape[0] - 1):
        begin, end = task_ptr[task], task_ptr[task + 1]
        reference = known[task] if by_known else -1
        if by_known and reference < 0:
            continue
        n_used = 0
        for position in range(begin, end):
            if counts[label[position]] == 0:
                used[n_used] = label[position]
                n_used += 1
            counts[label[position]] += 1
        for one in range(begin, end):
            for other in range(one + 1, end):
                if slot[one] < 0 or slot[other] < 0:
                    continue
                truth = reference
                if not by_known:
                    best, tied = 0, False
                    for number in range(n_used):
                        k = used[number]
                        left = counts[k] - (label[one] == k) - (label[other] == k)
                        if left > best:
                            best, tied, truth = left, False, k
                        elif left == best:
                            tied = True
                    if best == 0 or tied:
                        continue
                a, b = (one, other) if slot[one] < slot[other] else (other, one)
                first, second = label[a] != truth, label[b] != truth
                sums[slot[a], slot[b], 0] += 1.0
                sums[slot[a], slot[b], 1] += first
                sums[slot[a], slot[b], 2] += second
                sums[slot[a], slot[b], 3] += first and second
        for position in range(begin, end):
            counts[label[position]] = 0
