"""What the report, the study's page and the workbench share: templates that escape everything, and the style sheet."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from rarevote.charts.theme import style_variables


def page_style() -> str:
    """CSS: colours for light, dark and print, then everything that a page of ours is made of."""
    return f"{style_variables()}\n{asset('rarevote.page', 'report.css')}"


def asset(package: str, name: str) -> str:
    """The text of a file among the templates of a package."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment(package: str) -> Environment:
    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template(package: str, name: str) -> Template:
    """The template of that name in a package; a value that it asks for and does not get is an error."""
    return _environment(package).get_template(name)
