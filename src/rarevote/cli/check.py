"""``rarevote check``: can this crowd answer, does the model fit, and when not to trust the labels."""

from __future__ import annotations

import json

import typer

from rarevote.cli.options.common import Json, Quiet, Rare, Reading, Strict, examples, takes
from rarevote.cli.options.fit import FitOptions
from rarevote.cli.show import counting, say, tell

EXAMPLES = examples(
    "rarevote check labels.csv",
    "rarevote check labels.csv --rare defect --method dawid-skene",
    "rarevote check labels.csv --strict --json > check.json",
)

_SIGNS = {"stop": "!!", "care": " !", "note": "  "}


@takes(Reading, FitOptions)
def check(
    reading: Reading,
    fit_options: FitOptions,
    rare: Rare = None,
    strict: Strict = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Whether the labels may be used: can this crowd answer, does the model fit, when not to trust it."""
    from rarevote.diagnose.check import QUESTIONS
    from rarevote.diagnose.model_fit import N_REPLICATES

    estimator = fit_options.make()
    crowd = reading.read(quiet=quiet)
    fitted = fit_options.fit(crowd, estimator, rare=rare, quiet=quiet)
    with counting("casting the votes again", N_REPLICATES, quiet=quiet) as progress:
        found = fitted.check(progress=progress)
    if as_json:
        typer.echo(json.dumps(found.figures(), ensure_ascii=False, default=str))
    else:
        if not quiet:
            say()
        for question, title in QUESTIONS.items():
            answers = found.answers(question)
            if answers:
                tell(title)
            for one in answers:
                tell(f"{_SIGNS[one.weight]} {one.description}")
            if answers:
                tell()
        tell(f"verdict: {found.verdict}")
    if strict and (found.cannot_answer or not found.converged):
        raise typer.Exit(3)
