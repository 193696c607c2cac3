"""Altered plans that are accepted certify no more than an honest audit. A short run; the long one has evidence."""

from __future__ import annotations

from benchmarks.plan_fuzz import fuzzed


def test_altered_plans_that_are_accepted_certify_no_more_than_honest_ones() -> None:
    found = fuzzed(240, seed=3, n_plans=12)
    assert sum(counts["certify_more"] for counts in found.values()) == 0
    assert sum(counts["accepted"] for counts in found.values()) > 10
    assert all(found[kind]["refused"] > 5 for kind in ("gamma", "v", "target", "p0"))
