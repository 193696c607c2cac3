"""The Dawid–Skene pass over a run of tasks, and the maximisation step that follows it.

An annotation costs one row of ``K`` logarithms, ``log_confusion[worker, label]``, added to its task's scores, and one
row of ``K`` probabilities added to ``counts[worker, label]``. Tasks are taken in blocks whose work arrays stay in the
first-level cache, so that ``exp`` and ``log`` run over contiguous memory, several values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel
from rarevote.kernels.fast_math import exp_fast, log_fast

_BLOCK = 64
# Up to this many classes the number is compiled in, which unrolls the loops over classes.
_MAX_UNROLLED = 5
# Stands in for a share of zero, whose logarithm is multiplied by that zero.
_SMALLEST = 1e-300


def confusion_pass(task_ptr: Any, worker: Any, label: Any, gold: Any, log_confusion: Any, *rest: Any) -> float:
    """The compiled pass. See ``pass_over_tasks`` below for its arguments."""
    n_classes = log_confusion.shape[1]
    compiled = _confusion_pass(n_classes if 2 <= n_classes <= _MAX_UNROLLED else 0)
    return compiled(task_ptr, worker, label, gold, log_confusion, *rest)


@cache
def _confusion_pass(unrolled: int) -> Callable[..., float]:
    @kernel
    def pass_over_tasks(  # type: ignore[no-untyped-def]
        task_ptr,  # int64 (n + 1), absolute positions into worker and label
        worker,  # unsigned (N)
        label,  # unsigned (N)
        gold,  # int32 (n), the known class or -1; or of size 0
        log_confusion,  # (m, K, K): worker, label, truth
        log_prior,  # (K)
        refresh,  # whether to recompute the posterior
        posterior_in,  # (n, K)
        posterior_out,  # (n, K)
        counts,  # (m, K, K), added to: posterior mass per worker, label and truth
        scalars,  # (2), added to: log likelihood (or its bound), entropy of a new posterior
        class_mass,  # (K), added to: sum of the posterior
    ):
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        n = task_ptr.shape[0] - 1
        has_gold = gold.shape[0] > 0
        given = posterior_in.reshape(-1)
        written = posterior_out.reshape(-1)
        score = np.empty(_BLOCK * K)
        q = np.empty(_BLOCK * K)
        top = np.empty(_BLOCK)
        log_total = np.empty(_BLOCK)
        # Sums and maxima over blocks, one per place in a block: no addition waits for the one before.
        loglik = np.zeros(_BLOCK)
        entropy = np.zeros(_BLOCK)
        cell_sum = np.zeros(_BLOCK * K)
        mass = np.zeros(_BLOCK * K)
        change = np.zeros(_BLOCK * K)

        for begin in range(0, n, _BLOCK):
            size = min(begin + _BLOCK, n) - begin
            cells = size * K

            # Log joint probability of the votes and each class.
            for i in range(size):
                for k in range(K):
                    score[i * K + k] = log_prior[k]
                for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                    r = worker[a]
                    y = label[a]
                    for k in range(K):
                        score[i * K + k] += log_confusion[r, y, k]

            if refresh:
                for i in range(size):
                    highest = score[i * K]
                    for k in range(1, K):
                        highest = max(highest, score[i * K + k])
                    top[i] = highest
                    for k in range(K):
                        score[i * K + k] -= highest
                for cell in range(cells):
                    q[cell] = exp_fast(score[cell])
                for i in range(size):
                    total = 0.0
                    for k in range(K):
                        total += q[i * K + k]
                    log_total[i] = total
                    scale = 1.0 / total
                    for k in range(K):
                        q[i * K + k] *= scale
                for i in range(size):
                    log_total[i] = log_fast(log_total[i])
                if has_gold:
                    for i in range(size):
                        known = gold[begin + i]
                        if known >= 0:
                            log_total[i] = score[i * K + known]
                            for k in range(K):
                                q[i * K + k] = 1.0 if k == known else 0.0
                # -log q = log(total) - score, so that the entropy needs no further logarithm.
                for i in range(size):
                    loglik[i] += top[i] + log_total[i]
                    entropy[i] += log_total[i]
                for cell in range(cells):
                    cell_sum[cell] -= q[cell] * score[cell]
            else:
                for cell in range(cells):
                    share = given[begin * K + cell]
                    q[cell] = share
                    cell_sum[cell] += share * (score[cell] - log_fast(max(share, _SMALLEST)))
            for cell in range(cells):
                change[cell] = max(change[cell], abs(q[cell] - given[begin * K + cell]))
                written[begin * K + cell] = q[cell]
                mass[cell] += q[cell]

            for i in range(size):
                for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                    r = worker[a]
                    y = label[a]
                    for k in range(K):
                        counts[r, y, k] += q[i * K + k]

        for cell in range(_BLOCK * K):
            class_mass[cell % K] += mass[cell]
        if refresh:
            scalars[0] += loglik.sum()
            scalars[1] += entropy.sum() + cell_sum.sum()
        else:
            scalars[0] += cell_sum.sum()
        return change.max()

    return pass_over_tasks


@kernel
def normalise_counts(
    counts: NDArray[np.float64],  # (m, K, K): worker, label, truth
    counted: NDArray[np.bool_],  # (m, K): which labels of a worker share the probability
    lowest: float,  # counts below this are raised to it
    log_confusion: NDArray[np.float64],  # (m, K, K), written: log shares over the labels; 0 for labels left out
) -> None:
    """Log of each count's share in its worker's answers to tasks of one truth."""
    m, K = counted.shape
    total = np.empty(K)
    for r in range(m):
        total[:] = 0.0
        for y in range(K):
            if counted[r, y]:
                for k in range(K):
                    total[k] += max(counts[r, y, k], lowest)
        for k in range(K):
            total[k] = 1.0 / total[k]
        for y in range(K):
            if counted[r, y]:
                for k in range(K):
                    log_confusion[r, y, k] = max(counts[r, y, k], lowest) * total[k]
            else:
                for k in range(K):
                    log_confusion[r, y, k] = 1.0
    flat = log_confusion.reshape(-1)
    for cell in range(flat.shape[0]):
        flat[cell] = log_fast(flat[cell])
