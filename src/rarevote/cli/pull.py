"""``rarevote pull``: the answers of a project from its server."""

from __future__ import annotations

from pathlib import Path

import click

from rarevote.cli.options.live import ServerOptions, with_server
from rarevote.cli.options.output import talk_options
from rarevote.cli.options.verb import Verbs, examples, file_option
from rarevote.cli.show import say, tell_json
from rarevote.crowd.steps import ProgressStep, report
from rarevote.crowd.words import counted

_EXAMPLE = "rarevote pull label-studio --url http://127.0.0.1:8080 --project 7 --out export.json"


@click.group(cls=Verbs, no_args_is_help=True, epilog=examples(_EXAMPLE))
def pull() -> None:
    """Fetch the answers of a project from a platform's server."""


@pull.verb(_EXAMPLE, name="label-studio", after="The token is read from LABEL_STUDIO_API_KEY, or prompted for.")
@with_server
@file_option("--out", "-o", required=True, help="The export (.json); an export of an earlier pull is updated.")
@talk_options
def label_studio(server: ServerOptions, *, out: Path, as_json: bool) -> None:
    """Fetch the tasks of a project with their annotations, or only what changed since the last pull."""
    from rarevote.io.live.pulled import check_file, pull

    check_file(out)
    with server.open() as project:
        found = pull(project, out, progress=lambda done: report(ProgressStep("pulling", done, 0, f"{done:,} tasks")))
        title = project.title
    if as_json:
        tell_json({"out": str(out), "tasks": found.tasks, "annotations": found.annotations, "changed": found.changed,
                   "whole": found.whole})  # fmt: skip
        return
    fetched = "all fetched" if found.whole else f"{found.changed:,} fetched"
    say(
        f"wrote {out}: {counted(found.tasks, 'task')} of {title}, {fetched}; {counted(found.annotations, 'annotation')}"
    )
