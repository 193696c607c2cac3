"""Errors that simulated annotators share, against SciPy's bivariate normal distribution and the parameters."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
import pytest
from benchmarks import evidence, shared_errors
from scipy.stats import multivariate_normal, norm

from rarevote.errors import ParameterError
from rarevote.simulate.crowds import DEFAULT_ACCURACIES, SimulatedCrowd, simulate_chunks, simulate_crowd
from rarevote.simulate.shared_errors import REAL
from tests.command import rarevote

SIGMAS = 4.5
STRENGTH = 0.4


@pytest.fixture(scope="module")
def crowd() -> SimulatedCrowd:
    return simulate_crowd(60_000, 40, hard_share=0, shared_errors=STRENGTH, random_state=3)


def right_and_kind(crowd: SimulatedCrowd) -> tuple[Any, Any]:
    assert crowd.worker_type is not None
    return crowd.label == crowd.truth[crowd.task], crowd.worker_type[crowd.worker]


def test_every_annotator_is_as_accurate_as_without_shared_errors(crowd: SimulatedCrowd) -> None:
    right, kind = right_and_kind(crowd)
    for (name, row), k in itertools.product(DEFAULT_ACCURACIES.items(), range(2)):
        hits = right[(kind == name) & (crowd.truth[crowd.task] == k)]
        # Votes on one task depend on each other: about three of the same type more than on their own.
        error = np.sqrt(3 * row[k] * (1 - row[k]) / len(hits))
        assert abs(hits.mean() - row[k]) < SIGMAS * error


@pytest.mark.parametrize(("first", "second"), [("good", "good"), ("good", "majority"), ("minority", "bad")])
def test_two_votes_on_a_task_are_right_together_as_two_correlated_normals_are(
    crowd: SimulatedCrowd, first: str, second: str
) -> None:
    right, kind = right_and_kind(crowd)
    start = np.flatnonzero(np.diff(crowd.task, prepend=-1))
    has_two = np.diff(start, append=len(crowd.task)) > 1
    one, two = start[has_two], start[has_two] + 1  # one pair a task: tasks are independent of each other
    for k in range(2):
        chosen = (kind[one] == first) & (kind[two] == second) & (crowd.truth[crowd.task[one]] == k)
        both = (right[one] & right[two])[chosen]
        limits = norm.ppf([DEFAULT_ACCURACIES[first][k], DEFAULT_ACCURACIES[second][k]])
        expected = float(multivariate_normal(cov=[[1, STRENGTH], [STRENGTH, 1]]).cdf(limits))
        assert abs(both.mean() - expected) < SIGMAS * np.sqrt(expected * (1 - expected) / len(both))


def test_the_shared_difficulty_says_who_errs(crowd: SimulatedCrowd) -> None:
    right, kind = right_and_kind(crowd)
    assert crowd.shared_difficulty is not None
    assert crowd.shared_difficulty.std() == pytest.approx(1, abs=0.02)
    near = np.abs(crowd.shared_difficulty[crowd.task] - 1.5) < 0.05
    hits = right[near & (kind == "good")]
    expected = norm.cdf((norm.ppf(0.9) - np.sqrt(STRENGTH) * 1.5) / np.sqrt(1 - STRENGTH))
    assert hits.mean() == pytest.approx(expected, abs=0.06)


def test_wrong_votes_fall_on_the_same_wrong_class() -> None:
    crowd = simulate_crowd(60_000, 30, n_classes=4, imbalance=1, hard_share=0, shared_errors=0.5, random_state=5)
    wrong = crowd.label != crowd.truth[crowd.task]
    task, label = crowd.task[wrong], crowd.label[wrong]
    first = np.flatnonzero(np.diff(task, prepend=-1))
    pairs = first[:-1][np.diff(first) > 1]
    alike = label[pairs] == label[pairs + 1]
    expected = 0.5**2 + (1 - 0.5**2) / 3  # both follow the task's own wrong class, or any two alike by chance
    assert alike.mean() == pytest.approx(expected, abs=SIGMAS * np.sqrt(0.25 / len(alike)))


def test_zero_is_the_crowd_of_before_and_a_strength_changes_only_answers() -> None:
    plain = simulate_crowd(12_000, 30, random_state=4)
    zero = simulate_crowd(12_000, 30, shared_errors=0, random_state=4)
    shared = simulate_crowd(12_000, 30, shared_errors=0.3, random_state=4)
    assert plain.shared_difficulty is None
    assert np.array_equal(plain.label, zero.label)
    for name in ("task", "worker", "truth", "hard", "accuracy", "worker_type"):
        assert np.array_equal(getattr(plain, name), getattr(shared, name))
    assert not np.array_equal(plain.label, shared.label)


def test_chunks_join_to_the_same_crowd() -> None:
    whole = simulate_crowd(25_000, 20, n_classes=3, shared_errors="real", random_state=2)
    named = simulate_crowd(25_000, 20, n_classes=3, shared_errors=REAL, random_state=2)
    chunks = list(simulate_chunks(25_000, 20, n_classes=3, shared_errors="real", random_state=2, chunk_tasks=1))
    assert len(chunks) == 3
    assert np.array_equal(whole.label, named.label)
    for name in ("label", "shared_difficulty"):
        assert np.array_equal(np.concatenate([getattr(chunk, name) for chunk in chunks]), getattr(whole, name))


@pytest.mark.parametrize("given", [-0.1, 1, 1.5, "realistic", None, float("nan"), True, [0.2]])
def test_bad_strengths_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match='shared_errors must be "real" or a number from 0 to below 1'):
        simulate_chunks(shared_errors=given)


def test_command_line(tmp_path: Any) -> None:
    for folder, strength in (("a", "real"), ("b", str(REAL)), ("c", "0")):
        rarevote("simulate", "--out", tmp_path / folder, "--tasks", "200", "--seed", "1", "--shared-errors", strength)
    rarevote("simulate", "--out", tmp_path / "d", "--tasks", "200", "--seed", "1")
    labels = {folder: (tmp_path / folder / "labels.csv").read_bytes() for folder in "abcd"}
    assert labels["a"] == labels["b"] != labels["c"] == labels["d"]
    refused = rarevote("simulate", "--out", tmp_path / "e", "--shared-errors", "much", code=2)
    assert 'shared_errors must be "real" or a number from 0 to below 1' in refused.stderr


def test_the_fit_finds_the_strength_that_made_a_crowd() -> None:
    crowd = simulate_crowd(1500, 30, imbalance=4, votes_per_task=6, shared_errors=0.35, random_state=6)
    votes = shared_errors.Votes(crowd.task, crowd.worker, crowd.truth[crowd.task], crowd.label)
    assert votes.strength() == pytest.approx(0.35, abs=0.06)
    independent = simulate_crowd(1500, 30, imbalance=4, votes_per_task=6, hard_share=0, random_state=6)
    votes = shared_errors.Votes(independent.task, independent.worker, independent.truth[crowd.task], independent.label)
    assert votes.strength() < 0.04


def test_real_is_what_was_measured() -> None:
    rows = {row["dataset"]: row for row in evidence.read("shared_errors")}
    assert float(rows["median of groups"]["strength"]) == pytest.approx(REAL, abs=0.005)


@pytest.mark.skipif("RAREVOTE_DATA" not in os.environ, reason="needs the benchmark datasets")
def test_a_small_dataset_is_fitted_as_recorded() -> None:
    rows = {row["dataset"]: row for row in evidence.read("shared_errors")}
    assert shared_errors.fitted("loneliness-technology")["strength"] == pytest.approx(
        float(rows["loneliness-technology"]["strength"]), abs=1e-3
    )
