"""Where measured figures go: a CSV under docs/evidence with the date, the commit and the command."""

from __future__ import annotations

import csv
import datetime
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
EVIDENCE = REPOSITORY / "docs" / "evidence"


def commit() -> str:
    """The commit that is checked out, marked if anything that figures depend on differs from it: all but docs."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True)

    described = git("describe", "--always", "--abbrev=10").stdout.strip()
    if not described:
        return "unknown"
    return described if git("diff", "--quiet", "HEAD", "--", ".", ":!docs").returncode == 0 else f"{described}-dirty"


def read(name: str) -> list[dict[str, str]]:
    """The rows of ``docs/evidence/<name>.csv``."""
    with (EVIDENCE / f"{name}.csv").open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def write(name: str, rows: Iterable[Mapping[str, Any]], *, by: tuple[str, ...] = ()) -> Path:
    """Write ``docs/evidence/<name>.csv``; every row carries date, commit and command.

    Args:
        name: of the file.
        rows: what was measured.
        by: the columns that name a row: rows of before with other names stay as they were measured.
    """
    # A path says something about one machine only.
    words = ["..." if os.sep in word else word for word in sys.argv[1:]]
    script = Path(sys.argv[0]).resolve().relative_to(REPOSITORY).with_suffix("")
    module = ".".join(part for part in script.parts if part != "__main__")
    command = " ".join([f"python -m {module}", *words])
    stamp = {"date": datetime.date.today().isoformat(), "commit": commit(), "command": command}
    full = [{**row, **stamp} for row in rows]
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    path = EVIDENCE / f"{name}.csv"
    if by and path.exists():
        now = {tuple(str(row[column]) for column in by): row for row in full}
        full = [now.pop(tuple(row[column] for column in by), row) for row in read(name)] + list(now.values())
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, fieldnames=list(full[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(full)
    return path
