from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from rarevote import Annotations, CCRasch
from rarevote.errors import ParameterError
from rarevote.methods.class_conditional import ClassConditional
from tests.methods.cc_rasch_oracle import Paper, Theta
from tests.methods.crowds import EDGES, check_edges, check_permutation, columns, random_rows


def test_the_posterior_and_objective_are_those_of_the_model_without_difficulty() -> None:
    rows, _ = random_rows(40, 7, "abc", votes=4)
    crowd = Annotations.from_arrays(*columns(rows))
    model = ClassConditional().fit(crowd)
    alpha = np.array([list(of.values()) for of in model.abilities_.to_dict().values()])
    nothing = np.zeros((crowd.n_tasks, 3))
    theta = Theta(alpha.mean(0), np.zeros(3), alpha - alpha.mean(0), nothing)
    oracle = Paper(crowd, difficulty=None)
    joint = oracle.log_likelihood(theta) - np.log(3)
    total = np.logaddexp.reduce(joint, axis=1)
    np.testing.assert_allclose(model.posterior_, np.exp(joint - total[:, None]), atol=1e-9)
    assert model.loss_history_[-1] == pytest.approx(total.sum() - oracle.penalty(theta))


def test_equals_cc_rasch_with_difficulty_switched_off() -> None:
    rows, _ = random_rows(40, 7, "abc")
    parameters: dict[str, Any] = {"sigma_alpha": 0.8, "sigma_alpha_mu": 0.7, "prior": "estimate", "tol": 1e-6}
    ours = ClassConditional(**parameters).fit(columns(rows))
    parent = CCRasch(difficulty=None, **parameters).fit(columns(rows))
    np.testing.assert_array_equal(ours.posterior_, parent.posterior_)


def test_skills_are_accuracies() -> None:
    rng = np.random.default_rng(0)
    accuracy = np.array([[0.95, 0.6], [0.7, 0.9], [0.85, 0.8], [0.9, 0.95], [0.6, 0.7]])
    truth = rng.integers(2, size=2000)
    task, worker = np.nonzero(np.ones((2000, 5)))
    right = rng.random(task.size) < accuracy[worker, truth[task]]
    model = ClassConditional(sigma_alpha=2.0, prior="estimate").fit(
        (task, worker, np.where(right, truth[task], 1 - truth[task]))
    )
    skills = np.column_stack([model.skills_[k] for k in (0, 1)])
    assert np.abs(skills - accuracy).max() < 0.06
    np.testing.assert_allclose(np.log(skills / (1 - skills))[:, 0], model.abilities_[0])


def test_there_is_no_difficulty() -> None:
    model = ClassConditional().fit(columns(random_rows()[0]))
    assert all(value == 0.0 for of in model.difficulties_.to_dict().values() for value in of.values())


def test_parameters_leave_difficulty_out() -> None:
    model = ClassConditional(50, sigma_alpha=0.7)
    assert not any("beta" in name or "difficulty" in name for name in model.get_params())
    assert repr(clone(model)) == "ClassConditional(n_iter=50, sigma_alpha=0.7)"
    with pytest.raises(ParameterError, match="no parameter 'difficulty'"):
        model.set_params(difficulty="per-class")


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str) -> None:
    check_edges(ClassConditional, EDGES[edge])


def test_gold_is_imposed() -> None:
    rows, truth = random_rows()
    known = dict(list(truth.items())[:10])
    labels = ClassConditional().fit(columns(rows), known).labels_.to_dict()
    assert all(labels[task] == label for task, label in known.items())


def test_permutation() -> None:
    check_permutation(ClassConditional, random_rows(40, 7, "abc")[0])


def test_empty_input() -> None:
    model = ClassConditional().fit(([], [], []))
    assert model.labels_.to_dict() == {}
    assert len(model.skills_) == 0


@pytest.mark.parametrize("parameters", [{"sigma_alpha": 0}, {"prior": "flat"}, {"tol": -1.0}, {"m_step": "slow"}])
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        ClassConditional(**parameters).fit(columns(EDGES["one task"]))
