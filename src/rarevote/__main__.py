"""The ``rarevote`` command: errors become one clear line and an exit code, never a traceback.

Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 not converged under ``--strict``, 130 interrupted, 143
ended by SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TextIO, cast


def _nothing(mode: Literal["r", "w"]) -> TextIO:
    return Path(os.devnull).open(mode, encoding="utf-8")


class _Talk:
    """Standard error that may be closed or full: a message that cannot be written must not stop the work."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None else _nothing("w")

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Closed:
    """Standard output that was closed: writing rows there is an error."""

    encoding = "utf-8"

    @property
    def buffer(self) -> _Closed:
        return self

    def write(self, text: str | bytes) -> int:
        raise OSError(0, "it is closed; name a file with --out")

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def isatty(self) -> bool:
        return False


def _mend_streams() -> None:
    """Replace closed standard streams: a scheduler may start the command with any of the three closed."""
    if sys.stdin is None:
        sys.stdin = _nothing("r")
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    sys.stderr = cast(TextIO, _Talk(sys.stderr))


def _flushed(code: int) -> int:
    """The exit code, once all rows are written; otherwise Python would fail later, with its own message."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or _not_written(error)
    return code


def _not_written(error: OSError) -> int:
    if isinstance(error, BrokenPipeError):
        return 0  # the reader of our output has seen enough (head, less)
    print(f"rarevote: error: standard output: cannot be written ({error.strerror})", file=sys.stderr)
    return 1


def main() -> None:
    """Run the command line."""
    _mend_streams()
    if not os.environ.get("RAREVOTE_DEBUG"):
        # Do not show a failure of a library that cleans up after an error that was already reported.
        sys.unraisablehook = lambda _: None
    if sys.argv[1:] in (["--version"], ["-V"]):
        # This does not need the whole command line.
        from rarevote import __version__

        try:
            print(f"rarevote {__version__}")
        except OSError as error:
            sys.exit(_not_written(error))
        sys.exit(_flushed(0))
    ended: list[int] = []

    def leave(number: int, _: object) -> None:
        """Exit by an exception, so that temporary files are removed when a scheduler ends the process."""
        ended.append(128 + number)
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        from rarevote.cli import run

        code = run()
    except KeyboardInterrupt:  # while modules are loaded; later the command line sets the exit code
        code = 128 + signal.SIGINT
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    # DuckDB treats any exception during its work as Ctrl-C.
    sys.exit(_flushed(ended[0] if ended and code else code))


if __name__ == "__main__":
    main()
