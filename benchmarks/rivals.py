"""Rivals of CC-Rasch against the programs where users find them today, side by side in one run.

    python -m benchmarks.rivals [--peer-python PYTHON] [--weights FILE] [--only dawid-skene,glad,crowdfm,scipy] [--cpu]

Writes docs/evidence/rivals.csv: a row in seconds of the clock and a row in CPU seconds (all threads of the process) of
the same fits; the latter also per iteration, where both report how many they took. Dawid–Skene and GLAD: crowd-kit's
class and ours on the same pandas frame with text ids, from the frame to labels, probabilities and parameters; what
comes before and after the iterations counts as part of them. CrowdFM: our network against one that materialises its
N x 128 arrays in NumPy, one seed, the same weights. Figures of ours are medians of runs before and after the rival's.
SciPy: a fit with sparse matrices (:mod:`benchmarks.scipy_peer`, in our own lines) against Dawid–Skene and the default,
from arrays of numbers on one thread, in CPU seconds only. Figures that are not measured again stay; with ``--cpu``,
for a busy machine, those of the clock stay too.

The datasets are looked for in RAREVOTE_DATA; the weights are the authors' file, which RAREVOTE_CROWDFM or --weights
names. Without --peer-python, crowd-kit is installed into a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks import evidence
from benchmarks.crowdfm_numpy import task_option_logits_materialised
from benchmarks.datasets import DATASETS
from benchmarks.peers import crowdkit_python
from benchmarks.scipy_peer import combine
from rarevote import GLAD, AnchoredRasch, Annotations, DawidSkene, simulate_crowd
from rarevote.io.read.crowd import read
from rarevote.methods.crowdfm.estimator import WEIGHTS_VARIABLE, load_weights
from rarevote.methods.crowdfm.network import task_option_logits

N_ANNOTATIONS, VOTES_PER_TASK, N_WORKERS = 1_000_000, 5, 2_000
REPEATS = 3

_CROWDKIT = """
import json, sys, time, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from crowdkit import aggregation
frame = pd.read_csv(sys.argv[2], dtype=str, keep_default_na=False)
begin, busy = time.perf_counter(), time.process_time()
model = getattr(aggregation, sys.argv[1])().fit(frame)
clock, cpu = time.perf_counter() - begin, time.process_time() - busy
shown = {"clock": clock, "cpu": cpu, "iterations": len(model.loss_history_), "labels": model.labels_.to_dict()}
print(json.dumps(shown))
"""


@dataclass(frozen=True)
class Seconds:
    """Seconds on the clock, and CPU seconds of all threads."""

    clock: float
    cpu: float


def timed(action: Callable[[], object], repeats: int = REPEATS) -> list[Seconds]:
    seconds = []
    for _ in range(repeats):
        begin, busy = time.perf_counter(), time.process_time()
        action()
        seconds.append(Seconds(time.perf_counter() - begin, time.process_time() - busy))
    return seconds


def middle(runs: list[Seconds]) -> Seconds:
    """The median of each."""
    return Seconds(median(run.clock for run in runs), median(run.cpu for run in runs))


def results(
    what: str,
    rival: str,
    ours: Seconds,
    theirs: Seconds,
    *,
    annotations: int,
    agreement: str,
    iterations: tuple[int, int] | None = None,
    wanted: float | None = None,
    wanted_cpu: float | None = None,
) -> list[dict[str, Any]]:
    """A row of the clock and a row of CPU seconds.

    Args:
        what: was fitted.
        rival: the other program.
        ours: median seconds.
        theirs: likewise.
        annotations: how many votes.
        agreement: of the two results.
        iterations: ours and theirs.
        wanted: the least ratio on the clock.
        wanted_cpu: the least ratio of CPU seconds.
    """
    rows = []
    for unit, own, other, least in (
        ("clock", ours.clock, theirs.clock, wanted),
        ("CPU", ours.cpu, theirs.cpu, wanted_cpu),
    ):
        row = {
            "measure": what,
            "rival": rival,
            "unit": unit,
            "seconds": f"{own:.3g}",
            "seconds_rival": f"{other:.3g}",
            "ratio": f"{other / own:.4g}",
            "wanted": "" if least is None else f"at least {least:g}",
            "annotations": annotations,
            "iterations": "",
            "iterations_rival": "",
            "iteration_ms": "",
            "iteration_ms_rival": "",
            "iteration_ratio": "",
            "agreement": agreement,
        }
        if iterations:
            row["iterations"], row["iterations_rival"] = iterations
        if iterations and unit == "CPU":
            each, each_rival = own / iterations[0], other / iterations[1]
            row["iteration_ms"], row["iteration_ms_rival"] = f"{1e3 * each:.3g}", f"{1e3 * each_rival:.3g}"
            row["iteration_ratio"] = f"{each_rival / each:.4g}"
        print(*row.values(), sep=", ", flush=True)
        rows.append(row)
    return rows


def against_crowdkit(what: str, method: Any, csv: Path, python: str, wanted: float) -> list[dict[str, Any]]:
    """One method on one file of votes, read by both beforehand."""
    frame = pd.read_csv(csv, dtype=str, keep_default_na=False)

    def fit() -> Any:
        model = method().fit(frame)
        # crowd-kit's fit makes all of these; ours waits until they are asked for.
        for name in ("labels_", "probas_", "errors_", "priors_", "alphas_", "betas_"):
            getattr(model, name, None)
        return model

    model = fit()  # compiles
    ours = timed(fit)
    shown = subprocess.run([python, "-c", _CROWDKIT, method.__name__, str(csv)], check=True, capture_output=True)
    theirs = json.loads(shown.stdout)
    ours += timed(fit)
    labels = model.labels_
    same = np.mean(labels.to_numpy() == pd.Series(theirs["labels"])[labels.index].to_numpy())
    return results(
        what,
        "crowd-kit",
        middle(ours),
        Seconds(theirs["clock"], theirs["cpu"]),
        annotations=len(frame),
        agreement=f"{same:.4f} of labels",
        iterations=(model.n_iter_, theirs["iterations"]),
        wanted=wanted,
    )


def measure_dawid_skene(folder: Path, python: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n_classes in (2, 5):
        crowd = simulate_crowd(
            N_ANNOTATIONS // VOTES_PER_TASK,
            N_WORKERS,
            n_classes=n_classes,
            votes_per_task=VOTES_PER_TASK,
            random_state=0,
        )
        csv = folder / f"simulated-{n_classes}.csv"
        pd.DataFrame(dict(zip(("task", "worker", "label"), crowd.arrays, strict=True))).to_csv(csv, index=False)
        rows += against_crowdkit(f"Dawid–Skene, simulated, K={n_classes}", DawidSkene, csv, python, 15)
    return rows


def measure_glad(python: str) -> list[dict[str, Any]]:
    return against_crowdkit("GLAD, dog", GLAD, DATASETS / "dog" / "labels.csv", python, 200)


def measure_crowdfm(weights: str) -> list[dict[str, Any]]:
    network = load_weights(weights)
    crowd = read(DATASETS / "trec" / "labels.csv").annotations
    graph = (crowd.task_ptr, crowd.worker, crowd.label, crowd.n_workers, crowd.n_classes)
    vectors = np.random.default_rng(0).standard_normal((crowd.n_classes, 32))

    def package() -> Any:
        return task_option_logits(*graph, network, vectors)

    def materialised() -> Any:
        return task_option_logits_materialised(*graph, network, vectors)

    gap = np.abs(package() - materialised()).max()
    ours = timed(package)
    theirs = timed(materialised)
    ours += timed(package)
    return results(
        "CrowdFM, trec, one seed",
        "NumPy with N x 128 arrays",
        middle(ours),
        middle(theirs),
        annotations=crowd.n_annotations,
        agreement=f"logits to {gap:.0e}",
        wanted=5,
    )


def measure_scipy() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n_classes in (2, 5):
        crowd = simulate_crowd(
            N_ANNOTATIONS // VOTES_PER_TASK,
            N_WORKERS,
            n_classes=n_classes,
            votes_per_task=VOTES_PER_TASK,
            random_state=0,
        )
        annotations = Annotations.from_arrays(*crowd.arrays)
        columns = (annotations.task_of_annotation(), annotations.worker.astype(np.int64), annotations.label)
        fit_peer = partial(combine, *columns, n_classes)
        peer, theirs = fit_peer(), timed(fit_peer)
        for name, method in (("Dawid–Skene", DawidSkene), ("Anchored Rasch", AnchoredRasch)):
            fit = partial(method(n_jobs=1).fit, annotations)
            model = fit()  # compiles
            ours = timed(fit)
            same = np.mean(model.posterior_.argmax(axis=1) == peer.posterior.argmax(axis=1))
            rows += results(
                f"{name}, simulated, K={n_classes}, one thread",
                "SciPy's sparse matrices",
                middle(ours),
                middle(theirs),
                annotations=annotations.n_annotations,
                agreement=f"{same:.4f} of most probable classes",
                iterations=(model.n_iter_, peer.n_iter),
                wanted_cpu=1,
            )
    return [row for row in rows if row["unit"] == "CPU"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", default=None, help="a Python that has crowd-kit")
    parser.add_argument("--weights", default=os.environ.get(WEIGHTS_VARIABLE), help="CrowdFM's weights file")
    parser.add_argument("--only", default="dawid-skene,glad,crowdfm,scipy", help="which comparisons, by commas")
    parser.add_argument("--cpu", action="store_true", help="write CPU seconds only: for a busy machine")
    options = parser.parse_args()
    chosen = options.only.split(",")
    if "crowdfm" in chosen and not options.weights:
        parser.error(f"name CrowdFM's weights with --weights or {WEIGHTS_VARIABLE}, or leave it out with --only")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "dawid-skene" in chosen or "glad" in chosen:
            python = options.peer_python or crowdkit_python(folder)
            if "dawid-skene" in chosen:
                rows += measure_dawid_skene(folder, python)
            if "glad" in chosen:
                rows += measure_glad(python)
    if "crowdfm" in chosen:
        rows += measure_crowdfm(options.weights)
    if "scipy" in chosen:
        rows += measure_scipy()
    if options.cpu:
        rows = [row for row in rows if row["unit"] == "CPU"]
    print(evidence.write("rivals", rows, by=("measure", "rival", "unit")).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
