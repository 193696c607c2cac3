"""Lists in the docs of what methods can do, from their capabilities."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import cast

from benchmarks import pages
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import METHODS, capability_table, methods_that


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def capabilities_of_all() -> str:
    """The table of all methods, and what its columns mean."""
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
    return "\n".join([pages.table(["", *header[1:]], cells), "", *meaning])


def new_items() -> str:
    """Who labels new items, and what is done about people and labels that the fit has not seen."""
    can = {name: cast("type[PredictsNewTasks]", METHODS[name].load()) for name in methods_that("predict")}
    average = _named(name for name, kind in can.items() if kind.takes_unseen_workers)
    any_label = _named(name for name, kind in can.items() if kind.takes_new_labels)
    return pages.table(
        ["", ""],
        [
            ["methods that can", f"{_named(can)}; the others say that they cannot"],
            [
                "people the fit has not seen",
                f"count as average with {average}, and the command says how many; refused by the others",
            ],
            ["labels the fit has not seen", f"refused, unless the method weighs people alone ({any_label})"],
            ["gold of the fit", "is not remembered"],
        ],
    )


def explained() -> str:
    """Which methods have a share of each vote."""
    return _paragraph(
        f"Such parts exist for {_named(methods_that('explain'))}. The other methods have none, and the command says so "
        "and shows votes and posterior."
    )


def checked() -> str:
    """Of which methods the fit can be checked."""
    return _paragraph(
        f"This can be checked for {_named(methods_that('replicate'))}. Other methods do not say how likely a vote is, "
        "and get the other answers."
    )


def distributed() -> str:
    """Which methods run on dask, and which can resume."""
    return _paragraph(
        f"Methods that run on dask: {_named(methods_that('dask'))}. Fits that `--checkpoint` resumes after a crash, on "
        f"one machine: {_named(methods_that('checkpoint'))}."
    )
