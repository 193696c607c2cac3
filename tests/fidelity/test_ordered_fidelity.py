"""Anchored Ordered on real ratings: values of an independent implementation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from rarevote import AnchoredOrdered, AnchoredRasch, Fitted
from rarevote.scoring.metrics import log_loss, score
from tests.benchmark_data import load


@dataclass(frozen=True)
class Check:
    objective: tuple[float, float]  # at a tolerance of 1e-9, and of 1e-4
    means: list[float]
    first: list[float]  # hit, near, lean of the first worker in the file
    reported: list[float]  # of the first task in the file
    decided: list[int]
    labels: tuple[float, float, float, float]  # accuracy, balanced accuracy, mean absolute error, quadratic kappa
    chances: tuple[float, float, float]  # log loss, ranked probability score, average precision of tails
    rasch_log_loss: float  # of Anchored Rasch with the same discount


CHECKS = {
    "web": Check(
        (-18989.151326, -18989.151330),
        [-0.283057, 0.074116],
        [0.676505, 0.245169, 0.156356],
        [0.005747, 0.008007, 0.011621, 0.025334, 0.949290],
        [250, 445, 669, 638, 663],
        (0.83905, 0.82701, 0.18507, 0.92950),
        (0.56507, 0.04449, 0.97788),
        0.58473,
    ),
    "movie-reviews-4class": Check(
        (-7005.490356, -7005.490362),
        [-0.400621, 0.281674],
        [-0.052390, 1.135877, 0.486316],
        [0.015854, 0.636432, 0.337603, 0.010111],
        [329, 489, 465, 217],
        (0.72133, 0.75998, 0.27867, 0.85308),
        (0.63546, 0.06541, 0.91928),
        0.65187,
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_values_at_the_optimum(name: str, shared_folder: Path) -> None:
    check = CHECKS[name]
    task, worker, label, truth = load(shared_folder, name)
    K = len(check.reported)
    model = AnchoredOrdered(3000, ordered=f"0..{K - 1}", tol=1e-9).fit((task, worker, label))
    crowd, found = model.annotations_, model.fitted_parameters
    assert model.converged_
    assert model.loss_history_[-1] == pytest.approx(check.objective[0], abs=6e-7)
    climbed = np.array(model.loss_history_)
    assert (np.diff(climbed) >= -1e-12 * np.abs(climbed[1:])).all()
    stopped = AnchoredOrdered(ordered=f"0..{K - 1}").fit((task, worker, label))
    assert stopped.loss_history_[-1] == pytest.approx(check.objective[1], abs=6e-7)
    np.testing.assert_allclose([*found["mean_hit"], *found["mean_near"]], check.means, atol=6e-7)
    r, i = crowd.workers.tolist().index(worker[0]), crowd.tasks.tolist().index(task[0])
    np.testing.assert_allclose([found[one][r] for one in ("hit", "near", "lean")], check.first, atol=6e-7)
    np.testing.assert_allclose(model.reported_[i], check.reported, atol=6e-7)
    assert np.bincount(model.label_codes()).tolist() == check.decided

    rows = [n for n, one in enumerate(crowd.tasks.tolist()) if one in truth]
    true = [truth[crowd.tasks.tolist()[n]] for n in rows]
    y, codes, p = np.array(list(map(int, true))), model.label_codes()[rows], model.reported_[rows]
    scores = score(true, crowd.classes[codes].tolist())
    table = np.zeros((K, K))
    np.add.at(table, (y, codes), 1)
    distance = (np.arange(K)[:, None] - np.arange(K)) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(y)
    labels = (
        scores.accuracy,
        scores.balanced_accuracy,
        np.abs(y - codes).mean(),
        1 - (distance * table).sum() / (distance * chance).sum(),
    )
    np.testing.assert_allclose(labels, check.labels, atol=5.1e-6)
    below = np.cumsum(p, axis=1) - (np.arange(K) >= y[:, None])
    # Items with the same votes tie; the value was computed with scikit-learn, which ranks tied items last.
    tails = []
    for cut in range(1, K):
        is_high = y >= cut
        few_are_high = 2 * is_high.sum() <= len(y)
        tail = p[:, cut:] if few_are_high else p[:, :cut]
        tails.append(average_precision_score(is_high if few_are_high else ~is_high, tail.sum(axis=1)))
    ranked = (below**2).sum(axis=1).mean() / (K - 1)
    chances = (log_loss(true, p, classes=crowd.classes.tolist()), ranked, np.mean(tails))
    np.testing.assert_allclose(chances, check.chances, atol=5.1e-6)

    rasch = AnchoredRasch(3000, rho=0.3, tol=1e-9).fit((task, worker, label)).reported_[rows]
    of_rasch = log_loss(true, rasch, classes=crowd.classes.tolist())
    assert of_rasch == pytest.approx(check.rasch_log_loss, abs=5.1e-6)
    assert chances[0] < of_rasch


@pytest.mark.parametrize("name", ["dog", "labelme"])
def test_an_order_without_meaning_costs_nothing(name: str, shared_folder: Path) -> None:
    """Accuracy of the balanced decision: all orders of four breeds, twenty random ones of eight kinds of picture."""
    task, worker, label, truth = load(shared_folder, name)
    default = AnchoredRasch().fit((task, worker, label))
    crowd = default.annotations_
    rows = [n for n, one in enumerate(crowd.tasks.tolist()) if one in truth]
    true = np.array([truth[crowd.tasks.tolist()[n]] for n in rows], dtype=object)
    expected = float((crowd.classes[default.label_codes()[rows]] == true).mean())
    names = crowd.classes.tolist()
    orders = [one for one in permutations(names) if one[0] < one[-1]]
    if len(names) > 4:
        rng = np.random.default_rng(0)
        orders = [tuple(rng.permutation(names).tolist()) for _ in range(20)]
    found = []
    for order in orders:
        model = AnchoredOrdered(ordered=list(order)).fit((task, worker, label))
        labels = Fitted.of(model).decide("balanced").labels
        found.append(float((labels[rows] == true).mean()))
    assert abs(np.mean(found) - expected) < 0.01
    assert max(abs(one - expected) for one in found) < 0.02


@pytest.mark.parametrize("name", CHECKS)
def test_the_reversed_order_gives_the_reversed_answer(name: str, shared_folder: Path) -> None:
    votes = load(shared_folder, name)[:3]
    K = len(CHECKS[name].reported)
    up, down = (AnchoredOrdered(ordered=order).fit(votes) for order in (f"0..{K - 1}", f"{K - 1}..0"))
    np.testing.assert_allclose(up.reported_, down.reported_, atol=1e-12)
    assert (up.label_codes() == down.label_codes()).mean() > 0.999
