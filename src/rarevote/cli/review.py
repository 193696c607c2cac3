"""``rarevote review``: answer a review list in the browser."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rarevote.cli.options.output import talk_options
from rarevote.cli.options.verb import PATH, argument, default_from, file_option, flag, verb
from rarevote.cli.options.workbench import InstructionOptions, WorkbenchOptions, with_instructions, with_workbench
from rarevote.cli.show import command, say, tell_json
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.audit.journal import Journal
    from rarevote.workbench.lists import ListSession


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
    help="The list that --review-out wrote, or any table with a column of tasks.",
)
@file_option(
    "--out",
    "-o",
    callback=default_from("listed", ".answers.csv"),
    help="The file of answers (task, label). Default: LIST.answers.csv in the folder of LIST.",
)
@click.option(
    "--class",
    "classes",
    metavar="LABEL",
    multiple=True,
    help="A class to choose from. Default: the classes in the list. Repeatable.",
)
@file_option("--answers", help="Read the answers that an offline page saved; no browser is opened.")
@flag("--reasons", help="Also show the crowd's votes; the answers are then no longer independent of them.")
@talk_options
def review(
    workbench: WorkbenchOptions,
    instructions: InstructionOptions,
    *,
    listed: Path,
    out: Path,
    classes: tuple[str, ...],
    reasons: bool,
    answers: Path | None,
    as_json: bool,
) -> None:
    """Answer a review list in the browser; every answer is saved before the next item is shown."""
    from rarevote.audit.journal import writing
    from rarevote.io.read.answers import read_review_list
    from rarevote.io.write.columns import check_output

    media, asked = workbench.shown_media(), instructions.read()
    if workbench.offline is not None and reasons:
        raise ParameterError(
            "--reasons cannot be used with --offline: an offline page does not contain the crowd's votes"
        )
    check_output(out)
    rows = read_review_list(listed)

    def sit(journal: Journal) -> ListSession:
        from rarevote.workbench.lists import ListSession

        return ListSession(
            listed,
            rows,
            out=out,
            classes=classes,
            reasons=reasons,
            media=media,
            show_as=workbench.show_as,
            instructions=asked,
            journal=journal,
            who=workbench.who,
        )

    if workbench.offline is not None:
        saved = f"{workbench.offline.stem}.answers.json"
        classes_again = [word for name in classes for word in ("--class", name)]
        then = command("rarevote", "review", listed, *classes_again, "--answers", saved)
        workbench.write_offline(sit, writing(listed), then, as_json=as_json)
        return
    if answers is not None:
        session = _take(sit, writing(listed), answers)
        if as_json:
            tell_json({"answered": session.progress.done, "unsure": session.progress.unsure, "out": str(out)})
    else:
        session = workbench.run(sit, writing(listed), as_json=as_json)
    if session.progress.done:
        session.make("answers")
        say(f"wrote {out}: {counted(len(session.answers), 'answer')}; use them in the next run with --gold {out}")


def _take(
    sit: Callable[[Journal], ListSession], writing: AbstractContextManager[Journal], answers: Path
) -> ListSession:
    """The session after adding the answers that a page saved."""
    from rarevote.audit.saved_answers import read_saved_answers

    with writing as journal:
        session = sit(journal)
        of, number = session.asked
        session.take(read_saved_answers(answers, of=of, number=number, tasks=session.tasks, labels=session.labels))
    return session
