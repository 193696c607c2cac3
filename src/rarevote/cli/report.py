"""``rarevote report``: the page to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rarevote.cli.decisions import Applied, apply_decision
from rarevote.cli.options.common import Json, Quiet, Rare
from rarevote.cli.options.decide import DecisionArguments
from rarevote.cli.options.fit import FitOptions
from rarevote.cli.options.groups import takes
from rarevote.cli.options.read import Reading
from rarevote.cli.show import reading_files, say
from rarevote.errors import InputError

EXAMPLES = """Examples:

rarevote report labels.csv

rarevote report labels.csv --rare defect --show image --truth truth.csv --out rails.html

rarevote report project-3.json --from label-studio --question quality --charts figures/

rarevote report labels.csv --cost sound:defect=1,defect:sound=20 --out rails.html"""


@takes(Reading, FitOptions, DecisionArguments)
def report(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; ends in .html.")] = Path("report.html"),
    rare: Rare = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Known labels to check the result against; never used in the fit."),
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every chart there, as SVG and PNG.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """One HTML page to look at and pass on: the answer, what a majority vote loses, who is good at what."""
    from rarevote.crowd.rare import rare_class
    from rarevote.page.report import check_page_path, write_report

    options = decisions.parse(has_gold=fit_options.gold is not None or fit_options.use_gold, out=out)
    estimator = fit_options.make()
    check_page_path(out)
    if charts is not None and charts.exists() and not charts.is_dir():
        raise InputError(f"{charts}: is a file; --charts wants a folder")
    with reading_files(reading.title, quiet=quiet):
        crowd = reading.read()
        known = None if truth is None else crowd.known(truth)
        learned = fit_options.known(crowd, estimator)
    rare_class(crowd.annotations, rare)  # a name that is no class is refused before the fit, which takes time
    if not quiet:
        crowd.tell()
    fit_options.fit(estimator, crowd, learned, quiet=quiet)
    if not quiet:
        say("sampling probabilities and making the page (a large crowd takes a minute) ...")
    applied = apply_decision(estimator, options, gold=learned, shown=crowd.shown) if options.active else None
    made = write_report(
        estimator,
        out,
        source=source_name(reading),
        truth=known,
        gold=learned,
        rare=rare,
        shown=crowd.shown,
        charts=charts,
        **({} if applied is None else _as_shown(applied)),
    )
    if as_json:
        summary: dict[str, Any] = {"page": str(made.page), "bytes": made.n_bytes, "headline": made.headline}
        summary["charts"] = [str(path) for path in made.charts]
        if applied is not None:
            summary["decision"] = applied.summary
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        say(made.headline)
        for line in applied.words if applied is not None else ():
            say(line)
        if made.charts:
            say(f"wrote {len(made.charts)} files to {charts}")
        say(f"wrote {made.page} ({made.n_bytes / 1e6:.1f} MB)")


def _as_shown(applied: Applied) -> dict[str, Any]:
    """A decision as the page takes it: labels, how they came about, and what to know before relying on them."""
    decision, target = applied.decision, applied.decision.target
    sentence = decision.rule if target is None or not target.promised else f"{decision.rule}; {target.words}"
    return {
        "labels": decision.codes,
        "decision": sentence,
        "calibration": applied.calibrated,
        "cautions": [target.words[:1].upper() + target.words[1:]] if target is not None and not target.promised else [],
    }


def source_name(reading: Reading) -> str:
    """What the page calls the data: names of files without their folders, which are nobody else's business."""
    first = "standard input" if reading.labels[0] == "-" else Path(reading.labels[0]).name
    return first + (f" and {len(reading.labels) - 1} more" if len(reading.labels) > 1 else "")
