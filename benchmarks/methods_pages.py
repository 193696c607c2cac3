"""Writes the part of the docs that lists what methods can do, from their capabilities.

    python -m benchmarks.methods_pages

``tests/docs/test_methods_pages.py`` holds the page to them.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import cast

from benchmarks import pages
from benchmarks.evidence import REPOSITORY
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS, capability_table, methods_that

DOCS = REPOSITORY / "docs"


def capabilities_of_all() -> str:
    """The table of all methods, what its columns mean, and what is done about names that a fit has not seen."""
    header, rows = capability_table()
    meaning = [
        textwrap.fill(
            f"- **{name}**: can {Capabilities.verb(name)} ({Capabilities.where(name)})",
            120,
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
        for name in header[1:]
    ]
    cells = [[f"`{name}`", *of_method] for name, *of_method in rows]
    can = {name: cast("type[PredictsNewTasks]", METHODS[name].load()) for name in methods_that("predict")}
    knowing = ", ".join(f"`{name}`" for name, kind in can.items() if not kind.takes_unseen_workers)
    any_label = ", ".join(f"`{name}`" for name, kind in can.items() if kind.takes_new_labels)
    unseen = (
        f"People whom the fit has not seen are refused in new items by {knowing}, and count as average with the other "
        f"methods. Labels that it has not seen are refused, except by {any_label}, which weigh people alone."
    )
    paragraph = textwrap.fill(unseen, 120, break_on_hyphens=False, break_long_words=False)
    return "\n".join([pages.table(["", *header[1:]], cells), "", *meaning, "", paragraph])


BLOCKS: dict[str, dict[str, Callable[[], str]]] = {
    "methods.md": {"capabilities": capabilities_of_all},
}


def filled(page: str) -> str:
    """A page with its lists as the methods declare them."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return pages.filled(text, {name: make() for name, make in BLOCKS[page].items()}, page, mark="generated")


def main() -> None:
    for page in BLOCKS:
        (DOCS / page).write_text(filled(page), encoding="utf-8")
        print(f"docs/{page}")


if __name__ == "__main__":
    main()
