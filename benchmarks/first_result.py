"""The first result: fits in NumPy beside compiled ones, and the first command with an empty cache of compiled code.

    python -m benchmarks.first_result

Writes docs/evidence/first_result.csv, all in seconds of the processor. Each fit runs in a process of its own, with the
loading of compiled code and without compiling it: where NumPy takes less, compiled code has nothing to offer even to
the second process (``MAX_PLAIN_CELLS`` of :mod:`rarevote.kernels.plain`).
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import evidence

CLASSES, CELLS, VOTES_PER_TASK = (2, 3, 5, 20), (400_000, 800_000), 5
FEW, MANY = 200, 10_000
_FIT = """
import sys, time
import numpy as np
from rarevote import AnchoredRasch, Annotations
from rarevote.kernels import plain
compiled, n, K, W = (int(word) for word in sys.argv[1:])
plain.MAX_PLAIN_CELLS = -1 if compiled else 10**12
rng = np.random.default_rng(0)
task = np.repeat(np.arange(n // 5), 5)
truth, worker = rng.integers(0, K, n // 5)[task], rng.integers(0, W, task.size)
right = rng.random(task.size) < rng.beta(8, 2, W)[worker]
label = np.where(right, truth, (truth + rng.integers(1, K, task.size)) % K)
crowd = Annotations.from_arrays(task, worker, label)
begin = time.process_time()
AnchoredRasch(n_jobs=1).fit(crowd)
print(time.process_time() - begin)
"""


def fit_seconds(compiled: bool, n_votes: int, n_classes: int, n_workers: int) -> float:
    """Seconds of the processor of one fit, loading included."""
    words = (str(int(compiled)), str(n_votes), str(n_classes), str(n_workers))
    shown = subprocess.run([sys.executable, "-c", _FIT, *words], check=True, capture_output=True, text=True)
    return float(shown.stdout)


def command_seconds(votes: Path, cache: Path) -> float:
    """Seconds of the processor of ``rarevote aggregate`` with compiled code in this folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["aggregate", str(votes), "--out", str(votes.with_suffix(".result.csv")), "--quiet"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    subprocess.run([sys.executable, "-m", "rarevote", *words], check=True, capture_output=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_votes(path: Path, n_votes: int, n_classes: int) -> None:
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(n_votes // VOTES_PER_TASK), VOTES_PER_TASK)
    truth, worker = rng.integers(0, n_classes, task.size // VOTES_PER_TASK)[task], rng.integers(0, 2_000, task.size)
    label = np.where(rng.random(task.size) < 0.8, truth, rng.integers(0, n_classes, task.size))
    rows = (f"t{one},w{by},c{said}\n" for one, by, said in zip(task, worker, label, strict=True))
    path.write_text("task,worker,label\n" + "".join(rows))


def main() -> None:
    rows: list[dict[str, Any]] = []

    def note(measure: str, plain: float, compiled: float | str = "", wanted: str = "") -> None:
        shown = compiled if isinstance(compiled, str) else f"{compiled:.3g}"
        rows.append({"measure": measure, "seconds": f"{plain:.3g}", "compiled": shown, "wanted": wanted})
        print(*rows[-1].values(), sep=", ", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for n_votes, n_classes, wanted in ((100_000, 2, 1.5), (100_000, 4, 1.5), (1_000_000, 2, 6), (1_000_000, 4, 6)):
            votes, cache = Path(folder) / "votes.csv", Path(folder) / f"cache-{n_votes}-{n_classes}"
            write_votes(votes, n_votes, n_classes)
            cache.mkdir()
            title = f"first rarevote aggregate ever of {n_votes:,} votes, K = {n_classes}"
            note(title, command_seconds(votes, cache), wanted=f"at most {wanted}")
    for n_classes in CLASSES:
        for n_workers in (FEW, MANY):
            for cells in CELLS:
                n_votes = cells // n_classes // VOTES_PER_TASK * VOTES_PER_TASK
                fit_seconds(True, n_votes, n_classes, n_workers)  # compiled once
                numpy_seconds, compiled = (fit_seconds(one, n_votes, n_classes, n_workers) for one in (False, True))
                note(
                    f"fit of {n_votes:,} votes, K = {n_classes}, {n_workers:,} workers: NumPy, compiled",
                    numpy_seconds,
                    compiled,
                )
    print(evidence.write("first_result", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
