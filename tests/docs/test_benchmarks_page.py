"""docs/benchmarks.md and docs/install-size.md say what the evidence says."""

from __future__ import annotations

import pytest
from benchmarks import benchmarks_page


@pytest.mark.parametrize("page", list(benchmarks_page.BLOCKS))
def test_the_page_is_up_to_date(page: str) -> None:
    text = (benchmarks_page.DOCS / page).read_text(encoding="utf-8")
    assert text == benchmarks_page.filled(page), "the figures changed: run python -m benchmarks.benchmarks_page"
