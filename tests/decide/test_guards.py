"""Where a crowd cannot answer, no label is made up: guards against independent counts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import Annotations
from rarevote.crowd.rare import RareClass
from rarevote.decide.guards import (
    CrowdSize,
    VoteSurvey,
    disagreement_note,
    doubts,
    silence_note,
    silences,
    single_vote_note,
    tail_notes,
    why_no_answer,
)
from rarevote.decide.rules import ItemBatch
from rarevote.errors import ParameterError, RarevoteWarning
from rarevote.methods.registry import METHODS, methods_that
from rarevote.simulate.files import example_files

NEEDS_MORE = {"crowdfm", *methods_that("needs_gold"), *methods_that("ordered")}  # weights, gold, or an order
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


def survey_of(crowd: Annotations, own: Any = None, gold: Any = None, rare: int = 0) -> VoteSurvey:
    """The sums over a crowd; the method's own label is the first class, and nothing is known, unless given."""
    n = crowd.n_tasks
    labels = np.zeros(n, dtype=np.int64) if own is None else np.asarray(own)
    known = np.full(n, -1) if gold is None else np.asarray(gold)
    p = np.full((n, crowd.n_classes), 1.0 / crowd.n_classes)
    return VoteSurvey.of(
        ItemBatch(p, crowd.votes(), labels, known, p), crowd.task_ptr, crowd.worker, RareClass((rare,), rare)
    )


def test_a_survey_in_parts_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    task = np.sort(rng.integers(0, 100, 300))
    crowd = Annotations.from_arrays(task, rng.integers(0, 9, 300), rng.integers(0, 3, 300))
    own, gold = rng.integers(-1, 3, crowd.n_tasks), rng.choice([-1, -1, 2], crowd.n_tasks)
    votes, final = crowd.votes(), np.where(gold >= 0, gold, own)
    rare, n_votes = votes[:, 1], votes.sum(axis=1)
    ends = [(crowd.task_ptr[i], crowd.task_ptr[i + 1]) for i in range(crowd.n_tasks)]
    monkeypatch.setattr("rarevote.crowd.numerics._CELLS", 7)
    found = survey_of(crowd, own, gold, rare=1)
    assert found.n_voted == crowd.n_tasks
    assert found.n_several == sum(len(set(crowd.worker[begin:end].tolist())) > 1 for begin, end in ends)
    assert found.n_single == sum(end - begin == 1 for begin, end in ends)
    assert found.own_labels.tolist() == [int((final == k).sum()) for k in range(3)]
    unvoted = [i for i in range(crowd.n_tasks) if gold[i] < 0 and votes[i, own[i]] == 0]
    assert found.n_own_unvoted == len(unvoted)
    assert found.pairs.tolist() == [(rare * (rare - 1)).sum(), (rare * (n_votes - 1)).sum(), rare.sum()]


def why(crowd: Annotations) -> str | None:
    survey = survey_of(crowd)
    return why_no_answer(crowd.workers, survey.n_several, survey.n_voted)


def test_why_no_method_can_answer() -> None:
    one = Annotations.from_arrays([1, 2, 2], ["ann"] * 3, ["x", "y", "y"])
    assert why(one) == "all votes are by one annotator (ann)"
    apart = Annotations.from_arrays([1, 1, 2, 2], ["ann", "ann", "bob", "bob"], ["x", "y", "y", "y"])
    assert why(apart) == "no two annotators voted on the same item"
    task = [*range(100), *range(4)]
    few = Annotations.from_arrays(task, ["ann"] * 100 + ["bob"] * 4, ["x"] * 104)
    assert why(few) == "only 4 of 100 items have votes of more than one annotator"
    enough = Annotations.from_arrays([*range(100), *range(6)], ["ann"] * 100 + ["bob"] * 6, ["x"] * 106)
    assert why(enough) is None
    assert why_no_answer(np.array(["ann"]), 0, 0) is None  # nothing was asked


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_a_crowd_against_a_loop_over_items(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, n_votes = 25, 60
    task = np.concatenate([np.arange(n), rng.integers(0, n, n_votes)])
    crowd = Annotations.from_arrays(
        task, rng.integers(0, 4, task.size), rng.integers(0, 3, task.size), classes=range(3)
    )
    own, rare = rng.integers(0, 3, n), int(rng.integers(3))
    gold = np.where(rng.random(n) < 0.3, rng.integers(0, 3, n), -1)
    found = survey_of(crowd, own, gold, rare)
    several = single = unvoted = 0
    labels, pairs = [0, 0, 0], [0.0, 0.0, 0.0]
    for i in range(n):
        votes = range(crowd.task_ptr[i], crowd.task_ptr[i + 1])
        said = [int(crowd.label[v]) for v in votes]
        several += len({int(crowd.worker[v]) for v in votes}) > 1
        single += len(said) == 1
        labels[gold[i] if gold[i] >= 0 else own[i]] += 1
        unvoted += gold[i] < 0 and own[i] not in said
        for a in range(len(said)):
            if said[a] == rare:
                others = [said[b] for b in range(len(said)) if b != a]
                pairs[0] += others.count(rare)
                pairs[1] += len(others)
                pairs[2] += 1
    assert (found.n_voted, found.n_several, found.n_single, found.n_own_unvoted) == (n, several, single, unvoted)
    assert found.own_labels.tolist() == labels
    assert found.pairs.tolist() == pairs


def test_a_crowd_that_cannot_answer_is_told() -> None:
    with pytest.warns(RarevoteWarning, match="no method can learn who is right"):
        result = rarevote.fit([(1, "ann", "x"), (2, "bob", "y")]).decide()
    assert result.summary()["cannot_answer"]
    assert result.description == "the votes themselves"


def test_gold_may_be_a_label_without_votes() -> None:
    votes = random_votes(1, n_tasks=20, n_classes=2, votes=3)
    with pytest.warns(RarevoteWarning, match="classes without votes"):
        result = rarevote.fit(votes, "dawid-skene", gold={0: "other"}).decide()
    assert result.labels[0] == "other"
    assert "other" not in result.labels[1:]


def size_of(crowd: Annotations, method: str) -> CrowdSize:
    return CrowdSize(crowd.workers, crowd.classes, crowd.class_votes, method, "anchored-rasch")


def test_doubts_name_the_default() -> None:
    crowd = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "a", "b"])
    (far,) = doubts(survey_of(crowd, [1, 1]), size_of(crowd, "cc-rasch"))
    assert "100% of the items to b, which has 25% of the votes" in far
    assert "method='anchored-rasch'" in far
    strange = survey_of(crowd)._replace(n_own_unvoted=3)
    (said,) = doubts(strange, size_of(crowd, "anchored-rasch"))[:1]
    assert "would give 3 of 2 items" in said
    assert "method=" not in said
    even = Annotations.from_arrays([0, 0, 1, 1], [0, 1, 0, 1], ["a", "a", "b", "b"])
    assert not doubts(survey_of(even, [0, 1]), size_of(even, "cc-rasch"))


def test_few_votes_over_many_classes_are_doubted_for_cc_rasch() -> None:
    labels = ["a", "b", "c", "d", "e"]
    crowd = Annotations.from_arrays([*range(5), *range(5)], [0] * 5 + [1] * 5, labels * 2)
    (said,) = doubts(survey_of(crowd, range(5)), size_of(crowd, "cc-rasch"))
    assert said.startswith("2.0 votes per task over 5 classes is very sparse: item difficulty can absorb all")
    assert doubts(survey_of(crowd, range(5)), size_of(crowd, "glad")) == []


def test_the_class_that_gains_most_is_named() -> None:
    # Votes: 60% a, 30% b, 10% c; labels: 50% a, 0% b, 50% c.
    crowd = Annotations.from_arrays([*range(10)], [0] * 10, ["a"] * 6 + ["b"] * 3 + ["c"])
    (said,) = doubts(survey_of(crowd, [0] * 5 + [2] * 5), size_of(crowd, "glad"))[-1:]
    assert "glad gives 50% of the items to c, which has 10% of the votes: so far apart" in said


def test_flags_without_a_vote_in_the_tail_are_counted() -> None:
    tail = RareClass((2, 1), ">=2", True, is_tail=True)
    (said,) = tail_notes(tail, np.array([0.8, 0.1, 0.1]), 3)
    assert said.startswith("3 items are flagged >=2 without a vote in that tail: the sum of the probabilities decides")
    assert tail_notes(tail, np.array([0.8, 0.1, 0.1]), 0) == []
    assert tail_notes(tail, np.array([0.4, 0.3, 0.3]), 0) == [
        ">=2 is common (60% of the items): the other side is the rare one"
    ]


@pytest.mark.parametrize(("n_single", "is_told"), [(49, False), (50, True), (90, True)])
def test_where_most_items_have_a_single_vote_that_is_told(n_single: int, is_told: bool) -> None:
    votes = [(task, 0, "x") for task in range(n_single)]
    votes += [(task, worker, "xy"[task % 2]) for task in range(n_single, 100) for worker in (1, 2, 3)]
    result = decided(votes, "majority-vote")
    said = [note.description for note in result.notes if note.kind == "single"]
    assert bool(said) == is_told
    assert not result.cannot_answer
    if is_told:
        assert said == [single_vote_note(n_single, 100)]
        assert said[0].startswith(f"{n_single} of 100 items have a single vote")


def test_answers_that_look_like_none_are_proposed() -> None:
    assert silences(np.array(["Unsure", "n/a", "none", "yes"], dtype=object)) == ["Unsure", "n/a"]
    assert silence_note(np.array(["yes", "no"], dtype=object)) is None
    note = silence_note(np.array(["not sure", "yes"], dtype=object))
    assert note is not None
    assert "abstain=['not sure']" in note


def test_a_decision_that_names_unknown_classes_is_refused() -> None:
    fitted = rarevote.fit(random_votes(1, n_tasks=30, n_classes=2, votes=3), "majority-vote")
    with pytest.raises(ParameterError, match="'zebra' is not a class"):
        fitted.decide(min_recall={"zebra": 0.9})


# --------------------------------------------------------------------------------------------------------------------
# a rare class that nobody agrees on


def test_a_class_rarer_than_the_mistakes_is_told() -> None:
    for seed in range(3):
        crowd = rarevote.simulate_crowd(3000, imbalance=199, random_state=seed)
        with pytest.warns(RarevoteWarning, match="annotators hardly agree on which items are 1"):
            result = rarevote.fit(crowd.arrays).decide()
        flagged = result.codes == result.fitted.rare.code
        assert f"Most of the {flagged.sum():,} items labelled 1 are probably not" in result.warnings[0]
        assert crowd.truth[flagged].mean() < 0.5  # and so it is


def test_the_example_that_comes_along_is_not_warned_of() -> None:
    result = rarevote.fit(example_files().labels).decide()
    assert result.warnings == ()


def pairs_of(votes: Any) -> Any:
    """The sums of :class:`VoteSurvey` over items with so many votes for two classes, the second the rare one."""
    mine, all_votes = votes[:, 1], votes.sum(axis=1)
    return np.array([(mine * (mine - 1)).sum(), (mine * (all_votes - 1)).sum(), mine.sum()])


def test_agreement_is_counted_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    for chance in (0.02, 0.05, 0.1, 0.2, 0.3):
        labels = [list((rng.random(4) < chance + 0.5 * (rng.random() < 0.1)).astype(int)) for _ in range(100)]
        votes = np.array([[row.count(0), row.count(1)] for row in labels], dtype=float)
        others = [row[b] for row in labels for a in range(4) for b in range(4) if a != b and row[a] == 1]
        share = np.mean(labels)
        kappa = (np.mean(others) - share) / (1 - share)
        assert (disagreement_note(pairs_of(votes), 400, 10, "x") is not None) == (kappa < 0.05)
    assert disagreement_note(pairs_of(np.array([[3.0, 1.0]] * 9)), 36, 9, "x") is None  # too few to speak of
    assert disagreement_note(pairs_of(np.array([[0.0, 1.0]] * 40)), 40, 40, "x") is None  # nobody to agree with
