"""The review list against brute force, whom it suggests, its formats, and the options of the command line."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rarevote
from rarevote.api import Fitted
from rarevote.cli.options.decisions import DecisionArguments, parse_prevalence
from rarevote.cli.show import decision_words
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.rare import RareClass
from rarevote.decide.decision import Decision
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.review import (
    ReviewPlan,
    argilla_records,
    label_studio_tasks,
    plan_review,
    review_columns,
    review_gains,
)
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.crowd import Crowd
from rarevote.methods.dawid_skene.estimator import DawidSkene
from rarevote.methods.majority import MajorityVote
from rarevote.simulate.crowds import simulate_crowd
from tests.decide import made

Floats = NDArray[np.float64]
COSTS = "sound:defect=1,defect:sound=20"


def little_crowd() -> Annotations:
    """Six rails, four inspectors; the last rail has been seen by everybody."""
    votes = {
        "r1": {"ann": "sound", "bob": "sound"},
        "r2": {"ann": "sound", "cy": "defect"},
        "r3": {"bob": "defect", "cy": "defect"},
        "r4": {"ann": "sound", "bob": "defect"},
        "r5": {"cy": "sound", "dee": "sound"},
        "r6": {"ann": "defect", "bob": "sound", "cy": "sound", "dee": "sound"},
    }
    rows = [(task, worker, label) for task, given in votes.items() for worker, label in given.items()]
    return Annotations.from_arrays(*zip(*rows, strict=True))


POSTERIOR = np.array([[0.01, 0.99], [0.30, 0.70], [0.97, 0.03], [0.60, 0.40], [0.04, 0.96], [0.02, 0.98]])
ABILITIES = np.array([[2.0, 2.0], [0.0, 3.0], [1.0, 1.0], [-1.0, 0.5]])  # ann, bob, cy, dee: defect, sound


def found_for(crowd: Annotations, gold: dict[str, str] | None = None) -> Probabilities:
    names = crowd.classes.tolist()
    known = {crowd.tasks.tolist().index(task): names.index(label) for task, label in (gold or {}).items()}
    return made.made(POSTERIOR, gold=known, names=crowd.classes)


def decide(found: Probabilities, **how: Any) -> Decision:
    return made.decide(found, little_crowd().votes(), **how)


def planned(found: Probabilities, decision: Decision, max_review: Any, **options: Any) -> ReviewPlan:
    crowd = little_crowd()
    given = {"abilities": np.empty((0, 2)), **options}
    return plan_review(found, decision.codes, decision.costs, crowd, crowd.tasks, max_review=max_review, **given)


def test_gain_is_the_fall_of_the_expected_cost() -> None:
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet([1, 1, 1], size=20)
    costs = rng.integers(0, 9, (3, 3)).astype(float)
    codes = rng.integers(0, 3, 20)
    for i, gain in enumerate(review_gains(posterior, codes, costs)):
        now = sum(posterior[i, k] * costs[k, codes[i]] for k in range(3))
        then = sum(posterior[i, k] * min(costs[k, d] for d in range(3)) for k in range(3))
        assert gain == pytest.approx(now - then)


def test_with_equal_costs_the_gain_is_the_chance_of_being_wrong() -> None:
    found = found_for(little_crowd())
    decision = decide(found)
    np.testing.assert_allclose(review_gains(found.p, decision.codes, decision.costs), 1 - POSTERIOR.max(axis=1))


@pytest.mark.parametrize("max_review", [1, 2, 3])
def test_no_other_choice_lowers_the_expected_cost_more(max_review: int) -> None:
    found = found_for(little_crowd())
    for decision in (decide(found), decide(found, costs=COSTS)):
        plan = planned(found, decision, max_review)

        def cost_left(reviewed: tuple[int, ...], codes: NDArray[np.int64], costs: Floats) -> float:
            return sum(float(POSTERIOR[i] @ costs[:, codes[i]]) for i in range(6) if i not in reviewed)

        best = min(cost_left(some, decision.codes, decision.costs) for some in combinations(range(6), max_review))
        assert plan.expected_cost - plan.saved == pytest.approx(best)
        assert [item.gain for item in plan.items] == sorted((item.gain for item in plan.items), reverse=True)


def test_unequal_costs_change_who_comes_first() -> None:
    found = found_for(little_crowd())
    equal = planned(found, decide(found), 1)
    unequal = planned(found, decide(found, costs=COSTS), 6)
    assert equal.items[0].task == "r4"
    # r2 is now called a defect, for safety, and is sound with 0.7; r5 is called sound, and a missed defect costs 20.
    assert [item.task for item in unequal.items[:2]] == ["r5", "r2"]


def test_known_tasks_and_certain_ones_are_not_listed() -> None:
    found = found_for(little_crowd(), {"r4": "defect", "r2": "sound"})
    plan = planned(found, decide(found), 100)
    assert {item.task for item in plan.items} == {"r1", "r3", "r5", "r6"}


def test_who_is_asked() -> None:
    found = found_for(little_crowd())
    plan = planned(found, decide(found), 6, abilities=ABILITIES, n_annotators=2)
    ask = {item.task: item.annotators for item in plan.items}
    assert ask["r1"] == ("cy", "dee")  # ann and bob have voted
    assert ask["r3"] == ("ann", "dee")
    assert ask["r5"] == ("ann", "bob")
    assert ask["r6"] == ()  # everybody has
    assert all(item.annotators == () for item in planned(found, decide(found), 6).items)


def test_reasons_say_what_was_decided_and_what_speaks_against_it() -> None:
    found = found_for(little_crowd())
    first = planned(found, decide(found, costs=COSTS), 1).items[0]
    assert first.decided == "sound"
    assert first.doubt == "defect"
    assert "decided sound (probability 0.96), but defect has 0.04; being wrong costs 20; votes: 2 sound" in first.reason
    silent = planned(found, decide(found, abstain_below=0.9), 1).items[0]
    assert silent.task == "r4"
    assert silent.decided is None
    assert silent.reason.startswith("no answer yet")


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, "ten"])
def test_bad_numbers_of_tasks(bad: Any) -> None:
    found = found_for(little_crowd())
    with pytest.raises(ParameterError, match="whole number of at least 1"):
        planned(found, decide(found), bad)


def test_things_about_other_tasks() -> None:
    found = found_for(little_crowd())
    decision, other = decide(found), Annotations.from_arrays(["a"], ["b"], ["sound"])
    with pytest.raises(InputError, match="do not fit 1 tasks"):
        plan_review(found, decision.codes, decision.costs, other, other.tasks, max_review=1, abilities=np.empty((0, 2)))


def test_items_without_votes_are_worth_what_is_known_of_their_kind() -> None:
    rows: list[tuple[Any, str, str]] = [
        (task, worker, "yes" if task % 4 == 0 else "no") for task in range(40) for worker in "abc"
    ]
    rows += [(0, "d", "no"), *((task, "a", "skipped") for task in ("u1", "u2"))]
    result = rarevote.fit(rows, "majority-vote", abstain=["skipped"]).decide()
    mean = result.probabilities.mean
    unvoted = [item for item in result.review(42).items if item.task in ("u1", "u2")]
    assert len(unvoted) == 2
    for item in unvoted:
        assert item.gain == pytest.approx(mean.min())  # what is left after the likelier class
        assert item.reason.startswith("no answer yet")
        assert item.reason.endswith("votes: none")
        assert len(item.annotators) == 3


def test_the_list_in_every_format() -> None:
    crowd = little_crowd()
    found = found_for(crowd)
    plan = planned(found, decide(found), 2, abilities=ABILITIES)
    shown = {"image": np.array([f"{task}.jpg" for task in crowd.tasks]), "reason": np.array(["why"] * 6)}
    columns = review_columns(plan, shown)
    assert list(columns) == ["task", "image", "show:reason", "decided", "doubt", "reason", "expected_gain", "ask"]
    assert columns["task"].tolist() == ["r4", "r2"]
    assert columns["image"].tolist() == ["r4.jpg", "r2.jpg"]
    assert columns["ask"].tolist() == ["cy, dee", "bob, dee"]
    tasks = json.loads(json.dumps(label_studio_tasks(plan, shown)))
    assert tasks[0]["data"] == {"task": "r4", "image": "r4.jpg", "reason": "why"}
    assert tasks[0]["meta"]["ask"] == ["cy", "dee"]
    records = json.loads(json.dumps(argilla_records(plan)))
    assert records[1]["id"] == "r2"
    assert records[1]["fields"] == {"task": "r2"}
    assert records[1]["metadata"]["expected_gain"] == pytest.approx(0.3)
    assert list(review_columns(planned(found, decide(found), 1))) == [
        "task", "decided", "doubt", "reason", "expected_gain", "ask",
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:glad gives")  # fewer items of the rare class than votes for it, and rightly so
def test_a_review_pays_and_its_answers_come_back_as_gold() -> None:
    crowd = simulate_crowd(1200, 40, imbalance=7, random_state=1)
    costs = np.array([[0.0, 1.0], [20.0, 0.0]])
    result = rarevote.fit(crowd.arrays, "glad").decide(costs=costs)
    paid = costs[crowd.truth, result.codes]
    plan = result.review(120)
    rows = [item.row for item in plan.items]
    lowest = np.argsort(result.probabilities.p.max(axis=1), kind="stable")[:120]
    by_chance = np.mean([paid[np.random.default_rng(seed).permutation(1200)[:120]].sum() for seed in range(50)])
    assert paid[rows].sum() > paid[lowest].sum()
    assert paid[rows].sum() > 1.3 * by_chance
    answers = {item.task: int(crowd.truth[item.row]) for item in plan.items}
    later = rarevote.fit(crowd.arrays, "glad", gold=answers).decide(costs=costs)
    assert (later.codes[rows] == crowd.truth[rows]).all()
    assert costs[crowd.truth, later.codes].sum() < paid.sum()


# -- the command line's options ---------------------------------------------------------------------------------------


def test_texts_become_values() -> None:
    assert parse_prevalence(None) == "estimate"
    assert parse_prevalence("gold") == "gold"
    assert parse_prevalence("defect=0.02, sound=0.98") == {"defect": 0.02, "sound": 0.98}
    assert not DecisionArguments().active
    assert DecisionArguments(min_recall="defect=0.9").active


def parse(**given: Any) -> dict[str, Any]:
    return DecisionArguments(**given).options(has_gold=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_recall": "defect"}, "CLASS=RECALL"),
        ({"min_recall": "=0.9"}, "CLASS=RECALL"),
        ({"min_recall": "defect=most"}, "CLASS=RECALL"),
        ({"min_recall": "defect=0"}, "above 0 and at most 1"),
        ({"min_recall": "defect=1.5"}, "above 0 and at most 1"),
        ({"min_recall": "defect=nan"}, "above 0 and at most 1"),
        ({"prevalence": "defect"}, "CLASS=SHARE"),
        ({"prevalence": "defect=0.1,defect=0.2"}, "twice"),
        ({"prevalence": "gold"}, "needs gold labels"),
        ({"random_gold": True}, "needs gold labels"),
        ({"abstain_below": 0.0}, "above 0"),
        ({"min_recall": "defect=0.9", "cost": COSTS}, "--cost and --min-recall cannot be used together"),
        ({"abstain_below": 0.9, "cost": COSTS}, "--cost and --abstain-below cannot be used together"),
        ({"max_review": 5}, "must be used together"),
        ({"review_out": Path("review.csv")}, "must be used together"),
        ({"max_review": 0, "review_out": Path("review.csv")}, "at least 1"),
        ({"review_as": "prodigy"}, "label-studio"),
        ({"decide": "balanced:0.5"}, "at least 1"),
        ({"decide": "balanced:many"}, "balanced:5"),
        ({"decide": "boldly"}, "there are labels, argmax, balanced"),
        ({"decide": "balanced", "cost": COSTS}, "--decide and --cost cannot be used together"),
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        parse(**options)


def test_files_that_cannot_be_used_are_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a file"):
        parse(cost=str(tmp_path / "none.csv"))
    for name in ("review.doc", "nowhere/review.csv"):
        with pytest.raises(InputError):
            parse(max_review=1, review_out=tmp_path / name)
    with pytest.raises(InputError, match=r"\.json"):
        parse(max_review=1, review_out=tmp_path / "review.csv", review_as="argilla")


def test_columns_words_and_files_of_a_decision(tmp_path: Path) -> None:
    votes = little_crowd()
    shown = {"image": np.array([f"{task}.jpg" for task in votes.tasks])}
    gold = {"r3": "defect"}
    rare = RareClass.of(votes.classes, votes.class_votes, "defect")
    fitted = Fitted(DawidSkene().fit(votes, gold), Crowd(votes, shown=shown), rare, gold)
    result = fitted.decide(costs=COSTS)
    for form, name in (("table", "review.csv"), ("label-studio", "ls.json"), ("argilla", "argilla.json")):
        assert len(result.review(2, tmp_path / name, form=form).items) == 2
    rows = result.columns()
    assert list(rows) == ["task", "label", "confidence", "votes", "p:defect", "p:sound", "image", "decision"]
    assert rows["decision"].tolist() == ["cost", "cost", "gold", "cost", "cost", "cost"]
    assert rows["label"][2] == "defect"
    assert "expected cost of these decisions" in "\n".join(decision_words(result))
    assert (tmp_path / "review.csv").read_text().startswith("task,image,decided,doubt,reason,expected_gain,ask")
    assert len(json.loads((tmp_path / "ls.json").read_text())) == 2


def test_a_recall_target_that_is_not_promised_is_told() -> None:
    result = Fitted.of(MajorityVote().fit(little_crowd())).decide(min_recall={"defect": 0.9})
    assert any(line.startswith("warning: the recall of defect is not promised") for line in decision_words(result))
    json.dumps(result.summary(), allow_nan=False)


def test_unknown_classes_are_refused() -> None:
    fitted = Fitted.of(MajorityVote().fit(little_crowd()))
    with pytest.raises(ParameterError, match="'crack' is not a class"):
        fitted.decide(costs="sound:crack=1,crack:sound=2")
    with pytest.raises(ParameterError, match="'crack' is not a class"):
        fitted.decide(min_recall={"crack": 0.9})
