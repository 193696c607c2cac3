"""What half the precision, of the tasks' state and within a pass, costs and saves.

    python -m benchmarks.float32 [--tasks 2000000]

Writes docs/evidence/float32.csv. For every method with ``dtype``, but those for grades, and each real dataset (found
through RAREVOTE_DATA), compiled: how far objective, posteriors, probabilities ``p`` and labels of the result are from
those of double precision; `same` says whether every label is the same and every ``p`` to 1e-4. For a simulated crowd
of five votes a task, the peak memory and the time of a pass of CC-Rasch, each in a process of its own. With
``--tasks 0``, for a busy machine, these stay as they were measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.api import make_method
from rarevote.crowd.annotations import Annotations
from rarevote.kernels import plain

METHODS_COMPARED = ("anchored-rasch", "cc-rasch", "dawid-skene", "one-coin", "class-conditional")
P_WITHIN = 1e-4

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


def compared(votes: Annotations, method: str) -> dict[str, Any]:
    """One method on one crowd in double and in single precision."""
    double, single = (
        rarevote.fit(votes, make_method(method, dtype=dtype)).decide() for dtype in ("float64", "float32")
    )
    one, other = double.fitted.method, single.fitted.method
    p_difference = np.abs(double.fitted.probabilities - single.fitted.probabilities).max()
    changed = int((double.codes != single.codes).sum() + (one.label_codes() != other.label_codes()).sum())
    return {
        "method": method,
        "iterations_float64": one.n_iter_,
        "iterations_float32": other.n_iter_,
        "objective_difference": f"{abs(other.loss_history_[-1] / one.loss_history_[-1] - 1):.1e}",
        "posterior_difference": f"{np.abs(one.posterior_ - other.posterior_).max():.1e}",
        "p_difference": f"{p_difference:.1e}",
        "labels_changed": changed,
        "same": "yes" if changed == 0 and p_difference <= P_WITHIN else "no",
    }


def dataset_rows() -> list[dict[str, Any]]:
    from tests.benchmark_data import datasets, load

    plain.MAX_PLAIN_CELLS = -1  # NumPy would compute in double precision
    shared = DATASETS.resolve().parent
    rows = []
    for method in METHODS_COMPARED:
        for entry in datasets(shared):
            task, worker, label, _ = load(shared, entry.slug)
            votes = Annotations.from_arrays(task, worker, label)
            rows.append({"what": entry.slug, **compared(votes, method)})
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
        "method": "cc-rasch",
        "seconds_ratio": round(least["float32", "seconds"] / least["float64", "seconds"], 3),
        "memory_ratio": round(least["float32", "kilobytes"] / least["float64", "kilobytes"], 3),
    }
    print(*row.values(), sep=", ", flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2_000_000, help="tasks of the simulated crowd, 0 for none")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = dataset_rows() if (DATASETS / "index.csv").is_file() else []
    if options.tasks:
        rows.append(size_row(options.tasks))
    print(evidence.write("float32", rows, by=("what", "method")).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
