"""Who is good at what: votes, ability and implied accuracy per class, and the profile of every annotator.

Where the method has abilities per class (CC-Rasch and its variant without difficulty), the accuracy of annotator ``r``
on class ``k`` is that on an item of average difficulty, ``a_rk = sigmoid(s_k + g_rk)``, and its interval comes from
the curvature of the likelihood. Elsewhere it is counted: of the annotator's votes on items of class ``k``, weighed by
the probability of that class, the share that said ``k``, with one made-up vote of either kind so that a single vote
does not make anybody perfect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from rarevote.annotations import Annotations
from rarevote.estimator import Estimator
from rarevote.methods.cc_rasch import CCRasch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Two-sided 95 % of a normal distribution.
NORMAL_95 = 1.959963984540054


class Profile(IntEnum):
    """What an annotator recognises more often than not, of the majority and the minority class."""

    NEITHER = 0
    MAJORITY_ONLY = 1
    MINORITY_ONLY = 2
    BOTH = 3


@dataclass(frozen=True, eq=False)
class Workers:
    """All annotators; arrays by worker, or by worker and class, in the order of the crowd.

    Attributes:
        names: as given.
        n_votes: votes of each.
        n_abstentions: answers that were no votes.
        agreement: share of a worker's votes that equal the label of their item.
        seen: expected number of a worker's votes on items of each class, ``sum_i P(class of i is k)``.
        ability: on the logit scale, relative to items of average difficulty: ``logit(accuracy)``.
        ability_error: standard error of the ability.
        accuracy: probability to recognise a class.
        low: lower end of the 95 % interval of the accuracy.
        high: its upper end.
        profile: a :class:`Profile` each.
        modelled: whether the accuracies are the method's own, or else counted from its result.
    """

    names: NDArray[np.object_]
    n_votes: IntArray
    n_abstentions: IntArray
    agreement: FloatArray
    seen: FloatArray
    ability: FloatArray
    ability_error: FloatArray
    accuracy: FloatArray
    low: FloatArray
    high: FloatArray
    profile: IntArray
    modelled: bool

    def count(self, profile: Profile) -> int:
        """How many annotators have that profile."""
        return int((self.profile == profile).sum())


def describe_workers(
    estimator: Estimator, labels: IntArray, probabilities: FloatArray, *, rare: int, common: int
) -> Workers:
    """Describe the annotators of a fitted crowd.

    Args:
        estimator: the fitted method.
        labels: class number that each task was given, (n_tasks).
        probabilities: of every class per task, (n_tasks, n_classes).
        rare: the minority class.
        common: the majority class.
    """
    crowd = estimator.annotations_
    worker = crowd.worker.astype(np.int64)
    n_votes = np.bincount(worker, minlength=crowd.n_workers)
    agrees = crowd.label == labels[crowd.task_of_annotation()]
    seen, hits = _counted(crowd, probabilities)
    modelled = isinstance(estimator, CCRasch)
    if isinstance(estimator, CCRasch):
        ability, error = _from_cc_rasch(estimator)
    else:
        share = (hits + 1) / (seen + 2)
        ability = np.log(share / (1 - share))
        error = 1 / np.sqrt((seen + 2) * share * (1 - share))
    accuracy = sigmoid(ability)
    return Workers(
        names=crowd.workers,
        n_votes=n_votes,
        n_abstentions=np.array([crowd.abstentions.get(name, 0) for name in crowd.workers.tolist()], dtype=np.int64),
        agreement=np.bincount(worker, weights=agrees, minlength=crowd.n_workers) / np.maximum(n_votes, 1),
        seen=seen,
        ability=ability,
        ability_error=error,
        accuracy=accuracy,
        low=sigmoid(ability - NORMAL_95 * error),
        high=sigmoid(ability + NORMAL_95 * error),
        profile=profiles(accuracy, rare=rare, common=common),
        modelled=modelled,
    )


def profiles(accuracy: FloatArray, *, rare: int, common: int) -> IntArray:
    """The :class:`Profile` of every worker: a class is recognised if that happens more often than not."""
    return (accuracy[:, common] > 0.5) * int(Profile.MAJORITY_ONLY) + (accuracy[:, rare] > 0.5) * int(
        Profile.MINORITY_ONLY
    )


def sigmoid(logit: FloatArray) -> FloatArray:
    """``1 / (1 + exp(-logit))``."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * logit)))


def _counted(crowd: Annotations, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Per worker and class: expected votes on items of that class, and how many of them said so."""
    task = crowd.task_of_annotation()
    shape = (crowd.n_workers, crowd.n_classes)
    seen, hits = np.zeros(shape), np.zeros(shape)
    for k in range(crowd.n_classes):  # one class at a time: no array of annotations by classes
        weight = probabilities[task, k]
        seen[:, k] = np.bincount(crowd.worker, weights=weight, minlength=crowd.n_workers)
        hits[:, k] = np.bincount(crowd.worker, weights=weight * (crowd.label == k), minlength=crowd.n_workers)
    return seen, hits


def _from_cc_rasch(estimator: CCRasch) -> tuple[FloatArray, FloatArray]:
    """Ability ``s_k + g_rk`` against an item of average difficulty, and its standard error.

    With the information ``W`` that the votes hold (:func:`vote_information`), the ridge ``t = 1/sigma_alpha^2`` on
    the deviations ``g`` and ``u`` on the intercept ``s``, eliminating all other workers from the arrow-shaped Hessian
    leaves the variance of ``s_k + g_rk``::

        1/(W_r + t) + (t/(W_r + t))^2 / S,    S = u + sum_r W_r t/(W_r + t)

    Difficulties and the other classes are held, so the interval is a little too short.
    """
    crowd, posterior = estimator.annotations_, estimator.posterior_
    shape = (crowd.n_workers, crowd.n_classes)
    model = estimator._model(crowd)
    intercept = np.broadcast_to(estimator._parameter("intercept"), (crowd.n_classes,))
    ability = np.array(intercept + np.broadcast_to(estimator._parameter("ability_deviation"), shape))
    deviation = np.broadcast_to(estimator._parameter("difficulty_deviation"), posterior.shape)
    # Where a posterior is torn between classes the votes may seem to hold less than nothing; the prior remains.
    information = np.maximum(vote_information(crowd, posterior, ability, deviation), 0.0)
    ridge = 1 / model.sigma_alpha**2
    spread = model.sigma_beta_mu**2 if model.difficulty is not None else 0.0
    diagonal = information + ridge
    corner = 1 / (model.sigma_alpha_mu**2 + spread) + (information * ridge / diagonal).sum(axis=0)
    return ability, np.sqrt(1 / diagonal + (ridge / diagonal) ** 2 / corner)


def vote_information(
    crowd: Annotations, posterior: FloatArray, ability: FloatArray, deviation: FloatArray
) -> FloatArray:
    """What the votes tell about every ability: minus the second derivative of their log likelihood.

    That of labelled items, less what is lost because labels are only known as probabilities (Louis' identity)::

        W_rk = sum_i q_ik p (1 - p) - q_ik (1 - q_ik) d^2,    d = 1 - p for a vote for k, else -p

    Args:
        crowd: the votes.
        posterior: ``q``, (n_tasks, n_classes).
        ability: ``s_k + g_rk``, (n_workers, n_classes).
        deviation: ``h_ik``, difficulties relative to the mean of their class, (n_tasks, n_classes).

    Returns:
        (n_workers, n_classes).
    """
    task = crowd.task_of_annotation()
    information = np.zeros(ability.shape)
    for k in range(crowd.n_classes):
        right = sigmoid(ability[crowd.worker, k] - deviation[task, k])
        share = posterior[task, k]
        score = (crowd.label == k) - right
        weight = share * right * (1 - right) - share * (1 - share) * score**2
        information[:, k] = np.bincount(crowd.worker, weights=weight, minlength=crowd.n_workers)
    return information
