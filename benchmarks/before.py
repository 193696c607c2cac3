"""A hundred million votes from Parquet, beside an earlier version of rarevote, in turns.

    git worktree add FOLDER bea7e02
    python -m benchmarks.before FOLDER [--tasks 20_000_000] [--rounds 1] [--data FOLDER]

Writes docs/evidence/before.csv. Both versions run `rarevote aggregate` in this environment, from Parquet to Parquet, in
a process that is watched for the peak of its memory, DuckDB included. Each compiles on a small crowd first.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import evidence
from benchmarks.one_machine import GIGABYTE, SMALL_TASKS, Watched, rarevote, simulated

WANTED = 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path, help="a working tree of the earlier version")
    parser.add_argument("--tasks", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="where the simulated votes are or go (default: a temporary folder)")
    options = parser.parse_args()
    described = subprocess.run(
        ["git", "describe", "--always", "--abbrev=10"], cwd=options.earlier, capture_output=True, text=True, check=True
    )
    trees = {"now": evidence.REPOSITORY, f"before ({described.stdout.strip()})": options.earlier.resolve()}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory(prefix="before-") as temporary:
        data = options.data or Path(temporary)
        large = simulated(data / f"crowd-{options.tasks}", options.tasks, options.workers)
        small = simulated(data / f"crowd-{SMALL_TASKS}", SMALL_TASKS, options.workers)

        def aggregated(name: str, votes: Path) -> Watched:
            words = ["aggregate", str(votes), "--method", "cc-rasch", "--out", f"{temporary}/result.parquet", "--json"]
            with patch.dict(os.environ, {"PYTHONPATH": str(trees[name] / "src")}):
                return Watched(rarevote(*words), Path(temporary))

        for name in trees:
            aggregated(name, small)
        for _ in range(options.rounds):
            for name in trees:
                run = aggregated(name, large)
                found[name].append({**json.loads(run.output), "all": run.seconds, "memory": run.memory})
                print(f"{name}: {run.seconds:.1f} s, {run.memory / GIGABYTE:.2f} GB", flush=True)
    rows = []
    for name, runs in found.items():
        best = min(runs, key=lambda run: float(run["all"]))
        parts = {f"seconds_{part}": f"{taken:.1f}" for part, taken in best["seconds"].items()}
        rows.append(
            {
                "version": name,
                "annotations": best["n_annotations"],
                "iterations": best["n_iter"],
                "seconds": f"{best['all']:.1f}",
                **parts,
                "peak_gb": f"{max(run['memory'] for run in runs) / GIGABYTE:.2f}",
            }
        )
    now, before = rows
    now["ratio"], before["ratio"] = f"{float(now['seconds']) / float(before['seconds']):.3f}", ""
    now["wanted"], before["wanted"] = f"at most {WANTED}", ""
    print(evidence.write("before", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
