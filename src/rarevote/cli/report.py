"""``rarevote report``: the page to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rarevote.cli.aggregate import warn_where_weak
from rarevote.cli.options import Json, MethodName, Quiet, Settings, make_method
from rarevote.cli.reading import Reading, takes_labels
from rarevote.cli.show import fitting, reading_files, say
from rarevote.errors import InputError

EXAMPLES = """Examples:

rarevote report labels.csv

rarevote report labels.csv --rare defect --show image --truth truth.csv --out rails.html

rarevote report project-3.json --from label-studio --question quality --charts figures/"""


@takes_labels
def report(
    reading: Reading,
    method: MethodName = "cc-rasch",
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; ends in .html.")] = Path("report.html"),
    rare: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The class that matters. Default: the one with the fewest expected items."),
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Known labels that the method may learn from (task, label).")
    ] = None,
    use_gold: Annotated[
        bool, typer.Option("--use-gold/--ignore-gold", help="Whether to learn from known answers in an export.")
    ] = True,
    truth: Annotated[
        Path | None, typer.Option(help="Known labels to check the result against; never used in the fit.")
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every chart there, as SVG and PNG.")
    ] = None,
    settings: Settings = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """One HTML page to look at and pass on: the answer, what a majority vote loses, who is good at what."""
    from rarevote.report import check_page_path, write_report

    estimator = make_method(method, settings)
    check_page_path(out)
    if charts is not None and charts.exists() and not charts.is_dir():
        raise InputError(f"{charts}: is a file; --charts wants a folder")
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
        known = None if truth is None else crowd.known(truth)
        learned = crowd.known(gold) if gold is not None else crowd.gold if use_gold and estimator.uses_gold else None
    if not quiet:
        crowd.tell()
    warn_where_weak(method, crowd.annotations)
    with fitting(f"fitting {method}", quiet=quiet) as callback:
        estimator.fit(crowd.annotations, learned or None, callback=callback)
    if not quiet:
        say("sampling probabilities and making the page (a large crowd takes a minute) ...")
    made = write_report(
        estimator,
        out,
        source=source_name(reading),
        truth=known,
        gold=learned,
        rare=rare,
        shown=crowd.shown,
        charts=charts,
    )
    if as_json:
        summary = {"page": str(made.page), "bytes": made.n_bytes, "headline": made.headline}
        typer.echo(json.dumps({**summary, "charts": [str(path) for path in made.charts]}, ensure_ascii=False))
    elif not quiet:
        say(made.headline)
        if made.charts:
            say(f"wrote {len(made.charts)} files to {charts}")
        say(f"wrote {made.page} ({made.n_bytes / 1e6:.1f} MB)")


def source_name(reading: Reading) -> str:
    """What the page calls the data: names of files without their folders, which are nobody else's business."""
    first = "standard input" if reading.labels[0] == "-" else Path(reading.labels[0]).name
    return first + (f" and {len(reading.labels) - 1} more" if len(reading.labels) > 1 else "")
