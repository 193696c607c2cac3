"""Pages that people find their way in: the command first, a table of contents on long pages, options that exist."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import click
import pytest
from benchmarks import pages

from rarevote.cli import app
from tests.docs.test_docs import PAGES, blocks, by_name

_LONG = 1200
HOWTOS = [page for page in PAGES if page.parent.name == "howto"]


def test_doctests() -> None:
    assert doctest.testmod(pages).failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "README.md"], ids=by_name)
def test_a_long_page_has_a_table_of_contents(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if len(text.split()) <= _LONG:
        return
    before, *_ = re.split(r"^## ", text, maxsplit=1, flags=re.MULTILINE)
    linked = len(set(re.findall(r"\]\(#([^)]+)\)", before)))
    assert linked >= len(pages.headings(text)), "call pages.contents before the first section"


@pytest.mark.parametrize("page", HOWTOS, ids=by_name)
def test_a_how_to_begins_with_the_command(page: Path) -> None:
    _, _, rest = page.read_text(encoding="utf-8").partition("\n")
    assert rest.lstrip().startswith(("```bash", "```console", "```python", "```text"))


def commands(page: Path) -> list[list[str]]:
    """Commands that a page shows and no test runs, in blocks that are quoted from a terminal."""
    found = []
    for language, code in blocks(page):
        if language == "console":
            joined = re.sub(r"\\\n\s*", " ", code)
            found += [shlex.split(line[2:], comments=True) for line in joined.splitlines() if line.startswith("$ ")]
    return [words[words.index("rarevote") + 1 :] for words in found if "rarevote" in words and "pip" not in words]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=by_name)
def test_commands_that_are_only_shown_have_options_that_exist(page: Path) -> None:
    for words in commands(page):
        command: click.Command | None = app
        names = list(words)
        while isinstance(command, click.Group):
            command = command.get_command(click.Context(command), names.pop(0))
        assert command is not None, words
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for word in names:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in known, f"rarevote {' '.join(words)}: {word}"
