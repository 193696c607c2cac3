"""Altered plans that are accepted certify no more than an honest audit. A short run; the long one has evidence."""

from __future__ import annotations

import sys
from collections import Counter
from math import inf

import numpy as np
import pytest
from proofs.plan_fuzz import Honest, executed, fuzzed

from rarevote.audit import planning

pytestmark = pytest.mark.prove  # seconds each, and rarely breaks

N = 260


def test_altered_plans_that_are_accepted_certify_no_more_than_honest_ones() -> None:
    found = fuzzed(N, seed=3, n_plans=12)
    assert sum(counts["certify_more"] for counts in found.values()) == 0
    assert sum(counts["accepted"] for counts in found.values()) > N // 20
    assert all(found[kind]["refused"] > N // 40 for kind in ("hindsight", "gamma", "v", "target", "p0", "ties"))


def test_without_planning_again_some_would_certify_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer can find what it looks for."""
    monkeypatch.setattr(sys.modules["rarevote.audit.verify"], "replan", lambda _: ([], []))
    found = fuzzed(N // 2, seed=3, n_plans=12)
    assert sum(counts["certify_more"] for counts in found.values()) > 2


def test_if_all_sets_tied_the_choice_between_their_weights_would_certify_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all costs did that are lost in rounding: a cost of 1e-300 or 1e308 for a flag."""
    monkeypatch.setattr(planning, "_cost_error", lambda *_: inf)
    generator, plans = np.random.default_rng(3), [Honest(36 + number) for number in range(6)]
    found = Counter(executed(plans[number % len(plans)], generator, "ties") for number in range(2 * len(plans)))
    assert found["certify_more"] > 0
