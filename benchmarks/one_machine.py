"""A hundred million votes on one machine: memory, scratch disk, and whether a pass stays as quick as on a million.

    python -m benchmarks.one_machine [--tasks 20000000] [--workers 50000] [--data FOLDER] [--method cc-rasch]

`rarevote simulate` writes the votes (ids are text of about twenty characters) to FOLDER unless they are there already;
`rarevote aggregate` reads them from Parquet and writes labels to Parquet, in a process that is watched: the peak of
its memory, DuckDB included, and of what it and DuckDB put into a temporary folder. Then passes over this crowd and over
one of a million votes of as many workers are timed by turns. Writes docs/evidence/one_machine.csv, or
one_machine_default.csv for the default method.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import evidence
from rarevote.crowd.annotations import Annotations
from rarevote.em.loop import Progress
from rarevote.io.read.votes import read_annotations_file
from rarevote.methods.registry import DEFAULT_METHOD, METHODS

GIGABYTE = 1e9
MEMORY_WANTED, RATIO_WANTED = 8.0, 1.5
SMALL_TASKS = 200_000
ROUNDS, PASSES = 4, 4


class Watched:
    """A command, and the most memory and temporary disk that it took."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.memory = self.disk = 0.0
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.perf_counter()
        with tempfile.TemporaryDirectory(dir=folder, prefix="scratch-") as scratch:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": scratch}
            )
            watcher = threading.Thread(target=self._watch, args=(process, Path(scratch)))
            watcher.start()
            self.output, _ = process.communicate()
            watcher.join()
        self.seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor_seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
        if process.returncode:
            raise SystemExit(f"{' '.join(command[:4])} ... ended with {process.returncode}")

    def _watch(self, process: subprocess.Popen[str], scratch: Path) -> None:
        while process.poll() is None:
            try:
                status = Path(f"/proc/{process.pid}/status").read_text()
                self.memory = max(self.memory, 1024 * int(status.split("VmHWM:")[1].split()[0]))
                self.disk = max(self.disk, sum(path.stat().st_blocks * 512 for path in scratch.rglob("*")))
            except (OSError, IndexError):
                pass  # a file or the process went in between
            time.sleep(0.2)


def rarevote(*words: str) -> list[str]:
    return [sys.executable, "-m", "rarevote", *words]


def simulated(folder: Path, n_tasks: int, n_workers: int) -> Path:
    if not (folder / "labels.parquet").exists():
        print(f"simulating {n_tasks:,} tasks in {folder.name} ...", flush=True)
        words = ["simulate", "--tasks", str(n_tasks), "--workers", str(n_workers), "--votes", "5", "--seed", "1"]
        subprocess.run(rarevote(*words, "--format", "parquet", "--out", str(folder), "--quiet"), check=True)
    return folder / "labels.parquet"


def pass_seconds(method: str, crowd: Annotations) -> float:
    """Seconds of the quickest plain pass."""
    ticks: list[float] = []

    def tick(_: Progress) -> None:
        ticks.append(time.perf_counter())

    estimator = METHODS[method].load()().set_params(n_iter=PASSES, tol=0)
    if "accelerate" in estimator.get_params():
        estimator.set_params(accelerate=False)
    estimator.fit(crowd, callback=tick)
    return min(after - before for before, after in pairwise(ticks))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=20_000_000)
    parser.add_argument("--workers", type=int, default=50_000)
    parser.add_argument("--method", default="cc-rasch")
    parser.add_argument("--data", type=Path, help="where the simulated votes are or go (default: a temporary folder)")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def note(measure: str, value: Any, wanted: str = "") -> None:
        rows.append({"measure": measure, "value": value, "wanted": wanted})
        print(f"{measure}: {value} {f'(wanted: {wanted})' if wanted else ''}", flush=True)

    with tempfile.TemporaryDirectory(prefix="one-machine-") as temporary:
        data = options.data or Path(temporary)
        large = simulated(data / f"crowd-{options.tasks}", options.tasks, options.workers)
        small = simulated(data / f"crowd-{SMALL_TASKS}", SMALL_TASKS, options.workers)
        out = Path(temporary) / "result.parquet"
        words = ["aggregate", str(large), "--method", options.method, "--out", str(out), "--json"]
        print("aggregating ...", flush=True)
        run = Watched(rarevote(*words), Path(temporary))
        summary = json.loads(run.output)
        n = summary["n_annotations"]
        note("annotations", n)
        note("tasks", summary["n_tasks"])
        note("workers", summary["n_workers"])
        note("bytes of the Parquet file, GB", round(large.stat().st_size / GIGABYTE, 2))
        note("aggregate: iterations", summary["n_iter"])
        note("aggregate: how the fit ended", summary["status"])
        note("aggregate: peak memory with DuckDB, GB", round(run.memory / GIGABYTE, 2), f"under {MEMORY_WANTED:g}")
        note("aggregate: peak scratch disk, GB", round(run.disk / GIGABYTE, 2))
        note("aggregate: seconds, all", round(run.seconds, 1))
        note("aggregate: seconds of the processors, all", round(run.processor_seconds, 1))
        for part, taken in summary["seconds"].items():
            note(f"aggregate: seconds, {part}", round(taken, 1))
        crowds = {"large": read_annotations_file(large), "small": read_annotations_file(small)}
    seconds: dict[str, list[float]] = {"large": [], "small": []}
    for _ in range(ROUNDS):
        for name, crowd in crowds.items():
            seconds[name].append(pass_seconds(options.method, crowd) / crowd.n_annotations)
    least = {name: min(values) for name, values in seconds.items()}
    for name, crowd in crowds.items():
        note(f"pass over {crowd.n_annotations:,}: ns per annotation, least", round(1e9 * least[name], 2))
    ratios = np.array(seconds["large"]) / np.array(seconds["small"])
    ratio = round(least["large"] / least["small"], 3)
    note("time per pass and annotation, large over small", ratio, f"at most {RATIO_WANTED:g}")
    note("time per pass and annotation, large over small, median of rounds", round(float(np.median(ratios)), 3))
    name = "one_machine_default" if options.method == DEFAULT_METHOD else "one_machine"
    print(evidence.write(name, rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
