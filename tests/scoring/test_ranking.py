"""Ranking and calibration against scikit-learn, and against plain loops where it has no such figure."""

from __future__ import annotations

from itertools import permutations
from math import log

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarevote.scoring import ranking

# Few distinct scores, so that there are ties.
ITEMS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30)


def crowd(seed: int, *, ties: bool) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    draw = np.random.default_rng(seed)
    own = draw.random(200) < 0.2
    score = draw.normal(size=200) + own
    return (score.round(0) if ties else score), own


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_average_precision_is_scikit_learns(seed: int) -> None:
    score, own = crowd(seed, ties=False)
    assert ranking.average_precision(score, own) == pytest.approx(sklearn.metrics.average_precision_score(own, score))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_area_under_the_curve_is_scikit_learns(seed: int, ties: bool) -> None:
    score, own = crowd(seed, ties=ties)
    assert ranking.roc_auc(score, own) == pytest.approx(sklearn.metrics.roc_auc_score(own, score))


@settings(max_examples=60, deadline=None)
@given(ITEMS)
def test_figures_equal_plain_loops(items: list[tuple[int, bool]]) -> None:
    score, own = [s for s, _ in items], [y for _, y in items]
    total = sum(own)
    levels = sorted(set(score), reverse=True)
    before, hits, area = 0, 0, 0.0
    for level in levels:
        tied = [y for s, y in items if s == level]
        p, n = sum(tied), len(tied) - sum(tied)
        for t in range(1, p + 1):
            area += (hits + t) / (before + t + n * t / p)
        before, hits = before + len(tied), hits + p
    better = [(s > r) + (s == r) / 2 for s, y in items for r, z in items if y and not z]
    found = ranking.average_precision(score, own), ranking.roc_auc(score, own)
    assert found[0] == pytest.approx(area / total if total else float("nan"), nan_ok=True)
    assert found[1] == pytest.approx(sum(better) / len(better) if better else float("nan"), nan_ok=True)

    shares = (0.3, 0.5, 0.9, 0.95, 1.0)
    for share, needed in zip(shares, ranking.flags_needed(score, own, shares), strict=True):
        enough = [level for level in levels if sum(y for s, y in items if s >= level) >= share * total - 1e-9]
        assert needed == (sum(s >= enough[0] for s in score) if total else 0)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=5), st.integers(0, 5))
def test_recall_is_the_mean_over_all_orders_of_tied_items(items: list[tuple[int, bool]], n_flags: int) -> None:
    total = sum(y for _, y in items)
    orders = [one for one in permutations(items) if [s for s, _ in one] == sorted((s for s, _ in one), reverse=True)]
    mean = np.mean([sum(y for _, y in one[:n_flags]) for one in orders]) / total if total else float("nan")
    found = ranking.recall_at([s for s, _ in items], [y for _, y in items], n_flags)
    assert found == pytest.approx(mean, nan_ok=True)


def test_the_curve_has_corners_only() -> None:
    curve = ranking.flag_curve([9, 8, 7, 6, 5, 4], [True, False, False, False, True, False])
    assert curve.flagged.tolist() == [0, 1, 4, 5, 6]
    assert curve.found.tolist() == [0, 1, 1, 2, 2]
    assert curve.recall_at([0, 1, 2, 4, 4.5, 6, 99]).tolist() == [0, 0.5, 0.5, 0.5, 0.75, 1, 1]
    nothing = ranking.flag_curve([1, 2], [False, False])
    assert (nothing.flagged.tolist(), nothing.found.tolist()) == ([0, 2], [0, 0])
    assert np.isnan(nothing.recall_at(1))
    assert ranking.flags_needed([1, 2], [False, False], (0.5, 1.0)) == [0, 0]


def test_as_many_flags_as_there_are_make_recall_and_precision_one() -> None:
    score, own = crowd(0, ties=False)
    top = np.argsort(-score)[: own.sum()]
    assert ranking.recall_at(score, own, own.sum()) == pytest.approx(own[top].mean())


@pytest.mark.parametrize("seed", range(3))
def test_losses_and_calibration_equal_scikit_learn_and_loops(seed: int) -> None:
    draw = np.random.default_rng(seed)
    p, truth = draw.dirichlet([0.3] * 4, size=150), draw.integers(0, 4, size=150)
    clipped = np.clip(p, 1e-6, None)
    usual = sklearn.metrics.log_loss(truth, clipped / clipped.sum(axis=1, keepdims=True), labels=range(4))
    assert ranking.log_loss_of(p, truth) == pytest.approx(usual, rel=1e-4)
    of_class = [sklearn.metrics.average_precision_score(truth == k, p[:, k]) for k in range(4)]
    assert ranking.mean_average_precision(p, truth) == pytest.approx(np.mean(of_class))
    gap = 0.0
    for b in range(10):
        inside = [i for i in range(150) if min(int(p[i].max() * 10), 9) == b]
        if inside:
            accuracy = sum(p[i].argmax() == truth[i] for i in inside) / len(inside)
            confidence = sum(p[i].max() for i in inside) / len(inside)
            gap += len(inside) / 150 * abs(accuracy - confidence)
    assert ranking.calibration_error(p.max(axis=1), p.argmax(axis=1) == truth) == pytest.approx(gap)


def test_a_certain_mistake_costs_what_the_clip_says() -> None:
    p, truth = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 1])
    assert ranking.log_loss_of(p, truth) == pytest.approx((log(1e6) + log(2)) / 2)


def test_classes_that_do_not_occur_are_not_averaged() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    assert ranking.mean_average_precision(p, np.array([0, 1])) == 1.0
