"""Anchored Rasch against loops over votes, classes and nodes, and what it promises at the edges."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote import AnchoredRasch, Annotations, Fitted, simulate_crowd
from rarevote.decide.decider import Decider
from rarevote.decide.rules import ItemBatch
from rarevote.em import local
from rarevote.em.loop import Progress
from rarevote.em.model import Shard
from rarevote.errors import ConvergenceWarning, InputError, ParameterError
from rarevote.methods.anchored_rasch.model import (
    AnchorCount,
    AnchoredShared,
    Anchors,
    AnchorSmoothing,
    anchors_from,
    count_anchors,
    vote_factors,
)
from rarevote.methods.anchored_rasch.with_features import ItemPriorModel, report_items
from tests.methods.anchored_oracle import NODES, WEIGHTS, Oracle, balanced_by_hand
from tests.methods.crowds import check_permutation, random_rows

# What the kernels are compared with is beside them in NumPy; here they themselves are held to oracles.
pytestmark = [
    pytest.mark.usefixtures("compiled"),
    pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning"),
]

NO_GOLD = np.empty(0, dtype=np.int32)


def crowd_of(n_classes: int, n_tasks: int = 12, n_workers: int = 5, seed: int = 0) -> Annotations:
    """One to five votes a task, a repeated pair among them; every class has votes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_tasks)
    rows = []
    for i in range(n_tasks):
        for r in rng.integers(0, n_workers, int(rng.integers(1, 6))):
            rows.append((i, int(r), int(truth[i] if rng.random() < 0.6 else rng.integers(0, n_classes))))
    rows += [(n_tasks, r % n_workers, r) for r in range(max(n_classes, n_workers)) if r < n_classes]
    rows += [(n_tasks, r, 0) for r in range(n_workers)]
    task, worker, label = zip(*rows, strict=True)
    return Annotations.from_arrays(list(task), list(worker), list(label))


def oracle_of(crowd: Annotations, gold: dict[int, int] | None = None) -> Oracle:
    bounds = crowd.task_ptr.tolist()
    votes = [list(zip(crowd.worker[a:b].tolist(), crowd.label[a:b].tolist(), strict=True)) for a, b in pairwise(bounds)]
    return Oracle(votes, crowd.n_workers, crowd.n_classes, gold or {})


# --------------------------------------------------------------------------------------------------------------------
# the numbers


def test_the_oracle_has_the_nodes_of_the_model() -> None:
    crowd = crowd_of(3)
    with local.LocalEngine(AnchorCount(crowd.n_workers, 3, 0.05), crowd, NO_GOLD) as engine:
        sums, _ = engine.run((), refresh=False, damping=0.0)
    model = AnchoredRasch()._model(anchors_from(sums, AnchorSmoothing()), crowd.n_workers)
    np.testing.assert_allclose(model.nodes * 3, NODES, atol=1e-13)
    np.testing.assert_allclose(model.weights, WEIGHTS, atol=1e-14)


# Each number of classes up to five is compiled on its own.
@pytest.mark.parametrize("n_classes", [2, 3, 6, *(pytest.param(many, marks=pytest.mark.prove) for many in (4, 5))])
@pytest.mark.parametrize("gold", [{}, {1: 0, 3: 1, 5: 1}], ids=["no gold", "gold"])
def test_every_iteration_is_the_one_written_out(n_classes: int, gold: dict[int, int]) -> None:
    crowd = crowd_of(n_classes, seed=n_classes)
    by_hand = oracle_of(crowd, gold)
    by_hand.update(frozen=True)
    for n_iter in (1, 2, 3):
        model = AnchoredRasch(n_iter, tol=0, accelerate=False).fit(crowd, gold or None)
        parameters = model.fitted_parameters
        assert model.loss_history_[-1] == pytest.approx(by_hand.objective(), rel=1e-12)
        np.testing.assert_allclose(parameters["prior"], by_hand.pi, rtol=1e-12)
        np.testing.assert_allclose(parameters["mean_ability"], by_hand.mu, rtol=1e-12)
        np.testing.assert_allclose(parameters["mean_errors"].T, by_hand.e, rtol=1e-12)
        np.testing.assert_allclose(parameters["ability"], by_hand.alpha, rtol=1e-10)
        np.testing.assert_allclose(parameters["errors"].transpose(0, 2, 1), by_hand.errors, rtol=1e-11)
        wanted, f = by_hand.reported()
        np.testing.assert_allclose(model.reported_, wanted, rtol=1e-11)
        votes = crowd.votes().astype(int).tolist()
        labels = [
            gold[i] if i in gold else balanced_by_hand(p, f, said, 10.0)
            for i, (p, said) in enumerate(zip(wanted, votes, strict=True))
        ]
        assert model.label_codes().tolist() == labels
        by_hand.update()
        np.testing.assert_allclose(model.posterior_, by_hand.q, rtol=1e-11)


def test_other_constants_are_used() -> None:
    crowd = crowd_of(3, seed=2)
    by_hand = oracle_of(crowd)
    by_hand.sigma, by_hand.s = 0.9, 0.7
    by_hand.update(frozen=True)
    model = AnchoredRasch(1, tol=0, sigma=0.9, spread=0.7).fit(crowd)
    assert model.loss_history_[-1] == pytest.approx(by_hand.objective(), rel=1e-12)
    plain = AnchoredRasch(1, tol=0).fit(crowd)
    for changed in (
        {"tau": 4.0}, {"n_nodes": 2}, {"rho": 0.5}, {"lapse": 0.2}, {"anchor_accuracy": 0.6}, {"anchor_weight": 3.0},
        {"anchor_errors": 9.0}, {"rho_a": 0.5},
    ):  # fmt: skip
        assert not np.allclose(AnchoredRasch(1, tol=0, **changed).fit(crowd).reported_, plain.reported_, atol=1e-6)


def test_anchors_of_shards_add_up() -> None:
    crowd = crowd_of(3, n_tasks=40)
    counting = AnchorCount(crowd.n_workers, 3, 0.05)
    whole, parts = counting.empty_stats(()), counting.empty_stats(())
    gold = np.full(crowd.n_tasks, -1, dtype=np.int32)
    gold[3], gold[30] = 1, 2
    count_anchors(Shard(crowd.task_ptr, crowd.worker, crowd.label, gold), 0.05, whole)
    for begin, end in ((0, 7), (7, 8), (8, crowd.n_tasks)):
        rows = crowd.task_ptr[begin : end + 1]
        count_anchors(Shard(rows, crowd.worker, crowd.label, gold[begin:end]), 0.05, parts)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(more, marks=pytest.mark.prove) for more in range(12, 18))])
def test_the_objective_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes = (2, 3, 6)[seed % 3] if seed < 12 else 4 + seed % 2
    crowd = simulate_crowd(
        60, 8, n_classes=n_classes, votes_per_task=float(rng.integers(2, 8)), imbalance=5, random_state=seed
    )
    for accelerate in (False, True):
        climbed = np.array(AnchoredRasch(200, tol=0, accelerate=accelerate).fit(crowd.arrays).loss_history_)
        assert (np.diff(climbed) >= -1e-12 * (1 + np.abs(climbed[:-1]))).all()


def test_a_damped_step_is_halved_and_a_long_one_clipped() -> None:
    crowd = crowd_of(3)
    fitted = AnchoredRasch(1, tol=0).fit(crowd)
    model, shared = fitted._held(np.arange(3), np.arange(crowd.n_workers))
    stats = model.empty_stats(shared)
    stats.counts[...] = 1000.0 * np.eye(3)  # everybody was right a thousand times
    stats.node_mass[...] = 1e-3
    full = model.update(shared, stats, 0.0)
    assert np.array_equal(full.ability, shared.ability + 2.0)
    for damping, part in ((1.0, 0.5), (2.0, 0.25), (4.0, 0.125)):
        halved = model.update(shared, stats, damping)
        np.testing.assert_allclose(halved.ability - shared.ability, 2.0 * part, rtol=1e-12)
        assert np.array_equal(halved.log_errors, full.log_errors)


def test_the_far_point_is_on_the_scale_of_log_errors() -> None:
    model, start = AnchoredRasch(1, tol=0).fit(crowd_of(3))._held(np.arange(3), np.arange(2))
    rng = np.random.default_rng(1)
    points = []
    for _ in range(3):
        errors = rng.dirichlet([3, 3], (2, 3))  # worker, class
        log_errors = np.zeros((2, 3, 3))
        for k in range(3):
            log_errors[:, [y for y in range(3) if y != k], k] = np.log(errors[:, k])
        points.append(AnchoredShared(rng.normal(size=(2, 3)), log_errors))
    t0, t1, t2 = points
    far = model.extrapolate((t0, t1, t2), 3.0, ())
    np.testing.assert_allclose(far.ability, t0.ability + 6 * (t1.ability - t0.ability) + 9 * (
        t2.ability - 2 * t1.ability + t0.ability))  # fmt: skip
    for r in range(2):
        for k in range(3):
            others = [y for y in range(3) if y != k]
            raw = [np.exp(sum(c * t.log_errors[r, y, k] for c, t in zip((4, -12, 9), points, strict=True)))
                   for y in others]  # fmt: skip
            np.testing.assert_allclose(np.exp(far.log_errors[r, others, k]), np.array(raw) / sum(raw), rtol=1e-10)
            assert far.log_errors[r, k, k] == 0.0
    assert start.ability.shape == (2, 3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_acceleration_keeps_the_optimum(n_classes: int) -> None:
    crowd = simulate_crowd(300, 20, n_classes=n_classes, votes_per_task=5, imbalance=4, random_state=1)
    plain = AnchoredRasch(5000, tol=1e-10, accelerate=False).fit(crowd.arrays)
    fast = AnchoredRasch(5000, tol=1e-10).fit(crowd.arrays)
    assert plain.converged_
    assert fast.converged_
    np.testing.assert_allclose(fast.posterior_, plain.posterior_, atol=1e-7)
    assert fast.loss_history_[-1] == pytest.approx(plain.loss_history_[-1], rel=1e-10)
    assert fast.n_iter_ < plain.n_iter_


@pytest.mark.parametrize("reach", [0.5, 1.0, 500.5 / 255, 3.0, 166.8, 499.0, 500.5, 600.0])
def test_products_of_votes_stay_within_500_powers_of_e(reach: float) -> None:
    """As many votes as fit are multiplied before a logarithm is taken, and 255 at most."""
    table = np.exp(np.array([[[-reach, reach]]]))
    factors = vote_factors(table.copy(), reach, np.zeros(1))
    n_votes = len(factors.powers) - 1
    most = np.abs(np.log(factors.of_workers)).max()
    assert n_votes * most <= 500.0
    assert n_votes == 255 or (n_votes + 1) * reach > 500.0
    assert np.array_equal(factors.of_workers, table) == (reach <= 500.0)


# --------------------------------------------------------------------------------------------------------------------
# the machine


def test_results_do_not_depend_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_ANNOTATIONS_PER_SHARD", 100)
    crowd = Annotations.from_arrays(*simulate_crowd(400, 20, n_classes=3, votes_per_task=5, random_state=2).arrays)
    assert len(local.shard_bounds(crowd)) > 10
    fits = [AnchoredRasch(n_jobs=n_jobs).fit(crowd) for n_jobs in (1, 2, 5)]
    for fit in fits[1:]:
        assert np.array_equal(fits[0].posterior_, fit.posterior_)
        assert np.array_equal(fits[0].reported_, fit.reported_)
        assert fits[0].loss_history_ == fit.loss_history_


@pytest.mark.prove
def test_single_precision_is_near() -> None:
    crowd = simulate_crowd(400, 20, n_classes=3, votes_per_task=5, random_state=2).arrays
    double, single = AnchoredRasch().fit(crowd), AnchoredRasch(dtype="float32").fit(crowd)
    assert single.posterior_.dtype == single.reported_.dtype == np.float32
    np.testing.assert_allclose(single.posterior_, double.posterior_, atol=1e-5)
    np.testing.assert_allclose(single.reported_, double.reported_, atol=1e-5)
    assert single.labels_.to_dict() == double.labels_.to_dict()


def test_other_names_and_orders_give_the_same() -> None:
    rows, truth = random_rows(40, 7, "abc", votes=4, seed=3)
    check_permutation(lambda: AnchoredRasch(40, tol=0), rows)
    check_permutation(lambda: AnchoredRasch(40, tol=0), rows, {task: truth[task] for task in list(truth)[:9]})


def test_thousands_of_votes_do_not_underflow() -> None:
    rng = np.random.default_rng(0)
    worker = np.concatenate([np.arange(4000) % 250, np.arange(60)])
    task = np.concatenate([np.zeros(2000, int), np.ones(2000, int), np.repeat(np.arange(2, 22), 3)])
    label = np.concatenate([rng.random(2000) < 0.7, rng.random(2000) < 0.3, np.repeat(np.arange(20) % 2, 3)]).astype(
        int
    )
    model = AnchoredRasch().fit((task, worker, label.astype(int)))
    assert np.isfinite(model.reported_).all()
    assert model.label_codes()[:2].tolist() == [1, 0]
    # The discount keeps thousands of votes from being more certain than about five times their mean allows.
    assert 0.5 < model.reported_[0, 1] < 0.999


# --------------------------------------------------------------------------------------------------------------------
# edges


def test_a_class_without_votes_gets_nothing_and_changes_nothing() -> None:
    votes = simulate_crowd(60, 8, n_classes=3, votes_per_task=4, random_state=0).arrays
    plain = AnchoredRasch().fit(votes)
    wide = AnchoredRasch().fit(votes, classes=[-1, 0, 1, 2, 9])
    assert wide.classes_.tolist() == [-1, 0, 1, 2, 9]
    assert (wide.posterior_[:, [0, 4]] == 0).all()
    assert (wide.reported_[:, [0, 4]] == 0).all()
    assert np.array_equal(wide.reported_[:, 1:4], plain.reported_)
    assert wide.labels_.to_dict() == plain.labels_.to_dict()
    assert wide.priors_.to_dict()[9] == 0
    assert np.array_equal(wide.abilities_[1], plain.abilities_[1])
    # New tasks and explanations know the same classes.
    assert np.array_equal(wide.predict_proba(votes)[1], plain.predict_proba(votes)[1])
    found = Fitted.of(wide).explain(5)
    assert found.weighed is not None
    assert np.isfinite(found.weighed.votes).all()
    with pytest.raises(InputError, match="label 9 has no votes in the fit"):
        wide.predict(([0, 0], [1, 2], [9, 1]))


def test_gold_may_add_a_class() -> None:
    votes = simulate_crowd(60, 8, n_classes=2, votes_per_task=4, random_state=0).arrays
    with pytest.warns(UserWarning, match="classes without votes"):
        model = AnchoredRasch().fit(votes, {3: 7, 5: 7, 6: 0})
    assert model.labels_.to_dict()[3] == 7
    assert model.reported_[3].tolist() == [0.0, 0.0, 1.0]
    assert model.reported_[6].tolist() == [1.0, 0.0, 0.0]
    assert (model.reported_[10] > 0).all()


def test_one_class_is_certain() -> None:
    model = AnchoredRasch().fit(([0, 0, 1], ["a", "b", "a"], ["x", "x", "x"]))
    assert model.posterior_.tolist() == model.reported_.tolist() == [[1.0], [1.0]]


def test_tables_that_are_too_large_are_refused_beforehand() -> None:
    crowd = Annotations(
        np.array([0, 2]), np.array([0, 1], np.uint32), np.array([0, 1], np.uint16), np.array([0]),
        np.arange(20_000), np.arange(200),
    )  # fmt: skip
    with pytest.raises(ParameterError, match=r"20,000 workers and 200 classes make tables of 6\.4 GB, more than the 4"):
        AnchoredRasch().fit(crowd)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sigma": 0}, "sigma must be a finite number above 0, got 0"),
        ({"spread": -1}, "spread must be a finite number at least 0"),
        ({"tau": 0}, "tau must be"),
        ({"n_nodes": 0}, "n_nodes must be a whole number"),
        ({"rho": -0.1}, "rho must be"),
        ({"lapse": 1.5}, "lapse must be"),
        ({"cap": 0.5}, "cap must be a finite number at least 1"),
        ({"anchor_accuracy": 1}, "anchor_accuracy must be"),
        ({"anchor_errors": 0}, "anchor_errors must be"),
        ({"dtype": "float16"}, "dtype must be"),
        ({"n_iter": -1}, "n_iter must be"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        AnchoredRasch(**parameters).fit(([0, 0], [0, 1], [0, 1]))


def test_a_rare_class_counts_at_most_ten_times() -> None:
    method = AnchoredRasch()
    assert method.own_decision == "balanced:10"
    decider = Decider(method.own_rule().ready(np.array(["rare", "usual"])), np.array([0.01, 0.99]))
    p = np.array([[0.0905, 0.9095], [0.0915, 0.9085]])  # ten elevenths are the border
    unknown = np.full(2, -1)
    codes, _ = decider.codes(ItemBatch(p, np.ones((2, 2)), unknown, unknown, p))
    assert codes.tolist() == [1, 0]


# --------------------------------------------------------------------------------------------------------------------
# a prior for each item


def test_items_without_votes_and_features_have_the_mean_of_the_only_other_item() -> None:
    likelihood = np.log([[0.8, 0.2], [1.0, 1.0]])
    even, none = np.full((2, 2), 0.5), np.zeros(2, dtype=bool)
    found = report_items(likelihood, even, even[0], np.array([1, 0]), none, NO_GOLD, discount=0.2, lapse=0.0)
    np.testing.assert_allclose(found.shares, [0.8, 0.2])
    np.testing.assert_allclose(found.p, [[0.8, 0.2], [0.8, 0.2]])
    np.testing.assert_allclose(found.posterior, [[0.8, 0.2], [0.5, 0.5]])


def test_a_shard_has_the_priors_of_its_own_items() -> None:
    crowd = crowd_of(3)
    anchors = Anchors(np.log(np.full(3, 1 / 3)), np.zeros(3), (1.0 - np.eye(3)) / 2)
    model = AnchoredRasch()._model(anchors, crowd.n_workers)
    offsets = np.arange(3.0 * crowd.n_tasks).reshape(-1, 3)
    with_priors = ItemPriorModel.of(model, begin=model.start(), offsets=offsets, task_ptr=crowd.task_ptr)
    for first, last in ((0, crowd.n_tasks), (0, 4), (4, 5), (5, crowd.n_tasks)):
        shard = Shard(crowd.task_ptr[first : last + 1], crowd.worker, crowd.label, NO_GOLD)
        assert np.array_equal(with_priors.offsets_of(shard), offsets[first:last])


# --------------------------------------------------------------------------------------------------------------------
# conveniences


def frame_of(seed: int = 4) -> pd.DataFrame:
    made = simulate_crowd(120, 15, n_classes=3, votes_per_task=6, imbalance=3, random_state=seed)
    return pd.DataFrame({"task": made.task, "worker": made.worker, "label": made.label})


def test_frames_and_their_layouts() -> None:
    model = AnchoredRasch().fit(frame_of())
    assert np.array_equal(model.probas_.to_numpy(), model.reported_)
    assert not np.allclose(model.reported_, model.posterior_)
    assert model.abilities_.shape == (15, 3)
    errors = model.errors_
    assert errors.index.names == ["worker", "label"]
    np.testing.assert_allclose(errors.groupby(level="worker").sum(), 1.0)
    assert all(errors.loc[(worker, k), k] == 0 for worker in range(15) for k in range(3))
    assert model.priors_.sum() == pytest.approx(1.0)


def test_predicting_the_tasks_of_the_fit_gives_what_was_reported(tmp_path: Path) -> None:
    votes = frame_of()
    model = AnchoredRasch().fit(votes)
    np.testing.assert_allclose(model.predict_proba(votes), model.reported_, atol=1e-12)
    assert model.predict(votes).to_dict() == model.labels_.to_dict()
    model.save(tmp_path / "model")
    back = rarevote.load(tmp_path / "model")
    assert np.array_equal(back.predict_proba(votes), model.predict_proba(votes))


def test_an_unseen_worker_is_at_the_anchors() -> None:
    model = AnchoredRasch().fit(frame_of())
    parameters = model.fitted_parameters
    for label in range(3):
        found = [*model.predict_proba((["new"], ["nobody"], [label])).to_dict()["new"].values()]
        raw = []
        for k in range(3):
            right = [1 / (1 + np.exp(-(parameters["mean_ability"][k] - x / 3))) for x in NODES]
            chance = [p if label == k else (1 - p) * parameters["mean_errors"][label, k] for p in right]
            raw.append(parameters["prior"][k] * sum(w * c for w, c in zip(WEIGHTS, chance, strict=True)))
        wanted = 0.95 * np.array(raw) / sum(raw) + 0.05 * parameters["shares"]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_vote_counts_what_the_nodes_of_its_item_say() -> None:
    votes = frame_of()
    model = AnchoredRasch().fit(votes)
    parameters = model.fitted_parameters
    for task in (0, 7, 33):
        found = Fitted.of(model).explain(task)
        assert found.weighed is not None
        assert found.weighed.rest == 0.0
        said = list(zip(found.workers.tolist(), found.labels.tolist(), strict=True))
        held = {}
        for k in (found.label, found.rival):
            chance = np.array([
                [1 / (1 + np.exp(-(parameters["ability"][r, k] - x / 3))) for x in NODES] for r, _ in said
            ])  # fmt: skip
            wrong = np.array([[parameters["errors"][r, y, k]] for r, y in said])
            chance = np.where(np.array([[y == k] for _, y in said]), chance, (1 - chance) * wrong)
            weight = np.array(WEIGHTS) * chance.prod(axis=0)
            weight /= weight.sum()
            cost = (weight * np.log(weight / WEIGHTS)).sum() / len(said)
            held[k] = (weight * np.log(chance)).sum(axis=1) - cost
            assert found.weighed.difficulty is not None
            assert found.weighed.difficulty[k] == pytest.approx((weight * NODES).sum() / 3)
        np.testing.assert_allclose(found.weighed.votes, held[found.label] - held[found.rival], rtol=1e-9)


class StopError(Exception):
    pass


def test_an_interrupted_fit_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    votes = frame_of()
    options: dict[str, Any] = {"checkpoint_every": 4}
    whole = AnchoredRasch(30, tol=0).fit(votes, checkpoint=tmp_path / "whole", **options)

    def stop(progress: Progress) -> None:
        if progress.iteration == 14:
            raise StopError

    with pytest.raises(StopError):
        AnchoredRasch(30, tol=0).fit(votes, checkpoint=tmp_path / "cut", callback=stop, **options)
    resumed = AnchoredRasch(30, tol=0).fit(votes, checkpoint=tmp_path / "cut", **options)
    assert np.array_equal(resumed.reported_, whole.reported_)
    assert resumed.loss_history_ == whole.loss_history_


def test_the_limit_is_said_and_parameters_come_back() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match="AnchoredRasch reached the iteration limit"):
            AnchoredRasch(2).fit(frame_of())
    model = AnchoredRasch(cap=5)
    assert repr(model) == "AnchoredRasch(cap=5)"
    assert model.set_params(cap=20).get_params()["cap"] == 20


def test_votes_for_a_class_on_known_items_of_another_alone_keep_their_meaning() -> None:
    # Nothing is left of "no" once gold has its say, and yet people said it: no vote may turn into another class's.
    votes = (
        [0, 0, 0, 1, 1, 2, 2],
        ["a", "b", "c", "a", "b", "b", "c"],
        ["no", "no", "yes", "yes", "yes", "yes", "yes"],
    )
    model = AnchoredRasch().fit(votes, {0: "yes"})
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.labels_.to_dict() == {0: "yes", 1: "yes", 2: "yes"}
    # Whoever said "no" to a known "yes" erred on it: below one who was right.
    ability = model.abilities_.to_dict()
    assert ability["a"]["yes"] < ability["c"]["yes"]
    assert model.priors_.to_dict()["no"] > 0
