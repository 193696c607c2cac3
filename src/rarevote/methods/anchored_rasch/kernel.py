"""The passes of Anchored Rasch over a run of tasks: counting anchors, the EM step, the report.

With ``z_rkg = alpha_rk - s x_g`` a vote of worker ``r`` for ``y`` has under class ``k`` and node ``g`` the log
probability::

    log(1 - p_rkg) + (z_rkg if y = k else log e_rky)

The first part does not depend on the vote, the second nearly not on the node. So an annotation adds one row of ``K G``
numbers and one of ``K`` to the scores of its task, and the nodes enter once a task by the number of votes for each
class. What the workers need is as plain: with ``M_rkg = sum_i A_ikg`` over the tasks of a worker and ``C_rky`` the
posterior mass of class ``k`` under votes for ``y``::

    Grad_rk = C_rkk - sum_g M_rkg p_rkg,      Hess_rk = sum_g M_rkg p_rkg (1 - p_rkg)

so that an annotation adds a row of ``K G`` and one of ``K`` to these sums, and no ``exp`` is taken per vote. Tasks are
taken in blocks whose work arrays stay in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import inlined, kernel
from rarevote.kernels.fast_math import exp_fast, log_fast

Floats = NDArray[np.float64]

_BLOCK = 64
# Up to this many classes the number is compiled in, which unrolls the loops over classes and nodes.
_MAX_UNROLLED = 5
_USUAL_NODES = 5


@kernel
def count_shares(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    label: NDArray[Any],
    gold: NDArray[np.int32],
    discount: float,
    counts: Floats,  # (m, K, K), added to: worker, label, class
    class_mass: Floats,  # (K), added to: sum of the vote shares
) -> None:
    """The sums behind the anchors; see :mod:`rarevote.methods.anchored_rasch.anchors`."""
    K = class_mass.shape[0]
    share = np.empty(K)
    for task in range(task_ptr.shape[0] - 1):
        begin, end = task_ptr[task], task_ptr[task + 1]
        votes = end - begin
        known = gold[task] if gold.shape[0] > 0 else -1
        share[:] = 0.0
        if known >= 0:
            share[known] = 1.0
        else:
            for a in range(begin, end):
                share[label[a]] += 1.0
            for k in range(K):
                share[k] /= max(votes, 1)
        for k in range(K):
            class_mass[k] += share[k]
        if votes >= 2 or known >= 0:
            for k in range(K):
                share[k] /= 1.0 + discount * (votes - 1)
            for a in range(begin, end):
                for k in range(K):
                    counts[worker[a], label[a], k] += share[k]


@inlined
def scores_of_block(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    label: NDArray[Any],
    log_wrong: Floats,  # (m, K * G)
    of_vote: Floats,  # (m, K, K)
    start: Floats,  # (K * G)
    nodes: Floats,  # (G)
    begin: int,  # number of the first task
    size: int,  # tasks in the block
    K: int,
    G: int,
    score: Floats,  # (size * K * G), filled
    said: Floats,  # (K), room to work in
    count: Floats,  # (K), room to work in
) -> None:
    """Fill ``score`` with ``start`` plus the log probability of the votes, per task, class and node."""
    for i in range(size):
        first = i * K * G
        for c in range(K * G):
            score[first + c] = start[c]
        for k in range(K):
            said[k] = 0.0
            count[k] = 0.0
        for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
            r = worker[a]
            y = label[a]
            for c in range(K * G):
                score[first + c] += log_wrong[r, c]
            for k in range(K):
                said[k] += of_vote[r, y, k]
            count[y] += 1.0
        for k in range(K):
            for g in range(G):
                score[first + k * G + g] += said[k] - count[k] * nodes[g]


def em_pass(task_ptr: Any, worker: Any, label: Any, gold: Any, log_wrong: Any, of_vote: Any, *rest: Any) -> float:
    """The compiled EM step. See ``pass_over_tasks`` below for its arguments."""
    n_classes = of_vote.shape[1]
    known = 2 <= n_classes <= _MAX_UNROLLED and log_wrong.shape[1] == n_classes * _USUAL_NODES
    return _em_pass(n_classes if known else 0)(task_ptr, worker, label, gold, log_wrong, of_vote, *rest)


@cache
def _em_pass(unrolled: int) -> Callable[..., float]:
    @kernel
    def pass_over_tasks(  # type: ignore[no-untyped-def]
        task_ptr,  # int64 (n + 1), absolute positions into worker and label
        worker,  # unsigned (N)
        label,  # unsigned (N)
        gold,  # int32 (n), the known class or -1; or of size 0
        log_wrong,  # (m, K * G), log(1 - p)
        of_vote,  # (m, K, K), worker, label, class: log e, and alpha where label and class are the same
        log_prior,  # (K)
        weights,  # (G), of the nodes, sum to one
        nodes,  # (G), s times the nodes
        refresh,  # whether to recompute the posterior
        posterior_in,  # (n, K)
        posterior_out,  # (n, K)
        counts,  # (m, K, K), added to: posterior mass per worker, label and class
        node_mass,  # (m, K * G), added to: sum of A per worker
        scalars,  # (1), added to: log likelihood (or its bound)
    ):
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        G = _USUAL_NODES if unrolled > 0 else weights.shape[0]
        KG = K * G
        n = task_ptr.shape[0] - 1
        has_gold = gold.shape[0] > 0
        start = np.empty(KG)
        for k in range(K):
            for g in range(G):
                start[k * G + g] = log_prior[k] + log(weights[g])
        score = np.empty(_BLOCK * KG)
        q = np.empty(_BLOCK * K)
        top = np.empty(_BLOCK)
        total = np.empty(_BLOCK)
        said = np.empty(K)
        count = np.empty(K)
        loglik = 0.0
        change = 0.0

        for begin in range(0, n, _BLOCK):
            size = min(begin + _BLOCK, n) - begin
            scores_of_block(
                task_ptr, worker, label, log_wrong, of_vote, start, nodes, begin, size, K, G, score, said, count
            )
            if refresh:
                # A gold task has the nodes of its class only.
                for i in range(size):
                    known = gold[begin + i] if has_gold else -1
                    low = 0 if known < 0 else known * G
                    high = KG if known < 0 else low + G
                    highest = score[i * KG + low]
                    for c in range(low + 1, high):
                        highest = max(highest, score[i * KG + c])
                    top[i] = highest
                    for c in range(KG):
                        score[i * KG + c] -= highest
                for cell in range(size * KG):
                    score[cell] = exp_fast(score[cell])
                if has_gold:
                    for i in range(size):
                        if gold[begin + i] >= 0:
                            for k in range(K):
                                if k != gold[begin + i]:
                                    for g in range(G):
                                        score[i * KG + k * G + g] = 0.0
                for i in range(size):
                    mass = 0.0
                    for k in range(K):
                        of_class = 0.0
                        for g in range(G):
                            of_class += score[i * KG + k * G + g]
                        q[i * K + k] = of_class
                        mass += of_class
                    total[i] = mass
                    for k in range(K):
                        q[i * K + k] /= mass
                    scale = 1.0 / mass
                    for c in range(KG):
                        score[i * KG + c] *= scale
                for i in range(size):
                    total[i] = log_fast(total[i])
                for i in range(size):
                    loglik += top[i] + total[i]
            else:
                for i in range(size):
                    for k in range(K):
                        share = float(posterior_in[begin + i, k])
                        q[i * K + k] = share
                        log_share = log(share) if share > 0.0 else 0.0
                        for g in range(G):
                            c = i * KG + k * G + g
                            loglik += share * weights[g] * (score[c] - log_share - log(weights[g]))
                            score[c] = share * weights[g]
            for i in range(size):
                for k in range(K):
                    change = max(change, abs(q[i * K + k] - posterior_in[begin + i, k]))
                    posterior_out[begin + i, k] = q[i * K + k]

            for i in range(size):
                for a in range(task_ptr[begin + i], task_ptr[begin + i + 1]):
                    r = worker[a]
                    y = label[a]
                    for c in range(KG):
                        node_mass[r, c] += score[i * KG + c]
                    for k in range(K):
                        counts[r, y, k] += q[i * K + k]

        scalars[0] += loglik
        return change

    return pass_over_tasks


@kernel
def report_pass(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    label: NDArray[Any],
    gold: NDArray[np.int32],
    log_wrong: Floats,  # these and the next four as for the EM step
    of_vote: Floats,
    log_prior: Floats,
    weights: Floats,
    nodes: Floats,
    discount: float,  # rho
    lapse: float,  # weight of the shares in what is written
    shares: Floats,  # (K), f
    reported: NDArray[Any],  # (n, K), written
    class_mass: Floats,  # (K), added to: sum of p before the lapse
) -> None:
    """Probabilities to be read as such, from the evidence of the votes and not from a rounded posterior."""
    K = log_prior.shape[0]
    G = weights.shape[0]
    start = np.empty(K * G)
    for k in range(K):
        for g in range(G):
            start[k * G + g] = log(weights[g])
    score = np.empty(K * G)
    said = np.empty(K)
    count = np.empty(K)
    p = np.empty(K)
    for task in range(task_ptr.shape[0] - 1):
        known = gold[task] if gold.shape[0] > 0 else -1
        if known >= 0:
            for k in range(K):
                reported[task, k] = 1.0 if k == known else 0.0
            class_mass[known] += 1.0
            continue
        scores_of_block(task_ptr, worker, label, log_wrong, of_vote, start, nodes, task, 1, K, G, score, said, count)
        power = 1.0 / (1.0 + discount * (task_ptr[task + 1] - task_ptr[task] - 1))
        for k in range(K):
            highest = score[k * G]
            for g in range(1, G):
                highest = max(highest, score[k * G + g])
            mass = 0.0
            for g in range(G):
                mass += exp(score[k * G + g] - highest)
            p[k] = log_prior[k] + power * (highest + log(mass))
        highest = p.max()
        total = 0.0
        for k in range(K):
            p[k] = exp(p[k] - highest)
            total += p[k]
        for k in range(K):
            p[k] /= total
            class_mass[k] += p[k]
            reported[task, k] = (1.0 - lapse) * p[k] + lapse * shares[k]
