"""The style sheet that the report and the workbench share."""

from __future__ import annotations

from importlib import resources

from rarevote.charts.palette import style_variables


def page_style() -> str:
    """CSS: colours for light, dark and print, then everything that a page of ours is made of."""
    return f"{style_variables()}\n{asset('rarevote.page', 'report.css')}"


def asset(package: str, name: str) -> str:
    """The text of a file among the templates of a package."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")
