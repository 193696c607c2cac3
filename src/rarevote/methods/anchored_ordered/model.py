"""Anchored Ordered as a model of the EM loop: votes tilted around anchors by nearness, lean and habit.

::

    P_r(l | k) ~ B_kl exp(hit_r [l = k] - near_r D_kl + lean_r (x_l - xbar) + habit_rl),     normalised over l

    J = sum_i log sum_k pi_k prod_j P_{r_j}(y_ij | k)
        - sum_r sum_j (theta_rj - mu_j)^2 / (2 s_j^2) - (mu_h^2 + mu_n^2) / 2

with ``x_k`` the positions of the grades, ``D_kl`` their squared distance, ``pi`` and ``B`` the anchors
(:func:`~rarevote.methods.anchored_rasch.model.anchors_from`; ``B_kk = a_k``, ``B_kl = (1 - a_k) e_kl``). A class
outside the scale is at distance 1 from every other and has no lean.
``theta_r = (hit, near, lean, habit_1 .. habit_K)``; the means of hit and near are ``mu``, the others are drawn to 0.

With the squared distance, a tilt is a shift: with the plain distance, a lean would not move the answers along the
scale. ``B`` leaves the crowd's confusions free, so that a meaningless order gives ``near = 0``.

The posterior and its sums ``C_rlk`` are those of Anchored Rasch with one node, so its passes are used. Given ``C``, the
bound is concave in ``theta_r``: one Newton step per pass, halved for a worker whose part of the bound would fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rarevote.crowd.numerics import FloatArray
from rarevote.em.model import DOUBLE, EMModel, Posterior, Shard, once_a_pass, soft_majority
from rarevote.methods.anchored_rasch.model import (
    AnchoredStats,
    Anchors,
    VoteFactors,
    VoteTables,
    em_step,
    empty_sums,
    vote_factors,
)

HIT, NEAR, LEAN, HABIT = 0, 1, 2, 3
# Size of the arrays for a block of workers.
_CELLS = 1 << 20
_MAX_HALVINGS = 12
# How far, relative to its size, a worker's part of the bound can fall by rounding.
_ROUNDING = 1e-12


class OrderedShared(NamedTuple):
    """Parameters that every task sees."""

    theta: FloatArray  # (m, K + 3): hit, near, lean, habits
    mean: FloatArray  # (2): mu of hit and near


@dataclass(frozen=True)
class OrderedModel(EMModel[OrderedShared, Posterior, AnchoredStats]):
    """The model with its anchors.

    Attributes:
        n_workers: number of workers.
        anchors: the quantities that are fixed during the fit.
        positions: positions of the classes on the scale, NaN outside, (K).
        spreads: spreads of hit, near, lean and habits around their means, (4).
        dtype: type of the stored posterior.
    """

    n_workers: int
    anchors: Anchors
    positions: FloatArray
    spreads: tuple[float, float, float, float]
    dtype: np.dtype[Any] = DOUBLE

    #: there is no difficulty: one node, at 0
    weights = np.ones(1)
    nodes = np.zeros(1)

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.positions)

    @cached_property
    def log_base(self) -> FloatArray:
        """Log of B: label, class, (K, K)."""
        log_odds, errors = self.anchors.ability, self.anchors.errors
        own = np.arange(self.n_classes)
        base = errors / (1.0 + np.exp(log_odds))
        base[own, own] = 1.0 / (1.0 + np.exp(-log_odds))
        return np.asarray(np.log(base))

    @cached_property
    def features(self) -> FloatArray:
        """The terms that hit, near and lean multiply: label, class, (3, K, K)."""
        x = self.positions
        inside = np.isfinite(x)
        distance = (x[:, None] - x[None, :]) ** 2
        distance[~(inside[:, None] & inside[None, :])] = 1.0
        np.fill_diagonal(distance, 0.0)
        lean = np.where(inside, x - x[inside].mean(), 0.0) if inside.any() else np.zeros(len(x))
        return np.stack([np.eye(len(x)), -distance, np.broadcast_to(lean[:, None], distance.shape)])

    @cached_property
    def precision(self) -> FloatArray:
        """``1 / s_j^2``, (K + 3)."""
        spreads = [*self.spreads[:HABIT], *[self.spreads[HABIT]] * self.n_classes]
        return np.asarray(1.0 / np.square(spreads))

    def log_votes(self, theta: FloatArray) -> FloatArray:
        """``log P_r(l | k)``: worker, label, class, (m, K, K)."""
        table = np.einsum("rj,jlk->rlk", theta[:, :HABIT], self.features)
        table += self.log_base + theta[:, HABIT:, None]
        table -= table.max(axis=1, keepdims=True)
        table -= np.log(np.exp(table).sum(axis=1, keepdims=True))
        return np.asarray(table)

    @once_a_pass
    def tables(self, shared: OrderedShared) -> VoteTables:
        """The tables that a pass looks up; without difficulty, all of them depend on the vote."""
        of_vote = np.empty((len(shared.theta), self.n_classes, self.n_classes))
        for rows in self._blocks(len(of_vote)):
            of_vote[rows] = self.log_votes(shared.theta[rows])
        return VoteTables(np.zeros((len(of_vote), 1, self.n_classes)), of_vote)

    @once_a_pass
    def factors(self, shared: OrderedShared) -> VoteFactors:
        """The tables that a compiled EM step looks up."""
        of_vote = self.tables(shared).of_vote
        rows = np.ones((len(of_vote), 1 + self.n_classes, self.n_classes))
        np.exp(of_vote, out=rows[:, 1:])
        return vote_factors(rows, float(np.abs(of_vote).max(initial=0.0)), self.nodes)

    def _blocks(self, n_workers: int) -> Iterator[slice]:
        K = self.n_classes
        step = max(_CELLS // (HABIT * K * K + (K + HABIT) ** 2), 1)
        return (slice(begin, begin + step) for begin in range(0, n_workers, step))

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> OrderedShared:
        """All workers at the anchors."""
        return OrderedShared(np.zeros((self.n_workers, self.n_classes + HABIT)), np.zeros(2))

    def start_local(self, shard: Shard) -> Posterior:
        """Shares of the votes; gold tasks have their known class."""
        return Posterior(soft_majority(shard, self.n_classes).astype(self.dtype, copy=False))

    def empty_stats(self, shared: OrderedShared) -> AnchoredStats:
        """Zeros to add to."""
        return empty_sums(len(shared.theta), self.n_classes, 1)

    def step(
        self,
        shared: OrderedShared,
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: AnchoredStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One pass over a shard: the pass of Anchored Rasch with one node (see its kernel)."""
        no_offsets = np.empty((0, self.n_classes))
        return em_step(self, shared, shard, no_offsets, local, out, stats, refresh)

    def means(self, mean: FloatArray) -> FloatArray:
        """The means that theta is drawn to, (K + 3)."""
        return np.concatenate([mean, np.zeros(self.n_classes + HABIT - len(mean))])

    def objective(self, shared: OrderedShared, stats: AnchoredStats) -> float:
        """J."""
        pull = ((shared.theta - self.means(shared.mean)) ** 2 * self.precision).sum()
        return float(stats.scalars[0] - 0.5 * pull - 0.5 * (shared.mean**2).sum())

    def update(self, shared: OrderedShared, stats: AnchoredStats, damping: float) -> OrderedShared:
        """A Newton step for every worker, then the means in closed form."""
        length = 1.0 if damping <= 0.0 else 0.5 / damping
        theta, mean = np.empty_like(shared.theta), self.means(shared.mean)
        for rows in self._blocks(len(theta)):
            theta[rows] = self._newton(shared.theta[rows], stats.counts[rows], mean, length)
        variance = np.square(self.spreads[: len(shared.mean)])
        of_mean = theta[:, : len(shared.mean)].sum(axis=0) / (len(theta) + variance)
        return OrderedShared(theta, of_mean)

    def _bound(self, theta: FloatArray, counts: FloatArray, mean: FloatArray) -> FloatArray:
        """Each worker's own part of the bound, (m)."""
        votes = (counts * self.log_votes(theta)).sum(axis=(1, 2))
        return np.asarray(votes - 0.5 * ((theta - mean) ** 2 * self.precision).sum(axis=1))

    def _slopes(self, theta: FloatArray, counts: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient, (m, J), and negative Hessian, (m, J, J), of each worker's part of the bound; J is K + 3."""
        m, K = len(theta), self.n_classes
        p = np.exp(self.log_votes(theta))
        met = counts.sum(axis=1)  # (m, K)
        expected = met[:, None, :] * p
        surplus = counts - expected
        gradient = np.empty(theta.shape)
        gradient[:, :HABIT] = np.einsum("rlk,jlk->rj", surplus, self.features)
        gradient[:, HABIT:] = surplus.sum(axis=2)
        gradient -= (theta - mean) * self.precision
        # The feature of a habit is a single label, so its sums need no products.
        moments = np.empty((m, K, K + HABIT))
        moments[:, :, :HABIT] = np.einsum("rlk,jlk->rkj", p, self.features)
        moments[:, :, HABIT:] = p.transpose(0, 2, 1)
        hessian = -np.einsum("rki,rkj->rij", met[:, :, None] * moments, moments)
        weighed = expected[:, None] * self.features  # (m, 3, K, K)
        hessian[:, :HABIT, :HABIT] += np.einsum("rilk,jlk->rij", weighed, self.features)
        cross = weighed.sum(axis=3)
        hessian[:, :HABIT, HABIT:] += cross
        hessian[:, HABIT:, :HABIT] += cross.transpose(0, 2, 1)
        own, habits = np.arange(K + HABIT), np.arange(HABIT, K + HABIT)
        hessian[:, habits, habits] += expected.sum(axis=2)
        hessian[:, own, own] += self.precision
        return gradient, hessian

    def _newton(self, theta: FloatArray, counts: FloatArray, mean: FloatArray, length: float) -> FloatArray:
        gradient, hessian = self._slopes(theta, counts, mean)
        step = length * np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        before = self._bound(theta, counts, mean)
        low = before - _ROUNDING * np.abs(before)
        falls = np.flatnonzero(self._bound(theta + step, counts, mean) < low)
        for _ in range(_MAX_HALVINGS):
            if not falls.size:
                break
            step[falls] *= 0.5
            after = self._bound(theta[falls] + step[falls], counts[falls], mean)
            falls = falls[after < low[falls]]
        step[falls] = 0.0
        return np.asarray(theta + step)

    def gradient_norm(self, shared: OrderedShared, stats: AnchoredStats) -> float:
        """Norm of the gradient in the workers' parameters."""
        mean, total = self.means(shared.mean), 0.0
        for rows in self._blocks(len(shared.theta)):
            total += float((self._slopes(shared.theta[rows], stats.counts[rows], mean)[0] ** 2).sum())
        return float(np.sqrt(total))
