"""The options of the workbench: how it runs, and what it can show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from rarevote.cli.options.verb import file_option, flag, takes
from rarevote.cli.show import say, tell_json
from rarevote.crowd.steps import listening
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
from rarevote.progress import hide

if TYPE_CHECKING:
    from rarevote.audit.instructions import Instructions
    from rarevote.audit.journal import Journal
    from rarevote.workbench.media import Media
    from rarevote.workbench.session import ReviewSession


Session = TypeVar("Session", bound="ReviewSession")


@dataclass(frozen=True)
class WorkbenchOptions:
    """The options of the workbench."""

    media: Sequence[Path]
    images_from: Sequence[str]
    show_as: Sequence[str]
    offline: Path | None
    who: str | None
    port: int
    no_browser: bool

    def shown_media(self) -> Media:
        """Which files and hosts can be shown."""
        from rarevote.workbench.media import Media
        from rarevote.workbench.serve import need_server

        need_server()
        if not 0 <= self.port < 65_536:
            raise ParameterError(f"--port must be between 0 and 65535, got {self.port}")
        return Media(self.media, self.images_from)

    def _again(self) -> list[str]:
        """These options as arguments of a command that opens the same session."""
        given = [
            *(("--media", str(folder)) for folder in self.media),
            *(("--images-from", host) for host in self.images_from),
            *(("--show-as", said) for said in self.show_as),
            *(() if self.who is None else (("--who", self.who),)),
        ]
        return [word for pair in given for word in pair]

    def write_offline(
        self,
        sit: Callable[[Journal], ReviewSession],
        writing: AbstractContextManager[Journal],
        then: str,
        *,
        as_json: bool,
    ) -> None:
        """Write one page for a remote expert, and show the command that reads the answers."""
        from rarevote.page.report import check_page_path
        from rarevote.workbench.offline import write_offline

        assert self.offline is not None
        check_page_path(self.offline)
        with writing as journal:
            session = sit(journal)
            of, number = session.asked
            n_items = write_offline(session, self.offline, of=of, number=number)
        if as_json:
            tell_json({"offline": str(self.offline), "n_items": n_items})
        say(
            f"wrote {self.offline}: {counted(n_items, 'item')}. The expert opens it in a browser, answers, and sends "
            "the saved file back."
        )
        say(f"then: {then}")

    def run(
        self,
        sit: Callable[[Journal], Session],
        writing: AbstractContextManager[Journal],
        *,
        as_json: bool,
    ) -> Session:
        """Serve until stopped, with the journal locked."""
        from rarevote.workbench.serve import listen, serve

        with writing as journal, listen(self.port) as opened:
            session = sit(journal)
            session.command = (*session.command, *self._again())

            def tell(address: str) -> None:
                hide()
                click.echo(f"The workbench is open, on this machine only: {address}", err=True)
                say("Every answer is saved at once. Ctrl-C stops the workbench; the same command resumes.")

            with listening(None):  # answers are saved while pages are served: no bar between them
                serve(session, opened, tell=tell, browser=not self.no_browser)
            progress = session.progress
        if as_json:
            counts = {"answered": progress.done, "unsure": progress.unsure, "asked": progress.total}
            tell_json({**counts, "journal": str(journal.path)})
        say(f"{progress.done:,} of {progress.total:,} answered in this {session.noun}; all are in {journal.path}")
        return session


@dataclass(frozen=True)
class InstructionOptions:
    """The options about the question and the classes."""

    question_text: str | None
    define: Sequence[str]
    instructions: Path | None

    def read(self) -> Instructions:
        """The instructions; empty by default."""
        from rarevote.audit.instructions import read_instructions

        return read_instructions(self.question_text, self.define, self.instructions)


with_instructions = takes(
    InstructionOptions,
    click.option("--question-text", metavar="TEXT", help="The question to ask about every item."),
    click.option(
        "--define",
        metavar="CLASS=TEXT",
        multiple=True,
        help="Definition of a class, shown to the expert and stored in the certificate. Repeatable.",
    ),
    file_option("--instructions", help='The same from a TOML file: question = "..." and a table [define].'),
)


with_workbench = takes(
    WorkbenchOptions,
    file_option(
        "--media",
        "--images",
        metavar="FOLDER",
        multiple=True,
        help="Show images, audio, video and PDF files from this folder and its subfolders only. Repeatable.",
    ),
    click.option(
        "--images-from", metavar="HOST", multiple=True, help="Show images from this host, over https. Repeatable."
    ),
    click.option(
        "--show-as",
        metavar="COLUMN=KIND",
        multiple=True,
        help="Show a column as text, html, markdown, link, image, audio, video or pdf. Default: detected. Repeatable.",
    ),
    file_option(
        "--offline",
        help="Instead of opening the workbench, write one self-contained page (.html) to send to an expert.",
    ),
    click.option("--who", metavar="NAME", help="The name of the expert, stored with every answer."),
    click.option("--port", metavar="N", default=0, help="The port on 127.0.0.1; 0 chooses a free one."),
    flag("--no-browser", help="Print the address without opening a browser."),
)
