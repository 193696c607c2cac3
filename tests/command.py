"""The command line for tests: the real one, called in this process, so that a call costs what it does and no more.

A process of its own takes a second to start. Tests whose point is a process (pipes, signals, terminals, start-up,
memory) start one themselves; ``tests/cli/test_command.py`` holds this way and a process against each other.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from rarevote.cli import run


def rarevote(
    *arguments: str | Path,
    code: int = 0,
    folder: Path | None = None,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
) -> CompletedProcess[str]:
    """What ``rarevote arguments`` says, checked to end with ``code``.

    Args:
        arguments: The words after ``rarevote``.
        code: The exit code it must have.
        folder: Where it runs; here if None.
        stdin: What it reads from standard input.
        environment: Variables to set besides those there are.
    """
    done = run_command(list(map(str, arguments)), folder=folder, stdin=stdin, environment=environment)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def run_command(
    words: list[str], *, folder: Path | None = None, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> CompletedProcess[str]:
    """What ``rarevote words`` says and how it ends, whatever that is."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    given = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        mock.patch.multiple(sys, stdin=given, stdout=out, stderr=err),
        contextlib.chdir(folder or Path.cwd()),
        _variables({"NO_COLOR": "1", **(environment or {})}),
        _warnings_of_a_new_process(),
    ):
        try:
            ended: object = run(words)
        except SystemExit as stop:
            ended = stop.code or 0
    return CompletedProcess(words, ended if isinstance(ended, int) else 1, _text(out), _text(err))


def rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text, by column."""
    return list(csv.DictReader(text.splitlines()))


def _text(stream: io.TextIOWrapper) -> str:
    """What was written, with the line ends that ``subprocess`` gives to text."""
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode("utf-8").replace("\r\n", "\n")


@contextlib.contextmanager
def _variables(changed: Mapping[str, str]) -> Iterator[None]:
    with mock.patch.dict(os.environ, changed):
        if "TMPDIR" not in changed:
            yield
            return
        # Python asks for the folder once and keeps it.
        with mock.patch.object(tempfile, "tempdir", None):
            yield


@contextlib.contextmanager
def _warnings_of_a_new_process() -> Iterator[None]:
    """The filters Python starts with, none of them seen yet, in place of the test run's "error"."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        yield
