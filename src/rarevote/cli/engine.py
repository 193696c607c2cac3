"""``rarevote aggregate --engine dask``: votes from Parquet or CSV files, results to a folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rarevote.cli.show import aligned, fitting, say, share, told_classes
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.cli.options.read import Reading
    from rarevote.methods.base import Estimator

# What the dask engine follows of how to read; anything else is refused.
_READ_ON_DASK = ("columns", "classes", "abstain", "keep", "missing")


def refuse_on_dask(**options: Any) -> None:
    """Refuse options of ``aggregate`` that only a single machine follows."""
    for name, value in options.items():
        if value:
            raise ParameterError(f"--{name.replace('_', '-')} is for a single machine, not for --engine dask")


def aggregate_on_dask(
    reading: Reading,
    estimator: Estimator,
    *,
    out: Path | None,
    gold: str | None = None,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    every: int = 10,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Aggregate on dask; returns 3 if the fit did not converge.

    Args:
        reading: what the command line says about the labels.
        estimator: the method.
        out: folder for the results.
        gold: file of gold labels.
        scheduler: address of a running cluster.
        checkpoint: folder to keep the fit in.
        every: iterations between two checkpoints.
        quiet: no talk.
        as_json: the summary on stdout.
    """
    from rarevote.cluster import Dask

    if out is None:
        raise ParameterError("--engine dask writes its results to a folder: say which with --out")
    if out.suffix or out.is_file():
        raise ParameterError(f"--engine dask writes its results to a folder, and --out {out} looks like a file")
    options = reading.options()
    _refuse_unread(options)
    engine = Dask(out, scheduler=scheduler, checkpoint=checkpoint, every=every, only_voted=True)
    with fitting(f"fitting {estimator.method_name}", quiet=quiet) as callback:
        followed = {name: options[name] for name in _READ_ON_DASK}
        result = engine.fit(estimator, list(reading.labels), gold, callback=callback, **followed)
    if as_json:
        typer.echo(json.dumps(result.summary, ensure_ascii=False, default=str))
    elif not quiet:
        _tell(result.summary, out)
    return 0 if result.summary["converged"] else 3


def _refuse_unread(options: dict[str, Any]) -> None:
    from rarevote.io.read.crowd import ReadOptions

    given = ReadOptions(**options)
    unread = given.given(*(name for name in options if name not in _READ_ON_DASK))
    if unread is not None:
        names = {"file_format": "format", "has_header": "no_header", "platform": "from"}
        option = names.get(unread, unread.replace("_columns", "_column")).replace("_", "-")
        raise ParameterError(
            f"--{option} is for a single machine: the dask engine reads Parquet and CSV files with a header "
            "(rarevote convert makes such files)"
        )


def _tell(summary: dict[str, Any], out: Path) -> None:
    say(
        f"{summary['n_annotations']:,} annotations, {summary['n_tasks']:,} tasks, {summary['n_workers']:,} workers, "
        f"{len(summary['classes'])} classes in {summary['n_shards']:,} shards"
    )
    say()
    classes = summary["classes"]
    told, left_out = told_classes({name: one["share_of_votes"] for name, one in classes.items()})
    rows = [
        [name, f"{one['tasks']:,}", share(one["share_of_tasks"]), share(one["share_of_votes"])]
        for name, one in ((name, classes[name]) for name in told)
    ]
    say(aligned(["class", "tasks", "of tasks", "of votes"], rows))
    say(left_out)
    seconds = summary["seconds"]
    say(
        f"{summary['method']}: {summary['n_iter']} iterations, {summary['status']}; "
        f"encode {seconds['encode']:.1f} s, fit {seconds['fit']:.1f} s"
    )
    say(f"wrote {out}/tasks (one row per task), {out}/summary.json and tables of the workers")
