"""Templates of our pages: everything that goes into one is escaped unless it is marked as markup."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


@cache
def _environment(package: str) -> Environment:
    loader = PackageLoader(package)
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def template(package: str, name: str) -> Template:
    """The template of that name in a package; a value that it asks for and does not get is an error."""
    return _environment(package).get_template(name)
