"""The completion of words in a shell: its script, printed or installed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from rarevote.cli.options.verb import Decorator
from rarevote.errors import InputError

# Set by the script; click then prints completions and exits.
VARIABLE = "_RAREVOTE_COMPLETE"
_EVALUATED = 'eval "$(_RAREVOTE_COMPLETE={}_source rarevote)"'
# The start-up file of each shell, and the line to add.
_START_FILES = {
    "bash": (".bashrc", _EVALUATED.format("bash")),
    "zsh": (".zshrc", _EVALUATED.format("zsh")),
    "fish": (".config/fish/completions/rarevote.fish", "_RAREVOTE_COMPLETE=fish_source rarevote | source"),
}


def _shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _START_FILES:
        raise InputError(f"no completion for this shell (SHELL={name!r}): there is {', '.join(_START_FILES)}")
    return name


def _script(context: click.Context) -> str:
    made = get_completion_class(_shell())
    assert made is not None  # as click has each of them
    return made(context.command, {}, "rarevote", VARIABLE).source()


def _install(_context: click.Context) -> str:
    shell = _shell()
    name, line = _START_FILES[shell]
    path = Path.home() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        file.seek(0)
        if line not in file.read():
            file.write(f"\n{line}\n")
    return f"{shell} completion installed in {path}\nCompletion will take effect once you restart the terminal"


def _answering(name: str, answer: Callable[[click.Context], str], help: str) -> Decorator:
    """An option that prints its result and exits."""

    def print_answer(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
        if wanted:
            click.echo(answer(context))
            context.exit()

    return click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=print_answer, help=help)


install_option = _answering("--install-completion", _install, "Install completion for the current shell.")
show_option = _answering(
    "--show-completion",
    _script,
    "Show completion for the current shell, to copy it or customize the installation.",
)
