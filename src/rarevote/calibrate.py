"""Honest probabilities: how likely is each class of each task, and how many tasks of each class are there?

CC-Rasch is fitted under a uniform class prior, which finds the rare class but gives no probabilities: where 3 % of the
tasks are positive, its posteriors average 49 %. Two ways lead from there to probabilities.

*Held*: abilities and difficulties stay as fitted and only the class prior moves, ``q'_ik ~ q_ik pi'_k / pi_k``, until
``pi'`` is the mean of ``q'`` (EM on ``pi`` alone). This needs nothing but the posterior. It cannot undo that the abilities
were fitted under the wrong prior: the 3 % become 46 %. It is right for methods that are fitted with the right prior.

*Refitted* (the default wherever the votes are at hand): the votes are explained anew, with everything uncertain left
uncertain::

    P(vote of worker r is right | class k, easy task) = sigmoid(a_rk)              a_rk ~ N(mean_k, spread_k^2)
    P(vote of worker r is right | class k, hard task) = sigmoid(u + v a_rk)
    class ~ pi,   hard ~ Bernoulli(share),   errors uniform over the other classes

A Gibbs sampler draws classes, levels of difficulty, abilities, ``u``, ``v`` and ``pi`` in turn. Levels are summed out
where an ordinary fit would take the likeliest difficulty, which is what makes a rare class look frequent; ``v`` lets
a hard task cost a good worker more than a poor one; and averaging over abilities instead of believing one estimate is
what keeps a rare class, for which every worker has seen few tasks, from being overrated. Each draw is one way in which
the crowd may have come about. Intervals, expected recall and the promise of a recall target all count draws.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, sqrt
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations, smallest_unsigned
from rarevote.errors import InputError, ParameterError
from rarevote.numerics import TINY, first_of_best, normalise_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Abilities = Literal["refitted", "held"]

#: Share of intervals that should contain the truth.
COVERAGE = 0.95

_N_DRAWS = 400
# Autocorrelation of the prevalence dies out after about 50 sweeps on rare classes, so fewer would be noise.
_MOST_SWEEPS, _FEWEST_SWEEPS = 3000, 400
_ANNOTATION_VISITS = 200_000_000
_MOST_ANNOTATIONS = 1_000_000
_SETTLING = 0.25  # share of the sweeps before the first draw counts
_ROUNDS_PER_SWEEP = 2  # of classes, prevalence and hardness given abilities: cheap, and they mix slowest
_NEWTON_STEPS = 5

# Priors of the sampler, on the logit scale of an ability.
_MEAN_VARIANCE = 2.0
_SPREAD_SHAPE, _SPREAD_SCALE = 1.0, 0.25
_HARD_MEAN = np.array([-0.8, 1.0])  # u and v: without evidence a hard task costs everybody the same
_HARD_VARIANCE = np.array([0.25, 0.09])
_LEVEL_MASS = 2.0
_CLASS_MASS = 1.0
# Proposals from Student's t have heavier tails than the target, as an independence sampler needs.
_DEGREES = 8.0


@dataclass(frozen=True, eq=False)
class CalibratedPosterior:
    """Probabilities to decide with, beside the posterior they came from.

    Attributes:
        classes: names of the classes, (K).
        method: the method's own posterior, (n, K); what ``probas_`` shows.
        posterior: calibrated probability of every class, (n, K); known tasks have 0 and 1.
        score: the same from the votes alone, known tasks not imposed, (n, K).
        prevalence: expected share of tasks of each class, (K).
        low: lower end of the 95 % interval of each share, (K).
        high: upper end, (K).
        how: how the shares were obtained, in words.
        gold: known class of each task or -1, (n).
        draws: class of each of ``drawn_tasks`` in every draw, (n_draws, n_drawn); of size 0 without sampling.
        drawn_tasks: which tasks the draws are about, ascending, (n_drawn).
        abilities: mean ability of every worker per class on the logit scale, (m, K); of size 0 without sampling.
    """

    classes: NDArray[Any]
    method: FloatArray
    posterior: FloatArray
    score: FloatArray
    prevalence: FloatArray
    low: FloatArray
    high: FloatArray
    how: str
    gold: NDArray[np.int32]
    draws: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    drawn_tasks: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    abilities: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.posterior)

    @property
    def counts(self) -> FloatArray:
        """Expected number of tasks of each class, (K)."""
        return self.prevalence * self.n_tasks


def calibrated(
    posterior: FloatArray,
    prior: FloatArray | None = None,
    *,
    prevalence: str | Mapping[Any, float] | FloatArray = "estimate",
    gold: NDArray[np.int32] | None = None,
    classes: NDArray[Any] | None = None,
    annotations: Annotations | None = None,
    abilities: Abilities | None = None,
    n_sweeps: int | None = None,
    random_state: int = 0,
) -> CalibratedPosterior:
    """Turn a method's posterior into probabilities under the right class prior.

    Args:
        posterior: the method's posterior, (n_tasks, n_classes).
        prior: the class prior that it was computed with, (n_classes); uniform if not given.
        prevalence: "estimate" from the crowd; "gold" for the shares among the known tasks, which must then be a random
            sample of all tasks; or the shares themselves, by class or in the order of the classes.
        gold: known class of each task or -1, (n_tasks); these tasks are no longer in doubt.
        classes: names of the classes; their numbers if not given.
        annotations: the votes behind the posterior; needed for "refitted".
        abilities: "refitted" explains the votes anew (default where ``annotations`` are given), "held" keeps what the
            method fitted and moves the class prior alone (see the module for what that costs).
        n_sweeps: sweeps of the sampler; by default 3000, fewer for large crowds.
        random_state: seed of the sampler.

    Raises:
        ParameterError: a prevalence or a mode that makes no sense.
        InputError: arrays that do not fit together.

    Example:
        >>> votes = np.array([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
        >>> calibrated(votes, prevalence=[0.9, 0.1]).posterior.round(2).tolist()
        [[0.99, 0.01], [0.99, 0.01], [0.99, 0.01], [0.69, 0.31]]
    """
    posterior = np.asarray(posterior, dtype=np.float64)
    n, K = posterior.shape
    names = annotations.classes if annotations is not None else np.arange(K) if classes is None else np.asarray(classes)
    known = np.full(n, -1, dtype=np.int32) if gold is None or not len(gold) else np.asarray(gold, dtype=np.int32)
    if len(names) != K or known.shape != (n,) or (known >= K).any():
        raise InputError(f"{len(names)} classes and {known.size} gold entries do not fit a posterior of shape {n, K}")
    if annotations is not None and annotations.n_tasks != n:
        raise InputError(f"the posterior has {n:,} tasks, the annotations {annotations.n_tasks:,}")
    mode = abilities or ("held" if annotations is None else "refitted")
    if mode not in ("refitted", "held") or (mode == "refitted" and annotations is None):
        raise ParameterError(f'abilities must be "refitted" (with annotations) or "held", got {abilities!r}')
    counts = np.bincount(known[known >= 0], minlength=K).astype(np.float64)
    fixed, words = _fixed_prevalence(prevalence, names, counts)
    if n == 0 or K < 2:
        return _nothing_to_do(names, posterior, known)
    if mode == "held" or annotations is None:
        given = np.full(K, 1.0 / K) if prior is None else np.asarray(prior, dtype=np.float64)
        return _held(names, posterior, given, fixed, words, known, counts if prevalence == "gold" else None)
    if annotations.n_annotations <= _MOST_ANNOTATIONS:
        sample = np.arange(n)
    else:
        share = _MOST_ANNOTATIONS / annotations.n_annotations
        rng = np.random.default_rng(random_state)
        sample = np.sort(rng.choice(n, max(int(share * n), 1), replace=False))
        words += f", sampled on {sample.size:,} tasks drawn at random"
    sampler = _Sampler(annotations, sample, known, fixed, counts if prevalence == "gold" else None, random_state)
    return sampler.run(names, posterior, known, words, n_sweeps)


def reweighted(posterior: FloatArray, prior: FloatArray, prevalence: FloatArray) -> FloatArray:
    """The posterior under another class prior, ``q'_ik ~ q_ik prevalence_k / prior_k``."""
    return normalise_rows(posterior * (np.asarray(prevalence) / np.maximum(prior, TINY)))


# --------------------------------------------------------------------------------------------------------------------
# prevalence as given


def _fixed_prevalence(
    prevalence: str | Mapping[Any, float] | FloatArray, names: NDArray[Any], counts: FloatArray
) -> tuple[FloatArray | None, str]:
    """Given shares (None if they are to be estimated), and how they come about in words."""
    K, n_gold = len(names), int(counts.sum())
    if isinstance(prevalence, str):
        if prevalence == "estimate":
            return None, "estimated from the votes" + (f" and {n_gold:,} known tasks" if n_gold else "")
        if prevalence != "gold":
            raise ParameterError(f'prevalence must be "estimate", "gold" or shares of the classes, got {prevalence!r}')
        if not n_gold:
            raise ParameterError("prevalence from gold, but no task has a known label")
        return None, f"from {n_gold:,} known tasks, taken as a random sample of all tasks"
    if isinstance(prevalence, Mapping):
        by_text = {str(name): value for name, value in prevalence.items()}
        labels = [str(name) for name in names.tolist()]
        unknown = [name for name in by_text if name not in labels]
        if unknown:
            raise ParameterError(f"prevalence names {unknown[0]!r}, which is no class ({', '.join(labels)})")
        missing = [name for name in labels if name not in by_text]
        if len(missing) > 1:
            raise ParameterError(f"prevalence lacks the classes {', '.join(missing)}: at most one may be left out")
        if missing:
            by_text[missing[0]] = 1.0 - sum(by_text.values())
        prevalence = np.array([by_text[name] for name in labels], dtype=np.float64)
    shares = np.asarray(prevalence, dtype=np.float64)
    if shares.shape != (K,):
        raise ParameterError(f"prevalence must have {K} shares, one per class, got {shares.size}")
    if not ((shares > 0) & (shares < 1)).all() or abs(shares.sum() - 1.0) > 1e-6:
        raise ParameterError(f"prevalence must be shares between 0 and 1 that sum to 1, got {shares.tolist()}")
    return shares, "given"


def _nothing_to_do(names: NDArray[Any], posterior: FloatArray, known: NDArray[np.int32]) -> CalibratedPosterior:
    share = np.ones(len(names)) if len(names) == 1 else np.full(len(names), np.nan)
    return CalibratedPosterior(names, posterior, posterior, posterior, share, share, share, "nothing to estimate", known)


def _imposed(posterior: FloatArray, known: NDArray[np.int32]) -> FloatArray:
    """The posterior with known tasks at 0 and 1."""
    rows = np.flatnonzero(known >= 0)
    if not rows.size:
        return posterior
    result = posterior.copy()
    result[rows] = np.eye(posterior.shape[1])[known[rows]]
    return result


# --------------------------------------------------------------------------------------------------------------------
# abilities held


def _held(
    names: NDArray[Any],
    posterior: FloatArray,
    prior: FloatArray,
    fixed: FloatArray | None,
    words: str,
    known: NDArray[np.int32],
    gold_counts: FloatArray | None,
) -> CalibratedPosterior:
    """EM on the class prior alone, with an interval from the information that the tasks carry about each share."""
    if gold_counts is not None:
        fixed = (gold_counts + 0.5) / (gold_counts.sum() + 0.5 * len(names))
    share = posterior.mean(axis=0) if fixed is None else fixed
    for _ in range(10_000 if fixed is None else 1):
        score = reweighted(posterior, prior, share)
        result = _imposed(score, known)
        updated = np.maximum(result.mean(axis=0), TINY) if fixed is None else share
        moved, share = float(np.abs(updated - share).max()), updated
        if moved < 1e-10:
            break
    z = NormalDist().inv_cdf((1.0 + COVERAGE) / 2)
    if gold_counts is not None:
        error = np.sqrt(share * (1 - share) / gold_counts.sum())
    else:
        # A share s against the rest has the score (q - s) / (s (1 - s)) per task; its square sums to the information.
        information = ((result - share) ** 2).sum(axis=0) / np.maximum(share * (1 - share), TINY) ** 2
        error = 1.0 / np.sqrt(np.maximum(information, TINY))
    if fixed is not None and gold_counts is None:
        error = np.zeros_like(share)
    low, high = np.clip(share - z * error, 0.0, 1.0), np.clip(share + z * error, 0.0, 1.0)
    return CalibratedPosterior(
        names, posterior, result, score, share, low, high, f"{words}, abilities held as fitted", known
    )


# --------------------------------------------------------------------------------------------------------------------
# abilities refitted


class _Sampler:
    """Gibbs sampling of classes, difficulty levels, abilities and class shares. A cell is a (class, level)."""

    def __init__(
        self,
        annotations: Annotations,
        sample: IntArray,
        known: NDArray[np.int32],
        fixed: FloatArray | None,
        gold_counts: FloatArray | None,
        seed: int,
    ) -> None:
        K = annotations.n_classes
        self.n_workers, self.n_classes, self.fixed, self.gold_counts = annotations.n_workers, K, fixed, gold_counts
        self.rng = np.random.default_rng([seed, 1])
        self.annotations, self.sample = annotations, sample
        self.code, self.begin, self.task = _votes_of(annotations, sample)
        votes = annotations.votes()[sample]
        self.gold_rows = np.flatnonzero(known[sample] >= 0)
        start = _imposed(normalise_rows(votes), known[sample])
        self.allowed = np.repeat(start[self.gold_rows] > 0.5, 2, axis=1)
        self.classes = fixed if fixed is not None else np.maximum(start.mean(axis=0), TINY)
        self.hard_share, self.hard = 0.3, _HARD_MEAN.copy()
        right, total = self._counts(2 * first_of_best(start))
        accuracy = (right.sum(2) + 1.5) / (total.sum(2) + 2.0)
        self.ability = np.log(accuracy / (1.0 - np.minimum(accuracy, 0.99)))
        self.mean, self.spread = self.ability.mean(axis=0), np.full(K, 1.0)

    # -- one sweep ---------------------------------------------------------------------------------------------------

    def _log_odds(self, ability: FloatArray) -> FloatArray:
        """Log odds of a right vote, (..., 2): on an easy and on a hard task."""
        return np.stack([ability, self.hard[0] + self.hard[1] * ability], axis=-1)

    def likelihood(self, code: IntArray, begin: IntArray) -> FloatArray:
        """Likelihood of each task's votes in each cell, up to a factor per task, (n, 2 K)."""
        K = self.n_classes
        log_odds = self._log_odds(self.ability)
        right = -np.logaddexp(0.0, -log_odds)
        wrong = right - log_odds - log(max(K - 1, 1))
        table = np.repeat(wrong[:, None], K, axis=1)
        table[:, range(K), range(K)] = right
        logs = np.add.reduceat(table.reshape(-1, 2 * K).take(code, axis=0), begin, axis=0)
        logs -= logs.max(axis=1, keepdims=True)
        return np.asarray(np.exp(np.maximum(logs, -600.0)))

    def _cells(self) -> FloatArray:
        """Prior probability of each cell, (2 K)."""
        return np.outer(self.classes, [1.0 - self.hard_share, self.hard_share]).ravel()

    def _counts(self, cell: IntArray) -> tuple[FloatArray, FloatArray]:
        """Right votes and all votes per worker, class and level, (m, K, 2), given every task's cell."""
        K = self.n_classes
        seen = np.bincount(self.code * (2 * K) + cell[self.task], minlength=self.n_workers * K * 2 * K)
        seen = seen.reshape(self.n_workers, K, K, 2).astype(np.float64)
        return seen[:, range(K), range(K)], seen.sum(axis=1)

    def sweep(self) -> tuple[FloatArray, IntArray]:
        """One draw of everything; returns the tasks' class probabilities given the rest, and their classes."""
        K, rng = self.n_classes, self.rng
        likelihood = self.likelihood(self.code, self.begin)
        free = likelihood[self.gold_rows]
        likelihood[self.gold_rows] *= self.allowed
        for _ in range(_ROUNDS_PER_SWEEP):
            weight = likelihood * self._cells()
            reached = np.cumsum(weight, axis=1)
            cell = (reached < (rng.random(len(reached)) * reached[:, -1])[:, None]).sum(axis=1)
            by_class, by_level = np.bincount(cell, minlength=2 * K).reshape(K, 2).sum(1), np.bincount(cell % 2)
            if self.fixed is None:
                # With the shares taken from gold, the other tasks do not speak on them.
                mass = by_class if self.gold_counts is None else self.gold_counts
                self.classes = np.maximum(rng.dirichlet(mass + _CLASS_MASS), TINY)
            n_hard = by_level[1] if by_level.size > 1 else 0
            self.hard_share = float(rng.beta(n_hard + _LEVEL_MASS, by_level[0] + _LEVEL_MASS))
        weight[self.gold_rows] = free * self._cells()
        right, total = self._counts(cell)
        self._draw_abilities(right, total)
        self._draw_hard(right[:, :, 1].ravel(), total[:, :, 1].ravel())
        m = self.n_workers
        variance = 1.0 / (m / self.spread**2 + 1.0 / _MEAN_VARIANCE)
        self.mean = variance * self.ability.sum(0) / self.spread**2 + np.sqrt(variance) * rng.standard_normal(K)
        scale = _SPREAD_SCALE + ((self.ability - self.mean) ** 2).sum(axis=0) / 2
        self.spread = np.sqrt(scale / rng.gamma(_SPREAD_SHAPE + m / 2, size=K))
        return normalise_rows(weight.reshape(-1, K, 2).sum(axis=2)), cell // 2

    def _draw_abilities(self, right: FloatArray, total: FloatArray) -> None:
        slope = np.array([1.0, self.hard[1]])

        def log_density(ability: FloatArray) -> FloatArray:
            log_odds = self._log_odds(ability)
            fit = (right * log_odds - total * np.logaddexp(0.0, log_odds)).sum(axis=2)
            return np.asarray(fit - 0.5 * ((ability - self.mean) / self.spread) ** 2)

        # The proposal must not depend on where the chain stands, so its mode is sought from the mean.
        mode = np.broadcast_to(self.mean, self.ability.shape)
        for _ in range(_NEWTON_STEPS):
            p = _sigmoid(self._log_odds(mode))
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
            p = _sigmoid(mode @ design)
            gradient = design @ (right - total * p) - (mode - _HARD_MEAN) / _HARD_VARIANCE
            curvature = (design * (total * p * (1 - p))) @ design.T + np.diag(1.0 / _HARD_VARIANCE)
            mode = mode + np.clip(np.linalg.solve(curvature, gradient), -1.0, 1.0)
        root = np.linalg.cholesky(np.linalg.inv(curvature))
        step = self.rng.standard_normal(2) * sqrt(_DEGREES / self.rng.chisquare(_DEGREES))
        proposed = mode + root @ step
        now = np.linalg.solve(root, self.hard - mode)
        gain = log_density(proposed) - log_density(self.hard) + _log_t(now @ now, 2) - _log_t(step @ step, 2)
        if log(self.rng.random()) < gain:
            self.hard = proposed

    # -- all sweeps --------------------------------------------------------------------------------------------------

    def run(
        self,
        names: NDArray[Any],
        posterior: FloatArray,
        known: NDArray[np.int32],
        words: str,
        n_sweeps: int | None,
    ) -> CalibratedPosterior:
        """Sweep, and sum up what was drawn."""
        if n_sweeps is None:
            n_sweeps = int(np.clip(_ANNOTATION_VISITS // self.code.size, _FEWEST_SWEEPS, _MOST_SWEEPS))
        settling = int(_SETTLING * n_sweeps)
        n_draws = min(_N_DRAWS, n_sweeps - settling)
        kept = set(np.linspace(settling, n_sweeps - 1, n_draws).astype(int).tolist())
        draws = np.empty((n_draws, len(self.sample)), dtype=smallest_unsigned(self.n_classes))
        score, ability = np.zeros((len(self.sample), self.n_classes)), np.zeros_like(self.ability)
        everywhere = np.zeros_like(posterior) if len(self.sample) < len(posterior) else score
        votes = _votes_of(self.annotations, np.arange(len(posterior)))[:2] if everywhere is not score else None
        n_kept = 0
        for number in range(n_sweeps):
            probability, drawn = self.sweep()
            if number < settling:
                continue
            score += probability / (n_sweeps - settling)
            ability += self.ability / (n_sweeps - settling)
            if number in kept:
                draws[n_kept] = drawn
                n_kept += 1
                if votes is not None and n_kept % 20 == 0:
                    weight = (self.likelihood(*votes) * self._cells()).reshape(-1, self.n_classes, 2).sum(axis=2)
                    everywhere += normalise_rows(weight)
        score = normalise_rows(everywhere)
        result = _imposed(score, known)
        shares = np.stack([(draws == k).mean(axis=1) for k in range(self.n_classes)], axis=1)
        tail = (1.0 - COVERAGE) / 2
        low, high = np.quantile(shares, [tail, 1.0 - tail], axis=0)
        return CalibratedPosterior(
            names, posterior, result, score, result.mean(axis=0), low, high, words, known, draws, self.sample, ability
        )


def _votes_of(annotations: Annotations, tasks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Votes of these tasks as ``worker K + label``, where each task begins, and the position of each vote's task."""
    size = np.diff(annotations.task_ptr)[tasks]
    begin = np.cumsum(size) - size
    task = np.repeat(np.arange(len(tasks)), size)
    vote = np.arange(int(size.sum())) - begin[task] + annotations.task_ptr[tasks][task]
    code = annotations.worker[vote].astype(np.int64) * annotations.n_classes + annotations.label[vote]
    return code, begin, task


def _sigmoid(log_odds: FloatArray) -> FloatArray:
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))


def _log_t(squared: Any, dimension: int) -> Any:
    """Log density of Student's t at a squared distance from its centre, up to a constant."""
    return -0.5 * (_DEGREES + dimension) * np.log1p(squared / _DEGREES)
