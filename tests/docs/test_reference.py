"""Every public name is in the API reference, and so is every name that a page imports."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

import pytest
from docs.reference import docstrings, every_command, every_method

import rarevote
from rarevote.cli import VERBS
from tests.docs.test_docs import PAGES, blocks

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
NAMED = {
    name
    for page in REFERENCE.glob("*.md")
    for name in re.findall(
        r"^::: (\S+)$", every_method.on_page_markdown(page.read_text(encoding="utf-8")), re.MULTILINE
    )
}


def home_of(name: str) -> object:
    """The object behind a dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


MODULES = ("rarevote.errors", "rarevote.watch")
HOMES = [home_of(name) for name in sorted(NAMED) if name not in MODULES]


@pytest.mark.parametrize("name", [name for name in rarevote.__all__ if name != "__version__"])
def test_public_names(name: str) -> None:
    assert any(getattr(rarevote, name) is known for known in HOMES), "add it to a page of docs/reference"


def test_few_names_are_documented_below_the_package() -> None:
    assert len([name for name in NAMED if name.count(".") > 1]) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_names_that_pages_import(page: Path) -> None:
    for language, code in blocks(page):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rarevote"):
                for alias in node.names:
                    found = home_of(f"{node.module}.{alias.name}")
                    assert any(found is known for known in HOMES), f"{node.module}.{alias.name}"


def test_the_page_of_commands_has_the_help_of_every_command() -> None:
    assert doctest.testmod(every_command).failed == 0
    page = every_command.on_page_markdown((REFERENCE / "commands.md").read_text(encoding="utf-8"))
    assert all(f"\n## {verb}\n" in page and f"`{verb}`" in page for verb in VERBS)


def test_docstrings_become_markdown() -> None:
    assert doctest.testmod(docstrings).failed == 0
    assert docstrings.as_markdown("Adds.\n\n>>> 1 + 1\n2\n\nMore.") == "Adds.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nMore."
    assert docstrings.as_markdown("::\n\n    a tree") == "\n    a tree"
