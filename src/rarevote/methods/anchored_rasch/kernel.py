"""The passes of Anchored Rasch over a run of tasks: counting anchors, the EM step, the report.

With ``z_rkg = alpha_rk - s x_g`` a vote of worker ``r`` for ``y`` has under class ``k`` and node ``g`` the log
probability::

    log(1 - p_rkg) + (z_rkg if y = k else log e_rky)

The first part does not depend on the vote, the second nearly not on the node. So an annotation adds one row of ``K G``
numbers and one of ``K`` to the scores of its task, and the nodes enter once a task by the number of votes for each
class. What the workers need is as plain: with ``M_rkg = sum_i A_ikg`` over the tasks of a worker and ``C_rky`` the
posterior mass of class ``k`` under votes for ``y``::

    Grad_rk = C_rkk - sum_g M_rkg p_rkg,      Hess_rk = sum_g M_rkg p_rkg (1 - p_rkg)

so that an annotation adds a row of ``K G`` and one of ``K`` to these sums, and no ``exp`` is taken per vote. Votes come
in blocks of tasks, level by level (:mod:`rarevote.kernels.blocks`), so that no addition waits for the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.blocks import LANES, MAX_UNROLLED, Blocks, largest_of, sum_of
from rarevote.kernels.compile import inlined, kernel
from rarevote.kernels.fast_math import exp_fast, log_fast

if TYPE_CHECKING:
    from rarevote.methods.anchored_rasch.model import AnchorSums, VoteTables

Floats = NDArray[np.float64]

# Up to some number of classes, and with so many nodes, both are compiled in.
_USUAL_NODES = 5


def count_shares(shard: Shard, *rest: Any) -> None:
    """The compiled count. See ``_count_shares`` below for its arguments."""
    _count_shares(shard, *rest)


@kernel
def _count_shares(
    shard: Shard,
    discount: float,
    sums: AnchorSums,  # added to
) -> None:
    """The sums behind the anchors; see :mod:`rarevote.methods.anchored_rasch.model`."""
    task_ptr, worker, label, gold = shard
    counts, class_mass = sums
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
    blocks: Blocks,
    tables: VoteTables,
    start: Floats,  # (K * G)
    nodes: Floats,  # (G)
    block: int,
    K: int,
    G: int,
    score: Floats,  # (LANES, K * G), filled
    said: Floats,  # (LANES, K), room to work in
    count: Floats,  # (LANES, K), room to work in
) -> None:
    """Fill ``score`` with ``start`` plus the log probability of the votes, per task, class and node."""
    _, block_ptr, level_ptr, worker, label = blocks
    log_wrong, of_vote = tables
    for i in range(LANES):
        for c in range(K * G):
            score[i, c] = start[c]
        for k in range(K):
            said[i, k] = 0.0
            count[i, k] = 0.0
    for level in range(block_ptr[block], block_ptr[block + 1]):
        first, end = level_ptr[level], level_ptr[level + 1]
        workers, labels = worker[first:end], label[first:end]
        for i in range(end - first):
            r, y = workers[i], labels[i]
            for c in range(K * G):
                score[i, c] += log_wrong[r, c]
            for k in range(K):
                said[i, k] += of_vote[r, y, k]
            count[i, y] += 1.0
    for i in range(LANES):
        for k in range(K):
            for g in range(G):
                score[i, k * G + g] += said[i, k] - count[i, k] * nodes[g]


def em_pass(shard: Shard, tables: VoteTables, *rest: Any) -> float:
    """The compiled EM step. See ``pass_over_blocks`` below for its arguments."""
    return _em_pass(_unrolled(tables))(shard.blocks, shard.gold, tables, *rest)


def _unrolled(tables: VoteTables) -> int:
    """The number of classes, if it and the number of nodes are compiled in; else 0."""
    n_classes = tables.of_vote.shape[1]
    known = 2 <= n_classes <= MAX_UNROLLED and tables.log_wrong.shape[1] == n_classes * _USUAL_NODES
    return n_classes if known else 0


@cache
def _em_pass(unrolled: int) -> Callable[..., float]:
    @kernel
    def pass_over_blocks(  # type: ignore[no-untyped-def]
        blocks,  # the votes
        gold,  # int32 (n), the known class or -1; or of size 0
        tables,  # what is looked up per vote
        log_prior,  # (K)
        offsets,  # (n, K), what each task's own log prior adds to it; or of size 0
        weights,  # (G), of the nodes, sum to one
        nodes,  # (G), s times the nodes
        refresh,  # whether to recompute the posterior
        local,
        out,  # the local parameters, written
        stats,  # added to; the log likelihood is its bound where the posterior is held
    ):
        order, block_ptr, level_ptr, worker, label = blocks
        (posterior_in,), (posterior_out,) = local, out
        counts, node_mass, scalars = stats
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        G = _USUAL_NODES if unrolled > 0 else weights.shape[0]
        KG = K * G
        n = order.shape[0]
        has_gold = gold.shape[0] > 0
        start = np.empty(KG)
        for k in range(K):
            for g in range(G):
                start[k * G + g] = log_prior[k] + log(weights[g])
        # One entry per (lane, class, node), (lane, class) or lane.
        score = np.empty((LANES, KG))
        cells = score.reshape(-1)
        q = np.empty((LANES, K))
        said = np.empty((LANES, K))
        count = np.empty((LANES, K))
        top = np.empty(LANES)
        total = np.empty(LANES)
        # Sums and maxima over blocks, one per lane: no addition waits for the one before.
        loglik = np.zeros(LANES)
        change = np.zeros((LANES, K))

        for block in range(block_ptr.shape[0] - 1):
            places = order[block * LANES : min((block + 1) * LANES, n)]
            size = places.shape[0]
            scores_of_block(blocks, tables, start, nodes, block, K, G, score, said, count)
            if offsets.shape[0] > 0:
                for i in range(size):
                    for k in range(K):
                        for g in range(G):
                            score[i, k * G + g] += offsets[places[i], k]
            if refresh:
                # A gold task has the nodes of its class only.
                for i in range(size):
                    known = gold[places[i]] if has_gold else -1
                    low = 0 if known < 0 else known * G
                    high = KG if known < 0 else low + G
                    highest = score[i, low]
                    for c in range(low + 1, high):
                        highest = max(highest, score[i, c])
                    top[i] = highest
                    for c in range(KG):
                        score[i, c] -= highest
                for cell in range(size * KG):
                    cells[cell] = exp_fast(cells[cell])
                if has_gold:
                    for i in range(size):
                        if gold[places[i]] >= 0:
                            for k in range(K):
                                if k != gold[places[i]]:
                                    for g in range(G):
                                        score[i, k * G + g] = 0.0
                for i in range(size):
                    mass = 0.0
                    for k in range(K):
                        of_class = 0.0
                        for g in range(G):
                            of_class += score[i, k * G + g]
                        q[i, k] = of_class
                        mass += of_class
                    total[i] = mass
                    for k in range(K):
                        q[i, k] /= mass
                    scale = 1.0 / mass
                    for c in range(KG):
                        score[i, c] *= scale
                for i in range(size):
                    loglik[i] += top[i] + log_fast(total[i])
            else:
                for i in range(size):
                    for k in range(K):
                        share = float(posterior_in[places[i], k])
                        q[i, k] = share
                        log_share = log(share) if share > 0.0 else 0.0
                        for g in range(G):
                            c = k * G + g
                            loglik[i] += share * weights[g] * (score[i, c] - log_share - log(weights[g]))
                            score[i, c] = share * weights[g]
            for i in range(size):
                task = places[i]
                for k in range(K):
                    change[i, k] = max(change[i, k], abs(q[i, k] - posterior_in[task, k]))
                    posterior_out[task, k] = q[i, k]

            for level in range(block_ptr[block], block_ptr[block + 1]):
                first, end = level_ptr[level], level_ptr[level + 1]
                workers, labels = worker[first:end], label[first:end]
                for i in range(end - first):
                    r, y = workers[i], labels[i]
                    for c in range(KG):
                        node_mass[r, c] += score[i, c]
                    for k in range(K):
                        counts[r, y, k] += q[i, k]

        scalars[0] += sum_of(loglik)
        return largest_of(change.reshape(-1))

    return pass_over_blocks


def report_pass(shard: Shard, tables: VoteTables, *rest: Any) -> None:
    """The compiled report. See ``report_blocks`` below for its arguments."""
    _report_pass(_unrolled(tables))(shard.blocks, shard.gold, tables, *rest)


@cache
def _report_pass(unrolled: int) -> Callable[..., None]:
    @kernel
    def report_blocks(  # type: ignore[no-untyped-def]
        blocks,  # these six as for the EM step
        gold,
        tables,
        log_prior,
        weights,
        nodes,
        discount,  # rho
        out,  # written
        sums,  # added to
    ):
        """Probabilities to be read as such, from the evidence of the votes and not from a rounded posterior."""
        order, block_ptr = blocks.order, blocks.block_ptr
        (reported,), (class_mass,) = out, sums
        K = unrolled if unrolled > 0 else log_prior.shape[0]
        G = _USUAL_NODES if unrolled > 0 else weights.shape[0]
        n = order.shape[0]
        start = np.empty(K * G)
        for k in range(K):
            for g in range(G):
                start[k * G + g] = log(weights[g])
        score = np.empty((LANES, K * G))
        cells = score.reshape(-1)
        said = np.empty((LANES, K))
        count = np.empty((LANES, K))
        top = np.empty((LANES, K))
        p = np.empty((LANES, K))
        shares = p.reshape(-1)
        mass = np.zeros(K)
        for block in range(block_ptr.shape[0] - 1):
            places = order[block * LANES : min((block + 1) * LANES, n)]
            size = places.shape[0]
            scores_of_block(blocks, tables, start, nodes, block, K, G, score, said, count)
            # The evidence of the votes for each class, over its nodes.
            for i in range(size):
                for k in range(K):
                    highest = score[i, k * G]
                    for g in range(1, G):
                        highest = max(highest, score[i, k * G + g])
                    top[i, k] = highest
                    for g in range(G):
                        score[i, k * G + g] -= highest
            for cell in range(size * K * G):
                cells[cell] = exp_fast(cells[cell])
            for i in range(size):
                for k in range(K):
                    total = 0.0
                    for g in range(G):
                        total += score[i, k * G + g]
                    p[i, k] = total
            for cell in range(size * K):
                shares[cell] = log_fast(shares[cell])
            # Tempered by how far votes repeat each other.
            for i in range(size):
                votes = 0.0
                for k in range(K):
                    votes += count[i, k]
                power = 1.0 / (1.0 + discount * (votes - 1.0))
                for k in range(K):
                    p[i, k] = log_prior[k] + power * (top[i, k] + p[i, k])
                highest = p[i, 0]
                for k in range(1, K):
                    highest = max(highest, p[i, k])
                for k in range(K):
                    p[i, k] -= highest
            for cell in range(size * K):
                shares[cell] = exp_fast(shares[cell])
            for i in range(size):
                total = 0.0
                for k in range(K):
                    total += p[i, k]
                scale = 1.0 / total
                for k in range(K):
                    p[i, k] *= scale
            if gold.shape[0] > 0:
                for i in range(size):
                    known = gold[places[i]]
                    if known >= 0:
                        for k in range(K):
                            p[i, k] = 1.0 if k == known else 0.0
            for i in range(size):
                task = places[i]
                for k in range(K):
                    reported[task, k] = p[i, k]
                    mass[k] += p[i, k]
        for k in range(K):
            class_mass[k] += mass[k]

    return report_blocks
