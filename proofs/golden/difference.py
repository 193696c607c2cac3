"""The differences between two records, line by line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from proofs.golden.run import Parts

_SHOWN_LINES = 24
_SHOWN_CHARACTERS = 240


@dataclass(frozen=True)
class Difference:
    """A part that is not what it was.

    Attributes:
        where: section, case and part.
        lines: what changed, as ``diff`` shows it without the lines around.
        allowed: whether every changed line, or the place, was meant.
    """

    where: str
    lines: tuple[str, ...]
    allowed: bool

    def __str__(self) -> str:
        shown = [line[:_SHOWN_CHARACTERS] for line in self.lines[:_SHOWN_LINES]]
        more = len(self.lines) - len(shown)
        tail = [f"    ... {more} more lines"] if more else []
        return "\n".join(
            [f"{'allowed' if self.allowed else 'DIFFERS'}: {self.where}", *(f"    {one}" for one in shown), *tail]
        )


def differences(
    section: str,
    before: Mapping[str, Parts],
    after: Mapping[str, Parts],
    stores: tuple[Path, Path],
    allow: Sequence[str] = (),
) -> Iterator[Difference]:
    """What differs between two runs of a section.

    Args:
        stores: where the parts of the two are.
        allow: patterns; a changed line or a place (``commands/NAME/PART``) in which one is found was meant.
    """
    meant = [re.compile(pattern) for pattern in allow]
    for name in sorted({*before, *after}):
        old, new = before.get(name, {}), after.get(name, {})
        for part in sorted({*old, *new}):
            if old.get(part) == new.get(part):
                continue
            where = f"{section}/{name}/{part}"
            lines = tuple(_changed(_lines(old.get(part), stores[0]), _lines(new.get(part), stores[1])))
            allowed = any(one.search(where) for one in meant) or (
                bool(lines) and all(any(one.search(line) for one in meant) for line in lines)
            )
            yield Difference(where, lines, allowed)


def _lines(digest: str | None, store: Path) -> list[str]:
    if digest is None:
        return ["(absent)"]
    try:
        return (store / digest).read_bytes().decode("utf-8").splitlines() or ["(empty)"]
    except (FileNotFoundError, UnicodeDecodeError):
        return [f"(bytes {digest})"]


def _changed(old: list[str], new: list[str]) -> Iterator[str]:
    for line in difflib.unified_diff(old, new, lineterm="", n=0):
        if not line.startswith(("---", "+++", "@@")):
            yield line
