"""The bets against a replay in plain Python and against enumeration of everything a draw could bring."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from rarevote.audit import Audit
from rarevote.audit.wealth import Stakes, Wealth
from rarevote.errors import ParameterError
from tests.audit.worlds import independent_replay, started, world


def played(audit: Audit, truth: list[bool], *, unsure: set[int], most: int = 150) -> Audit:
    while audit.n_reviewed < most and (review := audit.round(30)):
        audit.answer({task: None if task in unsure else truth[task] for task in review})
        audit.worst_case()
    return audit


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"aim": "estimate", "target": "2/3", "confidence": 0.8},
        {"gold": {i: i % 3 == 0 for i in range(40)}, "target": 0.8},
        {"flag_cost": 8.0},
    ],
)
def test_an_independent_replay_gives_the_same_wealth(options: dict[str, Any]) -> None:
    audit, truth = started(300, **options)
    played(audit, truth, unsure=set(range(0, 300, 17)))
    assert audit.n_reviewed > 20
    np.testing.assert_allclose(audit.wealth.log_wealth, independent_replay(audit.to_json()), rtol=1e-12, atol=1e-12)


def test_the_same_to_the_last_item() -> None:
    scores, truth = world(60)
    audit = Audit.start(range(60), scores, name="x", target=0.75, seed=3)
    while review := audit.round(7):
        audit.answer({task: truth[task] for task in review})
    assert audit.n_reviewed == 60
    replayed = independent_replay(audit.to_json())
    np.testing.assert_allclose(audit.wealth.log_wealth, replayed, rtol=1e-12, atol=1e-12)
    # All is known: exactly the sets with the recall are won.
    order = [task for group in audit.plan.strata.tasks for task in group]
    ends = np.cumsum(audit.plan.strata.sizes)[:-1]
    enough = [4 * sum(truth[t] for t in order[:end]) >= 3 * sum(truth) for end in ends]
    assert [w == inf for w in replayed] == enough


@pytest.mark.parametrize("options", [{}, {"gold": {i: i % 3 == 0 for i in range(40)}, "target": "2/3"}])
def test_answers_at_once_and_one_by_one_are_the_same_to_the_last_bit(options: dict[str, Any]) -> None:
    at_once, truth = started(300, **options)
    one_by_one, _ = started(300, **options)
    while at_once.n_reviewed < 250 and (review := at_once.round(40)):
        at_once.answer({task: truth[task] for task in review})
        for task in one_by_one.round(40):
            one_by_one.answer({task: truth[task]})
        assert at_once.wealth.log_wealth.tolist() == one_by_one.wealth.log_wealth.tolist()
        assert at_once.wealth.crossed.tolist() == one_by_one.wealth.crossed.tolist()
        assert at_once.bought == one_by_one.bought


def random_state(generator: np.random.Generator) -> tuple[Wealth, Stakes, list[list[bool]]]:
    """A state in the middle of an audit: exhausted strata, gold and worst cases included; and what is left."""
    sizes = generator.integers(1, 7, generator.integers(2, 6)).tolist()
    target = Fraction(int(generator.integers(1, 10)), 10)
    wealth = Wealth(sizes, target=target, confidence=Fraction(19, 20), known_positives=int(generator.integers(0, 4)))
    n = len(sizes)
    stakes = Stakes(
        tuple(generator.integers(1, 1000, n).tolist()), generator.random(n), generator.choice([0.01, 0.35, 0.98], n - 1)
    )
    left = [(generator.random(size) < generator.random()).tolist() for size in sizes]
    for b, group in enumerate(left):
        for _ in range(int(generator.integers(0, len(group) + 1))):
            y = group.pop()
            wealth.observe([b], [None if generator.random() < 0.2 else y], stakes)
    return wealth, stakes, left


def copied(wealth: Wealth) -> Wealth:
    other = Wealth(
        wealth.sizes.tolist(), target=wealth.target, confidence=Fraction(19, 20), known_positives=wealth.known_positives
    )
    for name in ("left", "reviewed", "positives", "worst", "log_wealth", "crossed", "_scaled"):
        setattr(other, name, getattr(wealth, name).copy())
    return other


@pytest.mark.prove
def test_no_bet_is_expected_to_win_where_the_recall_is_too_low() -> None:
    generator = np.random.default_rng(5)
    bad_sets = 0
    for _ in range(2000):
        wealth, stakes, left = random_state(generator)
        omega = sum(w * len(group) for w, group in zip(stakes.w, left, strict=True))
        if not omega:
            continue
        n_sets = len(left) - 1
        wealth.log_wealth[:] = 0.0
        mean, value = np.zeros(n_sets), np.zeros(n_sets)
        terms = wealth.terms(stakes)
        for b, group in enumerate(left):
            for y in set(group):
                chance = stakes.w[b] * group.count(y) / omega
                after = copied(wealth)
                after.observe([b], [y], stakes)
                mean += chance * np.exp(after.log_wealth)
                gain = np.where(np.arange(n_sets) < b, y, -float(wealth.odds) * (y - stakes.v[b]))
                value += chance * (terms.base + gain * terms.inverse_q[b])
        c = wealth.odds
        for j in range(n_sets):
            # What is missed and what is found, by counting; worst cases are as they were counted.
            tail = sum(map(sum, left[j + 1 :])) + int((wealth.positives + wealth.worst)[j + 1 :].sum())
            inside = sum(map(sum, left[: j + 1])) + int(wealth.positives[: j + 1].sum())
            D = tail - c * (inside + wealth.known_positives)
            assert value[j] == pytest.approx(float(D), abs=1e-9)
            if D > 0:
                bad_sets += 1
                assert mean[j] <= 1 + 1e-12
            if terms.top[j] <= 0:
                assert D <= 0
    assert bad_sets > 1500


def test_the_worst_case_is_at_least_as_bad_as_any_answer() -> None:
    generator = np.random.default_rng(6)
    for _ in range(500):
        wealth, stakes, left = random_state(generator)
        wealth.log_wealth[:] = 0.0
        for b in range(len(left)):
            if left[b]:
                outcomes = []
                for y in (None, True, False):
                    after = copied(wealth)
                    after.observe([b], [y], stakes)
                    outcomes.append((after.log_wealth, after.surplus))
                for log_wealth, surplus in outcomes[1:]:
                    assert (outcomes[0][0] <= log_wealth + 1e-12).all()
                    assert (outcomes[0][1] >= surplus - 1e-12).all()


def test_equality_is_won_in_exact_arithmetic() -> None:
    # 9 found, 1 missed: the recall is 9/10 and not below; 0.1 / 0.9 * 9 in floating point is not 1.
    wealth = Wealth([9, 1], target=Fraction(9, 10), confidence=Fraction(19, 20))
    stakes = Stakes((1, 1), np.array([0.5, 0.5]), np.array([0.01]))
    for _ in range(9):
        wealth.observe([0], [True], stakes)
    wealth.observe([1], [True], stakes)
    assert wealth.log_wealth[0] == inf
    assert wealth.certified == 0
    one_less = Wealth([9, 1], target=Fraction(9, 10), confidence=Fraction(19, 20))
    for i in range(9):
        one_less.observe([0], [i > 0], stakes)
    one_less.observe([1], [True], stakes)
    assert one_less.log_wealth[0] < 1
    assert one_less.certified == 1


@pytest.mark.parametrize(("v", "won"), [(0.5, True), (np.nextafter(0.5, 1), True), (np.nextafter(0.5, 0), False)])
def test_the_last_bit_decides_whether_anything_is_left_to_fail(v: float, won: bool) -> None:
    # S = -13/9, 2 flagged items left at v = 1/2, one in the tail with 1/q = 28/18: top = -13/9 - 1/9 + 14/9 = 0.
    wealth = Wealth([15, 1], target=Fraction(9, 10), confidence=Fraction(19, 20))
    stakes = Stakes((5, 18), np.array([v, 0.5]), np.array([0.5]))
    for _ in range(13):
        wealth.observe([0], [True], stakes)
    wealth.log_wealth[:], wealth.crossed[:] = 0.0, False
    wealth.settle(wealth.terms(stakes))
    assert (wealth.log_wealth[0] == inf) == won
    if not won:
        wealth.observe([1], [True], stakes)  # X = top > 0: rounding must not turn a loss into a gain
        assert np.log(0.5) <= wealth.log_wealth[0] <= 1e-7


def test_certified_goes_inwards_and_stops_at_the_first_gap() -> None:
    wealth = Wealth([5, 5, 5, 5], target=Fraction(9, 10), confidence=Fraction(19, 20), known_positives=1)
    for crossed, certified in (([0, 0, 0], 3), ([0, 0, 1], 2), ([1, 0, 1], 2), ([0, 1, 1], 1), ([1, 1, 1], 0)):
        wealth.crossed = np.array(crossed, dtype=bool)
        assert wealth.certified == certified
    nothing_found = Wealth([5, 5], target=Fraction(9, 10), confidence=Fraction(19, 20))
    nothing_found.crossed[:] = True
    assert nothing_found.certified == 1


def test_a_target_of_ten_digits_would_overflow_and_is_refused() -> None:
    for target in (Fraction(1, 10**9), Fraction(10**9 + 1, 10**9)):
        with pytest.raises(ParameterError, match=r"has more than 9 digits in its numerator or denominator: give fewer"):
            Wealth([5, 5], target=target, confidence=Fraction(19, 20))
    Wealth([5, 5], target=Fraction(1, 10**9 - 1), confidence=Fraction(19, 20))
