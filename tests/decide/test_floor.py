"""The floor against an exact search, and the bound without positives against enumeration."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote.decide.floor import exact_share, floor_reviews, most_positives, positives_that_break
from rarevote.errors import ParameterError


def by_search(found: int, unflagged: int, target: Fraction, alpha: Fraction) -> int:
    """The definition: count up until the hypergeometric probability is small enough."""
    missed = 1
    while Fraction(found, found + missed) >= target:
        missed += 1
    if missed > unflagged:
        return 0
    n = 0
    while Fraction(comb(unflagged - missed, n), comb(unflagged, n)) > alpha:
        n += 1
    return n


@given(
    st.integers(0, 120),
    st.integers(1, 150),
    st.sampled_from(["0.9", "0.8", "0.95", "2/3", "1"]),
    st.sampled_from(["0.95", "0.8", "0.5", "0.99"]),
)
def test_floor_is_the_exact_search(found: int, unflagged: int, target: str, confidence: str) -> None:
    expected = by_search(found, unflagged, Fraction(target), 1 - Fraction(confidence))
    assert floor_reviews(found, unflagged, target=target, confidence=confidence) == expected


@pytest.mark.parametrize(
    ("found", "unflagged", "least"),
    [(500, 500, 25), (375, 2300, 157), (200, 5200, 634), (120, 10_000, 1926), (10, 950, 738)],
)
def test_known_floors(found: int, unflagged: int, least: int) -> None:
    assert floor_reviews(found, unflagged) == least


def test_equality_is_equality() -> None:
    # 19 of 20 reviewed leaves a single positive unseen with probability exactly 1/20.
    assert floor_reviews(1, 20, target=1, confidence=0.95) == 19
    # In floating point 9 (1 - 0.9) / 0.9 is below 1.
    assert [positives_that_break(k, exact_share(0.9, "target")) for k in (8, 9, 17, 18, 27)] == [1, 2, 2, 3, 4]


def test_many_items_are_no_matter() -> None:
    n = floor_reviews(50_000, 900_000)
    m = positives_that_break(50_000, Fraction(9, 10))
    assert n == pytest.approx(900_000 * (1 - 0.05 ** (1 / m)), rel=0.02)


def test_shares_are_read_as_written() -> None:
    assert exact_share(0.95, "confidence") == Fraction(19, 20)
    with pytest.raises(ParameterError, match="target must be a share"):
        exact_share("nine tenths", "target")
    with pytest.raises(ParameterError, match="between 0 and 1"):
        floor_reviews(5, 5, target=1.5)


@pytest.mark.parametrize("n_items", [12, 40])
def test_most_positives_errs_as_seldom_as_it_says(n_items: int) -> None:
    # Uniform draws without replacement: the chance to see none of m positives is hypergeometric, hence exact.
    confidence = Fraction(9, 10)
    for reviewed in range(n_items):
        bound = most_positives([1 / (n_items - i) for i in range(reviewed)], n_items - reviewed, confidence=confidence)
        for m in range(bound + 1, n_items - reviewed + 1):
            assert Fraction(comb(n_items - m, reviewed), comb(n_items, reviewed)) <= 1 - confidence + Fraction(1, 10**9)
        if bound < n_items - reviewed:
            assert Fraction(comb(n_items - bound, reviewed), comb(n_items, reviewed)) > 1 - confidence
