"""One-coin Dawid–Skene against a slow transcription of its definition, and its corners."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from rarevote.errors import NotFittedError, ParameterError
from rarevote.methods.dawid_skene.estimator import OneCoinDawidSkene

Floats = NDArray[np.float64]


def random_crowd(seed: int, n_tasks: int = 40, n_workers: int = 7, n_classes: int = 3) -> pd.DataFrame:
    """Workers of one accuracy each, one of them perfect."""
    rng = np.random.default_rng(seed)
    accuracy = np.append(rng.uniform(0.3, 0.95, n_workers - 1), 1.0)
    truth = rng.integers(0, n_classes, n_tasks)
    rows = []
    for task in range(n_tasks):
        for worker in rng.integers(0, n_workers, rng.integers(1, 7)):
            wrong = (truth[task] + rng.integers(1, max(n_classes, 2))) % n_classes
            rows.append((f"t{task:03d}", f"w{worker}", truth[task] if rng.random() < accuracy[worker] else wrong))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def oracle(
    votes: pd.DataFrame, gold: dict[str, int], n_iter: int = 100, tol: float = 1e-5
) -> tuple[Floats, Floats, Floats, list[float]]:
    """Posterior, skills, prior and bounds, by dense arrays."""
    tasks, workers = sorted(votes["task"].unique()), sorted(votes["worker"].unique())
    classes = sorted(set(votes["label"]) | set(gold.values()))
    K = len(classes)
    i = votes["task"].map(tasks.index).to_numpy()
    r = votes["worker"].map(workers.index).to_numpy()
    y = votes["label"].map(classes.index).to_numpy()
    said = np.eye(K)[y]

    def impose(q: Floats) -> Floats:
        for task, known in gold.items():
            q[tasks.index(task)] = np.eye(K)[classes.index(known)]
        return q

    def accuracies(q: Floats) -> Floats:
        given = q[i, y]
        return np.array([given[r == worker].mean() for worker in range(len(workers))])

    def log_errors(skill: Floats) -> Floats:
        right = np.clip(skill, 1e-10, 1 - 1e-10)[r, None]
        wrong = np.clip((1 - skill) / max(K - 1, 1), 1e-10, 1 - 1e-10)[r, None]
        return np.asarray(np.log(np.where(said == 1, right, wrong)))  # (N, K)

    q = impose(np.array([said[i == task].mean(axis=0) for task in range(len(tasks))]))
    skill, prior = accuracies(q), q.mean(axis=0)
    bounds: list[float] = []
    for _ in range(n_iter):
        terms = log_errors(skill)
        score = np.log(np.maximum(prior, 1e-10)) + np.array(
            [terms[i == task].sum(axis=0) for task in range(len(tasks))]
        )
        q = np.exp(score - score.max(axis=1, keepdims=True))
        q = impose(q / q.sum(axis=1, keepdims=True))
        skill, prior = accuracies(q), q.mean(axis=0)
        entropy = -(q * np.log(np.where(q > 0, q, 1))).sum()
        expected = (q[i] * (log_errors(skill) + np.log(np.maximum(prior, 1e-10)))).sum()
        bounds.append((expected + entropy) / len(votes))
        if len(bounds) > 1 and bounds[-1] - bounds[-2] < tol:
            break
    return q, skill, prior, bounds


@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
@pytest.mark.parametrize("gold", [{}, {"t000": 0, "t009": 0}], ids=["no gold", "gold"])
def test_follows_the_definition(n_classes: int, gold: dict[str, int]) -> None:
    votes = random_crowd(n_classes, n_classes=n_classes)

    model = OneCoinDawidSkene().fit(votes, gold or None)

    posterior, skills, prior, bounds = oracle(votes, gold)
    np.testing.assert_allclose(model.loss_history_, bounds, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.probas_, posterior, rtol=0, atol=1e-8)
    np.testing.assert_allclose(model.skills_, skills, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.priors_, prior, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(8))
def test_objective_never_falls(seed: int) -> None:
    model = OneCoinDawidSkene(300, 1e-13).fit(random_crowd(seed, n_classes=2 + seed % 3))
    history = np.array(model.objective_history_)
    assert np.diff(history).min(initial=0.0) >= -1e-11 * abs(history[-1])


def test_a_worker_is_as_good_at_every_class() -> None:
    model = OneCoinDawidSkene().fit(random_crowd(3))
    skills = model.skills_
    assert (skills.name, skills.index.name) == ("skill", "worker")
    for (worker, label), row in model.errors_.iterrows():
        assert row[label] == pytest.approx(skills[worker])
        for other in set(row.index) - {label}:
            assert row[other] == pytest.approx((1 - skills[worker]) / 2, abs=1e-9)


def test_recovers_the_accuracies_that_made_the_votes() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 3000)
    accuracy = [0.9, 0.75, 0.6, 0.5]
    rows = [
        (task, worker, truth[task] if rng.random() < accuracy[worker] else (truth[task] + rng.integers(1, 4)) % 4)
        for task in range(3000)
        for worker in range(4)
    ]
    model = OneCoinDawidSkene().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    np.testing.assert_allclose(model.skills_, accuracy, atol=0.03)


def test_gold_is_imposed_and_teaches() -> None:
    task, worker, label = ["a", "b", "c", "a", "b", "c"], ["liar"] * 3 + ["honest"] * 3, [1, 0, 1, 0, 1, 0]
    model = OneCoinDawidSkene().fit((task, worker, label), {"a": 0, "b": 1})
    assert model.labels_.to_dict() == {"a": 0, "b": 1, "c": 0}
    assert model.skills_.to_dict()["honest"] > 0.99


def test_corners() -> None:
    def labels(rows: list[tuple[Any, Any, Any]]) -> Any:
        return OneCoinDawidSkene().fit(pd.DataFrame(rows, columns=["task", "worker", "label"])).labels_.to_dict()

    assert labels([("a", "x", "yes"), ("b", "y", "yes")]) == {"a": "yes", "b": "yes"}
    assert labels([("a", "x", 0), ("b", "x", 1)]) == {"a": 0, "b": 1}
    assert labels([("a", "x", 0), ("a", "y", 1), ("a", "z", 1)]) == {"a": 1}
    assert labels([(i, worker, i % 3) for i in range(6) for worker in "xyz"]) == {i: i % 3 for i in range(6)}
    nothing = OneCoinDawidSkene().fit(([], [], []))
    assert (len(nothing.labels_), len(nothing.skills_), len(nothing.errors_)) == (0, 0, 0)
    with pytest.raises(NotFittedError):
        _ = OneCoinDawidSkene().skills_
    with pytest.raises(ParameterError):
        OneCoinDawidSkene(tol=-1).fit(random_crowd(0))
