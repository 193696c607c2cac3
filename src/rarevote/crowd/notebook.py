"""How objects show themselves in a notebook: a title, facts, and a table of classes; every name is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

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
