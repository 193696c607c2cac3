"""What an audit says: the figures in its sentences are its own, and nothing is promised that is not proved."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from rarevote.audit import Audit, verify
from rarevote.audit.plan_file import Population
from rarevote.audit.words import (
    advice_words,
    certified_words,
    contradiction_words,
    population_words,
    relative_to,
    start_words,
    status_words,
)
from tests.audit.worlds import finished, started, world


def test_start_says_the_floor_and_what_to_expect() -> None:
    audit, _ = started(3000)
    said = start_words(audit)
    expected = audit.forecast
    assert expected is not None
    assert "3,000 items, about " in said
    assert f"fewer than about {audit.floor} reviews" in said
    assert f"expected here: {round(expected.reviews):,} reviews and {expected.flagged:,} flagged items" in said
    assert f"With 80% confidence: at least about {audit.floor_at(4 / 5)[0]}" in said  # type: ignore[arg-type]
    assert "factor of two" in said


def test_status_keeps_the_two_claims_apart() -> None:
    audit, _ = finished(1500)
    said = status_words(audit)
    assert f"After {audit.n_reviewed} reviews ({audit.n_positives} “defect”)." in said
    assert (
        f"CERTIFIED: flag {len(audit.final_list()):,} items, recall of “defect” at least 0.90 (95%, no assump" in said
    )
    assert f"SUPPORTED: flag {len(audit.final_list(audit.supported)):,} items (by assumption, not proved)." in said
    assert re.search(r"“defect”: \d+\.\d% \(\d+\.\d to \d+\.\d\)", said)
    precision = audit.estimate.precision
    between = f"({precision.low:.2f} to {precision.high:.2f})"
    assert f"Precision of the certified list {precision.middle:.2f} {between}." in said
    assert "Stopped: more reviews would cost more than they save." in said
    running, truth = started(1500)
    review = running.round()
    assert f"{len(review)} drawn items not answered yet." in status_words(running)
    running.answer({task: truth[task] for task in review})
    assert "more reviews would shorten the certified list to about" in status_words(running)


def test_answers_behind_a_gap_are_said_to_wait() -> None:
    audit, truth = started(1500)
    audit.answer({task: truth[task] for task in audit.round(10)})
    audit.round(20)
    assert "will count once" not in status_words(audit)
    order = audit.plan.rounds[1].tasks
    audit.answer({task: truth[task] for task in order[:2] + order[4:7]})
    assert "15 drawn items not answered yet. 3 answers will count once the items before them" in status_words(audit)


def test_what_a_proof_rests_on_is_named() -> None:
    alone, truth = finished(600)
    assert relative_to(alone) == "Relative to the expert's labels: where the expert errs, so does the certificate."
    assert "2 earlier audits of the same labels came before" in relative_to(started(600, earlier=[alone, alone])[0])
    again = alone.repeat_list()
    alone.answer_repeats({task: truth[task] for task in again})
    assert f"Shown again, 0 of {len(again)} items got another answer." in relative_to(alone)


def test_the_population_is_counted() -> None:
    plan = started(60)[0].plan
    assert population_words(plan) == "60 items"
    assert population_words(replace(plan, population=Population(50, 10))) == "60 items (50 with votes, 10 without)"
    left_out = replace(plan, population=Population(60, 0, 7, only_voted_items=True))
    assert population_words(left_out) == "60 items with votes (7 without votes left out)"


def test_gold_is_not_named_where_there_is_none() -> None:
    assert "gold" not in certified_words(finished(1500)[0])


def test_hopeless_audits_are_advised_against() -> None:
    # 8 positives expected among 1,000.
    scores = np.concatenate([np.full(10, 0.7), np.full(990, 0.001)])
    audit = Audit.start(range(1000), scores, name="defect", target=0.9, seed=0)
    said = start_words(audit)
    assert said.startswith("8 “defect” expected in 1,000 items: a certificate needs ")
    assert said.endswith("of the rest reviewed. Review all of them, or use the estimate.")
    assert "review all of them" in advice_words(started(49)[0])
    assert "Only a full review" in start_words(started(500, target=1)[0])
    assert advice_words(started(3000)[0]) == ""


def test_without_positives_a_bound_and_no_recall() -> None:
    audit = Audit.start(range(500), np.linspace(0.3, 0.01, 500), name="x", target=0.9, seed=2)
    audit.answer(dict.fromkeys(audit.round(60), False))
    said = status_words(audit)
    assert f"there are at most {audit.most_positives} of them" in said
    assert "CERTIFIED" not in said
    assert "recall at least" not in said
    assert "Precision" not in said
    assert certified_words(audit) == "nothing yet."


def test_gold_is_named_where_it_counts() -> None:
    scores, truth = world(1500)
    audit = Audit.start(
        range(1500), scores, name="x", target=0.9, seed=1, gold={task: truth[task] for task in range(100)}
    )
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    assert "with the gold counted as found" in certified_words(audit)
    assert re.search(r"Estimated recall .* with the gold, .* without\.", status_words(audit))


def test_expert_and_crowd_disagree() -> None:
    generator = np.random.default_rng(0)
    scores = np.where(np.arange(800) < 200, 0.97, 0.02) + generator.random(800) * 0.01
    truth = generator.random(800) < 0.4  # the votes say nothing
    audit = Audit.start(range(800), scores, name="defect", target=0.9, seed=3)
    for _ in range(3):
        audit.answer({task: bool(truth[task]) for task in audit.round(40)})
    said = contradiction_words(audit)
    found = re.search(r"\((\d+) of (\d+) that it does not call .*slope (0\.\d\d)\)", said)
    assert found is not None
    sure = [task for group in audit.plan.strata.tasks if scores[list(group)].mean() <= 0.1 for task in group]
    low = [task for task in audit.answers if task in sure]
    assert (int(found[1]), int(found[2])) == (sum(truth[low]), len(low))
    assert contradiction_words(finished(1500)[0]) == ""


def reviewed(scores: list[float], truth: list[bool], n: int) -> Audit:
    audit = Audit.start(range(len(scores)), scores, name="defect", target=0.9, seed=3)
    while audit.n_reviewed < n:
        audit.answer({task: truth[task] for task in audit.round(40)})
    return audit


def test_no_contradiction_where_the_low_scores_are_right_or_the_ranking_helps() -> None:
    # High scores are worth nothing, but one in twelve of the low ones is positive, as their 0.08 says.
    as_expected = reviewed([0.97] * 200 + [0.08] * 600, [task % 12 == 0 for task in range(800)], 120)
    assert as_expected.recalibration.slope < 0.2
    assert contradiction_words(as_expected) == ""
    # Low scores are too low, eightfold, but the ranking is good.
    too_low = reviewed([0.9] * 200 + [0.02] * 600, [task < 180 or task % 6 == 0 for task in range(800)], 120)
    assert 0.5 < too_low.recalibration.slope < 0.9
    assert contradiction_words(too_low) == ""


def test_the_crowd_is_sure_up_to_one_in_ten() -> None:
    audit = reviewed([0.97] * 8 + [0.1] * 8, [False] * 8 + [True] * 8, 16)
    assert audit.plan.strata.p0.tolist() == [0.97, 0.97, 0.535, 0.1, 0.1, 0.1, 0.1]  # one stratum has one of each
    assert "(7 of 7 that it does not call “defect” are “defect”)" in contradiction_words(audit)


@pytest.mark.parametrize(
    ("target", "confidence", "recall", "percent"),
    [
        ("0.9", "0.95", "0.90", "95%"),
        ("0.8951", "0.946", "0.8951", "94.6%"),
        ("0.89999999", "0.9957", "0.89999999", "99.57%"),
        ("2/3", "0.98333333333", "2/3", "98%"),
        ("0.9001", "0.99996", "0.9001", "over 99.9%"),
    ],
)
def test_a_claim_is_never_rounded_up(target: str, confidence: str, recall: str, percent: str) -> None:
    audit, _ = finished(600, target=target, confidence=confidence, flag_cost=5.0)
    found = audit.certificate()
    assert audit.is_certified
    assert f"recall of “defect” at least {recall} ({percent}, no assumption about the crowd)." in found["claim"]
    # Version 0.2 rounded to two digits and to whole percent.
    before = f"{float(audit.plan.target):.2f} ({words_0_2(float(audit.plan.confidence))}, no"
    earlier = {**found, "claim": found["claim"].replace(f"{recall} ({percent}, no", before)}
    verdict = verify(audit, earlier)
    assert not verdict
    exactly = [note for note in verdict.notes if note.startswith("its claim is in the words of an earlier version")]
    assert len(exactly) == (earlier["claim"] != found["claim"])
    assert all(f"at least {recall} ({percent}, no assumption" in note for note in exactly)
    assert verify(audit, found).notes == tuple(note for note in verdict.notes if note not in exactly)
    better = {**found, "claim": found["claim"].replace(f"at least {recall} ", "at least 0.91 ")}
    assert any("the claim" in reason for reason in verify(audit, better))


def words_0_2(share: float) -> str:
    return {0.946: "95%", 0.9957: "99.6%", 0.99996: "over 99.9%"}.get(share, f"{100 * share:.0f}%")
