"""The one probability of every item and class, against the formulas in loops, for every method; and new tasks."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from math import exp, fsum, log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rarevote
from rarevote.decide import probabilities as module
from rarevote.decide.probabilities import (
    AsReported,
    Probabilities,
    Smoothed,
    Tempered,
    calibrated,
    reweighted,
    shares_wanted,
)
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.io.model_files import read_model, write_model
from rarevote.methods.new_tasks import predict
from rarevote.methods.registry import METHODS, find_method, methods_that
from tests.decide.made import made
from tests.tables import METHOD_ROWS, ORDERED, small_network

Table = list[list[float]]
Rows = list[tuple[str, str, str]]
#: what has a class prior says so
WITH_PRIOR = {row.name for row in METHOD_ROWS if row.has_prior}
BY_VOTES = {"majority-vote", "wawa", "zero-based-skill", "kos", "plat", "gold-majority-vote"}
ANCHORED = {"anchored-rasch", "anchored-ordered"}  # which report their own probabilities
BINARY = {row.name for row in METHOD_ROWS if row.binary}


# -- the formulas, item by item and class by class ---------------------------------------------------------------------


def with_gold(p: Table, gold: list[int]) -> Table:
    return [row if y < 0 else [float(k == y) for k in range(len(row))] for row, y in zip(p, gold, strict=True)]


def mean_of(p: Table) -> list[float]:
    return [fsum(row[k] for row in p) / len(p) for k in range(len(p[0]))]


def discounted_by_hand(q: list[float], pi: list[float], g: list[float], v: int) -> list[float]:
    """``p_k ∝ g_k exp(L_k / (1 + 0.2 (v - 1)))`` with ``L_k = log max(q_k, 1e-12) - log pi_k``."""
    scores = [
        g[k] * exp((log(max(q[k], 1e-12)) - log(max(pi[k], 1e-12))) / (1 + 0.2 * (v - 1))) if g[k] > 0 else 0.0
        for k in range(len(q))
    ]
    return [score / fsum(scores) for score in scores]


def tempered_by_hand(
    q: Table, pi: list[float], g: list[float], v: list[int], gold: list[int]
) -> tuple[Table, list[float]]:
    p = with_gold([discounted_by_hand(row, pi, g, n) for row, n in zip(q, v, strict=True)], gold)
    f = mean_of(p)
    return with_gold([[0.95 * a + 0.05 * b for a, b in zip(row, f, strict=True)] for row in p], gold), f


def smoothed_by_hand(w: Table, g: list[float], v: list[int], gold: list[int]) -> tuple[Table, list[float]]:
    """``(w_k + g_k) / (v + 1)`` with the weights scaled to sum to ``v``; uniform ones where all are 0."""
    p = []
    for row, n in zip(w, v, strict=True):
        total = fsum(row)
        scaled = [n * a / total for a in row] if total > 0 else [n / len(row)] * len(row)
        p.append([(a + b) / (n + 1) for a, b in zip(scaled, g, strict=True)])
    p = with_gold(p, gold)
    return p, mean_of(p)


# -- the formulas in arrays --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [1, 2, 4])
@pytest.mark.parametrize("seed", [0, 1])
def test_tempered_and_smoothed_against_loops(n_classes: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", 20)  # several blocks
    rng = np.random.default_rng(seed)
    n = 30
    q = rng.dirichlet(np.full(n_classes, 0.2), n)
    q[0] = np.eye(n_classes)[0]  # zeros: their logarithm is cut
    pi, g = rng.dirichlet(np.ones(n_classes)), rng.dirichlet(np.ones(n_classes))
    v = rng.integers(1, 30, n)
    gold = np.where(rng.random(n) < 0.3, rng.integers(0, n_classes, n), -1)
    for known in (gold, np.full(n, -1)):
        of_lists = (q.tolist(), g.tolist(), v.tolist(), known.tolist())
        p, f = tempered_by_hand(of_lists[0], pi.tolist(), *of_lists[1:])
        found, mean = calibrated(Tempered(g, pi), q, v, known)
        np.testing.assert_allclose(found, p, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(mean, f, rtol=1e-12)
        p, f = smoothed_by_hand(*of_lists)
        found, mean = calibrated(Smoothed(g), q, v, known)
        np.testing.assert_allclose(found, p, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(mean, f, rtol=1e-12)


def test_no_gold_at_all_may_be_an_empty_array() -> None:
    q, v = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([1, 5])
    g = np.array([0.5, 0.5])
    for calibrator in (Tempered(g, g), Smoothed(g), AsReported()):
        one, mean = calibrated(calibrator, q, v, np.empty(0, dtype=np.int32))
        other, same = calibrated(calibrator, q, v, np.array([-1, -1]))
        assert one.tolist() == other.tolist()
        assert mean.tolist() == same.tolist()


def test_single_precision_is_calibrated_in_double() -> None:
    q = np.random.default_rng(0).dirichlet([0.1, 0.3, 1.0], 50)
    g, v = np.array([0.1, 0.2, 0.7]), np.full(50, 3)
    double = Tempered(g, g).discounted(q, v)
    single = Tempered(g, g).discounted(q.astype(np.float32), v)
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, atol=1e-5)
    np.testing.assert_allclose(single.sum(axis=1), 1.0, rtol=1e-12)


def test_what_a_method_reports_itself_is_left_alone() -> None:
    p = np.array([[0.2, 0.8], [0.6, 0.4]])
    found, mean = calibrated(AsReported(), p, np.array([1, 9]), np.empty(0))
    assert found.tolist() == p.tolist()
    np.testing.assert_allclose(mean, [0.4, 0.6])


# -- every method ------------------------------------------------------------------------------------------------------


def rows_of(classes: str, seed: int, *, repeats: bool = False) -> Rows:
    """25 tasks with one to six votes each, the first class the rarest."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, len(classes) + 1) / sum(range(1, len(classes) + 1))
    rows: Rows = []
    for task in range(25):
        true = rng.choice(len(classes), p=share)
        for worker in rng.permutation(7)[: rng.integers(1, 7)]:
            said = true if rng.random() < 0.55 + 0.05 * worker else rng.integers(len(classes))
            rows.append((f"t{task:02d}", f"w{worker}", classes[said]))
    if repeats:
        rows += [(task, worker, classes[0]) for task, worker, _ in rows[::9]]
    # Every class has a vote.
    return rows + [(f"t{task:02d}", "w9", label) for task, label in enumerate(classes)]


CROWDS: dict[str, dict[str, Any]] = {
    "two classes": {"rows": rows_of("ab", 1)},
    "four classes": {"rows": rows_of("abcd", 2)},
    "one class": {"rows": rows_of("a", 3)},
    "repeated votes": {"rows": rows_of("ab", 4, repeats=True)},
    "a class without votes": {"rows": rows_of("abc", 5), "classes": ["z"]},
    "gold": {"rows": rows_of("abc", 6), "gold": {"t03": "a", "t07": "b", "t11": "c", "t12": "c"}},
    "a class of gold alone": {"rows": rows_of("ab", 7), "gold": {"t03": "a", "t07": "b", "t11": "z"}},
}


def fitted_on(name: str, crowd: dict[str, Any]) -> rarevote.Fitted:
    """A method on one of the crowds, where three tasks have nothing but silence."""
    parameters = {row.name: row.parameters for row in METHOD_ROWS}[name]
    if name in ANCHORED:
        parameters = {"ordered": ORDERED, "rho": 0.2} if METHODS[name].capabilities.ordered else {}
    method = find_method(name).load()().set_params(**parameters)
    if "n_iter" in method.get_params():
        method.set_params(n_iter=15)
    if name == "crowdfm":
        method.set_params(weights=small_network())
    rows = [*crowd["rows"], *((task, "w0", "skipped") for task in ("u1", "u2", "u3"))]
    options = {"classes": crowd["classes"]} if "classes" in crowd else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rarevote.fit(rows, method, gold=crowd.get("gold"), abstain=["skipped"], **options)


def is_for(name: str, kind: str) -> bool:
    """Whether a method can be fitted to such a crowd."""
    crowd, can = CROWDS[kind], METHODS[name].capabilities
    names = {label for _, _, label in crowd["rows"]} | set(crowd.get("gold", {}).values())
    n_classes = len(names) + len(crowd.get("classes", []))
    return not (name in BINARY and n_classes > 2) and ("gold" not in crowd or can.gold)


def case(name: str, kind: str) -> rarevote.Fitted:
    crowd = dict(CROWDS[kind])
    if METHODS[name].capabilities.needs_gold and "gold" not in crowd:
        crowd["gold"] = {task: label for task, _, label in crowd["rows"][::4]}
    return fitted_on(name, crowd)


def weights_by_hand(name: str, model: Any, rows: Rows, tasks: list[str], classes: list[str]) -> Table:
    """Weight of the votes for every class on every task."""
    if name == "kos":
        return [list(map(float, row)) for row in model.posterior_]
    if name == "plat":  # the last vote of each worker on a task, as it stands
        last = {(task, worker): label for task, worker, label in rows}
        rows = [(task, worker, label) for (task, worker), label in last.items()]
    skill = {} if name in ("plat", "majority-vote") else model.skills_.to_dict()
    weight: Counter[tuple[str, str]] = Counter()
    for task, worker, label in rows:
        weight[task, label] += skill.get(worker, 1.0)
    return [[float(weight[task, label]) for label in classes] for task in tasks]


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name in METHODS for kind in CROWDS if is_for(name, kind)])
def test_the_probability_of_every_method_is_the_formula(name: str, kind: str) -> None:
    fitted = case(name, kind)
    model: Any = fitted.method
    crowd, rows = fitted.annotations, CROWDS[kind]["rows"]
    tasks, classes = crowd.tasks.tolist(), crowd.classes.tolist()
    votes, of_class = Counter(task for task, _, _ in rows), Counter(label for _, _, label in rows)
    v = [votes[task] for task in tasks]
    g = [of_class[label] / len(rows) for label in classes]
    gold = [classes.index(fitted.gold[task]) if task in fitted.gold else -1 for task in tasks]
    q = model.posterior_.tolist()
    if name in ANCHORED:
        prior = list(model.priors_.to_dict().values())
        p, f = tempered_by_hand(q, prior, prior, v, gold)
    elif name in BY_VOTES:
        p, f = smoothed_by_hand(weights_by_hand(name, model, rows, tasks, classes), g, v, gold)
    else:
        prior = [1 / len(classes)] * len(classes)
        if name == "gold-dawid-skene":  # shares of the known tasks, smoothed by one of each class
            prior = [(gold.count(k) + 1) / (len(fitted.gold) + len(classes)) for k in range(len(classes))]
        elif name in WITH_PRIOR:
            prior = list(model.priors_.to_dict().values())
        p, f = tempered_by_hand(q, prior, g, v, gold)
    n = len(tasks)
    assert crowd.unanswered.tolist() == ["u1", "u2", "u3"]
    assert fitted.probabilities.shape == (n + 3, len(classes))
    np.testing.assert_allclose(fitted.probabilities[:n], p, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fitted.probabilities[n:], [f] * 3, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(fitted.probabilities.sum(axis=1), 1.0, rtol=1e-12)
    assert fitted.reported.mean.tolist() == fitted.probabilities[-1].tolist()
    assert fitted.reported.gold.tolist() == [*gold, -1, -1, -1]
    assert np.array_equal(model.reported_, fitted.probabilities[:n])


@pytest.mark.parametrize("name", sorted(set(METHODS) - ANCHORED))
def test_posterior_and_labels_stay_as_published(name: str) -> None:
    fitted = case(name, "two classes")
    model = fitted.method
    before = model.posterior_.copy()
    assert fitted.probabilities is not None
    assert np.array_equal(model.posterior_, before)
    probas = np.array([list(of_class.values()) for of_class in model.probas_.to_dict().values()])
    np.testing.assert_array_equal(probas, model.posterior_)
    assert fitted.reported.is_default is False


def test_items_without_votes_count_in_no_mean() -> None:
    crowd = CROWDS["two classes"]
    with_silence = fitted_on("dawid-skene", crowd)
    without = rarevote.fit(crowd["rows"], with_silence.method)
    assert np.array_equal(with_silence.reported.mean, without.reported.mean)


# -- given class shares ------------------------------------------------------------------------------------------------


def test_another_prior_is_bayes_rule() -> None:
    likelihood = np.random.default_rng(0).random((50, 3))
    prior, other = np.array([0.2, 0.3, 0.5]), np.array([0.7, 0.2, 0.1])

    def by_hand(shares: Any) -> Any:
        joint = likelihood * shares
        return joint / joint.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(reweighted(by_hand(prior), prior, other), by_hand(other), rtol=1e-12)


def reweighted_by_hand(p: Table, f: list[float], shares: list[float], gold: list[int]) -> Table:
    found = []
    for row in p:
        joint = [row[k] * shares[k] / f[k] for k in range(len(row))]
        found.append([value / fsum(joint) for value in joint])
    return with_gold(found, gold)


def test_given_shares_reweight_every_item_but_the_known() -> None:
    fitted = case("dawid-skene", "gold")
    before, shares = fitted.reported, [0.2, 0.3, 0.5]
    found = before.with_shares(shares)
    wanted = reweighted_by_hand(before.p.tolist(), before.mean.tolist(), shares, before.gold.tolist())
    np.testing.assert_allclose(found.p, wanted, rtol=1e-12)
    np.testing.assert_allclose(found.p[-1], shares, rtol=1e-12)  # nothing but the shares is known of it
    assert found.mean.tolist() == shares
    assert (found.how, found.is_given) == ("given", True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = fitted.decide(prevalence={"a": 0.2, "b": 0.3})
    np.testing.assert_allclose(result.probabilities.p, wanted, rtol=1e-12)
    assert np.array_equal(fitted.probabilities, before.p), "those of the fit stay"


def test_shares_of_a_random_gold_sample() -> None:
    rng = np.random.default_rng(5)
    p = rng.dirichlet([0.4, 0.4], size=1000)
    gold = dict.fromkeys(range(10), 1) | dict.fromkeys(range(10, 200), 0)
    before = made(p, gold=gold)
    found = before.with_shares("gold")
    shares = [190.5 / 201, 10.5 / 201]
    np.testing.assert_allclose(found.mean, shares)
    wanted = reweighted_by_hand(before.p.tolist(), before.mean.tolist(), shares, before.gold.tolist())
    np.testing.assert_allclose(found.p, wanted, rtol=1e-12)
    assert not found.is_given
    assert "200 known tasks" in found.how
    assert found.blind is not None
    by_hand = reweighted_by_hand(p.tolist(), before.mean.tolist(), shares, [-1] * 1000)
    np.testing.assert_allclose(found.blind, by_hand, rtol=1e-12)


def test_estimated_shares_change_nothing() -> None:
    before = made([[0.2, 0.8]])
    assert before.with_shares("estimate") is before


def test_one_class_may_be_left_out() -> None:
    wanted, how = shares_wanted({"yes": 0.1}, np.array(["no", "yes"]), np.zeros(2))
    np.testing.assert_allclose(np.asarray(wanted), [0.9, 0.1])
    assert how == "given"
    by_text, _ = shares_wanted({"1": 0.1, "0": 0.9}, np.array([0, 1]), np.zeros(2))
    np.testing.assert_allclose(np.asarray(by_text), [0.9, 0.1])


@pytest.mark.parametrize(
    "shares",
    [
        {"yes": 0.25, "no": 0.75},
        {np.str_("yes"): Decimal("0.25")},
        np.array([0.75, 0.25]),
        (0.75, np.float32(0.25)),
        pl.Series([0.75, 0.25]),
        pa.array([0.75, 0.25]),
        pd.Series({"yes": 0.25, "no": 0.75}),
        pd.Series({"yes": 0.25}, dtype="Float64"),
    ],
    ids=lambda given: type(given).__module__,
)
def test_every_way_to_write_shares(shares: Any) -> None:
    before = made([[0.5, 0.5], [0.1, 0.9]], names=np.array(["no", "yes"]))
    found, wanted = before.with_shares(shares), before.with_shares([0.75, 0.25])
    assert np.array_equal(found.p, wanted.p)
    assert found.is_given is True
    fitted = rarevote.fit([("a", "x", "yes"), ("a", "y", "no"), ("b", "x", "no")], "majority-vote")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        one, other = fitted.decide(prevalence=shares), fitted.decide(prevalence=[0.75, 0.25])
    assert np.array_equal(one.probabilities.p, other.probabilities.p)


@pytest.mark.parametrize(
    ("prevalence", "message"),
    [
        ("guess", "estimate"),
        ("gold", "no task has a gold label"),
        ({"no": 0.5, "maybe": 0.5}, "'maybe' is not a class"),
        ({"no": 1.5}, "between 0 and 1"),
        ({}, "lacks the classes no, yes"),
        ([0.5, 0.4], "sum to 1"),
        ({0.5}, "shares of the classes, got {0.5}"),
        ([[0.5, 0.5]], "shares of the classes, got .*0.5, 0.5"),
        ([[0.5], [0.5, 1.0]], "shares of the classes, got"),
        (["a", "b"], "shares of the classes, got .'a', 'b'"),
        (["0.5", "0.5"], "shares of the classes, got"),
        ({"no": "0.9"}, "shares of the classes, got {'no': '0.9'}"),
        ({"no": None}, "shares of the classes, got {'no': None}"),
        ({"no": np.nan}, "shares of the classes, got {'no': nan}"),
        ({"no": [0.9]}, "shares of the classes, got"),
        (b"gold", "shares of the classes, got b'gold'"),
        (np.ma.array([0.5, 0.5], mask=[True, False]), "shares of the classes, got"),
        (pd.Series([0.5, 0.5]), "0 is not a class"),
        (pd.DataFrame({"no": [0.5], "yes": [0.5]}), "shares of the classes, got"),
        (pl.Series([0.5, None]), "shares between 0 and 1"),
        ([1.0, 0.0], "between 0 and 1"),
        ([1.0], "2 shares"),
        ([float("nan"), 0.5], "between 0 and 1"),
    ],
)
def test_bad_prevalence(prevalence: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        made([[0.5, 0.5]], names=np.array(["no", "yes"])).with_shares(prevalence)


def test_some_of_the_items() -> None:
    found = made(np.random.default_rng(0).dirichlet([1, 1], 9), gold={2: 1})
    assert found.first(9) is found
    some = found.first(4)
    assert isinstance(some, Probabilities)
    assert np.array_equal(some.p, found.p[:4])
    assert some.gold.tolist() == [-1, -1, 1, -1]
    assert np.array_equal(some.ranking, found.ranking[:4])
    assert some.mean is found.mean


# -- new tasks of known workers ---------------------------------------------------------------------------------------

NEW: Rows = [
    ("n1", "w1", "a"),
    ("n1", "w2", "b"),
    ("n1", "w3", "b"),
    ("n2", "w4", "a"),
    ("n3", "w5", "b"),
    ("n3", "w6", "b"),
    ("n3", "w1", "b"),
    ("n3", "w2", "b"),
]


def columns_of(rows: dict[str, Any], classes: list[str]) -> Any:
    return np.column_stack([rows[f"p:{name}"] for name in classes])


@pytest.mark.parametrize("name", methods_that("predict"))
def test_a_saved_model_gives_new_tasks_the_formula_with_shares_and_mean_of_the_fit(name: str, tmp_path: Path) -> None:
    fitted = case(name, "two classes")
    model: Any = fitted.method
    rows = CROWDS["two classes"]["rows"]
    fitted.save(tmp_path / "model")
    _, direct = predict(model, NEW)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RarevoteWarning)
        found, after = predict(rarevote.load(tmp_path / "model"), NEW)
    assert {key: list(column) for key, column in after.items()} == {key: list(c) for key, c in direct.items()}
    classes = fitted.annotations.classes.tolist()
    p = columns_of(after, classes)
    q = np.array([list(of_class.values()) for of_class in model.predict_proba(NEW).to_dict().values()])
    g, v = [Counter(label for _, _, label in rows)[label] / len(rows) for label in classes], [3, 1, 4]
    f = fitted.reported.mean.tolist()
    if name in ANCHORED:
        wanted = q.tolist()
    elif name in BY_VOTES:
        wanted = smoothed_by_hand(q.tolist(), g, v, [-1] * 3)[0]
    else:
        prior = [1 / len(classes)] * len(classes)
        if name in WITH_PRIOR or name == "gold-dawid-skene":
            prior = list(model.priors_.to_dict().values())
        wanted = [
            [0.95 * one + 0.05 * other for one, other in zip(discounted_by_hand(row, prior, g, n), f, strict=True)]
            for row, n in zip(q.tolist(), v, strict=True)
        ]
    np.testing.assert_allclose(p, wanted, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(after["confidence"], p[np.arange(3), found.codes], rtol=1e-12)
    assert list(after["votes"]) == v
    assert list(after["label"]) == [classes[code] for code in found.codes]


@pytest.mark.parametrize("name", methods_that("predict"))
def test_a_model_of_version_0_2_labels_and_says_that_p_is_not_calibrated(name: str, tmp_path: Path) -> None:
    fitted = case(name, "two classes")
    fitted.save(tmp_path / "new")
    saved = read_model(tmp_path / "new")
    arrays = {key: array for key, array in saved.arrays.items() if key not in ("vote_shares", "mean_p")}
    write_model(tmp_path / "old", replace(saved, arrays=arrays))
    old = rarevote.load(tmp_path / "old")
    if name in ANCHORED:  # its models always held what it needs
        assert arrays.keys() == saved.arrays.keys()
        predict(old, NEW)
        return
    assert arrays.keys() < saved.arrays.keys()
    with pytest.warns(RarevoteWarning, match="saved by rarevote 0.2: its probabilities are not calibrated"):
        found, rows = predict(old, NEW)
    q = np.array([list(of_class.values()) for of_class in fitted.method.predict_proba(NEW).to_dict().values()])
    np.testing.assert_array_equal(columns_of(rows, fitted.annotations.classes.tolist()), q)
    assert list(rows["label"]) == list(predict(fitted.method, NEW)[1]["label"])
    assert found.codes.tolist() == q.argmax(axis=1).tolist()


@pytest.mark.parametrize("name", ["wawa", "zero-based-skill", "gold-majority-vote"])
def test_a_new_label_has_no_share_of_the_votes_of_the_fit(name: str) -> None:
    fitted = case(name, "two classes")
    _, rows = predict(fitted.method, [*NEW, ("n2", "w1", "0"), ("n2", "w6", "0")])
    model: Any = fitted.method
    skill = model.skills_.to_dict()
    of_class = Counter(label for _, _, label in CROWDS["two classes"]["rows"])
    g = [0.0, of_class["a"] / of_class.total(), of_class["b"] / of_class.total()]
    weights = [[0.0, skill["w1"], skill["w2"] + skill["w3"]], [skill["w1"] + skill["w6"], skill["w4"], 0.0]]
    wanted = smoothed_by_hand(weights, g, [3, 3], [-1, -1])[0]
    np.testing.assert_allclose(columns_of(rows, ["0", "a", "b"])[:2], wanted, rtol=1e-12)


def test_a_damaged_mean_is_refused(tmp_path: Path) -> None:
    case("dawid-skene", "two classes").save(tmp_path / "model")
    saved = read_model(tmp_path / "model")
    for name, array in (("mean_p", [0.5, 0.6]), ("vote_shares", [0.5]), ("vote_shares", [-0.1, 1.1])):
        write_model(tmp_path / "bad", replace(saved, arrays={**saved.arrays, name: np.array(array)}))
        with pytest.raises(InputError, match=name):
            rarevote.load(tmp_path / "bad")
