"""``rarevote push``: labels beside the tasks of a project on its server."""

from __future__ import annotations

from pathlib import Path

import click

from rarevote.cli.options.live import ServerOptions, column_option, with_server
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.verb import PATH, Verbs, argument, examples, file_option, flag
from rarevote.cli.show import say, tell_json, warn
from rarevote.crowd.steps import ProgressStep, report

_EXAMPLE = "rarevote push label-studio result.csv --export export.json --url http://127.0.0.1:8080 --project 7"


@click.group(cls=Verbs, no_args_is_help=True, epilog=examples(_EXAMPLE))
def push() -> None:
    """Write labels to the tasks of a project on a platform's server."""


@push.verb(
    _EXAMPLE,
    f"{_EXAMPLE} --column p_defect",
    name="label-studio",
    after="The token is read from LABEL_STUDIO_API_KEY, or prompted for.",
)
@argument("result", metavar="RESULT", type=PATH, help="The result that rarevote aggregate wrote.")
@file_option("--export", required=True, help="The export that the result was made from (rarevote pull label-studio).")
@click.option("--question", metavar="NAME", help="The question to read, if the export has several.")
@flag("--multilabel", help="The result has one yes/no problem per choice.")
@column_option
@with_server
@talk_options
def label_studio(
    server: ServerOptions,
    *,
    result: Path,
    export: Path,
    question: str | None,
    multilabel: bool,
    column: str | None,
    as_json: bool,
) -> None:
    """Add the labels to the tasks as predictions; those of an earlier push are replaced."""
    from rarevote.io.live.label_studio import PRELABELLED, pushed_words
    from rarevote.io.live.predictions import Column, predictions_of_file
    from rarevote.io.platforms import read_export
    from rarevote.io.read.results import read_result

    wanted = None if column is None else Column(column)
    with server.open() as project:
        found = read_export(export, platform="label-studio", question=question, multilabel=multilabel)
        labels = read_result(result)
        records = predictions_of_file(labels, found)
        numbers = None if wanted is None else (wanted.name, wanted.numbers_of_file(labels, found))
        if project.shows_predictions():
            warn(PRELABELLED)
        done = project.push(
            records, column=numbers, progress=lambda n: report(ProgressStep("pushing", n, 0, f"{n:,} predictions"))
        )
        words = pushed_words(done, project)
    if as_json:
        tell_json({"predictions": done.predictions, "replaced": done.deleted, "gone": done.gone,
                   "patched": done.patched})  # fmt: skip
    else:
        say(words)
