"""A Gibbs sampler of a crowd model: draws of classes, abilities, difficulty and class shares.

::

    P(vote of worker r is right | class k, easy task) = sigmoid(a_rk)              a_rk ~ N(mean_k, spread_k^2)
    P(vote of worker r is right | class k, hard task) = sigmoid(u + v a_rk)
    P(it names class y | it is wrong, class k) = error_ky
    class ~ shares,   hard ~ Bernoulli(hard_share)

This is CC-Rasch with difficulties reduced to two levels (``v`` lets a hard task affect a good worker more than a
poor one), with errors that can prefer one class to another, and without maximisation: a Gibbs sampler draws everything
in turn. A fit that trusts a single estimate of every ability and difficulty makes a rare class look more frequent than
it is, because every worker has seen few of its tasks and unusual tasks of the frequent class look like it; draws
keep that uncertainty.

Tasks are sorted by their number of votes, in descending order. The votes at position ``j`` then belong to the first
few tasks, and a task's likelihood is a sum of whole arrays over positions. A *cell* is a (class, level), number
``2 class + level``; arrays by cell have the cells first, so that every operation runs along the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations, smallest_unsigned
from rarevote.crowd.numerics import TINY, FloatArray, IntArray, first_of_best, normalise_rows, sigmoid
from rarevote.crowd.steps import steps
from rarevote.decide.sampled import CELL_VISITS, cells_of_sweep

_ROUNDS_PER_SWEEP = 3  # updates of classes, shares and hardness given the abilities: cheap, and they mix slowest
_NEWTON_STEPS = 5
_LOWEST_LOG = -600.0  # the smallest log likelihood; its exponential must stay above zero

# The autocorrelation of a rare class's share vanishes after about 50 sweeps: fewer sweeps would measure noise.
_SETTLING = 100  # sweeps before the first draw counts
_MIN_SWEEPS, _MAX_SWEEPS = 300, 2000
_LONGER = 1.3  # factor on the number of sweeps before the next check of the shares
_PIECES, _ENOUGH = 10, 0.15

# Priors, on the logit scale of an ability.
_MEAN_VARIANCE = 2.0
_SPREAD_SHAPE, _SPREAD_SCALE = 1.0, 0.25
_HARD_MEAN, _HARD_VARIANCE = np.array([-0.8, 0.7]), np.array([0.25, 0.25])  # of u and v, before the bounds
# A hard task makes workers more similar (v below 1) and does not mislead them (u not far below 0). Without these
# bounds, every worker can be wrong on hard tasks, which explains any votes by any class.
_HARD_LOWEST, _HARD_HIGHEST = np.array([-1.25, 0.0]), np.array([0.0, 1.0])
_HARD_TRIES = 3
_LEVEL_MASS = 2.0
_CLASS_MASS = 1.0
_ERROR_MASS = 1.0
# Proposals from Student's t have heavier tails than the target, as an independence sampler requires.
_DEGREES = 8.0


@dataclass(frozen=True)
class Votes:
    """The votes of a crowd, sorted for the sampler.

    Attributes:
        tasks: the tasks, most votes first, (n).
        by_position: ``worker K + label`` of the first votes of all tasks, then of the second votes, and so on.
        code: the same in one array, (N).
        row: for each entry of ``code`` the row of its task in ``tasks``, (N).
    """

    tasks: IntArray
    by_position: list[IntArray]
    code: IntArray
    row: IntArray

    @classmethod
    def of(cls, annotations: Annotations, tasks: IntArray | None = None) -> Votes:
        """Sort the votes, or those on some tasks."""
        chosen = np.arange(annotations.n_tasks) if tasks is None else tasks
        size = np.diff(annotations.task_ptr)[chosen]
        order = chosen[np.argsort(-size, kind="stable")]
        begin = annotations.task_ptr[order]
        reach = np.bincount(size)[::-1].cumsum()[::-1][1:]  # number of tasks with more than j votes
        by_position = []
        for position, n_tasks in enumerate(reach.tolist()):
            vote = begin[:n_tasks] + position
            code = annotations.worker[vote].astype(np.int64) * annotations.n_classes + annotations.label[vote]
            by_position.append(code)
        row = np.concatenate([np.arange(n_tasks) for n_tasks in reach.tolist()])
        return cls(order, by_position, np.concatenate(by_position), row)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The result of many sweeps.

    Attributes:
        score: mean probability of each class from the votes alone, (n, K).
        classes: class of every task in each draw, (n_draws, n); known tasks keep their class.
    """

    score: FloatArray
    classes: NDArray[Any]


class VoteSampler:
    """Gibbs sampling of a crowd.

    Args:
        annotations: the crowd.
        known: known class of every task of the crowd or -1.
        seed: seed of the random numbers.
        part: tasks that the chain visits; all by default. The others do not affect the fit: their classes
            are drawn from the workers and class shares of the chain.
    """

    def __init__(
        self, annotations: Annotations, known: NDArray[np.int32], seed: int, part: IntArray | None = None
    ) -> None:
        K = annotations.n_classes
        self.n_workers, self.n_classes = annotations.n_workers, K
        self.rng = np.random.default_rng([seed, 1])
        self.votes = Votes.of(annotations, part)
        self.rest = None if part is None else Votes.of(annotations, np.delete(np.arange(annotations.n_tasks), part))
        of_all = normalise_rows(annotations.votes())
        of_all[known >= 0] = np.eye(K)[known[known >= 0]]
        # A class that has the most votes on no task is treated as a slip: if it were possible, and always missed, it
        # could explain anything that the other classes do not.
        self.possible = np.bincount(first_of_best(of_all), minlength=K) > 0
        start, known = of_all[self.votes.tasks], known[self.votes.tasks]
        self.gold = np.flatnonzero(known >= 0)
        self.allowed = np.repeat(np.eye(K)[known[self.gold]], 2, axis=1).T
        self.shares = np.maximum(start.mean(axis=0), TINY)
        self.hard_share, self.hard = 0.3, _HARD_MEAN.copy()
        self.log_error = np.full((K, K), -log(max(K - 1, 1)))
        self.cell = 2 * first_of_best(start)
        right, total, _ = self._counts(self.cell)
        accuracy = (right.sum(axis=2) + 1.5) / (total.sum(axis=2) + 2.5)
        self.ability = np.log(accuracy / (1.0 - accuracy))
        self.mean, self.spread = self.ability.mean(axis=0), np.ones(K)

    def run(self, n_draws: int, n_sweeps: int | None = None) -> Drawn:
        """Sweep until the class shares are known well enough, and return the results.

        Args:
            n_draws: at least this many draws are kept if the chain is long enough, and less than twice as many.
            n_sweeps: exactly this many sweeps, whatever the shares.
        """
        if self.rest is not None and n_sweeps:
            return self._run_thinned(self.rest, n_draws, n_sweeps)
        n, K = len(self.votes.tasks), self.n_classes
        most = n_sweeps or self.max_sweeps()
        settling = min(_SETTLING, most // 4)
        check = most if n_sweeps else _MIN_SWEEPS
        score = np.zeros((K, n))
        shares: list[FloatArray] = []
        draws: list[NDArray[Any]] = []
        stride, kind = 1, smallest_unsigned(K)
        for number in steps("sampling true classes", range(most)):
            probability, classes = self.sweep()
            if number >= settling:
                score += probability
                if len(shares) % stride == 0:
                    draws.append(classes.astype(kind))
                shares.append(np.bincount(classes, minlength=K) / n)
                if len(draws) == 2 * n_draws:
                    draws, stride = draws[::2], 2 * stride
            if number + 1 == check:
                if not n_sweeps and are_settled(np.array(shares), n):
                    break
                check = ceil(check * _LONGER)
        back = np.argsort(self.votes.tasks)
        return Drawn(normalise_rows(score.T[back]), np.array(draws)[:, back])

    def _run_thinned(self, rest: Votes, n_draws: int, n_sweeps: int) -> Drawn:
        """Sweep over a part of the tasks; at ``n_draws`` of the sweeps, evenly spaced, draw the classes of the rest."""
        settling = min(_SETTLING, n_sweeps // 4)
        kept = set(np.linspace(settling, n_sweeps - 1, n_draws).round().astype(int).tolist())
        score, of_rest = (np.zeros((self.n_classes, len(votes.tasks))) for votes in (self.votes, rest))
        draws = []
        for number in steps("sampling true classes", range(n_sweeps)):
            probability, classes = self.sweep()
            if number >= settling:
                score += probability
            if number in kept:
                probability = self.class_probability(self.likelihood(rest))
                of_rest += probability
                below = probability.cumsum(axis=0)
                others = (below < self.rng.random(len(rest.tasks)) * below[-1]).sum(axis=0)
                draws.append(np.concatenate([classes, others]).astype(smallest_unsigned(self.n_classes)))
        back = np.argsort(np.concatenate([self.votes.tasks, rest.tasks]))
        found = np.concatenate([normalise_rows(score.T), normalise_rows(of_rest.T)])
        return Drawn(found[back], np.array(draws)[:, back])

    def max_sweeps(self) -> int:
        """The largest number of sweeps for the size of the crowd."""
        n, K = len(self.votes.tasks), self.n_classes
        work = cells_of_sweep(self.votes.code.size, n, self.n_workers, K)
        return int(np.clip(CELL_VISITS // work, 1, _MAX_SWEEPS))

    # -- one sweep ---------------------------------------------------------------------------------------------------

    def sweep(self) -> tuple[FloatArray, IntArray]:
        """Draw everything once; returns class probabilities of the tasks from the votes alone, (K, n), and classes."""
        K, rng = self.n_classes, self.rng
        likelihood = self.likelihood(self.votes)
        of_votes = likelihood[:, self.gold]
        likelihood[:, self.gold] *= self.allowed
        for _ in range(_ROUNDS_PER_SWEEP):
            reached = likelihood * self.cell_shares()[:, None]
            for cell in range(1, 2 * K):
                reached[cell] += reached[cell - 1]
            chosen = (reached < rng.random(reached.shape[1]) * reached[-1]).sum(axis=0)
            count = np.bincount(chosen, minlength=2 * K).reshape(K, 2)
            drawn = rng.gamma(count.sum(axis=1) + _CLASS_MASS) * self.possible
            self.shares = np.maximum(drawn / drawn.sum(), TINY)
            self.hard_share = float(rng.beta(*(count.sum(axis=0)[::-1] + _LEVEL_MASS)))
        likelihood[:, self.gold] = of_votes
        probability = self.class_probability(likelihood)
        self.cell = chosen
        right, total, named = self._counts(chosen)
        self._draw_errors(named)
        self._draw_abilities(right, total)
        self._draw_hard(right[:, :, 1].ravel(), total[:, :, 1].ravel())
        self._draw_population()
        return probability, chosen // 2

    def likelihood(self, votes: Votes) -> FloatArray:
        """Likelihood of each task's votes in each cell, up to a factor per task, (2 K, n)."""
        K = self.n_classes
        log_odds = self._log_odds(self.ability)
        right = -np.logaddexp(0.0, -log_odds)
        table = (right - log_odds)[:, None] + self.log_error[:, :, None]  # worker, vote, class, level
        table[:, range(K), range(K)] = right
        table = table.reshape(-1, 2 * K)
        sums = np.zeros((len(votes.tasks), 2 * K))
        for code in votes.by_position:
            sums[: len(code)] += table.take(code, axis=0)
        logs = np.ascontiguousarray(sums.T)
        logs -= logs.max(axis=0)
        np.maximum(logs, _LOWEST_LOG, out=logs)
        return np.asarray(np.exp(logs, out=logs))

    def cell_shares(self) -> FloatArray:
        """Prior probability of each cell, (2 K)."""
        return np.outer(self.shares, [1.0 - self.hard_share, self.hard_share]).ravel()

    def class_probability(self, likelihood: FloatArray) -> FloatArray:
        """Probability of each class at the current parameters, (K, n)."""
        weight = likelihood * self.cell_shares()[:, None]
        by_class = weight[0::2] + weight[1::2]
        return np.asarray(by_class / by_class.sum(axis=0))

    def _log_odds(self, ability: FloatArray) -> FloatArray:
        """Log odds of a right vote on an easy and on a hard task, (..., 2)."""
        log_odds = np.empty((*ability.shape, 2))
        log_odds[..., 0] = ability
        log_odds[..., 1] = self.hard[0] + self.hard[1] * ability
        return log_odds

    def _counts(self, cell: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Votes given every task's cell: right ones and all, per worker, class and level, (m, K, 2); label x class."""
        K = self.n_classes
        place = self.votes.code * (2 * K) + cell.take(self.votes.row)
        seen = np.bincount(place, minlength=self.n_workers * K * 2 * K).astype(np.float64)
        seen = seen.reshape(self.n_workers, K, K, 2)
        return np.asarray(seen[:, range(K), range(K)]), np.asarray(seen.sum(axis=1)), np.asarray(seen.sum(axis=(0, 3)))

    def _draw_errors(self, named: FloatArray) -> None:
        """Draw which class a wrong vote names, ``log_error[y, k]``; the diagonal is never used."""
        K = self.n_classes
        if K > 2:
            draw = self.rng.gamma(named + _ERROR_MASS / (K - 1))
            np.fill_diagonal(draw, 0.0)
            share = np.maximum(draw / np.maximum(draw.sum(axis=0), TINY), TINY)
            self.log_error = np.log(share)

    def _draw_abilities(self, right: FloatArray, total: FloatArray) -> None:
        slope = np.array([1.0, self.hard[1]])

        def log_density(ability: FloatArray) -> FloatArray:
            log_odds = self._log_odds(ability)
            fit = (right * log_odds - total * np.logaddexp(0.0, log_odds)).sum(axis=2)
            return np.asarray(fit - 0.5 * ((ability - self.mean) / self.spread) ** 2)

        # The proposal must not depend on the state of the chain, so the search for its mode starts from the mean.
        mode = np.broadcast_to(self.mean, self.ability.shape)
        for _ in range(_NEWTON_STEPS):
            p = sigmoid(self._log_odds(mode))
            gradient = (slope * (right - total * p)).sum(axis=2) - (mode - self.mean) / self.spread**2
            curvature = (slope**2 * total * p * (1 - p)).sum(axis=2) + 1.0 / self.spread**2
            mode = mode + np.clip(gradient / curvature, -1.5, 1.5)
        width = 1.0 / np.sqrt(curvature)
        step = self.rng.standard_t(_DEGREES, mode.shape)
        proposed = mode + width * step
        gain = log_density(proposed) - log_density(self.ability)
        gain += _log_t(((self.ability - mode) / width) ** 2, 1) - _log_t(step**2, 1)
        self.ability = np.where(np.log(self.rng.random(gain.shape)) < gain, proposed, self.ability)

    def _draw_hard(self, right: FloatArray, total: FloatArray) -> None:
        """Draw ``u`` and ``v``: a logistic regression of the votes on hard tasks on the abilities."""
        design = np.stack([np.ones(right.size), self.ability.ravel()])

        def log_density(hard: FloatArray) -> float:
            log_odds = hard @ design
            fit = float((right * log_odds - total * np.logaddexp(0.0, log_odds)).sum())
            return fit - 0.5 * float(((hard - _HARD_MEAN) ** 2 / _HARD_VARIANCE).sum())

        mode = _HARD_MEAN
        for _ in range(_NEWTON_STEPS):
            p = sigmoid(mode @ design)
            gradient = design @ (right - total * p) - (mode - _HARD_MEAN) / _HARD_VARIANCE
            curvature = (design * (total * p * (1 - p))) @ design.T + np.diag(1.0 / _HARD_VARIANCE)
            mode = mode + np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        mode = np.clip(mode, _HARD_LOWEST, _HARD_HIGHEST)
        root = np.linalg.cholesky(np.linalg.inv(curvature))
        now = np.linalg.solve(root, self.hard - mode)
        here = log_density(self.hard) - _log_t(now @ now, 2)
        for _ in range(_HARD_TRIES):
            step = self.rng.standard_normal(2) * sqrt(_DEGREES / self.rng.chisquare(_DEGREES))
            proposed = mode + root @ step
            if ((proposed < _HARD_LOWEST) | (proposed > _HARD_HIGHEST)).any():
                continue
            there = log_density(proposed) - _log_t(step @ step, 2)
            if log(self.rng.random()) < there - here:
                self.hard, here = proposed, there

    def _draw_population(self) -> None:
        """Draw mean and spread of the abilities, per class."""
        m, K, rng = self.n_workers, self.n_classes, self.rng
        variance = 1.0 / (m / self.spread**2 + 1.0 / _MEAN_VARIANCE)
        self.mean = variance * self.ability.sum(0) / self.spread**2 + np.sqrt(variance) * rng.standard_normal(K)
        scale = _SPREAD_SCALE + ((self.ability - self.mean) ** 2).sum(axis=0) / 2
        self.spread = np.sqrt(scale / rng.gamma(_SPREAD_SHAPE + m / 2, size=K))


def are_settled(shares: FloatArray, n_tasks: int) -> bool:
    """Whether the mean shares of a chain are known well enough.

    The sweeps are split into ``B = 10`` parts. The standard error of a mean share is ``sd(means of the parts) /
    sqrt(B)``: it grows if neighbouring sweeps are correlated, or if the chain still drifts. It is small enough at 0.15
    times ``sqrt((s (1 - s) + 1/n) / n)``, the sampling error of the share of a class over ``n`` tasks.

    Args:
        shares: share of each class after each sweep, (n_sweeps, K).
        n_tasks: ``n``.

    Example:
        >>> still = np.tile([[0.3, 0.7], [0.32, 0.68]], (100, 1))
        >>> drifting = np.linspace(0.2, 0.4, 200)[:, None]
        >>> are_settled(still, 100), are_settled(drifting, 100)
        (True, False)
    """
    pieces = np.array([piece.mean(axis=0) for piece in np.array_split(shares, _PIECES)])
    error = pieces.std(axis=0, ddof=1) / sqrt(_PIECES)
    mean = pieces.mean(axis=0)
    return bool((error <= _ENOUGH * np.sqrt((mean * (1.0 - mean) + 1.0 / n_tasks) / n_tasks)).all())


def _log_t(squared: Any, dimension: int) -> Any:
    """Log density of Student's t at a squared distance from its centre, up to a constant."""
    return -0.5 * (_DEGREES + dimension) * np.log1p(squared / _DEGREES)
