"""The balanced decision against loops over items and classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.crowd import numerics
from rarevote.crowd.numerics import balanced_codes
from tests.methods.anchored_oracle import balanced_by_hand


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_classes=st.integers(1, 5),
    cap=st.sampled_from([1.0, 2.5, 10.0, 1e9]),
    voted_only=st.booleans(),
    coarse=st.booleans(),
)
def test_every_item_is_decided_as_by_hand(
    seed: int, n_classes: int, cap: float, voted_only: bool, coarse: bool
) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(rng.uniform(0.05, 1, n_classes), 30)
    if coarse:  # many ties, and probabilities of zero
        p = rng.integers(0, 3, (30, n_classes)) + np.eye(n_classes)[rng.integers(0, n_classes, 30)]
        p /= p.sum(axis=1, keepdims=True)
    votes = rng.integers(0, 3, (30, n_classes))
    f = p.mean(axis=0)
    found = balanced_codes(p, votes, cap, voted_only)
    wanted = [balanced_by_hand(p[i].tolist(), f.tolist(), votes[i].tolist(), cap, voted_only) for i in range(30)]
    assert found.tolist() == wanted


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    p, votes = rng.dirichlet([0.2, 1.0, 3.0], 1000), rng.integers(0, 3, (1000, 3))
    whole = balanced_codes(p, votes)
    monkeypatch.setattr(numerics, "_CELLS", 20)
    assert np.array_equal(balanced_codes(p, votes), whole)
    assert np.array_equal(balanced_codes(p.astype(np.float32), votes, shares=p.mean(axis=0)), whole)


def test_the_cap_says_how_many_false_alarms_a_miss_is_worth() -> None:
    p = np.array([[0.08, 0.92], [0.12, 0.88], [0.2, 0.8]])
    shares = np.array([0.01, 0.99])
    votes = np.ones((3, 2))
    for cap, wanted in ((1, [1, 1, 1]), (5, [1, 1, 0]), (10, [1, 0, 0]), (20, [0, 0, 0])):
        assert balanced_codes(p, votes, cap, shares=shares).tolist() == wanted


def test_an_unvoted_class_is_no_label_unless_nothing_else_is_possible() -> None:
    p = np.array([[0.9, 0.1], [1.0, 0.0], [0.4, 0.6]])
    votes = np.array([[0, 2], [0, 2], [0, 0]])
    assert balanced_codes(p, votes, 1.0).tolist() == [1, 0, 1]
    assert balanced_codes(p, votes, 1.0, voted_only=False).tolist() == [0, 0, 1]


def test_nothing_to_decide() -> None:
    assert balanced_codes(np.empty((0, 2)), np.empty((0, 2))).shape == (0,)
    assert balanced_codes(np.empty((0, 0)), np.empty((0, 0))).shape == (0,)
