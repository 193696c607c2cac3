"""Draws: the documented text by hand, every item with its probability, nothing twice."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
import pytest

from rarevote.audit.strata import Urn, build_strata, cuts, whole_weights
from rarevote.errors import InputError


def test_a_draw_is_what_the_text_says() -> None:
    hashed = hashlib.sha256(b"00000000000000ff:2:0").digest()
    a, b = (int.from_bytes(part, "big") / 2**128 for part in (hashed[:16], hashed[16:]))
    stratum, place = Urn([10, 30]).draw(255, 2, 0, [3, 1])
    assert stratum == (0 if a * 60 < 30 else 1)
    assert place == int(b * (10, 30)[stratum])


def test_every_item_is_drawn_once() -> None:
    urn = Urn([5, 0, 40, 1])
    drawn = [urn.draw(3, 1, i, [9, 9, 1, 100]) for i in range(46)]
    assert sorted(drawn) == [(0, i) for i in range(5)] + [(2, i) for i in range(40)] + [(3, 0)]
    assert urn.left == [0, 0, 0, 0]


def test_first_and_second_draws_have_the_probabilities_of_their_weights() -> None:
    weights, sizes, n = [5, 1], [2, 4], 20_000
    first, pairs = Counter[tuple[int, int]](), Counter[tuple[tuple[int, int], tuple[int, int]]]()
    for seed in range(n):
        urn = Urn(sizes)
        pair = urn.draw(seed, 1, 0, weights), urn.draw(seed, 1, 1, weights)
        first[pair[0]] += 1
        pairs[pair] += 1
    items = [(b, i) for b in range(2) for i in range(sizes[b])]
    for item in items:
        assert first[item] / n == pytest.approx(weights[item[0]] / 14, abs=0.012)
    for one in items:
        for two in items:
            if one != two:
                q = weights[one[0]] / 14 * weights[two[0]] / (14 - weights[one[0]])
                assert pairs[one, two] / n == pytest.approx(q, abs=0.012)


def test_weights_become_whole_numbers() -> None:
    w = np.array([0.3, 41.8, 0.002])
    whole = whole_weights(w)
    assert all(type(x) is int for x in whole)
    np.testing.assert_allclose(np.array(whole) / whole[1], w / w[1], rtol=1e-5)


def test_cuts_follow_the_rule() -> None:
    r, expected = 0.6 * 100, []
    while r < 0.97 * 3000:
        expected.append(round(r))
        r = max(1.15 * r, r + 2)
    assert cuts(3000, 100.0) == [*expected, 3000]
    assert cuts(3, 0.1) == [3]
    assert cuts(10, 0.0)[:3] == [3, 5, 7]  # T is at least 5, steps at least 2


def test_the_ranking_is_by_score_and_ties_depend_on_the_seed_alone() -> None:
    scores = [0.5, 0.9, 0.5, 0.1, 0.5, 0.5]
    order = [task for group in build_strata(list("abcdef"), scores, 1).tasks for task in group]
    assert (order[0], order[-1]) == ("b", "d")
    again = build_strata(list("fedcba"), scores[::-1], 1).tasks
    assert [task for group in again for task in group] == order
    orders = {tuple(t for g in build_strata(list("abcdef"), scores, seed).tasks for t in g) for seed in range(200)}
    assert len(orders) == 24


def test_tasks_without_a_score_are_a_last_stratum() -> None:
    strata = build_strata([1, 2, 3, 4], [0.2, float("nan"), 0.6, float("nan")], 0)
    assert strata.tasks[-1] == (2, 4)
    assert strata.p0[-1] == pytest.approx(0.4)
    assert strata.n_tasks == 4
    assert strata.mean_score == pytest.approx(0.4)


def test_bad_scores_are_refused() -> None:
    with pytest.raises(InputError, match=r"task 'b' has the score 1.5"):
        build_strata(["a", "b"], [0.1, 1.5], 0)
    with pytest.raises(InputError, match="no task has a score"):
        build_strata(["a"], [float("nan")], 0)
    with pytest.raises(InputError, match="a score for every task"):
        build_strata(["a"], [0.1, 0.2], 0)


def test_scores_below_zero_are_refused_too() -> None:
    with pytest.raises(InputError, match=r"task 'c' has the score -0.2: scores are probabilities"):
        build_strata(["a", "b", "c"], [0.0, 1.0, -0.2], 0)
