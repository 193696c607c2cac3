"""Anchored Rasch on real data and on the shipped example: values of an independent implementation."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rarevote import AnchoredRasch
from rarevote.scoring.metrics import log_loss, score
from rarevote.scoring.ranking import average_precision
from rarevote.simulate.files import example_files
from tests.benchmark_data import load

Columns = tuple[list[str], list[str], list[str], dict[str, str]]


@dataclass(frozen=True)
class Check:
    prior: list[float]
    accuracy: list[float]
    objective: float
    ability: list[float]  # of the first worker in the file
    posterior: list[float]  # of the first task in the file
    reported: list[float]
    decided: list[int]
    scores: tuple[float, float, float]  # recall and precision of the rarest class, balanced accuracy
    ranking: tuple[float, float]  # average precision, log loss


CHECKS = {
    "rte": Check(
        [0.427375, 0.572625],
        [0.7404778, 0.6674091],
        -4158.948112,
        [0.925877, 1.598312],
        [0.0115159, 0.9884841],
        [0.1605669, 0.8394331],
        [404, 396],
        (0.93750, 0.92822, 0.93250),
        (0.98011, 0.25615),
    ),
    "dog": Check(
        [0.2354399, 0.2105328, 0.2685254, 0.2855019],
        [0.6846242, 0.6497668, 0.6635918, 0.7038088],
        -5433.963340,
        [1.608869, 1.696331, 1.068860, 1.233270],
        [0, 0, 0.1102850, 0.8897150],
        [0.0111419, 0.0110094, 0.3089718, 0.6688769],
        [178, 179, 180, 270],
        (0.88372, 0.85393, 0.84328),
        (0.89282, 0.46380),
    ),
    "cf": Check(
        [0.1572898, 0.2443306, 0.2165323, 0.3305741, 0.0512732],
        [0.6890815, 0.6861974, 0.7716735, 0.8126375, 0.3655545],
        -1643.852607,
        [0.897721, 0.555209, 1.217585, 1.467233, -0.550619],
        [0.9999359, 0.0000043, 0, 0.0000008, 0.0000590],
        [0.9451164, 0.0168978, 0.0114615, 0.0184653, 0.0080590],
        [49, 72, 65, 93, 21],
        (0.55556, 0.23810, 0.80956),
        (0.49252, 0.36142),
    ),
    "rails": Check(
        [0.0422982, 0.9577018],
        [0.4102344, 0.9669315],
        -2466.051305,
        [0.975081, 4.155446],
        [0.0024614, 0.9975386],
        [0.0103177, 0.9896823],
        [168, 2832],
        (0.92500, 0.66071, 0.95260),
        (0.91767, 0.05343),
    ),
}


@cache
def _rails() -> Columns:
    files = example_files()
    with files.labels.open(newline="", encoding="utf-8") as handle:
        rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(handle)]
    with files.truth.open(newline="", encoding="utf-8") as handle:
        truth = {row["task"]: row["label"] for row in csv.DictReader(handle)}
    task, worker, label = (list(column) for column in zip(*rows, strict=True))
    return task, worker, label, truth


def columns_of(name: str, request: pytest.FixtureRequest) -> Columns:
    if name == "rails":
        return _rails()
    folder: Path = request.getfixturevalue("shared_folder")
    return load(folder, name)


@pytest.mark.parametrize("name", CHECKS)
def test_values_at_the_optimum(name: str, request: pytest.FixtureRequest) -> None:
    check = CHECKS[name]
    task, worker, label, truth = columns_of(name, request)
    model = AnchoredRasch(5000, tol=1e-12, accelerate=False).fit((task, worker, label))
    crowd = model.annotations_
    assert model.converged_
    np.testing.assert_allclose([*model.priors_.to_dict().values()], check.prior, atol=5.1e-8)
    accuracy = 1 / (1 + np.exp(-model.fitted_parameters["mean_ability"]))
    np.testing.assert_allclose(accuracy, check.accuracy, atol=5.1e-8)
    assert model.loss_history_[-1] == pytest.approx(check.objective, abs=5.1e-7)
    np.testing.assert_allclose([*model.abilities_.to_dict()[worker[0]].values()], check.ability, atol=5.1e-7)
    first = crowd.tasks.tolist().index(task[0])
    np.testing.assert_allclose(model.posterior_[first], check.posterior, atol=5.1e-8)
    np.testing.assert_allclose(model.reported_[first], check.reported, atol=5.1e-8)
    assert np.bincount(model.label_codes()).tolist() == check.decided

    items = [name for name in crowd.tasks.tolist() if name in truth]
    labels = model.labels_.to_dict()
    found = score([truth[name] for name in items], [labels[name] for name in items])
    rare = found.minority_class
    scores = (found.minority_recall, found.precision[rare], found.balanced_accuracy)
    np.testing.assert_allclose(scores, check.scores, atol=5.1e-6)
    place = {name: number for number, name in enumerate(crowd.tasks.tolist())}
    p = model.reported_[[place[name] for name in items]]
    column = crowd.classes.tolist().index(rare)
    ranking = (
        average_precision(p[:, column], [truth[name] == rare for name in items]),
        log_loss([truth[name] for name in items], p, classes=crowd.classes.tolist()),
    )
    np.testing.assert_allclose(ranking, check.ranking, atol=5.1e-6)

    fast = AnchoredRasch(5000, tol=1e-12).fit((task, worker, label))
    np.testing.assert_allclose(fast.posterior_, model.posterior_, atol=1e-9)
    # Where the defaults stop is near.
    stopped = AnchoredRasch().fit((task, worker, label))
    assert stopped.converged_
    np.testing.assert_allclose(stopped.posterior_, model.posterior_, atol=2e-3)
    assert stopped.loss_history_[-1] == pytest.approx(check.objective, abs=2e-5)
    assert np.bincount(stopped.label_codes()).tolist() == check.decided
