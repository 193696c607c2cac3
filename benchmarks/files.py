"""Files on the command line: five million votes from CSV end to end, and a line that never ends.

    python -m benchmarks.files [--tasks 1000000] [--repeats 3]

``aggregate`` is measured as a process from start to exit, against the two things that it cannot do without: reading
and encoding the file by DuckDB alone, and the fit alone. The three take turns, and the ratio is the median of the
rounds, because other work on the machine slows whatever happens to run. Writes docs/evidence/files.csv.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import evidence

N_WORKERS, VOTES = 20_000, 5
METHODS = ("cc-rasch", "majority-vote")
AT_MOST = 1.5

# What anybody would write who has DuckDB and wants integers: nothing of rarevote is in it.
DUCKDB_ALONE = """
import sys, time
import duckdb
begin, busy = time.perf_counter(), time.process_time()
database = duckdb.connect()
database.execute("SET enable_progress_bar = false")
database.execute("CREATE TABLE votes AS SELECT * FROM read_csv(?, all_varchar=true)", [sys.argv[1]])
for name in ("task", "worker", "label"):
    database.execute(
        f"CREATE TABLE {name}s AS SELECT {name}, row_number() OVER (ORDER BY {name}) - 1 AS code "
        f"FROM (SELECT DISTINCT {name} FROM votes)"
    )
codes = database.execute(
    "SELECT tasks.code AS task, workers.code AS worker, labels.code AS label FROM votes JOIN tasks USING (task) "
    "JOIN workers USING (worker) JOIN labels USING (label) ORDER BY tasks.code"
).fetchnumpy()
for name in ("task", "worker", "label"):
    database.execute(f"SELECT {name} FROM {name}s ORDER BY code").fetchnumpy()
print(time.perf_counter() - begin, time.process_time() - busy)
"""

FIT_ALONE = """
import sys, time
from rarevote.io.read.votes import read_annotations_file
from rarevote.methods.registry import find_method
crowd = read_annotations_file(sys.argv[1])
estimator = find_method(sys.argv[2]).load()()
begin, busy = time.perf_counter(), time.process_time()
estimator.fit(crowd)
print(time.perf_counter() - begin, time.process_time() - busy)
"""


@dataclass(frozen=True)
class Cost:
    """Seconds on the clock, seconds of all cores, and peak memory in megabytes."""

    seconds: float
    busy: float
    megabytes: float = 0.0


def part(script: str, *arguments: str | Path) -> Cost:
    """The cost that a script prints of the part that it times."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return Cost(float(shown[0]), float(shown[1]))


def whole(*arguments: str | Path, code: int = 0) -> Cost:
    """The cost of a command from start to exit."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "rarevote", *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code, arguments
    return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def five_million(folder: Path, n_tasks: int, repeats: int) -> list[dict[str, Any]]:
    whole("simulate", "--tasks", str(n_tasks), "--workers", str(N_WORKERS), "--votes", str(VOTES), "--seed", "1",
          "--out", folder)  # fmt: skip
    labels = folder / "labels.csv"
    whole("aggregate", labels, "-q", "-o", folder / "r.csv")  # compiled code is cached from here on
    rows: list[dict[str, Any]] = []
    for method in METHODS:
        rounds = []
        for _ in range(repeats):
            read, fit = part(DUCKDB_ALONE, labels), part(FIT_ALONE, labels, method)
            everything = whole("aggregate", labels, "-m", method, "-q", "-o", folder / "r.csv")
            rounds.append((read, fit, everything))
        title = f"aggregate {n_tasks * VOTES:,} votes from CSV with {method}"
        rows += [
            row(f"{title}: seconds", median(one.seconds for _, _, one in rounds)),
            row("reading and encoding by DuckDB alone: seconds", median(one.seconds for one, _, _ in rounds)),
            row(f"fit of {method} alone: seconds", median(one.seconds for _, one, _ in rounds)),
            row(
                f"{title} / (DuckDB alone + fit alone), on the clock",
                median(one.seconds / (read.seconds + fit.seconds) for read, fit, one in rounds),
                AT_MOST,
            ),
            row(
                f"{title} / (DuckDB alone + fit alone), seconds of all cores",
                median(one.busy / (read.busy + fit.busy) for read, fit, one in rounds),
                AT_MOST,
            ),
            row(f"{title}: peak MB", max(one.megabytes for _, _, one in rounds), 2000.0),
        ]
    return rows


def endless_line(folder: Path) -> list[dict[str, Any]]:
    """A header and a row, then two gigabytes without a line end."""
    path = folder / "sparse.csv"
    path.write_text("task,worker,label\n1,a,x\n")
    os.truncate(path, 2 << 30)
    cost = whole("aggregate", path, "-o", folder / "r.csv", code=1)
    return [
        row("a sparse line of 2 GB is refused: seconds", cost.seconds, 10.0),
        row("a sparse line of 2 GB is refused: peak MB", cost.megabytes, 1000.0),
    ]


def row(measure: str, value: float, limit: float | None = None) -> dict[str, Any]:
    shown = {"measure": measure, "value": f"{value:.3g}", "at_most": "" if limit is None else f"{limit:g}"}
    print(f"{measure}: {value:.3g}" + ("" if limit is None else f" (at most {limit:g})"))
    return {**shown, "met": "" if limit is None else value <= limit}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = five_million(Path(folder), options.tasks, options.repeats) + endless_line(Path(folder))
    evidence.write("files", rows)


if __name__ == "__main__":
    main()
