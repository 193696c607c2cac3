"""How the cost of every verb grows with the votes, the classes and the annotators.

    python -m benchmarks.growth [--earlier FOLDER] [--crowds 1e4 1e6 ...] [--verbs report ...] [--data FOLDER]

`rarevote simulate` writes the crowds, five votes an item, as CSV. Each verb then runs as a user calls it, in a fresh
process; its CPU seconds (all threads, from start to exit) and peak memory are what the operating system counted. The
first run of a pair fills the cache of compiled code and is not counted unless it took more than a minute. With
``--earlier``, a working tree of an earlier version runs first (``git worktree add FOLDER COMMIT``). A run that takes
more than LIMIT CPU seconds is stopped and written as such. ``aggregate`` of the crowd "1e7" is also held against what
it cannot do without: reading by DuckDB alone, the fit and the writing. Writes docs/evidence/growth.csv.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import evidence
from benchmarks.files import DUCKDB_ALONE, part

VOTES_PER_TASK = 5
LIMIT = 600  # CPU seconds
ONCE = 60.0  # CPU seconds above which a run is not repeated


@dataclass(frozen=True)
class CrowdSize:
    """A simulated crowd."""

    tasks: int
    workers: int
    classes: int = 2


CROWDS = {
    "1e4": CrowdSize(2_000, 100),
    "1e5": CrowdSize(20_000, 500),
    "1e6": CrowdSize(200_000, 2_000),
    "1e7": CrowdSize(2_000_000, 10_000),
    "1e6, K = 20": CrowdSize(200_000, 2_000, 20),
    "1e6, 1e5 workers": CrowdSize(200_000, 100_000),
}

# The words of each verb, from the folder of a crowd and the folder for output.
VERBS: dict[str, Callable[[Path, Path], list[Any]]] = {
    "aggregate": lambda crowd, out: [crowd / "labels.csv", "-q", "--out", crowd / "result.csv"],
    "score": lambda crowd, out: [crowd / "result.csv", "--truth", crowd / "truth.csv"],
    "plan": lambda crowd, out: [crowd / "labels.csv", "--budget", "1000", "--out", out / "plan.csv"],
    "explain": lambda crowd, out: [crowd / "labels.csv", "--task", first_task(crowd)],
    "annotators": lambda crowd, out: [crowd / "labels.csv", "--out", out / "annotators.csv"],
    "check": lambda crowd, out: [crowd / "labels.csv"],
    "report": lambda crowd, out: [crowd / "labels.csv", "--out", out / "page.html"],
}


def first_task(crowd: Path) -> str:
    """The name of an item."""
    with (crowd / "labels.csv").open() as handle:
        next(handle)
        return next(handle).split(",")[0]


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    megabytes: float
    code: int


def run(verb: str, words: list[Any], source: Path) -> Cost:
    """The cost of a command from start to exit, with the code of a working tree."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rarevote", verb, *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(source / "src")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)),
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, process.returncode)


def measured(verb: str, words: list[Any], source: Path) -> Cost:
    """The second run of two; the first where that took long."""
    cost = run(verb, words, source)
    if cost.seconds < ONCE and cost.code == 0:
        cost = run(verb, words, source)
    return cost


def simulated(folder: Path, size: CrowdSize) -> Path:
    """A crowd in a folder, written unless it is there."""
    if not (folder / "truth.csv").exists():
        words = ["--tasks", size.tasks, "--workers", size.workers, "--classes", size.classes, "--seed", 1]
        assert run("simulate", [*words, "--votes", VOTES_PER_TASK, "--out", folder], evidence.REPOSITORY).code == 0
    return folder


FIT_AND_WRITE = """
import sys, time
import rarevote
crowd = rarevote.read(sys.argv[1])
begin = time.process_time()
fitted = rarevote.fit(crowd)
fit = time.process_time() - begin
result = fitted.decide()
begin = time.process_time()
result.write(sys.argv[2])
print(fit, time.process_time() - begin)
"""


def parts(crowd: Path, out: Path) -> dict[str, float]:
    """CPU seconds of the parts of ``aggregate``: reading and encoding by DuckDB alone, the fit, the writing."""
    both = part(FIT_AND_WRITE, crowd / "labels.csv", out / "result.csv")
    return {
        "part: DuckDB alone": part(DUCKDB_ALONE, crowd / "labels.csv").busy,
        "part: fit": both.seconds,
        "part: write": both.busy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--earlier", type=Path, help="a working tree of the earlier version")
    parser.add_argument("--only-earlier", action="store_true", help="leave out this version")
    parser.add_argument("--crowds", nargs="+", choices=CROWDS, default=list(CROWDS), metavar="CROWD")
    parser.add_argument("--verbs", nargs="+", choices=VERBS, default=list(VERBS), metavar="VERB")
    parser.add_argument("--data", type=Path, help="where the simulated votes are or go (default: a temporary folder)")
    options = parser.parse_args()
    trees = {"after": evidence.REPOSITORY}
    if options.earlier:
        trees = {"before": options.earlier.resolve()} | ({} if options.only_earlier else trees)
    with tempfile.TemporaryDirectory(prefix="growth-") as temporary:
        out = Path(temporary)
        for crowd in options.crowds:
            size = CROWDS[crowd]
            folder = simulated((options.data or out) / crowd.replace(" ", ""), size)
            for verb in options.verbs:
                for when, source in trees.items():
                    cost = measured(verb, VERBS[verb](folder, out), source)
                    stopped = cost.seconds >= LIMIT - 1
                    row = {
                        "votes": crowd,
                        "tasks": size.tasks,
                        "workers": size.workers,
                        "classes": size.classes,
                        "verb": verb,
                        "code": when,
                        "cpu_seconds": f"over {LIMIT}" if stopped else f"{cost.seconds:.2f}",
                        "peak_mb": f"{cost.megabytes:.0f}",
                        "exit": cost.code,
                        "of": described(source),
                    }
                    print({key: row[key] for key in ("votes", "verb", "code", "cpu_seconds", "peak_mb", "exit")})
                    sys.stdout.flush()
                    evidence.write("growth", [row], by=("votes", "verb", "code"))
            if crowd == "1e7" and "aggregate" in options.verbs and not options.only_earlier:
                for name, seconds in parts(folder, out).items():
                    made = {**row, "verb": name, "cpu_seconds": f"{seconds:.2f}", "peak_mb": "", "exit": 0}
                    print(name, made["cpu_seconds"], flush=True)
                    evidence.write("growth", [made], by=("votes", "verb", "code"))


def described(source: Path) -> str:
    """The commit of a working tree."""
    words = ["git", "describe", "--always", "--abbrev=10"]
    return subprocess.run(words, cwd=source, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
