"""Anchored Ordered: the values of the specification, a general optimiser, and what it promises at the edges."""

from __future__ import annotations

import warnings
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rarevote
from rarevote import AnchoredOrdered, AnchoredRasch, Annotations
from rarevote.errors import ParameterError, RarevoteWarning
from rarevote.kernels import plain
from tests.methods.ordered_oracle import Objective

TINY = ["1121", "2232", "3342", "4443", "1221", "2331", "3344", "4341"]
VOTES = [(i, worker, label) for i, said in enumerate(TINY, 1) for worker, label in zip("abcd", said, strict=True)]


ANOTHER_TOP = 6  # the random crowd where EM and a climb from zeros end at different tops


def fitted(ordered: Any = "1..4", gold: Any = None, **parameters: Any) -> AnchoredOrdered:
    return AnchoredOrdered(**{"ordered": ordered, "tol": 1e-10, **parameters}).fit(VOTES, gold)


def labels(model: AnchoredOrdered) -> str:
    return "".join(map(str, model.labels_.to_dict().values()))


def means(model: AnchoredOrdered) -> list[float]:
    found = model.fitted_parameters
    return [*found["mean_hit"].tolist(), *found["mean_near"].tolist()]


def theta(model: AnchoredOrdered, worker: int) -> list[float]:
    found = model.fitted_parameters
    return [*(float(found[name][worker]) for name in ("hit", "near", "lean")), *found["habit"][worker].tolist()]


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, atol=6e-7, rtol=0)


# --------------------------------------------------------------------------------------------------------------------
# the numbers


def test_anchors() -> None:
    model = fitted()
    close(list(model.priors_.to_dict().values()), [0.218750, 0.250000, 0.281250, 0.250000])
    found = model.fitted_parameters
    a = 1 / (1 + np.exp(-found["mean_ability"]))
    B = found["mean_errors"].T * (1 - a)[:, None] + np.diag(a)
    close(
        B,
        [
            [0.635933, 0.134884, 0.116424, 0.112759],
            [0.138413, 0.616667, 0.134206, 0.110714],
            [0.125132, 0.141770, 0.575306, 0.157793],
            [0.109152, 0.105577, 0.142562, 0.642708],
        ],
    )


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_after_one_pass() -> None:
    model = fitted(n_iter=1)
    close(model.loss_history_, [-37.498809])
    close(means(model), [-0.401157, 0.088748])
    close(theta(model, 0), [-0.380552, 0.118870, -0.036126, 0.008264, -0.006137, -0.005882, 0.003755])


@pytest.mark.parametrize("compiled", [False, True])
def test_converged(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled:
        monkeypatch.setattr(plain, "MAX_PLAIN_CELLS", -1)
    model = fitted()
    close(model.loss_history_[-1], -34.121973)
    close(means(model), [-0.889733, 0.592043])
    close(theta(model, 0), [-0.316766, 0.671619, 0.097651, 0.011327, -0.008958, -0.034002, 0.031633])
    close(theta(model, 2)[:3], [-1.999477, 0.674637, 0.946114])
    close(theta(model, 3)[:3], [-1.403838, 0.420090, -0.645097])
    close(model.posterior_[5], [0.013210, 0.901616, 0.084773, 0.000401])
    close(model.posterior_[7], [0.000013, 0.012665, 0.747192, 0.240130])
    close(model.reported_[5], [0.079150, 0.680019, 0.219854, 0.020977])
    close(model.reported_[7], [0.012917, 0.076987, 0.598023, 0.312073])
    close(model.calibration_.mean, [0.225981, 0.253496, 0.330708, 0.189815])
    at_least_3 = [0.028445, 0.119019, 0.900768, 0.972259, 0.038588, 0.240831, 0.954180, 0.910097]
    close(model.reported_[:, 2:].sum(axis=1), at_least_3)
    assert labels(model) == "12341233"
    assert model.nearness_ == means(model)[1]
    result = rarevote.Fitted.of(model).decide()
    close(result.columns()["grade"][7], 3.209253)
    assert "".join(result.labels) == "12341233"


def test_with_gold() -> None:
    model = fitted(gold={6: "3"})
    close(model.loss_history_[-1], -35.111272)
    close(means(model), [-0.675513, 0.475698])
    close(model.calibration_.mean, [0.172076, 0.179146, 0.441460, 0.207318])
    assert labels(model) == "12342333"


def test_a_class_outside_the_scale() -> None:
    model = fitted("1..3")
    close(model.loss_history_[-1], -38.386984)
    close(means(model), [-0.619354, 0.540880])
    close(model.reported_[7], [0.090491, 0.119715, 0.200955, 0.588839])
    assert labels(model) == "12341234"
    close(rarevote.Fitted.of(model).decide().columns()["grade"][7], 2.268663)


def random_crowd(seed: int) -> tuple[Annotations, list[float | None], dict[int, int]]:
    """A small crowd of three or four classes, at times with one outside the scale, a gap, or gold."""
    rng = np.random.default_rng(seed)
    K, n, m = int(rng.integers(3, 5)), int(rng.integers(6, 11)), int(rng.integers(2, 4))
    truth = rng.integers(0, K, n)
    rows = [
        (i, int(r), int(np.clip(truth[i] + rng.integers(-1, 2), 0, K - 1)))
        for i in range(n)
        for r in np.flatnonzero(rng.random(m) < 0.8)
    ]
    rows += [(n, r % m, r) for r in range(K)]
    positions: list[float | None] = [float(k) for k in range(K)]
    if K == 4 and seed % 2:
        positions[int(rng.integers(4))] = None
    elif seed % 3 == 0:
        positions[-1] = K + 0.0  # a gap before the last
    crowd = Annotations.from_arrays(*map(list, zip(*rows, strict=True)))
    gold = {crowd.tasks.tolist()[0]: int(truth[crowd.tasks.tolist()[0]])} if seed % 4 == 0 else {}
    return crowd, positions, gold


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(10))
def test_another_optimiser_reaches_the_same_objective(seed: int) -> None:
    crowd, positions, gold = random_crowd(seed)
    bounds = crowd.task_ptr.tolist()
    votes = [list(zip(crowd.worker[a:b].tolist(), crowd.label[a:b].tolist(), strict=True)) for a, b in pairwise(bounds)]
    place = {int(x): k for k, x in enumerate(positions) if x is not None}
    ordered = [place.get(x, f"none{x}") for x in range(max(place) + 1)]
    J = Objective(votes, crowd.n_workers, positions, {crowd.tasks.tolist().index(t): y for t, y in gold.items()})

    def parameters(model: AnchoredOrdered) -> NDArray[np.float64]:
        return np.concatenate([*(theta(model, r) for r in range(crowd.n_workers)), means(model)], axis=None)

    model = AnchoredOrdered(5000, ordered=ordered, tol=1e-9).fit(crowd, gold or None)
    first = AnchoredOrdered(1, ordered=ordered, tol=0).fit(crowd, gold or None)
    here = J(parameters(model))
    np.testing.assert_allclose(model.loss_history_[-1], here, rtol=1e-10)
    # From where the method starts (the shares of the votes give the parameters of the first pass) to the same top.
    np.testing.assert_allclose(J.maximum(parameters(first)), here, atol=1e-8)
    # A top of J: the other optimiser finds nothing higher from there.
    np.testing.assert_allclose(J.maximum(parameters(model)), here, atol=1e-8)
    # J may have several tops: from zeros, which is not where the method starts, one of these ten crowds has another.
    from_zeros = J.maximum(np.zeros(len(parameters(model))))
    if seed == ANOTHER_TOP:
        assert from_zeros > here + 0.1
    else:
        np.testing.assert_allclose(from_zeros, here, atol=1e-8)


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(20))
def test_the_objective_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, K = 40, int(rng.integers(3, 8))
    truth = rng.integers(0, K, n)
    rows = [(i, int(r), int(truth[i] if rng.random() < 0.5 else rng.integers(K))) for i in range(n) for r in range(6)]
    model = AnchoredOrdered(60, ordered=list(range(K)), tol=0).fit(rows)
    climbed = np.array(model.loss_history_)
    assert (np.diff(climbed) >= -1e-12 * np.abs(climbed[1:])).all()


# --------------------------------------------------------------------------------------------------------------------
# what it promises


def test_the_reversed_order_gives_the_reversed_answer() -> None:
    one, other = fitted(), fitted("4..1")
    np.testing.assert_allclose(one.reported_, other.reported_, atol=1e-12)
    assert labels(one) == labels(other)


def test_names_of_grades_are_not_their_order() -> None:
    names = dict(zip("1234", ["low", "moderate", "high", "critical"], strict=True))
    model = AnchoredOrdered(ordered="low,moderate,high,critical", tol=1e-10).fit(
        [(t, w, names[y]) for t, w, y in VOTES]
    )
    close(model.loss_history_[-1], -34.121973)
    assert list(model.labels_.to_dict().values()) == [names[y] for y in "12341233"]
    # Not numbers: the mean grade is in places, the lowest is 0.
    close(rarevote.Fitted.of(model).decide().columns()["grade"][7], 2.209253)


def test_a_grade_without_votes_is_a_gap() -> None:
    gap = fitted([1, 2, 3, 3.5, 4])
    assert gap.loss_history_[-1] != fitted().loss_history_[-1]
    wide = AnchoredOrdered(ordered=[1, 2, 3, 3.5, 4], tol=1e-10).fit(VOTES, classes=["3.5"])
    assert wide.reported_.shape == (8, 5)
    np.testing.assert_allclose(np.delete(wide.reported_, 3, axis=1), gap.reported_, atol=1e-12)
    assert (wide.reported_[:, 3] == 0).all()


def test_explanations_are_exact() -> None:
    model = fitted()
    for task in range(8):
        evidence = model.evidence(task)
        scores = evidence.log_prior + evidence.of_votes.sum(axis=0)
        q = np.exp(scores - scores.max())
        np.testing.assert_allclose(q / q.sum(), model.posterior_[task], atol=1e-9)


def test_saved_and_loaded(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "model")
    again = rarevote.load(tmp_path / "model")
    new = [("n", "a", "2"), ("n", "new", "3"), ("m", "d", "4")]
    assert again.predict(new).to_dict() == model.predict(new).to_dict()
    assert np.array_equal(again.label_new(new).posterior, model.label_new(new).posterior)
    # Votes of the fit alone, on its own tasks: what was reported.
    np.testing.assert_allclose(model.label_new(VOTES).posterior, model.reported_, atol=1e-12)


def test_leans() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 300)
    high = {"even": 0, "high": 1, "low": -1}
    rows = [
        (i, worker, int(np.clip(truth[i] + shift * (rng.random() < 0.6) + (rng.random() < 0.1), 0, 4)))
        for i in range(300)
        for worker, shift in [*high.items(), ("b", 0), ("c", 0)]
    ]
    leans = AnchoredOrdered(ordered="0..4").fit(rows).leans_.to_dict()
    assert leans["low"]["lean"] < -0.3 < leans["even"]["lean"] < 0.3 < leans["high"]["lean"]
    assert leans["even"]["exactness"] > max(leans["low"]["exactness"], leans["high"]["exactness"])


def test_a_meaningless_order_learns_no_nearness() -> None:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 4, 400)
    rows = [
        (i, r, int(truth[i] if rng.random() < 0.7 else (truth[i] + rng.integers(1, 4)) % 4))
        for i in range(400)
        for r in range(4)
    ]
    for order in list(permutations(range(4)))[:3]:
        model = AnchoredOrdered(ordered=list(order)).fit(rows)
        assert abs(model.nearness_) < 0.1
        assert (model.label_codes() == truth).mean() > 0.85


@pytest.mark.parametrize(
    "rows", [[("t", "w", 1)], [(t, "w", t % 4) for t in range(9)], [(t, w, 2) for t in range(5) for w in "ab"]]
)
def test_tiny_crowds(rows: list[tuple[Any, Any, int]]) -> None:
    model = AnchoredOrdered(ordered="0..3").fit(rows)
    assert np.isfinite(model.reported_).all()
    last = {task: label for task, _, label in rows}
    assert model.labels_.to_dict() == last


# --------------------------------------------------------------------------------------------------------------------
# the order as people give it


def test_an_order_is_needed() -> None:
    with pytest.raises(ParameterError, match=r"^anchored-ordered needs the order of the grades: give ordered=\["):
        rarevote.fit(VOTES, "anchored-ordered")
    with pytest.raises(ParameterError, match="needs the order"):
        AnchoredOrdered().fit(VOTES)


@pytest.mark.parametrize(
    ("ordered", "words"),
    [
        (["1", "2"], "at least 3 grades"),
        ("", "at least 3 grades"),
        (["1", "2", "1"], "'1' twice"),
        (7, "a list of classes"),
        ("1..21", r"21 grades are too many \(at most 20\): round or bin them, such as pandas.cut"),
        (list(range(30)), "too many"),
        ([f"c{k}" for k in range(30)], r"merge some of them$"),
        ("low,medium,high", "none of the grades low, medium, high has votes; the classes are 1, 2, 3, 4"),
    ],
)
def test_orders_that_are_refused(ordered: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        rarevote.fit(VOTES, ordered=ordered)


def test_an_order_means_this_method() -> None:
    result = rarevote.fit(VOTES, ordered=[1, 2, 3, 4])
    assert result.method.method_name == "anchored-ordered"
    assert result.decide().description.startswith("levelled")
    with pytest.raises(ParameterError, match="given twice, and differs"):
        rarevote.fit(VOTES, AnchoredOrdered(ordered="1..4"), ordered="4..1")
    assert rarevote.fit(VOTES, AnchoredOrdered(ordered="1..4"), ordered=[1, 2, 3, 4]).grades is not None


def test_a_misspelled_grade_is_named() -> None:
    names = dict(zip("1234", ["low", "medium", "high", "can't tell"], strict=True))
    rows = [(t, w, names[y]) for t, w, y in VOTES]
    with pytest.warns(RarevoteWarning) as seen:
        rarevote.fit(rows, ordered="low,medum,high,top")
    said = [str(one.message) for one in seen]
    assert said[0] == "the grade medum has no votes, and medium is outside the scale: did you mean medium?"
    assert said[1].startswith("only low, high of the grades have votes")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rarevote.fit(rows, ordered="low,medium,high")


def test_fewer_than_three_grades_are_no_order() -> None:
    rows = [(t, w, "1" if y in "12" else "5") for t, w, y in VOTES]
    with pytest.warns(RarevoteWarning, match="only 1, 5 of the grades have votes.*anchored-rasch is fitted instead"):
        found = rarevote.fit(rows, ordered="1..5")
    assert isinstance(found.method, AnchoredRasch)
    assert found.decide("median").labels.tolist()
    # A grade of gold alone counts.
    with pytest.warns(RarevoteWarning, match="gold contains classes without votes"):
        assert isinstance(rarevote.fit(rows, ordered="1..5", gold={1: "3"}).method, AnchoredOrdered)
