"""Numbers and names as text for people, in sentences, plain tables and notebooks (where names are escaped)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

#: shown instead of a label if none is probable enough
NO_ANSWER = "no answer"


#: expected seconds to review an item, before any answer has been timed
SECONDS_A_LOOK = 10


class Described:
    """A record with a ``description``, which was called ``words`` in version 0.2."""

    @property
    def words(self) -> str:
        """Deprecated: the ``description``."""
        message = f"{type(self).__name__}.words is deprecated and will be removed in version 0.4: use description"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return str(self.description)  # type: ignore[attr-defined]


def count(number: float) -> str:
    """A number of things: whole, with commas; an expected number below ten keeps a decimal.

    >>> count(1234), count(3.26), count(3.0), count(41.7)
    ('1,234', '3.3', '3', '42')
    """
    if abs(number) < 9.95 and abs(number - round(number)) > 0.05:
        return f"{number:.1f}"
    return f"{round(number):,}"


def counted(number: float, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "item"), counted(2500, "item"), counted(2, "class", "classes")
    ('1 item', '2,500 items', '2 classes')
    """
    text = count(number)
    return f"{text} {one if text == '1' else many or one + 's'}"


def minutes(seconds: float) -> str:
    """A duration as text.

    >>> minutes(20), minutes(100), minutes(9000)
    ('under a minute', '2 minutes', '2.5 hours')
    """
    if seconds < 45:
        return "under a minute"
    if seconds < 100 * 60:
        return counted(round(seconds / 60), "minute")
    return f"{seconds / 3600:.1f} hours"


def part_of(number: float, total: float, noun: str, one: str, many: str) -> str:
    """A part of a number of things, with its verb.

    >>> part_of(1, 4, "item", "has", "have"), part_of(2, 4, "item", "has", "have"), part_of(1, 1, "item", "is", "are")
    ('1 of 4 items has', '2 of 4 items have', '1 of 1 item is')
    """
    return f"{count(number)} of {counted(total, noun)} {one if count(number) == '1' else many}"


def percent(share: float, *, fine: bool = False) -> str:
    """A share in percent: whole, or with two significant digits (``fine``), but never rounded to 0% or 100%.

    >>> percent(0.0563, fine=True), percent(0.333, fine=True), percent(0.08, fine=True)
    ('5.6%', '33.3%', '8.0%')
    >>> percent(0.953), percent(0.0), percent(0.0042), percent(0.9996), percent(0.00003), percent(float("nan"))
    ('95%', '0%', '0.4%', 'over 99.9%', 'under 0.1%', 'unknown')
    """
    if not isfinite(share):
        return "unknown"
    hundredths = 100 * share
    if fine and 0.05 <= hundredths < 99.95:
        return f"{hundredths:#.2g}%" if hundredths < 9.95 else f"{hundredths:.1f}%"
    if 0 < hundredths < 0.05:
        return "under 0.1%"
    if 99.95 <= hundredths < 100:
        return "over 99.9%"
    if 0 < hundredths < 1 or 99 < hundredths < 100:
        return f"{hundredths:.1f}%"
    return f"{hundredths:.0f}%"


def capital(sentence: str) -> str:
    """The sentence with a capital letter, otherwise unchanged.

    >>> capital("of A, not b"), capital("")
    ('Of A, not b', '')
    """
    return sentence[:1].upper() + sentence[1:]


def listed(names: list[str], limit: int = 4) -> str:
    """Names as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(list("abcdef"))
    ('a', 'a, b and c', 'a, b, c, d and 2 more')
    """
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def short_names(names: Sequence[str], limit: int = 24) -> list[str]:
    """Names shortened to fit a header, but never so that two look the same.

    >>> short_names(["damage of the left wing, upper side", "damage of the left wing, lower side", "sound"])
    ['damage of t…, upper side', 'damage of t…, lower side', 'sound']
    """
    begins = [name if len(name) <= limit else name[: limit - 1] + "…" for name in names]
    half = (limit - 1) // 2
    ends = [name if len(name) <= limit else f"{name[:half]}…{name[half + 1 - limit :]}" for name in names]
    for short in (begins, ends):
        if len(set(short)) == len(set(names)):
            return short
    return list(names)


def quoted(name: object) -> str:
    """The name of a class in a sentence."""
    return f"“{name}”"


_SHOWN = 10  # rows of a table


def facts_html(title: str, facts: Mapping[str, Any], table: Sequence[Sequence[Any]] = ()) -> str:
    """A title, named facts, and a table whose first row is its header.

    >>> facts_html("A <b>", {"tasks": 3})
    '<div><strong>A &lt;b&gt;</strong><table><tr><th style="text-align:left">tasks</th><td>3</td></tr></table></div>'
    """
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(str(name))}</th><td>{escape(_text(value))}</td></tr>'
        for name, value in facts.items()
    )
    return f"<div><strong>{escape(title)}</strong><table>{rows}</table>{_table(table)}</div>"


def _table(rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(str(cell))}</th>" for cell in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(cell))}</td>' for cell in row)}</tr>" for row in rows[1 : _SHOWN + 1]
    )
    more = len(rows) - 1 - _SHOWN
    rest = f"<p>… {more:,} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}" if isinstance(value, float) else str(value)


def printable(text: str) -> str:
    """The text with control characters and invisible characters shown as escapes.

    >>> printable("ann\\x1b[2J"), printable("é"), printable("a\\nb")
    ('ann\\\\x1b[2J', 'é', 'a\\\\nb')
    """
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text: first column left-aligned, the others right-aligned."""
    header, rows = [printable(cell) for cell in header], [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
        return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *(line(row) for row in rows)])


def share(value: float | None) -> str:
    """A share with three decimals; a dash if there is none."""
    return "-" if value is None else f"{value:.3f}"
