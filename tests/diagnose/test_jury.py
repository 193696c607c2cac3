"""The jury condition against brute force over delta and over the number of newcomers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.diagnose.jury import jury_condition
from rarevote.errors import InputError

crowds = st.lists(st.floats(0, 1, width=16), min_size=1, max_size=12)


def left_side(accuracies: list[float], delta: float) -> float:
    """The definition, word by word."""
    size = len(accuracies)
    good = [p for p in accuracies if p > 0.5 + delta]
    bad = [p for p in accuracies if p <= 0.5]
    return len(good) / size * (1 + 2 * delta) + 2 * len(bad) / size * (min(bad) if bad else 0.0)


@given(crowds)
@settings(deadline=None)
def test_left_side_is_the_best_that_any_delta_gives(accuracies: list[float]) -> None:
    jury = jury_condition(np.array(accuracies)[:, None])
    grid = [*np.linspace(0, 0.5, 401), *(p - 0.5 - 1e-9 for p in accuracies if p > 0.5 + 1e-9)]
    best = max(left_side(accuracies, delta) for delta in grid)
    assert jury.left_side[0] == pytest.approx(best, abs=1e-6)
    # Attained just below the reported delta, with the reported G.
    if jury.delta[0] > 0:
        just_below = jury.delta[0] - 1e-9
        assert left_side(accuracies, just_below) == pytest.approx(jury.left_side[0], abs=1e-6)
        assert sum(p > 0.5 + just_below for p in accuracies) == jury.n_good[0]
    assert jury.n_bad[0] == sum(p <= 0.5 for p in accuracies)


@given(crowds)
@settings(deadline=None)
def test_missing_specialists_by_counting_up(accuracies: list[float]) -> None:
    jury = jury_condition(np.array(accuracies)[:, None])
    missing = jury.missing_specialists[0]
    if jury.delta[0] == 0:
        assert missing == np.inf
        return
    if missing > 10_000:
        return
    margin, bad = 1 + 2 * jury.delta[0], 2 * jury.n_bad[0] * jury.lower[0]
    count = 0
    while not ((jury.n_good[0] + count) * margin + bad) / (len(accuracies) + count) > 1:
        count += 1
    assert missing == count
    assert (missing == 0) == jury.holds[0]


@given(crowds)
@settings(deadline=None)
def test_bound_never_exceeds_twice_the_mean_accuracy(accuracies: list[float]) -> None:
    jury = jury_condition(np.array(accuracies)[:, None])
    assert jury.left_side[0] <= 1 + 2 * jury.mean_margin[0] + 1e-12
    assert jury.mean_margin[0] == pytest.approx(np.mean(accuracies) - 0.5)


def test_hand_computed_crowd_of_two_classes() -> None:
    # Class 0: four at .9, no bad: 1 + 2 x .4. Class 1: two at .75, bad .4 and .2: 2/4 x 1.5 + 2 x 2/4 x .2.
    jury = jury_condition([[0.9, 0.75], [0.9, 0.75], [0.9, 0.4], [0.9, 0.2]])
    np.testing.assert_allclose(jury.left_side, [1.8, 0.95])
    np.testing.assert_allclose(jury.delta, [0.4, 0.25])
    np.testing.assert_allclose(jury.lower, [0.5, 0.2])
    assert jury.n_good.tolist() == [4, 2]
    assert jury.n_bad.tolist() == [0, 2]
    assert jury.holds.tolist() == [True, False]
    # (2 + s) 1.5 + .8 > 4 + s  <=>  s > .4
    assert jury.missing_specialists.tolist() == [0, 1]
    np.testing.assert_allclose(jury.mean_margin, [0.4, 0.025])


def test_delta_gives_up_weak_specialists_for_margin_only_when_it_pays() -> None:
    # All three: 2 x 3 x .55 / 3 = 1.1; the two best: 2 x 2 x .95 / 3 = 1.27.
    jury = jury_condition([[0.95], [0.95], [0.55]])
    assert jury.n_good[0] == 2
    assert jury.left_side[0] == pytest.approx(3.8 / 3)


@pytest.mark.parametrize("bad", [[0.5, 0.6], np.empty((0, 2)), [[0.5, 1.2]], [[np.nan]], [[-0.1]]])
def test_refuses_what_is_no_table_of_probabilities(bad: object) -> None:
    with pytest.raises(InputError, match="accuracies must"):
        jury_condition(bad)  # type: ignore[arg-type]
