"""A section with the help of every command on the page that asks for them: a hook of mkdocs.

>>> page = on_page_markdown("<!-- every command -->")
>>> page.startswith("## aggregate"), "Usage: rarevote audit start" in page
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from rarevote.cli import app

_MARK = "<!-- every command -->"
_WIDTH = 100


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page, with the help of every command where it asks for it."""
    return markdown.replace(_MARK, sections()) if _MARK in markdown else markdown


def sections() -> str:
    """A section for every command, with its help."""
    return "\n\n".join(f"## {name}\n\n```text\n{text.rstrip()}\n```" for name, text in commands(app, ("rarevote",)))


def commands(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The name of every command and its help."""
    parent = click.Context(group, info_name=" ".join(path))
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None or command.hidden:
            continue
        context = click.Context(
            command,
            info_name=" ".join((*path, name)),
            terminal_width=_WIDTH,
            max_content_width=_WIDTH,
            show_default=True,
        )
        yield " ".join((*path[1:], name)), command.get_help(context)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
