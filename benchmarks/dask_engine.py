"""The dask engine against the local one: the same answer, and what a round costs more.

    python -m benchmarks.dask_engine [--annotations 10_000_000] [--only equality,overhead,cost]

Writes docs/evidence/dask.csv. Clusters are local ones of one-threaded processes; the local engine gets as many threads
as there are processes. Both engines hold the same votes and take turns, so that they meet the same load.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import evidence
from rarevote import AnchoredRasch, Annotations, CCRasch, DawidSkene
from rarevote.cluster.data import StagedCrowd, Staging, stage
from rarevote.cluster.engine import DaskEngine
from rarevote.cluster.fit import Dask
from rarevote.cluster.host import shard_file, write_names
from rarevote.cluster.parts import find_parts
from rarevote.em import local
from rarevote.em.engine import Engine
from rarevote.em.local import LocalEngine
from rarevote.em.loop import Progress, StoppingRule, run_em
from rarevote.io.arrays import save_arrays
from rarevote.kernels import plain
from rarevote.methods.anchored_rasch.model import AnchorCount, AnchorSmoothing, anchors_from

VOTES_PER_TASK, N_WORKERS = 5, 50_000
N_FILES = 10
NOTHING = np.empty(0, dtype=np.int32)


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as made,
        Client(made) as client,
    ):
        yield client


def columns(n_annotations: int, n_workers: int, accuracy: float = 0.8) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    n_tasks = n_annotations // VOTES_PER_TASK
    truth = rng.random(n_tasks) < 0.1
    task = np.repeat(np.arange(n_tasks), VOTES_PER_TASK)
    right = rng.random(task.size) < accuracy
    return task, rng.integers(0, n_workers, task.size), np.where(right, truth[task], ~truth[task])


def write_files(folder: Path, task: Any, worker: Any, label: Any, parts: list[Any]) -> Path:
    """The rows of each part as a Parquet file; ids are text of about 20 characters, as a person has them."""
    import pyarrow
    from pyarrow import compute, parquet

    folder.mkdir()
    for number, rows in enumerate(parts):

        def text(prefix: str, values: Any) -> Any:
            padded = compute.utf8_lpad(pyarrow.array(values).cast("string"), 10, "0")
            return compute.binary_join_element_wise(prefix, padded, "")

        table = {
            "task": text("task-name-", task[rows]),
            "worker": text("worker-id-", worker[rows]),
            "label": pyarrow.array(np.where(label[rows], "defect", "sound")),
        }
        parquet.write_table(pyarrow.table(table), folder / f"part-{number:02d}.parquet")
    return folder


def row(what: str, value: float | str, wanted: str = "") -> dict[str, Any]:
    shown = value if isinstance(value, str) else f"{value:.4g}"
    print(f"{what}: {shown}   {f'({wanted})' if wanted else ''}", flush=True)
    return {"measure": what, "value": shown, "wanted": wanted}


# --------------------------------------------------------------------------------------------------------------------
# the same answer


def posterior(folder: Path) -> Any:
    import pandas

    rows = pandas.read_parquet(folder / "tasks").sort_values("task")
    return rows[["p:defect", "p:sound"]].to_numpy()


def measure_equality() -> list[dict[str, Any]]:
    rows = []
    task, worker, label = columns(200_000, 2_000)
    everything = np.random.default_rng(1).permutation(task.size)
    with tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        folder = Path(name)
        mixed = write_files(folder / "mixed", task, worker, label, np.array_split(everything, N_FILES))
        # Shards of the local engine as files, in the order that it has them.
        n_shards = 13
        local._ANNOTATIONS_PER_SHARD = task.size // n_shards
        local._SHARDS_MULTIPLE = 1
        here = {method: method(50, tol=0).fit(str(mixed)) for method in (CCRasch, DawidSkene)}
        bounds = local.shard_bounds(here[CCRasch].annotations_)
        place = np.empty(task.size, dtype=np.int64)
        place[everything] = np.arange(task.size)
        # Rows of a task in the order of the files: the order of a sum decides its last bits.
        shards = [
            np.arange(begin * VOTES_PER_TASK, end * VOTES_PER_TASK)[
                np.argsort(place[begin * VOTES_PER_TASK : end * VOTES_PER_TASK])
            ]
            for begin, end in pairwise(bounds)
        ]
        equal = write_files(folder / "equal", task, worker, label, shards)
        for n_workers in (1, 2, 4):
            with cluster(n_workers) as client:
                for method, model in here.items():
                    titled = f"{method.method_name}, {n_workers} workers"
                    worst = 0.0
                    for count in (3, 16):
                        Dask(folder / "out", client=client, n_shards=count).fit(method(50, tol=0), mixed)
                        worst = max(worst, np.abs(posterior(folder / "out") - model.posterior_).max())
                    rows.append(row(f"{titled}: largest difference, 3 and 16 hashed shards", worst, "at most 1e-8"))
                    Dask(folder / "out", client=client, partitioned=True).fit(method(50, tol=0), equal)
                    same = np.array_equal(posterior(folder / "out"), model.posterior_)
                    rows.append(
                        row(
                            f"{titled}: bit for bit with the {n_shards} shards of the local engine",
                            "yes" if same else "no",
                            "yes",
                        )
                    )
    return rows


# --------------------------------------------------------------------------------------------------------------------
# what a round costs


def seconds_per_round(engine: Engine[Any, Any, Any], model: Any, crowd: Any, n_iter: int) -> list[float]:
    """Seconds of every iteration of a fit but the first, extrapolated steps included."""
    times: list[float] = []

    def told(_: Progress) -> None:
        times.append(time.perf_counter())

    run_em(model, engine, model.start(), StoppingRule(n_iter, 0.0, 0.0), accelerate=True, callback=told)
    return np.diff(times).tolist()


def least(runs: list[list[float]]) -> float:
    """The least seconds a round, which is free of what else the machine does.

    Every second round carries an extrapolated step: the least of either kind, on average.
    """
    rounds = np.array(runs)[:, -8:]
    return float(rounds[:, ::2].min() + rounds[:, 1::2].min()) / 2


def typical(run: list[float]) -> float:
    """The median seconds a round in one fit, either kind counting alike."""
    return (median(run[-8::2]) + median(run[-7::2])) / 2


def measure_overhead(n_annotations: int, *, n_iter: int = 13, repeats: int = 5) -> list[dict[str, Any]]:
    rows = []
    task, worker, label = columns(n_annotations, N_WORKERS)
    crowd = Annotations.from_arrays(task, worker, label)
    model = CCRasch()._model(crowd)
    with tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        folder = Path(name)
        order = np.array_split(np.random.default_rng(1).permutation(task.size), N_FILES)
        data = write_files(folder / "data", task, worker, label, order)
        del task, worker, label, order
        for n_workers in (1, 2):
            with cluster(n_workers) as client:
                begin = time.perf_counter()
                staged = stage(client, find_parts(data), Staging(folder / f"staged-{n_workers}"))
                seconds = time.perf_counter() - begin
                titled = f"{n_annotations:,} annotations, {n_workers} dask workers"
                rows.append(row(f"{titled}: seconds to shuffle and encode", seconds))
                here, there = [], []
                for number in range(repeats):
                    with DaskEngine(client, model, staged) as engine:
                        there.append(seconds_per_round(engine, model, staged, n_iter))
                    with LocalEngine(model, crowd, NOTHING, n_workers) as engine_here:
                        here.append(seconds_per_round(engine_here, model, crowd, n_iter))
                    print(f"{number + 1}: dask {typical(there[-1]):.3f} s, local {typical(here[-1]):.3f} s", flush=True)
                fast, fast_here = least(there), least(here)
                usual = [typical(one) / typical(other) for one, other in zip(there, here, strict=True)]
                rows += [
                    row(f"{titled}: least seconds a round", fast),
                    row(f"local engine, {n_workers} threads: least seconds a round", fast_here),
                    row(f"{titled}: overhead a round by the least, %", 100 * (fast / fast_here - 1), "at most 40"),
                    row(f"{titled}: overhead a round by medians, median of {repeats}, %", 100 * (median(usual) - 1)),
                ]
    return rows


# --------------------------------------------------------------------------------------------------------------------
# what the cost of a round is made of


def write_shards(crowd: Annotations, folder: Path, per_shard: int) -> StagedCrowd:
    """Encoded shards without the way through files and a shuffle."""
    folder.mkdir()
    write_names(folder / "workers.parquet", crowd.workers)
    bounds = [*range(0, crowd.n_tasks, per_shard // VOTES_PER_TASK), crowd.n_tasks]
    sizes = []
    for number, (begin, end) in enumerate(pairwise(bounds)):
        first, last = int(crowd.task_ptr[begin]), int(crowd.task_ptr[end])
        votes = {
            "task_ptr": crowd.task_ptr[begin : end + 1] - first,
            "worker": crowd.worker[first:last],
            "label": crowd.label[first:last],
            "gold": NOTHING,
        }
        save_arrays(shard_file(folder, number), votes)
        sizes.append(last - first)
    names = crowd.classes.tolist()
    return StagedCrowd(folder, "", len(sizes), crowd.n_tasks, crowd.n_annotations, 0, names, sizes)


def model_of(method: str, crowd: Annotations, dtype: str = "float64") -> Any:
    """The model of a fit: CC-Rasch, or Anchored Rasch with its anchors counted."""
    if method == "cc-rasch":
        return CCRasch(dtype=dtype)._model(crowd)
    one = AnchoredRasch(dtype=dtype)
    sums = local.LocalRunner(1).sums(AnchorCount(crowd.n_workers, crowd.n_classes, one.rho_a), crowd, NOTHING, ())
    return one._model(anchors_from(sums, AnchorSmoothing()), crowd.n_workers)


def compile_always() -> None:
    """Compiled passes for shards of any size: those of large crowds are never computed in NumPy."""
    plain.MAX_PLAIN_CELLS = -1


def measure_cost(method: str) -> list[dict[str, Any]]:
    """Seconds a round on one dask worker, as a sum of four terms with coefficients found by least squares."""
    from scipy.optimize import nnls

    measured = []
    with cluster(1) as client, tempfile.TemporaryDirectory(prefix="rarevote-") as name:
        client.run(compile_always)
        for n_annotations in (500_000, 2_000_000, 4_000_000):
            for n_workers in (2_000, 50_000, 400_000):
                crowd = Annotations.from_arrays(*columns(n_annotations, n_workers))
                model = model_of(method, crowd)
                for n_shards in (2, 10):
                    folder = Path(name) / f"{n_annotations}-{n_workers}-{n_shards}"
                    staged = write_shards(crowd, folder, n_annotations // n_shards)
                    times = []
                    for _ in range(2):
                        with DaskEngine(client, model, staged) as engine:
                            times.append(seconds_per_round(engine, model, staged, 13))
                    seconds = least(times)
                    shared = crowd.n_workers * 2
                    measured.append((1.0, crowd.n_annotations * 2, n_shards * shared, shared, seconds))
                    size = f"{n_annotations:,} annotations, {n_workers:,} workers, {n_shards} shards"
                    print(f"{size}: {seconds:.4f} s a round", flush=True)
    table = np.array(measured)
    terms, seconds_of = table[:, :4], table[:, 4]
    found, _ = nnls(terms / seconds_of[:, None], np.ones(len(table)))  # relative errors count alike
    error = np.abs(terms @ found / seconds_of - 1.0)
    return [
        row("cost of a round: fixed, ms", 1e3 * found[0]),
        row("cost of a round: per annotation and class, ns", 1e9 * found[1]),
        row("cost of a round: per shard, worker and class, ns", 1e9 * found[2]),
        row("cost of a round: per worker and class, ns", 1e9 * found[3]),
        row("cost of a round: median error of this model, %", 100 * float(np.median(error))),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotations", type=int, default=10_000_000)
    parser.add_argument("--only", default="equality,overhead,cost")
    parser.add_argument("--method", default="cc-rasch", choices=("cc-rasch", "anchored-rasch"), help="of the cost")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    wanted = arguments.only.split(",")
    if "equality" in wanted:
        rows += measure_equality()
    if "overhead" in wanted:
        rows += measure_overhead(arguments.annotations)
    if "cost" in wanted:
        rows += measure_cost(arguments.method)
    name = "dask" if arguments.method == "cc-rasch" else "dask_default"
    print(evidence.write(name, rows, by=("measure",)).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
