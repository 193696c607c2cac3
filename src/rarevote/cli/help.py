"""``rarevote help VERB``: the text of ``rarevote VERB --help``."""

from __future__ import annotations

import click

from rarevote.cli.options.verb import argument, verb
from rarevote.cli.show import tell


def _verbs(context: click.Context, _argument: click.Parameter, incomplete: str) -> list[str]:
    root = context.find_root().command
    assert isinstance(root, click.Group)
    return [name for name in root.list_commands(context) if name.startswith(incomplete)]


@verb("rarevote help", "rarevote help aggregate", "rarevote help audit start")
@argument("words", metavar="[VERB]...", nargs=-1, help="A verb, or a verb of a verb.", shell_complete=_verbs)
def help(words: tuple[str, ...]) -> None:
    """Show the help of a verb."""
    context = click.get_current_context().find_root()
    found: click.Command = context.command
    for word in words:
        if not isinstance(found, click.Group):
            raise click.UsageError(f"{context.command_path} has no verbs of its own, got {word!r}", context)
        name, below, _ = found.resolve_command(context, [word])
        assert below is not None
        context, found = click.Context(below, info_name=name, parent=context), below
    tell(found.get_help(context))
