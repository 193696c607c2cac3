"""The Dawid–Skene pass over a run of tasks, and the maximisation step that follows it.

An annotation costs one row of ``K`` logarithms, ``log_confusion[worker, label]``, added to its task's scores, and one
row of ``K`` probabilities added to ``counts[worker, label]``. Tasks are taken in blocks whose work arrays stay in the
first-level cache, so that ``exp`` and ``log`` run over contiguous memory, several values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log

import numpy as np

from rarevote.kernels.compile import kernel
from rarevote.kernels.fast_math import exp_fast, log_fast

_BLOCK = 64
# Up to this many classes the number is compiled in, which unrolls the loops over classes.
_MOST_UNROLLED = 5


def confusion_pass(n_classes: int) -> Callable[..., float]:
    """The compiled pass for ``n_classes`` classes. See ``pass_over_tasks`` below for its arguments."""
    return _confusion_pass(n_classes if 2 <= n_classes <= _MOST_UNROLLED else 0)


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
        scalars,  # (2), added to: log likelihood (or its bound), entropy of the posterior
        class_mass,  # (K), added to: sum of the posterior
    ):
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        n = task_ptr.shape[0] - 1
        has_gold = gold.shape[0] > 0
        score = np.empty(_BLOCK * K)
        q = np.empty(_BLOCK * K)
        top = np.empty(_BLOCK)
        total = np.empty(_BLOCK)
        mass = np.zeros(K)
        change = 0.0
        loglik = 0.0
        entropy = 0.0

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
                    sum_of_row = 0.0
                    for k in range(K):
                        sum_of_row += q[i * K + k]
                    total[i] = sum_of_row
                    scale = 1.0 / sum_of_row
                    for k in range(K):
                        q[i * K + k] *= scale
                for i in range(size):
                    total[i] = log_fast(total[i])
                if has_gold:
                    for i in range(size):
                        known = gold[begin + i]
                        if known >= 0:
                            total[i] = score[i * K + known]
                            for k in range(K):
                                q[i * K + k] = 1.0 if k == known else 0.0
                for i in range(size):
                    loglik += top[i] + total[i]
                    # -log q = log(total) - score, so that the entropy needs no further logarithm.
                    entropy += total[i]
                    for k in range(K):
                        entropy -= q[i * K + k] * score[i * K + k]
            else:
                for i in range(size):
                    for k in range(K):
                        given = posterior_in[begin + i, k]
                        q[i * K + k] = given
                        if given > 0.0:
                            loglik += given * (score[i * K + k] - log(given))
            for i in range(size):
                for k in range(K):
                    change = max(change, abs(q[i * K + k] - posterior_in[begin + i, k]))
                    posterior_out[begin + i, k] = q[i * K + k]
                    mass[k] += q[i * K + k]

            for i in range(size):
                for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                    r = worker[a]
                    y = label[a]
                    for k in range(K):
                        counts[r, y, k] += q[i * K + k]

        for k in range(K):
            class_mass[k] += mass[k]
        scalars[0] += loglik
        scalars[1] += entropy
        return change

    return pass_over_tasks


@kernel
def normalise_counts(  # type: ignore[no-untyped-def]
    counts,  # (m, K, K): worker, label, truth
    counted,  # bool (m, K): which labels of a worker share the probability
    lowest,  # counts below this are raised to it
    log_confusion,  # (m, K, K), written: log shares over the labels; 0 for labels left out
):
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
