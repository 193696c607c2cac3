"""The fast suite with the lowest versions of the libraries that pyproject.toml allows, and with the newest.

    python -m benchmarks.versions lowest newest      # about ten minutes each; environments of their own

Runs ``make test-lowest`` and ``make test-newest`` and writes docs/evidence/versions.csv, a row each; what is not run
now stays as it was measured before.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from tests.lowest import lowest

from benchmarks import evidence

KINDS = ("lowest", "newest")
_COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


def counted(line: str) -> dict[str, int]:
    """What the last line of pytest says.

    >>> counted("3 failed, 5705 passed, 33 skipped in 760.61s (0:12:40)")
    {'passed': 5705, 'failed': 3, 'skipped': 33}
    """
    found = {kind.rstrip("s"): int(number) for number, kind in _COUNT.findall(line)}
    return {
        "passed": found.get("passed", 0),
        "failed": found.get("failed", 0) + found.get("error", 0),
        "skipped": found.get("skipped", 0),
    }


def tried(kind: str) -> dict[str, Any]:
    """The row of one kind of versions."""
    done = subprocess.run(["make", f"test-{kind}"], cwd=evidence.REPOSITORY, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if re.search(r"\d+ passed.* in [\d.]+s", line)]
    if not lines:
        sys.exit(f"make test-{kind} ran no tests:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    python = evidence.REPOSITORY / f".venv-{kind}" / "bin" / "python"
    listed = subprocess.run([python, "-m", "pip", "list", "--format", "json"], capture_output=True, check=True)
    installed = {one["name"].lower(): one["version"] for one in json.loads(listed.stdout)}
    names = sorted(line.partition("==")[0].lower() for line in set(lowest()))
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    libraries = ", ".join(f"{name} {installed[name]}" for name in names)
    return {"versions": kind, "python": version, **counted(lines[-1]), "libraries": libraries}


def main() -> None:
    asked = sys.argv[1:] or list(KINDS)
    if unknown := [kind for kind in asked if kind not in KINDS]:
        sys.exit(f"{unknown[0]}: there are {' and '.join(KINDS)}")
    path = evidence.write("versions", [tried(kind) for kind in asked], by=("versions",))
    print(path.relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
