"""The audit as its users meet it: asking, answering, gaps, gold, budgets, and what it claims at the end."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from proofs.audit_boundary import CASES, boundary, ever_false

from rarevote.audit import Audit
from rarevote.audit.answers import ExpertWords, adjudicated, by_expert
from rarevote.audit.state import ALL_REVIEWED, BUDGET_SPENT, NOTHING_PAYS
from rarevote.audit.strata import build_strata
from rarevote.decide.floor import positives_that_break
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.answers import Said
from tests.audit.worlds import finished, independent_replay, started, world


def test_an_audit_to_its_end() -> None:
    audit, truth = finished(1500)
    assert audit.stopped == NOTHING_PAYS
    assert audit.is_certified
    assert audit.round() == []
    assert sum(len(one.tasks) for one in audit.plan.rounds) == audit.n_reviewed
    answers, inside = audit.answers, {t for group in audit.plan.strata.tasks[: audit.certified + 1] for t in group}
    expected = {t for t in range(1500) if (truth[t] if t in answers else t in inside)}
    assert set(audit.final_list()) == expected
    assert sum(truth[t] for t in expected) >= 0.9 * sum(truth)
    assert audit.forecast is not None
    assert not audit.forecast.pays


def test_the_list_is_shuffled_and_the_drawn_order_recorded() -> None:
    audit, truth = started(1500)
    review = audit.round()
    assert set(review) == set(audit.plan.rounds[0].tasks)
    assert review != audit.plan.rounds[0].tasks
    assert audit.round() == review  # asking again draws nothing
    audit.answer({task: truth[task] for task in reversed(review)})
    np.testing.assert_allclose(audit.wealth.log_wealth, independent_replay(audit.to_json()), rtol=1e-12)


def test_a_partial_answer_counts_up_to_the_first_gap_and_is_kept_behind_it() -> None:
    audit, truth = started(1500)
    audit.round(20)
    order = audit.plan.rounds[0].tasks
    given = {task: truth[task] for i, task in enumerate(order) if i not in (3, 8)}
    assert audit.answer(given) == 3
    assert audit.n_reviewed == 3
    assert set(audit.round(50)) == {order[3], order[8]}  # nothing new before these
    assert audit.stopped is None
    assert audit.answer({order[8]: truth[order[8]]}) == 0
    assert audit.answer({order[3]: None, order[0]: truth[order[0]]}) == 0  # unsure, and one more time the same
    assert audit.round() == [order[3]]
    assert audit.answer({order[3]: truth[order[3]]}) == 17
    whole, _ = started(1500)
    whole.round(20)
    whole.answer({task: truth[task] for task in order})
    np.testing.assert_array_equal(audit.wealth.log_wealth, whole.wealth.log_wealth)


def test_resumed_equals_undisturbed() -> None:
    straight, truth = finished(1500)
    audit, _ = started(1500)
    while review := audit.round():
        audit = Audit.from_json(audit.to_json())
        for task in review[::2]:
            audit.answer({task: truth[task]})
        audit = Audit.from_json(audit.to_json())
        audit.answer({task: truth[task] for task in review})
    assert [one.tasks for one in audit.plan.rounds] == [one.tasks for one in straight.plan.rounds]
    np.testing.assert_array_equal(audit.wealth.log_wealth, straight.wealth.log_wealth)
    assert audit.final_list() == straight.final_list()


def test_an_expert_who_leaves_hard_items_open_gains_nothing() -> None:
    # A set that is just bad, and an expert who never answers positives outside it.
    n, found, false = 250, 40, 0
    for seed in range(40):
        scores = (np.linspace(0.6, 0.01, n)).tolist()
        audit = Audit.start(range(n), scores, name="x", target=0.9, seed=seed)
        cut = sum(audit.plan.strata.sizes[:4])
        missed = positives_that_break(found, Fraction(9, 10))
        generator = np.random.default_rng(seed)
        truth = np.zeros(n, dtype=bool)
        truth[generator.choice(cut, found, replace=False)] = True
        truth[cut + generator.choice(n - cut, missed, replace=False)] = True
        while audit.n_reviewed < n and (review := audit.round(40)):
            audit.answer({task: None if truth[task] and task >= cut else bool(truth[task]) for task in review})
            left_open = audit.pending
            assert all(truth[task] for task in left_open)
            audit.worst_case()
        false += audit.certified <= 3
    assert false <= 40 * 0.05 + 3 * (40 * 0.05 * 0.95) ** 0.5


def test_worst_cases_close_gaps_and_may_be_answered_after_all() -> None:
    audit, truth = started(1500)
    audit.round(20)
    order = audit.plan.rounds[0].tasks
    audit.answer({task: truth[task] for task in order[2:]})
    assert audit.worst_case() == 20
    assert (audit.n_reviewed, int(audit.wealth.worst.sum())) == (18, 2)
    before = audit.wealth.log_wealth.copy()
    audit.answer({order[0]: False, order[1]: True})
    np.testing.assert_array_equal(audit.wealth.log_wealth, before)  # no bet changes
    assert order[0] not in audit.final_list()
    assert order[1] in audit.final_list()
    np.testing.assert_allclose(before, independent_replay(audit.to_json()), rtol=1e-12)


def test_extra_answers_decide_their_item_and_enter_a_bet_once_drawn() -> None:
    audit, truth = started(300)
    plain, _ = started(300)
    extras = {task: truth[task] for task in range(0, 300, 2)}
    assert audit.answer(extras) == 0
    assert audit.n_reviewed == 0
    assert not np.any(audit.wealth.log_wealth)
    listed = set(audit.final_list())
    assert all((task in listed) == truth[task] for task in extras)
    review = audit.round(40)
    asked = plain.round(40)
    assert set(review) == {task for task in asked if task % 2}  # the same draws, without what is known
    audit.answer({task: truth[task] for task in review})
    plain.answer({task: truth[task] for task in asked})
    np.testing.assert_array_equal(audit.wealth.log_wealth, plain.wealth.log_wealth)


def test_rounds_that_are_known_already_are_passed_over() -> None:
    audit, truth = started(300)
    audit.answer(dict(enumerate(truth)))
    assert audit.round(25) == []
    assert audit.n_reviewed == 300
    assert audit.stopped == ALL_REVIEWED


def test_gold_leaves_the_population_and_its_positives_count_as_found() -> None:
    scores, truth = world(500)
    gold = {task: truth[task] for task in range(0, 500, 5)}
    audit = Audit.start(range(500), scores, name="x", target=0.9, gold=gold, seed=1)
    assert audit.plan.strata.n_tasks == 400
    known = sum(gold.values())
    assert audit.wealth.known_positives == known
    assert audit.wealth.surplus == pytest.approx(-known / 9)
    assert not set(audit.round(400)) & set(gold)
    audit.answer(gold)  # known before: nothing new
    with pytest.raises(InputError, match="answered"):
        audit.answer({0: not truth[0]})
    assert audit.estimate.recall.middle >= audit.estimate.recall_without_gold.middle
    with pytest.raises(InputError, match="none of the 1 gold tasks"):
        Audit.start(range(500), scores, name="x", target=0.9, gold={"a": True})
    with pytest.raises(InputError, match="all tasks are gold"):
        Audit.start([1], [0.5], name="x", target=0.9, gold={1: True})


def test_without_a_positive_nothing_is_certified() -> None:
    audit = Audit.start(range(200), np.linspace(0.3, 0.01, 200), name="x", target=0.9, seed=2)
    bounds: list[int] = []
    while review := audit.round(50):
        audit.answer(dict.fromkeys(review, False))
        assert not audit.is_certified
        assert len(audit.final_list()) == 200 - audit.n_reviewed
        assert audit.most_positives is not None
        bounds.append(audit.most_positives)
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0
    found = Audit.start(range(200), np.linspace(0.3, 0.01, 200), name="x", target=0.9, seed=2)
    found.answer(dict.fromkeys(found.round(50), True))
    assert found.most_positives is None


def test_a_recall_of_one_takes_a_full_review() -> None:
    audit, truth = started(200, target=1)
    assert audit.stopped == NOTHING_PAYS
    while review := audit.round(40):
        assert not audit.is_certified or audit.n_reviewed > 150
        audit.answer({task: truth[task] for task in review})
    order = [task for group in audit.plan.strata.tasks for task in group]
    last = max(i for i, task in enumerate(order) if truth[task])
    ends = np.cumsum(audit.plan.strata.sizes)
    assert audit.certified == int(np.searchsorted(ends, last + 1))


def test_a_budget_binds_and_what_is_certified_stands() -> None:
    audit, truth = started(1500, budget=130)
    while review := audit.round():
        audit.answer({task: truth[task] for task in review})
    assert audit.n_reviewed == 130
    assert audit.stopped == BUDGET_SPENT
    assert audit.round(10) == []


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_tiny_populations(n: int) -> None:
    audit = Audit.start(range(n), np.linspace(0.9, 0.1, n), name="x", target=0.9, seed=0)
    assert audit.supported <= len(audit.plan.strata.tasks) - 1
    while review := audit.round(3):
        audit.answer({task: task == 0 for task in review})
    assert audit.stopped == ALL_REVIEWED
    assert audit.final_list() == [0]
    assert Audit.from_json(audit.to_json()).final_list() == [0]


def test_useless_scores_certify_next_to_nothing_false() -> None:
    false = 0
    for seed in range(40):
        truth = (np.random.default_rng(seed).random(600) < 0.15).tolist()
        scores = np.where(truth, 0.05, 0.6) + np.linspace(0, 1e-3, 600)  # reversed
        audit = Audit.start(range(600), scores, name="x", target=0.9, seed=seed)
        while review := audit.round():
            audit.answer({task: truth[task] for task in review})
        inside = [t for group in audit.plan.strata.tasks[: audit.certified + 1] for t in group]
        false += sum(truth[t] for t in inside) < 0.9 * sum(truth)
    assert false <= 4


def test_seeds_come_from_the_system_and_differ() -> None:
    seeds = {Audit.start([1, 2], [0.5, 0.4], name="x", target=0.9).plan.seed for _ in range(5)}
    assert len(seeds) == 5
    assert max(seeds) < 2**64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0}, "target must be a recall"),
        ({"target": 1.2}, "target must be a recall"),
        ({"confidence": 1}, "confidence must lie"),
        ({"flag_cost": 0}, "flag_cost must be above 0"),
        ({"flag_cost": 9e-7}, "flag_cost must lie between 0.000001 and 1,000,000 reviews, got 9e-07"),
        ({"flag_cost": 1.1e6}, "flag_cost must lie between 0.000001 and 1,000,000 reviews, got 1100000.0"),
        ({"aim": "proof"}, "aim must be"),
        ({"budget": 0}, "budget must be a whole number of at least 1"),
        ({"seed": 2**64}, "seed must be a whole number between"),
        ({"classes": ["a", "b"]}, "is not a class"),
        ({"only_voted_items": True}, "only_voted_items needs unvoted"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Audit.start([1, 2], [0.5, 0.4], **{"name": "x", "target": 0.9, **options})


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="task 1 is listed twice"):
        Audit.start([1, 1], [0.5, 0.4], name="x", target=0.9)
    with pytest.raises(InputError, match="a score for every task"):
        Audit.start([1, 2], [0.5], name="x", target=0.9)
    with pytest.raises(InputError, match="neither text nor a number"):
        Audit.start([(1, 2), (3,)], [0.5, 0.4], name="x", target=0.9)
    audit, truth = started(300, classes=["defect", "sound"])
    first, second, *_ = audit.round(20)
    with pytest.raises(InputError, match="task 'rail' is not in this audit"):
        audit.answer({first: truth[first], "rail": True})
    with pytest.raises(InputError, match="'defekt' is not a class"):
        audit.answer({first: truth[first], second: "defekt"})
    assert len(audit.pending) == 20  # nothing was taken from a file with an error
    audit.answer({str(first): "sound"})
    with pytest.raises(InputError, match="answered 'sound' before and 'defect' now"):
        audit.answer({first: "defect"})
    with pytest.raises(ParameterError, match="n must be a whole number"):
        audit.round(0)
    audit.check_labels("anything")  # no fingerprint was given
    with pytest.raises(InputError, match="ranking is frozen"):
        started(60, labels_sha256="abc")[0].check_labels("abd")


def test_labels_are_read_in_the_data_s_own_type() -> None:
    reading = ExpertWords(1, [0, 1, 2])
    assert [reading.label(said) for said in ("1", 1, 2.0, True, False, float("nan"), " ", "Unsure")] == [
        1, 1, 2, 1, False, None, None, None,
    ]  # fmt: skip
    assert [reading.is_positive(label) for label in (1, 2, False)] == [True, False, False]
    zero = ExpertWords(0, [0, 1])
    assert zero.label(False) == 1
    assert not zero.is_positive(zero.label(False))
    truth = ExpertWords(False, [False, True])  # the class itself is a truth value
    assert truth.is_positive(truth.label("false"))
    assert not truth.is_positive(truth.label(True))
    free = ExpertWords("defect", None)
    assert [free.is_positive(free.label(said)) for said in ("defect", "sound", True, False)] == [
        True, False, True, False,
    ]  # fmt: skip
    assert free.label(" Unsure") is None
    for said in ("Defect", " DEFECT"):  # a "no" in silence, if any other word were one
        with pytest.raises(InputError, match="is not the class, which is 'defect': write it in the same way"):
            free.label(said)
    assert ExpertWords("unsure", None).label("unsure") == "unsure"


@pytest.mark.parametrize(("given", "meant"), [(1, 1), ("1", "1"), (2, "2"), ("3", 3)])
def test_an_answer_is_on_the_item_of_its_exact_name(given: Any, meant: Any) -> None:
    """Drawn or not; only a name that no item has is another spelling."""
    tasks = [1, "1", "2", 3, *(f"x{i}" for i in range(56))]
    for seed in range(20):
        audit = Audit.start(tasks, [0.5] * len(tasks), name="defect", target=0.9, seed=seed)
        audit.round(20)
        audit.answer({given: False})
        ((task, _),) = audit.answers.items()
        assert (type(task), task) == (type(meant), meant)


def test_experts_who_disagree_have_not_answered() -> None:
    assert adjudicated([("a", 1), ("a", 1), ("b", 1), ("b", 0), ("c", None)]) == {"a": 1, "b": None, "c": None}
    rows = [Said("a", 1, "zoe"), Said("b", 1, "zoe"), Said("b", 0, "max"), Said("c", None, "zoe")]
    assert by_expert(rows)[1] == ["b"]  # about c, nothing was said


def test_blind_repeats_are_reported_and_change_no_bet() -> None:
    audit, truth = finished(1500)
    again = audit.repeat_list()
    assert len(again) == int(np.ceil(0.05 * audit.n_reviewed))
    before = audit.wealth.log_wealth.copy()
    audit.answer_repeats({task: truth[task] if i else not truth[task] for i, task in enumerate(again)})
    assert audit.repeat_list() == []
    record = audit.certificate()
    assert (record["repeated"], record["repeated_differently"]) == (len(again), 1)
    np.testing.assert_array_equal(audit.wealth.log_wealth, before)
    never = next(task for task in range(1500) if task not in audit.answers)
    with pytest.raises(InputError, match="has no first answer"):
        audit.answer_repeats({never: True})


def test_boundary_cases_are_seldom_certified() -> None:
    """One set is just bad, and the auditor never gives up; the long run is proofs/audit_boundary.py."""
    n_audits = false = 0
    for case in CASES:
        for seed in range(12):
            ranked, j = boundary(case, seed, n=150, found=40)
            strata = build_strata(range(150), ranked.scores, seed)
            assert [task for group in strata.tasks for task in group] == list(range(150))
            inside, total = int(ranked.truth[: sum(strata.sizes[: j + 1])].sum()), int(ranked.truth.sum())
            assert Fraction(inside, total) < Fraction(9, 10) <= Fraction(inside, total - 1)
            false += ever_false(ranked, j, seed)
            n_audits += 1
    assert n_audits == 108
    assert false <= n_audits * 0.05 + 3 * (n_audits * 0.05 * 0.95) ** 0.5
