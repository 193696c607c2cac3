"""Where a crowd cannot answer, no label is made up: guards against independent counts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from rarevote.meaning.decide import AbstainBelow, Argmax, Balanced, Basis, LeastCost, MinRecall, parse_rule, rule_of
from rarevote.meaning.guards import disagreement_note, doubts, silence_note, silences, why_no_answer

import rarevote
from rarevote import Annotations
from rarevote.crowd.numerics import is_rare
from rarevote.errors import ParameterError, RarevoteWarning
from rarevote.methods.registry import METHODS, methods_that
from rarevote.simulate.files import example_files
from tests.conftest import shortened_chains

NEEDS_MORE = {"crowdfm", *methods_that("needs_gold")}  # weights, or gold
WITHOUT_GOLD = sorted(set(METHODS) - NEEDS_MORE)


def random_votes(seed: int, *, n_tasks: int, n_classes: int, votes: int, n_workers: int = 6) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    return [
        (task, int(worker), f"c{rng.integers(n_classes)}")
        for task in range(n_tasks)
        for worker in rng.choice(n_workers, votes, replace=False)
    ]


def decided(votes: list[tuple[Any, ...]], method: str, **options: Any) -> rarevote.Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rarevote.fit(votes, method).decide(**options)


@pytest.mark.parametrize("method", [name for name in WITHOUT_GOLD if name not in ("plat", "kos")])  # for two classes
def test_no_label_is_one_that_nobody_voted_for(method: str) -> None:
    for seed in range(3):
        votes = random_votes(seed, n_tasks=40, n_classes=6, votes=2)
        given: dict[Any, set[Any]] = {}
        for task, _, label in votes:
            given.setdefault(task, set()).add(label)
        result = decided(votes, method)
        assert all(label in given[task] for task, label in zip(result.tasks.tolist(), result.labels, strict=True))
        free = decided(votes, method, allow_unvoted=True)
        strange = sum(label not in given[task] for task, label in zip(free.tasks.tolist(), free.labels, strict=True))
        assert result.n_guarded == strange


@pytest.mark.parametrize("method", WITHOUT_GOLD)
def test_one_vote_per_item_comes_back_as_it_is(method: str) -> None:
    for seed in range(15):
        rng = np.random.default_rng(seed)
        votes = random_votes(seed, n_tasks=int(rng.integers(2, 60)), n_classes=2, votes=1)
        result = decided(votes, method)
        assert result.labels.tolist() == [label for _, _, label in votes]
        assert result.cannot_answer


def test_why_no_method_can_answer() -> None:
    one = Annotations.from_arrays([1, 2, 2], ["ann"] * 3, ["x", "y", "y"])
    assert why_no_answer(one) == "all votes are by one annotator (ann)"
    apart = Annotations.from_arrays([1, 1, 2, 2], ["ann", "ann", "bob", "bob"], ["x", "y", "y", "y"])
    assert why_no_answer(apart) == "no two annotators voted on the same item"
    task = [*range(100), *range(4)]
    few = Annotations.from_arrays(task, ["ann"] * 100 + ["bob"] * 4, ["x"] * 104)
    assert why_no_answer(few) == "only 4 of 100 items have votes of more than one annotator"
    enough = Annotations.from_arrays([*range(100), *range(6)], ["ann"] * 100 + ["bob"] * 6, ["x"] * 106)
    assert why_no_answer(enough) is None


def test_a_crowd_that_cannot_answer_is_told() -> None:
    with pytest.warns(RarevoteWarning, match="no method can learn who is right"):
        result = rarevote.fit([(1, "ann", "x"), (2, "bob", "y")]).decide()
    assert result.summary()["cannot_answer"]
    assert result.words == "the votes themselves"


def test_gold_may_be_a_label_without_votes() -> None:
    votes = random_votes(1, n_tasks=20, n_classes=2, votes=3)
    with pytest.warns(RarevoteWarning, match="nobody voted for"):
        result = rarevote.fit(votes, "dawid-skene", gold={0: "other"}).decide()
    assert result.labels[0] == "other"
    assert "other" not in result.labels[1:]


def test_doubts_name_the_default() -> None:
    crowd = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "a", "b"])
    (far,) = doubts(crowd, np.array([1, 1]), 0, method="cc-rasch")
    assert "100% of the items to b, which has 25% of the votes" in far
    assert "method='anchored-rasch'" in far
    assert "would give 3 of 2 items" in doubts(crowd, np.array([0, 0]), 3, method="anchored-rasch")[0]
    even = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "b", "b"])
    assert not doubts(even, np.array([0, 1]), 0, method="cc-rasch")


def test_answers_that_look_like_none_are_proposed() -> None:
    assert silences(np.array(["Unsure", "n/a", "none", "yes"], dtype=object)) == ["Unsure", "n/a"]
    assert silence_note(np.array(["yes", "no"], dtype=object)) is None
    note = silence_note(np.array(["not sure", "yes"], dtype=object))
    assert note is not None
    assert "abstain=['not sure']" in note


def test_rare_is_said_of_rare_classes_only() -> None:
    crowd = Annotations.from_arrays(range(10), [0] * 10, ["a"] * 4 + ["b"] * 6)
    assert not is_rare(crowd, 0)  # exactly 0.8 of an equal share
    crowd = Annotations.from_arrays(range(11), [0] * 11, ["a"] * 4 + ["b"] * 7)
    assert is_rare(crowd, 0)
    assert not is_rare(crowd, 1)


# --------------------------------------------------------------------------------------------------------------------
# rules


def test_rules_by_name() -> None:
    assert parse_rule("argmax") == Argmax()
    assert parse_rule("balanced") == Balanced(10)
    assert rule_of("balanced:5") == rule_of(cap=5) == Balanced(5)
    assert isinstance(rule_of(costs="a:b=1,b:a=2"), LeastCost)
    assert isinstance(rule_of(min_recall={"a": 0.9}), MinRecall)
    assert rule_of(abstain_below=0.7, own=Balanced(3)) == AbstainBelow(0.7, Balanced(3))
    assert rule_of(own=Balanced(3)) == Balanced(3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"decide": "balanced:0.9"}, "at least 1, such as balanced:5"),
        ({"cap": float("nan")}, "at least 1"),
        ({"decide": "bold"}, "no decision is called 'bold'"),
        ({"decide": "argmax:3"}, "no decision is called"),
        ({"decide": "balanced", "cap": 3}, "decide and cap contradict"),
        ({"costs": "a:b=1", "min_recall": {"a": 0.5}}, "costs and min_recall contradict"),
        ({"abstain_below": 1.5}, "above 0 and at most 1"),
    ],
)
def test_rules_that_cannot_be(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        rule_of(**given)


def test_a_decision_that_names_unknown_classes_is_refused() -> None:
    fitted = rarevote.fit(random_votes(1, n_tasks=30, n_classes=2, votes=3), "majority-vote")
    with pytest.raises(ParameterError, match="'zebra', which is no class"):
        fitted.decide(min_recall={"zebra": 0.9})


def test_refused_labels_give_way_to_the_most_probable_voted_class() -> None:
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.4, 0.3, 0.3]])
    votes = np.array([[0, 1, 2], [1, 1, 1], [0, 1, 1]], dtype=float)
    basis = Basis(p.argmax(axis=1), p, votes, only_voted=True)
    # 0.3 beats 0.2; allowed as it is; a tie of 0.3 and one vote each goes to the first.
    assert Argmax().choose(basis).codes.tolist() == [1, 2, 1]
    # By hand: f = (.333, .267, .4), weights (1.2, 1.5, 1): task 0 .45 against .2, task 1 .12 .3 .7, task 2 .45 .3.
    assert Balanced().choose(basis).codes.tolist() == [1, 2, 1]
    assert Balanced(1).choose(Basis(basis.own, p, votes)).codes.tolist() == [0, 2, 0]


# --------------------------------------------------------------------------------------------------------------------
# a rare class that nobody agrees on


def test_a_class_rarer_than_the_mistakes_is_told() -> None:
    for seed in range(3):
        crowd = rarevote.simulate_crowd(3000, imbalance=199, random_state=seed)
        with (
            shortened_chains(),
            pytest.warns(RarevoteWarning, match="annotators hardly agree on which items are 1"),
        ):
            result = rarevote.fit(crowd.arrays).decide()
        flagged = result.codes == result.fitted.rare
        assert f"Most of the {flagged.sum():,} items labelled 1 are probably not" in result.warnings[0]
        assert crowd.truth[flagged].mean() < 0.5  # and so it is


def test_the_example_that_comes_along_is_not_warned_of() -> None:
    result = rarevote.fit(example_files().labels).decide()
    assert result.warnings == ()


def test_agreement_is_counted_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    for chance in (0.02, 0.05, 0.1, 0.2, 0.3):
        labels = [list((rng.random(4) < chance + 0.5 * (rng.random() < 0.1)).astype(int)) for _ in range(100)]
        votes = np.array([[row.count(0), row.count(1)] for row in labels], dtype=float)
        others = [row[b] for row in labels for a in range(4) for b in range(4) if a != b and row[a] == 1]
        share = np.mean(labels)
        kappa = (np.mean(others) - share) / (1 - share)
        assert (disagreement_note(votes, 1, 10, "x") is not None) == (kappa < 0.05)
    assert disagreement_note(np.array([[3.0, 1.0]] * 9), 1, 9, "x") is None  # too few to speak of
    assert disagreement_note(np.array([[0.0, 1.0]] * 40), 1, 40, "x") is None  # nobody to agree with


def test_argmax_is_the_most_probable_class_whatever_the_method_decides_itself() -> None:
    fitted = rarevote.fit(example_files().labels)
    result, own = fitted.decide("argmax", allow_unvoted=True), fitted.decide()
    assert result.codes.tolist() == fitted.probabilities.argmax(axis=1).tolist()
    assert (own.codes == fitted.rare).sum() > (result.codes == fitted.rare).sum()
    assert result.words == "the most probable class"
