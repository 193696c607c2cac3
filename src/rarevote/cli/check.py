"""``rarevote check``: can this crowd answer, does the model fit, and when not to trust the labels."""

from __future__ import annotations

import click

from rarevote.cli.each import begin, tell_records
from rarevote.cli.options.fit import FitOptions, with_fit_and_find
from rarevote.cli.options.output import strict_option, talk_options
from rarevote.cli.options.reading import Reading, with_reading
from rarevote.cli.options.verb import verb
from rarevote.cli.show import say, tell
from rarevote.crowd.steps import within


@verb(
    "rarevote check labels.csv",
    "rarevote check labels.csv --rare defect --method dawid-skene",
    "rarevote check labels.csv --strict --json > check.json",
)
@with_reading
@with_fit_and_find
@strict_option
@talk_options
def check(reading: Reading, fit_options: FitOptions, *, strict: bool, as_json: bool) -> None:
    """Check whether the labels are reliable enough to use."""
    estimator = fit_options.make()
    crowd = reading.read(with_hints=True)
    records, fails = {}, False
    for name, fitted in fit_options.fits(crowd, estimator).items():
        with within(name):
            found = fitted.check()
        fails |= found.cannot_answer or not found.converged
        if as_json:
            records[name] = {**found.figures(), **fitted.feature_figures}
            continue
        say()
        begin(name)
        tell(str(found))
    if as_json:
        tell_records(records)
    if strict and fails:
        raise click.exceptions.Exit(3)
