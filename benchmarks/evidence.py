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


def write(
    name: str, rows: Iterable[Mapping[str, Any]], *, by: tuple[str, ...] = (), command: str | None = None
) -> Path:
    """Write ``docs/evidence/<name>.csv``; every row carries date, commit and command.

    Args:
        name: of the file.
        rows: what was measured; a row that carries a date, a commit or a command already keeps it.
        by: the columns that name a row: rows of before with other names stay as they were measured.
        command: that measured it; by default the one of this process.
    """
    stamp = {"date": datetime.date.today().isoformat(), "commit": commit(), "command": command or _own_command()}
    full = [
        {**{key: value for key, value in row.items() if key not in stamp}, **stamp, **_stamped(row, stamp)}
        for row in rows
    ]
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    path = EVIDENCE / f"{name}.csv"
    if by and path.exists():
        now = {tuple(str(row[column]) for column in by): row for row in full}
        full = [now.pop(tuple(row[column] for column in by), row) for row in read(name)] + list(now.values())
    columns = dict.fromkeys(key for row in full for key in row if key not in stamp)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, fieldnames=[*columns, *stamp], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(full)
    return path


def _stamped(row: Mapping[str, Any], stamp: Mapping[str, str]) -> dict[str, Any]:
    return {key: row[key] for key in stamp if row.get(key)}


def _own_command() -> str:
    # A path says something about one machine only.
    words = ["..." if os.sep in word else word for word in sys.argv[1:]]
    script = Path(sys.argv[0]).resolve().relative_to(REPOSITORY).with_suffix("")
    module = ".".join(part for part in script.parts if part != "__main__")
    return " ".join([f"python -m {module}", *words])
