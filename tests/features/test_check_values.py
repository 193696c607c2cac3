"""The check values of the specification, from an independent implementation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote import AnchoredRasch
from rarevote.features.columns import Columns
from rarevote.features.join import ItemFeatures, join_features
from rarevote.features.ridge import CrossFit
from rarevote.features.settings import FeatureSettings
from rarevote.features.table import FeatureTable, PredictionTable
from tests.features.conftest import CheckExample

SHOWN = ("t0", "t1", "t2", "t250")
CONVERGED = FeatureSettings(steps=3000, tol=1e-12)


def fitted(
    example: CheckExample,
    table: FeatureTable | None,
    predictions: PredictionTable | None = None,
    settings: FeatureSettings = CONVERGED,
    **parameters: Any,
) -> tuple[AnchoredRasch, ItemFeatures]:
    votes, features = join_features(example.votes, table, predictions, settings)
    exact = {"tol": 1e-12, "n_iter": 3000, **parameters}
    return AnchoredRasch(**exact).fit_request(votes, features=features), features


def of_shown(model: AnchoredRasch, values: NDArray[Any]) -> NDArray[Any]:
    votes = model.annotations_
    names = [*votes.tasks.tolist(), *votes.unanswered.tolist()]
    return np.asarray(values[[names.index(name) for name in SHOWN], 1])


def reported(model: AnchoredRasch) -> NDArray[Any]:
    outcome = model.feature_outcome
    assert outcome is not None
    return np.concatenate([model.reported_, outcome.pool_reported])


def test_folds(example: CheckExample) -> None:
    _, features = join_features(example.votes, example.table, None, CONVERGED)
    assert np.bincount(features.fold).tolist() == [41, 61, 59, 70, 69]
    fold = dict(zip(features.texts.tolist(), features.fold.tolist(), strict=True))
    assert [fold[f"t{number}"] for number in range(10)] == [1, 4, 3, 0, 4, 1, 2, 1, 4, 1]


@pytest.mark.parametrize(
    ("tau2", "expected"),
    [(1.0, [-0.262423, -0.128682, -0.168155, 0.124773]), (10.0, [-0.275667, -0.135828, -0.176713, 0.133456])],
)
def test_scores(example: CheckExample, tau2: float, expected: list[float]) -> None:
    model = AnchoredRasch(tol=1e-12, n_iter=3000).fit(example.votes)
    votes, features = join_features(example.votes, example.table, None, CONVERGED)
    assert features.values is not None
    columns = Columns.of(features.values, features.row, features.names)
    soft = np.zeros((300, 2))
    soft[:240] = model.posterior_
    trains = np.arange(300) < 240
    fit = CrossFit(columns.block, features.fold, trains, soft, columns.n_columns, 5, columns.width)
    fit.solve(tau2, 3000, 1e-12)
    model = AnchoredRasch().fit(votes)
    assert of_shown(model, fit.scores) == pytest.approx(expected, abs=1e-6)


def test_votes_only(example: CheckExample) -> None:
    model = AnchoredRasch(tol=1e-12, n_iter=3000).fit(example.votes)
    places = [example.votes.tasks.tolist().index(name) for name in SHOWN[:3]]
    assert model.posterior_[places, 1] == pytest.approx([0.035523, 0.053863, 0.055229], abs=1e-6)
    assert model.reported_[places, 1] == pytest.approx([0.060484, 0.080133, 0.081541], abs=1e-6)
    assert model.calibration_.mean[1] == pytest.approx(0.242127, abs=1e-6)
    assert model.fitted_parameters["prior"] == pytest.approx([0.739583, 0.260417], abs=1e-6)
    assert model.loss_history_[-1] == pytest.approx(-266.922819, abs=1e-6)


def test_with_features(example: CheckExample) -> None:
    model, _ = fitted(example, example.table)
    record = model.features_
    assert record is not None
    assert record.used
    assert (record.tau2, record.lam, record.items, record.pool_items, record.columns) == (10.0, 4.5, 240, 60, 4)
    assert (record.gain, record.se) == pytest.approx((39.625035, 6.022069), abs=1e-6)
    assert of_shown(model, model.prior_) == pytest.approx([0.017469, 0.028497, 0.023787, 0.162617], abs=1e-6)
    assert of_shown(model, reported(model)) == pytest.approx([0.021209, 0.027038, 0.023014, 0.166458], abs=1e-6)
    assert model.loss_history_[-1] == pytest.approx(-225.295303, abs=1e-6)
    worker = model.annotations_.workers.tolist().index("w2")
    assert model.fitted_parameters["ability"][worker] == pytest.approx([1.860802, 1.159286], abs=1e-6)
    outcome = model.feature_outcome
    assert outcome is not None
    posterior = np.concatenate([model.posterior_, outcome.pool_posterior])
    assert of_shown(model, posterior) == pytest.approx([0.002340, 0.004671, 0.003010, 0.162617], abs=1e-6)


def test_default_stop(example: CheckExample) -> None:
    model, _ = fitted(example, example.table, settings=FeatureSettings(), tol=1e-4, n_iter=300)
    record = model.features_
    assert record is not None
    assert (record.gain, record.se) == pytest.approx((39.6254, 6.0220), abs=1e-3)
    assert of_shown(model, model.prior_) == pytest.approx([0.017466, 0.028489, 0.023784, 0.162613], abs=1e-4)
    assert of_shown(model, reported(model)) == pytest.approx([0.021208, 0.027035, 0.023013, 0.166454], abs=1e-4)


def test_noise_is_left_out(example: CheckExample) -> None:
    model, _ = fitted(example, example.noise)
    record = model.features_
    assert record is not None
    assert not record.used
    assert (record.lam, record.tau2) == (0.5, 0.1)
    assert record.gain == pytest.approx(-0.711694, abs=1e-6)
    votes_only = AnchoredRasch(tol=1e-12, n_iter=3000).fit(example.votes)
    for name in ("posterior_", "reported_"):
        assert np.array_equal(getattr(model, name), getattr(votes_only, name))
    assert model.loss_history_ == votes_only.loss_history_


def test_predicted_probabilities(example: CheckExample) -> None:
    model, _ = fitted(example, None, example.predictions)
    record = model.features_
    assert record is not None
    assert record.used
    assert (record.lam, record.tau2) == (2.0, None)
    assert (record.gain, record.se) == pytest.approx((39.043588, 5.487251), abs=1e-6)
    assert of_shown(model, model.prior_) == pytest.approx([0.031368, 0.059617, 0.052703, 0.238439], abs=1e-6)
    assert of_shown(model, reported(model)) == pytest.approx([0.025990, 0.036756, 0.031717, 0.238416], abs=1e-6)
