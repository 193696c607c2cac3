"""Forged plans: true draws, true answers and forged bets certify nothing, even if plan and certificate fit together.

Each forgery makes its own certificate, as a forger would, so that nothing but the bets themselves is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.audit import Audit, verify, verify_files
from rarevote.audit.opening import checked_options
from rarevote.audit.plan_file import to_text
from rarevote.audit.replanning import _check_rates, _is_rounded, _OtherwiseError
from rarevote.audit.source import files_sha256
from rarevote.audit.wealth import Stakes, Wealth
from rarevote.errors import InputError, ParameterError
from tests.audit.worlds import finished, independent_replay, started, world


def overlooked(n: int = 500, *, seed: int = 1) -> tuple[Audit, list[bool]]:
    """A crowd that is sure and overlooks every third positive: only almost everything has a recall of 0.9."""
    generator = np.random.default_rng(seed)
    sure = n // 4
    truth = [bool(x) for x in generator.random(n) < np.where(np.arange(n) < sure, 0.8, 0.4 / 3)]
    scores = np.where(np.arange(n) < sure, 0.9, 0.02) - np.arange(n) * 1e-5
    return Audit.start(range(n), scores, name="defect", target=0.9, seed=seed, flag_cost=5.0), truth


def forged(audit: Audit, truth: list[bool], stakes: Stakes, size: int) -> None:
    """A round drawn by the seed and answered truly, with stakes that the forger chooses."""
    audit._replay.add_round(stakes, size)
    audit.answer({task: truth[task] for task in audit.pending})


# --------------------------------------------------------------------------------------------------------------------
# weights that leave 64 bits


@pytest.mark.parametrize("weight", [(2**63) // 3000, 2**53, 2**32 + 1])
def test_weights_that_wrap_are_refused(weight: int) -> None:
    """With a sum of weights beyond 2^63 every draw seemed to be certain of the wrong thing."""
    audit, truth = overlooked()
    n_strata = len(audit.plan.strata.tasks)
    audit.answer({task: truth[task] for task in audit.round(40)})
    plan = json.loads(audit.to_json())
    honest = plan["rounds"][0]
    plan["rounds"][0] = {**honest, "w": [weight] * n_strata}
    with pytest.raises(InputError, match=r"round 1: weights are whole numbers from 1 to 2\^32"):
        Audit.from_json(to_text(plan))
    assert "weights are whole numbers" in verify(to_text(plan), {})[0]


def test_totals_beyond_64_bits_are_refused() -> None:
    """Weights that are allowed, of more items than any plan of ours could sum up."""
    wealth = Wealth([2**31, 5], target=Fraction(9, 10), confidence=Fraction(19, 20))
    fits = Stakes((2**32 - 1, 1), np.array([0.5, 0.5]), np.array([0.5]))
    assert wealth.terms(fits).inverse_q[0] == pytest.approx(2**31, rel=1e-9)
    with pytest.raises(InputError, match=r"exceeds 2\^63"):
        wealth.terms(replace(fits, w=(2**32, 1)))


def test_the_largest_weights_agree_with_exact_arithmetic() -> None:
    audit, _ = finished(1500)
    assert max(w for one in audit.plan.rounds for w in one.stakes.w) == 2**32
    assert audit.wealth.log_wealth.tolist() == pytest.approx(independent_replay(audit.to_json()), abs=1e-9)


# --------------------------------------------------------------------------------------------------------------------
# stakes chosen after the answers


def recall(audit: Audit, truth: list[bool]) -> float:
    """Of the certified set, reviewed positives below it counted as missed."""
    inside = [task for group in audit.plan.strata.tasks[: audit.certified + 1] for task in group]
    found: int = sum(truth[task] for task in inside)
    return found / sum(truth)


def bold(audit: Audit, truth: list[bool]) -> None:
    """Rounds of one, everything staked where it is going to win and almost nothing where it is not."""
    while recall(audit, truth) >= 0.9:
        honest = audit._next_round(1)
        assert honest is not None
        stakes = replace(honest[0], gamma=np.full_like(honest[0].gamma, 0.999999))
        audit._replay.add_round(stakes, 1)
        (task,) = audit.pending
        b = next(i for i, group in enumerate(audit.plan.strata.tasks) if task in group)
        terms, sets = audit.wealth.terms(stakes), np.arange(len(stakes.gamma))
        gain = np.where(sets < b, truth[task], -(truth[task] - stakes.v[b]) / 9)
        stakes.gamma[terms.base + gain * terms.inverse_q[b] > 0] = 1e-9
        audit.answer({task: truth[task]})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stakes_chosen_after_the_answers_are_refused(seed: int) -> None:
    audit, truth = overlooked(seed=seed)
    bold(audit, truth)
    claim = audit.certificate()
    # The forgery works: a false certificate that follows from true draws and true answers.
    assert claim["certified"]
    assert recall(Audit.from_json(audit.to_json()), truth) < 0.9
    reasons = verify(audit, claim)
    assert any(
        "round 1 of the plan was not planned from the answers before it: the stake gamma" in one for one in reasons
    )


def _gamma(stakes: dict[str, Any]) -> None:
    stakes["gamma"] = [0.98 if gamma < 0.9 else 0.01 for gamma in stakes["gamma"]]


def _gamma_beside_the_grid(stakes: dict[str, Any]) -> None:
    stakes["gamma"][1] += 1e-7


def _rate(stakes: dict[str, Any]) -> None:
    stakes["v"][0] *= 1 - 1e-4


@pytest.mark.parametrize("change", [_gamma, _gamma_beside_the_grid, _rate])
@pytest.mark.parametrize("number", [0, 2])
def test_every_other_stake_is_refused_and_the_round_named(
    change: Callable[[dict[str, Any]], None], number: int
) -> None:
    """Stakes do not change what is drawn: only planning again shows that they are not the planner's."""
    audit, _ = finished(1500)
    plan = json.loads(audit.to_json())
    change(plan["rounds"][number])
    altered = Audit.from_json(to_text(plan))
    reasons = verify(altered, altered.certificate())
    assert reasons
    assert f"round {number + 1} of the plan was not planned from the answers before it" in reasons[0]


def test_other_weights_are_refused() -> None:
    """Weights of another choice that the planner considered, drawn by honestly."""
    audit, truth = started(1500)
    proposed = audit._next_round(None)
    assert proposed is not None
    w = [max(1, x // 2) if b else x for b, x in enumerate(proposed[0].w)]
    forged(audit, truth, replace(proposed[0], w=tuple(w)), 30)
    assert "round 1 of the plan was not planned" in verify(audit, audit.certificate())[0]
    assert "the planner chooses other weights" in verify(audit, audit.certificate())[0]


def test_what_differs_between_machines_is_accepted() -> None:
    """Logarithms in the last place, a rounding of weights that falls otherwise."""
    audit, truth = started(1500)
    for _ in range(4):
        proposed = audit._next_round(30)
        assert proposed is not None
        stakes, size = proposed
        w = tuple(x - 2 if x > 2**31 else x for x in stakes.w)
        near = replace(stakes, w=w, v=stakes.v * (1 + 1e-9))
        forged(audit, truth, near, size)
    assert verify(audit, audit.certificate()) == ()


def test_the_state_before_a_round_counts_and_not_the_one_after() -> None:
    """Round 2 planned as if round 1 had not been answered."""
    audit, truth = started(1500)
    first = audit._next_round(None)
    assert first is not None
    forged(audit, truth, first[0], 40)
    forged(audit, truth, first[0], 40)
    reasons = verify(audit, audit.certificate())
    assert reasons
    assert "round 2 of the plan was not planned" in reasons[0]


def test_a_budget_that_is_overdrawn_and_rounds_without_tasks() -> None:
    audit, truth = started(600, budget=50)
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    assert verify(audit, audit.certificate()) == ()
    plan = json.loads(audit.to_json())
    low = Audit.from_json(to_text({**plan, "budget": 45}))
    assert any("more than the budget leaves" in one for one in verify(low, low.certificate()))
    # An empty round would roll the dice of all later ones again.
    plan["rounds"].append({**plan["rounds"][0], "tasks": [], "answers": []})
    with pytest.raises(InputError, match="impossible rates, stakes or tasks"):
        Audit.from_json(to_text(plan))


def test_the_planner_is_frozen_by_number() -> None:
    audit, _ = finished(600)
    plan = json.loads(audit.to_json())
    assert plan["planner"] == 1
    for other in (2, 0, None, True, 1.0, "1"):
        with pytest.raises(InputError, match=r"made by planner .*; this rarevote has planner 1"):
            Audit.from_json(to_text({**plan, "planner": other}))
    del plan["planner"]
    old = Audit.from_json(to_text(plan))
    assert verify(old, old.certificate()) == ()


# --------------------------------------------------------------------------------------------------------------------
# items left out of the strata


def left_out(folder: Path, labels: str, source: dict[str, Any], kept: list[str], **options: Any) -> tuple[Path, Path]:
    """Plan and certificate of an honest audit of some of the items that the files list."""
    for name, text in (("labels.csv", labels), ("items.csv", "task\n" + "".join(f"i{i:03d}\n" for i in range(200)))):
        (folder / name).write_text(text, encoding="utf-8")
    listed = [folder / "items.csv"] if "items" in source["reading"] else []
    audit = Audit.start(
        kept, [0.9 - 0.004 * i for i in range(len(kept))], name="defect", target=0.9, seed=1,
        labels_sha256=files_sha256([folder / "labels.csv", *listed]),
        source={"labels": ["labels.csv"], "review_as": "table", "other": "not defect", "others": [], **source},
        **options,
    )  # fmt: skip
    audit.answer({task: int(task[1:]) < 60 for task in audit.round(90)})
    audit.save(folder / "plan.json")
    (folder / "certificate.json").write_text(to_text(audit.certificate()), encoding="utf-8")
    return folder / "plan.json", folder / "certificate.json"


ITEMS = [f"i{i:03d}" for i in range(200)]


@pytest.mark.parametrize("without_planner", [False, True])
def test_items_of_a_table_of_scores_cannot_be_left_out(tmp_path: Path, *, without_planner: bool) -> None:
    table = "id,p\n" + "".join(f"{task},{0.9 - 0.004 * i}\n" for i, task in enumerate(ITEMS))
    source = {"reading": {}, "score": "p"}
    honest = verify_files(*left_out(tmp_path, table, source, ITEMS))
    assert not honest
    assert "the labels are those of the audit, and it covers all their items, read with score='p'" in honest.notes
    (tmp_path / "plan.json").unlink()
    plan, certificate = left_out(tmp_path, table, source, ITEMS[:150])
    if without_planner:
        record = json.loads(plan.read_text(encoding="utf-8"))
        del record["planner"]
        plan.write_text(to_text(record), encoding="utf-8")
        certificate.write_text(to_text(Audit.load(plan).certificate()), encoding="utf-8")
    (reason,) = verify_files(plan, certificate)
    assert reason.startswith("50 items in these labels but neither in the strata nor in the gold of the plan")
    record = json.loads(plan.read_text(encoding="utf-8"))
    record["population"] = {"voted": 150, "unvoted": 0, "left_out": 50, "only_voted_items": True}
    assert "an audit of a table of scores leaves no items out" in verify(to_text(record), {})[0]


def test_items_without_votes_are_left_out_only_where_the_plan_says_so(tmp_path: Path) -> None:
    votes = "task,worker,label\n" + "".join(
        f"{task},{worker},{'defect' if i < 60 else 'sound'}\n" for i, task in enumerate(ITEMS[:150]) for worker in "abc"
    )
    source = {"reading": {"items": "items.csv"}}
    said = {"unvoted": ITEMS[150:], "classes": ["defect", "sound"]}
    plan, certificate = left_out(tmp_path, votes, source, ITEMS, only_voted_items=True, **said)
    verdict = verify_files(plan, certificate)
    assert not verdict
    assert any("all their items except 50 without votes" in note for note in verdict.notes)
    record = json.loads(plan.read_text(encoding="utf-8"))
    del record["population"]
    plan.write_text(to_text(record), encoding="utf-8")
    certificate.write_text(to_text(Audit.load(plan).certificate()), encoding="utf-8")
    assert verify_files(plan, certificate)[0].startswith("50 items in these labels but neither in the strata")
    # Without a planner it is a plan of version 0.2, in which items without votes are in no stratum: a note says so.
    del record["planner"]
    plan.write_text(to_text(record), encoding="utf-8")
    certificate.write_text(to_text(Audit.load(plan).certificate()), encoding="utf-8")
    verdict = verify_files(plan, certificate)
    assert not verdict
    assert any("all their items except 50 without votes" in note for note in verdict.notes)


# --------------------------------------------------------------------------------------------------------------------
# labels that no answer is stored as


@pytest.mark.parametrize("label", ["Defect", True, "defect ", "", "unsure"])
@pytest.mark.parametrize("place", ["rounds", "gold", "extras", "repeats"])
def test_positives_in_another_spelling_are_refused(label: Any, place: str) -> None:
    """They would count as negatives."""
    audit, truth = started(300, classes=["defect", "sound"], gold={0: True})
    audit.answer({task: truth[task] for task in [*audit.round(40), 7]})
    audit.answer_repeats({task: truth[task] for task in list(audit.answers)[:3]})
    plan = json.loads(audit.to_json())
    plan["extras"] = plan["extras"] or [{"task": 7, "label": "sound", "who": None, "when": ""}]
    if place == "gold":
        plan["gold"][0][1] = label
    elif place == "rounds":
        plan["rounds"][0]["answers"][2]["label"] = label
    else:
        plan[place][0]["label"] = label
    (reason,) = verify(to_text(plan), {})
    assert f"has the label {label!r}, which no answer is stored as; the labels are defect, sound" in reason


@pytest.mark.parametrize(
    ("name", "label"), [("defect", True), ("defect", "Defect"), (1, "1"), ("1", 1), ("1", "1.0"), (True, 1)]
)
def test_so_are_they_if_the_other_classes_are_not_known(name: Any, label: Any) -> None:
    audit, truth = started(60, name=name)
    audit.answer({task: truth[task] for task in audit.round(20)})
    plan = json.loads(audit.to_json())
    said = plan["rounds"][0]["answers"]
    next(one for one in said if one["label"] is not False)["label"] = label
    assert f"has the label {label!r}, which no answer is stored as" in verify(to_text(plan), {})[0]
    next(one for one in said if one["label"] is False)["label"] = "sound"
    next(one for one in said if one["label"] == label)["label"] = name
    again = Audit.from_json(to_text(plan))
    assert verify(again, again.certificate()) == ()


def test_unsure_is_not_a_no() -> None:
    """An expert who is unsure about the positives that the crowd overlooks proves nothing."""
    audit, truth = overlooked()
    while review := audit.round():
        audit.answer({task: truth[task] and task < 125 for task in review})
    assert audit.is_certified
    plan = json.loads(audit.to_json())
    drawn = [pair for one in plan["rounds"] for pair in zip(one["tasks"], one["answers"], strict=True)]
    unsure = [said for task, said in drawn if truth[task] and task >= 125]
    for said in unsure:
        said["label"] = "unsure"
    assert "has the label 'unsure', which no answer is stored as" in verify(to_text(plan), {})[0]
    # Version 0.2 did store it, and a note says so.
    del plan["planner"]
    old = Audit.from_json(to_text(plan))
    verdict = verify(old, old.certificate())
    assert not verdict
    assert f"{len(unsure)} answers \"unsure\", which version 0.2 counted as not 'defect'" in verdict.notes


def test_numbers_are_not_truth_values() -> None:
    """1 == True in Python: a positive answered as 1 would be stored, and count as a negative."""
    audit, truth = started(60, name=True, classes=[False, True])
    (task, *_) = audit.round(20)
    with pytest.raises(InputError, match="1 is not a class; the classes are False, True"):
        audit.answer({task: 1})
    with pytest.raises(ParameterError, match="1 is not a class"):
        started(60, name=1, classes=[False, True])
    audit.answer({task: truth[task] for task in audit.pending})
    plan = json.loads(audit.to_json())
    assert verify(to_text({**plan, "class": 1}), {}) == ("the plan is damaged: 1 is not one of its classes",)
    next(one for one in plan["rounds"][0]["answers"] if one["label"])["label"] = 1
    assert "has the label 1, which no answer is stored as" in verify(to_text(plan), {})[0]


@pytest.mark.parametrize(
    ("name", "tail"),
    [
        (">=severe", ["critical"]),
        (">=severe", ["severe", "critical"]),
        (">= severe", ["critical"]),
        ("<=mild", ["none"]),
    ],
)
def test_the_name_of_a_tail_is_its_inner_grade(name: str, tail: list[str]) -> None:
    """Only critical ones found, and called severe or worse."""
    with pytest.raises(ParameterError, match="is not a tail of the classes"):
        started(60, name=name, tail=tail, classes=["critical", "mild", "none", "severe"])
    audit, _ = started(60, name=">=critical", tail=["critical"], classes=["critical", "mild", "none", "severe"])
    plan = {**json.loads(audit.to_json()), "class": name, "tail": tail}
    assert "is not a tail of its classes" in verify(to_text(plan), {})[0]


def test_the_claim_lists_the_grades_of_a_tail() -> None:
    """The order of the classes is not in a plan: a tail that skips a grade shows only so."""
    scores, truth = world(600)
    audit = Audit.start(
        range(600), scores, name=">=severe", tail=["severe"], classes=["critical", "mild", "none", "severe"],
        target=0.8, flag_cost=5.0, seed=1,
    )  # fmt: skip
    while review := audit.round():
        audit.answer({task: "severe" if truth[task] else "critical" for task in review})
    assert audit.is_certified
    assert "recall of “>=severe” (severe) at least 0.80" in audit.certificate()["claim"]


# --------------------------------------------------------------------------------------------------------------------
# certificates and files


def test_estimates_are_compared() -> None:
    audit, _ = finished(600)
    claim = audit.certificate()
    better = {**claim, "estimates": {**claim["estimates"], "recall": {"middle": 0.99, "low": 0.98, "high": 1.0}}}
    assert "the estimates" in verify(audit, better)[0]
    near = json.loads(json.dumps(claim))
    near["estimates"]["precision"]["low"] += 1e-4
    assert "the estimates" in verify(audit, near)[0]
    near["estimates"]["precision"]["low"] = claim["estimates"]["precision"]["low"] * (1 + 1e-12)
    assert verify(audit, near) == ()
    others: list[Any] = [None, [], {}, {**claim["estimates"], "more": 1}, {**claim["estimates"], "recall": "high"}]
    for wrong in others:
        assert "the estimates" in verify(audit, {**claim, "estimates": wrong})[0]
    # Both are cut to 200 characters.
    long = [0] * 100
    assert len(repr(long)) == 300
    said = verify(audit, {**claim, "estimates": long})[0]
    assert f"the certificate says {repr(long)[:199]}…, the replay gives {{" in said
    assert len(said.partition("the replay gives ")[2]) == 200


def test_what_cannot_be_checked_is_not_in_a_certificate() -> None:
    audit, _ = finished(600)
    claim = {**audit.certificate(), "recall_proved": 0.999}
    assert verify(audit, claim) == ("the certificate has fields that cannot be checked: recall_proved",)


def test_keys_that_stand_twice_are_refused() -> None:
    audit, _ = finished(600)
    plan, claim = audit.to_json(), to_text(audit.certificate())
    assert verify(plan, claim) == ()
    twice = plan.replace('"target":"9/10"', '"target":"99/100","target":"9/10"')
    assert "the key 'target' occurs twice in one object" in verify(twice, claim)[0]
    inside = plan.replace('"gamma":', '"gamma":[0.5],"gamma":', 1)
    assert "the key 'gamma' occurs twice in one object" in verify(inside, claim)[0]
    forged_claim = claim.replace('"target":"9/10"', '"target":"99/100","target":"9/10"')
    assert verify(plan, forged_claim)


@pytest.mark.parametrize("name", ["gold", "extras", "repeats"])
def test_tasks_that_stand_twice_are_refused(name: str) -> None:
    audit, truth = finished(600, gold={0: True})
    audit.answer({task: truth[task] for task in range(1, 5)})
    audit.answer_repeats({task: truth[task] for task in list(audit.answers)[:3]})
    plan = json.loads(audit.to_json())
    plan["extras"] = plan["extras"] or [{"task": 1, "label": "defect", "who": None, "when": ""}]
    plan[name].append(plan[name][0])
    with pytest.raises(InputError, match="occurs twice"):
        Audit.from_json(to_text(plan))


LONG = ["0.9000000001", "9000000001/10000000000", Fraction(1, 3).limit_denominator(10**12) + Fraction(1, 10**15), 1 / 3]


@pytest.mark.parametrize("target", LONG)
def test_long_targets_are_refused_at_the_start(target: Any) -> None:
    with pytest.raises(ParameterError, match="more than 9 digits"):
        started(60, target=target)
    with pytest.raises(ParameterError, match="more than 9 digits"):  # before anything is ranked
        checked_options(target, 0.95, 1.0, "certificate", None, 0)


def test_long_targets_are_refused_in_a_plan() -> None:
    audit, _ = started(60)
    long = audit.to_json().replace('"target":"9/10"', '"target":"9000000001/10000000000"')
    assert "the plan cannot be used: target 9000000001/10000000000 has more than 9 digits" in verify(long, {})[0]


def test_nine_digits_are_exact() -> None:
    """The longest target that is allowed, against exact arithmetic."""
    audit, truth = started(300, target="899999999/999999999", flag_cost=3.0)
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    assert audit.n_positives > 20
    assert audit.wealth.log_wealth.tolist() == pytest.approx(independent_replay(audit.to_json()), abs=1e-9)
    assert verify(audit, audit.certificate()) == ()


def test_a_confidence_of_many_digits_is_exact() -> None:
    audit, truth = started(300, confidence=1 - 0.05 / 3)
    audit.answer({task: truth[task] for task in audit.round(60)})
    assert audit.plan.confidence.denominator > 10**12
    draws = audit._estimates()
    known = audit.wealth.known_positives
    found = draws._found() + known
    total = draws.positives.sum(axis=1, keepdims=True) + known
    share = [Fraction(int((found[:, j] * 10 >= total[:, 0] * 9).sum()), len(found)) for j in range(found.shape[1])]
    assert audit.supported == next(j for j, one in enumerate(share) if one >= audit.plan.confidence)
    assert verify(audit, audit.certificate()) == ()


# --------------------------------------------------------------------------------------------------------------------
# how far a choice may be off


def test_weights_may_be_off_by_rounding_and_a_billionth() -> None:
    # 2^31 times 1e-9 is 2.1, and rounding adds 0.5.
    for off, accepted in ((0, True), (2, True), (3, False), (-2, True), (-3, False)):
        assert _is_rounded((2**32, 2**31 + off), np.array([1.0, 0.5])) == accepted
    # A weight is at least 1, however small it was.
    for w, accepted in ((1, True), (2, False)):
        assert _is_rounded((2**32, w), np.array([1.0, 1e-15])) == accepted


def test_rates_may_be_off_by_a_millionth_of_themselves() -> None:
    rates, gamma = np.array([0.5, 0.01]), np.array([0.5])
    _check_rates(Stakes((1, 1), rates * (1 + 5e-7), gamma), rates)
    with pytest.raises(_OtherwiseError, match=r"the rate v of stratum 1 is 0.0101, the planner's is 0.01"):
        _check_rates(Stakes((1, 1), np.array([0.5, 0.0101]), gamma), rates)
    with pytest.raises(_OtherwiseError, match="the rate v of stratum 1"):
        _check_rates(Stakes((1, 1), np.array([0.5, 0.01 * (1 + 2e-6)]), gamma), rates)


def test_classes_that_differ_only_in_spelling_are_named() -> None:
    """True answers "Defect" count as not "defect", which a reader of the claim may not expect."""
    audit, truth = started(60, name="defect", classes=["defect", "Defect", "sound"])
    while review := audit.round():
        audit.answer({task: "defect" if truth[task] else "sound" for task in review})
    verdict = verify(audit, audit.certificate())
    assert not verdict
    assert "its classes 'defect', 'Defect' differ only in spelling, and count as different classes" in verdict.notes
