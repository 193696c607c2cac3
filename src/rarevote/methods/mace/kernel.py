"""One MACE pass over a range of tasks.

A worker who copies the truth gives label ``k`` for class ``k`` only; a spammer gives it whatever the class is. So an
annotation gives two numbers: its weight for every class, ``spam``, and what it adds for the class voted for,
``bonus``. The log joint probability of a class is a constant of the task plus the bonuses of its voters, and the only
sum needed per worker is the posterior of the labels given.
"""

from __future__ import annotations

from math import exp, log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.compile import kernel

if TYPE_CHECKING:
    from rarevote.em.model import Posterior
    from rarevote.methods.mace.model import MaceStats


def mace_pass(shard: Shard, *rest: Any) -> float:
    """The compiled pass. See ``_pass_over_tasks`` below for its arguments."""
    return _pass_over_tasks(shard.alone, *rest)


@kernel
def _pass_over_tasks(
    votes: Shard,
    spam: NDArray[np.float64],
    bonus: NDArray[np.float64],
    refresh: bool,
    local: Posterior,
    out: Posterior,
    stats: MaceStats,
) -> float:
    """Posterior of every task, and its share of the sums.

    Args:
        votes: votes on a range of tasks.
        spam: (m, K), log probability that worker ``r`` spams and then says ``y``.
        bonus: (m, K), log of (spam or copy) over spam alone, for a vote that names the class.
        refresh: whether to recompute the posterior.
        local: the tasks' posterior.
        out: written.
        stats: added to; the bound assumes a uniform class prior.

    Returns:
        The largest change of a posterior probability.
    """
    task_ptr, worker, label, gold = votes
    (posterior_in,), (posterior_out,) = local, out
    agreement, bound = stats
    K = posterior_in.shape[1]
    log_prior = -log(float(K))
    joint = np.empty(K)
    change = 0.0
    total = 0.0
    for task in range(task_ptr.shape[0] - 1):
        begin, end = task_ptr[task], task_ptr[task + 1]
        of_all = log_prior
        for k in range(K):
            joint[k] = 0.0
        for a in range(begin, end):
            r, y = worker[a], label[a]
            of_all += spam[r, y]
            joint[y] += bonus[r, y]
        known = gold[task] if gold.shape[0] > 0 else -1
        if refresh and known >= 0:
            total += of_all + joint[known]
            for k in range(K):
                posterior_out[task, k] = 1.0 if k == known else 0.0
        elif refresh:
            highest = joint[0]
            for k in range(1, K):
                highest = max(highest, joint[k])
            mass = 0.0
            for k in range(K):
                posterior_out[task, k] = exp(joint[k] - highest)
                mass += posterior_out[task, k]
            for k in range(K):
                posterior_out[task, k] /= mass
            total += of_all + highest + log(mass)
        else:
            total += of_all
            for k in range(K):
                q = posterior_in[task, k]
                posterior_out[task, k] = q
                if q > 0.0:
                    total += q * (joint[k] - log(q))
        for k in range(K):
            change = max(change, abs(posterior_out[task, k] - posterior_in[task, k]))
        for a in range(begin, end):
            agreement[worker[a], label[a]] += posterior_out[task, label[a]]
    bound[0] += total
    return change
