"""The Dawid–Skene pass in NumPy: for small data, and to read beside the kernel, whose arguments it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows

Floats = NDArray[np.float64]


def confusion_pass(
    shard: Shard,
    log_confusion: Floats,  # (m, K, K): worker, label, truth
    log_prior: Floats,  # (K)
    refresh: bool,  # whether to recompute the posterior
    posterior_in: NDArray[Any],  # (n, K)
    posterior_out: NDArray[Any],  # (n, K)
    counts: Floats,  # (m, K, K), added to: posterior mass per worker, label and truth
    scalars: Floats,  # (2), added to: log likelihood (or its bound), entropy of a new posterior
    class_mass: Floats,  # (K), added to: sum of the posterior
) -> float:
    """Posterior, and what each worker's labels met of it; returns the largest change of a posterior probability."""
    n, K = posterior_in.shape
    by_task, by_answer = shard.rows.by_task, shard.rows.by_answer(K)
    joint = log_prior + by_task.sums(by_answer.spread(log_confusion.reshape(-1, K)), n)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        scalars[0] += log_evidence.sum()
        scalars[1] -= (q * np.log(np.where(q > 0.0, q, 1.0))).sum()
    else:
        q = posterior_in.astype(np.float64)
        scalars[0] += bound_at(joint, q)
    change = float(np.abs(q - posterior_in).max(initial=0.0))
    posterior_out[...] = q
    class_mass += q.sum(axis=0)
    counts += by_answer.sums(by_task.spread(q), len(counts) * K).reshape(counts.shape)
    return change


def normalise_counts(counts: Floats, counted: NDArray[np.bool_], lowest: float, log_confusion: Floats) -> None:
    """As :func:`rarevote.methods.dawid_skene.kernel.normalise_counts`."""
    raised = np.where(counted[:, :, None], np.maximum(counts, lowest), 0.0)
    # A worker without any label that counts has nothing to share out.
    total = raised.sum(axis=1, keepdims=True)
    share = raised / np.where(total > 0.0, total, 1.0)
    np.log(np.where(counted[:, :, None], share, 1.0), out=log_confusion)
