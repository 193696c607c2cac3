"""Recall targets: promises against exact tolerance bounds, flags against what is expected of them, simulated crowds."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import rarevote
from rarevote.crowd.grades import Grades
from rarevote.decide.expectations import N_BINS, TEMPERED, bin_of, drawn_rates, logit_of
from rarevote.decide.recall_target import flags_needed, gold_threshold, one_target
from rarevote.decide.rules import MinRecall
from rarevote.errors import ParameterError
from rarevote.simulate.crowds import simulate_crowd
from tests.decide.made import NAMES, decide, decided, made

Floats = NDArray[np.float64]


def sharp() -> Floats:
    """A crowd that is easy to tell apart."""
    rng = np.random.default_rng(5)
    positive = np.concatenate([rng.uniform(0.9, 1.0, 200), rng.uniform(0.0, 0.02, 1800)])
    return np.column_stack([positive, 1 - positive])


def test_votes_alone_promise_nothing_however_sure_they_look() -> None:
    for is_default in (False, True):
        found = dataclasses.replace(made(sharp(), names=NAMES), is_default=is_default)
        target = decide(found, min_recall={"defect": 0.9}).target
        assert target is not None
        assert not target.promised
        assert re.search(r"the recall of defect.* \d+% \(\d+% to \d+%\)", target.description)
        assert "16 known tasks of class defect" in target.description  # the smallest g with 0.9^g <= 0.2
        assert "an audit" in target.description


@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.9, 0.97])
def test_as_many_are_flagged_as_make_the_expected_recall_reach_the_target(wanted: float) -> None:
    rng = np.random.default_rng(3)
    positive = rng.beta(0.4, 1.2, 3000)
    found = made(np.column_stack([positive, 1 - positive]), names=NAMES)
    decision = decide(found, min_recall={"defect": wanted})
    assert decision.target is not None
    flagged = decision.codes == 0
    assert flagged.sum() == decision.target.n_flagged
    assert positive[flagged].min() >= positive[~flagged].max()
    assert decision.expected[0].recall.value == pytest.approx(wanted, abs=0.01)


def test_the_floor_of_an_audit_is_told_with_every_target() -> None:
    decision = decide(made(sharp(), names=NAMES), min_recall={"defect": 0.9})
    target = decision.target
    assert target is not None
    found = round(target.n_flagged * decision.expected[0].precision.value)
    unflagged = 2000 - target.n_flagged
    misses = found // 9 + 1  # the fewest that make found / (found + misses) fall below 0.9
    chance, reviews = 1.0, 0
    while chance > 0.2:
        chance *= (unflagged - misses - reviews) / (unflagged - reviews)
        reviews += 1
    assert target.floor == reviews
    assert f"takes at least {reviews} reviews of the {unflagged:,} tasks that are not on it" in target.description


def test_all_flags_are_counted_with_the_target() -> None:
    found = made([[0.9, 0.1]] * 3 + [[0.1, 0.9]] * 5, names=NAMES)
    answer = decided(found, MinRecall({"defect": 0.5}))
    assert answer.target is not None
    assert answer.target.n_flagged == (answer.codes == 0).sum() == 3


def test_a_target_of_one_is_never_promised_by_a_sample() -> None:
    posterior = np.column_stack([np.linspace(0.01, 0.99, 50), np.linspace(0.99, 0.01, 50)])
    decision = decide(made(posterior, names=NAMES), min_recall={"defect": 1.0})
    assert decision.target is not None
    assert "lower the target" in decision.target.description


@pytest.mark.parametrize("n", [10, 16, 40, 200])
@pytest.mark.parametrize(("target", "confidence"), [(0.9, 0.8), (0.9, 0.95), (0.95, 0.8)])
def test_gold_threshold_is_the_exact_tolerance_bound(n: int, target: float, confidence: float) -> None:
    scores = np.random.default_rng(n).random(n)
    threshold = gold_threshold(scores, target, confidence)
    # The recall at the (r + 1)-th lowest of n scores is Beta(n - r, r + 1), whatever their distribution.
    sure = [r for r in range(n) if stats.beta.sf(target, n - r, r + 1) >= confidence]
    assert threshold == (float(np.sort(scores)[max(sure)]) if sure else None)


def test_random_gold_promises_where_the_votes_cannot() -> None:
    rng = np.random.default_rng(8)
    positive = rng.uniform(0.0, 0.5, 2000)
    posterior = np.column_stack([positive, 1 - positive])
    chosen = rng.permutation(2000)[:300]
    gold = {int(row): int(positive[row] < 0.3) for row in chosen}
    found = made(posterior, gold=gold, names=NAMES)
    decision = decide(found, min_recall={"defect": 0.9}, random_gold=True)
    assert decision.target is not None
    assert decision.target.promised
    assert "an audit" in decision.target.description
    assert decision.target.threshold == gold_threshold(
        positive[[row for row, number in gold.items() if number == 0]], 0.9, 0.8
    )
    chosen_gold = decide(found, min_recall={"defect": 0.9}, random_gold=False)
    assert chosen_gold.target is not None
    assert not chosen_gold.target.promised


def test_too_little_random_gold_promises_nothing() -> None:
    gold = dict.fromkeys(range(15), 0)
    target = decide(made(sharp(), gold=gold, names=NAMES), min_recall={"defect": 0.9}, random_gold=True).target
    assert target is not None
    assert not target.promised
    assert "16 known tasks of class defect (15 are known)" in target.description


def test_a_target_for_one_class_that_exists() -> None:
    found, target = one_target({"sound": 0.7}, NAMES)
    assert (found.codes, target) == ((1,), 0.7)
    found, target = one_target({"1": 1}, np.array([0, 1]))
    assert (found.codes, target) == ((1,), 1.0)


def test_targets_in_text_are_split_at_the_last_sign_unless_they_are_a_class() -> None:
    names = np.array(["a", "a=0.5", "low", "mid", "high"], dtype=object)
    grades = Grades.of("low,mid,high")
    for text, codes, target in (("a=0.95", (0,), 0.95), ("a=0.5=0.9", (1,), 0.9), (">=mid=0.9", (4, 3), 0.9),
                                ("<= low = 1", (2,), 1.0)):  # fmt: skip
        found, wanted = one_target(text, names, grades)
        assert (found.codes, wanted) == (codes, target)
    for text in ("a=0.5", ">=mid", "<=low"):
        with pytest.raises(ParameterError, match="has no recall"):
            one_target(text, names, grades)
    with pytest.raises(ParameterError, match="above 0 and at most 1"):
        one_target("a=much", names)
    with pytest.raises(ParameterError, match="needs their order"):
        one_target(">=mid=0.9", names)
    with pytest.raises(ParameterError, match="holds all of the grades"):
        one_target(">=low=0.9", names, grades)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"defect": 0.0}, "above 0 and at most 1"),
        ({"defect": 1.1}, "above 0 and at most 1"),
        ({"defect": float("nan")}, "above 0 and at most 1"),
        ({"defect": True}, "above 0 and at most 1"),
        ({"crack": 0.9}, "'crack' is not a class"),
        ({}, "one class"),
        ({"defect": 0.9, "sound": 0.9}, "one class"),
    ],
)
def test_targets_that_cannot_be(wanted: dict[Any, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        one_target(wanted, NAMES)


@pytest.mark.parametrize("target", [0.2, 0.5, 0.9, 0.99, 1.0])
def test_flags_needed_against_one_draw_at_a_time(target: float) -> None:
    """The expected recall of the most probable items that may be flagged, with one more at a time."""
    rng = np.random.default_rng(1)
    p, may = rng.beta(0.5, 2.0, 400), rng.random(400) < 0.8
    bins = bin_of(p)
    of_all, that_may = (np.bincount(bins[rows], minlength=N_BINS) for rows in (np.full(400, True), may))
    needed = flags_needed(of_all, that_may, target, TEMPERED)

    # The rate of an item is that of its bin in each draw; the most probable come first.
    used, size = np.unique(bins, return_counts=True)
    rate = drawn_rates(logit_of(used), size, TEMPERED, np.random.default_rng(4))
    total = (rate * size).sum(axis=1)
    order = sorted(np.flatnonzero(may), key=lambda i: -p[i])

    def recall(n: int) -> float:
        return float(
            np.median(
                [
                    sum(row[np.searchsorted(used, bins[order[:n]])]) / all_of
                    for row, all_of in zip(rate, total, strict=True)
                ]
            )
        )

    if recall(len(order)) < target:
        assert needed == len(order)
    else:
        # Within a bin, flags count in proportion: off by one at most where medians cross.
        assert recall(needed + 1) >= target - 1e-9
        assert needed == 0 or recall(needed - 2) < target


# -- on crowds --------------------------------------------------------------------------------------------------------


@pytest.mark.prove
@pytest.mark.parametrize("method", ["anchored-rasch", "cc-rasch"])
def test_recall_target_on_simulated_crowds(method: str) -> None:
    """Annotators who err on their own reach the target with more flags than needed: real crowds need them."""
    for seed in range(3):
        crowd = simulate_crowd(2500, imbalance=7, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = rarevote.fit(crowd.arrays, method)
            flagged = fitted.decide(min_recall={1: 0.9}).codes == 1
        is_rare = crowd.truth == 1
        assert (flagged & is_rare).sum() / is_rare.sum() >= 0.9
        # Nine in ten items have a vote for the class, which is one in eight: fewer of them are flagged than that.
        assert flagged.sum() < 0.95 * (fitted.annotations.votes()[:, 1] > 0).sum()


def test_what_may_not_be_flagged_counts_as_missed_where_nothing_is_promised() -> None:
    """A promise is made by every sample that is large enough or by none: lucky ones alone would break it."""
    rng = np.random.default_rng(8)
    positive = rng.uniform(0.0, 0.5, 2000)
    chosen = rng.permutation(2000)[:300]
    gold = {int(row): int(positive[row] < 0.3) for row in chosen}
    found = made(np.column_stack([positive, 1 - positive]), gold=gold, names=NAMES)
    few, unknown = rng.random(2000) < 0.3, found.gold < 0
    votes = np.column_stack([few, np.full(2000, 2)])
    promised = decided(found, MinRecall({"defect": 0.9}, random_gold=True), votes)
    assert promised.target is not None
    assert promised.target.promised
    flagged = promised.codes == 0
    assert (flagged[unknown] == (positive >= promised.target.threshold)[unknown]).all()
    assert promised.notes[0].description.startswith(f"{(flagged & unknown & ~few).sum():,} of the items flagged")
    expected = decided(found, MinRecall({"defect": 0.9}), votes)
    assert expected.target is not None
    assert not expected.target.promised
    assert ((expected.codes == 0)[unknown] == few[unknown]).all()  # all that may be, and still too few
    free = decided(found, MinRecall({"defect": 0.9}), votes, allow_unvoted=True)
    assert not (few | ~unknown)[free.codes == 0].all()
