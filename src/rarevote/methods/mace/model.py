"""MACE as a model of the EM loop: every worker copies the truth, or spams with their own label distribution.

::

    truth T_i uniform over the classes
    worker r spams on an annotation with probability s_r and then says y with probability theta_ry
    otherwise they say T_i

Given the posterior q, the expected number of times that r copied is ``sum_y w_ry Q_ry``, where ``Q_ry`` is the total
posterior of y over r's votes for y, and ``w_ry = (1 - s_r) / (1 - s_r + s_r theta_ry)``; all other votes are spam.

Two ways to turn those counts into parameters:

* "em": the most probable parameters under a Dirichlet prior that adds ``smoothing`` to every count;
* "vb": variational Bayes. The parameters keep a Dirichlet distribution, the passes see the exponentials of their mean
  logs, and the objective is the evidence lower bound, the log likelihood at those weights minus the Kullback–Leibler
  divergence from the prior.

Both objectives never fall from one iteration to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Literal, NamedTuple

import numpy as np

from rarevote.crowd.numerics import FloatArray, dot, normalise_rows
from rarevote.em.model import EMModel, Posterior, Shard, soft_majority
from rarevote.kernels.special import digamma, log_gamma
from rarevote.methods.mace import plain

MaceMethod = Literal["vb", "em"]

SPAMS, COPIES = 0, 1
_LOWEST = -1e300


class MaceShared(NamedTuple):
    """Counts with their prior added, and the log parameters that follow from them."""

    state: FloatArray  # (m, 2): spams, copies
    strategy: FloatArray  # (m, K): labels given as a spammer
    log_state: FloatArray  # (m, 2)
    log_strategy: FloatArray  # (m, K)


class MaceStats(NamedTuple):
    """Sums over tasks."""

    agreement: FloatArray  # (m, K): posterior of the labels that each worker gave
    bound: FloatArray  # (1)


@dataclass(frozen=True)
class MaceModel(EMModel[MaceShared, Posterior, MaceStats]):
    """The model with its priors.

    Attributes:
        votes: (m, K), how often each worker gave each label.
        state_prior: (2), counts added to "spams" and "copies".
        strategy_prior: count added to every label that a spammer can give.
        method: "vb" or "em".
        noise: (m, 2 + K) factors around 1 on the counts to start from, or None for the soft majority vote.
        parameters: (m, 2 + K) shares to start from, regardless of the counts, or None.
    """

    votes: FloatArray
    state_prior: FloatArray
    strategy_prior: float
    method: MaceMethod
    noise: FloatArray | None = None
    parameters: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.votes.shape[1])

    def _shared(self, state: FloatArray, strategy: FloatArray) -> MaceShared:
        """Parameters from expected counts, (m, 2) and (m, K)."""
        state, strategy = state + self.state_prior, strategy + self.strategy_prior
        return MaceShared(state, strategy, self._log_shares(state), self._log_shares(strategy))

    def _log_shares(self, counts: FloatArray) -> FloatArray:
        if self.method == "em":
            return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True)))
        return digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))

    # -- methods that the EM loop calls --------------------------------------------------------------------------------

    def start(self) -> MaceShared:
        """Half of every worker's votes are spam, spread over the classes; with noise, in noisy proportions."""
        return self._start

    @cached_property
    def _start(self) -> MaceShared:
        if self.parameters is not None:
            state, strategy = self.parameters[:, :2], self.parameters[:, 2:]
            return MaceShared(np.zeros_like(state), np.zeros_like(strategy), np.log(state), np.log(strategy))
        noise = np.ones((len(self.votes), 2 + self.n_classes)) if self.noise is None else self.noise
        state = self.votes.sum(axis=1, keepdims=True) * normalise_rows(noise[:, :2])
        return self._shared(state, state[:, [SPAMS]] * normalise_rows(noise[:, 2:]))

    def start_local(self, shard: Shard) -> Posterior:
        """Soft majority vote; with noise or given parameters, the posterior that follows from these."""
        local = Posterior(soft_majority(shard, self.n_classes))
        if self.noise is not None or self.parameters is not None:
            self.step(self._start, shard, local, local, self.empty_stats(self._start), True, 0.0)
        return local

    def empty_stats(self, shared: MaceShared) -> MaceStats:
        """Zeros to add to."""
        return MaceStats(np.zeros_like(self.votes), np.zeros(1))

    def step(
        self,
        shared: MaceShared,
        shard: Shard,
        local: Posterior,
        out: Posterior,
        stats: MaceStats,
        refresh: bool,
        damping: float,
    ) -> float:
        """One pass over a shard (see :mod:`rarevote.methods.mace.kernel`)."""
        spam, bonus = log_weights(shared)
        return float(
            passes_for(shard, self.n_classes).mace_pass(
                shard,
                spam,
                bonus,
                refresh,
                local,
                out,
                stats,
            )
        )

    def objective(self, shared: MaceShared, stats: MaceStats) -> float:
        """Log likelihood plus log prior ("em", without constants), or evidence lower bound ("vb")."""
        bound = float(stats.bound[0])
        if not shared.state.any():
            return _LOWEST  # shares that do not come from counts: there is no bound, and any step counts as a gain
        if self.method == "em":
            penalty = dot(shared.log_state, self.state_prior) + self.strategy_prior * shared.log_strategy.sum()
            return bound + float(penalty)
        strategy_prior = np.full(self.n_classes, self.strategy_prior)
        return (
            bound
            - _divergence(shared.state, shared.log_state, self.state_prior)
            - _divergence(shared.strategy, shared.log_strategy, strategy_prior)
        )

    def update(self, shared: MaceShared, stats: MaceStats, damping: float) -> MaceShared:
        """Expected counts of copying and of spamming, turned into parameters: an exact maximiser."""
        spam, bonus = log_weights(shared)
        copied = np.exp(shared.log_state[:, [COPIES]] - spam - bonus) * stats.agreement
        spammed = self.votes - copied
        return self._shared(np.column_stack([spammed.sum(axis=1), copied.sum(axis=1)]), spammed)


def log_weights(shared: MaceShared) -> tuple[FloatArray, FloatArray]:
    """Log weight of a vote for every class, and what it adds for the class that it names; both (m, K)."""
    spam = shared.log_state[:, [SPAMS]] + shared.log_strategy
    return spam, np.logaddexp(0.0, shared.log_state[:, [COPIES]] - spam)


def _divergence(counts: FloatArray, mean_logs: FloatArray, prior: FloatArray) -> float:
    """Sum over rows of KL(Dirichlet(counts) || Dirichlet(prior))."""
    of_rows = log_gamma(counts.sum(axis=1)) - log_gamma(counts).sum(axis=1) + ((counts - prior) * mean_logs).sum(axis=1)
    of_prior = log_gamma(prior).sum() - log_gamma(prior.sum())
    return float(of_rows.sum() + len(counts) * of_prior)


def passes_for(shard: Shard, n_classes: int) -> ModuleType:
    """The module with the passes: in NumPy, or compiled."""
    if shard.is_small(n_classes):
        return plain
    from rarevote.methods.mace import kernel

    return kernel
