"""The blocks that code writes say what the evidence, the methods and the command line say today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cogapp import Cog

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if "[[[cog " in page.read_text(encoding="utf-8")]


# Which evidence is older than the code changes with every commit: make release-check compares that block.
STATE = re.compile(r"(?<=state_table\(\)\) \]\]\] -->).*?(?=<!-- \[\[\[end\]\]\])", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_is_up_to_date(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    made = tmp_path / page.name
    assert Cog().main(["cog", "-o", str(made), str(page)]) == 0
    expected, found = (STATE.sub("", path.read_text(encoding="utf-8")) for path in (made, page))
    assert found == expected, "run make docs-blocks"
