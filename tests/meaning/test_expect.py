"""What is expected of labels: draws against sums and root finding done otherwise, and against real crowds."""

from __future__ import annotations

import csv
import dataclasses

import numpy as np
import pytest
import rarevote.meaning.expect
from benchmarks import evidence
from numpy.typing import NDArray
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.expect import (
    COVERAGE,
    REPORTED,
    REPORTED_LABELS,
    SAMPLED,
    SAMPLED_LABELS,
    Curve,
    Expected,
    drawn_counts,
    expectations,
    expected_accuracy,
    grouped,
    rates,
)
from scipy import optimize, special, stats

import rarevote

AS_TOLD = Curve((0.0, 0.0), (1e-12, 0.0, 1e-12))


def probabilities(n: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).beta(0.5, 2.0, n).clip(0.01, 0.99)


def binary(p: NDArray[np.float64], gold: dict[int, int] | None = None) -> CalibratedPosterior:
    both = np.column_stack([1 - p, p])
    known = np.full(len(p), -1, dtype=np.int32)
    for row, number in (gold or {}).items():
        known[row] = number
    share = both.mean(axis=0)
    return CalibratedPosterior(np.array(["no", "yes"]), both, both, both, share, share, share, "made up", known)


@pytest.mark.parametrize(("d", "b"), [(0.0, 1.0), (-0.7, 0.3), (1.2, 2.5), (-3.0, 0.05), (3.0, 7.0)])
def test_the_curve_has_the_share_and_the_slope_that_were_asked_for(d: float, b: float) -> None:
    logit, size, _ = grouped(probabilities(500))
    weight = size / size.sum()
    wanted = special.expit(special.logit(special.expit(logit) @ weight) + d)
    c = optimize.brentq(lambda c: special.expit(c + b * logit) @ weight - wanted, -80, 80, xtol=1e-13)
    found = rates(logit, size, np.array([wanted]), np.array([b]))[0]
    np.testing.assert_allclose(found, special.expit(c + b * logit), atol=1e-4)


def test_draws_of_a_curve_have_its_quantiles() -> None:
    d, b = Curve((-0.2, 0.3), (0.16, 0.06, 0.25)).draws(200_000, np.random.default_rng(0))
    for drawn, mean, scale in ((d, -0.2, 0.4), (np.log(b), 0.3, 0.5)):
        wanted = mean + scale * stats.t(4).ppf([0.05, 0.5, 0.95])
        np.testing.assert_allclose(np.quantile(drawn, [0.05, 0.5, 0.95]), wanted, atol=0.015)
    assert stats.spearmanr(d, b).statistic == pytest.approx(0.3, abs=0.03)  # 0.06 / (0.4 * 0.5)


def test_a_curve_without_doubt_counts_what_the_probabilities_say() -> None:
    p = probabilities(4000)
    kind = (p > 0.4).astype(np.int64)
    none = np.zeros(p.size, dtype=bool)
    hits = drawn_counts(p, none, none, kind, 2, AS_TOLD)
    for k in (0, 1):
        mean, variance = p[kind == k].sum(), (p * (1 - p))[kind == k].sum()
        assert hits[:, k].mean() == pytest.approx(mean, rel=0.02)
        assert hits[:, k].var() == pytest.approx(variance, rel=0.2)


def test_recall_precision_and_prevalence_of_a_curve_without_doubt() -> None:
    p = probabilities(20_000)
    codes = (p > 0.5).astype(np.int64)
    votes = np.column_stack([p < 0.8, p >= 0.8]).astype(float)
    found = expectations(binary(p), codes, 1, votes, curve=AS_TOLD)
    flagged = codes == 1
    assert found.name == "yes"
    assert found.recall.value == pytest.approx(p[flagged].sum() / p.sum(), abs=0.01)
    assert found.precision.value == pytest.approx(p[flagged].mean(), abs=0.01)
    assert found.prevalence.value == pytest.approx(p.mean(), abs=0.01)
    assert found.majority_recall.value == pytest.approx(p[p >= 0.8].sum() / p.sum(), abs=0.01)
    right = np.where(flagged, p, 1 - p).mean()
    assert expected_accuracy(binary(p), codes, curve=AS_TOLD).value == pytest.approx(right, abs=0.01)


def test_known_tasks_count_as_they_are() -> None:
    p = np.array([0.01, 0.99, 0.5])
    hits = drawn_counts(p, np.array([True, False, True]), np.ones(3, bool), np.array([0, 1, 1]), 2, REPORTED)
    assert (hits == [1, 1]).all()
    found = expectations(binary(p, gold={0: 1, 1: 0, 2: 1}), np.array([1, 0, 1]), 1)
    assert found.recall == Expected(1.0, 1.0, 1.0)
    assert found.prevalence.value == pytest.approx(2 / 3)


def test_a_class_that_nobody_got_has_no_precision() -> None:
    found = expectations(binary(probabilities(50)), np.zeros(50, dtype=np.int64), 1)
    assert np.isnan(found.precision.value)
    assert found.precision.words == "-"
    assert found.recall == Expected(0.0, 0.0, 0.0)


def test_shared_errors_widen_every_interval() -> None:
    p = probabilities(3000)
    codes = (p > 0.5).astype(np.int64)
    sure, real = expectations(binary(p), codes, 1, curve=AS_TOLD), expectations(binary(p), codes, 1)
    for figure in ("recall", "precision", "prevalence"):
        one, other = getattr(sure, figure), getattr(real, figure)
        assert other.high - other.low > 2 * (one.high - one.low)


def test_the_same_twice() -> None:
    p = probabilities(300)
    codes = (p > 0.5).astype(np.int64)
    assert expectations(binary(p), codes, 1) == expectations(binary(p), codes, 1)


def test_a_wide_interval_is_not_told() -> None:
    assert Expected(0.5, 0.45, 0.6).is_told
    assert not Expected(0.5, 0.1, 0.9).is_told
    assert not Expected(np.nan, np.nan, np.nan).is_told


def test_a_result_says_what_to_expect_of_any_class() -> None:
    votes = [(task, worker, "yes" if task < 8 else "no") for task in range(40) for worker in "abc"]
    result = rarevote.fit(votes).decide()
    assert result.expect().name == "yes"
    assert result.expect("no").prevalence.value == pytest.approx(0.8, abs=0.1)
    assert result.decision is not None
    without_majority = dataclasses.replace(result.expect(), majority_recall=result.decision.expected[1].majority_recall)
    assert str(without_majority) == str(result.decision.expected[1])


# -- the evidence -----------------------------------------------------------------------------------------------------


def rows_of(name: str) -> list[dict[str, str]]:
    with (evidence.EVIDENCE / f"{name}.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_the_constants_are_those_that_were_learnt() -> None:
    rows = [row for row in rows_of("expectations") if row["dataset"].startswith("learnt")]
    for method, what, curve in (
        ("anchored-rasch", "of a class", REPORTED),
        ("cc-rasch", "of a class", SAMPLED),
        ("anchored-rasch", "of labels", REPORTED_LABELS),
        ("cc-rasch", "of labels", SAMPLED_LABELS),
    ):
        mine = [row for row in rows if (row["method"], row["dataset"]) == (method, f"learnt {what}")]
        found = [float(row["after"]) for row in mine]
        assert found == pytest.approx([*curve.mean, *curve.covariance], abs=2e-3)


def test_intervals_cover_on_crowds_that_had_no_part_in_them() -> None:
    assert COVERAGE == 0.9
    for row in rows_of("expectations"):
        if row["dataset"] == "sum of 31":
            assert int(row["after_covers"]) >= 0.8 * 31, row
            # With the sampler's probabilities precision is told on one dataset less than we want.
            is_short = (row["method"], row["figure"]) == ("cc-rasch", "precision")
            assert int(row["told"]) >= 31 - 5 - is_short, row


def test_promises_are_kept_in_their_nominal_share_on_every_dataset() -> None:
    rows = rows_of("promises")
    assert len(rows) == 31
    for row in rows:
        assert int(row["kept_on_all_items"]) >= 0.8 * int(row["promised"]), row
