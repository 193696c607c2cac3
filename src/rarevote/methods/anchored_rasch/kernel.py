"""The passes of Anchored Rasch over a range of tasks: counting anchors, the EM step, the report.

With ``z_rkg = alpha_rk - s x_g`` a vote of worker ``r`` for ``y`` has, given class ``k`` and node ``g``, probability::

    (1 - p_rkg) * (exp(z_rkg) if y = k else e_rky)

The first factor does not depend on the vote, and the second hardly on the node. So an annotation multiplies the ``G K``
likelihoods of its task by one row and ``K`` further ones by another, both from the row of its worker, and the nodes
enter once per task by the number of votes for each class. The sums per worker are as simple: with ``M_rkg = sum_i
A_ikg`` over the tasks of a worker and ``C_rky`` the posterior mass of class ``k`` under votes for ``y``::

    Grad_rk = C_rkk - sum_g M_rkg p_rkg,      Hess_rk = sum_g M_rkg p_rkg (1 - p_rkg)

so that an annotation adds a row of ``G K`` and one of ``K`` to these sums. No ``exp`` is needed per task or vote,
and one ``log`` per task. A task with more votes than a product can hold (:func:`~.model.vote_factors`) is computed in
logarithms, as are the report and the bound at a fixed posterior. Votes come in blocks of tasks, level by level
(:mod:`rarevote.kernels.blocks`), so that no operation depends on the previous one.
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
from rarevote.kernels.compile import kernel, piece
from rarevote.kernels.fast_math import exp_fast, log_fast
from rarevote.kernels.rows import BYTES, add_few, add_row, multiply_few, multiply_row

if TYPE_CHECKING:
    from rarevote.em.model import Posterior
    from rarevote.methods.anchored_rasch.model import AnchorSums, ReportSums, VoteFactors, VoteTables

Floats = NDArray[np.float64]

# Up to this number of classes, and with this number of nodes, both are compile-time constants.
_USUAL_NODES = 5


def count_shares(shard: Shard, *rest: Any) -> None:
    """The compiled count. See ``_count_shares`` below for its arguments."""
    _count_shares(shard.blocks, shard.gold, *rest)


@kernel
def _count_shares(
    blocks: Blocks,
    gold: NDArray[np.int32],
    discount: float,
    sums: AnchorSums,  # added to
) -> None:
    """The sums behind the anchors; see :mod:`rarevote.methods.anchored_rasch.model`."""
    order, block_ptr, level_ptr, worker, label = blocks
    counts, class_mass = sums
    K = class_mass.shape[0]
    n = order.shape[0]
    into, place = counts.ctypes.data, BYTES * K
    share = np.empty((LANES, K))
    shares = share.ctypes.data
    for block in range(block_ptr.shape[0] - 1):
        begin, first, last = block * LANES, block_ptr[block], block_ptr[block + 1]
        size = min(LANES, n - begin)
        for i in range(size):
            for k in range(K):
                share[i, k] = 0.0
        for level in range(first, last):
            labels = label[level_ptr[level] : level_ptr[level + 1]]
            for i in range(labels.shape[0]):
                share[i, labels[i]] += 1.0
        for i in range(size):
            known = gold[order[begin + i]] if gold.shape[0] > 0 else -1
            votes = 0.0
            for k in range(K):
                votes += share[i, k]
            # A single vote cannot confirm itself.
            weight = 1.0 / (1.0 + discount * (votes - 1.0)) if votes >= 2.0 or known >= 0 else 0.0
            for k in range(K):
                of_class = share[i, k] / max(votes, 1.0)
                if known >= 0:
                    of_class = 1.0 if k == known else 0.0
                class_mass[k] += of_class
                share[i, k] = of_class * weight
        for level in range(first, last):
            start, end = level_ptr[level], level_ptr[level + 1]
            workers, labels = worker[start:end], label[start:end]
            for i in range(end - start):
                row = np.int64(workers[i]) * K + np.int64(labels[i])
                add_row(into + row * place, shares + i * place, K)


def em_pass(shard: Shard, factors: VoteFactors, *rest: Any) -> float:
    """The compiled EM step. See ``pass_over_blocks`` below for its arguments."""
    return _em_pass(_unrolled(factors.of_workers))(shard.blocks, shard.gold, factors, *rest)


def _unrolled(of_workers: Floats) -> int:
    """The number of classes, if it and the number of nodes are compile-time constants; else 0."""
    n_rows, n_classes = of_workers.shape[1:]
    return n_classes if 2 <= n_classes <= MAX_UNROLLED and n_rows == n_classes + _USUAL_NODES else 0


@piece
def _take_out(score: Floats, said: Floats, size: int, K: int, G: int, taken_out: Floats) -> None:
    """Move the logarithm of the likelihoods so far into the logarithmic part, and restart the products from 1."""
    for i in range(size):
        for k in range(K):
            of_vote = log_fast(said[i, k])
            said[i, k] = 1.0
            for g in range(G):
                taken_out[i, g * K + k] += of_vote
        for c in range(G * K):
            taken_out[i, c] += log_fast(score[i, c])
            score[i, c] = 1.0


@cache
def _em_pass(unrolled: int) -> Callable[..., float]:
    # Bare names in conditions and sizes: numba drops branches that such a constant rules out, and rows of a size that
    # it knows become vectors.
    is_unrolled, classes, cells = unrolled > 0, unrolled, unrolled * _USUAL_NODES

    @kernel
    def pass_over_blocks(  # type: ignore[no-untyped-def]
        blocks,  # the votes
        gold,  # int32 (n), the known class or -1; or of size 0
        factors,  # what is looked up per vote
        log_prior,  # (K)
        offsets,  # (n, K), each task's log prior relative to it; or of size 0
        weights,  # (G), of the nodes, sum to one
        nodes,  # (G), s times the nodes
        refresh,  # whether to recompute the posterior
        local,
        out,  # the local parameters, written
        stats,  # added to; the log likelihood is a bound if the posterior is held fixed
    ):
        order, block_ptr, level_ptr, worker, label = blocks
        of_workers, powers = factors
        (posterior_in,), (posterior_out,) = local, out
        sums, scalars = stats
        K = unrolled if is_unrolled else log_prior.shape[0]
        G = _USUAL_NODES if is_unrolled else weights.shape[0]
        GK = G * K
        n = order.shape[0]
        longest = powers.shape[0] - 1
        has_gold = gold.shape[0] > 0
        start = np.empty(GK)
        for g in range(G):
            for k in range(K):
                start[g * K + k] = exp_fast(log_prior[k]) * weights[g]
        # One entry per (lane, node, class), (lane, class) or lane.
        score = np.empty((LANES, GK))
        likelihoods = score.reshape(-1)
        taken_out = np.empty((LANES, GK))
        q = np.empty((LANES, K))
        said = np.empty((LANES, K))
        count = np.empty((LANES, K), np.int64)
        total = np.empty(LANES)
        # Sums and maxima over blocks, one per lane: no addition depends on the previous one.
        loglik = np.zeros(LANES)
        change = np.zeros((LANES, K))
        # Start of the rows, and bytes from one row to the next.
        at_workers, at_sums = of_workers.ctypes.data, sums.ctypes.data
        at_score, at_said, at_q = score.ctypes.data, said.ctypes.data, q.ctypes.data
        of_classes, of_cells, of_worker = BYTES * K, BYTES * GK, BYTES * (GK + K * K)

        for block in range(block_ptr.shape[0] - 1):
            places = order[block * LANES : min((block + 1) * LANES, n)]
            size = places.shape[0]
            first_level, last_level = block_ptr[block], block_ptr[block + 1]
            in_logs = not refresh or last_level - first_level > longest
            for i in range(size):
                for c in range(GK):
                    score[i, c] = start[c]
                for k in range(K):
                    said[i, k] = 1.0
                    count[i, k] = 0
            if offsets.shape[0] > 0:
                for i in range(size):
                    for k in range(K):
                        said[i, k] = exp_fast(offsets[places[i], k])
            if in_logs:
                for i in range(size):
                    for c in range(GK):
                        taken_out[i, c] = 0.0

            for level in range(first_level, last_level):
                first, end = level_ptr[level], level_ptr[level + 1]
                workers, labels = worker[first:end], label[first:end]
                for i in range(end - first):
                    row, y = at_workers + np.int64(workers[i]) * of_worker, np.int64(labels[i])
                    if is_unrolled:
                        multiply_few(at_score + i * of_cells, row, cells)
                        multiply_few(at_said + i * of_classes, row + of_cells + y * of_classes, classes)
                    else:
                        multiply_row(at_score + i * of_cells, row, GK)
                        multiply_row(at_said + i * of_classes, row + of_cells + y * of_classes, K)
                    count[i, y] += 1
                if in_logs and (level - first_level + 1) % max(longest, 1) == 0:
                    _take_out(score, said, size, K, G, taken_out)

            if in_logs:
                _take_out(score, said, size, K, G, taken_out)
                for i in range(size):
                    for g in range(G):
                        for k in range(K):
                            score[i, g * K + k] = taken_out[i, g * K + k] - count[i, k] * nodes[g]
            else:
                for i in range(size):
                    for g in range(G):
                        for k in range(K):
                            score[i, g * K + k] *= said[i, k] * powers[count[i, k], g]
            if refresh:
                if in_logs:
                    for i in range(size):
                        known = gold[places[i]] if has_gold else -1
                        highest = -np.inf
                        for g in range(G):
                            for k in range(K):
                                if known < 0 or k == known:
                                    highest = max(highest, score[i, g * K + k])
                        loglik[i] += highest
                        for c in range(GK):
                            score[i, c] -= highest
                    for cell in range(size * GK):
                        likelihoods[cell] = exp_fast(likelihoods[cell])
                # A gold task has only the nodes of its class.
                if has_gold:
                    for i in range(size):
                        if gold[places[i]] >= 0:
                            for g in range(G):
                                for k in range(K):
                                    if k != gold[places[i]]:
                                        score[i, g * K + k] = 0.0
                for i in range(size):
                    for k in range(K):
                        of_class = 0.0
                        for g in range(G):
                            of_class += score[i, g * K + k]
                        q[i, k] = of_class
                    mass = 0.0
                    for k in range(K):
                        mass += q[i, k]
                    total[i] = mass
                    scale = 1.0 / mass
                    for k in range(K):
                        q[i, k] *= scale
                    for c in range(GK):
                        score[i, c] *= scale
                for i in range(size):
                    loglik[i] += log_fast(total[i])
            else:
                for i in range(size):
                    for k in range(K):
                        share = float(posterior_in[places[i], k])
                        q[i, k] = share
                        log_share = log(share) if share > 0.0 else 0.0
                        for g in range(G):
                            c = g * K + k
                            loglik[i] += share * weights[g] * (score[i, c] - log_share - log(weights[g]))
                            score[i, c] = share * weights[g]
            for i in range(size):
                task = places[i]
                for k in range(K):
                    change[i, k] = max(change[i, k], abs(q[i, k] - posterior_in[task, k]))
                    posterior_out[task, k] = q[i, k]

            for level in range(first_level, last_level):
                first, end = level_ptr[level], level_ptr[level + 1]
                workers, labels = worker[first:end], label[first:end]
                for i in range(end - first):
                    row, y = at_sums + np.int64(workers[i]) * of_worker, np.int64(labels[i])
                    if is_unrolled:
                        add_few(row, at_score + i * of_cells, cells)
                        add_few(row + of_cells + y * of_classes, at_q + i * of_classes, classes)
                    else:
                        add_row(row, at_score + i * of_cells, GK)
                        add_row(row + of_cells + y * of_classes, at_q + i * of_classes, K)

        scalars[0] += sum_of(loglik)
        return largest_of(change.reshape(-1))

    return pass_over_blocks


def report_pass(shard: Shard, *rest: Any) -> None:
    """The compiled report. See ``_report_blocks`` below for its arguments."""
    _report_blocks(shard.blocks, shard.gold, *rest)


@kernel
def _report_blocks(
    blocks: Blocks,
    gold: NDArray[np.int32],
    tables: VoteTables,
    log_prior: Floats,  # these three are as for the EM step
    weights: Floats,
    nodes: Floats,
    discount: float,  # rho
    out: Posterior,  # written
    sums: ReportSums,  # added to
) -> None:
    """Reported probabilities, from the evidence of the votes and not from a rounded posterior."""
    order, block_ptr, level_ptr, worker, label = blocks
    log_wrong, of_vote = tables
    (reported,), (class_mass,) = out, sums
    K, G, n = log_prior.shape[0], weights.shape[0], order.shape[0]
    score = np.empty((LANES, G * K))
    said = np.empty((LANES, K))
    count = np.empty((LANES, K))
    top = np.empty(K)
    p = np.empty(K)
    at_wrong, at_vote = log_wrong.ctypes.data, of_vote.ctypes.data
    at_score, at_said = score.ctypes.data, said.ctypes.data
    of_classes, of_cells = BYTES * K, BYTES * G * K
    for block in range(block_ptr.shape[0] - 1):
        places = order[block * LANES : min((block + 1) * LANES, n)]
        for i in range(places.shape[0]):
            for c in range(G * K):
                score[i, c] = 0.0
            for k in range(K):
                said[i, k] = 0.0
                count[i, k] = 0.0
        for level in range(block_ptr[block], block_ptr[block + 1]):
            first, end = level_ptr[level], level_ptr[level + 1]
            workers, labels = worker[first:end], label[first:end]
            for i in range(end - first):
                r, y = np.int64(workers[i]), np.int64(labels[i])
                add_row(at_score + i * of_cells, at_wrong + r * of_cells, G * K)
                add_row(at_said + i * of_classes, at_vote + (r * K + y) * of_classes, K)
                count[i, y] += 1.0
        for i in range(places.shape[0]):
            task = places[i]
            known = gold[task] if gold.shape[0] > 0 else -1
            votes = 0.0
            for k in range(K):
                votes += count[i, k]
            # Tempered, because votes partly repeat each other.
            power = 1.0 / (1.0 + discount * (votes - 1.0))
            for k in range(K):
                top[k] = -np.inf
                p[k] = 0.0
            for g in range(G):
                for k in range(K):
                    score[i, g * K + k] += log(weights[g]) - count[i, k] * nodes[g]
                    top[k] = max(top[k], score[i, g * K + k])
            for g in range(G):
                for k in range(K):
                    p[k] += exp_fast(score[i, g * K + k] - top[k])
            highest = -np.inf
            for k in range(K):
                p[k] = log_prior[k] + power * (top[k] + said[i, k] + log_fast(p[k]))
                highest = max(highest, p[k])
            total = 0.0
            for k in range(K):
                p[k] = exp_fast(p[k] - highest)
                total += p[k]
            for k in range(K):
                share = p[k] / total
                if known >= 0:
                    share = 1.0 if k == known else 0.0
                reported[task, k] = share
                class_mass[k] += share
