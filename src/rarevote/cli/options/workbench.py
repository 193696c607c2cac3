"""Options of the verbs that open the workbench."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarevote.cli.show import say
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.meaning.audit.journal import Journal
    from rarevote.workbench.shelf import Pictures
    from rarevote.workbench.sitting import Sitting

Images = Annotated[
    list[Path] | None,
    typer.Option(metavar="FOLDER", help="Show image files from here and from below, and no others. Repeatable."),
]
ImagesFrom = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST", help="Show images from this host, over https. Repeatable."),
]
Who = Annotated[str | None, typer.Option(metavar="NAME", help="Who answers; kept with every answer.")]
Port = Annotated[int, typer.Option(metavar="N", help="The port on 127.0.0.1; 0 is any that is free.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address, open nothing.")]


@dataclass(frozen=True)
class WorkbenchOptions:
    """How the workbench runs, and what it may show."""

    images: Images = None
    images_from: ImagesFrom = None
    who: Who = None
    port: Port = 0
    no_browser: NoBrowser = False

    def pictures(self) -> Pictures:
        """Which texts are pictures."""
        from rarevote.workbench.serve import need_server
        from rarevote.workbench.shelf import Pictures

        need_server()
        if not 0 <= self.port < 65_536:
            raise ParameterError(f"--port must lie between 0 and 65535, got {self.port}")
        return Pictures(self.images or [], self.images_from or [])

    def run(
        self,
        sit: Callable[[Journal], Sitting],
        writing: AbstractContextManager[Journal],
        *,
        quiet: bool,
        as_json: bool,
    ) -> Sitting:
        """Serve until it is ended; the journal is ours as long."""
        from rarevote.workbench.serve import listen, serve

        with writing as journal, listen(self.port) as opened:
            sitting = sit(journal)

            def tell(address: str) -> None:
                say(f"The workbench is open, on this machine only: {address}")
                if not quiet:
                    say("Every answer is saved at once. Ctrl-C ends it; the same command goes on.")

            serve(sitting, opened, tell=tell, browser=not self.no_browser)
            progress = sitting.progress
        figures = {"answered": progress.done, "unsure": progress.unsure, "asked": progress.total,
                   "journal": str(journal.path)}  # fmt: skip
        if as_json:
            typer.echo(json.dumps(figures, ensure_ascii=False))
        if not quiet:
            say(f"{progress.done:,} of {progress.total:,} answered in this {sitting.noun}; all are in {journal.path}")
        return sitting
