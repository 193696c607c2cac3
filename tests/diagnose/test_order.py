"""The order of classes: names, votes, and what is said about them."""

from __future__ import annotations

import warnings
from itertools import combinations, pairwise, permutations
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import rarevote
from rarevote import Annotations
from rarevote.crowd.grades import Grades
from rarevote.diagnose.order import candidate, check_order, order_doubt, order_hint
from rarevote.errors import RarevoteWarning
from tests.benchmark_data import load

TINY = ["1121", "2232", "3342", "4443", "1221", "2331", "3344", "4341"]


def tiny() -> Annotations:
    return Annotations.from_arrays([i for i in range(8) for _ in range(4)], list("abcd") * 8, list("".join(TINY)))


def ratings(seed: int = 0, n: int = 300, K: int = 5, ordered: bool = True) -> Annotations:
    """Votes that err to neighbours, or to any class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, n)
    rows = []
    for i in range(n):
        for w in range(4):
            near = int(np.clip(truth[i] + rng.integers(-1, 2), 0, K - 1))
            rows.append((i, w, near if ordered else int(truth[i] if rng.random() < 0.6 else rng.integers(K))))
    return Annotations.from_arrays(*map(list, zip(*rows, strict=True)))


def by_hand(crowd: Annotations, place: dict[int, float]) -> tuple[float, float, float, float]:
    """Pairs, lam, gain and standard error with loops and a general optimiser."""
    tasks = [[int(y) for y in crowd.label[a:b] if y in place] for a, b in pairwise(crowd.task_ptr)]
    tasks = [said for said in tasks if len(said) >= 2]
    votes = [y for said in tasks for y in said]
    share = {k: votes.count(k) / len(votes) for k in place if votes.count(k)}
    cells = list(combinations(share, 2))
    weight = [{(k, m): said.count(k) * said.count(m) / (len(said) - 1) for k, m in cells} for said in tasks]
    M = {cell: sum(one[cell] for one in weight) for cell in cells}

    def ratio(lam: float) -> dict[tuple[int, int], float]:
        m0 = {(k, m): share[k] * share[m] for k, m in cells}
        m1 = {(k, m): m0[k, m] * exp(-lam * (abs(place[k] - place[m]) - 1)) for k, m in cells}
        return {cell: log(m1[cell] / sum(m1.values())) - log(m0[cell] / sum(m0.values())) for cell in cells}

    lam = minimize_scalar(
        lambda lam: -sum(M[cell] * ratio(lam)[cell] for cell in cells), bounds=(0, 5), method="bounded",
        options={"xatol": 1e-10},
    ).x  # fmt: skip
    of_task = [sum(one[cell] * ratio(lam)[cell] for cell in cells) for one in weight]
    return sum(M.values()), float(lam), sum(of_task), sqrt(len(of_task)) * float(np.std(of_task))


def test_values_of_the_specification() -> None:
    found = check_order(tiny(), Grades.of("1..4"))
    np.testing.assert_allclose(
        [found.pairs, found.lam, found.gain, found.se], [10.666667, 0.972973, 1.702538, 1.313567], atol=6e-7
    )
    assert (found.better, found.n_orders) == (0.0, 12)
    outside = check_order(tiny(), Grades.of("1..3"))
    np.testing.assert_allclose(
        [outside.pairs, outside.lam, outside.gain, outside.se], [7, 0.401011, 0.109058, 0.384794], atol=6e-7
    )


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ("nist-trec-relevance", "0..2", [0.139868, 12.167436, 3.467963]),
        ("web", "0..4", [0.286394, 172.572906, 15.820079]),
        ("movie-reviews-4class", "0..3", [0.536211, 97.975300, 11.653412]),
    ],
)
def test_values_on_real_votes(name: str, order: str, expected: list[float], shared_folder: Path) -> None:
    found = check_order(Annotations.from_arrays(*load(shared_folder, name)[:3]), Grades.of(order))
    np.testing.assert_allclose([found.lam, found.gain, found.se], expected, atol=6e-7)
    assert found.better == 0.0
    if name == "nist-trec-relevance":
        assert found.pairs == pytest.approx(6586.413240, abs=6e-7)


@pytest.mark.parametrize("seed", range(6))
def test_against_loops(seed: int) -> None:
    K = 3 + seed % 3
    crowd = ratings(seed, 40, K, ordered=seed % 2 == 0)
    names = crowd.classes.tolist()
    order = [*names[1:], "gap", names[0]] if seed > 3 else names
    place = {names.index(name): float(x) for x, name in enumerate(order) if name in names}
    found, hand = check_order(crowd, Grades(tuple(order))), by_hand(crowd, place)
    np.testing.assert_allclose([found.pairs, found.lam], hand[:2], atol=1e-6)
    np.testing.assert_allclose([found.gain, found.se], hand[2:], atol=1e-5)
    places = sorted(place.values())
    orders = [by_hand(crowd, dict(zip(place, one, strict=True)))[2] for one in permutations(places)]
    assert found.better == pytest.approx(np.mean([gain > hand[2] + 1e-6 for gain in orders]))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("5,1,3,2,4", "1,2,3,4,5"),
        ("5 stars,1 star,3 Stars", "1 star,3 Stars,5 stars"),  # equal steps, of two
        ("4 stars,1 star,3 Stars,2 stars", "1 star,2 stars,3 Stars,4 stars"),
        ("1,2,4", "1,2,3,4"),
        ("0,0.5,1", "0,0.5,1"),
        ("1,2,17", None),
        ("B,A,F,C", "F,C,B,A"),
        ("none,severe,mild", "none,mild,severe"),
        ("1 - poor,2 - good,3: excellent", "1 - poor,2 - good,3: excellent"),
        ("Poor,bad,good", None),  # two names of one rank
        ("strongly agree,Agree,neutral,DISAGREE", "DISAGREE,neutral,Agree,strongly agree"),
        ("irrelevant,Highly-relevant,somewhat relevant,broken link", "irrelevant,somewhat relevant,Highly-relevant"),
        ("low,high,medium,can't tell,N/A,Don't know", "low,medium,high"),
        ("very low,low,high,very high", "very low,low,high,very high"),
        ("no,yes,unsure", "no,unsure,yes"),
        ("true,false,mostly true", "false,mostly true,true"),
        ("yes,no", None),
        ("cat,dog,low", None),
        ("rarely,never,always", "never,rarely,always"),
    ],
)
def test_names(names: str, expected: str | None) -> None:
    found = candidate(np.array(names.split(","), dtype=object))
    assert (None if found is None else found.text) == expected


def hint(crowd: Annotations) -> str | None:
    found = order_hint(crowd)
    return None if found is None else found.description


def test_more_numbers_than_grades() -> None:
    assert candidate(np.arange(21)) is None
    crowd = Annotations.from_arrays(list(range(30)), ["w"] * 30, list(range(30)))
    words = hint(crowd) or ""
    assert words.startswith("The 30 classes are numbers. If they are ratings, round or bin them to at most 20 grades, ")
    assert words.endswith("such as pandas.cut(labels, 10, labels=False) with ordered='0..9'")


def test_hints() -> None:
    assert hint(tiny()) == (
        "The answers look like grades; the votes are too few to be sure. If they are grades, add "
        "ordered=['1', '2', '3', '4']"
    )
    strong = hint(ratings()) or ""
    assert strong.startswith("The answers look like grades (0 < 1 < 2 < 3 < 4), and neighbours are confused")
    assert order_hint(ratings(1, 600, 5, ordered=False)) is None  # codes of categories
    votes = ratings()
    named = Annotations.from_arrays(
        votes.task_of_annotation().tolist(), votes.worker.tolist(), [f"kind {k}" for k in votes.label.tolist()]
    )
    assert order_hint(named) is None


def test_an_order_is_suggested_and_never_taken() -> None:
    fitted = rarevote.fit(ratings())
    assert fitted.method.method_name == "anchored-rasch"
    assert "ordered=" in str(fitted.order_hint())
    assert rarevote.fit(ratings(), ordered="0..4").order_hint() is None


def test_a_wrong_order_is_a_warning_and_obeyed() -> None:
    crowd = ratings()
    words = r"the votes do not show this order \(\d+% of other orders fit better\): check it"
    with pytest.warns(RarevoteWarning, match=words):
        fitted = rarevote.fit(crowd, ordered=[0, 3, 1, 4, 2])
    assert fitted.method.method_name == "anchored-ordered"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rarevote.fit(crowd, ordered="0..4")
        rarevote.fit(crowd, ordered="4..0")
    assert order_doubt(tiny(), Grades.of("1,3,2,4")) is None  # too few pairs to tell


@pytest.mark.prove
def test_which_shared_sets_get_a_hint(shared_folder: Path) -> None:
    strong = set()
    for path in sorted((shared_folder / "datasets").glob("*/labels.csv")):
        task, worker, label, _ = load(shared_folder, path.parent.name)
        words = hint(Annotations.from_arrays(task, worker, label))
        if words is not None and "are confused" in words:
            strong.add(path.parent.name)
        else:
            assert words is None or "are numbers" in words, (path.parent.name, words)
    assert strong == {"web", "movie-reviews-4class"}
