"""Crowds with known truth: simulated workers label simulated tasks, so that every method can be scored.

Two generators work in the same way. `simulate_crowd` draws the crowd of the paper's synthetic experiment: workers
of four types, easy and hard tasks. `simulate_cc_rasch` draws from the CC-Rasch model itself, so that a fit
can be compared with the abilities and difficulties that made the data.

Tasks are drawn in blocks of 10 000, and block ``b`` has its own random stream that depends only on the seed
and on ``b``. A crowd of a billion labels can therefore be made chunk by chunk (`simulate_chunks`), and
it is identical, bit for bit, whatever the size of the chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray, sigmoid
from rarevote.errors import ParameterError
from rarevote.simulate import prevalence
from rarevote.simulate import shared_errors as sharing
from rarevote.simulate.blocks import (
    BLOCK_TASKS,
    CrowdPlan,
    Stream,
    TaskBlock,
    require,
    require_whole,
    rounded_counts,
)
from rarevote.simulate.strength import Strength, strength_of

WORKER_TYPES = ("good", "majority", "minority", "bad")

#: Accuracy on easy tasks of (the most frequent class, every other class), by type of worker.
DEFAULT_ACCURACIES: Mapping[str, tuple[float, float]] = {
    "good": (0.90, 0.90),
    "majority": (0.95, 0.45),
    "minority": (0.60, 0.90),
    "bad": (0.55, 0.50),
}

MIN_PROBABILITY, MAX_PROBABILITY = 0.01, 0.99


@dataclass(frozen=True, eq=False)
class SimulatedCrowd:
    """Labels of a simulated crowd, or of a range of its tasks, with everything that made them.

    Attributes:
        task: task of each annotation, ascending, shape ``(n_annotations,)``.
        worker: worker of each annotation, ascending within a task, no worker twice on a task.
        label: label of each annotation, ``0 .. n_classes - 1``.
        truth: true class of each task, shape ``(n_tasks,)``; entry ``i`` is that of task ``first_task + i``.
        accuracy: probability of a correct label, shape ``(n_workers, n_classes)``; on easy tasks, or under
            CC-Rasch on a task of average difficulty.
        worker_type: name of each worker's type, shape ``(n_workers,)``, or None under CC-Rasch.
        hard: whether each task is hard, shape ``(n_tasks,)``, or None under CC-Rasch.
        abilities: ``alpha``, shape ``(n_workers, n_classes)``, under CC-Rasch only.
        difficulties: ``beta``, shape ``(n_tasks, n_classes)``, under CC-Rasch only.
        first_task: number of the first task; above 0 in the later chunks of a crowd.
        shared_difficulty: the shared difficulty of each task, standard normal; the higher, the more annotators are
            wrong, shape ``(n_tasks,)``; None if errors are not shared.
    """

    task: NDArray[np.int64]
    worker: NDArray[np.int32]
    label: NDArray[np.int32]
    truth: NDArray[np.int32]
    accuracy: FloatArray
    worker_type: NDArray[np.str_] | None = None
    hard: NDArray[np.bool_] | None = None
    abilities: FloatArray | None = None
    difficulties: FloatArray | None = None
    first_task: int = 0
    shared_difficulty: FloatArray | None = None

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.truth)

    @property
    def n_workers(self) -> int:
        """Number of workers, including those without a label."""
        return int(self.accuracy.shape[0])

    @property
    def n_classes(self) -> int:
        """Number of classes, including those that never occur."""
        return int(self.accuracy.shape[1])

    @property
    def n_annotations(self) -> int:
        """Number of labels given."""
        return len(self.task)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """``task``, ``worker`` and ``label``, the three columns that a method needs."""
        return self.task, self.worker, self.label


def simulate_crowd(
    n_tasks: int = 3000,
    n_workers: int = 60,
    *,
    n_classes: int = 2,
    imbalance: float = 7.0,
    votes_per_task: float = 8.0,
    p_good: float = 0.25,
    p_majority: float = 0.25,
    p_minority: float = 0.25,
    p_bad: float = 0.25,
    accuracies: Mapping[str, Sequence[float]] = DEFAULT_ACCURACIES,
    hard_share: float = 0.3,
    hard_penalty: float = 0.15,
    shared_errors: Strength = 0.0,
    prevalence_effect: Strength = 0.0,
    exact_counts: bool = False,
    random_state: int | None = None,
) -> SimulatedCrowd:
    """Draw a crowd of good workers, bad workers and specialists, as in the paper's synthetic experiment.

    Task ``i`` has the class ``Y_i`` and is hard, ``H_i = 1``, with probability ``hard_share``. It gets
    ``min(1 + Poisson(votes_per_task - 1), n_workers)`` labels from different workers, all equally likely. A
    worker of type ``t`` is right with probability::

        P(correct | Y_i = k, H_i = h) = clip(accuracies[t][k] - h * hard_penalty, 0.01, 0.99)

    and otherwise gives one of the other classes, all equally likely. With ``shared_errors`` many annotators get the
    same items wrong, as in real crowds, while each is as accurate as before. With ``prevalence_effect`` annotators
    give the label of a rare class to other items less often the rarer it is, as in real crowds.

    Class sizes fall geometrically, ``P(Y = k) ~ imbalance ** (-k / (n_classes - 1))``: class 0 is the most
    frequent and the **last** class the rarest.

    Args:
        n_tasks: number of tasks.
        n_workers: number of workers.
        n_classes: number of classes, 2 to 65 535.
        imbalance: size of the largest class over that of the smallest, at least 1.
        votes_per_task: mean number of labels per task, at least 1. A task never gets more than ``n_workers``,
            so the mean is below this value if the two are close.
        p_good: share of workers who are good at every class.
        p_majority: share of specialists of the most frequent class.
        p_minority: share of specialists of the other classes.
        p_bad: share of workers who are good at nothing. The four shares sum to 1; the numbers of workers are
            these shares rounded so that they sum to ``n_workers``.
        accuracies: the accuracy on easy tasks, by type of worker: two values, for class 0 and for all other
            classes, or one value per class. A type left out keeps its row of `DEFAULT_ACCURACIES`.
        hard_share: probability that a task is hard (rho).
        hard_penalty: by how much a hard task lowers the probability of a correct label (delta).
        shared_errors: how strongly errors fall on the same items, from 0 (errors of annotators are independent) to
            below 1: the correlation of the latent values of two votes on one item (see
            `rarevote.simulate.shared_errors`). ``"real"`` is the strength that was fitted to 31 real crowds. Everything
            in the crowd except the answers is the same whatever the strength.
        prevalence_effect: ``E``, from 0 (accuracies do not depend on the imbalance) to below 1: the odds of an error on
            a task of the most frequent class are multiplied by ``imbalance ** -E`` (see
            `rarevote.simulate.prevalence`). ``"real"`` is the value fitted to 31 real crowds.
        exact_counts: give every class its expected number of tasks, rounded, in random order, instead of
            drawing each task's class independently.
        random_state: seed, not negative; the same seed gives the same crowd. Without a seed, every crowd is new.

    Returns:
        Labels, truth and workers.

    Raises:
        ParameterError: a parameter is out of range, or the shares do not sum to 1.

    Example:
        >>> crowd = simulate_crowd(n_tasks=200, n_workers=20, imbalance=9, exact_counts=True, random_state=0)
        >>> crowd.n_tasks, crowd.n_workers, int((crowd.truth == 1).sum())
        (200, 20, 20)
    """
    given: dict[str, Any] = locals()
    (crowd,) = simulate_chunks(**given, chunk_tasks=n_tasks)
    return crowd


def simulate_chunks(
    n_tasks: int = 3000,
    n_workers: int = 60,
    *,
    n_classes: int = 2,
    imbalance: float = 7.0,
    votes_per_task: float = 8.0,
    p_good: float = 0.25,
    p_majority: float = 0.25,
    p_minority: float = 0.25,
    p_bad: float = 0.25,
    accuracies: Mapping[str, Sequence[float]] = DEFAULT_ACCURACIES,
    hard_share: float = 0.3,
    hard_penalty: float = 0.15,
    shared_errors: Strength = 0.0,
    prevalence_effect: Strength = 0.0,
    exact_counts: bool = False,
    random_state: int | None = None,
    chunk_tasks: int = 500_000,
) -> Iterator[SimulatedCrowd]:
    """Draw the crowd of `simulate_crowd` a range of tasks at a time, for crowds larger than memory.

    The workers are the same in all chunks and the task numbers continue from chunk to chunk; together, the
    chunks are what `simulate_crowd` returns for the same seed. All parameters but the last are those of
    `simulate_crowd`, with the same defaults; they are checked before the first chunk is requested.

    Args:
        chunk_tasks: tasks in a chunk, rounded up to whole blocks of 10 000.

    Returns:
        An iterator over consecutive parts of the crowd.

    Example:
        >>> chunks = simulate_chunks(n_tasks=25_000, random_state=0, chunk_tasks=10_000)
        >>> [(chunk.first_task, chunk.n_tasks) for chunk in chunks]
        [(0, 10000), (10000, 10000), (20000, 5000)]
    """
    plan = CrowdPlan(n_tasks, n_workers, n_classes, imbalance, votes_per_task, exact_counts, random_state)
    shares = np.array([p_good, p_majority, p_minority, p_bad])
    require(bool((shares >= 0).all()), "the shares of worker types must not be negative")
    require(abs(shares.sum() - 1) < 1e-9, f"the shares of worker types must sum to 1, not {shares.sum():g}")
    by_type = _accuracy_by_type(accuracies, n_classes)
    require(0 <= hard_share <= 1, f"hard_share must lie between 0 and 1, not {hard_share}")
    require(0 <= hard_penalty <= 1, f"hard_penalty must lie between 0 and 1, not {hard_penalty}")
    strength = strength_of("shared_errors", shared_errors, sharing.REAL)
    effect = strength_of("prevalence_effect", prevalence_effect, prevalence.REAL)
    require_whole("chunk_tasks", chunk_tasks)

    types = np.repeat(np.arange(len(WORKER_TYPES)), rounded_counts(shares, n_workers))
    type_of = plan.stream(Stream.WORKERS).permutation(types)
    type_names = np.array(WORKER_TYPES)[type_of]
    easy_or_hard = by_type[..., None] - hard_penalty * np.array([0.0, 1.0])
    chances = np.clip(easy_or_hard, MIN_PROBABILITY, MAX_PROBABILITY)  # by type, class and whether the task is hard
    if effect:
        chances[:, 0] = prevalence.with_prevalence_effect(chances[:, 0], imbalance, effect)
    accuracy = chances[type_of, :, 0]
    limits = sharing.thresholds(chances) if strength else None

    def label(block: TaskBlock) -> SimulatedCrowd:
        hard = block.stream.random(len(block.truth)) < hard_share
        of_vote = type_of[block.worker], block.truth[block.row], hard[block.row].astype(np.intp)
        if limits is None:
            labels, shared = block.answers(chances[of_vote], n_classes), None
        else:
            stream = plan.stream(Stream.SHARED_ERRORS, block.number)
            labels, shared = sharing.shared_answers(block, limits[of_vote], n_classes, strength, stream)
        return SimulatedCrowd(
            *(block.task, block.worker, labels, block.truth, accuracy),
            worker_type=type_names,
            hard=hard,
            first_task=block.first_task,
            shared_difficulty=shared,
        )

    return _chunks(map(label, plan.blocks()), math.ceil(chunk_tasks / BLOCK_TASKS))


def simulate_cc_rasch(
    n_tasks: int = 3000,
    n_workers: int = 60,
    *,
    n_classes: int = 2,
    imbalance: float = 7.0,
    votes_per_task: float = 8.0,
    mu_alpha: ArrayLike | None = None,
    mu_beta: ArrayLike | None = None,
    sigma_alpha: ArrayLike = 0.5,
    sigma_beta: ArrayLike = 0.5,
    sigma_mu: ArrayLike = 1.0,
    exact_counts: bool = False,
    random_state: int | None = None,
) -> SimulatedCrowd:
    """Draw abilities and difficulties from the CC-Rasch model, and labels from them.

    For worker ``r``, task ``i`` and class ``k``::

        P(correct | Y_i = k) = sigmoid(alpha_rk - beta_ik)
        alpha_rk = mu_alpha_k + g_rk    g_rk ~ N(0, sigma_alpha_k^2), given that sum_r g_rk = 0
        beta_ik  = mu_beta_k  + h_ik    h_ik ~ N(0, sigma_beta_k^2),  given that sum_i h_ik = 0

    An error is any of the other classes, all equally likely. Classes, votes and workers of a task are drawn
    as in `simulate_crowd`.

    Args:
        n_tasks: number of tasks.
        n_workers: number of workers.
        n_classes: number of classes, 2 to 65 535.
        imbalance: size of the largest class (0) over that of the smallest (the last).
        votes_per_task: mean number of labels per task, before the limit of ``n_workers``.
        mu_alpha: mean ability per class, one value or ``n_classes``; drawn from ``N(0, sigma_mu^2)`` if not
            given.
        mu_beta: mean difficulty per class, likewise. If it exceeds ``mu_alpha``, the average worker is
            wrong more often than right.
        sigma_alpha: standard deviation of abilities, one value or one per class.
        sigma_beta: standard deviation of difficulties, one value or one per class.
        sigma_mu: standard deviation of means that are drawn, one value or one per class.
        exact_counts: as in `simulate_crowd`.
        random_state: seed, not negative.

    Returns:
        Labels and truth with ``abilities`` and ``difficulties``.

    Raises:
        ParameterError: a parameter is out of range or of the wrong length.

    Example:
        >>> crowd = simulate_cc_rasch(100, 12, mu_alpha=[2.0, 0.5], mu_beta=0.0, random_state=1)
        >>> crowd.abilities.shape, crowd.abilities.mean(axis=0).round(12).tolist()
        ((12, 2), [2.0, 0.5])
    """
    plan = CrowdPlan(n_tasks, n_workers, n_classes, imbalance, votes_per_task, exact_counts, random_state)
    spread_alpha, spread_beta, spread_mu = (
        _per_class(name, values, n_classes)
        for name, values in (("sigma_alpha", sigma_alpha), ("sigma_beta", sigma_beta), ("sigma_mu", sigma_mu))
    )
    for name, spread in (("sigma_alpha", spread_alpha), ("sigma_beta", spread_beta), ("sigma_mu", spread_mu)):
        require(bool((spread >= 0).all()), f"{name} must not be negative")
    stream = plan.stream(Stream.WORKERS)
    # Both are drawn even if they are given, so that giving one does not change the abilities that follow.
    drawn_alpha, drawn_beta = spread_mu * stream.standard_normal((2, n_classes))
    mean_alpha = drawn_alpha if mu_alpha is None else _per_class("mu_alpha", mu_alpha, n_classes)
    mean_beta = drawn_beta if mu_beta is None else _per_class("mu_beta", mu_beta, n_classes)
    abilities = mean_alpha + spread_alpha * _centred(stream.standard_normal((n_workers, n_classes)))
    stream = plan.stream(Stream.DIFFICULTIES)
    difficulties = mean_beta + spread_beta * _centred(stream.standard_normal((n_tasks, n_classes)))
    accuracy = sigmoid(abilities - mean_beta)

    def label(block: TaskBlock) -> SimulatedCrowd:
        of_block = difficulties[block.first_task :][: len(block.truth)]
        true_class = block.truth[block.row]
        chance = sigmoid(abilities[block.worker, true_class] - of_block[block.row, true_class])
        labels = block.answers(chance, n_classes)
        return SimulatedCrowd(
            *(block.task, block.worker, labels, block.truth, accuracy),
            abilities=abilities,
            difficulties=of_block,
            first_task=block.first_task,
        )

    (crowd,) = _chunks(map(label, plan.blocks()), math.ceil(n_tasks / BLOCK_TASKS))
    return crowd


def _accuracy_by_type(accuracies: Mapping[str, Sequence[float]], n_classes: int) -> FloatArray:
    """Return the table of accuracies on easy tasks, shape ``(4, n_classes)``, from rows of 2 or K values."""
    unknown = set(accuracies) - set(WORKER_TYPES)
    if unknown:
        raise ParameterError(f"accuracies has a row {min(unknown)!r}; the types are {', '.join(WORKER_TYPES)}")
    rows = []
    for name in WORKER_TYPES:
        row = np.asarray(accuracies.get(name, DEFAULT_ACCURACIES[name]), dtype=np.float64)
        if row.shape not in ((2,), (n_classes,)):
            raise ParameterError(f"accuracies of {name!r} must be 2 or {n_classes} values, not {row.tolist()}")
        if not ((row >= 0) & (row <= 1)).all():
            raise ParameterError(f"accuracies of {name!r} must lie between 0 and 1, not {row.tolist()}")
        rows.append(row if len(row) == n_classes else np.repeat(row, [1, n_classes - 1]))
    return np.array(rows)


def _per_class(name: str, values: ArrayLike, n_classes: int) -> FloatArray:
    """Return one finite value per class from one value or from ``n_classes``."""
    array = np.asarray(values, dtype=np.float64)
    require(array.shape in ((), (n_classes,)), f"{name} must be one value or one per class, not {array.size}")
    require(bool(np.isfinite(array).all()), f"{name} must be finite")
    return np.broadcast_to(array, (n_classes,))


def _centred(draws: FloatArray) -> FloatArray:
    """Subtract column means: independent normal draws become draws given that each column sums to zero."""
    means: FloatArray = draws.mean(axis=0)
    return draws - means


def _chunks(blocks: Iterator[SimulatedCrowd], blocks_per_chunk: int) -> Iterator[SimulatedCrowd]:
    """Join every ``blocks_per_chunk`` consecutive blocks."""
    while part := list(islice(blocks, blocks_per_chunk)):
        joined: dict[str, Any] = {}
        for name in ("task", "worker", "label", "truth", "hard", "difficulties", "shared_difficulty"):
            pieces = [getattr(block, name) for block in part]
            joined[name] = None if pieces[0] is None else np.concatenate(pieces)
        yield replace(part[0], **joined)
