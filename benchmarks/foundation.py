"""Speed, start-up and memory of the foundation, each as a ratio measured in one run.

    python -m benchmarks.foundation [--peer-python PYTHON]

Writes docs/evidence/foundation.csv. A pass on one thread is told in seconds of its thread, so that other work on the
machine matters less. ``np.exp`` runs at several values an instruction where the processor has 512-bit vectors and one
at a time elsewhere: ratios to it compare on one kind of processor only, nanoseconds are told beside. The comparison
with crowd-kit needs the benchmark datasets (RAREVOTE_DATA) and a Python that has crowd-kit; without --peer-python one
is made in a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import evidence
from benchmarks.dask_engine import model_of
from benchmarks.datasets import DATASETS
from benchmarks.peers import crowdkit_python, crowdkit_seconds
from rarevote import Annotations, CCRasch
from rarevote.em.local import LocalEngine

N_TASKS, N_VOTES, N_WORKERS, N_CLASSES = 1_000_000, 5, 20_000, 2
# Votes a task, workers, classes, and how many np.exp a pass may cost, in double precision and with single inside.
SHAPES: dict[str, tuple[int, int, int, dict[str, float]]] = {
    "5 M votes, K = 2, 20 000 workers": (5, 20_000, 2, {"float64": 7, "float32": 5.5}),
    "6 M votes, K = 3, 2 413 workers": (6, 2_413, 3, {"float64": 5, "float32": 4}),
}
# The same of the default method; with twenty classes of a fifth of the tasks.
DEFAULT_SHAPES: dict[str, tuple[int, int, int, dict[str, float]]] = {
    "Anchored Rasch, 5 M votes, K = 2, 20 000 workers": (5, 20_000, 2, {"float64": 14, "float32": 9}),
    "Anchored Rasch, 6 M votes, K = 3, 2 413 workers": (6, 2_413, 3, {"float64": 9.5, "float32": 7}),
    "Anchored Rasch, 1 M votes, K = 20, 1 000 workers": (5, 1_000, 20, {"float64": 6, "float32": 5}),
}
MANY_CLASSES = 20


def best_of(repeats: int, action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    times = []
    for _ in range(repeats):
        begin = clock()
        action()
        times.append(clock() - begin)
    return min(times)


def columns(
    seed: int = 0, n_votes: int = N_VOTES, n_workers: int = N_WORKERS, n_classes: int = N_CLASSES
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    n_tasks = N_TASKS // 5 if n_classes >= MANY_CLASSES else N_TASKS
    size = n_tasks * n_votes
    truth = np.where(rng.random(n_tasks) < 0.1, n_classes - 1, rng.integers(0, n_classes - 1, n_tasks))
    task = np.repeat(np.arange(n_tasks), n_votes)
    wrong = (truth[task] + rng.integers(1, n_classes, size)) % n_classes
    return task, rng.integers(0, n_workers, size), np.where(rng.random(size) < 0.8, truth[task], wrong)


def pass_seconds(
    crowd: Annotations,
    n_jobs: int,
    repeats: int = 7,
    clock: Callable[[], float] = time.perf_counter,
    dtype: str = "float64",
    method: str = "cc-rasch",
) -> float:
    """The best time of one fused pass, the update of the workers included."""
    model = model_of(method, crowd, dtype)
    with LocalEngine(model, crowd, np.empty(0, np.int32), n_jobs) as engine:
        shared = model.start()
        for _ in range(3):
            stats, _ = engine.run(shared, refresh=True, damping=0.0)
            shared = model.update(shared, stats, 0.0)
            engine.advance()

        def one() -> None:
            model.update(shared, engine.run(shared, refresh=True, damping=0.0)[0], 0.0)

        return best_of(repeats, one, clock)


def _process(seed: int) -> tuple[float, float]:
    """A worker process: passes for a while, to measure how two of them get on side by side."""
    crowd = Annotations.from_arrays(*columns(seed))
    model = CCRasch()._model(crowd)
    with LocalEngine(model, crowd, np.empty(0, np.int32), 1) as engine:
        shared = model.start()
        engine.run(shared, refresh=True, damping=0.0)
        begin = time.time()
        times = []
        while time.time() - begin < 6:
            start = time.perf_counter()
            model.update(shared, engine.run(shared, refresh=True, damping=0.0)[0], 0.0)
            times.append(time.perf_counter() - start)
        # The best, as for threads: what else the machine does must not decide.
        return begin, min(times)


def one_thread(
    title: str, n_votes: int, n_workers: int, n_classes: int, at_most: dict[str, float], method: str = "cc-rasch"
) -> list[dict[str, Any]]:
    """A pass beside ``np.exp`` of as many numbers as there are (annotation, class) pairs, in turns."""
    crowd = Annotations.from_arrays(*columns(0, n_votes, n_workers, n_classes))
    values = np.random.default_rng(0).normal(size=crowd.n_annotations * n_classes)
    out = np.empty_like(values)
    np.exp(values, out=out)
    passes: dict[str, list[float]] = {dtype: [] for dtype in at_most}
    exps = []
    for _ in range(3):
        exps.append(best_of(7, lambda: np.exp(values, out=out), time.thread_time))
        for dtype, seconds in passes.items():
            seconds.append(pass_seconds(crowd, 1, 10, time.thread_time, dtype, method))
    rows = [row(f"{title}: nanoseconds per np.exp", min(exps) / values.size * 1e9, "")]
    for dtype, seconds in passes.items():
        ratios = sorted(one / exp for one, exp in zip(seconds, exps, strict=True))
        what = f"{title}, {dtype}"
        rows += [
            row(f"{what}: pass / np.exp per (annotation, class), one thread", ratios[1], f"at most {at_most[dtype]}"),
            row(f"{what}: nanoseconds per (annotation, class) and pass", min(seconds) / values.size * 1e9, ""),
        ]
    return rows


def measure_default() -> list[dict[str, Any]]:
    """Passes of the default method."""
    return [
        row for title, shape in DEFAULT_SHAPES.items() for row in one_thread(title, *shape, method="anchored-rasch")
    ]


def measure_passes() -> list[dict[str, Any]]:
    rows = [row for title, shape in SHAPES.items() for row in one_thread(title, *shape)]
    crowd = Annotations.from_arrays(*columns())
    ones, twos = [], []
    for _ in range(3):
        # As many passes as the processes have time for: of threads and of processes the best count.
        ones.append(pass_seconds(crowd, 1, 20))
        twos.append(pass_seconds(crowd, 2, 40))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        together = [seconds for _, seconds in pool.map(_process, [0, 0])]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        ((_, alone),) = list(pool.map(_process, [0]))
    processes = 2 * alone / (sum(together) / 2)
    threads = min(ones) / min(twos)
    return [
        *rows,
        row("load of the machine meanwhile", os.getloadavg()[0], ""),
        row("speed-up of two threads", threads, ""),
        row("speed-up of two processes", processes, ""),
        row("two threads / two processes", threads / processes, "at least 0.85"),
    ]


def row(what: str, value: float, wanted: str) -> dict[str, Any]:
    print(f"{what}: {value:.3g}   {f'({wanted})' if wanted else ''}", flush=True)
    return {"measure": what, "value": f"{value:.4g}", "wanted": wanted}


def seconds_of(command: list[str], repeats: int = 5, **environment: str) -> float:
    # As installed: what Python has compiled is kept, whatever the environment says.
    around = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> None:
        subprocess.run(command, check=True, capture_output=True, env={**around, **environment})

    return best_of(repeats, run)


FIRST_FIT = (
    "import sys; import numpy as np; from rarevote import CCRasch; r = np.random.default_rng(0); n = int(sys.argv[1]); "
    "CCRasch().fit((r.integers(0, n // 5, n), r.integers(0, 20, n), r.integers(0, 2, n)))"
)
SMALL, LARGE = "1000", "100000"


def measure_start_up() -> list[dict[str, Any]]:
    python = sys.executable
    numpy_seconds = seconds_of([python, "-c", "import numpy"], 9)
    numba_seconds = seconds_of([python, "-c", "import numba"], 9)
    with tempfile.TemporaryDirectory() as cache:
        votes = Path(cache) / "votes.csv"
        votes.write_text("task,worker,label\n" + "".join(f"t{i // 5},w{i % 7},{i % 3}\n" for i in range(int(SMALL))))
        small = seconds_of([python, "-c", FIRST_FIT, SMALL], 5, NUMBA_CACHE_DIR=cache)
        aggregate = seconds_of([python, "-m", "rarevote", "aggregate", str(votes)], 5, NUMBA_CACHE_DIR=cache)
        assert not list(Path(cache).rglob("*.kernel")), "small data were compiled for"
        cold = seconds_of([python, "-c", FIRST_FIT, LARGE], 1, NUMBA_CACHE_DIR=cache)
        warm = seconds_of([python, "-c", FIRST_FIT, LARGE], 5, NUMBA_CACHE_DIR=cache)
    return [
        row(
            "rarevote --version / import numpy",
            seconds_of([python, "-m", "rarevote", "--version"], 9) / numpy_seconds,
            "at most 3",
        ),
        row(
            "rarevote --help / import numpy",
            seconds_of([python, "-m", "rarevote", "--help"], 9) / numpy_seconds,
            "at most 3",
        ),
        row("first fit ever of 1 000 annotations / import numpy", small / numpy_seconds, "at most 3"),
        row("first rarevote aggregate ever of 1 000 votes / import numpy", aggregate / numpy_seconds, "at most 6"),
        row("first fit ever of 100 000 annotations, compiled, seconds", cold, "under 10"),
        row("later process with a fit / import numba", warm / numba_seconds, "at most 3"),
    ]


MEMORY = """
import json, resource, sys
import numpy as np
from benchmarks.foundation import columns
from rarevote import CCRasch
CCRasch().fit((np.arange(100) // 5, np.arange(100) % 7, np.arange(100) % 2))
warm = np.array([0, 0, 1, 1, 2]), np.arange(5).astype(np.int64) * 10_000, np.array([0, 1, 0, 1, 1])
CCRasch().fit(warm)
CCRasch().fit((np.repeat(np.arange(50_000), 2), np.arange(100_000) % 20_000, np.arange(100_000) % 2), )
given = columns()
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
with open("/proc/self/clear_refs", "w") as handle:
    handle.write("5")
def now():
    with open("/proc/self/statm") as handle:
        return int(handle.read().split()[1]) * resource.getpagesize()
def high():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
before = now()
model = CCRasch(10, tol=0, n_jobs=1).fit(given)
grown = high() - before
crowd = model.annotations_
floor = crowd.nbytes + model.posterior_.nbytes + model._result.parameters["difficulty_deviation"].nbytes
print(json.dumps({"grown": grown, "floor": floor}))
"""


def measure_memory() -> list[dict[str, Any]]:
    shown = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True)
    found = json.loads(shown.stdout)
    return [
        row("memory: growth of the peak, MB", found["grown"] / 1e6, ""),
        row("memory: growth / (annotations + posterior + difficulties)", found["grown"] / found["floor"], "at most 4"),
    ]


def measure_peers(peer_python: str) -> list[dict[str, Any]]:
    rows = []
    for slug, peer, target in (
        ("dog", "GLAD", "at least 500"),
        ("trec", "GLAD", "at least 2000"),
        ("trec", "DawidSkene", "at least 1"),
    ):
        path = str(DATASETS / slug / "labels.csv")
        CCRasch().fit(path)
        crowd = CCRasch().fit(path).annotations_
        ours = best_of(5, lambda crowd=crowd: CCRasch().fit(crowd))  # type: ignore[misc]
        theirs = crowdkit_seconds(peer_python, peer, path)
        rows.append(row(f"{slug}: crowd-kit {peer} seconds", theirs, ""))
        rows.append(row(f"{slug}: our CC-Rasch seconds", ours, ""))
        rows.append(row(f"{slug}: crowd-kit {peer} / our CC-Rasch", theirs / ours, target))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", default=None)
    parser.add_argument(
        "--only", default="passes,default,start-up,memory,peers", help="the other figures stay as they were"
    )
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    wanted = arguments.only.split(",")
    if "passes" in wanted:
        rows += measure_passes()
    if "default" in wanted:
        rows += measure_default()
    if "start-up" in wanted:
        rows += measure_start_up()
    if "memory" in wanted:
        rows += measure_memory()
    if "peers" in wanted:
        with tempfile.TemporaryDirectory() as folder:
            rows += measure_peers(arguments.peer_python or crowdkit_python(Path(folder)))
    print(evidence.write("foundation", rows, by=("measure",)).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
