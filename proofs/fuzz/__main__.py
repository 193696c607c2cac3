"""A campaign of damaged files at every door, in processes of their own.

    python -m proofs.fuzz [--executions 20000] [--doors csv,json] [--seed 1] [--keep FOLDER] [--ledger FILE]
    python -m proofs.fuzz --evidence --ledger FILE

A million is 20 000 of every door, and 130 000 of the cheap ones (weights, workbench, costs) after that.
Every door gets as many executions as are asked for, those that the ledger has already counted included: a campaign can
be stopped and resumed, and doors whose code changed be run again under another seed. A foreign exception, a message
without end, a hang of ten seconds, a crash and a gigabyte too much are findings; their files and traces are in FOLDER.

``--evidence`` writes docs/evidence/fuzz.csv from the ledger, a row a door.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import evidence

from proofs.fuzz.run import OUTCOMES, read_progress, run_child

# So many in one process: its start takes as long as some hundred of them.
_PER_CHILD = 10_000
_COUNTED = (*OUTCOMES, "hangs", "crashes", "memory findings")
_FINDINGS = evidence.REPOSITORY / "proofs" / "fuzz" / "findings.csv"


def batch(door: str, seed: int, numbers: range, keep: Path) -> dict[str, Any]:
    """Run a range in a process; where that ends early, the line says why and how far it came."""
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        words = ["child", door, str(seed), str(numbers.start), str(numbers.stop), str(keep), str(progress)]
        child = subprocess.run([sys.executable, "-m", "proofs.fuzz", *words], capture_output=True, text=True)
        reached = read_progress(progress)
    number, counts, memory = reached or (numbers.start - 1, {}, 0)
    line: dict[str, Any] = {"door": door, "seed": seed, "start": numbers.start, "stop": number + 1, **counts}
    line["memory"] = memory
    if child.returncode == 0:
        return {**line, **json.loads(child.stdout.splitlines()[-1])}
    kind = "hangs" if child.returncode == -signal.SIGPROF or "Timeout (" in child.stderr else "crashes"
    (keep / f"{kind}-{door}-{seed}-{number + 1}.txt").write_text(child.stderr[-6000:])
    # The one that did it counts, too.
    return {**line, "stop": number + 2, kind: 1}


def read_ledger(path: Path) -> list[dict[str, Any]]:
    """The lines of a ledger."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_door(door: str, options: Any) -> None:
    """Run batches until the ledger has as many executions as are wanted."""
    done = [line for line in read_ledger(options.ledger) if line["door"] == door and line["seed"] == options.seed]
    start = max((line["stop"] for line in done), default=0)
    while start < options.executions:
        numbers = range(start, min(start + _PER_CHILD, options.executions))
        line = {**batch(door, options.seed, numbers, options.keep), "commit": evidence.commit()}
        with options.ledger.open("a") as handle:
            handle.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)
        start = line["stop"]


def summary(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a door: the sums of a ledger's lines, and what was found there and mended since it was first run."""
    sums: dict[str, Counter[str]] = {}
    largest: Counter[str] = Counter()
    commits: dict[str, dict[str, None]] = {}
    for line in lines:
        counted = sums.setdefault(line["door"], Counter())
        counted.update({kind: line.get(kind, 0) for kind in _COUNTED})
        largest[line["door"]] = max(largest[line["door"]], line["memory"])
        commits.setdefault(line["door"], {})[line["commit"]] = None
    mended = Counter(row.split(",")[0] for row in _FINDINGS.read_text().splitlines()[1:]) if _FINDINGS.exists() else {}
    return [
        {
            "door": door,
            "executions": sum(counts[kind] for kind in (*OUTCOMES, "hangs", "crashes")),
            **{kind: counts[kind] for kind in _COUNTED},
            "largest memory MB": round(largest[door] / 1e6),
            "findings mended": mended.get(door, 0),
            "run at": " ".join(commits[door]),
        }
        for door, counts in sums.items()
    ]


def main() -> None:
    if sys.argv[1:2] == ["child"]:
        door, seed, start, stop, keep, progress = sys.argv[2:]
        run_child(door, int(seed), range(int(start), int(stop)), Path(keep), Path(progress))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=20_000, help="of each door")
    parser.add_argument("--doors", help="only these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="a folder for files that are findings")
    parser.add_argument("--ledger", type=Path, default=Path("fuzz-findings/ledger.jsonl"), help="what was counted")
    parser.add_argument("--evidence", action="store_true", help="write docs/evidence/fuzz.csv from the ledger")
    options = parser.parse_args()
    if options.evidence:
        print(
            evidence.write("fuzz", summary(read_ledger(options.ledger)), by=("door",)).relative_to(evidence.REPOSITORY)
        )
        return
    options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        from proofs.fuzz.doors import House

        names = options.doors.split(",") if options.doors else House(Path(folder)).names
    for name in names:
        run_door(name, options)


if __name__ == "__main__":
    main()
