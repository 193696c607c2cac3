"""The blocks that code writes say what the evidence, the methods and the command line say today."""

from __future__ import annotations

from pathlib import Path

import pytest
from cogapp import Cog

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if "[[[cog " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_is_up_to_date(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert Cog().main(["cog", "--check", "--diff", str(page)]) == 0, "run make docs-blocks"
