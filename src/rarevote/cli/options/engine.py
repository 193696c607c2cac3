"""Options that say where a fit runs and how it survives a crash, and ``rarevote aggregate --engine dask``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarevote.cli.options.common import make_method, one_of, parse_columns
from rarevote.cli.show import aligned, fitting, say, share
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.read import Reading

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
        help="Keep the fit in this folder now and then; after a crash the same command goes on from there.",
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


def refuse_on_dask(**options: Any) -> None:
    """Refuse options of ``aggregate`` that only a single machine follows."""
    for name, value in options.items():
        if value:
            raise ParameterError(f"--{name.replace('_', '-')} is for a single machine, not for --engine dask")


def aggregate_on_dask(
    reading: Reading,
    method: str,
    settings: Sequence[str] | None,
    *,
    out: Path | None,
    gold: str | None = None,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    every: int = 10,
    strict: bool = False,
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Aggregate on dask: votes from Parquet or CSV files, results to a folder.

    Args:
        reading: what the command line says about the labels.
        method: name of the method.
        settings: its parameters, as ``NAME=VALUE``.
        out: folder for the results.
        gold: file of known labels.
        scheduler: address of a running cluster.
        checkpoint: folder to keep the fit in.
        every: iterations between two checkpoints.
        strict: exit with code 3 if the fit did not converge.
        quiet: no talk.
        as_json: the summary on stdout.
    """
    from rarevote.cluster.fit import Dask

    estimator = make_method(method, settings)
    if out is None:
        raise ParameterError("--engine dask writes its results to a folder: say which with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--engine dask writes its results to a folder, and --out {out} looks like a file")
    _refuse_unread(reading)
    engine = Dask(out, scheduler=scheduler, checkpoint=checkpoint, every=every)
    with fitting(f"fitting {method}", quiet=quiet) as callback:
        result = engine.fit(
            estimator,
            list(reading.labels),
            gold,
            columns=parse_columns(reading.columns),
            classes=reading.classes,
            abstain=reading.abstain or (),
            keep=reading.keep,  # type: ignore[arg-type]
            missing=reading.missing,  # type: ignore[arg-type]
            callback=callback,
        )
    if as_json:
        typer.echo(json.dumps(result.summary, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(result.summary, out)
    if strict and not result.summary["converged"]:
        raise typer.Exit(3)


def _refuse_unread(reading: Reading) -> None:
    for option, value in (
        ("--wide", reading.wide),
        ("--show", reading.show),
        ("--from", reading.platform),
        ("--format", reading.file_format),
        ("--sheet", reading.sheet),
        ("--no-header", not reading.has_header),
    ):
        if value:
            raise ParameterError(
                f"{option} is for a single machine: the dask engine reads Parquet and CSV files with a header "
                "(rarevote convert makes such files)"
            )


def _tell(summary: dict[str, Any], out: Path) -> None:
    say(
        f"{summary['n_annotations']:,} annotations, {summary['n_tasks']:,} tasks, {summary['n_workers']:,} workers, "
        f"{len(summary['classes'])} classes in {summary['n_shards']:,} shards"
    )
    say()
    rows = [
        [name, f"{entry['tasks']:,}", share(entry["share_of_tasks"]), share(entry["share_of_votes"])]
        for name, entry in summary["classes"].items()
    ]
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    say()
    seconds = summary["seconds"]
    say(
        f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; "
        f"encode {seconds['encode']:.1f} s, fit {seconds['fit']:.1f} s"
    )
    say(f"wrote {out}/tasks (one row per task), {out}/summary.json and tables of the workers")
