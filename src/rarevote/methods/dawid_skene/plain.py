"""The Dawid–Skene pass in NumPy: for small data, and a readable reference for the kernel (same arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows

if TYPE_CHECKING:
    from rarevote.em.model import Posterior
    from rarevote.methods.dawid_skene.model import DawidSkeneStats

Floats = NDArray[np.float64]


def confusion_pass(
    shard: Shard,
    log_confusion: Floats,  # (m, K, K): worker, label, truth
    log_prior: Floats,  # (K)
    refresh: bool,  # whether to recompute the posterior
    local: Posterior,
    out: Posterior,  # written
    stats: DawidSkeneStats,  # added to; the log likelihood is a bound if the posterior is held fixed
) -> float:
    """Posterior, and its sums per worker and label; returns the largest change of a posterior probability."""
    counts, scalars, class_mass = stats
    n, K = local.posterior.shape
    by_task, by_answer = shard.rows.by_task, shard.rows.by_answer(K)
    joint = log_prior + by_task.sums(by_answer.spread(log_confusion.reshape(-1, K)), n)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        scalars[0] += log_evidence.sum()
        scalars[1] -= (q * np.log(np.where(q > 0.0, q, 1.0))).sum()
    else:
        q = local.posterior.astype(np.float64)
        scalars[0] += bound_at(joint, q)
    change = float(np.abs(q - local.posterior).max(initial=0.0))
    out.posterior[...] = q
    class_mass += q.sum(axis=0)
    counts += by_answer.sums(by_task.spread(q), len(counts) * K).reshape(counts.shape)
    return change


def normalise_counts(counts: Floats, counted: NDArray[np.bool_], lowest: float, log_confusion: Floats) -> None:
    """As :func:`rarevote.methods.dawid_skene.kernel.normalise_counts`."""
    raised = np.where(counted[:, :, None], np.maximum(counts, lowest), 0.0)
    # A worker without any label that counts has no probability to divide.
    total = raised.sum(axis=1, keepdims=True)
    share = raised / np.where(total > 0.0, total, 1.0)
    np.log(np.where(counted[:, :, None], share, 1.0), out=log_confusion)
