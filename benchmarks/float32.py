"""What half the precision, of the tasks' state and within a pass, costs and saves in CC-Rasch.

    python -m benchmarks.float32 [--tasks 2000000]

Writes docs/evidence/float32.csv: for each real dataset (found through RAREVOTE_DATA) how far objective, posteriors and
labels are from those of double precision, and for a simulated crowd of five votes a task the peak memory and the time
of a pass, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.crowd.annotations import Annotations
from rarevote.kernels import plain
from rarevote.methods.cc_rasch.estimator import CCRasch

_RUN = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from pathlib import Path
import numpy as np
from rarevote.crowd.annotations import Annotations
from rarevote.methods.cc_rasch.estimator import CCRasch
n_tasks, dtype = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
votes = Annotations(
    np.arange(0, 5 * n_tasks + 1, 5), rng.integers(0, 5000, 5 * n_tasks).astype(np.uint16),
    (rng.random(5 * n_tasks) < 0.2).astype(np.uint8), np.arange(n_tasks), np.arange(5000), np.arange(2),
)
CCRasch(3, tol=0, dtype=dtype).fit(votes)  # compiled, or loaded
ticks = []
CCRasch(12, tol=0, dtype=dtype, n_jobs=1).fit(votes, callback=lambda _: ticks.append(time.perf_counter()))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(json.dumps({"seconds": min(np.diff(ticks)), "kilobytes": int(peak.split()[1])}))
"""


def dataset_rows() -> list[dict[str, Any]]:
    from tests.benchmark_data import datasets, load

    plain.MAX_PLAIN_CELLS = -1  # NumPy would compute in double precision
    shared = DATASETS.resolve().parent
    rows = []
    for entry in datasets(shared):
        task, worker, label, _ = load(shared, entry.slug)
        votes = Annotations.from_arrays(task, worker, label)
        double, single = CCRasch().fit(votes), CCRasch(dtype="float32").fit(votes)
        objective = double.loss_history_[-1]
        rows.append(
            {
                "what": entry.slug,
                "iterations_float64": double.n_iter_,
                "iterations_float32": single.n_iter_,
                "objective_difference": f"{abs(single.loss_history_[-1] / objective - 1):.1e}",
                "posterior_difference": f"{np.abs(double.posterior_ - single.posterior_).max():.1e}",
                "labels_changed": int((double.label_codes() != single.label_codes()).sum()),
                "seconds_ratio": "",
                "memory_ratio": "",
            }
        )
        print(*rows[-1].values(), sep=", ", flush=True)
    return rows


def size_row(n_tasks: int) -> dict[str, Any]:
    found: dict[str, list[dict[str, float]]] = {"float64": [], "float32": []}
    for _ in range(3):
        for dtype, runs in found.items():
            command = [sys.executable, "-c", _RUN, str(n_tasks), dtype]
            runs.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    least = {
        (dtype, name): min(run[name] for run in runs)
        for dtype, runs in found.items()
        for name in ("seconds", "kilobytes")
    }
    row = {
        "what": f"{5 * n_tasks:,} annotations",
        "seconds_ratio": round(least["float32", "seconds"] / least["float64", "seconds"], 3),
        "memory_ratio": round(least["float32", "kilobytes"] / least["float64", "kilobytes"], 3),
    }
    print(*row.values(), sep=", ", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000_000, help="tasks of the simulated crowd")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = dataset_rows() if (DATASETS / "index.csv").is_file() else []
    blank = dict.fromkeys(rows[0], "") if rows else {}
    print(evidence.write("float32", [*rows, {**blank, **size_row(options.tasks)}]).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
