"""Options that several verbs share, and how their text becomes values."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.estimator import Estimator

LabelsFile = Annotated[
    Path, typer.Argument(help="CSV or Parquet file with columns task, worker, label.", show_default=False)
]
MethodName = Annotated[str, typer.Option("--method", "-m", help="Aggregation method (see: rarevote methods).")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the method, such as prior=estimate. Repeatable."),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="ROLE=NAME,...", help="Which column is which: task=image,worker=rater,label=verdict."),
]
Keep = Annotated[
    str, typer.Option(help="Which of repeated (task, worker) pairs count: all, first, last, or error to refuse them.")
]
Missing = Annotated[str, typer.Option(help="Rows with a missing id or label: error, or drop to leave them out.")]
Abstain = Annotated[
    list[str] | None, typer.Option(metavar="LABEL", help='An answer that is no vote, such as "not sure". Repeatable.')
]
Classes = Annotated[
    list[str] | None,
    typer.Option("--class", metavar="LABEL", help="A class that exists even without votes. Repeatable."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk, only data and errors.")]
Json = Annotated[bool, typer.Option("--json", help="The summary as JSON on stdout.")]


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
