"""The kind of a column: how its texts are shown, detected from the texts or named by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from rarevote.errors import ParameterError

#: What can be named with ``--show-as``.
KINDS = ("text", "html", "markdown", "link", "image", "audio", "video", "pdf")
# A column has the kind that most of its first texts look like.
_LOOK_AT = 200
_MOST = 0.5
_HTML = re.compile(
    r"<(p|div|span|br|b|i|em|strong|ul|ol|li|h[1-6]|table|tr|td|a|img|blockquote|pre|code)\b[^<>]*>", re.IGNORECASE
)
_MARKDOWN = re.compile(
    r"^#{1,6} \S|^\s*[-*] \S.*\n\s*[-*] \S|^```|\*\*\S[^*\n]*\*\*|\[[^\]\n]+\]\(https?://", re.MULTILINE
)


def markup_of(texts: Iterable[str]) -> str:
    """``html`` or ``markdown`` if most of the texts are written in it, else ``text``.

    >>> markup_of(["<p>one</p>", "<div>two</div>"]), markup_of(["# A title", "**bold**"]), markup_of(["a < b > c"])
    ('html', 'markdown', 'text')
    """
    first = list(islice((text for text in texts if text.strip()), _LOOK_AT))
    for kind, sign in (("html", _HTML), ("markdown", _MARKDOWN)):
        if first and sum(sign.search(text) is not None for text in first) > _MOST * len(first):
            return kind
    return "text"


def parse_kinds(given: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """The kinds from ``--show-as COLUMN=KIND``, by column.

    Raises:
        ParameterError: a kind or a column is unknown.

    >>> parse_kinds(["body=html"], ["body", "title"])
    {'body': 'html'}
    """
    found: dict[str, str] = {}
    for text in given:
        column, sign, kind = text.rpartition("=")
        if not sign or kind not in KINDS:
            raise ParameterError(f"--show-as needs COLUMN=KIND with one of {', '.join(KINDS)}, got {text!r}")
        if column not in columns:
            shown = ", ".join(map(repr, columns)) or "none"
            raise ParameterError(f"--show-as: {column!r} is not a column that is shown; the columns are {shown}")
        found[column] = kind
    return found


def kinds_of(columns: Mapping[str, Iterable[str]], named: Mapping[str, str]) -> dict[str, str]:
    """The kind of every column; kinds that the user named have priority."""
    return {name: named.get(name) or markup_of(texts) for name, texts in columns.items()}
