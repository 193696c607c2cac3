from __future__ import annotations

from functools import partial
from itertools import pairwise, product
from math import exp, log, prod
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.em import local
from rarevote.em.loop import Progress
from rarevote.errors import InputError, ParameterError
from rarevote.methods.base import Request
from rarevote.methods.mace.estimator import MACE as CrowdkitMACE  # noqa: N811
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows

# What the kernels are compared with is beside them in NumPy; here they themselves are held to oracles.
pytestmark = pytest.mark.usefixtures("compiled")

FloatArray = NDArray[np.float64]
# The start that depends on no names; crowd-kit's is compared with crowd-kit's in test_crowdkit_dropin.
MACE = partial(CrowdkitMACE, start="votes")
Weights = tuple[dict[str, tuple[float, float]], dict[str, dict[str, float]]]


class Slow:
    """MACE as described, with both latent variables in the open: who copies is enumerated, not summed by formula."""

    def __init__(self, rows: Rows, method: str, smoothing: float, gold: dict[str, str] | None = None) -> None:
        self.rows, self.method, self.gold = rows, method, gold or {}
        self.tasks = sorted({t for t, _, _ in rows})
        self.workers = sorted({w for _, w, _ in rows})
        self.classes = sorted({y for _, _, y in rows} | set(self.gold.values()))
        self.prior_state = (0.5, 0.5) if method == "vb" else (smoothing, smoothing)
        self.prior_label = 10.0 if method == "vb" else smoothing
        # Half of the votes are spam, spread evenly.
        n = {w: sum(1 for row in rows if row[1] == w) for w in self.workers}
        K = len(self.classes)
        self.state = {w: (n[w] / 2 + self.prior_state[0], n[w] / 2 + self.prior_state[1]) for w in self.workers}
        self.label = {w: dict.fromkeys(self.classes, n[w] / 2 / K + self.prior_label) for w in self.workers}
        self.q = {}
        for task in self.tasks:
            given = [y for t, _, y in rows if t == task]
            self.q[task] = {k: given.count(k) / len(given) for k in self.classes}
            if task in self.gold:
                self.q[task] = {k: float(k == self.gold[task]) for k in self.classes}

    def weights(self) -> Weights:
        def share(count: float, total: float) -> float:
            if self.method == "em":
                return count / total
            return exp(float(scipy.special.digamma(count) - scipy.special.digamma(total)))

        state = {w: (share(c[0], sum(c)), share(c[1], sum(c))) for w, c in self.state.items()}
        label = {w: {y: share(c, sum(of.values())) for y, c in of.items()} for w, of in self.label.items()}
        return state, label

    def m_step(self) -> None:
        state, label = self.weights()
        new_state = {w: list(self.prior_state) for w in self.workers}
        new_label = {w: dict.fromkeys(self.classes, self.prior_label) for w in self.workers}
        for task, w, y in self.rows:
            for k in self.classes:
                spam = state[w][0] * label[w][y]
                copy = state[w][1] * (y == k)
                new_state[w][0] += self.q[task][k] * spam / (spam + copy)
                new_state[w][1] += self.q[task][k] * copy / (spam + copy)
                new_label[w][y] += self.q[task][k] * spam / (spam + copy)
        self.state = {w: (c[0], c[1]) for w, c in new_state.items()}
        self.label = new_label

    def joint(self, task: str, k: str) -> float:
        state, label = self.weights()
        votes = [(w, y) for t, w, y in self.rows if t == task]
        return prod(state[w][0] * label[w][y] + state[w][1] * (y == k) for w, y in votes) / len(self.classes)

    def e_step(self) -> float:
        """Refreshes the posterior; the objective at the present parameters."""
        loglik = 0.0
        for task in self.tasks:
            joint = {k: self.joint(task, k) for k in self.classes}
            if task in self.gold:
                joint = {k: value * (k == self.gold[task]) for k, value in joint.items()}
            loglik += log(sum(joint.values()))
            self.q[task] = {k: value / sum(joint.values()) for k, value in joint.items()}
        state, label = self.weights()
        if self.method == "em":
            for w in self.workers:
                loglik += self.prior_state[0] * log(state[w][0]) + self.prior_state[1] * log(state[w][1])
                loglik += self.prior_label * sum(log(p) for p in label[w].values())
            return loglik
        for w in self.workers:
            loglik -= divergence(np.array(self.state[w]), np.array(self.prior_state))
            given = np.array(list(self.label[w].values()))
            loglik -= divergence(given, np.full(len(given), self.prior_label))
        return loglik


def by_name(model: Any) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Probability of spamming by worker, and what each says then."""
    thetas = model.thetas_ / model.thetas_.sum(axis=1, keepdims=True)
    rows = [dict(zip(model.classes_.tolist(), row, strict=True)) for row in thetas.tolist()]
    return {w: 1 - skill for w, skill in model.skills_.to_dict().items()}, dict(
        zip(model.annotations_.workers.tolist(), rows, strict=True)
    )


def divergence(a: FloatArray, b: FloatArray) -> float:
    log_beta = scipy.special.gammaln
    psi = scipy.special.digamma
    value = log_beta(a.sum()) - log_beta(a).sum() - log_beta(b.sum()) + log_beta(b).sum()
    return float(value + ((a - b) * (psi(a) - psi(a.sum()))).sum())


@pytest.mark.parametrize("method", ["vb", "em"])
@pytest.mark.parametrize("with_gold", [False, True])
def test_equals_the_slow_one(method: Any, with_gold: bool) -> None:
    rows, truth = random_rows(12, 5, "abc")
    gold = dict(list(truth.items())[:4]) if with_gold else None
    slow = Slow(rows, method, 0.1, gold)
    n_iter = 4
    history = []
    for _ in range(n_iter):
        slow.m_step()
        history.append(slow.e_step())
    model = MACE(1, n_iter, method).fit(columns(rows), gold)
    assert model.loss_history_ == pytest.approx(history, abs=1e-9)
    probas = model.probas_.to_dict()
    for task in slow.tasks:
        assert probas[task] == pytest.approx(slow.q[task], abs=1e-11)
    state, label = slow.weights()
    skills = model.skills_.to_dict()
    for r, w in enumerate(slow.workers):
        assert model.spamming_[r] == pytest.approx(state[w])
        assert model.thetas_[r] == pytest.approx([label[w][y] for y in slow.classes])
        assert skills[w] == pytest.approx(state[w][1] / sum(state[w]))


def test_likelihood_equals_enumeration_of_all_truths() -> None:
    rows, _ = random_rows(5, 3, "ab", votes=2)
    model = MACE(1, 3, "em", smoothing=0.3).fit(columns(rows))
    spamming, thetas = by_name(model)
    tasks = sorted({t for t, _, _ in rows})
    total = 0.0
    for truths in product("ab", repeat=len(tasks)):
        truth = dict(zip(tasks, truths, strict=True))
        total += prod(spamming[w] * thetas[w][y] + (1 - spamming[w]) * (y == truth[t]) for t, w, y in rows)
    log_prior = sum(
        0.3 * (log(spamming[w]) + log(1 - spamming[w]) + sum(log(p) for p in thetas[w].values())) for w in spamming
    )
    assert model.loss_history_[-1] == pytest.approx(log(total / 2 ** len(tasks)) + log_prior)


@pytest.mark.parametrize("method", ["vb", "em"])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_falls(method: Any, seed: int) -> None:
    rows, _ = random_rows(60, 10, "abcd", accuracy=0.5, seed=seed)
    history = MACE(method=method, n_iter=200).fit(columns(rows)).loss_history_
    assert (np.diff(history) >= -1e-9).all()


def test_finds_the_spammers() -> None:
    rng = np.random.default_rng(0)
    truth = {f"t{i:03d}": "abc"[rng.integers(3)] for i in range(150)}
    rows: Rows = []
    for task, label in truth.items():
        rows += [(task, f"good{r}", label if rng.random() < 0.8 else "abc"[rng.integers(3)]) for r in range(3)]
        rows += [(task, f"spam{r}", "c") for r in range(2)]
    model = MACE().fit(columns(rows))
    spamming, thetas = by_name(model)
    assert max(spamming[f"good{r}"] for r in range(3)) < 0.5 < min(spamming[f"spam{r}"] for r in range(2))
    assert thetas["spam0"]["c"] > 0.7
    wrong = sum(model.labels_.to_dict()[task] != label for task, label in truth.items())
    assert wrong / len(truth) < 0.1


@pytest.mark.parametrize("method", ["vb", "em"])
def test_restarts_are_deterministic_and_never_worse_than_the_first_run(method: Any) -> None:
    rows, _ = random_rows(60, 10, "abcd", accuracy=0.4)
    one = MACE(1, method=method).fit(columns(rows))
    many = [MACE(8, method=method).fit(columns(rows)) for _ in range(2)]
    assert many[0].loss_history_[-1] >= one.loss_history_[-1]
    np.testing.assert_array_equal(many[0].posterior_, many[1].posterior_)


def test_shards_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, truth = random_rows(60, 10, "abcd", accuracy=0.4)
    gold = dict(list(truth.items())[::7])
    whole = MACE(3).fit(columns(rows), gold).posterior_
    monkeypatch.setattr(local, "_ANNOTATIONS_PER_SHARD", 25)
    for n_jobs in (1, 3):
        np.testing.assert_allclose(MACE(3, n_jobs=n_jobs).fit(columns(rows), gold).posterior_, whole, atol=1e-10)


def test_restarts_explore() -> None:
    # A crowd near chance, where the bound has several optima and the soft majority vote leads to a lesser one.
    rows, _ = random_rows(40, 12, "abc", accuracy=0.3, seed=1)
    one, many = (MACE(n_restarts, 300).fit(columns(rows)) for n_restarts in (1, 10))
    assert many.loss_history_[-1] > one.loss_history_[-1] + 0.01


def test_the_noise_of_a_restart_is_drawn_once_for_each_voting_record() -> None:
    task, worker, label = [0, 1, 2] * 2, ["ann"] * 3 + ["bob"] * 3, ["a", "a", "b"] * 2
    crowd = Annotations.from_arrays(task, worker, label)
    models = list(MACE(3)._models(Request(crowd, np.empty(0, dtype=np.int32), local.LocalRunner(1))))
    rng = np.random.default_rng(0)
    assert models[0].noise is None
    for model in models[1:]:
        of_state, of_strategy = rng.random(2), rng.random(2)  # one record of a worker; "b", with fewer votes, first
        expected = 1.0 + 0.5 * np.concatenate([of_state, of_strategy[::-1]])
        assert model.noise is not None
        np.testing.assert_allclose(model.noise, np.stack([expected, expected]))


@pytest.mark.parametrize("method", ["vb", "em"])
def test_permutation_holds_with_restarts(method: Any) -> None:
    rows, _ = random_rows(40, 7, "abc", accuracy=0.5)
    check_permutation(lambda: MACE(method=method), rows)


def test_progress_counts_all_runs() -> None:
    told: list[Progress] = []
    MACE(3, 20).fit(columns(random_rows()[0]), callback=told.append)
    assert {progress.n_iter for progress in told} == {60}
    assert all(later.iteration > earlier.iteration for earlier, later in pairwise(told))


def test_new_tasks_of_known_workers() -> None:
    rows, _ = random_rows(30, 6, "abc")
    model = MACE().fit(columns(rows))
    probas, new = model.probas_.to_dict(), model.predict_proba(columns(rows)).to_dict()
    for task, of_class in probas.items():
        assert new[task] == pytest.approx(of_class, abs=1e-12)
    with pytest.raises(InputError, match="1 worker was not in the fit"):
        model.predict((["n"], ["nobody"], ["a"]))


@pytest.mark.parametrize("method", ["vb", "em"])
@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str, method: Any) -> None:
    check_edges(lambda: MACE(3, method=method), EDGES[edge])


def test_empty_input() -> None:
    assert MACE().fit(([], [], [])).labels_.to_dict() == {}


@pytest.mark.parametrize(
    "parameters",
    [
        {"method": "map"},
        {"n_restarts": 0},
        {"n_iter": -1},
        {"start": "here"},
        {"smoothing": 0.0},
        {"alpha": -1},
        {"default_noise": -0.1},
    ],
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        CrowdkitMACE(**parameters).fit(columns(EDGES["one task"]))
