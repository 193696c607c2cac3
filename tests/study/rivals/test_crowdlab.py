"""CROWDLAB against its definition, computed by hand from the votes, and where cleanlab has no answer."""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.study.rivals import WITHOUT

if os.environ.get("RAREVOTE_REQUIRE_RIVALS") != "1":
    pytest.importorskip("cleanlab", reason=WITHOUT)

from cleanlab.multiannotator import get_label_quality_multiannotator

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
    # cleanlab itself reports the probability of every label that was given.
    table = np.full((80, 6), np.nan)
    table[item, worker] = label
    reported = get_label_quality_multiannotator(table, model, verbose=False)["detailed_label_quality"].to_numpy()
    assert p[item, label] == pytest.approx(reported[item, worker], abs=1e-9)
    # Classes without a vote differ by the model alone.
    even = crowdlab((item, worker, label), np.full((80, 3), 1 / 3))
    absent = [(n, [k for k in range(3) if k not in label[item == n]]) for n in range(80)]
    pairs = [(even[n, a], even[n, b]) for n, (a, b) in (one for one in absent if len(one[1]) == 2)]
    assert len(pairs) > 10
    assert [a for a, _ in pairs] == pytest.approx([b for _, b in pairs])


def test_single_votes_have_no_answer() -> None:
    votes = (np.arange(6), np.array([0, 1, 0, 1, 0, 1]), np.array([0, 1, 0, 1, 1, 0]))
    with pytest.raises(InputError, match="cleanlab"):
        crowdlab(votes, np.full((6, 2), 0.5))
