"""The child process: runs the cases whose names it reads from standard input, and prints a line of hashes for each."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from proofs.golden.repeatable import stop_the_clock


def main() -> None:
    """``python -m proofs.golden.child SECTION STORE FOLDER``."""
    stop_the_clock()
    from proofs.golden.run import run_here

    section, store, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    # Whatever a case prints past Python's streams must not get between the lines.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    run_here(section, store, folder, json.load(sys.stdin), lambda line: print(line, file=answers, flush=True))


if __name__ == "__main__":
    main()
