"""A peer rebuilt from its description: Bayesian combination of votes with SciPy's sparse matrices.

``ibcc`` of truth-inference-at-scale keeps the votes as sparse one-hot matrices, so that scores of items and confusion
counts of annotators are each one product. These are our own lines, not its code: votes in one matrix of items by
(annotator, label), Dirichlet priors, expected logarithms by the digamma function.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import digamma

Floats = NDArray[np.float64]


class Combined(NamedTuple):
    """The posterior, (n, K), and how many iterations it took."""

    posterior: Floats
    n_iter: int


def one_hot(task: NDArray[Any], worker: NDArray[Any], label: NDArray[Any], n_classes: int) -> csr_array:
    """Votes as a matrix of tasks by (worker, label)."""
    column = worker * n_classes + label
    shape = (int(task.max()) + 1, (int(worker.max()) + 1) * n_classes)
    return csr_array((np.ones(task.size), (task, column)), shape=shape)


def combine(
    task: NDArray[Any],
    worker: NDArray[Any],
    label: NDArray[Any],
    n_classes: int,
    *,
    n_iter: int = 100,
    tol: float = 1e-4,
    right: float = 2.0,
) -> Combined:
    """Fit until no probability changes by ``tol``.

    Args:
        task: number of the task of every vote.
        worker: likewise.
        label: likewise.
        n_classes: K.
        n_iter: the most iterations.
        tol: when to stop.
        right: pseudo-votes on the diagonal of every worker's confusion matrix, beside one in each cell.
    """
    votes = one_hot(task, worker, label, n_classes)
    by_worker = votes.T.tocsr()
    n_workers = votes.shape[1] // n_classes
    shares = votes @ np.tile(np.eye(n_classes), (n_workers, 1))
    q = shares / shares.sum(axis=1, keepdims=True)
    prior = 1.0 + (right - 1.0) * np.eye(n_classes)
    done, change = 0, np.inf
    while done < n_iter and change >= tol:
        done += 1
        counts = (by_worker @ q).reshape(n_workers, n_classes, n_classes) + prior  # worker, label, class
        log_votes = digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))
        mass = q.sum(axis=0) + 1.0
        scores = votes @ log_votes.reshape(-1, n_classes) + (digamma(mass) - digamma(mass.sum()))
        scores -= scores.max(axis=1, keepdims=True)
        after = np.exp(scores)
        after /= after.sum(axis=1, keepdims=True)
        change = float(np.abs(after - q).max())
        q = after
    return Combined(q, done)
