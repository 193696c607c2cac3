"""The decider against a slow loop over items, and its sums over any split of the items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import rarevote
from rarevote.cluster.labelling import kth_largest
from rarevote.crowd.annotations import Annotations
from rarevote.crowd.rare import RareClass
from rarevote.decide.balanced import Balanced
from rarevote.decide.decider import Decided, Decider, Deciding, decide_crowd
from rarevote.decide.decision import DecisionCounts, expected_decision, with_expectations
from rarevote.decide.expectations import N_BINS, Belief, bin_of
from rarevote.decide.guards import CrowdSize
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.recall_target import flags_needed, gold_threshold
from rarevote.decide.rules import AbstainBelow, Argmax, ItemBatch, LeastCost, MinRecall, OwnLabels, Rule
from tests.decide.made import made

K = 3
COSTS = np.array([[0.0, 6.0, 9.0], [1.0, 0.0, 2.0], [1.0, 3.0, 0.0]])
RULES: dict[str, Rule] = {
    "own labels": OwnLabels(),
    "argmax": Argmax(),
    "balanced": Balanced(),
    "balanced, cap 2": Balanced(2),
    "least cost": LeastCost(COSTS),
    "abstain, own labels": AbstainBelow(0.6),
    "abstain, balanced": AbstainBelow(0.6, Balanced()),
    "abstain, least cost": AbstainBelow(0.5, LeastCost(COSTS)),
    "recall": MinRecall({0: 0.7}),
    "high recall": MinRecall({0: 0.999}),
    "recall of a common class": MinRecall({2: 0.5}),
    "promised recall": MinRecall({0: 0.6}, 0.7, random_gold=True),
}


@dataclass(frozen=True)
class Items:
    """A crowd with the probabilities of its items, those without votes last, and the method's own labels."""

    crowd: Annotations
    found: Probabilities
    own: NDArray[np.int64]

    @property
    def votes(self) -> list[list[int]]:
        """Votes for every class on every item."""
        table = [[0] * K for _ in range(len(self.found))]
        for i in range(self.crowd.n_tasks):
            for label in self.crowd.label[self.crowd.task_ptr[i] : self.crowd.task_ptr[i + 1]].tolist():
                table[i][label] += 1
        return table


def drawn(seed: int, *, n_unvoted: int = 0, gold: bool = False, n_workers: int = 6, n: int = 60) -> Items:
    """Random votes, and probabilities that know little of them; many ties."""
    rng = np.random.default_rng(seed)
    task = np.concatenate([np.arange(n), rng.integers(0, n, 2 * n)])
    worker, label = rng.integers(0, n_workers, task.size), rng.choice(K, task.size, p=[0.15, 0.25, 0.6])
    crowd = Annotations.from_arrays(task, worker, label, classes=list(range(K)))
    blind = rng.dirichlet([0.3, 0.5, 1.2], n)
    blind[::3] = rng.dirichlet([0.3, 0.5, 1.2], n)[::3].round(1)  # ties, and zeros
    blind[::3] = blind[::3] / blind[::3].sum(axis=1, keepdims=True)
    mean = blind.mean(axis=0)
    known = np.where(rng.random(n) < 0.4, rng.integers(0, K, n), -1) if gold else np.full(n, -1)
    p = np.where((known >= 0)[:, None], np.eye(K)[known], blind)
    last = np.broadcast_to(mean, (n_unvoted, K))
    p, blind = np.concatenate([p, last]), np.concatenate([blind, last])
    known = np.concatenate([known, np.full(n_unvoted, -1)])
    found = Probabilities(crowd.classes, p, mean, known, blind=blind if gold else None)
    return Items(crowd, found, rng.integers(0, K, n))


def decided(items: Items, rule: Rule, *, allow_unvoted: bool = False) -> Decided:
    crowd = items.crowd
    return decide_crowd(
        crowd,
        items.found,
        rule,
        own=OwnLabels(),
        own_codes=items.own,
        rare=RareClass.of(crowd.classes, crowd.class_votes),
        method="made up",
        default_method="anchored-rasch",
        allow_unvoted=allow_unvoted,
    )


# -- by hand ----------------------------------------------------------------------------------------------------------


def best(score: list[float], votes: list[int], f: list[float], among: list[int]) -> int:
    """The class with the best score; ties go to votes, then to the share, then to the first."""
    top = max(score[k] for k in among)
    tied = [k for k in among if score[k] >= top - 1e-12 * abs(top)]
    return min(tied, key=lambda k: (-votes[k], -f[k], k))


def scores(rule: Rule, p: list[float], f: list[float]) -> list[float]:
    if isinstance(rule, Balanced):
        return [p[k] * min(max(f) / f[k], rule.cap) for k in range(K)]
    if isinstance(rule, LeastCost):
        return [-sum(p[j] * COSTS[j][k] for j in range(K)) for k in range(K)]
    return p


def label_by_hand(rule: Rule, p: list[float], votes: list[int], f: list[float], own: int, free: bool) -> int:
    """The label of an item with votes that is not known."""
    among = [k for k in range(K) if votes[k] or free]
    if isinstance(rule, AbstainBelow):
        code = label_by_hand(rule.rule, p, votes, f, own, free)
        return code if p[code] >= rule.below else -1
    if rule == OwnLabels():
        return own if own in among else best(p, votes, f, among)
    return best(scores(rule, p, f), votes, f, among)


def flags_by_hand(items: Items, rule: MinRecall, free: bool) -> tuple[list[bool], float, bool]:
    """Which items that are not known are flagged, from which probability on, and whether that is promised."""
    assert not isinstance(rule.wanted, str)
    ((number, target),) = rule.wanted.items()
    found, votes = items.found, items.votes
    gold = found.gold.tolist()
    if rule.random_gold:
        of_gold = [float(found.ranking[i, number]) for i in range(len(gold)) if gold[i] == number]
        threshold = gold_threshold(np.array(of_gold), target, rule.confidence)
        if threshold is not None:
            return [found.ranking[i, number] >= threshold for i in range(len(gold))], threshold, True
    may = [gold[i] < 0 and (votes[i][number] > 0 or (free and sum(votes[i]) > 0)) for i in range(len(gold))]
    of_all, that_may = np.zeros(N_BINS, dtype=np.int64), np.zeros(N_BINS, dtype=np.int64)
    for i in range(len(gold)):
        place = bin_of(found.p[i : i + 1, number])[0]
        of_all[place] += gold[i] < 0
        that_may[place] += may[i]
    n_flags = flags_needed(of_all, that_may, target, Belief.in_probabilities(found).of_class)
    ranked = sorted((float(found.p[i, number]) for i in range(len(gold)) if may[i]), reverse=True)
    threshold = ranked[n_flags - 1] if n_flags else float("inf")
    return [may[i] and found.p[i, number] >= threshold for i in range(len(gold))], threshold, False


def codes_by_hand(items: Items, rule: Rule, free: bool) -> list[int]:
    found, votes, f = items.found, items.votes, items.found.mean.tolist()
    number, flags = -1, [False] * len(found)
    if isinstance(rule, MinRecall):
        number = next(iter(rule.wanted))
        flags, _, _ = flags_by_hand(items, rule, free)
    codes = []
    for i, p in enumerate(found.p.tolist()):
        if found.gold[i] >= 0:
            codes.append(int(found.gold[i]))
        elif not sum(votes[i]):
            codes.append(-1)
        elif flags[i]:
            codes.append(number)
        elif isinstance(rule, MinRecall):
            others = [k for k in range(K) if k != number and (votes[i][k] or free)]
            codes.append(best(p, votes[i], f, others or [number]))
        else:
            codes.append(label_by_hand(rule, p, votes[i], f, int(items.own[i]), free))
    return codes


CASES = [(gold, n_unvoted) for gold in (False, True) for n_unvoted in (0, 7)]


@pytest.mark.parametrize("allow_unvoted", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_every_item_is_decided_as_by_hand(name: str, allow_unvoted: bool) -> None:
    rule = RULES[name]
    for seed in range(1 if isinstance(rule, MinRecall) else 6):  # what to expect of flags takes its time
        for gold, n_unvoted in CASES:
            items = drawn(seed, gold=gold, n_unvoted=n_unvoted)
            found = decided(items, rule, allow_unvoted=allow_unvoted)
            assert found.codes.tolist() == codes_by_hand(items, rule, allow_unvoted)
            assert not found.cannot_answer
            assert found.description == rule.description


@pytest.mark.parametrize("name", RULES)
def test_labels_that_the_guard_refuses_are_counted(name: str) -> None:
    for seed in range(1 if isinstance(RULES[name], MinRecall) else 4):
        for gold, n_unvoted in CASES:
            items = drawn(seed, gold=gold, n_unvoted=n_unvoted)
            guarded, free = decided(items, RULES[name]), decided(items, RULES[name], allow_unvoted=True)
            votes, known = items.votes, items.found.gold >= 0
            strange = [i for i, k in enumerate(free.codes) if k >= 0 and not votes[i][k] and not known[i]]
            assert free.n_guarded == 0
            if isinstance(RULES[name], MinRecall):
                # How many are flagged depends on which may be.
                own = [i for i, k in enumerate(guarded.codes) if k >= 0 and not votes[i][k] and not known[i]]
                assert not own or (guarded.target is not None and guarded.target.promised)
            else:
                assert guarded.n_guarded == len(strange)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if isinstance(rule, MinRecall)])
def test_the_target_says_what_was_flagged(name: str) -> None:
    rule = RULES[name]
    assert isinstance(rule, MinRecall)
    assert not isinstance(rule.wanted, str)
    ((number, wanted),) = rule.wanted.items()
    seen = set()
    for seed in range(2):
        for gold, n_unvoted in CASES:
            items = drawn(seed, gold=gold, n_unvoted=n_unvoted)
            found = decided(items, rule)
            _, threshold, promised = flags_by_hand(items, rule, free=False)
            target = found.target
            assert target is not None
            assert (target.name, target.target, target.confidence) == (number, wanted, rule.confidence)
            assert (target.threshold, target.promised) == (threshold, promised)
            assert target.n_flagged == found.codes.tolist().count(number)
            seen.add(promised)
            votes = items.votes
            unvoted = [
                i for i, k in enumerate(found.codes) if k == number and not votes[i][k] and items.found.gold[i] < 0
            ]
            said = [note.description for note in found.notes if note.kind == "target"]
            n_without = sum(not any(row) for row in votes)
            assert len(said) == bool(unvoted) + bool(promised and n_without)
            if unvoted:
                assert said[0].startswith(f"{len(unvoted)} of the items flagged for the recall of {number}")
            if promised and n_without:
                assert said[-1].startswith(f"{n_without} item")
                assert said[-1].endswith("not flagged: the promise covers only items with votes")
    assert seen == ({False, True} if rule.random_gold else {False})


@pytest.mark.parametrize("name", RULES)
def test_one_annotator_is_taken_at_their_word(name: str) -> None:
    for gold, n_unvoted in CASES:
        items = drawn(1, gold=gold, n_unvoted=n_unvoted, n_workers=1)
        found = decided(items, RULES[name])
        assert found.cannot_answer
        assert found.description == "the votes themselves"
        assert found.target is None
        assert found.notes[0].kind == "no answer"
        for i, votes in enumerate(items.votes):
            known = int(items.found.gold[i])
            wanted = known if known >= 0 else votes.index(max(votes)) if sum(votes) else -1
            assert found.codes[i] == wanted


def test_abstention_asks_for_the_probability_of_the_label_that_stays() -> None:
    """The class that the guard refuses does not silence the one with the vote."""
    p = np.array([[0.1, 0.9], [0.02, 0.98], [0.01, 0.99]])
    crowd = Annotations.from_arrays([0, 0, 1, 1, 2, 2], [0, 1] * 3, [1] * 6, classes=[0, 1])
    found = Probabilities(crowd.classes, p, np.array([0.01, 0.99]), np.full(3, -1))
    answer = decide_crowd(
        crowd,
        found,
        AbstainBelow(0.8, Balanced(10)),  # 0.1 times 10 beats 0.9, and nobody voted for it
        own=Balanced(10),
        own_codes=None,
        rare=RareClass((0,), 0),
        method="made up",
        default_method="anchored-rasch",
    )
    assert answer.codes.tolist() == [1, 1, 1]
    assert answer.n_guarded == 0, "without the guard there would have been no answer"


def test_own_labels_that_follow_from_probabilities() -> None:
    for seed in range(4):
        items = drawn(seed, gold=True, n_unvoted=3)
        crowd = items.crowd
        how: dict[str, Any] = {
            "rare": RareClass.of(crowd.classes, crowd.class_votes),
            "method": "made up",
            "default_method": "anchored-rasch",
        }
        found = decide_crowd(crowd, items.found, OwnLabels(), own=Balanced(4), own_codes=None, **how)
        wanted = decide_crowd(crowd, items.found, Balanced(4), own=Balanced(4), own_codes=None, **how)
        assert found.codes.tolist() == wanted.codes.tolist() == codes_by_hand(items, Balanced(4), free=False)


# -- parts of a crowd -------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Some items with their votes."""

    batch: ItemBatch
    task_ptr: NDArray[np.int64]
    worker: NDArray[Any]
    found: Probabilities


def in_parts(items: Items, cuts: list[int]) -> list[Part]:
    """The items in parts; those without votes are one more part."""
    crowd, found = items.crowd, items.found
    votes, own = np.array(items.votes, dtype=np.float64), np.full(len(found), -1)
    own[: crowd.n_tasks] = items.own
    # Where the votes of every item begin; those without any begin and end at the end.
    ptr = np.concatenate([crowd.task_ptr, np.full(len(found) - crowd.n_tasks, crowd.task_ptr[-1])])
    parts = []
    for begin, end in pairwise([0, *cuts, crowd.n_tasks, len(found)]):
        rows, last = slice(begin, end), min(end, max(begin, crowd.n_tasks))
        batch = ItemBatch(found.p[rows], votes[rows], own[rows], found.gold[rows], found.ranking[rows])
        some = replace(found, p=found.p[rows], gold=found.gold[rows], blind=None)
        parts.append(Part(batch, ptr[begin : last + 1] - ptr[begin], crowd.worker[ptr[begin] : ptr[last]], some))
    return parts


def largest_in(parts: list[Part], deciding: Deciding, wanted: RareClass, k: int) -> float:
    open_items = [part.batch.p[deciding.may(part.batch) & (part.batch.gold < 0), wanted.code] for part in parts]
    return float(np.sort(np.concatenate(open_items))[-k])


def added(sums: Iterable[Any]) -> Any:
    return reduce(lambda one, other: one.plus(other), sums)


def test_labels_are_counted_by_class_and_no_answer_is_not_one() -> None:
    found = made([[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.4, 0.3, 0.3]])
    size = CrowdSize(np.arange(2), found.classes, np.full(K, 4), "made up", "anchored-rasch")
    rule, rare = AbstainBelow(0.5, Argmax()), RareClass((0,), 0)
    deciding = Deciding(rule, Argmax(), size, rare, found.mean, 4, Belief.in_probabilities(found))
    part = ItemBatch(found.p, np.ones((4, K)), np.full(4, -1), found.gold, found.p)
    decider = Decider(rule, found.mean)
    codes, n_guarded = decider.codes(part)
    counted = deciding.labelled(decider, part, codes, n_guarded)
    assert codes.tolist() == [0, 0, 1, -1]
    assert (counted.labels.tolist(), counted.n_guarded, counted.n_rare) == ([2, 1, 0], 0, 2)


@pytest.mark.parametrize("n_workers", [6, 1])
@pytest.mark.parametrize("name", RULES)
def test_parts_add_up_to_the_whole(name: str, n_workers: int) -> None:
    rule = RULES[name]
    items = drawn(2, gold=True, n_unvoted=7, n_workers=n_workers)
    crowd, found = items.crowd, items.found
    rare, belief = RareClass.of(crowd.classes, crowd.class_votes), Belief.in_probabilities(found)
    vouching = None
    if isinstance(rule, MinRecall) and rule.random_gold:
        number = next(iter(rule.wanted))
        vouching = found.ranking[found.gold == number, number]
    size = CrowdSize(crowd.workers, crowd.classes, crowd.class_votes, "made up", "anchored-rasch")
    deciding = Deciding(rule, OwnLabels(), size, rare, found.mean, len(found), belief, vouching=vouching)

    parts = in_parts(items, [1, 17, 40])
    sums = added(deciding.look(part.batch, part.task_ptr, part.worker) for part in parts)
    decider = deciding.decider(sums, partial(largest_in, parts, deciding))
    costs = rule.costs(crowd.classes)
    labelled, counts, codes = [], [], []
    for part in parts:
        own, n_guarded = decider.codes(part.batch)
        codes += own.tolist()
        labelled.append(deciding.labelled(decider, part.batch, own, n_guarded))
        counts.append(DecisionCounts.of(part.found, own, costs, rare, deciding.flagged(decider, part.batch, own)))
    total = added(labelled)
    answer = deciding.outcome(decider, sums.survey, total)

    whole = decided(items, rule)
    assert codes == whole.codes.tolist()
    assert answer._replace(codes=whole.codes, flagged=whole.flagged) == whole
    assert total.labels.tolist() == [codes.count(k) for k in range(K)]
    given_to_both: dict[str, Any] = {"rule": answer.description, "costs": costs, "rare": rare, "target": answer.target}
    alone = found.independent.why_not
    expected = expected_decision(
        crowd.classes, added(counts), belief, shares_from=found.how, only_shared=alone, **given_to_both
    )
    wanted = with_expectations(found, whole.codes, **given_to_both)
    assert str(expected.expected) == str(wanted.expected)  # NaN is not equal to itself
    assert str(expected.accuracy) == str(wanted.accuracy)
    assert expected.how == wanted.how
    assert expected.n_abstained == wanted.n_abstained == codes.count(-1)
    assert expected.expected_cost == pytest.approx(wanted.expected_cost, rel=1e-12)


@given(
    st.lists(st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.25, 0.5, 1.0, 5e-324]), min_size=1, max_size=60),
    st.data(),
)
def test_the_kth_largest_of_numbers_elsewhere_is_that_of_sorting(numbers: list[float], data: st.DataObject) -> None:
    held = np.array(numbers)
    n_questions = 0

    def count(thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        nonlocal n_questions
        n_questions += 1
        return np.asarray((held >= thresholds[:, None]).sum(axis=1))

    k = data.draw(st.integers(1, len(numbers)))
    assert kth_largest(count, k) == sorted(numbers, reverse=True)[k - 1]
    assert n_questions <= 9  # 256 thresholds at once, of 2^62 numbers


# -- the roads to the decider -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["anchored-rasch", "dawid-skene", "majority-vote", "wawa"])
def test_a_fit_decides_by_hand(method: str) -> None:
    items = drawn(3)
    crowd = items.crowd
    fitted = rarevote.fit(crowd, method)
    for how, rule in (
        ({}, Balanced(10) if method == "anchored-rasch" else OwnLabels()),
        ({"decide": "labels"}, OwnLabels()),
        ({"decide": "argmax"}, Argmax()),
        ({"cap": 3}, Balanced(3)),
        ({"costs": COSTS}, LeastCost(COSTS)),
        ({"min_recall": {0: 0.6}}, MinRecall({0: 0.6})),
    ):
        for allow_unvoted in (False, True):
            result = fitted.decide(**how, allow_unvoted=allow_unvoted)
            mine = Items(crowd, fitted.reported, fitted.method.label_codes())
            assert result.codes.tolist() == codes_by_hand(mine, rule, allow_unvoted)
            assert result.confidence.tolist() == [
                float(fitted.probabilities[i, k]) for i, k in enumerate(result.codes.tolist())
            ]
