"""Draws of a crowd: how its votes may have come about if people err independently of one another.

The votes are explained by a relative of CC-Rasch in which nothing is maximised and everything uncertain stays uncertain
(:mod:`rarevote.audit.sampler`). The draws rank items for an audit, which stays valid whatever the ranking. They
are never another probability: that is :mod:`rarevote.decide.probabilities`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.numerics import FloatArray, IntArray, normalise_rows

_N_DRAWS = 400
_MAX_ANNOTATIONS = 1_000_000
_MAX_CELLS = 20_000_000  # workers x classes x classes; the sampler keeps a few tables of this size
_PARAMETER_DRAWS = 20  # for tasks outside the sample that the sampler learns from


class Draws(NamedTuple):
    """Draws of the classes of all tasks.

    Attributes:
        score: share of the draws in which each task has each class, from the votes alone, (n, K).
        classes: class of each of ``tasks`` in every draw, (n_draws, n_drawn).
        tasks: which tasks the draws are about, ascending, (n_drawn).
    """

    score: FloatArray
    classes: NDArray[Any]
    tasks: IntArray


def can_be_sampled(annotations: Annotations) -> bool:
    """Whether the sampler's tables fit into memory, and there is anything to draw."""
    K = annotations.n_classes
    return bool(annotations.n_tasks and K >= 2 and annotations.n_workers * K * K <= _MAX_CELLS)


def sample_crowd(
    annotations: Annotations, gold: NDArray[Any], *, n_sweeps: int | None = None, random_state: int = 0
) -> Draws:
    """Draw how the votes may have come about.

    Args:
        annotations: the votes, of at least two classes.
        gold: known class of each task or -1, (n).
        n_sweeps: sweeps of the sampler; by default until the shares of the classes are known well enough.
        random_state: seed of the sampler.
    """
    from rarevote.audit.sampler import Votes, VoteSampler

    n, K = annotations.n_tasks, annotations.n_classes
    tasks = np.arange(n)
    if annotations.n_annotations > _MAX_ANNOTATIONS:
        size = max(int(n * _MAX_ANNOTATIONS / annotations.n_annotations), 1)
        tasks = np.sort(np.random.default_rng(random_state).choice(n, size, replace=False))
    sampler = VoteSampler(annotations, tasks, gold.astype(np.int32), random_state)
    drawn = sampler.run(_N_DRAWS, n_sweeps)
    score = drawn.score
    if tasks.size < n:
        votes = Votes.of(annotations, np.arange(n))
        mean = np.zeros((K, n))
        for _ in range(_PARAMETER_DRAWS):
            for _ in range(10):  # draws in a row are much alike
                sampler.sweep()
            mean += sampler.class_probability(sampler.likelihood(votes))
        score = np.empty((n, K))
        score[votes.tasks] = normalise_rows(mean.T)
    return Draws(score, drawn.classes, tasks)
