"""The cross-fitted ridge: scores of items by models that never saw the items of their fold.

Over the items of all other folds, multinomial logistic regression on soft labels ``q``, with a ridge on the slopes::

    min over (B, b):  - sum_i sum_k q_ik log softmax(x_i B + b)_k + d / (2 tau2) |B|^2

which is convex, with one optimum. Boehning's bound ``1/2 S`` of the Hessian, ``S = sum x x'``, is decomposed once per
fold; accelerated steps with it need a few passes over the data. All folds share each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.features.columns import blocks

_LEAST = 1e-12  # of a mean, before its logarithm
_INTERCEPT_STEPS = 3


def softmax(scores: NDArray[Any]) -> NDArray[Any]:
    """Probabilities over the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights)


@dataclass(eq=False)
class CrossFit:
    """The models of all folds during optimisation.

    Attributes:
        block: returns the columns of some items, (rows, p).
        fold: fold of each item, (n).
        trains: whether models learn from each item, (n).
        soft: soft labels, (n, K).
        penalty: d, the number of columns for the ridge.
        n_folds: F.
        width: p.
        slopes: B of each fold, (F, p, K).
        intercepts: b of each fold, (F, K).
        n_steps: number of steps of the last call of :meth:`solve`.
    """

    block: Callable[[slice], NDArray[Any]]
    fold: IntArray
    trains: NDArray[np.bool_]
    soft: FloatArray
    penalty: int
    n_folds: int
    width: int
    slopes: FloatArray = field(init=False)
    intercepts: FloatArray = field(init=False)
    n_steps: int = 0

    def __post_init__(self) -> None:
        n, K = self.soft.shape
        F, p = self.n_folds, self.width
        self.slopes = np.zeros((F, p, K))
        self._scores = np.zeros((n, F, K), dtype=self.block(slice(0, 1)).dtype)
        self._mask = self.trains[:, None] & (self.fold[:, None] != np.arange(F))
        self._counts = np.maximum(self._mask.sum(axis=0), 1)[:, None]
        self._mean_soft = np.maximum((self._mask.T.astype(np.float64) @ self.soft) / self._counts, _LEAST)
        self.intercepts = np.log(self._mean_soft)
        self._eigen = self._decomposed()

    def _decomposed(self) -> list[tuple[FloatArray, FloatArray]]:
        own = np.zeros((self.n_folds, self.width, self.width))
        for part in blocks(len(self.fold)):
            x, trains, fold = self.block(part), self.trains[part], self.fold[part]
            for f in range(self.n_folds):
                mine = x[trains & (fold == f)]
                own[f] += mine.T @ mine
        total = own.sum(axis=0)
        return [np.linalg.eigh(total - one) for one in own]

    def solve(self, tau2: float, steps: int, tol: float, after_step: Callable[[float], None] | None = None) -> None:
        """Move from the current models to the optimum for ``tau2``.

        Args:
            tau2: variance of the logit that features can cause.
            steps: the largest number of steps.
            tol: change of a score at which a fold is at its optimum.
            after_step: called after each step with the largest change of a score.
        """
        F, ridge = self.n_folds, self.penalty / tau2
        point, momentum, t = self.slopes.copy(), np.zeros(F), np.ones(F)
        last_scores = self._scores.copy()
        active = np.ones(F, dtype=bool)
        self.n_steps = 0
        while active.any() and self.n_steps < steps:
            self.n_steps += 1
            gradient = self._gradient(last_scores, momentum) - ridge * point
            slopes = self.slopes.copy()
            for f in np.flatnonzero(active):
                values, vectors = self._eigen[f]
                scale = 1.0 / (np.maximum(values, 0.0) / 2.0 + ridge)
                slopes[f] = point[f] + vectors @ (scale[:, None] * (vectors.T @ gradient[f]))
            last_scores, before = self._scores, self.intercepts
            self._scores = self._scored(slopes)
            self.intercepts = np.where(active[:, None], self._balanced(before), before)
            moved = self._largest_change(last_scores, before)
            turned = ((slopes - self.slopes) * (point - slopes)).sum(axis=(1, 2)) > 0
            following = (1.0 + np.sqrt(1.0 + 4.0 * t**2)) / 2.0
            momentum = np.where(turned, 0.0, (t - 1.0) / following)
            t = np.where(turned, 1.0, following)
            point = slopes + momentum[:, None, None] * (slopes - self.slopes)
            self.slopes = slopes
            active &= moved >= tol
            if after_step is not None:
                after_step(float(moved.max()))

    def _gradient(self, last_scores: NDArray[Any], momentum: FloatArray) -> FloatArray:
        """``X' (q - softmax(X Y + b))`` of each fold, (F, p, K), where Y is ahead of B by the momentum."""
        F, p, K = self.slopes.shape
        found = np.zeros((p, F * K))
        ahead = momentum[:, None].astype(self._scores.dtype)
        intercepts = self.intercepts.astype(self._scores.dtype)
        for part in blocks(len(self.fold)):
            here = self._scores[part]
            scores = here + ahead * (here - last_scores[part]) + intercepts
            rest = (self.soft[part, None] - softmax(scores)) * self._mask[part][:, :, None]
            found += self.block(part).T @ rest.reshape(-1, F * K).astype(here.dtype)
        return found.reshape(p, F, K).transpose(1, 0, 2)

    def _scored(self, slopes: FloatArray) -> NDArray[Any]:
        F, p, K = slopes.shape
        found = np.empty_like(self._scores)
        together = slopes.transpose(1, 0, 2).reshape(p, F * K).astype(found.dtype)
        for part in blocks(len(self.fold)):
            found[part] = (self.block(part) @ together).reshape(-1, F, K)
        return found

    def _balanced(self, intercepts: FloatArray) -> FloatArray:
        """Intercepts whose mean probabilities are nearer to those of the soft labels."""
        for _ in range(_INTERCEPT_STEPS):
            mass = np.zeros_like(intercepts)
            for part in blocks(len(self.fold)):
                shares = softmax(self._scores[part] + intercepts.astype(self._scores.dtype))
                mass += np.einsum("nfk,nf->fk", shares, self._mask[part], dtype=np.float64)
            intercepts = intercepts + np.log(self._mean_soft / np.maximum(mass / self._counts, _LEAST))
        return intercepts

    def _largest_change(self, last_scores: NDArray[Any], before: FloatArray) -> FloatArray:
        """The largest change of ``X B + b`` over the training items of each fold, (F)."""
        largest = np.zeros(self.n_folds)
        for part in blocks(len(self.fold)):
            change = np.abs(self._scores[part] - last_scores[part] + (self.intercepts - before)).max(axis=2)
            largest = np.maximum(largest, (change * self._mask[part]).max(axis=0, initial=0.0))
        return largest

    @property
    def scores(self) -> FloatArray:
        """``eta`` of every item by the model that did not see its fold, centred over the classes, (n, K)."""
        own = self._scores[np.arange(len(self.fold)), self.fold].astype(np.float64)
        return np.asarray(own - own.mean(axis=1, keepdims=True))


def folds_of(codes: Sequence[int] | NDArray[Any], n_folds: int) -> IntArray:
    """The fold of each item from the CRC-32 of its id or its group: it does not depend on the order of a file."""
    return np.asarray(codes, dtype=np.int64) % n_folds
