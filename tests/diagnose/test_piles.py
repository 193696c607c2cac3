"""Piles against every way to cut the sorted items in three."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.diagnose.piles import Pile, make_piles


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.4, 0.9, 0.97, 1.0]), min_size=1, max_size=25))
def test_piles_are_the_largest_that_keep_their_word(values: list[float]) -> None:
    found = make_piles(np.array(values))
    down = sorted(values, reverse=True)
    ends = [n for n in range(len(down) + 1) if n in (0, len(down)) or down[n - 1] != down[n]]
    sure = max(n for n in ends if sum(down[:n]) >= 0.9 * n - 1e-9)
    bottom = min(n for n in ends if sum(down[n:]) <= 0.1 * sum(down) + 1e-9)
    counts = found.n_items.tolist()
    assert counts[Pile.SURELY] == sure
    assert counts[Pile.SURELY_NOT] == len(down) - max(bottom, sure)
    assert sum(counts) == len(values)
    assert found.expected.sum() == pytest.approx(sum(values))
    for value, pile in zip(values, found.pile.tolist(), strict=True):
        assert all(p == pile for v, p in zip(values, found.pile.tolist(), strict=True) if v == value)
        assert all(p <= pile for v, p in zip(values, found.pile.tolist(), strict=True) if v <= value)


def test_nothing_to_pile() -> None:
    assert make_piles(np.empty(0)).n_items.tolist() == [0, 0, 0]
