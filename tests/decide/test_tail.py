"""Tails of a scale: which items are of a grade or beyond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import AnchoredOrdered
from rarevote.crowd.grades import Grades
from rarevote.crowd.rare import RareClass
from rarevote.decide.tail import tail_flags
from rarevote.errors import ParameterError, RarevoteWarning
from tests.benchmark_data import load

# Said of the tail of most of these tests, and itself tested below.
pytestmark = pytest.mark.filterwarnings("ignore:>=3 is common")

TINY = ["1121", "2232", "3342", "4443", "1221", "2331", "3344", "4341"]
VOTES = [(i, w, y) for i, said in enumerate(TINY, 1) for w, y in zip("abcd", said, strict=True)]


def fitted(**options: Any) -> rarevote.Fitted:
    return rarevote.fit(VOTES, AnchoredOrdered(ordered="1..4", tol=1e-10), **options)


def test_values_of_the_specification() -> None:
    result = fitted(rare=">=3").decide()
    rows = result.columns()
    expected = [0.028445, 0.119019, 0.900768, 0.972259, 0.038588, 0.240831, 0.954180, 0.910097]
    np.testing.assert_allclose(rows["p>=3"], expected, atol=6e-7)
    assert rows["flag>=3"].tolist() == ["no", "no", "yes", "yes", "no", "no", "yes", "yes"]
    top = result.find(">=4")
    assert top.tasks[top.flagged].tolist() == [4, 7, 8]
    assert result.find("<=2").flagged.tolist() == [True, True, False, False, True, True, False, False]
    # Labels are those without the question.
    assert result.labels.tolist() == fitted().decide().labels.tolist() == list("12341233")


def flags_by_hand(p: np.ndarray[Any, Any], shares: list[float], tail: list[int]) -> list[bool]:
    """An item at a time; ``tail`` from the end of the scale inwards."""
    found = []
    for row in p.tolist():
        said = False
        for end in range(1, len(tail) + 1):
            t, f = sum(row[k] for k in tail[:end]), sum(shares[k] for k in tail[:end])
            said |= t * min(max((1 - f) / f, 1), 10) >= (1 - t) * min(max(f / (1 - f), 1), 10) - 1e-13
        found.append(said)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_flags_against_a_loop_and_nested(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = int(rng.integers(3, 7))
    p = rng.dirichlet(rng.uniform(0.1, 1.0, K), 200)
    shares, classes = p.mean(axis=0), np.arange(K)
    for side in (">=", "<="):
        wider: list[bool] = []
        for cut in range(1, K) if side == ">=" else range(K - 2, -1, -1):
            tail = RareClass.of(classes, np.ones(K, dtype=np.int64), f"{side}{cut}", Grades.of(list(range(K))))
            flags = tail_flags(tail, p, shares).tolist()
            codes = list(range(K - 1, cut - 1, -1)) if side == ">=" else list(range(cut + 1))
            assert flags == flags_by_hand(p, shares.tolist(), codes)
            # One step further in, the tail is narrower.
            assert not wider or all(outer or not inner for inner, outer in zip(flags, wider, strict=True))
            wider = flags


def test_the_rare_class_of_grades_is_the_end_with_fewer_votes() -> None:
    classes, votes = np.array(["low", "mid", "high", "skip"], dtype=object), np.array([5, 1, 4, 0])
    assert RareClass.of(classes, votes).name == "mid"
    assert RareClass.of(classes, votes, None, Grades.of("low,mid,high")).name == "high"
    assert RareClass.of(classes, np.array([3, 9, 3, 1]), None, Grades.of("low,mid,high")).name == "high"
    # An end without votes is a gap, not an end.
    assert RareClass.of(classes, np.array([5, 3, 0, 1]), None, Grades.of("low,mid,high")).name == "mid"
    said = "".join(TINY)
    assert said.count("1") < said.count("4")
    assert fitted().rare.name == "1"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (">=1", "holds all of the grades"),
        ("<=4", "holds all of the grades"),
        (">=5", "'5' is not a grade"),
        (">=", "is not a class"),
        ("=4", "is not a class"),
    ],
)
def test_tails_that_are_refused(wanted: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        fitted(rare=wanted)


def test_a_tail_needs_an_order_and_a_class_of_that_name_comes_first() -> None:
    with pytest.raises(ParameterError, match="needs their order"):
        rarevote.fit(VOTES, rare=">=3")
    odd = [(i, w, ">=3" if y == "4" else y) for i, w, y in VOTES]
    found = rarevote.fit(odd, ordered=["1", "2", "3"], rare=">=3").rare
    assert (found.is_tail, found.name) == (False, ">=3")


def test_with_another_method_a_tail_is_the_sum_of_its_probabilities() -> None:
    result = rarevote.fit(VOTES, "dawid-skene", ordered="1..4", rare=">=3").decide()
    rows = result.columns()
    np.testing.assert_allclose(rows["p>=3"], rows["p:3"] + rows["p:4"])
    assert result.summary()["rare"]["tasks"] == int((rows["flag>=3"] == "yes").sum())


def test_a_recall_target_of_a_tail() -> None:
    """The most probable items are flagged; their label is a grade of the tail that has a vote."""
    found = fitted()
    result = found.decide(min_recall={">=3": 0.9})
    t = found.probabilities[:, 2:].sum(axis=1)
    flagged = np.isin(result.labels, ["3", "4"])
    assert result.target is not None
    assert result.target.n_flagged == int(flagged.sum())
    assert t[flagged].min() > t[~flagged].max()
    assert all(label in said for label, said in zip(result.labels, TINY, strict=True))
    assert fitted().decide(min_recall=">=3=0.9").labels.tolist() == result.labels.tolist()
    # Everything is found where everything is asked for, as far as there are votes in the tail.
    every = found.decide(min_recall={">=3": 1.0})
    assert np.isin(every.labels, ["3", "4"]).tolist() == [bool(set("34") & set(said)) for said in TINY]


@pytest.mark.filterwarnings("ignore:anchored-ordered gives 50%")
def test_gold_is_certain_and_items_without_votes_have_no_flag() -> None:
    crowd = rarevote.read(VOTES, items=[1, 2, 3, 4, 5, 6, 7, 8, 9])
    result = rarevote.fit(crowd, ordered="1..4", gold={1: "4"}, rare=">=3").decide()
    assert result.flagged.tolist()[0] is True
    assert result.flagged.tolist()[8] is False
    assert result.columns()["p>=3"][0] == 1.0


def test_what_is_said_of_a_tail() -> None:
    with pytest.warns(RarevoteWarning, match="the other side is the rare one"):
        result = fitted(rare=">=2").decide()
    figures = result.summary()
    assert figures["rare"]["class"] == ">=2"
    assert figures["rare"]["tasks"] == int(result.flagged.sum())
    votes = [y for _, _, y in VOTES]
    assert figures["rare"]["share_of_votes"] == pytest.approx(sum(y != "1" for y in votes) / len(votes))
    assert figures["decision"]["tail"]["name"] == ">=2"
    assert result.expect().name == ">=2"
    assert str(result.expect(">=3")) == str(fitted(rare=">=3").decide().expect())


def test_scores_of_a_tail() -> None:
    truth = dict(enumerate("12341242", 1))
    scores = fitted(rare=">=3").decide().score(truth)
    # Flagged are 3, 4, 7 and 8; of the true 3, 4 and 7 all are found.
    assert (scores["rare_class"], scores["rare_recall"], scores["rare_precision"]) == (">=3", 1.0, 0.75)


@pytest.mark.parametrize(
    ("name", "top", "n_flagged", "n_unvoted"), [("web", 4, 822, 1), ("movie-reviews-4class", 3, 324, 3)]
)
def test_flags_on_real_ratings(name: str, top: int, n_flagged: int, n_unvoted: int, shared_folder: Path) -> None:
    votes = load(shared_folder, name)[:3]
    found = rarevote.fit(votes, AnchoredOrdered(3000, ordered=f"0..{top}", tol=1e-9), rare=f">={top}")
    with pytest.warns(RarevoteWarning, match="without a vote in that tail"):
        result = found.decide()
    assert int(result.flagged.sum()) == n_flagged
    assert result.summary(expected=False)["rare"]["flagged_without_a_vote"] == n_unvoted
