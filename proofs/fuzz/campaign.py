"""A campaign of altered files at every input, in processes of their own.

The number of an execution determines its file; a part of a campaign is a range of numbers. A foreign exception, a wrong
answer, a message without end, a hang of ten seconds, a crash and a gigabyte too much are findings; their files and
traces are kept in the folder ``findings`` of the battery's work folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import evidence

from proofs import sources
from proofs.battery import Job, Proof, Row, parts
from proofs.fuzz.doors import House
from proofs.fuzz.run import OUTCOMES, read_progress, run_child

_EXECUTIONS, _PER_JOB = 10_000, 5_000
# These take little time.
_CHEAP, _EXECUTIONS_OF_CHEAP, _PER_JOB_OF_CHEAP = ("weights", "workbench", "costs"), 130_000, 32_500
_SEED = 1
_FAULTS = ("wrong", "foreign", "refused at length", "hangs", "crashes", "memory findings")
_COUNTED = (*OUTCOMES, "hangs", "crashes", "memory findings")
_MENDED = evidence.REPOSITORY / "proofs" / "fuzz" / "findings.csv"

_FITTED = (*sources.FITTING, "src/rarevote/methods/dawid_skene")
_AUDITED = (*_FITTED, *sources.AUDIT)
# What an input exercises beyond the readers of votes.
_BEYOND: dict[str, tuple[str, ...]] = {
    "aggregate": sources.FITTING,
    "gold": _FITTED, "costs": ("src/rarevote/decide/costs.py",), "result": _FITTED, "model": (
        *_FITTED, *(f"src/rarevote/methods/{name}" for name in ("anchored_rasch", "glad", "mace"))
    ),
    "weights": ("src/rarevote/methods/crowdfm",), "crowdfm": (*sources.FITTING, "src/rarevote/methods/crowdfm"),
    "checkpoint": _FITTED, "plan": _AUDITED, "journal": _AUDITED, "certificate": _AUDITED,
    "workbench": (*_AUDITED, "src/rarevote/workbench", "src/rarevote/page", "src/rarevote/charts"),
}  # fmt: skip


def sources_of(door: str) -> tuple[str, ...]:
    """Patterns of the files that an input exercises."""
    return (*sources.READING, *sources.SPINE, *_BEYOND.get(door, ()), "proofs/fuzz")


def jobs(scale: float) -> Iterator[Job]:
    """Executions of every input."""
    for door in House(Path()).names:
        cheap = door in _CHEAP
        total, size = (_EXECUTIONS_OF_CHEAP, _PER_JOB_OF_CHEAP) if cheap else (_EXECUTIONS, _PER_JOB)
        yield from parts("fuzz", door, total * scale, size)


def run(job: Job) -> Row:
    """A range of executions, in as many processes as it takes; the sums."""
    keep = Path(os.environ.get("PROVE_WORK", "prove-work")) / "findings"
    keep.mkdir(parents=True, exist_ok=True)
    size = _PER_JOB_OF_CHEAP if job.row in _CHEAP else _PER_JOB
    begin, end = job.part * size, job.part * size + job.size
    counts: Counter[str] = Counter()
    memory = 0
    while begin < end:
        line = batch(job.row, _SEED, range(begin, end), keep)
        counts.update({kind: line.get(kind, 0) for kind in _COUNTED})
        memory, begin = max(memory, line["memory"]), line["stop"]
    return {**counts, "memory": memory}


def batch(door: str, seed: int, numbers: range, keep: Path) -> dict[str, Any]:
    """Run a range in a process; where that ends early, the line says why and how far it came."""
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        words = [door, str(seed), str(numbers.start), str(numbers.stop), str(keep), str(progress)]
        child = subprocess.run([sys.executable, "-m", "proofs.fuzz.campaign", *words], capture_output=True, text=True)
        reached = read_progress(progress)
    number, counts, memory = reached or (numbers.start - 1, {}, 0)
    line: dict[str, Any] = {"door": door, "stop": number + 1, **counts, "memory": memory}
    if child.returncode == 0:
        return {**line, **json.loads(child.stdout.splitlines()[-1])}
    kind = "hangs" if child.returncode == -signal.SIGPROF or "Timeout (" in child.stderr else "crashes"
    (keep / f"{kind}-{door}-{seed}-{number + 1}.txt").write_text(child.stderr[-6000:])
    # The one that did it counts, too.
    return {**line, "stop": number + 2, kind: 1}


def rows(door: str, results: list[Row]) -> list[Row]:
    """The row of an input: sums, and what was found there and mended since it was first run."""
    counts = Counter[str]()
    for result in results:
        counts.update({kind: result.get(kind, 0) for kind in _COUNTED})
    mended = Counter(line.split(",")[0] for line in _MENDED.read_text().splitlines()[1:])
    return [
        {
            "door": door,
            "executions": sum(counts[kind] for kind in (*OUTCOMES, "hangs", "crashes")),
            **{kind: counts[kind] for kind in _COUNTED},
            "largest memory MB": round(max(result["memory"] for result in results) / 1e6),
            "findings mended": mended.get(door, 0),
        }
    ]


PROOF = Proof(
    "fuzz", jobs, sources_of, run, rows,
    findings=lambda row: sum(int(row.get(kind) or 0) for kind in _FAULTS),
    row_of=lambda row: row["door"],
)  # fmt: skip

if __name__ == "__main__":
    name, seed, start, stop, kept, reached = sys.argv[1:]
    run_child(name, int(seed), range(int(start), int(stop)), Path(kept), Path(reached))
