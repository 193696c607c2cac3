"""The least memory with which the command line works: memory in use, and addresses (``ulimit -v``) by bisection.

    python -m benchmarks.least_memory      # about three minutes

Writes docs/evidence/least_memory.csv; docs/scale.md has the figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import evidence
from rarevote.simulate.files import example_files

_STEP = 50_000_000  # how exactly the least is found, relative to a gigabyte


def tried(words: list[str], limit: int | None = None) -> tuple[bool, int]:
    """Whether a command works under a limit of addresses, and the most memory that it had in use."""
    shell = f"ulimit -v {limit // 1024} && " if limit else ""
    process = subprocess.Popen(
        ["sh", "-c", shell + 'exec "$@"', "sh", sys.executable, "-m", "rarevote", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode == 0, used.ru_maxrss * 1024


def least_limit(words: list[str], low: int, high: int, step: int) -> int:
    """The least limit under which a command works, to a step."""
    while high - low > step:
        middle = (low + high) // 2
        works, _ = tried(words, middle)
        low, high = (low, middle) if works else (middle, high)
    return high


def main() -> None:
    labels = str(example_files().labels)
    with tempfile.TemporaryDirectory() as folder:
        crowd, out = Path(folder) / "crowd", str(Path(folder) / "result.csv")
        tried(["simulate", "--tasks", "40000", "--workers", "200", "--out", str(crowd)])
        commands: dict[str, tuple[list[str], int, int]] = {
            "aggregate, the example": (["aggregate", labels, "--out", out], 2 * 10**9, _STEP),
            "aggregate, 320 000 votes": (["aggregate", str(crowd / "labels.csv"), "--out", out], 3 * 10**9, _STEP),
            "report, the example": (["report", labels, "--out", f"{folder}/page.html"], 10**11, 40 * _STEP),
        }
        rows: list[dict[str, Any]] = []
        for name, (words, high, step) in commands.items():
            works, used = tried(words)
            assert works, name
            least = least_limit(words, 0, high, step)
            rows.append(
                {
                    "command line": name,
                    "cores": os.cpu_count(),
                    "memory in use, MB": round(used / 1e6),
                    "least ulimit -v, GB": round(least / 1e9, 2),
                }
            )
            print(rows[-1], flush=True)
    evidence.write("least_memory", rows)


if __name__ == "__main__":
    main()
