"""Votes as a fitted model would cast them, on the same items by the same people: what a check of fit is made of.

For every item a class is drawn from its posterior, and what else the model knows of the item (its difficulty) from its
distribution given the votes; then every person who voted on the item votes again by the fitted chances::

    z_i ~ q_i,    P(worker r says l on item i) = a if l = z_i, else (1 - a) e_l

with ``a`` the chance of being right and ``e`` the habit of erring that the method fitted: Dawid–Skene's confusions,
``sigmoid(alpha_rk - s x)`` and errors of its own for Anchored Rasch, ``sigmoid(alpha_rk - beta_ik)`` and uniform errors
for CC-Rasch. Of a large crowd some items drawn at random are enough: what is looked for are differences of percents.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.methods.base import Estimator
from rarevote.methods.evidence import recognised

# Votes that are cast again, and numbers per vote and class that are held at a time.
_MAX_VOTES = 400_000
_MAX_CELLS = 8_000_000


@dataclass(frozen=True, eq=False)
class SomeVotes:
    """The votes on some tasks of a crowd.

    Attributes:
        tasks: numbers of these tasks in the crowd, (n).
        task: which of them each vote is on, ascending, (v).
        worker: of each vote, (v).
        label: of each vote, (v).
        n_classes: of the crowd.
    """

    tasks: IntArray
    task: IntArray
    worker: IntArray
    label: IntArray
    n_classes: int

    @classmethod
    def of(cls, crowd: Annotations) -> SomeVotes:
        """All votes, or those on tasks drawn at random where there are too many."""
        size = np.diff(crowd.task_ptr)
        most = min(_MAX_VOTES, _MAX_CELLS // max(crowd.n_classes, 1))
        tasks = np.arange(crowd.n_tasks)
        if crowd.n_annotations > most:
            drawn = np.random.default_rng(0).permutation(crowd.n_tasks)
            n_kept = max(int(np.searchsorted(np.cumsum(size[drawn]), most, side="right")), 1)
            tasks = np.sort(drawn[:n_kept])
        task = np.repeat(np.arange(len(tasks)), size[tasks])
        begin = np.cumsum(size[tasks]) - size[tasks]
        place = np.arange(len(task)) + np.repeat(crowd.task_ptr[tasks] - begin, size[tasks])
        worker, label = crowd.worker[place].astype(np.int64), crowd.label[place].astype(np.int64)
        return cls(tasks, task, worker, label, crowd.n_classes)

    @cached_property
    def size(self) -> IntArray:
        """Votes on each task, (n)."""
        return np.bincount(self.task, minlength=len(self.tasks))

    def counts(self, label: IntArray) -> IntArray:
        """Votes per task and class, (n, K), where the votes say ``label``."""
        n, K = len(self.tasks), self.n_classes
        return np.bincount(self.task * K + label, minlength=n * K).reshape(n, K)


class VoteModel:
    """How the people of a fit vote; each method that states chances has a class below.

    Args:
        votes: whose votes are cast again.
        posterior: class probabilities of the tasks of ``votes``, (n, K).
    """

    def __init__(self, votes: SomeVotes, posterior: FloatArray) -> None:
        self.votes = votes
        total = posterior.sum(axis=1, keepdims=True)
        self._below = np.cumsum(posterior / np.where(total > 0, total, 1.0), axis=1)

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Labels of all votes, cast again, (v)."""
        truth = _drawn(self._below, rng)
        z = truth[self.votes.task]
        label = z.copy()
        wrong = np.flatnonzero(rng.random(len(z)) >= self._right(truth, rng))
        label[wrong] = self._instead(wrong, z[wrong], rng)
        return label

    def _right(self, truth: IntArray, rng: np.random.Generator) -> FloatArray:
        """The chance that each vote is right, (v), where the tasks have these classes, (n)."""
        raise NotImplementedError

    def _instead(self, wrong: IntArray, z: IntArray, rng: np.random.Generator) -> IntArray:
        """What the votes of these numbers say, that are wrong about a task of class z; uniform over the others."""
        K = self.votes.n_classes
        if K < 2:
            return z
        return np.asarray((z + 1 + rng.integers(K - 1, size=len(z))) % K)


def _drawn(below: FloatArray, rng: np.random.Generator) -> IntArray:
    """A column of each row, by cumulative probabilities, (n)."""
    u = rng.random((len(below), 1)) * below[:, -1:]
    return np.asarray((u >= below).sum(axis=1).clip(max=below.shape[1] - 1))


class _Confusions(VoteModel):
    """Dawid–Skene and one coin: a table per worker, in which a label that they never used has no chance."""

    def __init__(self, votes: SomeVotes, posterior: FloatArray, log_confusion: FloatArray, used: NDArray[Any]) -> None:
        super().__init__(votes, posterior)
        self._log_confusion, self._used = log_confusion, used
        own = np.arange(votes.n_classes)
        total = np.zeros((len(log_confusion), votes.n_classes))
        for label in own:  # no second table of (m, K, K)
            total += np.exp(log_confusion[:, label]) * used[:, [label]]
        right = np.exp(log_confusion[:, own, own]) * used
        self._chance_right = np.divide(right, total, out=np.zeros_like(total), where=total > 0)

    def _right(self, truth: IntArray, rng: np.random.Generator) -> FloatArray:
        del rng
        return np.asarray(self._chance_right[self.votes.worker, truth[self.votes.task]])

    def _instead(self, wrong: IntArray, z: IntArray, rng: np.random.Generator) -> IntArray:
        if self.votes.n_classes <= 2:
            return super()._instead(wrong, z, rng)
        worker = self.votes.worker[wrong]
        row = np.exp(self._log_confusion[worker, :, z]) * self._used[worker]
        np.put_along_axis(row, z[:, None], 0.0, axis=1)
        return _drawn(np.cumsum(row, axis=1), rng)


class _Anchored(VoteModel):
    """Anchored Rasch: an ability per class, a habit of erring, and a difficulty whose node is drawn given the votes."""

    def __init__(
        self, votes: SomeVotes, posterior: FloatArray, ability: FloatArray, errors: FloatArray, nodes: Any, weights: Any
    ) -> None:
        super().__init__(votes, posterior)
        self._ability, self._errors, self._nodes = ability, errors, nodes
        n, K = posterior.shape
        log_odds = ability[votes.worker]  # (v, K)
        is_right = votes.label[:, None] == np.arange(K)
        begin = np.cumsum(votes.size) - votes.size
        joint = np.empty((n, K, len(nodes)))
        for g, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
            # The habit of erring is the same at every node, and so tells nothing about the difficulty.
            of_vote = -np.logaddexp(0.0, np.where(is_right, node - log_odds, log_odds - node))
            joint[:, :, g] = np.log(weight) + np.add.reduceat(of_vote, begin, axis=0)
        joint -= joint.max(axis=2, keepdims=True)
        self._below_node = np.cumsum(np.exp(joint), axis=2)

    def _right(self, truth: IntArray, rng: np.random.Generator) -> FloatArray:
        votes = self.votes
        node = self._nodes[_drawn(self._below_node[np.arange(len(truth)), truth], rng)]
        return recognised(self._ability[votes.worker, truth[votes.task]] - node[votes.task])

    def _instead(self, wrong: IntArray, z: IntArray, rng: np.random.Generator) -> IntArray:
        if self.votes.n_classes <= 2:
            return super()._instead(wrong, z, rng)
        return _drawn(np.cumsum(self._errors[self.votes.worker[wrong], :, z], axis=1), rng)


class _Rasch(VoteModel):
    """CC-Rasch: an ability per class, and a difficulty drawn around the fitted one (Laplace's approximation)."""

    def __init__(
        self, votes: SomeVotes, posterior: FloatArray, log_odds: FloatArray, difficulty: FloatArray, spread: Any
    ) -> None:
        super().__init__(votes, posterior)
        K = votes.n_classes
        self._log_odds = np.broadcast_to(log_odds, (len(log_odds), K))
        self._difficulty = np.broadcast_to(difficulty, (len(votes.tasks), K))
        self._is_shared = difficulty.shape[1] == 1
        self._deviation: FloatArray | None = None
        if spread is not None:
            right = recognised(self._log_odds[votes.worker] - self._difficulty[votes.task])
            told = right * (1.0 - right)
            begin = np.cumsum(votes.size) - votes.size
            information = posterior * np.add.reduceat(told, begin, axis=0)
            if self._is_shared:
                information = np.broadcast_to(information.sum(axis=1, keepdims=True), information.shape)
            self._deviation = 1.0 / np.sqrt(1.0 / np.asarray(spread) ** 2 + information)

    def _right(self, truth: IntArray, rng: np.random.Generator) -> FloatArray:
        votes, rows = self.votes, np.arange(len(truth))
        beta = self._difficulty[rows, truth]
        if self._deviation is not None:
            beta = beta + self._deviation[rows, truth] * rng.standard_normal(len(truth))
        return recognised(self._log_odds[votes.worker, truth[votes.task]] - beta[votes.task])


def vote_model(estimator: Estimator, votes: SomeVotes) -> VoteModel | None:
    """How the people of this fit vote; None for a method that states no chances."""
    if not estimator.capabilities.replicate:
        return None
    from rarevote.methods.anchored_rasch.estimator import AnchoredRasch
    from rarevote.methods.cc_rasch.estimator import CCRasch
    from rarevote.methods.dawid_skene.estimator import ConfusionEstimator
    from rarevote.methods.parameters import per_class

    known = estimator.fitted_parameters
    posterior = np.asarray(estimator.posterior_[votes.tasks], dtype=np.float64)
    if isinstance(estimator, ConfusionEstimator):
        return _Confusions(votes, posterior, known["log_confusion"], known["worker_votes"] > 0)
    if isinstance(estimator, AnchoredRasch):
        nodes, weights = np.polynomial.hermite_e.hermegauss(estimator.n_nodes)
        spread = 1.0 / (known["prior"] > 0).sum() if estimator.spread is None else float(estimator.spread)
        return _Anchored(
            votes, posterior, known["ability"], known["errors"], spread * nodes, weights / weights.sum()
        )  # fmt: skip
    assert isinstance(estimator, CCRasch), "a capability without a model of votes"
    difficulty = np.asarray(known["difficulty_deviation"][votes.tasks], dtype=np.float64)
    spread = None
    if estimator.difficulty is not None:
        spread = per_class("sigma_beta", estimator.sigma_beta, estimator.classes_)
    return _Rasch(votes, posterior, known["intercept"] + known["ability_deviation"], difficulty, spread)
