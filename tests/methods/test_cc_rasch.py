from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarevote import Annotations, CCRasch, simulate_cc_rasch, simulate_crowd
from rarevote.em import local
from rarevote.em.local import LocalEngine
from rarevote.em.loop import StoppingRule, run_em
from rarevote.errors import ConvergenceWarning, ParameterError
from rarevote.methods.cc_rasch import estimator
from rarevote.methods.cc_rasch.model import CCRaschLocal, CCRaschModel, CCRaschShared
from tests.methods.cc_rasch_oracle import Paper, Theta

# What the kernels are compared with is beside them in NumPy; here they themselves are held to oracles.
pytestmark = pytest.mark.usefixtures("compiled")

NO_GOLD = np.empty(0, dtype=np.int32)

VARIANTS = [
    pytest.param({}, id="default"),
    pytest.param({"ability": "shared"}, id="one ability"),
    pytest.param({"difficulty": "shared"}, id="one difficulty"),
    pytest.param({"difficulty": None}, id="no difficulty"),
    pytest.param({"ability": "shared", "difficulty": "shared"}, id="one of each"),
    pytest.param({"ability": "shared", "difficulty": None}, id="one ability, no difficulty"),
    pytest.param({"sigma_alpha": [0.3, 0.9, 0.6], "sigma_beta": [1.2, 0.4, 0.5]}, id="sigmas per class"),
    # Here the variance of the class means is smaller than what the deviations could carry.
    pytest.param(
        {"sigma_alpha": 4.0, "sigma_beta": 4.0, "sigma_alpha_mu": 0.1, "sigma_beta_mu": 0.1}, id="tight means"
    ),
]


def crowd_of(
    n_tasks: int = 40, n_workers: int = 6, n_classes: int = 3, votes: float = 4.0, seed: int = 0
) -> Annotations:
    simulated = simulate_crowd(
        n_tasks, n_workers, n_classes=n_classes, votes_per_task=votes, imbalance=3.0, random_state=seed
    )
    return Annotations.from_arrays(*simulated.arrays, classes=range(n_classes))


def theta_of(model: CCRasch) -> Theta:
    parameter = model._result.parameters
    shape_g = (model.annotations_.n_workers, model.annotations_.n_classes)
    shape_h = (model.annotations_.n_tasks, model.annotations_.n_classes)
    return Theta(
        parameter["mu_alpha"],
        parameter["mu_beta"],
        np.broadcast_to(parameter["ability_deviation"], shape_g),
        np.broadcast_to(parameter["difficulty_deviation"], shape_h),
    )


def soft_majority(crowd: Annotations) -> NDArray[np.float64]:
    votes = crowd.votes()
    return np.asarray(votes / votes.sum(1, keepdims=True))


def first_m_step(crowd: Annotations, **parameters: Any) -> CCRasch:
    """A single iteration evaluates the posterior at the solution of the M-step on the soft majority vote."""
    with pytest.warns(ConvergenceWarning):
        return CCRasch(1, m_step="exact", m_step_tol=1e-9, **parameters).fit(crowd)


def close(ours: Theta, theirs: Theta, tolerance: float) -> None:
    for name in ("mu_alpha", "mu_beta", "g", "h"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=tolerance, err_msg=name)


# -- against the paper's formulas -------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_objective_and_posterior_are_the_papers(variant: dict[str, Any]) -> None:
    crowd = crowd_of()
    model = CCRasch(**variant).fit(crowd)
    paper, uniform = Paper(crowd, **variant), np.full(3, 1 / 3)
    theta = theta_of(model)
    assert model.loss_history_[-1] == pytest.approx(paper.objective(theta, uniform), abs=1e-9)
    np.testing.assert_allclose(model.posterior_, paper.posterior(theta, uniform), atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_exact_m_step_equals_lbfgsb_on_the_papers_q(variant: dict[str, Any]) -> None:
    crowd = crowd_of()
    model = first_m_step(crowd, **variant)
    close(theta_of(model), Paper(crowd, **variant).maximise_expected(soft_majority(crowd)), 2e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_centring_constraints_hold(variant: dict[str, Any]) -> None:
    theta = theta_of(CCRasch(**variant).fit(crowd_of()))
    assert np.abs(theta.g.sum(0)).max() < 1e-9
    assert np.abs(theta.h.sum(0)).max() < 1e-9


@pytest.mark.parametrize("m_step", ["fused", "profiled", "exact"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_all_modes_end_at_a_stationary_point(
    variant: dict[str, Any], m_step: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if m_step == "profiled":
        monkeypatch.setattr(estimator, "_MAX_UNPROFILED_VOTES", 0)
        m_step = "fused"
    crowd = crowd_of()
    model = CCRasch(5000, tol=1e-11, m_step=m_step, m_step_tol=1e-8, **variant)
    # Not the gain rule but the change of the posterior decides here.
    rule = StoppingRule(5000, 1e-11, np.inf)
    em = model._model(crowd)
    with LocalEngine(em, crowd, NO_GOLD) as engine:
        outcome = run_em(em, engine, em.start(), rule, exact=m_step == "exact", gradient_tolerance=1e-9)
        posterior, (difficulty,) = engine.posterior(), engine.local_parameters()
    shared = outcome.shared
    mu_alpha, mu_beta = em.split_intercept(shared.intercept)
    paper = Paper(crowd, **variant)
    parts = [mu_alpha[: paper.sizes()[0]], mu_beta[: paper.sizes()[1]], shared.ability.ravel()]
    if paper.difficulty is not None:
        parts.append((difficulty + shared.shift).ravel())
    # At the posterior of these parameters the gradient of Q is that of the penalised likelihood.
    assert np.abs(paper.expected_gradient(np.concatenate(parts), posterior)).max() < 1e-6


def test_modes_agree_on_the_optimum() -> None:
    crowd = crowd_of(seed=3)
    fused = CCRasch(3000, tol=1e-9).fit(crowd)
    exact = CCRasch(3000, tol=1e-9, m_step="exact").fit(crowd)
    assert fused.loss_history_[-1] == pytest.approx(exact.loss_history_[-1], abs=1e-5)
    np.testing.assert_allclose(fused.posterior_, exact.posterior_, atol=1e-3)


def test_m_step_has_one_optimum_whatever_the_start() -> None:
    crowd = crowd_of()

    class Elsewhere(CCRaschModel):
        def start(self) -> CCRaschShared:
            zero = super().start()
            rng = np.random.default_rng(5)
            ability = rng.normal(size=zero.ability.shape)
            return zero._replace(intercept=rng.normal(size=3), ability=ability - ability.mean(0))

        def start_local(self, shard: Any) -> CCRaschLocal:
            zero = super().start_local(shard)
            difficulty = np.random.default_rng(6).normal(size=zero.difficulty.shape)
            return zero._replace(difficulty=difficulty - difficulty.mean(0))

    found = []
    for kind in (CCRaschModel, Elsewhere):
        base = CCRasch()._model(crowd)
        em = kind(**{name: getattr(base, name) for name in base.__dataclass_fields__})
        with LocalEngine(em, crowd, NO_GOLD) as engine:
            rule = StoppingRule(1, 0.0, 0.0)
            outcome = run_em(em, engine, em.start(), rule, exact=True, gradient_tolerance=1e-10)
            found.append((outcome.shared, engine.local_parameters()[0] + outcome.shared.shift))
    (one, hard_one), (other, hard_other) = found
    np.testing.assert_allclose(one.intercept, other.intercept, atol=1e-8)
    np.testing.assert_allclose(one.ability, other.ability, atol=1e-8)
    np.testing.assert_allclose(hard_one, hard_other, atol=1e-8)


def test_means_split_the_intercept_as_the_closed_form_says() -> None:
    model = CCRasch(sigma_alpha_mu=2.0, sigma_beta_mu=0.5).fit(crowd_of())
    c = model._result.parameters["intercept"]
    lam_alpha, lam_beta = 1 / (2 * 2.0**2), 1 / (2 * 0.5**2)
    np.testing.assert_allclose(model._result.parameters["mu_alpha"], c * lam_beta / (lam_alpha + lam_beta))
    np.testing.assert_allclose(model._result.parameters["mu_beta"], -c * lam_alpha / (lam_alpha + lam_beta))


def test_classes_separate_given_the_posterior() -> None:
    """Changing one class's spread must not move another class's M-step."""
    crowd = crowd_of()
    one, other = first_m_step(crowd), first_m_step(crowd, sigma_alpha=[0.5, 0.5, 2.0])
    np.testing.assert_allclose(theta_of(one).g[:, :2], theta_of(other).g[:, :2], atol=1e-8)
    assert np.abs(theta_of(one).g[:, 2] - theta_of(other).g[:, 2]).max() > 1e-3


# -- the loop ---------------------------------------------------------------------------------------------------------


# Each number of classes is compiled on its own, one and many alike.
@pytest.mark.parametrize("n_classes", [1, 2, 3, *(pytest.param(many, marks=pytest.mark.prove) for many in (4, 5))])
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    sigma=st.floats(0.05, 20.0),
    votes=st.floats(1.0, 6.0),
    prior=st.sampled_from(["uniform", "estimate"]),
)
def test_objective_never_falls(n_classes: int, seed: int, sigma: float, votes: float, prior: str) -> None:
    rng = np.random.default_rng(seed)
    n = 60
    crowd = Annotations.from_arrays(
        rng.integers(0, 15, n), rng.integers(0, 5, n), rng.integers(0, n_classes, n), classes=range(n_classes)
    )
    model = CCRasch(60, tol=0.0, sigma_alpha=sigma, sigma_beta=sigma, sigma_alpha_mu=5.0, prior=prior).fit(crowd)
    history = np.array(model.loss_history_)
    assert (np.diff(history) >= -1e-9 * (1 + np.abs(history[:-1]))).all()
    np.testing.assert_allclose(model.posterior_.sum(1), 1.0)


def test_a_step_that_overshoots_is_damped() -> None:
    """Where every probability is near one the curvature vanishes and a Newton step flies off."""
    crowd = crowd_of(seed=1)
    em = CCRasch(sigma_alpha=9.0, sigma_beta=9.0, sigma_alpha_mu=9.0, sigma_beta_mu=9.0)._model(crowd)
    far_off = em.start()._replace(intercept=np.full(3, 7.0))
    with LocalEngine(em, crowd, NO_GOLD) as engine:
        outcome = run_em(em, engine, far_off, StoppingRule(200, 1e-6, 1e-6))
    assert outcome.n_damped > 0
    assert (np.diff(outcome.history) >= -1e-9 * np.abs(outcome.history[:-1])).all()


@pytest.mark.parametrize("profiled", [False, True])
def test_results_do_not_depend_on_threads(profiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if profiled:
        monkeypatch.setattr(estimator, "_MAX_UNPROFILED_VOTES", 0)
    monkeypatch.setattr(local, "_ANNOTATIONS_PER_SHARD", 100)
    crowd = crowd_of(n_tasks=400, n_workers=20, votes=5.0)
    assert len(local.shard_bounds(crowd)) > 10
    fits = [CCRasch(n_jobs=n_jobs).fit(crowd) for n_jobs in (1, 2, 5)]
    for fit in fits[1:]:
        assert np.array_equal(fits[0].posterior_, fit.posterior_)
        assert np.array_equal(fits[0].abilities_["0"], fit.abilities_["0"])
        assert fits[0].loss_history_ == fit.loss_history_


def test_shards_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = crowd_of(n_tasks=400, n_workers=20, votes=5.0)
    whole = CCRasch(50, tol=0).fit(crowd)
    monkeypatch.setattr(local, "_ANNOTATIONS_PER_SHARD", 37)
    np.testing.assert_allclose(CCRasch(50, tol=0).fit(crowd).posterior_, whole.posterior_, atol=1e-10)


def test_the_limit_is_said() -> None:
    with pytest.warns(ConvergenceWarning, match="2 iterations"):
        model = CCRasch(2).fit(crowd_of())
    assert not model.converged_
    assert model.n_iter_ == 2
    assert len(model.loss_history_) == 2


def test_callback_sees_every_iteration() -> None:
    seen: list[int] = []
    model = CCRasch().fit(crowd_of(), callback=lambda progress: seen.append(progress.iteration))
    assert seen == list(range(1, model.n_iter_ + 1))


# -- recovery ---------------------------------------------------------------------------------------------------------


def test_abilities_and_difficulties_come_back() -> None:
    """Drawn from the model itself, with enough votes: correlation and bias against what was drawn."""
    drawn = simulate_cc_rasch(
        1000, 60, votes_per_task=50, mu_alpha=[1.2, 1.0], mu_beta=[-0.3, 0.0], sigma_alpha=0.7, sigma_beta=0.5,
        imbalance=1.5, random_state=11,
    )  # fmt: skip
    model = CCRasch(sigma_alpha=0.7, sigma_beta=0.5).fit(drawn.arrays)
    assert drawn.abilities is not None
    assert drawn.difficulties is not None
    alpha = np.column_stack([model.abilities_[str(k)] for k in range(2)])
    beta = np.column_stack([model.difficulties_[str(k)] for k in range(2)])
    assert (model.label_codes() == drawn.truth).mean() > 0.97
    for k in range(2):
        assert np.corrcoef(alpha[:, k], drawn.abilities[:, k])[0, 1] > 0.95
        # Only alpha - beta is identified: its mean must come back without bias.
        ours = alpha[:, k].mean() - beta[:, k].mean()
        theirs = drawn.abilities[:, k].mean() - drawn.difficulties[:, k].mean()
        assert ours == pytest.approx(theirs, abs=0.1)
        of_class = drawn.truth == k
        assert np.corrcoef(beta[of_class, k], drawn.difficulties[of_class, k])[0, 1] > 0.75


# -- edges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m_step", ["fused", "exact"])
@pytest.mark.parametrize(
    ("task", "worker", "label", "expected"),
    [
        ([0], [0], ["a"], ["a"]),
        ([0, 1, 2], [0, 0, 0], ["a", "b", "a"], ["a", "b", "a"]),
        ([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "a", "a"], ["a", "a"]),
        ([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "b", "b"], ["a", "b"]),
    ],
    ids=["one vote", "one worker", "one class", "unanimous"],
)
def test_small_crowds(task: list[int], worker: list[int], label: list[str], expected: list[str], m_step: str) -> None:
    model = CCRasch(m_step=m_step).fit((task, worker, label))  # type: ignore[arg-type]
    assert list(model.labels_["agg_label"]) == expected
    assert np.isfinite(model.loss_history_).all()


@pytest.mark.parametrize("m_step", ["fused", "exact"])
def test_a_single_disputed_task_cannot_be_told(m_step: Any) -> None:
    """Its difficulty explains any split of the votes equally well: one half each, and the votes decide."""
    model = CCRasch(m_step=m_step).fit(([0, 0, 0], [0, 1, 2], ["a", "b", "b"]))
    np.testing.assert_allclose(model.posterior_, [[0.5, 0.5]], atol=1e-4)
    assert model.labels_.to_dict() == {0: "b"}


def test_a_crowd_too_small_to_learn_from_is_decided_by_its_votes() -> None:
    """The optimum of four votes knows nothing, and rounding must not label a unanimous task otherwise."""
    rows = ([1, 1, 2, 2], list("abab"), ["x", "y", "y", "y"])
    model = CCRasch().fit(rows)
    np.testing.assert_allclose(model.posterior_, 0.5, atol=1e-4)
    assert model.labels_.to_dict() == {1: "x", 2: "y"}
    assert model.predict(rows).to_dict() == {1: "x", 2: "y"}


@pytest.mark.parametrize("prior", ["uniform", "estimate"])
@pytest.mark.parametrize("profiled", [False, True])
def test_acceleration_saves_passes_and_keeps_the_optimum(
    prior: str, profiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if profiled:
        monkeypatch.setattr(estimator, "_MAX_UNPROFILED_VOTES", 0)
    made: list[int] = []
    run = LocalEngine.run

    def counted(engine: Any, *args: Any, **options: Any) -> Any:
        made.append(1)
        return run(engine, *args, **options)

    # Counted where they are made: a pass at a far point that was not taken is a pass.
    monkeypatch.setattr(LocalEngine, "run", counted)
    crowd = crowd_of(n_tasks=400, n_workers=40, votes=3.0)
    plain = CCRasch(2000, tol=1e-7, accelerate=False, prior=prior).fit(crowd)
    n_plain = len(made)
    fast = CCRasch(2000, tol=1e-7, prior=prior).fit(crowd)
    n_fast = len(made) - n_plain
    assert (plain._result.n_passes, fast._result.n_passes) == (n_plain, n_fast)
    assert n_fast <= 0.6 * n_plain
    assert fast.loss_history_[-1] == pytest.approx(plain.loss_history_[-1], rel=1e-8)
    assert (np.diff(fast.loss_history_) >= -1e-9).all()


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_mixed_point_is_centred_and_its_tasks_settle_sooner_with_more_classes(n_classes: int) -> None:
    crowd = crowd_of(n_classes=n_classes)
    for prior in ("uniform", "estimate"):
        model = CCRasch(prior=prior)._model(crowd)
        begin = model.start()
        point = model.profiled(model.coordinates(begin) + 1.0 + np.arange(model.coordinates(begin).size), begin)
        np.testing.assert_allclose(point.ability.sum(0), 0.0, atol=1e-9)
        assert np.exp(point.log_prior).sum() == pytest.approx(1.0)
        assert np.allclose(point.log_prior, begin.log_prior) == (prior == "uniform")
        assert point.settle == pytest.approx({2: 0.01, 3: 0.005, 5: 0.0025}[n_classes])


def test_what_the_difficulties_moved_on_average_goes_to_the_intercepts() -> None:
    sizes = SimpleNamespace(n_tasks=2, n_workers=1, n_classes=3, n_annotations=2, classes=np.arange(3))
    for difficulty, moved, expected in (
        ("per-class", [2.0, 4.0, 8.0], [9.0, 8.0, 6.0]),
        ("shared", [4.0], [8.0, 8.0, 8.0]),
        (None, [], [10.0, 10.0, 10.0]),
    ):
        model = CCRasch(difficulty=difficulty)._model(sizes)  # type: ignore[arg-type]
        shared = model.start()._replace(intercept=np.full(3, 10.0))
        stats = model.empty_stats(shared)
        stats.moved[:] = moved
        assert model._worker_side(shared, stats)[0].tolist() == expected


def test_coordinates_are_measured_by_the_curvature_of_the_votes() -> None:
    crowd = crowd_of(n_workers=2)
    curvature = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    for variant, intercepts, abilities in (
        ({}, [5.0, 7.0, 9.0], [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]),
        ({"ability": "shared"}, [5.0, 7.0, 9.0], [10.0, 19.0]),
        ({"ability": "shared", "difficulty": "shared"}, [21.0], [10.0, 19.0]),
    ):
        model = CCRasch(sigma_alpha=0.5, **variant)._model(crowd)  # type: ignore[arg-type]
        stats = model.empty_stats(model.start())
        stats.of_workers[:, 1] = curvature
        assert model.metric(stats).tolist() == [*intercepts, *abilities]


def test_the_norm_of_the_gradient_has_the_intercepts_the_workers_and_the_tasks() -> None:
    model = CCRasch(ability="shared", sigma_alpha=0.5)._model(crowd_of(n_workers=2))
    shared = model.start()._replace(ability=np.array([[0.5], [-0.5]]))
    stats = model.empty_stats(shared)
    stats.of_workers[:, 0] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    stats.scalars[1] = 7.0
    of_intercepts, of_workers = [5.0, 7.0, 9.0], [6.0 - 10.5 - 0.5 / 0.25, 15.0 - 10.5 + 0.5 / 0.25]
    expected = np.sqrt(sum(g**2 for g in (*of_intercepts, *of_workers)) + 7.0)
    assert model.gradient_norm(shared, stats) == pytest.approx(expected)


def test_one_posterior_is_enough_where_abilities_are_mixed() -> None:
    crowd = crowd_of(n_tasks=400, n_workers=40, votes=3.0)
    model = replace(CCRasch()._model(crowd), profiles=True)
    found = []
    for one_posterior in (False, True):
        with LocalEngine(model, crowd, NO_GOLD, one_posterior=one_posterior) as engine:
            outcome = run_em(model, engine, model.start(), StoppingRule(25, 0.0, 1.0), accelerate=True)
            found.append((outcome.history, engine.posterior().copy(), *engine.local_parameters()))
            states = (engine._states[0].current, engine._states[0].proposed)
            assert np.shares_memory(states[0].posterior, states[1].posterior) == one_posterior
    assert found[0][0] == found[1][0]
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_solved_task_could_not_have_better_difficulties() -> None:
    """The likelihood of a task, written out, is level in every one of its difficulties."""
    crowd = crowd_of(n_tasks=60, n_workers=8)
    draw = np.random.default_rng(0)
    intercept, ability = np.array([1.0, 0.2, 2.0]), draw.normal(size=(8, 3))
    shared = CCRaschShared(intercept, ability, np.zeros(3), np.log([0.2, 0.3, 0.5]), settle=1e-9)
    with LocalEngine(CCRasch()._model(crowd), crowd, NO_GOLD) as engine:
        engine.run(shared, refresh=True, damping=0.0)
        engine.advance()
        (solved,) = engine.local_parameters()
    assert np.abs(solved).max() > 0.3

    def value(h: NDArray[np.float64]) -> NDArray[np.float64]:
        task = crowd.task_of_annotation()
        p = 1.0 / (1.0 + np.exp(-(intercept + ability[crowd.worker] - h[task])))
        joint = np.tile([0.2, 0.3, 0.5], (crowd.n_tasks, 1))
        np.multiply.at(joint, task, np.where(crowd.label[:, None] == np.arange(3), p, (1 - p) / 2))
        # A mean of the difficulties moves into the intercept, whose variance is 1 + 1: a pull on every task.
        return np.asarray(np.log(joint.sum(1)) - (2.0 * h**2 - h * intercept / 2.0 / crowd.n_tasks).sum(1))

    for k in range(3):
        step = 1e-4 * (np.arange(3) == k)
        np.testing.assert_allclose(value(solved + step), value(solved - step), atol=1e-9)
        assert (value(solved + 100 * step) < value(solved)).all()
        assert (value(solved - 100 * step) < value(solved)).all()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.prove
def test_half_the_precision_gives_the_same_answer(variant: dict[str, Any]) -> None:
    crowd = crowd_of(300, 12, votes=5.0)
    double = CCRasch(3000, tol=1e-6, **variant).fit(crowd)
    single = CCRasch(3000, tol=1e-6, dtype="float32", **variant).fit(crowd)
    assert single.posterior_.dtype == np.float32
    assert single.converged_
    np.testing.assert_allclose(single.posterior_, double.posterior_, atol=2e-4)
    assert single.loss_history_[-1] == pytest.approx(double.loss_history_[-1], rel=1e-7)
    history = np.array(single.loss_history_)
    assert (np.diff(history) >= -1e-7 * (1 + np.abs(history[1:]))).all()
    assert single.label_codes().tolist() == double.label_codes().tolist()


@pytest.mark.prove  # to compile
def test_single_precision_neither_vanishes_nor_overflows() -> None:
    # Odds and difficulties far beyond what singles hold, and products of thousands of votes.
    rng = np.random.default_rng(1)
    task = np.concatenate([np.zeros(4000, int), np.repeat(np.arange(1, 30), 3)])
    worker = rng.integers(0, 5, task.size)
    label = np.where(rng.random(task.size) < 0.8, task % 3, rng.integers(0, 3, task.size))
    crowd = Annotations.from_arrays(task, worker, label)
    wide: dict[str, Any] = {"sigma_alpha": 300.0, "sigma_beta": 300.0, "sigma_alpha_mu": 300.0, "sigma_beta_mu": 300.0}
    for parameters in (dict[str, Any](), wide):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            single = CCRasch(40, dtype="float32", **parameters).fit(crowd)
            double = CCRasch(40, **parameters).fit(crowd)
        assert np.isfinite(single.posterior_).all()
        np.testing.assert_allclose(single.posterior_.sum(axis=1), 1.0, atol=1e-6)
        assert np.isfinite(single.loss_history_).all()
        assert single.label_codes()[0] == double.label_codes()[0] == 0


def test_a_class_without_votes_is_a_class() -> None:
    model = CCRasch().fit(([0, 0], [0, 1], ["a", "b"]), classes=["a", "b", "c"])
    assert model.posterior_.shape == (1, 3)
    assert list(model.classes_) == ["a", "b", "c"]


def test_hundreds_of_votes_do_not_underflow() -> None:
    n = 3000
    rng = np.random.default_rng(0)
    task = np.repeat([0, 1], n)
    label = np.concatenate([rng.random(n) < 0.6, rng.random(n) < 0.4]).astype(int)
    # Few workers who vote often: more than 256 would be another type of number, compiled anew.
    model = CCRasch().fit((task, np.arange(2 * n) % 250, label))
    assert list(model.label_codes()) == [1, 0]
    paper = Paper(model.annotations_)
    assert model.loss_history_[-1] == pytest.approx(paper.objective(theta_of(model), np.full(2, 0.5)), rel=1e-12)


def test_gold_stays_clamped_and_teaches() -> None:
    simulated = simulate_crowd(300, 20, random_state=2)
    gold = {int(task): int(simulated.truth[task]) for task in range(0, 300, 3)}
    model = CCRasch().fit(simulated.arrays, gold)
    for task, label in gold.items():
        assert model.posterior_[task, label] == 1.0
    assert (np.diff(model.loss_history_) > -1e-9).all()
    rest = np.setdiff1d(np.arange(300), list(gold))
    without = CCRasch().fit(simulated.arrays)
    right = (model.label_codes() == simulated.truth)[rest].mean()
    assert right >= (without.label_codes() == simulated.truth)[rest].mean() - 0.02


def test_prior_can_be_given_by_class() -> None:
    crowd = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["n", "y", "y", "y"])
    toward_no = CCRasch(prior={"y": 0.1, "n": 0.9}).fit(crowd)
    toward_yes = CCRasch(prior=[0.1, 0.9]).fit(crowd)
    assert toward_no.posterior_[0, 0] > 0.8
    assert toward_yes.posterior_[0, 1] > 0.8
    assert toward_no.priors_.to_dict() == pytest.approx({"n": 0.9, "y": 0.1})


def test_estimated_prior_is_the_mean_posterior() -> None:
    model = CCRasch(3000, prior="estimate", tol=1e-10).fit(crowd_of(seed=4))
    np.testing.assert_allclose(model.priors_["prior"], model.posterior_.mean(0), atol=1e-5)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sigma_alpha": 0.0}, "sigma_alpha must be positive"),
        ({"sigma_beta": [1.0, 2.0]}, "sigma_beta needs one value or 3"),
        ({"sigma_alpha": {"a": 1.0}}, "must name every class"),
        ({"sigma_alpha": "wide"}, "must be a number"),
        ({"ability": "shared", "sigma_alpha": [1, 1, 1]}, "single number"),
        ({"ability": "none"}, "ability must be"),
        ({"difficulty": "none"}, "difficulty must be"),
        ({"m_step": "half"}, "m_step must be"),
        ({"prior": "flat"}, 'prior must be "uniform"'),
        ({"prior": [1, 2]}, "prior needs one value"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"n_iter": -1}, "n_iter must be"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        CCRasch(**parameters).fit(crowd_of())


# -- new tasks --------------------------------------------------------------------------------------------------------


# With sigma = 4 a single task can have several optima, and another start another of them.
@pytest.mark.parametrize("variant", VARIANTS[:-1])
def test_predicting_the_tasks_of_the_fit_gives_their_posterior(variant: dict[str, Any]) -> None:
    crowd = crowd_of(n_tasks=80)
    model = CCRasch(tol=1e-9, **variant).fit(crowd)
    rows = (crowd.task_of_annotation(), crowd.workers[crowd.worker], crowd.classes[crowd.label])
    found = model.predict_proba(rows)
    np.testing.assert_allclose(np.column_stack([found[str(k)] for k in range(3)]), model.posterior_, atol=2e-4)


def test_a_new_task_is_decided_by_those_who_know_the_class() -> None:
    simulated = simulate_crowd(2000, 20, imbalance=2, p_good=0.5, p_bad=0.5, p_majority=0, p_minority=0, random_state=1)
    model = CCRasch().fit(simulated.arrays)
    kind = np.array(simulated.worker_type)
    good, bad = np.flatnonzero(kind == "good")[:2], np.flatnonzero(kind == "bad")[:3]
    votes = ([0] * 5, [*good, *bad], [1, 1, 0, 0, 0])
    assert model.predict(votes).to_dict() == {0: 1}


def test_a_worker_nobody_has_seen_counts_as_average() -> None:
    model = CCRasch().fit(crowd_of())
    probas = model.predict_proba((["new"], ["stranger"], [2])).to_dict()["new"]
    assert probas[2] > 1 / 3
    assert sum(probas.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("sigmas", [(1e-8, 1e8), (1e12, 1e12), (1e8, 1e-8)])
def test_the_exact_step_ends_whatever_the_scales(sigmas: tuple[float, float]) -> None:
    """Abilities and difficulties that may go anywhere have no maximum within reach: thousands of passes once."""
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 8, 26), rng.integers(0, 5, 26), rng.integers(0, 3, 26)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CCRasch(40, m_step="exact", sigma_alpha=sigmas[0], sigma_beta=sigmas[1]).fit(votes)
    assert np.isfinite(model.posterior_).all()
    assert model._result.n_passes < 2_000  # with 500 passes a step it would be up to 20 000


@pytest.mark.parametrize("parameters", [{"sigma_alpha": -1.0}, {"prior": "mine"}, {"dtype": "float16"}])
def test_parameters_are_checked_even_without_votes(parameters: dict[str, Any]) -> None:
    assert CCRasch().fit(([], [], []), classes=["a", "b"]).labels_.to_dict() == {}
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        CCRasch(**parameters).fit(([], [], []), classes=["a", "b"])
