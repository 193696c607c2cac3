from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from rarevote.errors import InputError, ParameterError
from rarevote.methods.rasch import Rasch
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows

SIGMAS = ("sigma_theta", "sigma_beta", "sigma_theta_mu", "sigma_beta_mu")


def oracle(
    rows: Rows, truth: dict[str, str], sigmas: dict[str, float]
) -> tuple[dict[str, float], dict[str, float], float]:
    """The penalised likelihood in its own parameters, centred explicitly, solved by L-BFGS-B."""
    scored = [row for row in rows if row[0] in truth]
    tasks = sorted({task for task, _, _ in scored})
    workers = sorted({worker for _, worker, _ in scored})
    i = np.array([tasks.index(task) for task, _, _ in scored])
    r = np.array([workers.index(worker) for _, worker, _ in scored])
    right = np.array([label == truth[task] for task, _, label in scored])
    n, m = len(tasks), len(workers)
    sigma_theta, sigma_beta, sigma_theta_mu, sigma_beta_mu = (sigmas[name] for name in SIGMAS)

    def unpack(x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        g, h = x[2 : 2 + m], x[2 + m :]
        return g - g.mean(), h - h.mean()

    def loss(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        g, h = unpack(x)
        eta = x[0] - x[1] + g[r] - h[i]
        value = np.logaddexp(0.0, np.where(right, -eta, eta)).sum()
        value += x[0] ** 2 / (2 * sigma_theta_mu**2) + x[1] ** 2 / (2 * sigma_beta_mu**2)
        value += (g**2).sum() / (2 * sigma_theta**2) + (h**2).sum() / (2 * sigma_beta**2)
        residual = 1 / (1 + np.exp(-eta)) - right
        of_g = np.bincount(r, residual, minlength=m) + g / sigma_theta**2
        of_h = -np.bincount(i, residual, minlength=n) + h / sigma_beta**2
        of_mu = [residual.sum() + x[0] / sigma_theta_mu**2, -residual.sum() + x[1] / sigma_beta_mu**2]
        return float(value), np.concatenate([of_mu, of_g - of_g.mean(), of_h - of_h.mean()])

    options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-9}
    solved = minimize(loss, np.zeros(2 + m + n), jac=True, method="L-BFGS-B", options=options)
    g, h = unpack(solved.x)
    ability = dict(zip(workers, (solved.x[0] + g).tolist(), strict=True))
    return ability, dict(zip(tasks, (solved.x[1] + h).tolist(), strict=True)), -float(solved.fun)


@pytest.mark.parametrize(
    "sigmas",
    [
        {},
        {"sigma_theta": 0.3, "sigma_beta": 2.0},
        # The deviations could carry more than the means are allowed to.
        {"sigma_theta": 4.0, "sigma_beta": 3.0, "sigma_theta_mu": 0.1, "sigma_beta_mu": 0.2},
    ],
)
@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_equals_a_general_solver(classes: str, sigmas: dict[str, float]) -> None:
    rows, truth = random_rows(40, 8, classes, votes=4)
    model = Rasch(**sigmas).fit(columns(rows), truth)  # type: ignore[arg-type]
    ability, difficulty, objective = oracle(rows, truth, dict.fromkeys(SIGMAS, 1.0) | sigmas)
    assert model.converged_
    assert model.abilities_.to_dict() == pytest.approx(ability, abs=2e-5)
    assert model.difficulties_.to_dict() == pytest.approx(difficulty, abs=2e-5)
    assert model.loss_history_[-1] == pytest.approx(objective, abs=1e-7)
    assert model.labels_.to_dict() == truth


def test_only_tasks_with_truth_inform_the_fit() -> None:
    rows, truth = random_rows(40, 8, votes=4)
    known = dict(list(truth.items())[:15])
    part = [row for row in rows if row[0] in known]
    extra: Rows = [("later", "w00", "a"), ("later", "stranger", "b")]
    model, alone = Rasch().fit(columns(rows + extra), known), Rasch().fit(columns(part), known)
    abilities, of_known = model.abilities_.to_dict(), alone.abilities_.to_dict()
    assert {worker: abilities[worker] for worker in of_known} == pytest.approx(of_known, abs=1e-9)
    difficulties, of_gold = model.difficulties_.to_dict(), alone.difficulties_.to_dict()
    assert {task: difficulties[task] for task in of_gold} == pytest.approx(of_gold, abs=1e-9)
    assert abilities["stranger"] == pytest.approx(np.mean(list(of_known.values())))
    assert difficulties["later"] == pytest.approx(np.mean(list(of_gold.values())))


def test_other_tasks_are_labelled_with_the_abilities() -> None:
    rows, truth = random_rows(60, 8, "abc", votes=5)
    known = dict(list(truth.items())[:30])
    model = Rasch().fit(columns(rows), known)
    ability, mean = model.abilities_.to_dict(), np.mean(list(model.difficulties_.to_dict().values()))
    probas = model.probas_.to_dict()
    rest = [row for row in rows if row[0] not in known]
    new = model.predict_proba(columns([(f"new {task}", worker, label) for task, worker, label in rest])).to_dict()
    for task in truth:
        if task in known:
            assert probas[task][truth[task]] == 1.0
            continue
        joint = dict.fromkeys("abc", 1.0)
        for _, worker, label in (row for row in rows if row[0] == task):
            p = 1 / (1 + np.exp(-(ability[worker] - mean)))
            joint = {k: value * (p if label == k else (1 - p) / 2) for k, value in joint.items()}
        expected = {k: value / sum(joint.values()) for k, value in joint.items()}
        assert probas[task] == pytest.approx(expected, abs=1e-9)
        assert new[f"new {task}"] == pytest.approx(expected, abs=1e-9)


def test_always_right_stays_finite_and_ranks_first() -> None:
    rows: Rows = [
        (f"t{i}", worker, "a" if worker == "ann" or i % 2 else "b") for i in range(8) for worker in ("ann", "bob")
    ]
    abilities = Rasch().fit(columns(rows), {f"t{i}": "a" for i in range(8)}).abilities_.to_dict()
    assert np.isfinite(list(abilities.values())).all()
    assert abilities["ann"] > abilities["bob"]


def test_recovers_known_abilities() -> None:
    rng = np.random.default_rng(0)
    theta, beta = rng.normal(1.0, 1.0, 12), rng.normal(0.0, 1.0, 400)
    right = rng.random((400, 12)) < 1 / (1 + np.exp(-(theta - beta[:, None])))
    task, worker = np.nonzero(np.ones_like(right))
    model = Rasch().fit((task, worker, right[task, worker].astype(int)), dict.fromkeys(range(400), 1))
    fitted = np.array(list(model.abilities_.to_dict().values()))
    assert np.corrcoef(fitted, theta)[0, 1] > 0.98
    assert np.abs((fitted - fitted.mean()) - (theta - theta.mean())).max() < 0.35


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str) -> None:
    check_edges(Rasch, EDGES[edge], {"t": "a"})


def test_permutation() -> None:
    rows, truth = random_rows(30, 6, "abc")
    check_permutation(lambda: Rasch(tol=1e-11), rows, dict(list(truth.items())[::2]))


def test_gold_is_needed() -> None:
    with pytest.raises(ParameterError, match="Rasch learns from gold"):
        Rasch().fit(columns(EDGES["one task"]))
    with pytest.raises(InputError, match="none of the 1 gold tasks"):
        Rasch().fit(columns(EDGES["one task"]), {"elsewhere": "a"})


def test_empty_input() -> None:
    assert Rasch().fit(([], [], [])).labels_.to_dict() == {}


@pytest.mark.parametrize("parameters", [{"sigma_theta": 0}, {"tol": 0.0}, {"sigma_beta": [1, 2]}, {"n_iter": -1}])
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Rasch(**parameters).fit(columns(EDGES["one task"]), {"t": "a"})


def test_a_worker_with_very_many_labels_takes_few_passes() -> None:
    """The gradient grows with the labels and so must what of it counts as none: it took thousands of passes."""
    rng = np.random.default_rng(0)
    task, label = np.arange(15_000), rng.integers(0, 2, 15_000)
    gold = dict(zip(task.tolist(), rng.integers(0, 2, 15_000).tolist(), strict=True))
    model = Rasch().fit((task, np.zeros(15_000, dtype=int), label), gold)
    assert model.converged_
    assert model._result.n_passes < 50


@pytest.mark.parametrize("sigma_theta", [1e-8, 1e8, 1e150])
@pytest.mark.parametrize("sigma_beta", [1e-8, 1e8, 1e150])
@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_extreme_spreads_end_in_numbers(sigma_theta: float, sigma_beta: float) -> None:
    rng = np.random.default_rng(0)
    task, worker = np.repeat(np.arange(13), 2), np.tile([0, 1], 13)
    spreads: dict[str, Any] = {"sigma_theta": sigma_theta, "sigma_beta": sigma_beta}
    spreads |= {f"{name}_mu": value for name, value in spreads.items()}
    model = Rasch(**spreads).fit((task, worker, rng.integers(0, 2, 26)), {i: i % 2 for i in range(13)})
    assert np.isfinite(model.posterior_).all()
    assert np.isfinite(model.fitted_parameters["abilities"]).all()


def test_evidence_is_the_posterior_by_bayes_rule_with_even_classes() -> None:
    rows, truth = random_rows(20, 6, "abc")
    gold = dict(list(truth.items())[::2])
    model = Rasch().fit(columns(rows), gold)
    number = model.annotations_.tasks.tolist().index(next(task for task in truth if task not in gold))
    evidence = model.evidence(number)
    np.testing.assert_allclose(np.exp(evidence.log_prior), [1 / 3] * 3)
    joint = np.exp(evidence.log_prior + evidence.of_votes.sum(axis=0))
    np.testing.assert_allclose(joint / joint.sum(), model.posterior_[number])
