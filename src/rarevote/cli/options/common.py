"""Options that several verbs share, and how their text becomes values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator


def method_names(incomplete: str) -> list[str]:
    """Methods that begin so, for the shell's completion."""
    from rarevote.methods.registry import METHODS

    return [name for name in METHODS if name.startswith(incomplete)]


def one_of(*choices: str) -> Callable[[str], list[str]]:
    """The choices that begin as what was typed, for the shell's completion."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


LabelsFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="LABELS",
        help="Votes (task, worker, label): files, folders, patterns, a platform's export, or - for standard input.",
        show_default=False,
    ),
]
MethodName = Annotated[
    str,
    typer.Option("--method", "-m", help="Aggregation method (see: rarevote methods).", autocompletion=method_names),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method, such as prior=estimate. Repeatable."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="ROLE=NAME,...", help="Which column is which: task=image,worker=rater,label=verdict."),
]
Keep = Annotated[
    str,
    typer.Option(
        help="Which of repeated (task, worker) pairs count: all, first, last, or error to refuse them.",
        autocompletion=one_of("all", "first", "last", "error"),
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        help="Rows with a missing id or label: error, or drop to leave them out.",
        autocompletion=one_of("error", "drop"),
    ),
]
Abstain = Annotated[
    list[str] | None, typer.Option(metavar="LABEL", help='An answer that is no vote, such as "not sure". Repeatable.')
]
Classes = Annotated[
    list[str] | None,
    typer.Option("--class", metavar="LABEL", help="A class that exists even without votes. Repeatable."),
]
Show = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Carry a column along to the result, such as the text or the image. Repeatable, or with commas.",
    ),
]
Wide = Annotated[
    bool,
    typer.Option("--wide", help="The table has one row per task and one column per annotator, the task first."),
]
FileFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="csv, tsv, json, ndjson, parquet, arrow or xlsx, where the name of the file does not tell.",
        autocompletion=one_of("csv", "tsv", "json", "ndjson", "parquet", "arrow", "xlsx"),
    ),
]
HasHeader = Annotated[
    bool,
    typer.Option(
        "--header/--no-header",
        help="Without a header line columns are called 1, 2, 3: --columns worker=1,task=2,label=3.",
    ),
]
Sheet = Annotated[str | None, typer.Option(help="Which sheet of a spreadsheet. Default: the first.")]
Rare = Annotated[
    str | None,
    typer.Option(metavar="CLASS", help="The class that matters. Default: the one with the fewest votes."),
]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe",
        help="In CSV, put an apostrophe before text that a spreadsheet would run as a formula.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk, only data and errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Tell parameters, every iteration, and where time goes.")
]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")]


def names_in(text: str | None, option: str) -> list[str] | None:
    """``a,b`` as a list."""
    if text is None:
        return None
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ParameterError(f"{option} wants names with commas between, got {text!r}")
    return names


def parse_columns(text: str | None) -> dict[str, str] | None:
    """``task=image,label=verdict`` as a dict."""
    if text is None:
        return None
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(role.strip() and sign and name.strip() for role, sign, name in pairs):
        raise ParameterError(f"--columns wants ROLE=NAME pairs with commas between, got {text!r}")
    return {role.strip(): name.strip() for role, _, name in pairs}


def _value(text: str) -> Any:
    """A parameter's value: a Python literal where it reads as one, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def make_method(name: str, settings: Sequence[str] | None) -> Estimator:
    """The method of that name with the parameters that ``--set`` gives."""
    from rarevote.methods.registry import find_method

    estimator = find_method(name).load()()
    for setting in settings or ():
        parameter, sign, text = setting.partition("=")
        if not sign:
            raise ParameterError(f"--set wants NAME=VALUE, got {setting!r}")
        estimator.set_params(**{parameter.strip(): _value(text.strip())})
    return estimator
