"""The command line: verbs, their options, and their output. Data go to stdout, messages to stderr."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

import click

from rarevote.cli.options import completion
from rarevote.cli.options.verb import Verbs, examples
from rarevote.cli.show import complain, remember_words, warn
from rarevote.errors import ParameterError, RarevoteError, speaking_flags
from rarevote.kernels.memory import available_memory, gigabytes

# In the order of the help. Each is in a module of the same name.
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
    "pull",
    "push",
    "watch",
    "datasets",
    "study",
    "help",
)
_ROOM = "where memory is limited, allow at least 2 GB"


class _AllVerbs(Verbs):
    """The verbs by name, each loaded on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        found: click.Command = getattr(import_module(f"rarevote.cli.{cmd_name}"), cmd_name)
        return found


@click.group(
    "rarevote",
    cls=_AllVerbs,
    no_args_is_help=True,
    # Shown in messages: the first of the names.
    context_settings={"help_option_names": ["--help", "-h"], "show_default": True, "max_content_width": 120},
    epilog=examples(
        "rarevote demo",
        "rarevote aggregate labels.csv --out result.csv",
        "rarevote report labels.csv --out report.html",
        after="Options and examples of a verb: rarevote help aggregate",
    ),
)
@click.version_option(
    None, "--version", "-V", package_name="rarevote", message="rarevote %(version)s", help="Show the version."
)
@completion.install_option
@completion.show_option
def app() -> None:
    """One answer per item from many annotators, without losing the rare class."""


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    warn(message)


def _run(words: list[str]) -> None:
    if completion.VARIABLE in os.environ:
        app.main(prog_name="rarevote")
    with app.make_context("rarevote", list(words)) as context:
        remember_words(context, words)
        app.invoke(context)


def run(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        argv: The words after ``rarevote``; those of the process if None.
    """
    try:
        with speaking_flags(), warnings.catch_warnings():  # also restores how warnings are shown
            warnings.showwarning = _show_warning
            _run(list(sys.argv[1:] if argv is None else argv))
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stdout)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ParameterError as error:
        return _complain(error, 2)
    except RarevoteError as error:
        return _complain(error, 1)
    except BrokenPipeError:
        # The reader of our output has closed it (head, less): not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except MemoryError:
        left = available_memory()
        left_words = "" if left is None else f"; {gigabytes(left)} are available"
        return _complain(f"not enough memory for this data{left_words}", 1)
    except ImportError as error:
        from rarevote.cli.libraries import load_failure

        return _complain(load_failure(error), 1)
    except OSError as error:
        # An error of the system, not of the program: a full disk, a name too long, an unreadable folder.
        if error.errno is None:
            return _complain(f"system error: {error}; {_ROOM}", 1)
        place = str(error.filename or "standard output")
        shown = place if len(place) < 200 else f"{place[:60]}… ({len(place):,} characters)"
        return _complain(f"{shown}: cannot be read or written ({error.strerror})", 1)
    except Warning as warning:
        # Raised only if Python is set to do so: a decision of the user, not a fault.
        name = type(warning).__name__
        return _complain(f"{warning} (a {name}, which -W error or PYTHONWARNINGS makes an error)", 1)
    except Exception as error:
        if os.environ.get("RAREVOTE_DEBUG"):
            raise
        return _complain(
            f"unexpected {type(error).__name__}: {error}. This is a bug in rarevote: please report it "
            "(RAREVOTE_DEBUG=1 shows where)",
            1,
        )
    return 0


def _complain(message: object, code: int) -> int:
    complain(message)
    return code
