"""The list in the docs of what methods can do, from their capabilities."""

from __future__ import annotations

import textwrap
from typing import cast

from benchmarks import pages
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS, capability_table, methods_that


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
