"""A hook of the site: the page of methods lists all that the registry has."""

from __future__ import annotations

from typing import Any

from rarevote.methods.registry import METHODS

_MARK = "<!-- every method -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    names = (f"rarevote.{entry.class_name}" for entry in METHODS.values())
    return markdown.replace(_MARK, "\n\n".join(f"::: {name}" for name in names))
