"""The ``rarevote`` command: errors become one clear line and an exit code, never a traceback.

Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 not converged under ``--strict``, 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import Any, TextIO, cast


class _Talk:
    """Standard error that may be closed or full: what cannot be said must not stop the work."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None else open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

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
    """Standard output that was closed: whoever writes rows there must hear of it."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        raise OSError(0, "it is closed; name a file with --out")

    def flush(self) -> None:
        """Nothing is waiting."""

    def isatty(self) -> bool:
        return False


def _mend_streams() -> None:
    """A scheduler may start us with any of the three standard streams closed."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = cast(TextIO, _Closed())
    sys.stderr = cast(TextIO, _Talk(sys.stderr))


def _flushed(code: int) -> int:
    """The exit code, once all rows have left; Python would otherwise find out after us, and speak of itself."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever read our output may have seen enough (head, less).
        if not code and not isinstance(error, BrokenPipeError):
            print(f"rarevote: error: standard output: cannot be written ({error.strerror})", file=sys.stderr)
            return 1
    return code


def main() -> None:
    """Run the command line."""
    _mend_streams()
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Not worth loading the whole command line for.
        from rarevote import __version__

        with suppress(OSError):  # told below
            print(f"rarevote {__version__}")
        sys.exit(_flushed(0))
    # A scheduler that ends us must not leave temporary files behind: leave as an exception would.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    from rarevote.cli import run

    try:
        code = run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    sys.exit(_flushed(code))


if __name__ == "__main__":
    main()
