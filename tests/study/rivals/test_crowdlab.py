"""CROWDLAB against its definition, computed by hand from the votes, and where cleanlab has no answer."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.study.rivals import WITHOUT

if os.environ.get("RAREVOTE_REQUIRE_RIVALS") != "1":
    pytest.importorskip("cleanlab", reason=WITHOUT)

from rarevote.errors import InputError
from rarevote.study.peers.crowdlab import crowdlab


def test_probabilities_of_all_classes() -> None:
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 80)
    item = np.repeat(np.arange(80), 3)
    worker = np.concatenate([rng.choice(6, 3, replace=False) for _ in range(80)])
    label = np.where(rng.random(240) < 0.7, truth[item], rng.integers(0, 3, 240))
    model = rng.dirichlet(np.ones(3), 80) * 0.5 + 0.5 * np.eye(3)[truth]
    p = crowdlab((item, worker, label), model)
    assert p.sum(axis=1) == pytest.approx(np.ones(80))
    # That it agrees with what cleanlab reports of the consensus, the function itself checks; the rest is linear in the
    # votes: on an item, a class with one vote more than another has more, model apart.
    same = crowdlab((item, worker, label), np.full((80, 3), 1 / 3))
    for n in range(80):
        votes = label[item == n]
        absent = [k for k in range(3) if k not in votes]
        if len(absent) == 2:
            assert same[n, absent[0]] == pytest.approx(same[n, absent[1]])
            assert same[n, votes[0]] > same[n, absent[0]]


def test_single_votes_have_no_answer() -> None:
    votes = (np.arange(6), np.array([0, 1, 0, 1, 0, 1]), np.array([0, 1, 0, 1, 1, 0]))
    with pytest.raises(InputError, match="cleanlab"):
        crowdlab(votes, np.full((6, 2), 0.5))
