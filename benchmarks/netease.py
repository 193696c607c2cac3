"""A crowd of NetEase's size (1 M tasks, 2 413 workers, 6 M annotations, K = 3): crowd-kit's Dawid–Skene beside ours.

    python -m benchmarks.netease [--tasks 1_000_000] [--rounds 2] [--ids numbers,text] [--seeds 0]
                                [--peer-python PYTHON]

Writes docs/evidence/netease.csv. The crowd is simulated, with tasks, workers and classes named by numbers, as NetEase
has them, and once more by text, for which crowd-kit takes longer and a frame is larger. Every fit has a process of its
own that does the same three things, whoever's method it is: fits a small crowd (so that nothing is loaded or compiled
any more), has pandas read the votes from a CSV, and, timed, fits the frame with the method's defaults and asks for all
results. Processes take turns for some rounds; of seconds the least count, of bytes the most of ours and the least of
crowd-kit's. Memory is the peak of the whole process, with the interpreter, the libraries and the frame in it.

Our Dawid–Skene is a drop-in replacement: it stops after the same number of iterations as crowd-kit's, so its total is
also the ratio by iteration. CC-Rasch and Anchored Rasch are other models with a stopping rule of their own; their
totals count, and seconds per iteration are told beside. "from the file" is told for what it is worth and compares
unlike things: the path is given to our fit, so that no frame is in memory, and reading counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks import evidence
from benchmarks.peers import crowdkit_python
from rarevote.simulate.crowds import simulate_crowd

N_WORKERS, N_CLASSES, VOTES_PER_TASK = 2_413, 3, 6
RIVAL = "crowd-kit DawidSkene"
# Our methods, and how many times as fast they are to be.
METHODS = {"Dawid–Skene": ("DawidSkene", 60), "CC-Rasch": ("CCRasch", 40), "Anchored Rasch": ("AnchoredRasch", 25)}
PART_OF_MEMORY = 0.5
# Compiled for, as the crowd itself is: fewer votes are fitted in NumPy.
N_TINY_TASKS = 20_000

_FIT = """
import hashlib, importlib, json, sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd

module, method, source, tiny, votes = sys.argv[1:]
kind = getattr(importlib.import_module(module), method)

def fit(path):
    frame = path if source == "file" else pd.read_csv(path)
    begin = time.perf_counter()
    model = kind().fit(frame)
    results = ("labels_", "probas_", "errors_", "priors_", "abilities_", "difficulties_")
    found = {name: getattr(model, name, None) for name in results}
    return time.perf_counter() - begin, model, found

fit(tiny)
seconds, model, found = fit(votes)
with open("/proc/self/status") as handle:
    peak = next(int(line.split()[1]) * 1024 for line in handle if line.startswith("VmHWM"))
labels = found["labels_"]
labels = dict(labels.items()) if hasattr(labels, "items") else dict(zip(*labels.columns.values()))
text = repr(sorted((str(task), str(label)) for task, label in labels.items()))
print(json.dumps({"seconds": seconds, "peak": peak, "iterations": len(model.loss_history_),
                  "labels": hashlib.sha256(text.encode()).hexdigest()}))
"""


class Contender(NamedTuple):
    """Whose method, from what."""

    title: str
    python: str
    module: str
    method: str
    source: str  # "frame" or "file"


def write_votes(path: Path, n_tasks: int, ids: str, seed: int) -> int:
    """A simulated crowd as a CSV in random order, as votes come in; returns the number of annotations."""
    crowd = simulate_crowd(
        n_tasks, N_WORKERS, n_classes=N_CLASSES, votes_per_task=VOTES_PER_TASK, imbalance=5.0, random_state=seed
    )
    order = np.random.default_rng(0).permutation(crowd.n_annotations)
    columns = dict(zip(("task", "worker", "label"), (column[order] for column in crowd.arrays), strict=True))
    frame = pd.DataFrame(columns)
    if ids == "text":
        for name, prefix in (("task", "task-"), ("worker", "worker-"), ("label", "class-")):
            frame[name] = prefix + frame[name].astype(str)
    frame.to_csv(path, index=False)
    return crowd.n_annotations


def run(contender: Contender, tiny: Path, votes: Path) -> dict[str, Any]:
    arguments = [contender.module, contender.method, contender.source, str(tiny), str(votes)]
    shown = subprocess.run([contender.python, "-c", _FIT, *arguments], check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(shown.stdout.splitlines()[-1])
    print(
        f"{contender.title}: {found['seconds']:.2f} s, {found['iterations']} iterations, "
        f"peak {found['peak'] / 1e6:,.0f} MB",
        flush=True,
    )
    return found


def compared(
    contender: Contender, ours: list[dict[str, Any]], theirs: list[dict[str, Any]], size: dict[str, Any]
) -> dict[str, Any]:
    seconds, seconds_rival = (min(one["seconds"] for one in runs) for runs in (ours, theirs))
    # The peaks that are worst for us.
    peak, peak_rival = max(one["peak"] for one in ours), min(one["peak"] for one in theirs)
    iterations, iterations_rival = ours[0]["iterations"], theirs[0]["iterations"]
    by_iteration = (seconds_rival / iterations_rival) / (seconds / iterations)
    is_held = contender.source == "frame" and size["ids"] == "numbers"
    return {
        "method": contender.title,
        "rival": RIVAL,
        **size,
        "seconds": f"{seconds:.4g}",
        "seconds_rival": f"{seconds_rival:.4g}",
        "ratio": f"{seconds_rival / seconds:.4g}",
        "wanted": f"at least {METHODS[contender.title][1]}" if is_held else "",
        "iterations": iterations,
        "iterations_rival": iterations_rival,
        "ratio_by_iteration": f"{by_iteration:.4g}",
        "peak_mb": f"{peak / 1e6:.0f}",
        "peak_mb_rival": f"{peak_rival / 1e6:.0f}",
        "memory_ratio": f"{peak / peak_rival:.4g}",
        "memory_wanted": f"at most {PART_OF_MEMORY}" if is_held else "",
        "same_labels": "yes" if ours[0]["labels"] == theirs[0]["labels"] else "no",
    }


def measure(folder: Path, peer: str, n_tasks: int, rounds: int, ids: str, seed: int) -> list[dict[str, Any]]:
    tiny, votes = folder / "tiny.csv", folder / "votes.csv"
    print(f"writing the votes, {ids}, seed {seed} ...", flush=True)
    write_votes(tiny, N_TINY_TASKS, ids, seed)
    n_annotations = write_votes(votes, n_tasks, ids, seed)
    size = {"annotations": n_annotations, "tasks": n_tasks, "workers": N_WORKERS, "classes": N_CLASSES, "ids": ids}
    size["seed"] = seed
    rival = Contender(RIVAL, peer, "crowdkit.aggregation", "DawidSkene", "frame")
    ours = [
        Contender(title + ("" if source == "frame" else ", from the file"), sys.executable, "rarevote", method, source)
        for title, (method, _) in METHODS.items()
        for source in ("frame", "file")
    ]
    for contender in ours:
        # Once on a machine the kernels are compiled, which takes memory too; from then on they are loaded.
        subprocess.run(
            [contender.python, "-c", _FIT, *contender[2:], str(tiny), str(tiny)], check=True, stdout=subprocess.DEVNULL
        )
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for _ in range(rounds):
        for contender in (*ours, rival):
            found[contender.title].append(run(contender, tiny, votes))
    rows = [compared(contender, found[contender.title], found[RIVAL], size) for contender in ours]
    for row in rows:
        print(*row.values(), flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2, help="how often everybody has a turn")
    parser.add_argument("--ids", default="numbers,text", help="what names tasks, workers and classes, by commas")
    parser.add_argument("--seeds", default="0", help="crowds to draw, by commas")
    parser.add_argument("--peer-python", default=None, help="a Python that has crowd-kit")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        folder = Path(name)
        peer = options.peer_python or crowdkit_python(folder)
        for ids in options.ids.split(","):
            for seed in options.seeds.split(","):
                rows += measure(folder, peer, options.tasks, options.rounds, ids, int(seed))
    print(evidence.write("netease", rows).relative_to(evidence.REPOSITORY))
    missed = [
        f"{row['method']}, {row['ids']}, seed {row['seed']}"
        for row in rows
        if row["wanted"]
        and (float(row["ratio"]) < METHODS[row["method"]][1] or float(row["memory_ratio"]) > PART_OF_MEMORY)
    ]
    sys.exit(f"does not hold: {'; '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
