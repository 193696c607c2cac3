"""The MACE pass in NumPy: for small data, and a readable reference for the kernel (same arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import bound_at, posterior_of_rows, sum_by

if TYPE_CHECKING:
    from rarevote.em.model import Posterior
    from rarevote.methods.mace.model import MaceStats

Floats = NDArray[np.float64]


def mace_pass(
    shard: Shard,
    spam: Floats,  # (m, K), log probability that worker ``r`` spams and then says ``y``
    bonus: Floats,  # (m, K), log of (spam or copy) over spam alone, for a vote that names the class
    refresh: bool,
    local: Posterior,
    out: Posterior,  # written
    stats: MaceStats,  # added to
) -> float:
    """As :func:`rarevote.methods.mace.kernel.mace_pass`."""
    agreement, bound = stats
    n, K = local.posterior.shape
    rows = shard.rows
    task, worker, label = rows.by_task.group, rows.worker, rows.label
    cell = task * K + label
    joint = sum_by(cell, bonus[worker, label], n * K).reshape(n, K)
    of_all = sum_by(task, spam[worker, label], n) - np.log(K)
    if refresh:
        q, log_evidence = posterior_of_rows(joint, shard.gold)
        bound[0] += (of_all + log_evidence).sum()
    else:
        q = local.posterior.copy()
        bound[0] += of_all.sum() + bound_at(joint, q)
    change = float(np.abs(q - local.posterior).max(initial=0.0))
    out.posterior[...] = q
    met = sum_by(rows.by_answer(K).group, q.ravel()[cell], agreement.size)
    agreement += met.reshape(agreement.shape)
    return change
