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
    # Its settings too: click keeps the option --help of a command as it was first asked for.
    context = click.Context(app, info_name="rarevote", **app.context_settings)
    return "\n\n".join(f"## {name}\n\n```text\n{text.rstrip()}\n```" for name, text in commands(app, context))


def commands(group: click.Group, parent: click.Context) -> Iterator[tuple[str, str]]:
    """The name of every command and its help."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=parent, terminal_width=_WIDTH, max_content_width=_WIDTH)
        yield context.command_path.removeprefix("rarevote "), command.get_help(context)
        if isinstance(command, click.Group):
            yield from commands(command, context)
