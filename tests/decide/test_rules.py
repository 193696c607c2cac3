"""Rules against loops over items and classes, brute force over all decisions, and cases done by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rarevote
from rarevote.crowd.rare import RareClass
from rarevote.decide import decider
from rarevote.decide.balanced import Balanced
from rarevote.decide.decider import Decider
from rarevote.decide.decision import TrivialCosts
from rarevote.decide.rules import (
    ABSTAINED,
    AbstainBelow,
    Argmax,
    FlagAbove,
    ItemBatch,
    LeastCost,
    MinRecall,
    OwnLabels,
    Rule,
    TheVotes,
    best_class,
)
from rarevote.decide.selection import parse_rule, rule_of
from rarevote.errors import ParameterError
from rarevote.simulate.files import example_files
from tests.decide.made import NAMES, decide, decided, made
from tests.methods.anchored_oracle import balanced_by_hand


def batch(p: Any, votes: Any, own: Any = None, gold: Any = None) -> ItemBatch:
    """Items; the method's own label is the most probable class, and nothing is known, unless given."""
    table = np.asarray(p)
    labels = table.argmax(axis=1) if own is None else np.asarray(own)
    known = np.full(len(table), -1) if gold is None else np.asarray(gold)
    return ItemBatch(table, np.asarray(votes, dtype=float), labels, known, table)


def codes_of(rule: Rule, part: ItemBatch, shares: Any = None, *, only_voted: bool = True) -> list[int]:
    """Labels of some items; classes have the mean of their probabilities as shares, unless given."""
    f = part.p.mean(axis=0) if shares is None else np.asarray(shares)
    return list(map(int, Decider(rule, f, only_voted).codes(part)[0]))


# -- balanced ---------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(1, 5),
    cap=st.sampled_from([1.0, 2.5, 10.0, 1e9]),
    voted_only=st.booleans(),
    coarse=st.booleans(),
)
def test_every_item_is_decided_as_by_hand(
    seed: int, n_classes: int, cap: float, voted_only: bool, coarse: bool
) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(rng.uniform(0.05, 1, n_classes), 30)
    if coarse:  # many ties, and probabilities of zero
        p = rng.integers(0, 3, (30, n_classes)) + np.eye(n_classes)[rng.integers(0, n_classes, 30)]
        p /= p.sum(axis=1, keepdims=True)
    votes = rng.integers(0, 3, (30, n_classes))
    votes[votes.sum(axis=1) == 0, 0] = 1
    votes[0] = 0
    f = p.mean(axis=0)
    found = codes_of(Balanced(cap), batch(p, votes), f, only_voted=voted_only)
    wanted = [balanced_by_hand(p[i].tolist(), f.tolist(), votes[i].tolist(), cap, voted_only) for i in range(1, 30)]
    assert found == [ABSTAINED, *wanted]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    p, votes = rng.dirichlet([0.2, 1.0, 3.0], 1000), rng.integers(0, 3, (1000, 3))
    f = p.mean(axis=0)
    whole, guarded = Decider(Balanced(), f).codes(batch(p, votes))
    monkeypatch.setattr(decider, "_CELLS", 20)
    again, guarded_again = Decider(Balanced(), f).codes(batch(p, votes))
    assert np.array_equal(again, whole)
    assert guarded_again == guarded
    assert codes_of(Balanced(), batch(p.astype(np.float32), votes), f) == whole.tolist()


def test_the_cap_says_how_many_false_alarms_a_miss_is_worth() -> None:
    p = np.array([[0.08, 0.92], [0.12, 0.88], [0.2, 0.8]])
    for cap, wanted in ((1, [1, 1, 1]), (5, [1, 1, 0]), (10, [1, 0, 0]), (20, [0, 0, 0])):
        assert codes_of(Balanced(cap), batch(p, np.ones((3, 2))), [0.01, 0.99]) == wanted


def test_an_unvoted_class_is_no_label_even_where_the_voted_one_is_impossible() -> None:
    part = batch([[0.9, 0.1], [1.0, 0.0], [0.4, 0.6]], [[0, 2], [0, 2], [0, 0]])
    assert codes_of(Balanced(1.0), part) == [1, 1, ABSTAINED]
    assert codes_of(Balanced(1.0), part, only_voted=False) == [0, 0, ABSTAINED]


def test_nothing_to_decide() -> None:
    for n_classes in (0, 2):
        nothing, shares = np.empty((0, n_classes)), np.ones(n_classes)
        assert best_class(nothing, nothing, shares).shape == (0,)
        none = np.empty(0, dtype=np.int64)
        assert Decider(Balanced(), shares).codes(ItemBatch(nothing, nothing, none, none, nothing))[0].shape == (0,)


# -- the best class ---------------------------------------------------------------------------------------------------


def best_by_hand(score: list[float], votes: list[int], f: list[float], allowed: list[bool]) -> int:
    """The best class of one item among those allowed, of all if none is."""
    candidates = [k for k in range(len(score)) if allowed[k]] or list(range(len(score)))
    top = max(score[k] for k in candidates)
    tied = [k for k in candidates if score[k] >= top - 1e-12 * abs(top)]
    return min(tied, key=lambda k: (-votes[k], -f[k], k))


@settings(max_examples=60)
@given(seed=st.integers(0, 10_000), n_classes=st.integers(1, 5), sign=st.sampled_from([1.0, -1.0]))
def test_ties_go_to_votes_then_shares_then_the_first(seed: int, n_classes: int, sign: float) -> None:
    rng = np.random.default_rng(seed)
    scores = sign * rng.integers(0, 3, (40, n_classes)) / 3
    votes, shares = rng.integers(0, 2, (40, n_classes)), rng.integers(1, 4, n_classes) / 7
    allowed = rng.random((40, n_classes)) < 0.6
    for mask in (None, allowed):
        rows = np.ones_like(allowed) if mask is None else mask
        wanted = [
            best_by_hand(*(array.tolist() for array in (scores[i], votes[i], shares, rows[i]))) for i in range(40)
        ]
        assert best_class(scores, votes.astype(float), shares, mask).tolist() == wanted


def test_a_label_is_a_class_with_a_vote_even_at_a_probability_of_zero() -> None:
    for rule in (Argmax(), Balanced(), LeastCost(np.array([[0.0, 1.0], [1.0, 0.0]])), OwnLabels()):
        assert codes_of(rule, batch([[1.0, 0.0]], [[0, 1]])) == [1]


# -- costs, abstention, known items ------------------------------------------------------------------------------------


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


def test_costs_of_one_label_for_all_by_hand() -> None:
    """A guard, or a rule that minds no costs, can be worse than deciding nothing; then that is said."""
    posterior = [[0.3, 0.7], [0.2, 0.8], [0.9, 0.1], [0.0, 1.0]]
    costs = "sound:defect=1,defect:sound=20"
    found = decide(made(posterior, names=NAMES), costs=costs)
    assert found.trivial.rare == "defect"
    assert found.trivial.other == "sound"
    assert found.trivial.flag_all == pytest.approx(0.7 + 0.8 + 0.1 + 1.0)
    assert found.trivial.flag_none == pytest.approx(20 * (0.3 + 0.2 + 0.9))
    assert found.expected_cost == pytest.approx(0.7 + 0.8 + 0.1)
    assert found.cost_description == (
        "expected cost of these decisions: 1.6; of labelling every item defect: 2.6; of labelling no item defect: 28.0"
    )
    # Known items keep their class whatever the rest is labelled.
    known = decide(made(posterior, gold={0: 1, 3: 1}, names=NAMES), costs=costs)
    assert known.trivial.flag_all == pytest.approx(0.8 + 0.1)
    own = decide(made(posterior, names=NAMES))  # every mistake costs 1: one of each is expected to be wrong
    assert own.trivial.flag_all == pytest.approx(2.6)
    assert own.trivial.flag_none == pytest.approx(1.4)
    worse = own.trivial.beside(1.5)
    assert worse.endswith(
        "labelling no item defect: 1.4. Labelling every item sound is expected to cost less than these decisions"
    )
    assert own.trivial.beside(1.4).endswith("labelling no item defect: 1.4")


def test_without_arguments_it_is_the_own_rule() -> None:
    found = made([[0.6, 0.4], [0.5, 0.5], [0.1, 0.9]], names=NAMES)
    decision = decide(found)
    # The tie goes to the class with the larger share: 1.8 of 3 against 1.2.
    assert decision.labels.tolist() == ["defect", "sound", "sound"]
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
        ({"costs": [[0, 1], [1, 0]], "min_recall": {"defect": 0.9}}, "costs and min_recall cannot be used together"),
        ({"costs": [[0, 1], [1, 0]], "abstain_below": 0.9}, "cannot be used together"),
        ({"min_recall": {"defect": 0.9}, "abstain_below": 0.9}, "cannot be used together"),
        ({"min_recall": {"defect": 0.0}}, "above 0 and at most 1"),
        ({"min_recall": {"defect": 1.1}}, "above 0 and at most 1"),
        ({"min_recall": {"defect": float("nan")}}, "above 0 and at most 1"),
        ({"min_recall": {"crack": 0.9}}, "'crack' is not a class"),
        ({"min_recall": {}}, "one class"),
        ({"min_recall": {None: 0.9}}, "None is not a class; the classes are defect, sound"),
        ({"min_recall": {"defect": 0.9, "sound": 0.9}}, "one class"),
        ({"min_recall": {"defect": 0.9}, "confidence": 1.0}, "confidence"),
        ({"abstain_below": 0}, "above 0 and at most 1"),
        ({"abstain_below": "often"}, "above 0 and at most 1"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        decide(made([[0.5, 0.5]], names=NAMES), **arguments)


@pytest.mark.parametrize("seed", range(4))
def test_least_cost_among_voted_classes_by_hand(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, votes = rng.dirichlet(np.full(3, 0.5), 30), rng.integers(0, 2, (30, 3))
    votes[votes.sum(axis=1) == 0, 1] = 1
    costs = rng.integers(1, 9, (3, 3)).astype(float)
    found = codes_of(LeastCost(costs), batch(p, votes))
    for i, code in enumerate(found):
        of = {d: sum(p[i, k] * costs[k, d] for k in range(3)) for d in range(3) if votes[i, d]}
        assert of[code] == pytest.approx(min(of.values()))


def test_least_cost_pays_where_probabilities_are_right() -> None:
    rng = np.random.default_rng(6)
    costs = np.array([[0.0, 20.0], [1.0, 0.0]])
    p = rng.beta(0.3, 2.0, 2000)
    truth = (rng.random(2000) >= p).astype(np.int64)
    found = made(np.column_stack([p, 1 - p]), names=NAMES)
    by_cost, plain, balanced = (decide(found, **how) for how in ({"costs": costs}, {}, {"cap": 10}))
    assert costs[truth, by_cost.codes].sum() == pytest.approx(by_cost.expected_cost, rel=0.1)
    for other in (plain, balanced):
        assert costs[truth, by_cost.codes].sum() < costs[truth, other.codes].sum()


def test_no_answer_by_another_rule() -> None:
    costs = "defect:sound=20,sound:defect=1"
    p = [[0.3, 0.7], [0.6, 0.4], [0.01, 0.99]]
    decision = decide(made(p, names=NAMES), decide=AbstainBelow(0.5, LeastCost(costs)))
    assert decision.codes.tolist() == [ABSTAINED, 0, 1]  # a defect at 0.3 and 0.6 by cost, 0.3 is too little
    assert decision.costs.tolist() == [[0.0, 20.0], [1.0, 0.0]]


def test_a_recall_target_takes_no_abstention() -> None:
    with pytest.raises(ParameterError, match="recall"):
        AbstainBelow(0.5, MinRecall({"defect": 0.9}))


def test_flags_from_a_threshold_on() -> None:
    part = batch([[0.5, 0.3, 0.2], [0.4, 0.1, 0.5], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]], [[1, 1, 1]] * 3 + [[0, 1, 1]])
    # Where not flagged the best other class; where nobody voted for it, it is not flagged unless it is promised.
    assert codes_of(FlagAbove(RareClass((0,), "a"), 0.4), part, [0.3, 0.3, 0.4]) == [0, 0, 2, 2]
    assert codes_of(FlagAbove(RareClass((0,), "a"), 0.4, promised=True), part, [0.3, 0.3, 0.4]) == [0, 0, 2, 0]
    assert codes_of(FlagAbove(RareClass((2,), "a"), np.inf), part, [0.3, 0.3, 0.4]) == [0, 0, 1, 1]


def test_the_label_of_a_flagged_tail_is_a_grade_with_a_vote() -> None:
    tail = FlagAbove(RareClass((2, 1), ">=1", is_tail=True), 0.5)
    p = [[0.1, 0.3, 0.6]] * 3
    assert codes_of(tail, batch(p, [[1, 1, 0], [1, 0, 1], [0, 1, 1]])) == [1, 2, 2]
    # Also where labels need no votes; without a vote for the tail, its most probable grade.
    assert codes_of(tail, batch(p, [[1, 1, 0], [1, 0, 1], [2, 0, 0]]), only_voted=False) == [1, 2, 2]


def test_features_need_no_vote_unless_votes_are_asked_for() -> None:
    found = replace(made([[0.9, 0.1], [0.2, 0.8]], names=NAMES), free=np.array([True, True]), has_features=True)
    for allow_unvoted, wanted in ((None, [0, 1]), (True, [0, 1]), (False, [1, 1])):
        assert decided(found, Argmax(), [[0, 3], [1, 3]], allow_unvoted=allow_unvoted).codes.tolist() == wanted


def test_only_the_class_with_the_target_has_votes() -> None:
    # Nothing else may be the label, and the threshold says that this is not: the vote decides.
    assert codes_of(FlagAbove(RareClass((0,), "a"), 0.9), batch([[0.2, 0.8]], [[1, 0]])) == [0]


def test_the_votes_themselves() -> None:
    part = batch([[0.9, 0.1]] * 3, [[1, 2], [1, 1], [0, 1]])
    assert codes_of(TheVotes(), part) == [1, 0, 1]


def test_refused_labels_give_way_to_the_most_probable_voted_class() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
    part = batch(p, [[0, 1, 2], [1, 1, 1], [0, 1, 1]])
    # 0.3 beats 0.2; allowed as it is; a tie of 0.3 and one vote each goes to the larger share, .4 against .267.
    assert codes_of(Argmax(), part) == [1, 2, 2]
    assert codes_of(OwnLabels(), part) == [1, 2, 2]
    # By hand: f = (.333, .267, .4), weights (1.2, 1.5, 1): task 0 .45 against .2, task 1 .12 .3 .7, task 2 .45 .3.
    assert codes_of(Balanced(), part) == [1, 2, 1]
    assert codes_of(Balanced(1), part, only_voted=False) == [0, 2, 0]


def test_own_labels_stay_where_they_have_a_vote() -> None:
    part = batch([[0.9, 0.1], [0.9, 0.1]], [[1, 1], [1, 0]], own=[1, 1])
    assert codes_of(OwnLabels(), part) == [1, 0]
    assert codes_of(OwnLabels(), part, only_voted=False) == [1, 1]


# -- what a rule stands to lose ---------------------------------------------------------------------------------------


def test_stakes_are_what_the_rule_trades() -> None:
    shares = np.array([0.02, 0.18, 0.8])
    classes = np.array(["a", "b", "c"])
    plain = [[0.0, 1, 1], [1, 0, 1], [1, 1, 0]]
    assert Argmax().stakes(classes, shares).tolist() == OwnLabels().costs(classes).tolist() == plain
    # min(0.8 / f_k, 10): 10, 4.44, 1.
    weights = [10.0, 0.8 / 0.18, 1.0]
    np.testing.assert_allclose(Balanced().stakes(classes, shares), np.array(plain) * np.array(weights)[:, None])
    np.testing.assert_allclose(
        AbstainBelow(0.5, Balanced()).stakes(classes, shares), Balanced().stakes(classes, shares)
    )
    given_costs = np.arange(9.0).reshape(3, 3)
    assert LeastCost(given_costs).stakes(classes, shares).tolist() == given_costs.tolist()


# -- rules by name ----------------------------------------------------------------------------------------------------


def test_rules_by_name() -> None:
    assert parse_rule("labels") == OwnLabels()
    assert parse_rule("argmax") == Argmax()
    assert parse_rule("balanced") == Balanced(10)
    assert rule_of("balanced:5") == rule_of(cap=5) == Balanced(5)
    assert isinstance(rule_of(costs="a:b=1,b:a=2"), LeastCost)
    assert isinstance(rule_of(min_recall={"a": 0.9}), MinRecall)
    assert rule_of(abstain_below=0.7, own=Balanced(3)) == AbstainBelow(0.7, Balanced(3))
    assert rule_of(own=Balanced(3)) == Balanced(3)
    assert rule_of() == OwnLabels()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decide": "balanced:0.9"}, "at least 1, such as balanced:5"),
        ({"cap": float("nan")}, "at least 1"),
        ({"cap": True}, "at least 1"),
        ({"decide": "bold"}, "'bold' is not a decision"),
        ({"decide": "argmax:3"}, "is not a decision"),
        ({"decide": "labels:3"}, "is not a decision"),
        ({"decide": "balanced", "cap": 3}, "decide and cap cannot be used together"),
        ({"costs": "a:b=1", "min_recall": {"a": 0.5}}, "costs and min_recall cannot be used together"),
        ({"abstain_below": 1.5}, "above 0 and at most 1"),
        ({"min_recall": {"a": 0.9}, "confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
        ({"min_recall": {"a": 0.9}, "confidence": 0.0}, "confidence must lie between 0 and 1, got 0.0"),
        ({"min_recall": {"a": 0.9}, "confidence": "high"}, "confidence must lie between 0 and 1, got 'high'"),
        ({"min_recall": {"a": 0.9}, "errors": np.array(["shared"])}, "errors must be independent or shared, got array"),
        ({"decide": 5}, "5 is not a decision"),
    ],
)
def test_rules_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        rule_of(**given)


def test_argmax_is_the_most_probable_class_whatever_the_method_decides_itself() -> None:
    fitted = rarevote.fit(example_files().labels)
    result, own = fitted.decide("argmax", allow_unvoted=True), fitted.decide()
    assert result.codes.tolist() == fitted.probabilities.argmax(axis=1).tolist()
    assert (own.codes == fitted.rare.code).sum() > (result.codes == fitted.rare.code).sum()
    assert result.description == "the most probable class"


def test_one_label_for_all_costs_less_or_not() -> None:
    costs = TrivialCosts("defect", "sound", 3.0, 5.0)
    assert [costs.less_than(cost) for cost in (2.9, 3.0, 3.0 * (1 + 1e-12), 3.01, 5.0)] == [False] * 3 + [True] * 2
    assert costs.beside(4.0).endswith(". Labelling every item defect is expected to cost less than these decisions")
    assert costs.beside(3.0).endswith("of labelling no item defect: 5.0")


def test_the_other_label_for_all_is_the_cheapest() -> None:
    names = np.array(["a", "b", "c"])
    assert TrivialCosts.of(np.array([1.0, 4.0, 2.0]), names, RareClass((0,), "a")) == ("a", "c", 1.0, 2.0)
