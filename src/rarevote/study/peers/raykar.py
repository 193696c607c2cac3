"""Raykar's joint EM: a logistic regression and the confusion of each annotator, learned together from the votes.

The class of an item is drawn from the regression, ``softmax(x_i B + b)``, and each vote from the confusion row of its
annotator (Raykar et al., 2010; several classes as in the paper). E-step and M-step alternate::

    mu_ik  ~  softmax(x_i B + b)_k  prod over votes of  conf_r[k, y_ir]
    conf_r[k, l]  ~  sum over votes of r for l of  mu_ik  +  c_kl
    (B, b) = the regression on the soft labels mu, with a ridge

with ``c`` of 2 on the diagonal and a total of 1 off it, shared by the other classes, and the ridge ``d / 2 |B|^2`` of
``d`` standardised columns, which lets the features cause a variance of 1 in a logit.
"""

from __future__ import annotations

import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.features.ridge import softmax
from rarevote.study.libraries import library

_LEAST = 1e-12


def logistic_regression(
    x: FloatArray, soft: FloatArray, ridge: float, start: FloatArray | None = None, max_iter: int = 200
) -> FloatArray:
    """Slopes and, in the last row, intercepts, (d + 1, K): the regression on soft labels.

    Args:
        x: columns, (n, d).
        soft: soft labels, (n, K).
        ridge: weight of ``|B|^2 / 2``; intercepts have none.
        start: the starting point.
        max_iter: the largest number of L-BFGS steps.
    """
    padded = np.column_stack([x, np.ones(len(x))])
    shape = (padded.shape[1], soft.shape[1])
    penalty = np.full((shape[0], 1), ridge)
    penalty[-1] = 0.0

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        slopes = flat.reshape(shape)
        p = softmax(padded @ slopes)
        value = -(soft * np.log(np.maximum(p, _LEAST))).sum() + 0.5 * (penalty * slopes**2).sum()
        return float(value), (padded.T @ (p * soft.sum(axis=1, keepdims=True) - soft) + penalty * slopes).ravel()

    if start is None:
        start = np.zeros(shape)
        start[-1] = np.log(np.maximum(soft.mean(axis=0), 1e-3))
    found = library("scipy.optimize").minimize(
        loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter}
    )
    return np.asarray(found.x).reshape(shape)


def predicted(x: FloatArray, slopes: FloatArray) -> FloatArray:
    """Probabilities from a regression, (n, K)."""
    return np.asarray(softmax(x @ slopes[:-1] + slopes[-1]))


def joint_em(
    x: FloatArray,
    votes: tuple[IntArray, IntArray, IntArray],
    n_classes: int,
    *,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> FloatArray:
    """The posterior of every item, (n, K).

    Args:
        x: standardised columns, (n, d).
        votes: numbers of item, annotator and class, (V) each.
        n_classes: K.
        max_iter: the largest number of rounds of E-step and M-step.
        tol: largest change of a probability at which it stops.
    """
    item, worker, label = votes
    mu = np.zeros((len(x), n_classes))
    np.add.at(mu, (item, label), 1.0)
    mu /= np.maximum(mu.sum(axis=1, keepdims=True), 1.0)
    prior = np.full((n_classes, n_classes), 1.0 / max(n_classes - 1, 1))
    np.fill_diagonal(prior, 2.0)
    slopes = None
    for _ in range(max_iter):
        slopes = logistic_regression(x, mu, float(x.shape[1]), slopes, max_iter=200 if slopes is None else 25)
        confusion = np.tile(prior, (int(worker.max()) + 1, 1, 1))
        np.add.at(confusion.transpose(0, 2, 1), (worker, label), mu[item])
        confusion /= confusion.sum(axis=2, keepdims=True)
        scores = np.log(np.maximum(predicted(x, slopes), _LEAST))
        np.add.at(scores, item, np.log(confusion)[worker, :, label])
        before, mu = mu, softmax(scores)
        if np.abs(mu - before).max() < tol:
            break
    return mu
