"""The steps of the feature prior against other ways to compute them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize, root

from rarevote.features.columns import Columns
from rarevote.features.ridge import CrossFit, folds_of, softmax
from rarevote.features.weight import Candidate, Weight, anchored, choose, item_gains, standard_error


@pytest.mark.parametrize(("classes", "tau2"), list(product((2, 3), (0.1, 1.0, 10.0))))
def test_the_ridge_is_at_scipys_optimum(classes: int, tau2: float) -> None:
    rng = np.random.default_rng(classes)
    n, d = 120, 4
    x, q = rng.normal(size=(n, d)), rng.dirichlet(np.ones(classes), size=n)
    fold, trains = np.arange(n) % 3, np.arange(n) < 100
    fit = CrossFit(lambda part: x[part], fold, trains, q, d, 3, d)
    for smaller in (0.1, 1.0, 10.0):
        if smaller <= tau2:
            fit.solve(smaller, 5000, 1e-13)
    for f in range(3):
        rows = trains & (fold != f)

        def loss(flat: np.ndarray, rows: np.ndarray = rows) -> float:
            slopes, intercepts = flat[: d * classes].reshape(d, classes), flat[d * classes :]
            logs = np.log(softmax(x[rows] @ slopes + intercepts))
            return float(-(q[rows] * logs).sum() + d / (2.0 * tau2) * (slopes**2).sum())

        best = minimize(loss, np.zeros((d + 1) * classes), method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
        found = loss(np.concatenate([fit.slopes[f].ravel(), fit.intercepts[f]]))
        assert found <= best.fun + 1e-9
        assert fit.slopes[f] == pytest.approx(best.x[: d * classes].reshape(d, classes), abs=1e-4)
    own = np.stack([x[i] @ fit.slopes[fold[i]] for i in range(n)])
    assert fit.scores == pytest.approx(own - own.mean(axis=1, keepdims=True), abs=1e-12)


def test_the_default_stop_is_near_the_optimum() -> None:
    rng = np.random.default_rng(3)
    x, q = rng.normal(size=(300, 6)), rng.dirichlet(np.ones(2), size=300)
    fold, trains = np.arange(300) % 5, np.ones(300, dtype=bool)
    near, exact = (CrossFit(lambda part: x[part], fold, trains, q, 6, 5, 6) for _ in range(2))
    near.solve(1.0, 20, 1e-3)
    exact.solve(1.0, 5000, 1e-13)
    assert near.n_steps <= 20
    assert near.scores == pytest.approx(exact.scores, abs=2e-3)


def test_the_anchor_by_root_finding() -> None:
    rng = np.random.default_rng(1)
    eta = rng.normal(size=(80, 3))
    eta -= eta.mean(axis=1, keepdims=True)
    prior = np.array([0.7, 0.25, 0.05])
    offsets = anchored(eta, 2.5, prior)
    assert softmax(2.5 * eta + offsets).mean(axis=0) == pytest.approx(prior, abs=1e-8)

    def gap(free: np.ndarray) -> np.ndarray:
        mean = softmax(2.5 * eta + np.append(free, 0.0)).mean(axis=0)
        return np.asarray((mean - prior)[:2])

    free = root(gap, np.zeros(2), tol=1e-12).x
    assert offsets[:2] - offsets[2] == pytest.approx(free, abs=1e-6)


def test_the_gain_by_brute_force() -> None:
    rng = np.random.default_rng(2)
    priors, prior = rng.dirichlet(np.ones(3), size=6), np.array([0.5, 0.3, 0.2])
    likelihood = rng.uniform(1e-6, 1e-3, size=(6, 3))
    by_hand = [
        np.log(sum(priors[i, k] * likelihood[i, k] for k in range(3)))
        - np.log(sum(prior[k] * likelihood[i, k] for k in range(3)))
        for i in range(6)
    ]
    gains = item_gains(priors, prior, np.log(likelihood))
    assert gains == pytest.approx(by_hand, abs=1e-12)
    assert item_gains(priors, prior, np.log(likelihood) - 900.0) == pytest.approx(by_hand, abs=1e-10)
    centre = sum(by_hand) / 6
    assert standard_error(gains) == pytest.approx(np.sqrt(sum((one - centre) ** 2 for one in by_hand)))


def test_the_one_standard_error_rule() -> None:
    rng = np.random.default_rng(5)
    base = rng.normal(0.3, 1.0, size=400)
    weight = Weight(1.0, 1.0, np.zeros(2), np.full(2, 0.5), 0.05)
    best = Candidate(weight, base, 3.0)
    near = Candidate(weight, base - rng.normal(0.001, 0.1, size=400), 1.0)
    far = Candidate(weight, base - 0.5, 0.1)
    assert choose([far, near, best]) is near
    assert choose([best, Candidate(weight, base, 3.0)]) is best


def test_columns_in_standard_form() -> None:
    rng = np.random.default_rng(6)
    values = rng.normal(3.0, 5.0, size=(50, 4))
    values[:, 2] = 7.0
    values[3, 0], values[5, 1] = np.nan, np.inf
    columns = Columns.of(values, np.arange(50), list("abcd"))
    filled = values.copy()
    filled[3, 0], filled[5, 1] = np.delete(values[:, 0], 3).mean(), np.delete(values[:, 1], 5).mean()
    wanted = np.delete((filled - filled.mean(axis=0)) / np.where(filled.std(axis=0) > 0, filled.std(axis=0), 1), 2, 1)
    assert columns.block(slice(None)) == pytest.approx(wanted, abs=1e-12)
    assert (columns.n_columns, columns.n_missing) == (3, 2)


@pytest.mark.parametrize("d", [30, 70])
def test_too_many_columns_are_projected(d: int) -> None:
    values = np.random.default_rng(7).normal(size=(40, d))
    columns = Columns.of(values, np.arange(40), [""] * d)
    x = (values - values.mean(axis=0)) / values.std(axis=0)
    left, size, _ = np.linalg.svd(x, full_matrices=False)
    found = columns.block(slice(None))
    assert (columns.width, columns.n_columns) == (20, d)
    assert np.abs(found) == pytest.approx(np.abs(left[:, :20] * size[:20]), abs=1e-8)


def test_large_tables_are_computed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(8)
    x, q = rng.normal(size=(200, 5)), rng.dirichlet(np.ones(2), size=200)
    fold, trains = folds_of(np.arange(200), 5), np.ones(200, dtype=bool)

    def scores() -> np.ndarray:
        columns = Columns.of(x, np.arange(200), list("abcde"))
        fit = CrossFit(columns.block, fold, trains, q, 5, 5, 5)
        fit.solve(1.0, 20, 1e-3)
        return fit.scores

    whole = scores()
    monkeypatch.setattr("rarevote.features.columns.BLOCK", 7)
    assert scores() == pytest.approx(whole, abs=1e-12)
    monkeypatch.setattr("rarevote.features.columns._KEPT_CELLS", 10)
    assert scores() == pytest.approx(whole, abs=1e-5)  # in single precision
