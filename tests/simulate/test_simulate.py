"""The simulated crowds against their own specification: every expected value comes from the parameters."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote.errors import ParameterError
from rarevote.simulate.crowds import (
    DEFAULT_ACCURACIES,
    SimulatedCrowd,
    simulate_cc_rasch,
    simulate_chunks,
    simulate_crowd,
)

# Tests with fixed seeds: this many standard errors is far out for a right generator, near for a wrong one.
SIGMAS = 4.5


def assert_share(hits: NDArray[np.bool_], probability: float) -> None:
    """Assert that a share of successes is what independent draws of this probability give."""
    error = np.sqrt(probability * (1 - probability) / len(hits))
    assert len(hits) > 50
    assert abs(hits.mean() - probability) < SIGMAS * error


def columns(crowd: SimulatedCrowd) -> list[NDArray[Any]]:
    optional = (crowd.hard, crowd.difficulties)
    return [*crowd.arrays, crowd.truth, *(column for column in optional if column is not None)]


@pytest.fixture(scope="module")
def crowd() -> SimulatedCrowd:
    return simulate_crowd(n_tasks=60_000, n_workers=40, random_state=3)


def test_default_crowd_is_that_of_the_paper() -> None:
    crowd = simulate_crowd(random_state=0)
    assert (crowd.n_tasks, crowd.n_workers, crowd.n_classes) == (3000, 60, 2)
    assert crowd.worker_type is not None
    assert Counter(crowd.worker_type.tolist()) == dict.fromkeys(("good", "majority", "minority", "bad"), 15)
    assert (crowd.truth == 1).mean() == pytest.approx(1 / 8, abs=0.03)
    assert crowd.n_annotations == len(crowd.label) == pytest.approx(24_000, rel=0.02)


def test_columns_have_their_shapes_and_ranges(crowd: SimulatedCrowd) -> None:
    task, worker, label = crowd.arrays
    assert task is crowd.task
    assert worker is crowd.worker
    assert label is crowd.label
    assert all(np.issubdtype(column.dtype, np.integer) for column in (task, worker, label, crowd.truth))
    assert np.array_equal(np.unique(task), np.arange(60_000))
    assert (np.diff(task) >= 0).all()
    assert set(np.unique(worker)) == set(range(40))
    assert set(np.unique(label)) == {0, 1}
    assert crowd.hard is not None
    assert crowd.hard.shape == crowd.truth.shape == (60_000,)
    assert crowd.abilities is None
    assert crowd.difficulties is None


def test_imbalance_and_hard_share(crowd: SimulatedCrowd) -> None:
    assert_share(crowd.truth == 1, 1 / 8)
    assert crowd.hard is not None
    assert_share(crowd.hard, 0.3)
    assert_share(crowd.hard[crowd.truth == 1], 0.3)


def test_class_sizes_fall_geometrically() -> None:
    truth = simulate_crowd(50_000, n_classes=4, imbalance=27, votes_per_task=1, random_state=5).truth
    for k, size in enumerate((27, 9, 3, 1)):
        assert_share(truth == k, size / 40)


@pytest.mark.parametrize(("n_tasks", "expected"), [(400, [270, 90, 30, 10]), (21_000, [14175, 4725, 1575, 525])])
def test_exact_counts(n_tasks: int, expected: list[int]) -> None:
    crowd = simulate_crowd(n_tasks, n_classes=4, imbalance=27, exact_counts=True, random_state=5)
    assert np.bincount(crowd.truth).tolist() == expected
    # In random order: the rarest class does not sit at one end.
    positions = np.flatnonzero(crowd.truth == 3)
    assert positions.mean() == pytest.approx(n_tasks / 2, abs=SIGMAS * n_tasks / np.sqrt(12 * expected[3]))


def test_every_type_is_as_accurate_as_its_row(crowd: SimulatedCrowd) -> None:
    assert crowd.hard is not None
    assert crowd.worker_type is not None
    true_class = crowd.truth[crowd.task]
    is_hard = crowd.hard[crowd.task]
    kind = crowd.worker_type[crowd.worker]
    for name, row in DEFAULT_ACCURACIES.items():
        for k in (0, 1):
            for hard in (False, True):
                chosen = (kind == name) & (true_class == k) & (is_hard == hard)
                assert_share(crowd.label[chosen] == k, row[k] - 0.15 * hard)
    for name, accuracy in zip(crowd.worker_type, crowd.accuracy, strict=True):
        assert accuracy.tolist() == list(DEFAULT_ACCURACIES[name])


def test_accuracies_of_several_classes_and_uniform_errors() -> None:
    crowd = simulate_crowd(
        20_000,
        20,
        n_classes=4,
        imbalance=2,
        p_good=0.5,
        p_majority=0.5,
        p_minority=0,
        p_bad=0,
        accuracies={"good": [0.9, 0.8, 0.7, 0.6], "majority": [0.95, 0.4]},
        hard_share=0,
        random_state=8,
    )
    assert crowd.worker_type is not None
    true_class = crowd.truth[crowd.task]
    kind = crowd.worker_type[crowd.worker]
    expected = {"good": [0.9, 0.8, 0.7, 0.6], "majority": [0.95, 0.4, 0.4, 0.4]}
    for name, k in itertools.product(expected, range(4)):
        given = crowd.label[(kind == name) & (true_class == k)]
        assert_share(given == k, expected[name][k])
        for other in {0, 1, 2, 3} - {k}:
            assert_share(given[given != k] == other, 1 / 3)


def test_probabilities_are_clipped() -> None:
    certain: dict[str, Any] = {"p_good": 1, "p_majority": 0, "p_minority": 0, "p_bad": 0}
    crowd = simulate_crowd(10_000, accuracies={"good": [1, 0]}, hard_share=0, random_state=1, **certain)
    right = crowd.label == crowd.truth[crowd.task]
    assert_share(right[crowd.truth[crowd.task] == 0], 0.99)
    assert_share(right[crowd.truth[crowd.task] == 1], 0.01)
    assert np.unique(crowd.accuracy).tolist() == [0.01, 0.99]


def test_votes_are_one_plus_poisson(crowd: SimulatedCrowd) -> None:
    votes = np.bincount(crowd.task)
    assert votes.min() >= 1
    assert abs(votes.mean() - 8) < SIGMAS * np.sqrt(7 / len(votes))
    assert votes.var() == pytest.approx(7, rel=0.05)
    assert_share(votes == 1, np.exp(-7))
    assert_share(votes == 8, np.exp(-7) * 7**7 / 5040)


@pytest.mark.parametrize("n_workers", [1, 2, 3, 8, 9, 17, 1000])
def test_no_worker_twice_on_a_task_and_votes_are_capped(n_workers: int) -> None:
    crowd = simulate_crowd(11_000, n_workers, random_state=2)
    pairs = crowd.task * n_workers + crowd.worker
    assert len(np.unique(pairs)) == len(pairs)
    votes = np.bincount(crowd.task)
    assert votes.min() >= 1
    assert votes.max() <= n_workers
    if n_workers <= 9:
        assert votes.max() == n_workers


def test_votes_far_above_the_crowd_mean_that_everybody_votes() -> None:
    crowd = simulate_crowd(50, 7, votes_per_task=1000, random_state=0)
    assert crowd.worker.tolist() == list(range(7)) * 50


@pytest.mark.parametrize("n_votes", [2, 3, 4])  # of 5 workers: drawn directly, and by who stays out
def test_all_sets_of_workers_are_equally_likely(n_votes: int) -> None:
    crowd = simulate_crowd(40_000, 5, votes_per_task=n_votes, random_state=6)
    wanted = np.flatnonzero(np.bincount(crowd.task) == n_votes)
    workers = crowd.worker[np.isin(crowd.task, wanted)].reshape(-1, n_votes)
    sets = Counter(map(tuple, workers.tolist()))
    possible = list(itertools.combinations(range(5), n_votes))
    assert set(sets) == set(possible)
    for count in sets.values():
        assert_share(np.arange(len(workers)) < count, 1 / len(possible))


@pytest.mark.parametrize("exact_counts", [False, True])
def test_chunks_join_to_the_same_crowd_bit_for_bit(exact_counts: bool) -> None:
    parameters: dict[str, Any] = {"n_classes": 3, "exact_counts": exact_counts, "random_state": 12}
    whole = simulate_crowd(34_567, 25, **parameters)
    assert whole.worker_type is not None
    for chunk_tasks in (1, 10_000, 15_000, 34_567, 10**9):
        chunks = list(simulate_chunks(34_567, 25, chunk_tasks=chunk_tasks, **parameters))
        starts = [chunk.first_task for chunk in chunks]
        assert starts == np.cumsum([0, *(chunk.n_tasks for chunk in chunks[:-1])]).tolist()
        assert len(chunks) == {1: 4, 10_000: 4, 15_000: 2, 34_567: 1, 10**9: 1}[chunk_tasks]
        for joined, column in zip(zip(*map(columns, chunks), strict=True), columns(whole), strict=True):
            assert np.array_equal(np.concatenate(joined), column)
        for chunk in chunks:
            assert np.array_equal(chunk.accuracy, whole.accuracy)
            assert chunk.worker_type is not None
            assert np.array_equal(chunk.worker_type, whole.worker_type)
            assert chunk.n_workers == 25


def test_blocks_are_not_copies_of_each_other(crowd: SimulatedCrowd) -> None:
    blocks = crowd.truth.reshape(6, 10_000)
    for a, b in itertools.combinations(blocks, 2):
        assert (a == 1)[b == 1].mean() == pytest.approx(1 / 8, abs=0.05)


@pytest.mark.parametrize("simulate", [simulate_crowd, simulate_cc_rasch])
def test_seeds(simulate: Callable[..., SimulatedCrowd]) -> None:
    first, again, other, free, free_too = (simulate(random_state=seed) for seed in (1, 1, 2, None, None))
    assert all(np.array_equal(a, b) for a, b in zip(columns(first), columns(again), strict=True))
    assert not np.array_equal(first.truth, other.truth)
    assert not np.array_equal(free.truth, free_too.truth)
    assert not np.array_equal(first.accuracy, other.accuracy)


def test_cc_rasch_labels_follow_abilities_and_difficulties() -> None:
    crowd = simulate_cc_rasch(
        40_000,
        50,
        n_classes=3,
        imbalance=2,
        mu_alpha=[1.5, 0.5, 0.0],
        mu_beta=[0.0, 0.2, -0.5],
        sigma_alpha=[1.0, 0.5, 0.8],
        sigma_beta=0.7,
        random_state=9,
    )
    assert crowd.abilities is not None
    assert crowd.difficulties is not None
    assert crowd.worker_type is None
    assert crowd.hard is None
    true_class = crowd.truth[crowd.task]
    logit = crowd.abilities[crowd.worker, true_class] - crowd.difficulties[crowd.task, true_class]
    chance = 1 / (1 + np.exp(-logit))
    right = crowd.label == true_class
    for k in range(3):
        of_class = np.flatnonzero(true_class == k)
        for part in np.array_split(of_class[np.argsort(chance[of_class])], 10):
            error = np.sqrt((chance[part] * (1 - chance[part])).mean() / len(part))
            assert abs(right[part].mean() - chance[part].mean()) < SIGMAS * error
        wrong = crowd.label[of_class][~right[of_class]]
        assert_share(wrong == (k + 1) % 3, 1 / 2)


def test_cc_rasch_parameters_have_the_given_moments() -> None:
    crowd = simulate_cc_rasch(
        4000, 2000, mu_alpha=[1.0, -1.0], mu_beta=0.3, sigma_alpha=[0.4, 0.9], sigma_beta=0, random_state=9
    )
    assert crowd.abilities is not None
    assert crowd.difficulties is not None
    np.testing.assert_allclose(crowd.abilities.mean(axis=0), [1.0, -1.0], atol=1e-12)
    np.testing.assert_allclose(crowd.abilities.std(axis=0), [0.4, 0.9], rtol=SIGMAS / np.sqrt(2 * 2000))
    np.testing.assert_allclose(crowd.difficulties, 0.3, atol=1e-12)
    np.testing.assert_allclose(crowd.accuracy, 1 / (1 + np.exp(0.3 - crowd.abilities)))


def test_cc_rasch_draws_means_that_are_not_given() -> None:
    means = []
    for seed in range(200):
        crowd = simulate_cc_rasch(2, 2, votes_per_task=1, sigma_mu=2.0, random_state=seed)
        assert crowd.abilities is not None
        assert crowd.difficulties is not None
        means.append([*crowd.abilities.mean(axis=0), *crowd.difficulties.mean(axis=0)])
    assert np.std(means) == pytest.approx(2.0, rel=SIGMAS / np.sqrt(2 * 800))
    correlations = np.corrcoef(np.array(means).T)[np.triu_indices(4, k=1)]
    assert np.abs(correlations).max() < SIGMAS / np.sqrt(200)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_tasks": 0}, "n_tasks must be a whole number of at least 1, not 0"),
        ({"n_tasks": 2.5}, "n_tasks must be a whole number"),
        ({"n_workers": -1}, "n_workers must be a whole number"),
        ({"n_workers": 2**31}, "n_workers must be at most"),
        ({"n_classes": 1}, "n_classes must be 2 to 65535, not 1"),
        ({"n_classes": 65_536}, "n_classes must be 2 to 65535"),
        ({"imbalance": 0.5}, "imbalance must be at least 1"),
        ({"imbalance": float("nan")}, "imbalance must be at least 1"),
        ({"votes_per_task": 0.9}, "votes_per_task must be at least 1"),
        ({"random_state": -3}, "random_state must be a whole number of at least 0"),
        ({"n_tasks": 10**9, "exact_counts": True}, "exact_counts is possible for at most 999999999 tasks"),
    ],
)
@pytest.mark.parametrize("simulate", [simulate_crowd, simulate_chunks, simulate_cc_rasch])
def test_bad_sizes_are_refused_at_once(
    simulate: Callable[..., object], parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        simulate(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"p_good": 0.5}, "shares of worker types must sum to 1, not 1.25"),
        ({"p_good": -0.25, "p_bad": 0.75}, "must not be negative"),
        ({"hard_share": 1.5}, "hard_share must lie between 0 and 1"),
        ({"hard_penalty": -0.1}, "hard_penalty must lie between 0 and 1"),
        ({"accuracies": {"lazy": [0.5, 0.5]}}, "'lazy'; the types are good, majority, minority, bad"),
        ({"accuracies": {"bad": [0.5, 0.5, 0.5]}}, "'bad' must be 2 or 2 values"),
        ({"accuracies": {"bad": [0.5, 1.5]}}, "'bad' must lie between 0 and 1"),
        ({"chunk_tasks": 0}, "chunk_tasks must be a whole number"),
    ],
)
def test_bad_crowds_are_refused_at_once(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        simulate_chunks(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mu_alpha": [1, 2, 3]}, "mu_alpha must be one value or one per class, not 3"),
        ({"mu_beta": float("inf")}, "mu_beta must be finite"),
        ({"sigma_alpha": -1}, "sigma_alpha must not be negative"),
        ({"sigma_beta": [0.5, -1]}, "sigma_beta must not be negative"),
        ({"sigma_mu": -1}, "sigma_mu must not be negative"),
    ],
)
def test_bad_cc_rasch_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        simulate_cc_rasch(**parameters)
