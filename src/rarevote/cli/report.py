"""``rarevote report``: the page to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.aggregate import warn_where_weak
from rarevote.cli.options import (
    Abstain,
    Classes,
    Columns,
    Json,
    Keep,
    LabelsFile,
    MethodName,
    Missing,
    Quiet,
    Settings,
    make_method,
    parse_columns,
)
from rarevote.cli.show import fitting, say
from rarevote.errors import InputError

EXAMPLES = """Examples:

rarevote report labels.csv

rarevote report labels.csv --rare defect --show image --truth truth.csv --out rails.html

rarevote report labels.parquet --method dawid-skene --charts figures/"""

Show = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="A column that says what an item shows, such as its text. Repeatable."),
]


def report(
    labels: LabelsFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; ends in .html.")] = Path("report.html"),
    method: MethodName = "cc-rasch",
    gold: Annotated[
        Path | None, typer.Option(help="Known labels that the method may learn from (task, label).")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="Known labels to check the result against; never used in the fit.")
    ] = None,
    rare: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class that matters. Default: the least frequent.")
    ] = None,
    show: Show = None,
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every chart there, as SVG and PNG.")
    ] = None,
    settings: Settings = None,
    columns: Columns = None,
    keep: Keep = "all",
    missing: Missing = "error",
    abstain: Abstain = None,
    classes: Classes = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """One HTML page to look at and pass on: the answer, what a majority vote loses, who is good at what."""
    from rarevote.io.files import read_label_files
    from rarevote.io.frames import read_truth
    from rarevote.report import check_page_path, write_report

    estimator = make_method(method, settings)
    check_page_path(out)
    if charts is not None and charts.exists() and not charts.is_dir():
        raise InputError(f"{charts}: is a file; --charts wants a folder")
    known = None if truth is None else read_truth(truth)
    given = None if gold is None else read_truth(gold)
    files = read_label_files(
        labels,
        columns=parse_columns(columns),
        classes=classes,
        abstain=abstain or (),
        keep=keep,  # type: ignore[arg-type]
        missing=missing,  # type: ignore[arg-type]
        show=show or (),
    )
    if not files.annotations.n_annotations:
        raise InputError(f"{labels}: no annotations")
    warn_where_weak(method, files.annotations)
    with fitting(f"fitting {method}", quiet=quiet) as callback:
        estimator.fit(files.annotations, given, callback=callback)
    made = write_report(
        estimator, out, source=labels.name, truth=known, gold=given, rare=rare, shown=files.shown, charts=charts
    )
    if as_json:
        summary = {"page": str(made.page), "bytes": made.n_bytes, "headline": made.headline}
        typer.echo(json.dumps({**summary, "charts": [str(path) for path in made.charts]}, ensure_ascii=False))
    elif not quiet:
        say(made.headline)
        if made.charts:
            say(f"wrote {len(made.charts)} files to {charts}")
        say(f"wrote {made.page} ({made.n_bytes / 1e6:.1f} MB)")
