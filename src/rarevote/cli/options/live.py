"""The server of a platform: its address, the project, and the token, which is not an option."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from rarevote.cli.options.verb import Option, takes
from rarevote.errors import ParameterError

if TYPE_CHECKING:
    from rarevote.io.live.connection import Secret
    from rarevote.io.live.label_studio import Project

_ADDRESS = "LABEL_STUDIO_URL"


@dataclass(frozen=True)
class ServerOptions:
    """The options of the server."""

    url: str | None = None
    project: int | None = None

    def open(self, number: int | None = None) -> Project:
        """The project, with the token from the environment or from a prompt.

        Args:
            number: number of another project on the same server.

        Raises:
            ParameterError: address, number or token are missing.
        """
        from rarevote.io.live.connection import http_library
        from rarevote.io.live.label_studio import Project

        http_library()  # before a token is typed
        chosen = self.project if number is None else number
        if self.url is None:
            raise ParameterError(f"no server: name it with --url http://127.0.0.1:8080, or in {_ADDRESS}")
        if chosen is None:
            raise ParameterError("no project: name it with --project NUMBER, the number in the address of its page")
        return Project(self.url, chosen, token=_token())


def _token() -> Secret | None:
    """The token from the environment or from a hidden prompt; never an option, which others could read."""
    from rarevote.io.live.connection import Secret
    from rarevote.io.live.label_studio import TITLE, token_from_environment

    found = token_from_environment()
    if found is None and sys.stdin is not None and sys.stdin.isatty():
        found = Secret(click.prompt(f"Token of {TITLE} (Account & Settings)", hide_input=True, err=True))
    return found


_option = partial(click.option, cls=Option, section="The server")
_URL = _option(
    "--url",
    metavar="URL",
    envvar=_ADDRESS,
    help=f"Address of the server: https, or http on this machine. Default: that in {_ADDRESS}.",
)
_PROJECT = _option("--project", metavar="NUMBER", type=click.IntRange(min=1), help="Number of the project.")
with_server = takes(ServerOptions, _URL, _PROJECT)
column_option = _option(
    "--column",
    metavar="p_CLASS",
    help="Also give the tasks a column to sort by: the probability of this class, such as p_defect (or p_defect=NAME).",
)
