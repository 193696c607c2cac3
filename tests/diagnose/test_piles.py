"""Piles against the rule, item by item."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.diagnose.piles import Pile, make_piles

WORTHS = st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.4, 0.5, 0.97])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(WORTHS, st.booleans()), min_size=1, max_size=25), st.sampled_from([0.5, 1.0, 20.0]))
def test_a_look_pays_above_the_mean_and_above_a_tenth_of_a_mistake(
    given_items: list[tuple[float, bool]], cost: float
) -> None:
    worths = [cost * worth for worth, _ in given_items]
    flagged = [flag for _, flag in given_items]
    confidence = [1 - worth for worth, _ in given_items]
    found = make_piles(np.array(worths), np.array(flagged), np.array(confidence), cheapest=cost)
    mean = sum(worths) / len(worths)
    for worth, flag, pile in zip(worths, flagged, found.pile.tolist(), strict=True):
        if worth > mean + 1e-6 and worth >= 0.1 * cost:
            assert pile == Pile.LOOK
        elif worth < mean - 1e-6 or worth < 0.1 * cost - 1e-6 or len(set(worths)) == 1:
            assert pile == (Pile.FLAGGED if flag else Pile.NOT_FLAGGED)
    assert found.n_items.sum() == len(worths)
    assert found.n_look < len(worths), "some item is worth no more than the mean"
    assert set(found.by_worth[: found.n_look].tolist()) == set(np.flatnonzero(found.pile == Pile.LOOK).tolist())
    for pile in Pile:
        inside = [c for c, p in zip(confidence, found.pile.tolist(), strict=True) if p == pile]
        if inside:
            assert (found.least[pile], found.most[pile]) == (min(inside), max(inside))
    assert found.n_sure == sum(c >= 0.9 for c in confidence)


def test_nothing_to_pile() -> None:
    empty = np.empty(0)
    found = make_piles(empty, empty.astype(bool), empty)
    assert found.n_items.tolist() == [0, 0, 0]


def test_a_crowd_that_doubts_every_item_alike_has_no_pile_to_look_at() -> None:
    found = make_piles(np.full(7, 0.3), np.zeros(7, dtype=bool), np.full(7, 0.7))
    assert found.n_look == 0
    assert found.n_sure == 0
    assert found.most[Pile.NOT_FLAGGED] == pytest.approx(0.7)
