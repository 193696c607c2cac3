"""The command line: verbs, their options, and what a person reads. Data go to stdout, talk goes to stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rarevote.cli.options.common import examples
from rarevote.cli.options.files import with_kept_inputs
from rarevote.cli.show import complain, warn
from rarevote.errors import ParameterError, RarevoteError, speaking_flags
from rarevote.kernels.memory import available_memory, gigabytes

# In the order of the help. A module of the same name holds the function of a verb and its EXAMPLES, or the ``app`` of
# a verb that has verbs of its own.
VERBS = (
    "aggregate",
    "convert",
    "compare",
    "report",
    "review",
    "annotators",
    "check",
    "explain",
    "plan",
    "predict",
    "score",
    "simulate",
    "methods",
    "demo",
    "audit",
    "datasets",
    "study",
)
EXAMPLES = examples(
    "rarevote demo",
    "rarevote aggregate labels.csv --out result.csv",
    "rarevote report labels.csv --out report.html",
    after="Every verb explains itself, with examples: rarevote aggregate --help",
)


# Written out in messages: the first.
_HELP = ["--help", "-h"]


class _Verbs(Mapping[str, Any]):
    """The verbs by name, each put together when it is asked for: all at once take typer a tenth of a second."""

    def __getitem__(self, name: str) -> Any:
        if name not in VERBS:
            raise KeyError(name)
        return _verb(name)

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


class _Group(TyperGroup):
    """The command line as typer knows it, with verbs that are not there yet."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "commands": _Verbs()})


app = typer.Typer(
    name="rarevote",
    cls=_Group,
    help="One answer per item from many annotators, without losing the rare class.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": _HELP},
)


def _version(wanted: bool) -> None:
    if wanted:
        from rarevote import __version__

        typer.echo(f"rarevote {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """One answer per item from many annotators, without losing the rare class."""


@cache
def _verb(name: str) -> Any:
    """A verb with its options and, if it has some, its own verbs."""
    module = import_module(f"rarevote.cli.{name}")
    own = getattr(module, "app", None)
    if own is None:
        own = typer.Typer(add_completion=False)
        own.command(name, epilog=module.EXAMPLES)(getattr(module, name))
    command: Any = typer.main.get_command(own)
    own_verbs = {f"{name} {verb}": one for verb, one in getattr(command, "commands", {}).items()}
    for verb, one in {name: command, **own_verbs}.items():
        _hide_flag_types(one)
        if one.callback is not None:
            one.callback = with_kept_inputs(verb, one.callback)
    return command


def _hide_flag_types(command: Any) -> None:
    """A flag takes no value, so the help shows no type beside it."""
    # A command makes its help option once, for whoever asks first.
    options = [*command.params, command.get_help_option(typer.Context(command, help_option_names=_HELP))]
    for option in options:
        if getattr(option, "is_flag", False) and option.metavar is None:
            option.metavar = ""


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    warn(message)


@cache
def _command() -> Any:
    """The command line, made once a process."""
    command = typer.main.get_command(app)
    _hide_flag_types(command)
    return command


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; what typer ends itself (usage, help, an exit) is a SystemExit.

    Args:
        argv: The words after ``rarevote``; those of the process if None.
    """
    try:
        with speaking_flags(), warnings.catch_warnings():  # which also restores how warnings are shown
            warnings.showwarning = _show_warning
            _command().main(argv, prog_name="rarevote")
    except ParameterError as error:
        return _complain(error, 2)
    except RarevoteError as error:
        return _complain(error, 1)
    except SystemExit:
        # typer knows of a reader who has seen enough (then it wraps the stream), and takes it for a failure.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            return 0
        raise
    except BrokenPipeError:
        # Whoever read our output has seen enough (head, less): not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except MemoryError:
        left = available_memory()
        told = "" if left is None else f"; {gigabytes(left)} are left to this process"
        return _complain(f"not enough memory for these data{told}", 1)
    except ImportError as error:
        from rarevote.cli.libraries import load_failure

        return _complain(load_failure(error), 1)
    except OSError as error:
        # Of the machine, not of the program: a full disk, a name too long, a folder that may not be read.
        if error.errno is None:
            return _complain(f"the machine refuses: {error}; where memory is limited, allow at least 2 GB", 1)
        place = str(error.filename or "standard output")
        shown = place if len(place) < 200 else f"{place[:60]}… ({len(place):,} characters)"
        return _complain(f"{shown}: cannot be read or written ({error.strerror})", 1)
    except Warning as warning:
        # Raised only where Python was asked to: a decision of the person who runs it, not a fault.
        name = type(warning).__name__
        return _complain(f"{warning} (a {name}, which -W error or PYTHONWARNINGS makes an error)", 1)
    except Exception as error:
        if os.environ.get("RAREVOTE_DEBUG"):
            raise
        return _complain(
            f"unexpected {type(error).__name__}: {error}. This is a fault of rarevote: please report it "
            "(RAREVOTE_DEBUG=1 shows where)",
            1,
        )
    return 0


def _complain(message: object, code: int) -> int:
    complain(message)
    return code
