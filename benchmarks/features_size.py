"""Features of a million items: what they cost beyond the fit to the votes alone.

    python -m benchmarks.features_size [--items 1_000_000] [--columns 768] [--folder FOLDER]

Adds the rows of point 6 to docs/evidence/features.csv. The crowd is drawn: two votes on each item by 500 workers of
accuracy .8, two classes, one item in ten of the rare one, features of single precision in a ``.npy`` file that is
mapped, eight columns of which say something. Each fit has a process of its own with one thread. CPU seconds are those
of the process from the fit's first line to its last; memory is the most that is resident without pages of files
(``RssAnon``), looked at every 20 ms. The fit to the votes alone is given the same arrays.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.feature_sets import row, write_rows

VOTES_PER_ITEM, N_WORKERS, ACCURACY, RARE, N_TELLING, SHIFT = 2, 500, 0.8, 0.1, 8, 0.6
CPU_SECONDS, GIGABYTES = 150.0, 1.0
_ROWS = 20_000

_FIT = """
import json, sys, threading, time, warnings
import numpy as np

folder, what = sys.argv[1:]
import rarevote

def resident():
    with open("/proc/self/status") as handle:
        return next(int(line.split()[1]) * 1024 for line in handle if line.startswith("RssAnon"))

tiny = (np.arange(20_000) // 2, np.arange(20_000) % 500, np.arange(20_000) // 3 % 2)
warnings.simplefilter("ignore")
rarevote.fit(tiny)  # so that nothing is compiled any more
votes = tuple(np.load(f"{folder}/{name}.npy") for name in ("task", "worker", "label"))
given = {"features": f"{folder}/features.npy", "features_ids": f"{folder}/ids.txt"} if what == "features" else {}
peak, done = [resident()], threading.Event()

def watch():
    while not done.wait(0.02):
        peak[0] = max(peak[0], resident())

threading.Thread(target=watch, daemon=True).start()
begin, wall = time.process_time(), time.perf_counter()
fitted = rarevote.fit(votes, **given)
p = fitted.probabilities
cpu, wall = time.process_time() - begin, time.perf_counter() - wall
done.set()
record = None if fitted.features_ is None else fitted.features_.figures
print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak[0], "record": record}))
"""


def draw(folder: Path, n_items: int, n_columns: int) -> None:
    """Write votes and features."""
    rng = np.random.default_rng(0)
    truth = (rng.random(n_items) < RARE).astype(np.int8)
    task = np.repeat(np.arange(n_items), VOTES_PER_ITEM)
    right = rng.random(len(task)) < ACCURACY
    np.save(folder / "task.npy", task)
    np.save(folder / "worker.npy", rng.integers(N_WORKERS, size=len(task)))
    np.save(folder / "label.npy", np.where(right, truth[task], 1 - truth[task]))
    values = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=(n_items, n_columns))
    for begin in range(0, n_items, _ROWS):
        part = rng.standard_normal((len(truth[begin : begin + _ROWS]), n_columns), dtype=np.float32)
        part[:, :N_TELLING] += SHIFT * truth[begin : begin + _ROWS, None]
        values[begin : begin + _ROWS] = part
    values.flush()
    (folder / "ids.txt").write_text("\n".join(map(str, range(n_items))) + "\n")


def fit(folder: Path, what: str) -> dict[str, Any]:
    """A fit in a process of its own."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _FIT, str(folder), what],
        check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, **one_thread},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(what, found, flush=True)
    return found


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=768)
    parser.add_argument("--folder", type=Path, help="for 4 bytes an item and column; a temporary one by default")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        draw(folder, given.items, given.columns)
        alone, both = fit(folder, "votes"), fit(folder, "features")
    assert both["record"]["used"], both["record"]["reason"]
    cpu, memory = both["cpu"] - alone["cpu"], (both["peak"] - alone["peak"]) / 1e9
    name, votes = f"{given.items:,} x {given.columns}", f"{VOTES_PER_ITEM}"
    is_held = (given.items, given.columns) == (1_000_000, 768)
    wanted = [f"features' own below {limit:g}" if is_held else "" for limit in (CPU_SECONDS, GIGABYTES)]
    print(
        write_rows(
            [
                row(
                    "6 size", name, votes, "CPU seconds of the fit", runs=1, votes_only=f"{alone['cpu']:.1f}",
                    with_features=f"{both['cpu']:.1f}", wanted=wanted[0], holds=cpu < CPU_SECONDS if is_held else None,
                ),
                row(
                    "6 size", name, votes, "GB resident, mapped files not counted", runs=1,
                    votes_only=f"{alone['peak'] / 1e9:.2f}", with_features=f"{both['peak'] / 1e9:.2f}",
                    wanted=wanted[1], holds=memory < GIGABYTES if is_held else None,
                ),
            ]
        )
    )  # fmt: skip


if __name__ == "__main__":
    main()
