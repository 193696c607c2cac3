"""GLAD against a slow transcription of its objective, finite differences, and the corners of its interface."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import optimize

from rarevote.crowd.annotations import Annotations
from rarevote.em import local as local_engine
from rarevote.em.model import Shard
from rarevote.errors import ConvergenceWarning, NotFittedError, ParameterError
from rarevote.methods.glad import plain as plain_passes
from rarevote.methods.glad.estimator import GLAD
from rarevote.methods.glad.model import GLADLocal, GLADModel, GLADShared, best_scale

# What the kernels are compared with is beside them in NumPy; here they themselves are held to oracles.
pytestmark = pytest.mark.usefixtures("compiled")

Floats = NDArray[np.float64]


def random_crowd(
    seed: int, n_tasks: int = 30, n_workers: int = 8, n_classes: int = 3, flip: bool = False
) -> pd.DataFrame:
    """Votes drawn from the model; some pairs repeat. With ``flip`` a worker is mostly wrong."""
    rng = np.random.default_rng(seed)
    alpha, b = rng.normal(1.0, 0.8, n_workers), rng.normal(0.5, 0.8, n_tasks)
    if flip:
        alpha[0] = -2.0
    truth = rng.integers(0, n_classes, n_tasks)
    rows = []
    for task in range(n_tasks):
        for worker in rng.integers(0, n_workers, rng.integers(2, 9)):
            right = rng.random() < 1 / (1 + np.exp(-alpha[worker] * np.exp(b[task])))
            wrong = (truth[task] + rng.integers(1, max(n_classes, 2))) % n_classes
            rows.append((f"t{task:03d}", f"w{worker}", truth[task] if right else wrong))
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


# --------------------------------------------------------------------------------------------------------------------
# the definition, slowly


class Oracle:
    """``F`` and the posterior, by dense arrays."""

    def __init__(
        self,
        votes: pd.DataFrame,
        gold: dict[str, int] | None = None,
        prior: Floats | None = None,
        alpha_mean: Any = 1.0,
        b_mean: Any = 1.0,
    ) -> None:
        self.tasks, self.workers = sorted(votes["task"].unique()), sorted(votes["worker"].unique())
        classes = sorted(votes["label"].unique())
        self.K = len(classes)
        self.i = votes["task"].map(self.tasks.index).to_numpy()
        self.r = votes["worker"].map(self.workers.index).to_numpy()
        self.said = np.eye(self.K)[votes["label"].map(classes.index).to_numpy()]
        self.log_prior = np.log(np.full(self.K, 1 / self.K) if prior is None else prior)
        self.alpha_mean, self.b_mean = alpha_mean, b_mean
        self.gold = {self.tasks.index(task): classes.index(known) for task, known in (gold or {}).items()}

    def log_joint(self, alpha: Floats, b: Floats) -> Floats:
        x = (alpha[self.r] * np.exp(b[self.i]))[:, None]
        right, wrong = -np.logaddexp(0, -x), -np.logaddexp(0, x) - np.log(max(self.K - 1, 1))
        terms = np.where(self.said == 1, right, wrong)
        score = np.tile(self.log_prior, (len(self.tasks), 1))
        np.add.at(score, self.i, terms)
        return score

    def posterior(self, alpha: Floats, b: Floats) -> Floats:
        score = self.log_joint(alpha, b)
        q = np.exp(score - score.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        for task, known in self.gold.items():
            q[task] = np.eye(self.K)[known]
        return np.asarray(q)

    def objective(self, alpha: Floats, b: Floats) -> float:
        score = self.log_joint(alpha, b)
        per_task = np.logaddexp.reduce(score, axis=1)
        for task, known in self.gold.items():
            per_task[task] = score[task, known]
        penalty = ((alpha - self.alpha_mean) ** 2).sum() + ((b - self.b_mean) ** 2).sum()
        return float(per_task.sum() - 0.5 * penalty)

    def flat(self, point: Floats) -> float:
        return self.objective(point[: len(self.workers)], point[len(self.workers) :])


CASES: list[dict[str, Any]] = [
    {},
    {"n_classes": 2},
    {"n_classes": 5},
    {"n_classes": 2, "flip": True},
    {"n_classes": 1},
    {"n_workers": 1, "n_classes": 2},
    {"n_tasks": 1},
    {"n_tasks": 150, "n_workers": 40},
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("with_gold", [False, True])
def test_reaches_a_stationary_point_of_the_objective(case: dict[str, Any], with_gold: bool) -> None:
    votes = random_crowd(7, **case)
    gold = {"t000": int(votes["label"].iloc[0])} if with_gold else None
    model = GLAD(20_000, 1e-15).fit(votes, gold)
    alpha, b = model.alphas_.to_numpy(), model.betas_.to_numpy()
    slow = Oracle(votes, gold)

    assert model.loss_history_[-1] == pytest.approx(slow.objective(alpha, b), rel=1e-12)
    np.testing.assert_allclose(model.probas_, slow.posterior(alpha, b), atol=1e-12)
    gradient = optimize.approx_fprime(np.concatenate([alpha, b]), slow.flat, 1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=3e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_general_optimiser_finds_nothing_better_nearby(seed: int) -> None:
    votes = random_crowd(seed, n_classes=2)
    slow = Oracle(votes)
    model = GLAD().fit(votes)
    start = np.concatenate([model.alphas_, model.betas_])
    found = optimize.minimize(lambda point: -slow.flat(point), start, method="L-BFGS-B")
    assert -found.fun - model.loss_history_[-1] < 1e-4


@pytest.mark.parametrize("seed", range(12))
def test_objective_never_falls(seed: int) -> None:
    votes = random_crowd(seed, n_tasks=100, n_workers=20, n_classes=2 + seed % 4, flip=seed % 2 == 0)
    history = np.array(GLAD(5000, 1e-13).fit(votes).loss_history_)
    assert np.diff(history).min(initial=0.0) >= -1e-11 * abs(history[-1])
    assert history[0] >= Oracle(votes).objective(np.ones(20), np.ones(100))


def shard_of(votes: pd.DataFrame) -> tuple[Annotations, Shard]:
    crowd = Annotations.from_arrays(*(votes[name] for name in ("task", "worker", "label")))
    return crowd, Shard(crowd.task_ptr, crowd.worker, crowd.label, np.empty(0, np.int32))


def plain_model(crowd: Annotations) -> GLADModel:
    K = crowd.n_classes
    return GLADModel(crowd.n_tasks, np.ones(crowd.n_workers), np.ones(1), np.full(K, -np.log(K)))


def test_begins_with_the_posterior_at_one() -> None:
    votes = random_crowd(1)
    crowd, shard = shard_of(votes)
    local = plain_model(crowd).start_local(shard)
    expected = Oracle(votes).posterior(np.ones(crowd.n_workers), np.ones(crowd.n_tasks))
    np.testing.assert_allclose(local.posterior, expected, atol=1e-12)
    np.testing.assert_array_equal(local.easiness, 1.0)


@pytest.mark.parametrize("damping", [1.0, 4.0])
@pytest.mark.parametrize("spread", [0.5, 3.0])
def test_a_damped_step_always_rises(damping: float, spread: float) -> None:
    # From wild parameters, where an undamped step may well fall.
    rng = np.random.default_rng(5)
    for seed in range(10):
        votes = random_crowd(seed, n_tasks=60, n_workers=12)
        crowd, shard = shard_of(votes)
        model, slow = plain_model(crowd), Oracle(votes)
        shared = GLADShared(rng.normal(0, spread, crowd.n_workers), 0.3, np.full(3, -np.log(3)))
        local = GLADLocal(np.full((crowd.n_tasks, 3), 1 / 3), rng.normal(0, spread, crowd.n_tasks))
        out = GLADLocal(*(np.empty_like(array) for array in local))
        stats = model.empty_stats(shared)
        model.step(shared, shard, local, out, stats, True, damping)
        before = model.objective(shared, stats)
        after = model.update(shared, stats, damping)

        assert before == pytest.approx(slow.objective(shared.alpha, local.easiness + 0.3), rel=1e-12)

        # The step in b rises by itself.
        assert slow.objective(shared.alpha, out.easiness) >= before - 1e-9
        # The scale move after it changes no probability.
        newton = shared.alpha + (stats.gradient - shared.alpha + 1) / (stats.curvature + 1)
        np.testing.assert_allclose(after.alpha * np.exp(after.shift), newton, rtol=1e-12)
        assert slow.objective(after.alpha, out.easiness + after.shift) >= before - 1e-9


def test_a_newton_step_in_b_that_overshoots_is_shortened() -> None:
    # Where the curvature is small, the step is the longest allowed, which multiplies the log odds by e: too much here.
    crowd, shard = shard_of(pd.DataFrame({"task": "a", "worker": np.arange(100), "label": 0}))
    crowd = Annotations(crowd.task_ptr, crowd.worker, crowd.label, crowd.tasks, crowd.workers, np.arange(2))
    model = plain_model(crowd)
    shared, local = model.start(), GLADLocal(np.array([[0.69, 0.31]]), np.log([0.5]))
    out = GLADLocal(np.empty((1, 2)), np.empty(1))
    model.step(shared, shard, local, out, model.empty_stats(shared), False, 0.0)

    def expected(b: float) -> float:
        return float(100 * (0.69 * np.exp(b) - np.logaddexp(0, np.exp(b))) - 0.5 * (b - 1) ** 2)

    start, end = float(local.easiness[0]), float(out.easiness[0])
    assert expected(start + 1) < expected(start)
    assert expected(end) > expected(start)


def test_a_pass_whose_steps_all_rise_visits_the_votes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for the step and once where it ends, not once for each halving that could follow."""
    task, worker, label = [0, 0, 0, 1, 1, 1], list("abc") * 2, ["x", "x", "y", "y", "y", "y"]
    crowd = Annotations.from_arrays(task, worker, label)
    shard = Shard(crowd.task_ptr, crowd.worker, crowd.label, np.empty(0, dtype=np.int32))
    model, tanh, visits = plain_model(crowd), np.tanh, list[int]()

    def counted(values: Floats) -> Floats:
        visits.append(len(values))
        return np.asarray(tanh(values))

    local = GLADLocal(np.full((2, 2), 0.5), np.ones(2))
    out, stats = GLADLocal(np.empty((2, 2)), np.empty(2)), model.empty_stats(model.start())
    monkeypatch.setattr(np, "tanh", counted)
    plain_passes.glad_pass(shard, model.start(), np.ones(1), 0.0, True, local, out, stats)
    assert visits == [6, 6]


def test_gradient_norm_is_that_of_the_maximisation_step() -> None:
    votes = random_crowd(2)
    crowd, shard = shard_of(votes)
    model, slow = plain_model(crowd), Oracle(votes)
    shared, local = model.start(), model.start_local(shard)
    out = GLADLocal(*(np.empty_like(array) for array in local))
    stats = model.empty_stats(shared)
    model.step(shared, shard, local, out, stats, False, 0.0)
    # At the posterior's own parameters the gradients of F and of the maximisation step agree; that in alpha is taken
    # after b has moved, with the posterior as it was.
    point = np.concatenate([shared.alpha, local.easiness])
    toward_b = optimize.approx_fprime(point, slow.flat, 1e-6)[crowd.n_workers :]
    assert stats.scalars[1] == pytest.approx(float(toward_b @ toward_b), rel=1e-4)
    assert model.gradient_norm(shared, stats) >= np.sqrt(stats.scalars[1])


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_move_is_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alpha, b = rng.normal(0, 2, 9), rng.normal(-1, 2, 14)
    alpha_mean, b_mean = rng.normal(1, 1, 9), rng.normal(1, 1, 14)

    def penalty(t: float) -> float:
        return float(((alpha * np.exp(t) - alpha_mean) ** 2).sum() + ((b - t - b_mean) ** 2).sum())

    t = best_scale(float(alpha @ alpha), float(alpha @ alpha_mean), float((b - b_mean).sum()), 14)

    nearby = optimize.minimize_scalar(penalty, bracket=(t - 0.1, t + 0.1))
    assert penalty(t) <= penalty(0.0)
    assert penalty(t) <= nearby.fun + 1e-9


# --------------------------------------------------------------------------------------------------------------------
# gold, symmetries


def test_gold_is_imposed_and_teaches() -> None:
    votes = pd.DataFrame(
        [(f"t{i}", "liar", i % 2) for i in range(10)] + [(f"t{i}", "honest", 1 - i % 2) for i in range(10)],
        columns=["task", "worker", "label"],
    )
    gold = {f"t{i}": 1 - i % 2 for i in range(4)}
    model = GLAD().fit(votes, pd.Series(gold))
    assert model.labels_.to_dict() == {f"t{i}": 1 - i % 2 for i in range(10)}
    assert model.alphas_["liar"] < 0 < model.alphas_["honest"]
    for task, known in gold.items():
        assert model.probas_.loc[task, known] == 1.0


def test_order_and_names_do_not_matter() -> None:
    votes = random_crowd(12)
    plain = GLAD().fit(votes)
    shuffled = GLAD().fit(votes.sample(frac=1.0, random_state=0))
    np.testing.assert_allclose(shuffled.posterior_, plain.posterior_, atol=1e-8)
    mirrored = GLAD().fit(votes.assign(label=-votes["label"]))
    np.testing.assert_allclose(mirrored.posterior_[:, ::-1], plain.posterior_, atol=1e-8)
    np.testing.assert_allclose(mirrored.betas_, plain.betas_, atol=1e-8)


def test_shards_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = random_crowd(13, n_tasks=200, n_workers=30)
    options: dict[str, Any] = {"betas_priors_mean": {f"t{i:03d}": i / 100 for i in range(200)}}
    whole = GLAD(**options).fit(votes, {"t005": 1})
    monkeypatch.setattr(local_engine, "_ANNOTATIONS_PER_SHARD", 100)
    one, two = (GLAD(n_jobs=n_jobs, **options).fit(votes, {"t005": 1}) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.posterior_, two.posterior_)
    np.testing.assert_allclose(one.betas_, whole.betas_, atol=1e-8)


# --------------------------------------------------------------------------------------------------------------------
# parameters, layouts, corners


def test_prior_means_are_those_of_the_objective() -> None:
    votes = random_crowd(14)
    rng = np.random.default_rng(0)
    alpha_mean = pd.Series(rng.normal(0, 1, 8), index=[f"w{r}" for r in range(8)])
    b_mean = pd.Series(rng.normal(0, 1, 31), index=[f"t{i:03d}" for i in range(31)])  # one name too many
    model = GLAD(20_000, 1e-15, alphas_priors_mean=alpha_mean, betas_priors_mean=b_mean).fit(votes)
    slow = Oracle(votes, alpha_mean=alpha_mean.to_numpy(), b_mean=b_mean.to_numpy()[:30])
    alpha, b = model.alphas_.to_numpy(), model.betas_.to_numpy()
    assert model.loss_history_[-1] == pytest.approx(slow.objective(alpha, b), rel=1e-12)
    np.testing.assert_allclose(optimize.approx_fprime(np.concatenate([alpha, b]), slow.flat, 1e-6), 0.0, atol=3e-4)
    number = GLAD(alphas_priors_mean=1, betas_priors_mean=1.0).fit(votes)
    np.testing.assert_array_equal(number.posterior_, GLAD().fit(votes).posterior_)


def test_labels_priors_and_prior_are_one() -> None:
    votes = random_crowd(15)
    given = pd.Series([0.2, 0.5, 0.3], index=[0, 1, 2])
    by_crowdkit, by_us = GLAD(labels_priors=given).fit(votes), GLAD(prior=[0.2, 0.5, 0.3]).fit(votes)
    np.testing.assert_array_equal(by_crowdkit.posterior_, by_us.posterior_)
    assert by_us.priors_.to_dict() == pytest.approx(given.to_dict())
    slow = Oracle(votes, prior=given.to_numpy())
    assert by_us.loss_history_[-1] == pytest.approx(slow.objective(by_us.alphas_.to_numpy(), by_us.betas_.to_numpy()))
    with pytest.raises(ParameterError, match="two names of one parameter"):
        GLAD(labels_priors=given, prior="estimate").fit(votes)


def test_named_classes_need_a_prior_too() -> None:
    with pytest.raises(ParameterError, match=r"classes are \[0, 1, 2, 3\], got \[0, 1, 2\]"):
        GLAD(labels_priors={0: 0.2, 1: 0.5, 2: 0.3}).fit(random_crowd(15), classes=[3])


@pytest.mark.parametrize(
    "options",
    [
        {"n_iter": -1},
        {"tol": -1.0},
        {"prior": "empirical"},
        {"labels_priors": {0: 1.0}},
        {"alphas_priors_mean": {"w0": 1.0}},
        {"alphas_priors_mean": "one"},
        {"betas_priors_mean": float("nan")},
        {"betas_priors_mean": [1.0, 2.0]},
        {"betas_priors_mean": [[1.0], [2.0]]},
    ],
    ids=str,
)
def test_parameters_out_of_range(options: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        GLAD(**options).fit(random_crowd(0))


def test_layouts_are_those_of_crowd_kit() -> None:
    votes = random_crowd(16)
    model = GLAD(100, 1e-6, True, None, None, None, 25, 1e-2).fit(votes)
    assert (model.alphas_.name, model.alphas_.index.name) == ("alpha", "worker")
    assert (model.betas_.name, model.betas_.index.name) == ("beta", "task")
    assert model.priors_.name == "prior"
    in_polars = GLAD().fit(pl.DataFrame(votes.to_dict("list")))
    assert in_polars.alphas_.columns == ["worker", "alpha"]
    assert in_polars.betas_.columns == ["task", "beta"]


def test_says_when_the_iterations_do_not_suffice() -> None:
    with pytest.warns(ConvergenceWarning, match="raise n_iter"):
        model = GLAD(2).fit(random_crowd(17))
    assert not model.converged_


def test_corners() -> None:
    nothing = GLAD().fit(([], [], []))
    assert (len(nothing.labels_), len(nothing.alphas_), len(nothing.betas_)) == (0, 0, 0)
    with pytest.raises(NotFittedError):
        _ = GLAD().alphas_

    def labels(rows: list[tuple[Any, Any, Any]]) -> Any:
        return GLAD().fit(pd.DataFrame(rows, columns=["task", "worker", "label"])).labels_.to_dict()

    assert labels([("a", "x", "yes"), ("b", "y", "yes")]) == {"a": "yes", "b": "yes"}
    assert labels([("a", "x", 0), ("b", "x", 1)]) == {"a": 0, "b": 1}
    assert labels([("a", "x", 0), ("a", "y", 1), ("a", "z", 1)]) == {"a": 1}
    assert labels([("a", "x", 0), ("a", "y", 1)]) == {"a": 0}
    assert labels([(i, worker, i % 3) for i in range(6) for worker in "xyz"]) == {i: i % 3 for i in range(6)}


def test_many_votes_on_one_task_do_not_overflow() -> None:
    rng = np.random.default_rng(0)
    votes = pd.DataFrame({"task": "a", "worker": np.arange(4000) % 250, "label": rng.integers(0, 2, 4000)})
    votes = pd.concat([votes, votes.assign(task="b", label=1)])
    model = GLAD().fit(votes)
    slow = Oracle(votes)
    expected = slow.objective(model.alphas_.to_numpy(), model.betas_.to_numpy())
    assert model.loss_history_[-1] == pytest.approx(expected, rel=1e-12)
    assert model.labels_["b"] == 1


def test_parameters_without_an_effect_have_the_defaults_of_crowd_kit() -> None:
    model = GLAD()
    assert model._given_per_task() is None
    assert (model.silent, model.m_step_max_iter, model.m_step_tol) == (True, 25, 0.01)


def test_at_most_three_names_without_a_prior_mean_are_quoted() -> None:
    votes = ([0] * 5, list("abcde"), ["yes"] * 5)
    with pytest.raises(ParameterError, match=r"alphas_priors_mean lacks 4 of 5 names: 'b', 'c', 'd'$"):
        GLAD(alphas_priors_mean={"a": 1.0}).fit(votes)


def test_the_difficulty_of_an_item_is_what_the_mean_ability_loses_on_it() -> None:
    model = GLAD().fit(random_crowd(3))
    alpha, b = model.fitted_parameters["alpha"].mean(), model.fitted_parameters["beta"]
    expected = [alpha * np.exp(b.mean()) - alpha * np.exp(one) for one in b]
    np.testing.assert_allclose(model.item_difficulty_, expected, atol=1e-12)
