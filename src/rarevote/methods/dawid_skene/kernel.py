"""The Dawid–Skene pass over a range of tasks, and the maximisation step that follows it.

An annotation costs one row of ``K`` logarithms, ``log_confusion[worker, label]``, added to its task's scores, and one
row of ``K`` probabilities added to ``counts[worker, label]``. Votes come in blocks of tasks, level by level
(:mod:`rarevote.kernels.blocks`), so that no addition depends on the previous one, and ``exp`` and ``log`` run over
contiguous memory, several values at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.blocks import LANES, MAX_UNROLLED, largest_of, sum_of
from rarevote.kernels.compile import kernel
from rarevote.kernels.fast_math import exp_fast, log_fast

# Replaces a share of zero before its logarithm is taken; the logarithm is then multiplied by zero.
_SMALLEST = 1e-300


def confusion_pass(shard: Shard, log_confusion: NDArray[np.float64], *rest: Any) -> float:
    """The compiled pass. See ``pass_over_blocks`` below for its arguments."""
    n_classes = log_confusion.shape[1]
    compiled = _confusion_pass(n_classes if 2 <= n_classes <= MAX_UNROLLED else 0)
    return compiled(shard.blocks, shard.gold, log_confusion, *rest)


@cache
def _confusion_pass(unrolled: int) -> Callable[..., float]:
    @kernel
    def pass_over_blocks(  # type: ignore[no-untyped-def]
        blocks,  # the votes
        gold,  # int32 (n), the known class or -1; or of size 0
        log_confusion,  # (m, K, K): worker, label, truth
        log_prior,  # (K)
        refresh,  # whether to recompute the posterior
        local,
        out,  # the local parameters, written
        stats,  # added to; the log likelihood is a bound if the posterior is held fixed
    ):
        order, block_ptr, level_ptr, worker, label = blocks
        (posterior_in,), (posterior_out,) = local, out
        counts, scalars, class_mass = stats
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        n = order.shape[0]
        has_gold = gold.shape[0] > 0
        # One entry per (lane, class).
        score = np.empty((LANES, K))
        q = np.zeros((LANES, K))
        given = np.zeros((LANES, K))
        top = np.empty(LANES)
        log_total = np.empty(LANES)
        # Sums and maxima over blocks, one per lane: no addition depends on the previous one.
        loglik = np.zeros(LANES)
        entropy = np.zeros(LANES)
        cell_sum = np.zeros(LANES * K)
        mass = np.zeros(LANES * K)
        change = np.zeros(LANES * K)
        scores = score.reshape(-1)
        shares = q.reshape(-1)
        before = given.reshape(-1)

        for block in range(block_ptr.shape[0] - 1):
            places = order[block * LANES : min((block + 1) * LANES, n)]
            size = places.shape[0]
            cells = size * K
            for i in range(size):
                task = places[i]
                for k in range(K):
                    given[i, k] = posterior_in[task, k]
                    score[i, k] = log_prior[k]

            # Log joint probability of the votes and each class.
            for level in range(block_ptr[block], block_ptr[block + 1]):
                start, end = level_ptr[level], level_ptr[level + 1]
                workers, labels = worker[start:end], label[start:end]
                for i in range(end - start):
                    r, y = workers[i], labels[i]
                    for k in range(K):
                        score[i, k] += log_confusion[r, y, k]

            if refresh:
                for i in range(size):
                    highest = score[i, 0]
                    for k in range(1, K):
                        highest = max(highest, score[i, k])
                    top[i] = highest
                    for k in range(K):
                        score[i, k] -= highest
                for cell in range(cells):
                    shares[cell] = exp_fast(scores[cell])
                for i in range(size):
                    total = 0.0
                    for k in range(K):
                        total += q[i, k]
                    log_total[i] = total
                    scale = 1.0 / total
                    for k in range(K):
                        q[i, k] *= scale
                for i in range(size):
                    log_total[i] = log_fast(log_total[i])
                if has_gold:
                    for i in range(size):
                        known = gold[places[i]]
                        if known >= 0:
                            log_total[i] = score[i, known]
                            for k in range(K):
                                q[i, k] = 1.0 if k == known else 0.0
                # -log q = log(total) - score, so the entropy needs no further logarithm.
                for i in range(size):
                    loglik[i] += top[i] + log_total[i]
                    entropy[i] += log_total[i]
                for cell in range(cells):
                    cell_sum[cell] -= shares[cell] * scores[cell]
            else:
                for cell in range(cells):
                    share = before[cell]
                    shares[cell] = share
                    cell_sum[cell] += share * (scores[cell] - log_fast(max(share, _SMALLEST)))
            for cell in range(cells):
                change[cell] = max(change[cell], abs(shares[cell] - before[cell]))
                mass[cell] += shares[cell]
            for i in range(size):
                task = places[i]
                for k in range(K):
                    posterior_out[task, k] = q[i, k]

            for level in range(block_ptr[block], block_ptr[block + 1]):
                start, end = level_ptr[level], level_ptr[level + 1]
                workers, labels = worker[start:end], label[start:end]
                for i in range(end - start):
                    r, y = workers[i], labels[i]
                    for k in range(K):
                        counts[r, y, k] += q[i, k]

        for cell in range(LANES * K):
            class_mass[cell % K] += mass[cell]
        if refresh:
            scalars[0] += sum_of(loglik)
            scalars[1] += sum_of(entropy) + sum_of(cell_sum)
        else:
            scalars[0] += sum_of(cell_sum)
        return largest_of(change)

    return pass_over_blocks


@kernel
def normalise_counts(
    counts: NDArray[np.float64],  # (m, K, K): worker, label, truth
    counted: NDArray[np.bool_],  # (m, K): which labels of a worker share the probability
    lowest: float,  # counts below this are raised to it
    log_confusion: NDArray[np.float64],  # (m, K, K), written: log shares over the labels; 0 for other labels
) -> None:
    """Log of each count's share in its worker's answers to tasks of one true class."""
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
