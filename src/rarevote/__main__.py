"""The ``rarevote`` command: errors become one clear line and an exit code, never a traceback.

Exit codes: 0 done, 1 bad input, 2 wrong usage, 3 not converged under ``--strict``, 130 interrupted.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Not worth loading the whole command line for.
        from rarevote import __version__

        print(f"rarevote {__version__}")
        return
    # A scheduler that ends us must not leave temporary files behind: leave as an exception would.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    from rarevote.cli import run

    sys.exit(run())


if __name__ == "__main__":
    main()
