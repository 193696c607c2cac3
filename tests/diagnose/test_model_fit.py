"""Does a model explain the votes: against exact sums, crowds of the very model, and crowds that break it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote.crowd.annotations import Annotations
from rarevote.diagnose import model_fit as module
from rarevote.diagnose.model_fit import model_fit, statistics_of
from rarevote.methods import vote_model
from rarevote.methods.vote_model import SomeVotes, drawn
from rarevote.simulate.crowds import simulate_cc_rasch

Columns = tuple[list[int], list[Any], list[int]]


def cast(chance: Any, n_tasks: int, n_workers: int, per_task: int, seed: int) -> Columns:
    """Votes of workers drawn for each task; ``chance(rng, task, worker)`` gives the probabilities of the labels."""
    rng = np.random.default_rng(seed)
    columns: Columns = ([], [], [])
    for task in range(n_tasks):
        for worker in rng.choice(n_workers, per_task, replace=False).tolist():
            p = chance(task, worker)
            for column, value in zip(columns, (task, worker, int(rng.choice(len(p), p=p))), strict=True):
                column.append(value)
    return columns


def dawid_skene_crowd(seed: int, n_classes: int = 2, n_tasks: int = 800) -> Columns:
    rng = np.random.default_rng(1000 + seed)
    truth = rng.choice(n_classes, n_tasks, p=[0.8, 0.2] if n_classes == 2 else None)
    confusion = np.array([[rng.dirichlet(8 * row + 1.2) for row in np.eye(n_classes)] for _ in range(20)])
    return cast(lambda i, r: confusion[r, truth[i]], n_tasks, 20, 5, seed)


def anchored_crowd(seed: int, n_tasks: int = 800) -> Columns:
    """``sigmoid(alpha_rk - s x)`` with the spreads that the method has by default."""
    rng = np.random.default_rng(1000 + seed)
    truth = rng.choice(2, n_tasks, p=[0.8, 0.2])
    ability, hard = np.array([1.8, 1.0]) + 0.6 * rng.standard_normal((20, 2)), rng.standard_normal(n_tasks) / 2

    def chance(i: int, r: int) -> Any:
        right = 1 / (1 + np.exp(-(ability[r, truth[i]] - hard[i])))
        return [right, 1 - right] if truth[i] == 0 else [1 - right, right]

    return cast(chance, n_tasks, 20, 5, seed)


# --------------------------------------------------------------------------------------------------------------------
# replicates against exact sums


def figures_by_hand(votes: list[list[int]], n_classes: int) -> list[float]:
    several = [said for said in votes if len(said) > 1]
    pairs = [(a, b) for said in several for i, a in enumerate(said) for j, b in enumerate(said) if i != j]
    every = [label for said in votes for label in said]
    joined = []
    for k in range(n_classes):
        asked = [b for a, b in pairs if a == k]
        joined.append(asked.count(k) / len(asked) if asked else np.nan)
    return [
        float(np.mean([len(set(said)) == 1 for said in several])),
        float(np.mean([max(map(said.count, said)) / len(said) for said in several])),
        float(np.mean([a == b for a, b in pairs])),
        *(every.count(k) / len(every) for k in range(n_classes)),
        *joined,
    ]


TINY = ([0, 0, 0, 1, 1, 2, 3, 3], [0, 1, 2, 0, 1, 2, 1, 2], [0, 0, 1, 1, 1, 0, 2, 0])


def test_figures_are_those_counted_by_hand() -> None:
    votes = SomeVotes.of(Annotations.from_arrays(*TINY))
    by_hand = figures_by_hand([[0, 0, 1], [1, 1], [0], [2, 0]], 3)
    np.testing.assert_allclose(statistics_of(votes, votes.label), by_hand, equal_nan=True)


@pytest.mark.prove
@pytest.mark.parametrize("method", ["dawid-skene", "one-coin", "anchored-rasch", "cc-rasch", "class-conditional"])
def test_replicates_have_the_means_of_all_that_can_happen(method: str) -> None:
    """Every class of every task, every vote: enumerated with chances taken from the evidence that ``explain`` shows."""
    task, worker, label = [0, 0, 1, 1, 1], [0, 1, 0, 1, 2], [0, 1, 1, 1, 0]
    estimator = rarevote.fit((task, worker, label), make(method)).method
    posterior = estimator.posterior_ / estimator.posterior_.sum(axis=1, keepdims=True)
    workers = [[0, 1], [0, 1, 2]]
    exact = np.zeros(3 + 2 * 2)
    seen = np.zeros(3 + 2 * 2)
    for classes in product(range(2), repeat=2):
        of_tasks = [
            [chances(estimator, i, r, z) for r in workers[i]] for i, z in enumerate(classes)
        ]  # each: P(label 0), P(label 1)
        weight = posterior[0, classes[0]] * posterior[1, classes[1]]
        for said in product(range(2), repeat=5):
            split = [list(said[:2]), list(said[2:])]
            p = weight
            for i in range(2):
                for number, one in enumerate(split[i]):
                    p *= of_tasks[i][number][one]
            figures = np.array(figures_by_hand(split, 2))
            known = np.isfinite(figures)
            exact[known] += p * figures[known]
            seen[known] += p
    model = estimator.vote_model(SomeVotes.of(estimator.annotations_))
    rng = np.random.default_rng(1)
    drawn = np.array([statistics_of(model.votes, model.draw(rng)) for _ in range(20_000)])
    error = np.nanstd(drawn, axis=0) / np.sqrt(np.isfinite(drawn).sum(axis=0))
    assert (np.abs(np.nanmean(drawn, axis=0) - exact / seen) < 4.5 * error + 1e-9).all()


def make(method: str) -> Any:
    """Without what is drawn for each task, so that votes are independent given the class."""
    if method == "anchored-rasch":
        return rarevote.AnchoredRasch(spread=0.0)
    return rarevote.CCRasch(difficulty=None) if method == "cc-rasch" else method


def chances(estimator: Any, task: int, worker: int, truth: int) -> list[float]:
    """P(label 0) and P(label 1) of a worker on a task of that class, from what the method says of a vote."""
    both = [estimator._evidence(task, np.array([worker]), np.array([label])).of_votes[0, truth] for label in range(2)]
    p = np.exp(both)
    if hasattr(estimator, "errors_") and "worker_votes" in estimator.fitted_parameters:
        p = p * (estimator.fitted_parameters["worker_votes"][worker] > 0)
    return [float(value) for value in p / p.sum()]


def test_the_difficulty_of_an_item_is_drawn_given_its_votes() -> None:
    """The mean chance of being right, with the node's distribution summed by hand."""
    task, worker = [0] * 4 + [1] * 4, [0, 1, 2, 3] * 2
    estimator = rarevote.AnchoredRasch(spread=1.5).fit((task, worker, [0, 0, 0, 0, 0, 1, 0, 1]))
    known = estimator.fitted_parameters
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    model = estimator.vote_model(SomeVotes.of(estimator.annotations_))
    rng = np.random.default_rng(0)
    for truth in range(2):
        expected = []
        for said in ([0, 0, 0, 0], [0, 1, 0, 1]):
            right = 1 / (1 + np.exp(-(known["ability"][:, [truth]] - 1.5 * nodes)))  # (4, G)
            given = weights * np.prod([right[r] if said[r] == truth else 1 - right[r] for r in range(4)], axis=0)
            expected.append(right @ given / given.sum())
        mean = np.mean([model.right(np.array([truth, truth]), rng) for _ in range(20_000)], axis=0)
        np.testing.assert_allclose(mean, np.concatenate(expected), atol=0.01)


def test_the_same_seed_gives_the_same_figures() -> None:
    fitted = rarevote.fit(anchored_crowd(0, 100))
    assert model_fit(fitted.method) == model_fit(fitted.method)


# --------------------------------------------------------------------------------------------------------------------
# crowds of the very model, and others


@pytest.mark.parametrize("seed", range(5))
def test_a_crowd_of_the_model_itself_fits(seed: int) -> None:
    simulated = simulate_cc_rasch(800, 20, votes_per_task=5, mu_alpha=1.3, mu_beta=0.0, imbalance=4, random_state=seed)
    for method, columns in (
        ("dawid-skene", dawid_skene_crowd(seed)),
        ("dawid-skene", dawid_skene_crowd(seed, 3)),
        ("anchored-rasch", anchored_crowd(seed)),
        ("cc-rasch", simulated.arrays),
    ):
        found = model_fit(rarevote.fit(columns, method).method)
        assert found is not None
        assert found.off == (), method
        assert found.pairs == (), method


@pytest.mark.parametrize("method", ["dawid-skene", "anchored-rasch", "one-coin"])
def test_items_of_very_different_difficulty_are_noticed(method: str) -> None:
    """Half of the items everybody gets right, on the other half everybody guesses."""
    rng = np.random.default_rng(0)
    truth, easy = rng.integers(2, size=600), rng.random(600) < 0.5
    columns = cast(lambda i, r: np.eye(2)[truth[i]] if easy[i] else [0.5, 0.5], 600, 20, 7, 0)
    found = model_fit(rarevote.fit(columns, method).method)
    assert found is not None
    first = {one.name: one for one in found.statistics}["unanimous"]
    assert first.is_off
    assert first.observed == pytest.approx(0.5, abs=0.05)
    assert first.predicted < first.observed - 0.1
    assert "votes are unanimous on" in first.description


def test_a_crowd_of_two_schools_is_noticed() -> None:
    """On a third of the items one half of the people says yes and the other no: agreement has two modes."""
    rng = np.random.default_rng(0)
    truth, disputed = rng.integers(2, size=600), rng.random(600) < 0.35

    def chance(i: int, r: int) -> Any:
        says = r % 2 if disputed[i] else truth[i]
        return 0.95 * np.eye(2)[says] + 0.025

    found = model_fit(rarevote.fit(cast(chance, 600, 12, 8, 0), "dawid-skene").method)
    assert found is not None
    assert found.off
    schools = [(pair.first % 2, pair.second % 2) for pair in found.pairs]
    assert schools
    assert all(first == second for first, second in schools)


def copying_crowd(accuracy: float) -> list[tuple[int, str, int]]:
    """Ten people with the same accuracy, of whom the last says what the one before says."""
    rng = np.random.default_rng(3)
    truth = rng.integers(2, size=500)
    rows = []
    for task in range(500):
        said = np.where(rng.random(10) < accuracy, truth[task], 1 - truth[task])
        said[9] = said[8]
        rows += [(task, f"w{worker}", int(said[worker])) for worker in range(10)]
    return rows


@pytest.mark.parametrize("method", ["dawid-skene", "one-coin", "anchored-rasch", "cc-rasch"])
def test_a_pair_that_copies_is_named(method: str) -> None:
    found = model_fit(rarevote.fit(copying_crowd(0.85), method).method)
    assert found is not None
    assert [(pair.first, pair.second) for pair in found.pairs] == [("w8", "w9")]
    assert found.pairs[0].observed == 1.0
    assert found.pairs[0].predicted == pytest.approx(0.85**2 + 0.15**2, abs=0.06)
    assert found.pairs[0].n_common == 500
    assert found.share_in_pairs == pytest.approx(0.2)
    assert "w8 and w9 say the same on 100% of 500 common items" in found.pairs[0].description


def test_where_the_model_follows_the_copies_the_others_agree_too_much() -> None:
    found = model_fit(rarevote.fit(copying_crowd(0.75), "dawid-skene").method)
    assert found is not None
    assert found.pairs
    assert not {name for pair in found.pairs for name in (pair.first, pair.second)} & {"w8", "w9"}


def test_what_is_significant_and_does_not_matter_is_not_told() -> None:
    """So many votes that a difference of a percent is far outside of the replicates."""
    rng = np.random.default_rng(0)
    truth, hard = rng.integers(2, size=30_000), rng.random(30_000) < 0.1
    worker = np.array([rng.permutation(12)[:5] for _ in range(30_000)])
    right = rng.random(worker.shape) < np.where(hard, 0.6, 0.86)[:, None]
    label = np.where(right, truth[:, None], 1 - truth[:, None])
    columns = (np.repeat(np.arange(30_000), 5), worker.ravel(), label.ravel())
    found = model_fit(rarevote.fit(columns, "dawid-skene").method, n_replicates=50)
    assert found is not None
    outside = [one for one in found.statistics if not one.low <= one.observed <= one.high]
    assert outside
    assert found.off == ()


# --------------------------------------------------------------------------------------------------------------------
# edges


def test_methods_that_say_no_chances() -> None:
    assert model_fit(rarevote.fit(TINY, "majority-vote").method) is None


def test_of_a_large_crowd_some_items_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vote_model, "_MAX_VOTES", 1000)
    monkeypatch.setattr(module, "_MAX_MEETINGS", 1000)
    columns = dawid_skene_crowd(0)
    for method in ("dawid-skene", "anchored-rasch", "cc-rasch"):
        found = model_fit(rarevote.fit(columns, method).method, n_replicates=40)
        assert found is not None
        assert found.n_tasks == 200
        assert found.off == ()
    votes = SomeVotes.of(rarevote.read(columns).annotations)
    crowd = rarevote.read(columns).annotations
    for row, number in enumerate(votes.tasks[:20].tolist()):
        own = slice(crowd.task_ptr[number], crowd.task_ptr[number + 1])
        np.testing.assert_array_equal(votes.worker[votes.task == row], crowd.worker[own])
        np.testing.assert_array_equal(votes.label[votes.task == row], crowd.label[own])


@pytest.mark.parametrize("method", ["dawid-skene", "anchored-rasch", "cc-rasch", "one-coin"])
def test_small_and_odd_crowds(method: str) -> None:
    for rows in (
        [("a", "x", 1), ("b", "y", 1)],
        [("a", "x", 1), ("a", "y", 0)],
        [("a", "x", 1), ("a", "x", 0), ("a", "y", 1)],
        [("a", "x", k) for k in range(4)] + [("a", "y", k) for k in range(4)],
    ):
        found = model_fit(rarevote.fit(rows, method).method, n_replicates=5)
        assert found is not None
        assert all(np.isfinite([one.observed, one.predicted]).all() for one in found.statistics)
    named = model_fit(rarevote.fit([("a", "x", "u"), ("a", "y", "v")], method, classes=["u", "v", "w"]).method)
    assert named is not None


def test_gold_is_taken_for_what_it_is() -> None:
    columns = dawid_skene_crowd(1, n_tasks=60)
    estimator = rarevote.fit(columns, "dawid-skene", gold={0: 1, 1: 0}).method
    model = estimator.vote_model(SomeVotes.of(estimator.annotations_))
    drawn = [vote_model.drawn(model._below, np.random.default_rng(seed))[:2].tolist() for seed in range(20)]
    assert all(one == [1, 0] for one in drawn)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 20])
def test_columns_are_drawn_as_by_comparing_all_weights(n_columns: int) -> None:
    rng = np.random.default_rng(n_columns)
    below = np.cumsum(rng.random((300, n_columns)) * (rng.random((300, n_columns)) < 0.7), axis=1)
    rows = rng.integers(300, size=1000)
    u = np.random.default_rng(1).random(1000) * below[rows, -1]
    expected = [min(sum(weight <= x for weight in below[row]), n_columns - 1) for row, x in zip(rows, u, strict=True)]
    assert drawn(below, np.random.default_rng(1), rows).tolist() == expected
