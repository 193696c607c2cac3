"""Decisions against brute force: costs, recall targets, abstention, expectations; and a small statistical check."""

from __future__ import annotations

import dataclasses
import doctest
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import rarevote.meaning.costs
import rarevote.meaning.decide
from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, ParameterError
from rarevote.meaning.calibrate import CalibratedPosterior, calibrated
from rarevote.meaning.costs import cost_matrix
from rarevote.meaning.decide import ABSTAINED, Decision, decide
from rarevote.meaning.recall_targets import gold_threshold, needed_flags
from rarevote.methods.cc_rasch.estimator import CCRasch
from rarevote.simulate.crowds import SimulatedCrowd, simulate_crowd

Floats = NDArray[np.float64]
NAMES = np.array(["defect", "sound"])


def made(
    posterior: Any,
    *,
    draws: NDArray[Any] | None = None,
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
    tasks = np.arange(n if draws is not None else 0)
    drawn = np.empty((0, 0), dtype=np.uint8) if draws is None else draws
    classes = np.arange(K) if names is None else names
    return CalibratedPosterior(classes, score, result, score, share, share, share, "made up", known, drawn, tasks)


def draws_of(posterior: Floats, n_draws: int, seed: int) -> NDArray[np.uint8]:
    """Independent draws of a binary posterior."""
    return (np.random.default_rng(seed).random((n_draws, len(posterior))) < posterior[:, 1]).astype(np.uint8)


def test_doctests() -> None:
    assert doctest.testmod(rarevote.meaning.decide).failed == 0
    assert doctest.testmod(rarevote.meaning.costs).failed == 0


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


@pytest.mark.parametrize("target", [0.5, 0.9, 1.0])
def test_needed_flags_against_a_scan(target: float) -> None:
    rng = np.random.default_rng(3)
    positive = rng.random(60)
    posterior = np.column_stack([1 - positive, positive])
    draws = draws_of(posterior, 30, 4)
    found = needed_flags(made(posterior, draws=draws), 1, target)
    ranked = np.argsort(-positive)
    by_scan = []
    for draw in draws:
        total = draw.sum()
        flags = next(k for k in range(61) if total == 0 or draw[ranked[:k]].sum() >= target * total - 1e-9)
        by_scan.append(flags)
    assert found.tolist() == sorted(by_scan)


def sharp() -> tuple[CalibratedPosterior, Floats]:
    """A crowd that is easy to tell apart, so that the draws agree."""
    rng = np.random.default_rng(5)
    positive = np.concatenate([rng.uniform(0.9, 1.0, 200), rng.uniform(0.0, 0.02, 1800)])
    posterior = np.column_stack([positive, 1 - positive])
    draws = 1 - draws_of(posterior[:, ::-1], 200, 6)
    return made(posterior, draws=draws, names=NAMES), posterior


def test_a_target_is_met_in_as_many_draws_as_asked() -> None:
    found, _ = sharp()
    for confidence in (0.5, 0.8, 0.95):
        decision = decide(found, min_recall={"defect": 0.9}, confidence=confidence)
        assert decision.target is not None
        assert decision.target.promised
        assert decision.target.source == "votes"
        flagged = decision.codes == 0

        def met(chosen: NDArray[np.bool_]) -> float:
            is_defect = found.draws == 0
            return float(((is_defect & chosen).sum(axis=1) >= 0.9 * is_defect.sum(axis=1) - 1e-9).mean())

        assert met(flagged) >= confidence
        weakest = np.flatnonzero(flagged)[found.score[flagged, 0].argmin()]
        flagged[weakest] = False
        assert met(flagged) < confidence
        assert decision.target.n_flagged == flagged.sum() + 1


def test_where_draws_disagree_nothing_is_promised() -> None:
    rng = np.random.default_rng(7)
    positive = rng.uniform(0.0, 0.2, 3000)
    posterior = np.column_stack([positive, 1 - positive])
    # Worlds that differ in which scores mean anything: half of them put the positives at the top.
    draws = np.ones((200, 3000), dtype=np.uint8)
    ranked = np.argsort(-positive)
    for number, draw in enumerate(draws):
        draw[ranked[:100] if number % 2 else ranked[rng.permutation(2000)[:100]]] = 0
    decision = decide(made(posterior, draws=draws, names=NAMES), min_recall={"defect": 0.9})
    assert decision.target is not None
    assert not decision.target.promised
    assert decision.target.source == "none"
    assert "Gold is needed: 16 known tasks of class defect" in decision.target.words
    assert decision.target.most > 1.7 * decision.target.fewest


def test_probabilities_without_draws_promise_nothing() -> None:
    _, posterior = sharp()
    found = calibrated(posterior, prevalence=[0.5, 0.5], classes=NAMES)
    decision = decide(found, min_recall={"defect": 0.9})
    assert decision.target is not None
    assert not decision.target.promised
    assert "without the votes" in decision.target.words
    assert decision.recall.mean[0] >= 0.9
    assert np.isnan(decision.recall.low).all()


def test_a_caution_forbids_promises() -> None:
    found, _ = sharp()
    decision = decide(dataclasses.replace(found, caution="too few votes"), min_recall={"defect": 0.9})
    assert decision.target is not None
    assert not decision.target.promised
    assert "too few votes. Gold is needed" in decision.target.words


def test_a_sample_of_draws_speaks_for_all_tasks() -> None:
    found, _ = sharp()
    half = np.arange(0, 2000, 2)
    sample = dataclasses.replace(found, draws=found.draws[:, half], drawn_tasks=half)
    whole, part = (decide(one, min_recall={"defect": 0.7}) for one in (found, sample))
    assert whole.target is not None
    assert part.target is not None
    assert part.target.n_flagged == pytest.approx(whole.target.n_flagged, rel=0.1)
    assert part.target.fewest == pytest.approx(whole.target.fewest, rel=0.1)


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
    assert decision.target.source == "gold"
    assert decision.target.threshold == gold_threshold(
        positive[[row for row, number in gold.items() if number == 0]], 0.9, 0.8
    )
    chosen_gold = decide(found, min_recall={"defect": 0.9}, random_gold=False)
    assert chosen_gold.target is not None
    assert not chosen_gold.target.promised


def test_random_gold_can_contradict_the_votes() -> None:
    found, posterior = sharp()
    missed = dict.fromkeys(range(1000, 1012), 0)  # defects that score like sound rails
    decision = decide(
        made(posterior, draws=found.draws, gold=missed, names=NAMES), min_recall={"defect": 0.9}, random_gold=True
    )
    assert decision.target is not None
    assert not decision.target.promised
    assert "contradict" in decision.target.words


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
    # What has no answer is not found, and not wrong either.
    np.testing.assert_allclose(decision.recall.mean, [0.95 / 1.65, 0.9 / 1.35])
    np.testing.assert_allclose(decision.precision.mean, [0.95, 0.9])
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


def test_expected_recall_and_precision_against_counting() -> None:
    rng = np.random.default_rng(9)
    posterior = rng.dirichlet([0.5, 0.5, 0.5], size=80)
    draws = np.array([[rng.choice(3, p=p) for p in posterior] for _ in range(200)], dtype=np.uint8)
    found = made(posterior, draws=draws)
    decision = decide(found)
    for k in range(3):
        decided = decision.codes == k
        recall = [(decided & (draw == k)).sum() / (draw == k).sum() for draw in draws]
        precision = [(decided & (draw == k)).sum() / decided.sum() for draw in draws]
        assert [decision.recall.low[k], decision.recall.high[k]] == pytest.approx(np.quantile(recall, [0.025, 0.975]))
        assert [decision.precision.low[k], decision.precision.high[k]] == pytest.approx(
            np.quantile(precision, [0.025, 0.975])
        )
        assert decision.precision.mean[k] == pytest.approx(np.mean(precision), abs=0.02)
        assert decision.recall.mean[k] == pytest.approx(np.mean(recall), abs=0.02)
    assert "200 draws" in decision.how


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


def test_recall_target_and_costs_on_simulated_crowds() -> None:
    """The full count is docs/evidence/decisions.csv; here three crowds of imbalance 7, with bars that can fail."""
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    for seed in range(3):
        crowd = simulate_crowd(2500, imbalance=7, random_state=seed)
        found = fitted(crowd)
        is_rare = crowd.truth == 1
        decision = decide(found, min_recall={1: 0.9})
        assert decision.target is not None
        assert decision.target.promised
        flagged = decision.codes == 1
        hits = np.cumsum(is_rare[np.argsort(-found.score[:, 1], kind="stable")])
        best = int(np.searchsorted(hits, np.ceil(0.9 * hits[-1]))) + 1
        assert (flagged & is_rare).sum() / is_rare.sum() >= 0.88
        assert flagged.sum() <= 1.5 * best
        assert realised(decide(found, costs=costs), crowd.truth, costs) < realised(decide(found), crowd.truth, costs)


def test_very_rare_classes_of_small_crowds_are_not_promised() -> None:
    decision = decide(fitted(simulate_crowd(3000, imbalance=30, random_state=0)), min_recall={1: 0.9})
    assert decision.target is not None
    assert not decision.target.promised
    assert "Gold is needed" in decision.target.words
