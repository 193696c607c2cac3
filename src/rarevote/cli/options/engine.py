"""Options that say where a fit runs and how it survives a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.options.common import one_of
from rarevote.errors import ParameterError

PANEL = "Where it runs"

EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="local: this machine; dask: a cluster, results in a folder.",
        autocompletion=one_of("local", "dask"),
        rich_help_panel=PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --engine dask, the scheduler of a running cluster, such as tcp://head:8786. Without it a cluster of "
        "one process per core is started here.",
        rich_help_panel=PANEL,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep the fit in this folder now and then; the same command resumes after a crash.",
        rich_help_panel=PANEL,
    ),
]
CheckpointEvery = Annotated[
    int,
    typer.Option(
        "--checkpoint-every", metavar="N", min=1, help="Iterations between two checkpoints.", rich_help_panel=PANEL
    ),
]


def check_engine(engine: str, scheduler: str | None) -> None:
    """Refuse an engine that there is not, and an address that nobody would use."""
    if engine not in ("local", "dask"):
        raise ParameterError(f"unknown engine {engine!r}: there are local and dask")
    if scheduler is not None and engine != "dask":
        raise ParameterError("--scheduler goes with --engine dask")
