"""The dask engine against the local one: the same answer, and what a round costs more.

    python -m benchmarks.dask_engine [--annotations 10_000_000] [--only equality,overhead]

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
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import evidence
from rarevote import Annotations, CCRasch, DawidSkene
from rarevote.cluster import Dask
from rarevote.em import Engine, Progress, StoppingRule, run_em
from rarevote.engines import local
from rarevote.engines.dask import DaskEngine
from rarevote.engines.dask_data import Staging, stage
from rarevote.engines.dask_parts import find_parts
from rarevote.engines.local import LocalEngine

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
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as made,
        Client(made) as client,
    ):
        yield client


def columns(n_annotations: int, n_workers: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    n_tasks = n_annotations // VOTES_PER_TASK
    truth = rng.random(n_tasks) < 0.1
    task = np.repeat(np.arange(n_tasks), VOTES_PER_TASK)
    right = rng.random(task.size) < 0.8
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
        local._ANNOTATIONS_PER_SHARD = task.size // n_shards  # type: ignore[attr-defined]
        here = {method: method(50, tol=0).fit(str(mixed)) for method in (CCRasch, DawidSkene)}
        bounds = local.shard_bounds(here[CCRasch].annotations_)
        place = np.empty(task.size, dtype=np.int64)
        place[everything] = np.arange(task.size)
        # Rows of a task in the order of the files: the order of a sum decides its last bits.
        shards = [
            np.arange(begin * VOTES_PER_TASK, end * VOTES_PER_TASK)[
                np.argsort(place[begin * VOTES_PER_TASK : end * VOTES_PER_TASK])
            ]
            for begin, end in zip(bounds[:-1], bounds[1:], strict=True)
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
    """Seconds of every iteration of a fit but the first, lengthened steps included."""
    times: list[float] = []

    def told(_: Progress) -> None:
        times.append(time.perf_counter())

    run_em(model, engine, model.start(crowd), StoppingRule(n_iter, 0.0, 0.0), accelerate=True, callback=told)
    return np.diff(times).tolist()


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
                for _ in range(repeats):
                    with DaskEngine(client, model, staged) as engine:
                        there += seconds_per_round(engine, model, staged, n_iter)
                    with LocalEngine(model, crowd, NOTHING, n_workers) as engine_here:
                        here += seconds_per_round(engine_here, model, crowd, n_iter)
                rows.append(row(f"{titled}: seconds a round", float(np.mean(there))))
                rows.append(row(f"local engine, {n_workers} threads: seconds a round", float(np.mean(here))))
                size = n_iter - 1
                ratios = [
                    sum(there[begin : begin + size]) / sum(here[begin : begin + size])
                    for begin in range(0, len(here), size)
                ]
                rows.append(row(f"{titled}: overhead a round, %", 100 * (median(ratios) - 1), "at most 40"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotations", type=int, default=10_000_000)
    parser.add_argument("--only", default="equality,overhead")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    wanted = arguments.only.split(",")
    if "equality" in wanted:
        rows += measure_equality()
    if "overhead" in wanted:
        rows += measure_overhead(arguments.annotations)
    print(evidence.write("dask", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
