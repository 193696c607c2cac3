"""Parts of documentation pages that programs write, between marks: `<!-- measured: NAME --> ... <!-- end: NAME -->`."""

from __future__ import annotations

import re
from collections.abc import Mapping


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of a page."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def filled(text: str, blocks: Mapping[str, str], page: str, *, mark: str = "measured") -> str:
    """The page with every block as it is rendered now.

    Args:
        mark: "measured" for figures of the evidence, "generated" for what follows from the code.

    Raises:
        ValueError: a block is not on the page.
    """
    for name, rendered in blocks.items():
        begin, end = f"<!-- {mark}: {name} -->", f"<!-- end: {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise ValueError(f"{page} must have {begin} ... {end} once")
        block = f"{begin}\n\n{rendered}\n\n{end}"
        text = pattern.sub(lambda _, block=block: block, text)  # type: ignore[misc]
    return text
