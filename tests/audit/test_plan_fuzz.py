"""Altered plans that are accepted certify no more than an honest audit. A short run; the long one has evidence."""

from __future__ import annotations

import sys

import pytest
from proofs.plan_fuzz import fuzzed

pytestmark = pytest.mark.prove  # seconds each, and rarely breaks

N = 260


def test_altered_plans_that_are_accepted_certify_no_more_than_honest_ones() -> None:
    found = fuzzed(N, seed=3, n_plans=12)
    assert sum(counts["certify_more"] for counts in found.values()) == 0
    assert sum(counts["accepted"] for counts in found.values()) > N // 20
    assert all(found[kind]["refused"] > N // 40 for kind in ("hindsight", "gamma", "v", "target", "p0"))


def test_without_planning_again_some_would_certify_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fuzzer can find what it looks for."""
    monkeypatch.setattr(sys.modules["rarevote.audit.verify"], "replan", lambda _: ([], []))
    found = fuzzed(N // 2, seed=3, n_plans=12)
    assert sum(counts["certify_more"] for counts in found.values()) > 2
