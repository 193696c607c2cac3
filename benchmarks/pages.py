"""Blocks of documentation pages that cog writes (``make docs-blocks``) and compares (tests/docs/test_blocks.py)."""

from __future__ import annotations


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of a page."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def show(text: str) -> None:
    """Make a text what stands in the block that cog is at."""
    import cog  # there while cog runs

    cog.out(f"\n{text}\n\n")
