"""The workbench: how it runs, and what it may show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rarevote.cli.options.verb import file_option, flag, takes
from rarevote.cli.show import say, tell_json
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.audit.journal import Journal
    from rarevote.workbench.content import Pictures
    from rarevote.workbench.session import ReviewSession


@dataclass(frozen=True)
class WorkbenchOptions:
    """What the command line says about the workbench."""

    images: Sequence[Path]
    images_from: Sequence[str]
    who: str | None
    port: int
    no_browser: bool

    def pictures(self) -> Pictures:
        """Which texts are pictures."""
        from rarevote.workbench.content import Pictures
        from rarevote.workbench.serve import need_server

        need_server()
        if not 0 <= self.port < 65_536:
            raise ParameterError(f"--port must lie between 0 and 65535, got {self.port}")
        return Pictures(self.images, self.images_from)

    def run(
        self,
        sit: Callable[[Journal], ReviewSession],
        writing: AbstractContextManager[Journal],
        *,
        as_json: bool,
    ) -> ReviewSession:
        """Serve until it is ended; the journal is ours as long."""
        from rarevote.workbench.serve import listen, serve

        with writing as journal, listen(self.port) as opened:
            session = sit(journal)

            def tell(address: str) -> None:
                click.echo(f"The workbench is open, on this machine only: {address}", err=True)
                say("Every answer is saved at once. Ctrl-C ends it; the same command goes on.")

            serve(session, opened, tell=tell, browser=not self.no_browser)
            progress = session.progress
        if as_json:
            counts = {"answered": progress.done, "unsure": progress.unsure, "asked": progress.total}
            tell_json({**counts, "journal": str(journal.path)})
        say(f"{progress.done:,} of {progress.total:,} answered in this {session.noun}; all are in {journal.path}")
        return session


with_workbench = takes(
    WorkbenchOptions,
    file_option(
        "--images",
        metavar="FOLDER",
        multiple=True,
        help="Show image files from here and from below, and no others. Repeatable.",
    ),
    click.option(
        "--images-from", metavar="HOST", multiple=True, help="Show images from this host, over https. Repeatable."
    ),
    click.option("--who", metavar="NAME", help="Who answers; kept with every answer."),
    click.option("--port", metavar="N", default=0, help="The port on 127.0.0.1; 0 is any that is free."),
    flag("--no-browser", help="Print the address, open nothing."),
)
