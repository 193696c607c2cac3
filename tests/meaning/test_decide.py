"""Decisions against brute force: costs, recall targets, abstention, expectations; and a small statistical check."""

from __future__ import annotations

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rarevote.meaning.calibrate import CalibratedPosterior, calibrated
from rarevote.meaning.costs import cost_matrix
from rarevote.meaning.decide import ABSTAINED, Decision, decide
from rarevote.meaning.expect import flag, gold_threshold
from scipy import stats

from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, ParameterError
from rarevote.methods.cc_rasch.estimator import CCRasch
from rarevote.simulate.crowds import SimulatedCrowd, simulate_crowd

Floats = NDArray[np.float64]
NAMES = np.array(["defect", "sound"])


def made(
    posterior: Any,
    *,
    gold: dict[int, int] | None = None,
    names: NDArray[Any] | None = None,
) -> CalibratedPosterior:
    """Hand-made probabilities; gold does not change the scores, as in a real calibration."""
    score = np.asarray(posterior, dtype=np.float64)
    n, K = score.shape
    known = np.full(n, -1, dtype=np.int32)
    result = score.copy()
    for row, number in (gold or {}).items():
        known[row], result[row] = number, np.eye(K)[number]
    share = result.mean(axis=0)
    classes = np.arange(K) if names is None else names
    return CalibratedPosterior(classes, score, result, score, share, share, share, "made up", known)


# -- costs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_classes", "seed"), [(2, 0), (3, 1), (4, 2)])
def test_least_expected_cost_against_every_possible_decision(n_classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.full(n_classes, 0.7), size=4)
    costs = rng.integers(0, 30, (n_classes, n_classes)).astype(float)
    found = decide(made(posterior), costs=costs)

    def expected(decision: tuple[int, ...]) -> float:
        return float(sum(posterior[i] @ costs[:, d] for i, d in enumerate(decision)))

    best = min(product(range(n_classes), repeat=4), key=expected)
    assert expected(tuple(found.codes.tolist())) == pytest.approx(expected(best))
    assert found.expected_cost == pytest.approx(expected(best))


def test_every_way_to_write_costs(tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text("true,sound,defect\nsound,0,1\ndefect,20,0\n")
    expected = [[0.0, 20.0], [1.0, 0.0]]
    for costs in (
        "sound:defect=1,defect:sound=20",
        " sound : defect = 1 , defect : sound = 20 ",
        file,
        str(file),
        {("sound", "defect"): 1, ("defect", "sound"): 20},
        {"sound": {"defect": 1, "sound": 0}, "defect": {"sound": 20}},
        [[0, 20], [1, 0]],
        np.array([[0, 20], [1, 0]]),
    ):
        assert cost_matrix(costs, NAMES).tolist() == expected


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1]], r"must be 2 x 2 .*shape is \(1, 2\)"),
        ([[0, 1], [1, 0], [0, 0]], "must be 2 x 2"),
        ([["a", 1], [1, 0]], "must hold numbers"),
        ([[0, -1], [1, 0]], "not negative, got -1"),
        ([[0, float("inf")], [1, 0]], "finite"),
        ("sound:crack=1,defect:sound=20", "'crack' is no class; the classes are defect, sound"),
        ("sound:defect=1", "no cost for defect:sound"),
        ("sound:defect=1,sound:defect=2,defect:sound=3", "given twice"),
        ("sound:defect=cheap,defect:sound=20", "must be a number, got 'cheap'"),
        ("sound:defect=nan,defect:sound=20", "not a number"),
        ("sound-defect=1", "TRUE:DECIDED=COST"),
        ("sound:defect=", "TRUE:DECIDED=COST"),
        ({"sound": 3}, "pairs"),
    ],
)
def test_bad_costs(costs: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        cost_matrix(costs, NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("true,sound\nsound,0\n", "a header and 2 rows of 3 cells"),
        ("true,sound,defect\nsound,0,1\n", "a header and 2 rows"),
        ("", "0 rows"),
        ("true,sound,crack\nsound,0,1\ndefect,2,0\n", "'crack' is no class"),
        ("true,sound,defect\nsound,0,1\nsound,2,0\n", "given twice"),
    ],
)
def test_bad_cost_files(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    with pytest.raises(ParameterError, match=message):
        cost_matrix(file, NAMES)


def test_a_cost_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        cost_matrix(tmp_path / "none.csv", NAMES)


# -- a recall target --------------------------------------------------------------------------------------------------


def sharp() -> Floats:
    """A crowd that is easy to tell apart."""
    rng = np.random.default_rng(5)
    positive = np.concatenate([rng.uniform(0.9, 1.0, 200), rng.uniform(0.0, 0.02, 1800)])
    return np.column_stack([positive, 1 - positive])


def test_votes_alone_promise_nothing_however_sure_they_look() -> None:
    for is_reported in (False, True):
        found = dataclasses.replace(made(sharp(), names=NAMES), is_reported=is_reported)
        target = decide(found, min_recall={"defect": 0.9}).target
        assert target is not None
        assert not target.promised
        assert "no promise on the recall of defect: expected is 0." in target.words
        assert "16 known tasks of class defect" in target.words  # the smallest g with 0.9^g <= 0.2
        assert "rarevote audit" in target.words


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


def test_a_given_share_is_believed() -> None:
    positive = np.random.default_rng(3).beta(0.4, 1.2, 3000)
    found = made(np.column_stack([positive, 1 - positive]), names=NAMES)
    given = decide(dataclasses.replace(found, is_given=True)).expected[0].prevalence
    free = decide(found).expected[0].prevalence
    assert given.low <= positive.mean() <= given.high
    # What is left is that tasks are drawn: at most 1.645 binomial standard errors on either side.
    assert given.high - given.low < 2 * 1.7 * np.sqrt(positive.mean() * (1 - positive.mean()) / 3000)
    assert free.high - free.low > 3 * (given.high - given.low)


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
    assert f"fewer than {reviews} reviews" in target.words


def test_a_target_of_one_is_never_promised_by_a_sample() -> None:
    posterior = np.column_stack([np.linspace(0.01, 0.99, 50), np.linspace(0.99, 0.01, 50)])
    decision = decide(made(posterior, names=NAMES), min_recall={"defect": 1.0})
    assert decision.target is not None
    assert "lower the target" in decision.target.words


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
    assert "rarevote audit" in decision.target.words
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
    assert "16 known tasks of class defect (15 are known)" in target.words


# -- abstention, known tasks, expectations ----------------------------------------------------------------------------


def test_without_arguments_it_is_the_label_of_the_method() -> None:
    found = made([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]], names=NAMES)
    decision = decide(found)
    assert decision.labels.tolist() == ["defect", "defect", "sound"]
    assert decision.rule == "the most probable class"


def test_no_answer_below_a_probability() -> None:
    decision = decide(made([[0.6, 0.4], [0.95, 0.05], [0.1, 0.9]], names=NAMES), abstain_below=0.8)
    assert decision.codes.tolist() == [ABSTAINED, 0, 1]
    assert decision.labels.tolist() == [None, "defect", "sound"]
    assert decision.n_abstained == 1
    np.testing.assert_allclose(decision.confidence, [0.6, 0.95, 0.9])
    assert decision.expected_cost == pytest.approx(0.05 + 0.1)


def test_known_tasks_get_their_known_label_under_every_rule() -> None:
    posterior = np.column_stack([np.full(20, 0.01), np.full(20, 0.99)])
    found = made(posterior, gold={3: 0}, names=NAMES)
    rules: tuple[dict[str, Any], ...] = (
        {},
        {"costs": [[0, 1], [1, 0]]},
        {"min_recall": {"defect": 0.5}},
        {"abstain_below": 0.9},
    )
    for rule in rules:
        assert decide(found, **rule).codes[3] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": [[0, 1], [1, 0]], "min_recall": {"defect": 0.9}}, "costs and min_recall contradict"),
        ({"costs": [[0, 1], [1, 0]], "abstain_below": 0.9}, "contradict"),
        ({"min_recall": {"defect": 0.9}, "abstain_below": 0.9}, "contradict"),
        ({"min_recall": {"defect": 0.0}}, "above 0 and at most 1"),
        ({"min_recall": {"defect": 1.1}}, "above 0 and at most 1"),
        ({"min_recall": {"defect": float("nan")}}, "above 0 and at most 1"),
        ({"min_recall": {"crack": 0.9}}, "'crack', which is no class"),
        ({"min_recall": {}}, "one class"),
        ({"min_recall": {"defect": 0.9, "sound": 0.9}}, "one class"),
        ({"min_recall": {"defect": 0.9}, "confidence": 1.0}, "confidence"),
        ({"abstain_below": 0}, "above 0 and at most 1"),
        ({"abstain_below": "often"}, "above 0 and at most 1"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        decide(made([[0.5, 0.5]], names=NAMES), **arguments)


# -- on crowds --------------------------------------------------------------------------------------------------------


def fitted(crowd: SimulatedCrowd) -> CalibratedPosterior:
    votes = Annotations.from_arrays(*crowd.arrays)
    return calibrated(CCRasch(n_jobs=1).fit(votes).posterior_, annotations=votes, n_sweeps=600)


def realised(decision: Decision, truth: NDArray[np.int32], costs: Floats) -> float:
    return float(costs[truth, decision.codes].sum())


@pytest.mark.prove
def test_recall_target_and_costs_on_simulated_crowds() -> None:
    """Annotators who err on their own reach the target with more flags than needed: real crowds need them."""
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    for seed in range(3):
        crowd = simulate_crowd(2500, imbalance=7, random_state=seed)
        found = fitted(crowd)
        is_rare = crowd.truth == 1
        flagged = decide(found, min_recall={1: 0.9}).codes == 1
        assert (flagged & is_rare).sum() / is_rare.sum() >= 0.9
        assert flagged.sum() <= 0.6 * flagged.size
        assert realised(decide(found, costs=costs), crowd.truth, costs) < realised(decide(found), crowd.truth, costs)


def test_what_may_not_be_flagged_counts_as_missed_where_nothing_is_promised() -> None:
    """A promise is made by every sample that is large enough or by none: lucky ones alone would break it."""
    rng = np.random.default_rng(8)
    positive = rng.uniform(0.0, 0.5, 2000)
    chosen = rng.permutation(2000)[:300]
    gold = {int(row): int(positive[row] < 0.3) for row in chosen}
    found = made(np.column_stack([positive, 1 - positive]), gold=gold, names=NAMES)
    few, unknown = rng.random(2000) < 0.3, found.gold < 0
    promised, flagged = flag(found, 0, 0.9, 0.8, True, few)
    assert promised.promised
    assert (flagged[unknown] == (positive >= promised.threshold)[unknown]).all()
    target, flagged = flag(found, 0, 0.9, 0.8, False, few)
    assert not target.promised
    assert (flagged[unknown] == few[unknown]).all()  # all that may be, and still too few
