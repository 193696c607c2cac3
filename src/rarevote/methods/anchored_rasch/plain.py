"""The passes of Anchored Rasch in NumPy: for small data, and a readable reference for the kernels (same arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarevote.em.model import Shard
from rarevote.kernels.plain import posterior_of_rows

if TYPE_CHECKING:
    from rarevote.em.model import Posterior
    from rarevote.methods.anchored_rasch.model import AnchoredStats, AnchorSums, ReportSums, VoteTables

Floats = NDArray[np.float64]


def count_shares(
    shard: Shard,
    discount: float,
    sums: AnchorSums,  # added to
) -> None:
    """The sums behind the anchors; see :mod:`rarevote.methods.anchored_rasch.model`."""
    counts, class_mass = sums
    K, gold = class_mass.size, shard.gold
    rows = shard.rows
    n_votes = np.diff(shard.task_ptr)[:, None]
    share = shard.votes(K) / np.maximum(n_votes, 1)
    known = np.flatnonzero(gold >= 0) if gold.size else np.empty(0, dtype=np.int64)
    share[known] = 0.0
    share[known, gold[known]] = 1.0
    class_mass += share.sum(axis=0)
    # A single vote cannot confirm itself.
    testifies = n_votes >= 2
    testifies[known] = True
    share *= testifies / (1.0 + discount * (n_votes - 1))
    counts += rows.by_answer(K).sums(rows.by_task.spread(share), len(counts) * K).reshape(counts.shape)


def _scores(shard: Shard, tables: VoteTables, weights: Floats, nodes: Floats) -> Floats:
    """Log probability of the votes together with the node, per task, node and class, (n, G, K)."""
    log_wrong, of_vote = tables
    n, (m, G, K) = shard.task_ptr.size - 1, log_wrong.shape
    rows = shard.rows
    wrong = rows.by_task.sums(rows.by_worker.spread(log_wrong.reshape(m, G * K)), n)
    named = rows.by_task.sums(rows.by_answer(K).spread(of_vote.reshape(-1, K)), n)
    count = shard.votes(K)
    return np.asarray(
        np.log(weights)[:, None] + wrong.reshape(n, G, K) + named[:, None, :] - count[:, None, :] * nodes[:, None],
    )


def log_likelihoods(shard: Shard, tables: VoteTables, weights: Floats, nodes: Floats) -> Floats:
    """Log probability of the votes on each task given its class, (n, K)."""
    score = _scores(shard, tables, weights, nodes)
    top = score.max(axis=1, keepdims=True)
    return np.asarray((top + np.log(np.exp(score - top).sum(axis=1, keepdims=True)))[:, 0])


def em_pass(
    shard: Shard,
    tables: VoteTables,
    log_prior: Floats,  # (K)
    offsets: Floats,  # (n, K), each task's log prior relative to it; or of size 0
    weights: Floats,  # (G), of the nodes, sum to one
    nodes: Floats,  # (G), s times the nodes
    refresh: bool,  # whether to recompute the posterior
    local: Posterior,
    out: Posterior,  # written
    stats: AnchoredStats,  # added to; the log likelihood is a bound if the posterior is held fixed
) -> float:
    """Posterior of classes and nodes, and its sums per worker; returns the largest change of a class probability."""
    n, K = local.posterior.shape
    gold, rows, n_workers = shard.gold, shard.rows, len(stats.of_workers)
    score = _scores(shard, tables, weights, nodes) + log_prior
    if offsets.size:
        score += offsets[:, None, :]
    if refresh:
        # A gold task has only the nodes of its class.
        if gold.size:
            known = np.flatnonzero(gold >= 0)
            score[known] += np.where(gold[known, None] == np.arange(K), 0.0, -np.inf)[:, None, :]
        top = score.max(axis=(1, 2), keepdims=True)
        mass = np.exp(score - top)
        of_class = mass.sum(axis=1)
        total = of_class.sum(axis=1, keepdims=True)
        q, mass = of_class / total, mass / total[:, :, None]
        stats.scalars[0] += (top[:, :, 0] + np.log(total)).sum()
    else:
        q = local.posterior.astype(np.float64)
        log_share = np.log(np.where(q > 0.0, q, 1.0))[:, None, :] + np.log(weights)[:, None]
        mass = q[:, None, :] * weights[:, None]
        stats.scalars[0] += (mass * (score - log_share)).sum()
    change = float(np.abs(q - local.posterior).max(initial=0.0))
    out.posterior[...] = q
    of_labels = rows.by_answer(K).sums(rows.by_task.spread(q), n_workers * K)
    stats.counts[...] += of_labels.reshape(stats.counts.shape)
    of_nodes = rows.by_worker.sums(rows.by_task.spread(mass.reshape(n, len(weights) * K)), n_workers)
    stats.node_mass[...] += of_nodes.reshape(stats.node_mass.shape)
    return change


def report_pass(
    shard: Shard,
    tables: VoteTables,  # these four are as for the EM step
    log_prior: Floats,
    weights: Floats,
    nodes: Floats,
    discount: float,  # rho
    out: Posterior,  # written
    sums: ReportSums,  # added to
) -> None:
    """Reported probabilities, from the evidence of the votes and not from a rounded posterior."""
    evidence = log_likelihoods(shard, tables, weights, nodes)
    power = 1.0 / (1.0 + discount * (np.diff(shard.task_ptr)[:, None] - 1))
    p, _ = posterior_of_rows(log_prior + power * evidence, shard.gold)
    sums.class_mass[...] += p.sum(axis=0)
    out.posterior[...] = p
