"""``rarevote review``: answer a review list in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rarevote.cli.options.output import talk_options
from rarevote.cli.options.verb import PATH, argument, file_option, flag, verb
from rarevote.cli.options.workbench import InstructionOptions, WorkbenchOptions, with_instructions, with_workbench
from rarevote.cli.show import say

if TYPE_CHECKING:
    from rarevote.audit.journal import Journal
    from rarevote.workbench.session import ReviewSession


@verb(
    "rarevote review review.csv",
    "rarevote review review.csv --media photos/ --who anna --out answers.csv",
    "rarevote review items.csv --class defect --class sound --port 8080 --no-browser",
)
@with_workbench
@with_instructions
@argument(
    "listed",
    metavar="LIST",
    type=PATH,
    help="What --review-out wrote, or any table with a column of tasks.",
)
@file_option("--out", "-o", help="The answers (task, label). Default: LIST.answers.csv beside it.")
@click.option(
    "--class",
    "classes",
    metavar="LABEL",
    multiple=True,
    help="A class. Default: those in the list. Repeatable.",
)
@flag("--reasons", help="Also show what the crowd said; the answers then depend on it.")
@talk_options
def review(
    workbench: WorkbenchOptions,
    instructions: InstructionOptions,
    *,
    listed: Path,
    out: Path | None,
    classes: tuple[str, ...],
    reasons: bool,
    as_json: bool,
) -> None:
    """Answer a review list in the browser; every answer is on the disk before the next item shows."""
    from rarevote.audit.journal import writing
    from rarevote.io.read.answers import read_review_list
    from rarevote.io.write.columns import check_output
    from rarevote.io.write.overwrite import refuse_overwriting

    media, asked = workbench.shown_media(), instructions.read()
    target = out or listed.with_name(f"{listed.stem}.answers.csv")
    check_output(target)
    refuse_overwriting(target, [listed])
    rows = read_review_list(listed)

    def sit(journal: Journal) -> ReviewSession:
        from rarevote.workbench.lists import ListSession

        return ListSession(
            listed,
            rows,
            out=target,
            classes=classes,
            reasons=reasons,
            media=media,
            show_as=workbench.show_as,
            instructions=asked,
            journal=journal,
            who=workbench.who,
        )

    session = workbench.run(sit, writing(listed), as_json=as_json)
    if session.progress.done:
        session.make("answers")
        say(f"wrote {target}; give it to the next run: rarevote aggregate LABELS --gold {target}")
