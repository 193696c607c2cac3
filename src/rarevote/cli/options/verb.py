"""The verb: a click command with sections in its help, whose options can be passed to its function as records.

Options that belong together are one decorator, made by :func:`takes`: a decorated verb gets one record of their
values. So an option is declared once for all verbs that have it.
"""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from rarevote.cli.options.files import keep_files
from rarevote.cli.show import is_quiet, is_verbose, say
from rarevote.errors import ParameterError
from rarevote.progress import LINES_IN_A_LOG, Display, displayed

PATH = click.Path(path_type=Path)

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]


# Options that have another meaning in other verbs.
_OF_ONE_VERB = {"out", "plan", "review_out", "max_review", "find", "as_json", "quiet", "verbose", "budget", "help"}


class Argument(click.Argument):
    """An argument that the help explains, as click itself has it from 8.5 on."""

    def __init__(self, *given: Any, help: str, **attributes: Any) -> None:
        super().__init__(*given, **attributes)
        self.help = help


argument = partial(click.argument, cls=Argument)
flag = partial(click.option, is_flag=True)
file_option = partial(click.option, type=PATH, metavar="FILE")


class Option(click.Option):
    """An option in a section of the help."""

    def __init__(self, *given: Any, section: str, **attributes: Any) -> None:
        super().__init__(*given, **attributes)
        self.section = section


class Verb(click.Command):
    """A verb, which first refuses an output that would overwrite one of its inputs or another output."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb."""
        keep_files(ctx)
        with displayed(_display()):
            return super().invoke(ctx)

    def format_arguments(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write nothing: :meth:`format_options` does this, as only click 8.5 and later calls this method."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments, the options without a section, and those of each section."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            if isinstance(one, Argument):
                sections["Arguments"].append((one.make_metavar(ctx), one.help or ""))
            elif record := one.get_help_record(ctx):
                sections.setdefault(getattr(one, "section", "Options"), []).append(record)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _display() -> Display:
    """The progress display of a verb: a bar in a terminal, lines in a log; with --verbose, a line for every step."""
    every = 0.0 if is_verbose() else LINES_IN_A_LOG
    return Display(sys.stderr.isatty() and not is_verbose(), say, every, is_quiet)


class Verbs(click.Group):
    """A verb with subcommands."""

    def verb(self, *commands: str, name: str | None = None, after: str = "") -> Callable[[Function], click.Command]:
        """Decorator of the function of a subcommand, whose help ends with these examples."""
        return self.command(name, cls=Verb, epilog=examples(*commands, after=after))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb and the named subcommand."""
        keep_files(ctx)
        return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The named verb; if there is none, the error proposes the most similar one."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", error.ctx) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of its subcommands, in the order of declaration."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its subcommands, each with its complete first sentences."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.help.partition("\n\n")[0]) for name, one in found.items() if one and one.help]
            )


def examples(*commands: str, after: str = "") -> str:
    """Commands, one per line, under the heading "Examples", and a sentence ``after`` them."""
    return "\n".join(["Examples:\n\n\b", *commands, *(["", after] if after else [])])


def verb(*commands: str) -> Callable[[Function], Verb]:
    """Decorator of the function of a verb, whose help ends with these examples."""
    return click.command(cls=Verb, epilog=examples(*commands))


def takes(make: Function, *options: Decorator) -> Decorator:
    """Decorator of the function of a verb: its next argument is the result of ``make`` for these options."""

    def declared(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    names = [one.name for one in click.command("options")(declared(lambda: None)).params]

    def decorate(function: Function) -> Function:
        @wraps(function)
        def run(*records: Any, **given: Any) -> Any:
            return function(*records, make(**{str(name): given.pop(name) for name in names}), **given)

        return declared(run)

    return decorate


def one_of(*choices: str) -> Function:
    """The choices that begin with the typed text, for the shell's completion."""

    def complete(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


def _names(_context: click.Context, option: click.Parameter, text: str | None) -> list[str] | None:
    """``a,b`` as a list."""
    if text is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ParameterError(f"{option.opts[0]} must be names separated by commas, got {text!r}")
    return names


names_option = partial(click.option, metavar="A,B", callback=_names)


def default_from(other: str, ending: str) -> Function:
    """Callback of an output option: the default is the path of another parameter with this ending instead of its own.

    A default that only the verb's function knew would not be compared with its inputs.
    """

    def given_or_made(context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
        if value is not None or context.resilient_parsing:
            return value
        path: Path = context.params[other]
        return path.parent / f"{path.stem}{ending}"

    return given_or_made


def repeated_for(*verb: str) -> str:
    """The options on this command line that another verb also has, to repeat in a hint; without outputs."""
    context = click.get_current_context()
    other: click.Command = context.find_root().command
    for name in verb:
        assert isinstance(other, click.Group)
        found = other.get_command(context, name)
        assert found is not None
        other = found
    known = {one.name for one in other.params} - _OF_ONE_VERB
    words: list[str] = []
    for option in context.command.params:
        name = str(option.name)
        if name in known and _was_given(context, name):
            words += _as_words(option, context.params[name])
    return shlex.join(words)


def _was_given(context: click.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _as_words(option: click.Parameter, value: Any) -> list[str]:
    """An option and its value as typed."""
    if isinstance(option, click.Argument):
        return [str(one) for one in value] if option.nargs != 1 else [str(value)]
    assert isinstance(option, click.Option)
    if option.is_flag:
        return [option.opts[0] if value else option.secondary_opts[0]]
    if isinstance(value, dict):  # --columns
        return [option.opts[0], ",".join(f"{role}={name}" for role, name in value.items())]
    several = value if option.multiple else [value]
    return [word for one in several for word in (option.opts[0], str(one))]
