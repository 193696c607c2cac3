"""Pages that people find their way in: the command first, a table of contents on long pages."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from benchmarks import pages

from tests.docs.test_docs import PAGES, by_name

_LONG = 1200
HOWTOS = [page for page in PAGES if page.parent.name == "howto"]


def test_doctests() -> None:
    assert doctest.testmod(pages).failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=by_name)
def test_a_long_page_has_a_table_of_contents(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if len(text.split()) <= _LONG:
        return
    before, *_ = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)
    linked = len(set(re.findall(r"\]\(#([^)]+)\)", before)))
    assert linked >= len(pages.headings(text)), "call pages.contents before the first section"


@pytest.mark.parametrize("page", HOWTOS, ids=by_name)
def test_a_how_to_begins_with_the_command(page: Path) -> None:
    _, _, rest = page.read_text(encoding="utf-8").partition("\n")
    assert rest.lstrip().startswith(("```bash", "```console", "```python", "```text"))
