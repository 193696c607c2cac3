"""What GLAD can and cannot say: ability and difficulty, but neither by class (the paper's proposition)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rarevote.methods.dawid_skene.estimator import DawidSkene
from rarevote.methods.glad.estimator import GLAD


def specialists() -> pd.DataFrame:
    """Half of the workers know class 0, half class 1."""
    rng = np.random.default_rng(3)
    truth = (rng.random(600) < 0.3).astype(int)
    rows = [
        (task, worker, truth[task] if rng.random() < (0.95 if truth[task] == worker % 2 else 0.65) else 1 - truth[task])
        for task in range(600)
        for worker in range(8)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def test_sensitivity_equals_specificity_under_glad_but_not_under_dawid_skene() -> None:
    votes = specialists()

    model = GLAD().fit(votes)
    alpha, b = model.alphas_.to_numpy()[:, None], model.betas_.to_numpy()[None, :]
    say_one = {truth: 1 / (1 + np.exp(-(2 * truth - 1) * alpha * np.exp(b))) for truth in (0, 1)}
    sensitivity, specificity = say_one[1], 1 - say_one[0]
    np.testing.assert_allclose(sensitivity, specificity, atol=1e-12)  # (8 workers, 600 items)
    # Those probabilities are the model's: with them Bayes' rule gives back the posterior.
    log_odds = np.zeros(600)
    for task, worker, label in votes.itertuples(index=False):
        chance = {truth: say_one[truth][worker, task] for truth in (0, 1)}
        log_odds[task] += np.log(chance[1] / chance[0] if label == 1 else (1 - chance[1]) / (1 - chance[0]))
    np.testing.assert_allclose(model.probas_[1], 1 / (1 + np.exp(-log_odds)), atol=1e-9)

    errors = DawidSkene().fit(votes).errors_
    gap = np.array([errors.loc[(worker, 1), 1] - errors.loc[(worker, 0), 0] for worker in range(8)])
    assert (gap[1::2] > 0.15).all()
    assert (gap[::2] < -0.15).all()


def test_difficulty_and_ability_are_told_apart() -> None:
    rng = np.random.default_rng(9)
    rows = []
    for task in range(300):
        hard = task % 2
        for worker in range(10):
            chance = 0.6 if hard else (0.98 if worker else 0.2)
            rows.append((task, worker, task % 3 == 0 if rng.random() < chance else task % 3 != 0))
    model = GLAD().fit(pd.DataFrame(rows, columns=["task", "worker", "label"]))
    assert model.betas_[::2].mean() > model.betas_[1::2].mean() + 0.5
    assert model.alphas_[0] < 0 < model.alphas_[1:].min()


def test_prior_can_be_estimated() -> None:
    votes = specialists()
    model = GLAD(prior="estimate").fit(votes)
    np.testing.assert_allclose(model.priors_, model.probas_.mean(), atol=1e-3)
    assert (np.diff(model.loss_history_) >= -1e-8).all()
