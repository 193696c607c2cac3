"""The how-tos on decisions say what the evidence says, and the evidence says what was asked for."""

from __future__ import annotations

import pytest
from benchmarks import decisions_pages
from benchmarks.evidence import EVIDENCE


@pytest.mark.parametrize("page", list(decisions_pages.BLOCKS))
def test_the_page_is_up_to_date(page: str) -> None:
    text = (decisions_pages.HOWTO / page).read_text(encoding="utf-8")
    assert text == decisions_pages.filled(page), "the figures changed: run python -m benchmarks.decisions_pages"


@pytest.mark.parametrize(("imbalance", "tasks"), decisions_pages.KINDS)
@pytest.mark.parametrize("gold", ["0", "0.05"])
def test_what_the_pages_claim_was_measured(imbalance: str, tasks: str, gold: str) -> None:
    found, crowds = decisions_pages.figures(EVIDENCE / "decisions.csv")

    def of(figure: str) -> float:
        return found["default", imbalance, tasks, gold, figure]

    assert crowds["default"] == 100
    assert of("prevalence: interval contains the truth") >= 85
