"""Rules for grades against loops over items, and their guard."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote.crowd.grades import Grades
from rarevote.decide.decider import Decider
from rarevote.decide.ordered import BalancedMedian, GradeRule, Levelled, MeanGrade, Median
from rarevote.decide.rules import ABSTAINED, ItemBatch
from rarevote.decide.selection import parse_rule
from rarevote.errors import ParameterError, RarevoteWarning

CLASSES = np.array(["high", "low", "mid", "n/a", "top", "skip"], dtype=object)
GRADES = Grades(("low", "mid", "high", "gap", "top"))
PLACE = {"low": 0, "mid": 1, "high": 2, "top": 4}
RULES = [Levelled(GRADES), Median(GRADES), MeanGrade(GRADES), BalancedMedian(GRADES), BalancedMedian(GRADES, cap=2)]


def batch(p: Any, votes: Any, gold: Any = None) -> ItemBatch:
    p, votes = np.asarray(p, dtype=np.float64), np.asarray(votes, dtype=np.float64)
    known = np.full(len(p), -1) if gold is None else np.asarray(gold)
    return ItemBatch(p, votes, np.full(len(p), -1), known, p)


def decided(rule: GradeRule, part: ItemBatch, shares: Any) -> list[int]:
    return list(Decider(rule.ready(CLASSES), np.asarray(shares)).codes(part)[0].tolist())


def by_hand(rule: GradeRule, p: list[float], votes: list[float], f: list[float]) -> int:
    """The label of one item in words of the specification; no ties."""
    names = CLASSES.tolist()
    K = len(names)
    if isinstance(rule, Levelled):
        w = [min(1.0, 1 / (K * share)) for share in f]
    elif isinstance(rule, BalancedMedian):
        w = [min(max(f) / share, rule.cap) for share in f]
    else:
        w = [1.0] * K
    voted = sorted(PLACE[name] for k, name in enumerate(names) if votes[k] and name in PLACE)
    outside = [k for k, name in enumerate(names) if name not in PLACE and votes[k]]
    best_inside = max(w[k] * p[k] for k, name in enumerate(names) if name in PLACE)
    if outside:
        best = max(outside, key=lambda k: w[k] * p[k])
        if not voted or w[best] * p[best] > best_inside:
            return best
    inside = sorted((k for k in range(K) if names[k] in PLACE), key=lambda k: PLACE[names[k]])
    total = sum(w[k] * p[k] for k in inside)
    if isinstance(rule, MeanGrade):
        mean = sum(p[k] * PLACE[names[k]] for k in inside) / total
        place = min(PLACE.values(), key=lambda x: abs(x - mean))
    else:
        so_far, place = 0.0, -1
        for k in inside:
            so_far += w[k] * p[k]
            if so_far >= total / 2:
                place = PLACE[names[k]]
                break
    place = min(max(place, voted[0]), voted[-1])
    return int(names.index(next(name for name, x in PLACE.items() if x == place)))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}")
def test_rules_against_a_loop(rule: GradeRule) -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(6, 0.6), 600)
    votes = rng.integers(0, 3, (600, 6)) * (rng.random((600, 6)) < 0.4)
    votes[votes.sum(axis=1) == 0, rng.integers(6)] = 1
    f = p.mean(axis=0) * [1, 0.2, 3, 1, 0.05, 1]
    f /= f.sum()
    expected = [by_hand(rule, *one, f.tolist()) for one in zip(p.tolist(), votes.tolist(), strict=True)]
    assert decided(rule, batch(p, votes), f) == expected
    assert len(set(expected)) == 6


def test_the_guard_is_a_range() -> None:
    even = np.full(6, 1 / 6)
    # Votes for low and top: mid and high are between them; n/a has no vote, whatever its probability.
    assert decided(Median(GRADES), batch([[0.1, 0.1, 0.7, 0.1, 0, 0]], [[0, 1, 0, 0, 1, 0]]), even) == [2]
    assert decided(Median(GRADES), batch([[0.1, 0.1, 0.2, 0.6, 0, 0]], [[0, 1, 0, 0, 1, 0]]), even) == [2]
    # Below the range: its lowest.
    assert decided(Median(GRADES), batch([[0, 1.0, 0, 0, 0, 0]], [[1, 0, 0, 0, 1, 0]]), even) == [0]
    # All votes outside the scale: the best of those.
    assert decided(Median(GRADES), batch([[0.5, 0.3, 0, 0.1, 0, 0.1001]], [[0, 0, 0, 1, 0, 1]]), even) == [5]
    # Gold holds, and an item without votes has no label.
    assert decided(Median(GRADES), batch([[1, 0, 0, 0, 0, 0.0]], [[0, 1, 0, 0, 0, 0]], [4]), even) == [4]
    assert decided(Median(GRADES), batch([[1, 0, 0, 0, 0, 0.0]], [[0] * 6]), even) == [ABSTAINED]


def test_ties() -> None:
    shares = np.array([0.2, 0.3, 0.1, 0.2, 0.1, 0.1])
    halves = [0, 0.5, 0.5, 0, 0, 0.0]  # low and mid
    assert decided(Median(GRADES), batch([halves], [[0, 2, 1, 0, 0, 0]]), shares) == [1]
    assert decided(Median(GRADES), batch([halves], [[0, 1, 2, 0, 0, 0]]), shares) == [2]
    assert decided(Median(GRADES), batch([halves], [[0, 1, 1, 0, 0, 0]]), shares) == [2]  # the smaller share
    same = np.full(6, 1 / 6)
    assert decided(Median(GRADES), batch([halves], [[0, 1, 1, 0, 0, 0]]), same) == [1]  # the lower grade
    # Rounded .5 of the mean: the grade with more votes; two grades around a gap likewise.
    assert decided(MeanGrade(GRADES), batch([halves], [[0, 1, 3, 0, 0, 0]]), shares) == [2]
    around = [0.5, 0, 0, 0, 0.5, 0.0]  # high and top, two apart
    assert decided(MeanGrade(GRADES), batch([around], [[1, 0, 0, 0, 2, 0]]), shares) == [4]
    assert decided(MeanGrade(GRADES), batch([around], [[2, 0, 0, 0, 1, 0]]), shares) == [0]
    # A class outside and a grade weigh the same: more votes, else the grade.
    outside = [0, 0.5, 0, 0.5, 0, 0.0]
    assert decided(Median(GRADES), batch([outside], [[0, 1, 0, 2, 0, 0]]), shares) == [3]
    assert decided(Median(GRADES), batch([outside], [[0, 1, 0, 1, 0, 0]]), shares) == [1]
    # Nothing weighs anything where the probability is on a grade that nobody met: a tie as well.
    met = np.array([0.0, 0.5, 0, 0.5, 0, 0])
    assert decided(Median(GRADES), batch([[1.0, 0, 0, 0, 0, 0]], [[0, 1, 0, 2, 0, 0]]), met) == [3]
    assert decided(Median(GRADES), batch([[1.0, 0, 0, 0, 0, 0]], [[0, 1, 0, 1, 0, 0]]), met) == [1]


def test_a_class_that_nobody_met_is_never_the_mean() -> None:
    shares = np.array([0.0, 0.4, 0.3, 0.1, 0.1, 0.1])  # nobody met high
    p = [[0, 0.1, 0.2, 0, 0.7, 0.0]]
    assert decided(MeanGrade(GRADES), batch(p, [[0, 1, 0, 0, 1, 0]]), shares) == [4]


def test_levelled_is_the_balanced_median_capped_at_the_largest_share() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet([2, 1, 1, 0.5, 0.3, 0.2], 300)
    votes, f = np.ones((300, 6)), p.mean(axis=0)
    cap = 6 * float(f.max())
    assert decided(Levelled(GRADES), batch(p, votes), f) == decided(BalancedMedian(GRADES, cap=cap), batch(p, votes), f)


def test_names_of_rules() -> None:
    assert parse_rule("levelled", GRADES) == Levelled(GRADES)
    assert parse_rule("balanced-median:4", GRADES) == BalancedMedian(GRADES, cap=4.0)
    for name in ("levelled", "median", "mean", "balanced-median"):
        with pytest.raises(ParameterError, match=r"needs their order: give ordered=\["):
            parse_rule(name)
    with pytest.raises(ParameterError, match="takes a cap of at least 1"):
        parse_rule("balanced-median:x", GRADES)
    with pytest.raises(ParameterError, match="at least 1"):
        parse_rule("balanced-median:0.5", GRADES)
    with pytest.raises(ParameterError, match="of grades also levelled, median, mean, balanced-median"):
        parse_rule("middle", GRADES)


@pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")
def test_another_method_gets_the_rules_and_keeps_its_own() -> None:
    votes = [(t, w, y) for t, said in enumerate(["124", "445", "115", "244"]) for w, y in zip("abc", said, strict=True)]
    fitted = rarevote.fit(votes, "majority-vote", ordered="1..5")
    assert fitted.decide().description == "the method's own labels"
    assert fitted.decide("median").labels.tolist()[0] == "2"
    assert "grade" in fitted.decide().columns()
    assert "grade" not in rarevote.fit(votes, "majority-vote").decide().columns()
    with pytest.raises(ParameterError, match="needs their order"):
        rarevote.fit(votes, "majority-vote").decide("median")


@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_labels_between_two_votes_are_no_doubt() -> None:
    """Levelled labels without a vote of their own are expected: they are no reason to warn of the method."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 7, 200)
    rows = [(i, w, int(np.clip(truth[i] + rng.integers(-2, 3), 0, 6))) for i in range(200) for w in range(5)]
    result = rarevote.fit(rows, ordered="0..6").decide()
    votes = result.fitted.annotations.votes()
    unvoted = votes[np.arange(200), result.codes] == 0
    assert unvoted.sum() > 2
    assert not [note for note in result.notes if note.kind == "doubt"]
    low, high = (votes > 0).argmax(axis=1), 6 - (votes > 0)[:, ::-1].argmax(axis=1)
    assert ((low <= result.codes) & (result.codes <= high)).all()


def test_grades_in_the_columns() -> None:
    votes = [(t, w, y) for t in range(3) for w, y in zip("abcd", ["2", "4", "4", "skip"], strict=True)]
    with pytest.warns(RarevoteWarning):
        result = rarevote.fit(votes, "majority-vote", ordered="1..5").decide()
    p, rows = result.probabilities.p, result.columns()
    expected = (p[:, 0] * 2 + p[:, 1] * 4) / (p[:, 0] + p[:, 1])
    np.testing.assert_allclose(rows["grade"], expected)
    outside = Grades(("a", "b", "c")).means(np.array([[0.0, 1.0]]), np.array(["a", "x"], dtype=object))
    assert np.isnan(outside).all()
