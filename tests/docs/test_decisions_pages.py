"""The how-tos on decisions say what the evidence says, and the evidence says what the pages claim in words."""

from __future__ import annotations

import csv

import pytest
from benchmarks import decisions_pages
from benchmarks.decisions import BUDGETS, kinds, left
from benchmarks.evidence import EVIDENCE


@pytest.mark.parametrize("page", list(decisions_pages.BLOCKS))
def test_the_page_is_up_to_date(page: str) -> None:
    text = (decisions_pages.HOWTO / page).read_text(encoding="utf-8")
    assert text == decisions_pages.filled(page), "the figures changed: run python -m benchmarks.decisions_pages"


def test_what_the_pages_claim_was_measured() -> None:
    with (EVIDENCE / "decisions.csv").open(newline="", encoding="utf-8") as handle:
        by_kind = kinds(csv.DictReader(handle))
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
    with (EVIDENCE / "expectations.csv").open(newline="", encoding="utf-8") as handle:
        sums = [row for row in csv.DictReader(handle) if row["dataset"] == "sum of 31"]
    covered = {row["figure"]: int(row["after_covers"]) for row in sums if row["method"] == "anchored-rasch"}
    assert set(covered) == {"recall", "precision", "prevalence", "accuracy"}
    assert min(covered.values()) >= 27
