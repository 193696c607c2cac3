"""``rarevote report``: the page to look at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rarevote.cli.options.common import Json, Quiet, Rare, Reading, examples, takes
from rarevote.cli.options.fit import DecisionArguments, FitOptions
from rarevote.cli.show import decision_words, say
from rarevote.errors import InputError

EXAMPLES = examples(
    "rarevote report labels.csv",
    "rarevote report labels.csv --rare defect --show image --truth truth.csv --out rails.html",
    "rarevote report project-3.json --from label-studio --question quality --charts figures/",
    "rarevote report labels.csv --cost sound:defect=1,defect:sound=20 --out rails.html",
    "rarevote report labels.csv --audit audit.json --out rails.html",
)


@takes(Reading, FitOptions, DecisionArguments)
def report(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; ends in .html.")] = Path("report.html"),
    rare: Rare = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Truth: labels to check the result against; never used in the fit."),
    ] = None,
    charts: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write every chart there, as SVG and PNG.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(metavar="PLAN", help="Also show what an audit of these labels proved.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """One HTML page to look at and pass on: the answer, what a majority vote loses, who is good at what."""
    from rarevote.audit.source import audit_of_labels
    from rarevote.page.report import check_page_path

    options = decisions.options(has_gold=fit_options.may_have_gold, out=out)
    estimator = fit_options.make()
    check_page_path(out)
    if charts is not None and charts.exists() and not charts.is_dir():
        raise InputError(f"{charts}: is a file; --charts wants a folder")
    audited = None if audit is None else audit_of_labels(audit, reading.labels)
    crowd = reading.read(quiet=quiet)
    known = None if truth is None else crowd.truth(truth)
    fitted = fit_options.fit(crowd, estimator, rare=rare, quiet=quiet)
    if not quiet:
        say("making the page (a large crowd takes a minute) ...")
    result = fitted.decide(**options)
    if decisions.max_review is not None:
        result.review(decisions.max_review, decisions.review_out, form=decisions.review_as)
    made = result.report(out, truth=known, charts=charts, source=source_name(reading), audit=audited)
    if as_json:
        summary: dict[str, Any] = {"page": str(made.page), "bytes": made.n_bytes, "headline": made.headline}
        summary["charts"] = [str(path) for path in made.charts]
        if decisions.active:
            summary["decision"] = result.summary()["decision"]
        typer.echo(json.dumps(summary, ensure_ascii=False, default=str))
    elif not quiet:
        say(made.headline)
        for line in decision_words(result) if decisions.active else ():
            say(line)
        if made.charts:
            say(f"wrote {len(made.charts)} files to {charts}")
        say(f"wrote {made.page} ({made.n_bytes / 1e6:.1f} MB)")


def source_name(reading: Reading) -> str:
    """What the page calls the data: names of files without their folders, which are nobody else's business."""
    first = "standard input" if reading.labels[0] == "-" else Path(reading.labels[0]).name
    return first + (f" and {len(reading.labels) - 1} more" if len(reading.labels) > 1 else "")
