"""Dawid–Skene against a slow transcription of its definition, brute force, and the corners of its interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import product
from math import exp, inf, log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.em import local as local_engine
from rarevote.em.model import Shard
from rarevote.errors import ConvergenceWarning, NotFittedError, ParameterError, RarevoteWarning
from rarevote.methods.dawid_skene.estimator import DawidSkene, OneCoinDawidSkene
from rarevote.methods.dawid_skene.model import DawidSkeneModel, DawidSkeneShared

# What the kernels are compared with is beside them in NumPy; here they themselves are held to oracles.
pytestmark = pytest.mark.usefixtures("compiled")

Vote = tuple[Any, Any, Any]
Columns = tuple[list[Any], list[Any], list[Any]]
Counts = dict[tuple[Any, Any], dict[Any, float]]


def random_crowd(seed: int, n_tasks: int = 30, n_workers: int = 6, n_classes: int = 3) -> list[Vote]:
    """Votes of workers who are better at some classes than at others; some pairs repeat."""
    rng = np.random.default_rng(seed)
    confusion = rng.dirichlet(np.ones(n_classes), size=(n_workers, n_classes)) + 1.5 * np.eye(n_classes)
    confusion /= confusion.sum(axis=2, keepdims=True)
    truth = rng.integers(0, n_classes, n_tasks)
    votes = []
    for task in range(n_tasks):
        for worker in rng.integers(0, n_workers, rng.integers(1, 6)):
            label = rng.choice(n_classes, p=confusion[worker, truth[task]])
            votes.append((f"t{task:03d}", f"w{worker}", f"c{label}"))
    return votes


def columns(votes: list[Vote]) -> Columns:
    task, worker, label = (list(column) for column in zip(*votes, strict=True))
    return task, worker, label


def frame(votes: list[Vote]) -> pd.DataFrame:
    return pd.DataFrame(votes, columns=["task", "worker", "label"])


# --------------------------------------------------------------------------------------------------------------------
# the definition, slowly


class Oracle(NamedTuple):
    posterior: dict[Any, dict[Any, float]]
    errors: Counts
    prior: dict[Any, float]
    bounds: list[float]


def oracle(
    votes: list[Vote],
    gold: dict[Any, Any] | None = None,
    first_counts: Callable[[Counts], Counts] | None = None,
    n_iter: int = 100,
    tol: float = 1e-5,
) -> Oracle:
    """Dawid–Skene as SPEC and crowd-kit define it, in dictionaries."""
    classes = sorted({label for _, _, label in votes} | set((gold or {}).values()))
    tasks = sorted({task for task, _, _ in votes})

    def impose(q: dict[Any, dict[Any, float]]) -> dict[Any, dict[Any, float]]:
        for task, known in (gold or {}).items():
            q[task] = {k: float(k == known) for k in classes}
        return q

    def maximise(q: dict[Any, dict[Any, float]], first: bool) -> Counts:
        counts: Counts = {}
        for task, worker, label in votes:
            row = counts.setdefault((worker, label), dict.fromkeys(classes, 0.0))
            for k in classes:
                row[k] += q[task][k]
        if first and first_counts is not None:
            counts = first_counts(counts)
        clipped = {key: {k: max(row[k], 1e-10) for k in classes} for key, row in counts.items()}
        return {
            (worker, label): {
                k: row[k] / sum(other[k] for (who, _), other in clipped.items() if who == worker) for k in classes
            }
            for (worker, label), row in clipped.items()
        }

    def shares(task: Any) -> dict[Any, float]:
        given = [label for name, _, label in votes if name == task]
        return {k: given.count(k) / len(given) for k in classes}

    q = impose({task: shares(task) for task in tasks})
    prior = {k: sum(q[task][k] for task in tasks) / len(tasks) for k in classes}
    errors = maximise(q, True)
    bounds: list[float] = []
    for _ in range(n_iter):
        scores = {task: {k: log(max(prior[k], 1e-10)) for k in classes} for task in tasks}
        for task, worker, label in votes:
            for k in classes:
                scores[task][k] += log(errors[worker, label][k])
        q = {}
        for task in tasks:
            top = max(scores[task].values())
            odds = {k: exp(scores[task][k] - top) for k in classes}
            q[task] = {k: odds[k] / sum(odds.values()) for k in classes}
        q = impose(q)
        prior = {k: sum(q[task][k] for task in tasks) / len(tasks) for k in classes}
        errors = maximise(q, False)
        bound = sum(
            q[task][k] * (log(errors[worker, label][k]) + log(max(prior[k], 1e-10)))
            for task, worker, label in votes
            for k in classes
        )
        bound -= sum(q[task][k] * log(q[task][k]) for task in tasks for k in classes if q[task][k] > 0)
        bounds.append(bound / len(votes))
        if len(bounds) > 1 and bounds[-1] - bounds[-2] < tol:
            break
    return Oracle(q, errors, prior, bounds)


def assert_same(model: DawidSkene, expected: Oracle) -> None:
    """``model`` was fitted on a pandas frame."""
    np.testing.assert_allclose(model.loss_history_, expected.bounds, rtol=0, atol=1e-8)
    for task, row in expected.posterior.items():
        np.testing.assert_allclose(model.probas_.loc[task, list(row)], list(row.values()), rtol=0, atol=1e-8)
    errors = model.errors_
    assert set(errors.index) == set(expected.errors)
    for key, row in expected.errors.items():
        np.testing.assert_allclose(errors.loc[key, list(row)], list(row.values()), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.priors_[list(expected.prior)], list(expected.prior.values()), rtol=0, atol=1e-9)


# Up to five, each number of classes is compiled on its own.
@pytest.mark.parametrize("n_classes", [1, 2, 3, 7, pytest.param(5, marks=pytest.mark.prove)])
@pytest.mark.parametrize("with_gold", [False, True])
def test_follows_the_definition(n_classes: int, with_gold: bool) -> None:
    votes = random_crowd(n_classes, n_classes=n_classes)
    gold = {"t000": "c0", "t007": f"c{n_classes - 1}"} if with_gold else None

    model = DawidSkene().fit(frame(votes), gold and pd.Series(gold))

    assert_same(model, oracle(votes, gold))


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("n_iter", [1, 2, 5])
def test_counts_iterations_as_crowd_kit_does(n_iter: int) -> None:
    votes = random_crowd(11)

    model = DawidSkene(n_iter).fit(frame(votes))

    assert len(model.loss_history_) == model.n_iter_ == n_iter
    assert_same(model, oracle(votes, n_iter=n_iter))


@pytest.mark.parametrize("estimator", [DawidSkene, OneCoinDawidSkene])
def test_a_tolerance_of_zero_never_stops(estimator: type[DawidSkene | OneCoinDawidSkene]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # none: it was asked for
        fitted = estimator(n_iter=60, tol=0).fit(columns(random_crowd(1)))
    assert (fitted.n_iter_, fitted.converged_) == (60, False)


def test_says_when_the_iterations_do_not_suffice() -> None:
    with pytest.warns(ConvergenceWarning, match="raise n_iter"):
        model = DawidSkene(2).fit(columns(random_crowd(1)))
    assert not model.converged_


# --------------------------------------------------------------------------------------------------------------------
# the objective


def log_likelihood_by_enumeration(
    votes: list[Vote], errors: pd.DataFrame, prior: pd.Series, gold: dict[Any, Any]
) -> float:
    """Log of the sum over all assignments of classes to tasks."""
    tasks = sorted({task for task, _, _ in votes})
    of_vote = {key: dict(row) for key, row in errors.iterrows()}
    choices = [[gold[task]] if task in gold else list(prior.index) for task in tasks]
    total = 0.0
    for assignment in product(*choices):
        truth = dict(zip(tasks, assignment, strict=True))
        chance = 1.0
        for task in tasks:
            chance *= prior[truth[task]]
        for task, worker, label in votes:
            chance *= of_vote[worker, label][truth[task]]
        total += chance
    return log(total)


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("smoothing", [0.0, 0.7])
@pytest.mark.parametrize("gold", [{}, {"t001": "c2"}])
def test_objective_is_the_observed_data_likelihood(smoothing: float, gold: dict[Any, Any]) -> None:
    votes = random_crowd(3, n_tasks=6, n_workers=3)
    after_one = DawidSkene(1, smoothing=smoothing).fit(frame(votes), gold or None)
    after_two = DawidSkene(2, tol=0, smoothing=smoothing).fit(frame(votes), gold or None)

    expected = log_likelihood_by_enumeration(votes, after_one.errors_, after_one.priors_, gold)
    if smoothing:
        expected += smoothing * np.log(after_one.errors_.to_numpy()).sum()

    assert after_two.objective_history_[1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "options",
    [{}, {"smoothing": 0.5}, {"prior": "uniform"}, {"prior": [0.2, 0.3, 0.5]}, {"bound": "exact"}],
    ids=str,
)
def test_objective_never_falls(seed: int, options: dict[str, Any]) -> None:
    votes = columns(random_crowd(seed, n_tasks=60))
    model = DawidSkene(300, 1e-12, **options).fit(votes, {"t000": "c0"} if seed % 2 else None)
    history = np.array(model.objective_history_)
    assert np.diff(history).min(initial=0.0) >= -1e-11 * abs(history[-1])


def test_exact_bound_goes_on_to_the_optimum() -> None:
    votes = frame(random_crowd(5, n_tasks=80))
    model = DawidSkene(5000, 1e-15, bound="exact").fit(votes)
    errors, prior = model.errors_, model.priors_

    np.testing.assert_allclose(model.loss_history_, np.array(model.objective_history_) / len(votes))
    np.testing.assert_allclose(prior, model.probas_.mean(), atol=1e-9)
    for task, given in votes.groupby("task"):
        odds = prior.copy()
        for worker, label in zip(given["worker"], given["label"], strict=True):
            odds *= errors.loc[(worker, label)]
        np.testing.assert_allclose(model.probas_.loc[task], odds / odds.sum(), atol=1e-5)


def test_a_step_taken_again_cannot_fall() -> None:
    votes = columns(random_crowd(8))
    crowd = Annotations.from_arrays(*votes)
    shard = Shard(crowd.task_ptr, crowd.worker, crowd.label, np.empty(0, np.int32))
    model = DawidSkeneModel(crowd.n_workers, 3, crowd.n_annotations, np.log([0.2, 0.3, 0.5]))
    rng = np.random.default_rng(0)
    shared = model.update(model.start(), _stats(model, shard, model.start(), refresh=False), 0.0)
    spoiled = model._maximise(_stats(model, shard, shared).counts * rng.uniform(0.999, 1.001, (6, 3, 3)), None)
    shared = DawidSkeneShared(spoiled, shared.log_prior, False)
    stats = _stats(model, shard, shared)

    # The better of old and new, worker by worker: no worse than either.
    kept = model.update(shared, stats, 1.0)
    for other in (shared, model.update(shared, stats, 0.0)):
        gain = stats.counts * (kept.log_confusion - other.log_confusion)
        assert gain.sum(axis=(1, 2)).min() >= 0.0
        assert stats.class_mass @ (kept.log_prior - other.log_prior) >= 0.0


def _stats(model: DawidSkeneModel, shard: Shard, shared: DawidSkeneShared, refresh: bool = True) -> Any:
    local, out, stats = model.start_local(shard), model.start_local(shard), model.empty_stats(shared)
    model.step(shared, shard, local, out, stats, refresh, 0.0)
    assert model.gradient_norm(shared, stats) == 0.0
    return stats


# --------------------------------------------------------------------------------------------------------------------
# gold, symmetries, recovery


def test_gold_is_imposed_and_teaches() -> None:
    # Two workers contradict each other on every task: only gold can tell who is right.
    votes = [(f"t{i}", "liar", "yes" if i % 2 else "no") for i in range(10)]
    votes += [(f"t{i}", "honest", "no" if i % 2 else "yes") for i in range(10)]
    gold = {"t0": "yes", "t1": "no", "t2": "yes"}

    model = DawidSkene().fit(frame(votes), pd.Series(gold))

    assert model.labels_.to_dict() == {f"t{i}": "no" if i % 2 else "yes" for i in range(10)}
    assert all(model.probas_.loc[task, known] == 1.0 for task, known in gold.items())
    # Gold against all votes stays gold.
    stubborn = DawidSkene().fit(frame([("a", "x", 0), ("a", "y", 0), ("b", "x", 1), ("b", "y", 1)]), {"a": 1})
    assert stubborn.labels_.to_dict() == {"a": 1, "b": 1}


def test_order_and_names_do_not_matter() -> None:
    votes = random_crowd(21)
    plain = DawidSkene().fit(columns(votes))
    shuffled = [votes[i] for i in np.random.default_rng(0).permutation(len(votes))]
    again = DawidSkene().fit(columns(shuffled))
    np.testing.assert_allclose(again.posterior_, plain.posterior_, atol=1e-12)

    renamed = {"c0": "z", "c1": "y", "c2": "x"}
    mirrored = DawidSkene().fit(columns([(task, worker, renamed[label]) for task, worker, label in votes]))
    np.testing.assert_allclose(mirrored.posterior_[:, ::-1], plain.posterior_, atol=1e-12)


def test_shards_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = columns(random_crowd(22, n_tasks=300))
    whole = DawidSkene().fit(votes, {"t003": "c1"})
    monkeypatch.setattr(local_engine, "_ANNOTATIONS_PER_SHARD", 100)
    one, two = (DawidSkene(n_jobs=n_jobs).fit(votes, {"t003": "c1"}) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.posterior_, two.posterior_)
    np.testing.assert_allclose(one.posterior_, whole.posterior_, atol=1e-10)


def test_recovers_the_confusion_matrices_that_made_the_votes() -> None:
    rng = np.random.default_rng(4)
    truth = rng.choice(2, size=4000, p=[0.9, 0.1])
    confusion = {"a": [[0.95, 0.05], [0.4, 0.6]], "b": [[0.7, 0.3], [0.1, 0.9]], "c": [[0.9, 0.1], [0.2, 0.8]]}
    confusion |= {"d": [[0.85, 0.15], [0.3, 0.7]], "e": [[0.8, 0.2], [0.15, 0.85]]}
    votes = [
        (task, worker, int(rng.random() < matrix[truth[task]][1]))
        for task in range(4000)
        for worker, matrix in confusion.items()
    ]
    model = DawidSkene(2000, 1e-12, bound="exact").fit(frame(votes))
    for worker, matrix in confusion.items():
        for true, said in product((0, 1), (0, 1)):
            assert model.errors_.loc[(worker, said), true] == pytest.approx(matrix[true][said], abs=0.06)
    assert model.priors_[1] == pytest.approx(0.1, abs=0.03)


# --------------------------------------------------------------------------------------------------------------------
# parameters, layouts, corners


@pytest.mark.parametrize(
    "options",
    [
        {"n_iter": -1},
        {"tol": -1.0},
        {"initial_error_strategy": "replace"},
        {"smoothing": -0.1},
        {"smoothing": inf},
        {"bound": "true"},
        {"prior": "empirical"},
        {"prior": [0.5, 0.5]},
    ],
    ids=str,
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        DawidSkene(**options).fit(columns(random_crowd(0)))


def test_prior_can_be_fixed() -> None:
    votes = columns(random_crowd(41))
    given = {"c0": 0.7, "c1": 0.2, "c2": 0.1}
    assert DawidSkene(prior=given).fit(votes).priors_.to_dict() == pytest.approx(given)
    np.testing.assert_allclose(DawidSkene(prior="uniform").fit(votes).priors_["prior"], 1 / 3)


def test_smoothing_keeps_every_probability_positive() -> None:
    votes = frame([("a", "x", 0), ("a", "y", 0), ("b", "x", 0), ("b", "y", 1), ("c", "z", 1)])
    plain, smooth = DawidSkene().fit(votes), DawidSkene(smoothing=1.0).fit(votes)
    assert list(plain.errors_.index) == [("x", 0), ("y", 0), ("y", 1), ("z", 1)]
    assert list(smooth.errors_.index) == [(worker, label) for worker in "xyz" for label in (0, 1)]
    for errors in (plain.errors_, smooth.errors_):
        np.testing.assert_allclose(errors.groupby("worker").sum(), 1.0)
    assert smooth.errors_.to_numpy().min() > 0.1


def test_layouts_are_those_of_crowd_kit() -> None:
    votes = pd.DataFrame({"task": [7, 7, 9], "worker": ["x", "y", "x"], "label": pd.Series([2, 1, 2], dtype="int8")})
    model = DawidSkene().fit(votes)
    errors = model.errors_
    assert errors.index.names == ["worker", "label"]
    assert errors.columns.tolist() == [1, 2]
    assert errors.columns.name is None
    assert list(errors.index) == [("x", 2), ("y", 1)]
    assert model.priors_.name == "prior"
    assert model.priors_.index.name == "label"
    assert model.probas_.columns.name == "label"
    assert model.labels_.name == "agg_label"


def test_nothing_before_fit() -> None:
    for name in ("errors_", "priors_", "objective_history_"):
        with pytest.raises(NotFittedError):
            getattr(DawidSkene(), name)


def test_corners() -> None:
    assert DawidSkene().fit(([], [], [])).labels_.to_dict() == {}
    assert len(DawidSkene().fit(([], [], [])).errors_) == 0
    assert DawidSkene().fit(([], [], [])).objective_history_ == []

    one_class = DawidSkene().fit(frame([("a", "x", "yes"), ("b", "x", "yes"), ("b", "y", "yes")]))
    assert one_class.labels_.to_dict() == {"a": "yes", "b": "yes"}
    np.testing.assert_array_equal(one_class.probas_, 1.0)

    one_worker = DawidSkene().fit(frame([("a", "x", 0), ("b", "x", 1)]))
    assert one_worker.labels_.to_dict() == {"a": 0, "b": 1}

    one_task = DawidSkene().fit(frame([("a", "x", 0), ("a", "y", 1), ("a", "z", 1)]))
    assert one_task.labels_.to_dict() == {"a": 1}

    unanimous = DawidSkene().fit(frame([(task, worker, task % 3) for task in range(6) for worker in "xyz"]))
    assert unanimous.labels_.to_dict() == {task: task % 3 for task in range(6)}

    unseen = DawidSkene().fit(frame([("a", "x", 0), ("b", "x", 1)]), classes=[0, 1, 2])
    assert unseen.probas_[2].max() < 1e-6


def test_many_votes_on_one_task_do_not_overflow() -> None:
    # Few workers who vote often: more than 256 would be another type of number, compiled anew.
    votes = [("big", number % 250, int(number < 3000)) for number in range(5000)]
    votes += [(f"t{i}", number % 250, i % 2) for i in range(4) for number in range(5000)]
    posterior = DawidSkene().fit(columns(votes)).posterior_
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_about_as_many_classes_as_tasks_is_said() -> None:
    """23 of 60 unanimous labels of such a crowd were changed without a word."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 60, 60)
    task = np.repeat(np.arange(60), 3)
    worker = np.concatenate([rng.permutation(20)[:3] for _ in range(60)])
    label = np.where(rng.random(180) < 0.8, truth[task], rng.integers(0, 60, 180))
    with pytest.warns(RarevoteWarning, match=r"180 votes of 20 workers are few for \d\d classes: DawidS"):
        DawidSkene().fit((task, worker, label))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OneCoinDawidSkene().fit((task, worker, label))
        DawidSkene().fit((task, worker, label % 8))  # more than a vote for each worker and class
        # Classes that nobody voted for have nothing to be learned.
        DawidSkene().fit((task, worker, label % 8), classes=range(60))


@pytest.mark.parametrize(("n_workers", "changed"), [(100, True), (20, False)])
def test_few_votes_for_each_worker_and_class_are_said_whatever_the_tasks(n_workers: int, changed: bool) -> None:
    """Ten tasks a class do not help whoever has half a vote for each class: a tenth of unanimous labels changed."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 20, 200)
    task = np.repeat(np.arange(200), 5)
    worker = np.concatenate([rng.choice(n_workers, 5, replace=False) for _ in range(200)])
    label = np.where(rng.random(1000) < 0.8, truth[task], rng.integers(0, 20, 1000))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = DawidSkene().fit((task, worker, label)).posterior_.argmax(axis=1)
    votes = label.reshape(200, 5)
    unanimous = (votes == votes[:, :1]).all(axis=1)
    assert (found[unanimous] != votes[unanimous, 0]).any() == changed
    said = [str(one.message) for one in caught]
    assert [text[:58] for text in said] == ["1,000 votes of 100 workers are few for 20 classes: DawidSk"] * changed


def test_a_class_that_nobody_voted_for_gets_no_task() -> None:
    """It did where two votes on a task were impossible under every other class: prior and votes were kept off zero."""
    task = [number for number in range(12) for _ in "xyz"] + [12] * 3
    label = [("a", "b", "c")[number % 3] for number in range(12) for _ in "xyz"] + ["a", "b", "c"]
    model = DawidSkene().fit((task, ["x", "y", "z"] * 13, label), classes=["a", "b", "c", "none"])
    assert model.posterior_[:, 3].max() < 1e-12


def test_one_posterior_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a checkpoint three are kept, without one alone: not a bit of the result tells."""
    monkeypatch.setattr(local_engine, "_ANNOTATIONS_PER_SHARD", 30)
    data = columns(random_crowd(5, n_tasks=80))
    alone = DawidSkene(40, 0).fit(data)
    saved = DawidSkene(40, 0).fit(data, checkpoint=tmp_path / "fit", checkpoint_every=3)
    assert alone.posterior_.tobytes() == saved.posterior_.tobytes()
    assert alone.loss_history_ == saved.loss_history_


@pytest.mark.prove
@pytest.mark.parametrize("kind", [DawidSkene, OneCoinDawidSkene])
def test_single_precision_is_near(kind: type[DawidSkene]) -> None:
    data = columns(random_crowd(6, n_tasks=200))
    double, single = kind(30, 0).fit(data), kind(30, 0, dtype="float32").fit(data)
    assert single.posterior_.dtype == np.float32
    np.testing.assert_allclose(single.posterior_, double.posterior_, atol=1e-5)
    assert single.labels_.to_dict() == double.labels_.to_dict()
    with pytest.raises(ParameterError, match=r"dtype must be .* got 'float16'"):
        kind(dtype="float16").fit(data)


def test_a_vote_for_each_worker_and_class_is_few_and_one_more_is_not() -> None:
    votes = np.ones((2, 5), dtype=np.int64)
    with pytest.warns(RarevoteWarning, match="10 votes of 2 workers are few for 5 classes"):
        DawidSkene()._warn_of_few_votes(votes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DawidSkene()._warn_of_few_votes(votes + np.eye(2, 5, dtype=np.int64))
        DawidSkene()._warn_of_few_votes(votes[:, :4])  # four classes are not many


def test_without_smoothing_the_objective_is_the_log_likelihood_alone() -> None:
    shared = DawidSkeneShared(np.log([[[0.9, 0.2], [0.1, 0.8]]]), np.log([0.5, 0.5]), False)
    for smoothing, expected in ((0.0, -3.0), (2.0, -3.0 + 2.0 * log(0.9 * 0.2 * 0.1 * 0.8))):
        model = DawidSkeneModel(1, 2, 3, shared.log_prior, smoothing=smoothing)
        stats = model.empty_stats(shared)
        stats.scalars[0] = -3.0
        assert model.objective(shared, stats) == pytest.approx(expected)


def test_the_average_vote_weighs_workers_by_their_votes_and_skips_labels_that_they_never_gave() -> None:
    confusion = np.array([[[0.9, 0.2], [0.1, 0.8]], [[1.0, 1.0], [1.0, 1.0]]])  # worker, label, truth
    votes = np.array([[2, 1], [3, 0]])  # the second worker never gave the second label
    shared, prior = DawidSkeneShared(np.log(confusion), np.log([0.5, 0.5]), False), np.log([0.5, 0.5])
    plain = DawidSkeneModel(2, 2, 6, prior).log_average(shared, votes)
    np.testing.assert_allclose(np.exp(plain), [[0.95, 0.6], [0.05, 0.4]])
    smoothed = DawidSkeneModel(2, 2, 6, prior, smoothing=1.0).log_average(shared, votes)
    np.testing.assert_allclose(np.exp(smoothed), [[0.95, 0.6], [0.55, 0.9]])


def test_the_prior_is_learned_unless_it_is_fixed() -> None:
    learned, kept = DawidSkeneModel(1, 2, 4, np.log([0.5, 0.5])), DawidSkeneModel(1, 2, 4, np.log([0.5, 0.5]), False)
    for model, expected in ((learned, [0.25, 0.75]), (kept, [0.5, 0.5])):
        stats = model.empty_stats(model.start())
        stats.counts[0] = [[1.0, 0.0], [0.0, 3.0]]
        stats.class_mass[:] = [1.0, 3.0]
        np.testing.assert_allclose(np.exp(model.update(model.start(), stats, 0.0).log_prior), expected)
