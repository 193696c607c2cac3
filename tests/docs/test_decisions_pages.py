"""The evidence says what the how-tos on decisions claim in words."""

from __future__ import annotations

from benchmarks.decisions import BUDGETS, kinds, left
from benchmarks.evidence import read


def test_what_the_pages_claim_was_measured() -> None:
    by_kind = kinds(read("decisions"))
    real = by_kind.pop("real, two classes")
    assert len(real) == 21
    assert sum(int(row["lower_least_cost"]) for row in real) >= 16
    for budget in BUDGETS:
        assert left(real, "gain", budget) < min(left(real, other, budget) for other in ("least_certain", "random"))
    # Simulated crowds are the exception that the pages name: their class is rarer than the votes for it.
    for (row,) in by_kind.values():
        assert int(row["lower_least_cost"]) == 0


def test_intervals_cover_on_real_crowds() -> None:
    """Of the 90% intervals of the default, learnt without the dataset's source group."""
    sums = [row for row in read("expectations") if row["dataset"] == "sum of 31"]
    for method, least in (("anchored-rasch", 25), ("anchored-rasch, as shipped", 28)):
        covered = {row["figure"]: int(row["expected_covers"]) for row in sums if row["method"] == method}
        assert set(covered) == {"recall", "precision", "prevalence", "accuracy"}
        assert min(covered.values()) >= least
