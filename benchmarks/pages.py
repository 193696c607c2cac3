"""Blocks of documentation pages that cog writes (``make docs-blocks``) and compares (tests/docs/test_blocks.py)."""

from __future__ import annotations

import re

from markdown.extensions.toc import slugify

from benchmarks.evidence import REPOSITORY

_WIDTH = 120


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of a page."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def headings(text: str) -> list[str]:
    """The headings of the second level, without those in blocks of code.

    >>> headings("# A\\n## B\\n```text\\n## no\\n```\\n## C (`c`)\\n")
    ['B', 'C (`c`)']
    """
    return re.findall(r"^## (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)


def contents(page: str) -> str:
    """Links to the sections of a page, which is named from ``docs``."""
    found = headings((REPOSITORY / "docs" / page).read_text(encoding="utf-8"))
    links = [
        f"[{re.sub(r' [(]`.*', '', heading).replace('`', '')}](#{slugify(heading.replace('`', ''), '-')})"
        for heading in found
    ]
    lines = ["**On this page:**"]
    for place, link in enumerate(links, 1):
        link += " ·" if place < len(links) else ""
        if len(lines[-1]) + 1 + len(link) > _WIDTH:
            lines.append(link)
        else:
            lines[-1] += f" {link}"
    return "\n".join(lines)


def show(text: str) -> None:
    """Make a text what stands in the block that cog is at."""
    import cog  # there while cog runs

    cog.out(f"\n{text}\n\n")
