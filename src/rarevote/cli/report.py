"""``rarevote report``: the HTML page of a result."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.options.decisions import DecisionArguments, with_decisions
from rarevote.cli.options.fit import FitOptions, with_fit_and_find
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, flag, verb
from rarevote.cli.show import decision_words, is_quiet, say, tell_json
from rarevote.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rarevote.api import Result
    from rarevote.audit import Audit
    from rarevote.page.report import Report


@verb(
    "rarevote report labels.csv",
    "rarevote report labels.csv --rare defect --show image --truth truth.csv --out rails.html",
    "rarevote report project-3.json --from label-studio --question quality --charts figures/",
    "rarevote report labels.csv --cost sound:defect=1,defect:sound=20 --out rails.html",
    "rarevote report labels.csv --audit audit.json --out rails.html",
    "rarevote report labels.csv --anonymous --out to-pass-on.html",
)
@with_reading
@with_fit_and_find
@with_decisions
@file_option("--out", "-o", default="report.html", help="The page; ends in .html.")
@click.option("--truth", metavar="FILE", help="Truth: labels to check the result against; never used in the fit.")
@file_option("--charts", metavar="FOLDER", help="Also write every chart there, as SVG and PNG.")
@file_option("--audit", metavar="PLAN", help="Also show what an audit of these labels proved.")
@flag("--anonymous", help="Call annotators A1, A2, ... on the page and in its tables.")
@talk_options
def report(
    reading: Reading,
    fit_options: FitOptions,
    decisions: DecisionArguments,
    *,
    out: Path,
    truth: str | None,
    charts: Path | None,
    audit: Path | None,
    anonymous: bool,
    as_json: bool,
) -> None:
    """Write one HTML page to read and share: what you have, how sure it is, what to do next."""
    from rarevote.audit.source import audit_of_labels
    from rarevote.io.read.crowd import title_of
    from rarevote.page.report import check_page_path

    options = decisions.options(has_gold=fit_options.may_have_gold, grades=fit_options.grades)
    estimator = fit_options.make()
    check_page_path(out)
    if charts is not None and charts.exists() and not charts.is_dir():
        raise InputError(f"{charts}: is a file; --charts wants a folder")
    audited = None if audit is None else audit_of_labels(audit, reading.labels)
    crowd = reading.read(with_hints=True)
    audit_again, again = map(_without_folders, (crowd.arguments, crowd.aggregate_arguments))
    crowd = replace(crowd, arguments=audit_again, aggregate_arguments=again)
    # Names of files without their folders, which the readers of a page need not know.
    source = title_of([Path(one).name for one in reading.labels])
    made: Report
    decided: Mapping[str, Result]
    if crowd.choices:
        from rarevote.io.read.labels import known_by_label

        labels = None if truth is None else known_by_label(crowd, truth)
        every = fit_options.fit_each(crowd, estimator)
        each = every.decide(**options)
        if decisions.max_review is not None:
            each.review(decisions.max_review, decisions.review_out, form=decisions.review_as)
        audits = {} if audited is None else {every.name_of(_label_of(audited)): audited}
        decided = each
        made = each.report(out, truth=labels, charts=charts, source=source, audits=audits, anonymous=anonymous)
    else:
        known = None if truth is None else crowd.truth(truth)
        fitted = fit_options.fit(crowd, estimator)
        result = fitted.decide(**options)
        decisions.review(result)
        decided = {"": result}
        made = result.report(out, truth=known, charts=charts, source=source, audit=audited, anonymous=anonymous)
    if as_json:
        summary: dict[str, Any] = {"page": str(made.page), "bytes": made.n_bytes, "headline": made.headline}
        summary |= {"charts": [str(path) for path in made.charts], **fitted.feature_figures}
        if decisions.active:
            found = {name: one.summary()["decision"] for name, one in decided.items()}
            summary["decision"] = found if crowd.choices else found[""]
        tell_json(summary)
    elif not is_quiet():
        say(made.headline)
        for name, one in decided.items() if decisions.active else ():
            for line in [name, *decision_words(one)] if name else decision_words(one):
                say(line)
        if made.charts:
            say(f"wrote {len(made.charts)} files to {charts}")
        say(f"wrote {made.page} ({made.n_bytes / 1e6:.1f} MB)")


def _without_folders(arguments: str) -> str:
    """A command with file names instead of full paths."""
    return shlex.join(Path(word).name if Path(word).is_absolute() else word for word in shlex.split(arguments))


def _label_of(audit: Audit) -> str:
    """The label of an audit."""
    return str((audit.plan.source or {}).get("reading", {}).get("choice"))
