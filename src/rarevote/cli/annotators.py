"""``rarevote annotators``: how well annotators recognise each class, and whether their majority vote can find it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rarevote.cli.each import begin, below_each_other, tell_records
from rarevote.cli.options.fit import FitOptions, with_fit_and_rare
from rarevote.cli.options.output import check_result_file, spreadsheet_option, talk_options, top_option
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import file_option, one_of, verb
from rarevote.cli.show import aligned, percent, say, tell, tell_rest
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError, warn_user

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.diagnose.diagnosis import Diagnosis

_SORTS = ("rare", "votes", "agreement", "name")
_SHOWN_CLASSES = 4
_SHOWN_PAIRS = 5


@verb(
    "rarevote annotators labels.csv",
    "rarevote annotators labels.csv --rare defect --sort votes --top 50",
    "rarevote annotators labels.csv --out annotators.csv --json",
)
@with_reading
@with_fit_and_rare
@click.option(
    "--sort",
    metavar="BY",
    default="rare",
    help="Sort by rare (best at the rare class first, by the lower end of the interval), votes, agreement or name.",
    shell_complete=one_of(*_SORTS),
)
@top_option
@file_option("--out", "-o", help="File for all rows, with intervals: .csv, .parquet, .xlsx, ...")
@spreadsheet_option
@talk_options
def annotators(
    reading: Reading,
    fit_options: FitOptions,
    *,
    sort: str,
    top: int,
    out: Path | None,
    spreadsheet_safe: bool,
    as_json: bool,
) -> None:
    """Show how well each annotator recognises each class, how far they agree, and who makes the same mistakes."""
    from rarevote.diagnose.workers import annotator_figures, annotator_order, annotator_rows, recall_names
    from rarevote.io.write.columns import check_columns, write_columns

    if sort not in _SORTS:
        raise ParameterError(f"--sort must be {', '.join(_SORTS)}, got {sort!r}")
    estimator = fit_options.make()
    check_result_file(out)
    crowd = reading.read()
    fits = fit_options.fits(
        crowd, estimator, check=lambda classes: check_columns(recall_names(classes), out) if out is not None else None
    )
    described = {name: fitted.diagnose() for name, fitted in fits.items()}
    orders = {name: annotator_order(found, sort) for name, found in described.items()}
    tables = {name: annotator_rows(found, orders[name]) for name, found in described.items()}
    if out is not None:
        write_columns(below_each_other(tables), out, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        tell_records(
            {
                name: {
                    **annotator_figures(one, fit_options.method, tables[name]),
                    **fits[name].feature_figures,
                }
                for name, one in described.items()
            }
        )
    for name, found in described.items():
        if not as_json:
            say()
            begin(name)
            _tell(found, orders[name], top, has_file=out is not None)
            _tell_agreement(found)
        for warning in found.alike.warnings:
            warn_user(f"{name}: {warning}" if name else warning)
    if out is not None:
        say(f"wrote {out}: {counted(crowd.annotations.n_workers, 'annotator')}")


def _tell(found: Diagnosis, order: NDArray[Any], top: int, *, has_file: bool) -> None:
    from rarevote.crowd.words import short_names
    from rarevote.diagnose.jury import jury_sentences
    from rarevote.diagnose.workers import (
        PROFILE_WORDS,
        Profile,
        chance_words,
        lean_words,
        profile_meanings,
        told_classes,
    )

    workers, names = found.workers, found.classes.names
    told = told_classes(found, _SHOWN_CLASSES)
    header = [
        "annotator",
        "votes",
        *(f"recognises {name}" for name in short_names([str(names[k]) for k in told])),
        "agrees",
        *([] if found.leans is None else ["rates"]),
        "profile",
    ]
    rows = [
        [
            str(workers.names[r]),
            f"{workers.n_votes[r]:,}",
            *(
                f"{percent(workers.accuracy[r, k])} ({percent(workers.low[r, k])} to {percent(workers.high[r, k])})"
                for k in told
            ),
            percent(workers.agreement[r]),
            *([] if found.leans is None else [lean_words(float(found.leans[r]))]),
            PROFILE_WORDS[Profile(int(workers.profile[r]))],
        ]
        for r in order[:top]
    ]
    tell(aligned(header, rows))
    tell_rest(len(order) - top, has_file=has_file)
    chance = chance_words(len(names))
    tell(
        f"\nrecognises: share of the items of the class that the annotator labels correctly, with a 95% interval; "
        f"{chance}"
    )
    tell()
    meanings = profile_meanings(names[found.rare], names[found.common])
    n_workers = len(workers.names)
    tell(
        aligned(
            ["profile", "people", "share"],
            [
                [
                    f"{words}: {meanings[profile]}",
                    f"{workers.count(profile):,}",
                    percent(workers.count(profile) / n_workers),
                ]
                for profile, words in PROFILE_WORDS.items()
            ],
        )
    )
    tell()
    for sentence in jury_sentences(found.classes.jury, names):
        tell(sentence)


def _tell_agreement(found: Diagnosis) -> None:
    from rarevote.diagnose.agreement import COEFFICIENTS

    agreement = found.agreement
    tell()
    rows = []
    for name, words in COEFFICIENTS.items():
        value, (low, high) = getattr(agreement, name), agreement.intervals[name]
        rows.append([words, f"{value:.3f}", "" if low != low else f"{low:.3f} to {high:.3f}"])
    if found.on_grades is not None:
        from rarevote.diagnose.ordered_agreement import ORDERED_COEFFICIENTS

        for name, words in ORDERED_COEFFICIENTS.items():
            value, (low, high) = getattr(found.on_grades, name), found.on_grades.intervals[name]
            rows.append([words, f"{value:.3f}", "" if low != low else f"{low:.3f} to {high:.3f}"])
    tell(aligned(["agreement", "value", "95 % interval"], rows))
    tell()
    if closest := found.alike.closest(_SHOWN_PAIRS):
        pairs = [[f"{a} and {b}", f"{correlation:+.2f}", f"{common:,}"] for a, b, correlation, common in closest]
        tell(aligned(["closest pairs", "correlation of errors", "items"], pairs))
        tell()
    for sentence in found.alike.sentences():
        tell(sentence)
