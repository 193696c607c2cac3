"""The dask engine for users: the same methods where one machine is too small, results in files instead of in memory.

>>> from rarevote import CCRasch
>>> from rarevote.cluster.fit import Dask
>>> result = Dask("results", scheduler="tcp://head:8786").fit(CCRasch(), "labels/")      # doctest: +SKIP
>>> result.summary["classes"], result.table                                             # doctest: +SKIP

The driver holds nothing per task, so there are no ``labels_`` and ``probas_`` here. What it leaves in the folder::

    results/tasks/part-00000.parquet ...   one row per task: task, label, p:<class>; a file per shard
    results/workers.parquet                one row per worker: how many votes
    results/abilities.parquet              what the method found out about workers, in its own layout and name
    results/summary.json                   counts, parameters, how the fit ended; written last

The folder (and that of the checkpoint) must be on a file system that the driver and all workers see.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd, Staging, stage, staged
from rarevote.cluster.engine import DaskEngine, connected
from rarevote.cluster.parts import find_parts
from rarevote.crowd.annotations import Keep, Missing
from rarevote.crowd.numerics import Chooser
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.engine import Run, Runner
from rarevote.em.loop import Callback, StoppingRule, run_em
from rarevote.em.model import CrowdFacts, FloatArray, Model, Shard, Start
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.frames import read_truth
from rarevote.io.tables import Table
from rarevote.io.write.atomic import cannot_write, flush_folder, make_folder, replacing, temporary_folder
from rarevote.io.write.columns import write_columns
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.checks import Sizes, require_memory
from rarevote.methods.registry import METHODS


class DaskRunner(Runner):
    """Runs a model over the shards of one staged crowd, whose gold is with its votes.

    Args:
        client: a ``distributed.Client``.
        crowd: where the encoded shards are.
        folder: where the dask workers write one row per task.
        chooser: how labels follow from probabilities; the most probable class without one.
        only_voted: whether a label must be one that somebody gave to the task.
    """

    def __init__(
        self,
        client: Any,
        crowd: StagedCrowd,
        folder: Path,
        chooser: Chooser | None = None,
        *,
        only_voted: bool = False,
    ) -> None:
        self._client, self._crowd, self._folder, self._chooser = client, crowd, folder, chooser
        self._only_voted = only_voted
        self._votes: NDArray[np.int64] | None = None
        self.labels = np.zeros(crowd.n_classes, dtype=np.int64)  # how many tasks got each

    def run(
        self,
        model: Model[Any, Any, Any],
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        rule: StoppingRule,
        *,
        checkpoint: Checkpoint | None = None,
        callback: Callback | None = None,
        is_last: bool = True,
        **options: Any,
    ) -> Run:
        """Fit a model and write what it says of the tasks; a checkpoint stays until all results are written."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            shared = model.start()
            outcome = run_em(model, engine, shared, rule, callback=callback, checkpoint=checkpoint, **options)
            if is_last:
                self._finish(engine, self._chooser)
        posterior, *local = model.start_local(_no_tasks(gold))
        return Run(outcome, posterior, tuple(local))

    def start(self, model: Start, crowd: CrowdFacts, gold: NDArray[np.int32]) -> FloatArray:
        """Write the posterior that the tasks begin with."""
        with DaskEngine(self._client, cast("Model[Any, Any, Any]", model), self._crowd) as engine:
            self._finish(engine, self._chooser, of_last_pass=False)
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def sums(self, model: Any, crowd: CrowdFacts, gold: NDArray[np.int32], shared: Any) -> Any:
        """The sums of a single pass."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            return engine.run(shared, refresh=False, damping=0.0)[0]

    def report(
        self,
        model: Any,
        crowd: CrowdFacts,
        gold: NDArray[np.int32],
        shared: Any,
        then: Callable[[Any], tuple[Any, Chooser]],
    ) -> FloatArray:
        """Two passes; the dask workers write what the second gives."""
        with DaskEngine(self._client, model, self._crowd) as engine:
            second, chooser = then(engine.run(shared, refresh=True, damping=0.0)[0])
            engine.advance()
            engine.run(second, refresh=True, damping=0.0)
            self._finish(engine, chooser, calibrated=True)
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def worker_votes(self, crowd: CrowdFacts) -> NDArray[np.int64]:
        """How often each worker gave each label, (n_workers, n_classes); known after a run."""
        assert self._votes is not None
        return self._votes

    def digest(self, crowd: CrowdFacts, gold: NDArray[np.int32]) -> str:
        """What the encoded crowd was made from."""
        return self._crowd.identity

    def _finish(
        self,
        engine: DaskEngine[Any, Any, Any],
        chooser: Chooser | None,
        *,
        of_last_pass: bool = True,
        calibrated: bool = False,
    ) -> None:
        how = {"of_last_pass": of_last_pass, "calibrated": calibrated, "only_voted": self._only_voted}
        self.labels = engine.write_results(self._folder, chooser=chooser, **how)
        self._votes = engine.count_votes()


def _no_tasks(gold: NDArray[np.int32]) -> Shard:
    empty = np.empty(0, dtype=np.uint8)
    return Shard(np.zeros(1, dtype=np.int64), empty, empty, gold)


_LAST = "summary.json"


@dataclass(frozen=True)
class DaskResult:
    """What a fit on dask left.

    Attributes:
        folder: where the files are.
        summary: counts, parameters, how the fit ended.
        classes: names of the classes.
        workers: votes per worker.
        table: what the method found out about workers: ``abilities_``, ``errors_``, ``skills_`` or ``alphas_``.
        fit: parameters and history, without anything per task.
        model: the fitted method, which knows the workers and none of the tasks: it labels new ones and can be saved.
    """

    folder: Path
    summary: dict[str, Any]
    classes: NDArray[Any]
    workers: Table
    table: Table | None
    fit: Fit
    model: Estimator

    @property
    def tasks(self) -> Path:
        """The folder of Parquet files with one row per task."""
        return self.folder / "tasks"


@dataclass(frozen=True)
class Dask:
    """Where and how to run on dask.

    Attributes:
        out: folder for the results.
        scheduler: address of a running cluster's scheduler; without it (and without ``client``) a cluster of one
            process per core is started on this machine for the time of the fit.
        client: a ``distributed.Client`` to use instead.
        checkpoint: folder in which to save the encoded data and, now and then, the fit. After a crash the same call
            resumes it; it is emptied once the results are written.
        every: iterations between two checkpoints.
        n_shards: number of shards; by default it goes by the number of annotations. Fits with equal shards are equal
            to the last bit, whatever the number of workers.
        partitioned: each part of the data (file, row groups, partition) is taken as a shard, without shuffling: all
            rows of a task are in one part already.
        only_voted: a label is one that somebody gave to the task (gold excepted), as on the command line.
    """

    out: str | Path
    scheduler: str | None = None
    client: Any = field(default=None, compare=False)
    checkpoint: str | Path | None = None
    every: int = 10
    n_shards: int | None = None
    partitioned: bool = False
    only_voted: bool = False

    def fit(
        self,
        estimator: Estimator,
        data: Any,
        true_labels: Any = None,
        *,
        columns: Mapping[str, str] | None = None,
        classes: Sequence[Any] | None = None,
        abstain: Sequence[Any] = (),
        keep: Keep = "all",
        missing: Missing = "error",
        callback: Callback | None = None,
    ) -> DaskResult:
        """Aggregate the annotations with the method and parameters of ``estimator``, which is left as it is.

        Arguments that are not named here are as in :meth:`Estimator.fit`.

        Args:
            estimator: one of CCRasch, ClassConditional, DawidSkene, OneCoinDawidSkene, GLAD, MajorityVote.
            data: a Parquet or CSV file, a list or a folder of them, or a dask DataFrame.
        """
        _check_method(estimator)
        truth = None if true_labels is None else read_truth(true_labels)
        if truth is not None and not estimator.uses_gold:
            raise ParameterError(f"{type(estimator).__name__} cannot use true_labels")
        if self.n_shards is not None and self.n_shards < 1:
            raise ParameterError(f"n_shards must be at least 1, got {self.n_shards!r}")
        out = Path(self.out).resolve()
        kept = None if self.checkpoint is None else Path(self.checkpoint).resolve()
        given = [data] if isinstance(data, (str, Path)) else data if isinstance(data, (list, tuple)) else []
        for place in [out / name for name in (*_files(), "tasks")] + ([] if kept is None else [kept / "data"]):
            refuse_overwriting(place, given, replaced=("",))
        with connected(self.client, self.scheduler) as client:
            make_folder(out)
            with temporary_folder(out, "dask") as desk:
                begin = time.perf_counter()
                work = (kept or desk) / "data"
                crowd = self._encoded(
                    client,
                    work,
                    _Labels(data, truth, columns, list(classes or ()), list(abstain), keep, missing),
                    resumes=kept is not None,
                )
                seconds = {"encode": time.perf_counter() - begin}
                asked = {"callback": callback, "checkpoint": None if kept is None else (kept, self.every)}
                result = _fitted(estimator, client, crowd, (desk, out), seconds, only_voted=self.only_voted, **asked)
        if kept is not None:
            shutil.rmtree(work, ignore_errors=True)
            Checkpoint(kept).clear()
        return result

    def _encoded(self, client: Any, work: Path, labels: _Labels, *, resumes: bool) -> StagedCrowd:
        """The crowd as shards in a folder, which may be there from before a crash."""
        parts = find_parts(labels.data, columns=labels.columns, missing=labels.missing)
        policies = (labels.classes, labels.abstain, labels.keep, labels.truth)
        described = repr((parts.identity, self.n_shards, self.partitioned, *policies))
        identity = hashlib.blake2b(described.encode(), digest_size=16).hexdigest()
        crowd = staged(work) if resumes else None
        if crowd is None:
            return stage(client, parts, Staging(work, identity, self.n_shards, self.partitioned, *policies))
        if crowd.identity != identity:
            raise InputError(
                f"{work.parent}: a checkpoint of other data, or read in another way. Choose another folder, or remove "
                "this one to start again"
            )
        return crowd


class _Labels(NamedTuple):
    """What to read and how."""

    data: Any
    truth: dict[Any, Any] | None
    columns: Mapping[str, str] | None
    classes: list[Any]
    abstain: list[Any]
    keep: Keep
    missing: Missing


def _check_method(estimator: Estimator) -> None:
    if not estimator.on_dask:
        others = ", ".join(name for name, entry in METHODS.items() if entry.load().on_dask)
        raise ParameterError(f"{estimator.method_name} runs on a single machine only; on dask there are {others}")
    per_task = estimator._given_per_task()
    if per_task is not None:
        raise ParameterError(f"on dask, {per_task} must be one number: the driver holds nothing per task")


# --------------------------------------------------------------------------------------------------------------------
# one fit


def _fitted(
    estimator: Estimator,
    client: Any,
    crowd: StagedCrowd,
    places: tuple[Path, Path],
    seconds: dict[str, float],
    *,
    only_voted: bool,
    **asked: Any,
) -> DaskResult:
    """Fit the method to a staged crowd, and write everything: on the desk, then where it belongs."""
    desk, out = places
    estimator._validate(crowd)
    _require_memory(estimator, client, crowd)
    make_folder(desk / "tasks")
    begin = time.perf_counter()
    runner = DaskRunner(client, crowd, desk / "tasks", estimator.chooser, only_voted=only_voted)
    fit = estimator._fit(Request(crowd, runner=runner, **asked))
    seconds["fit"] = time.perf_counter() - begin
    model = estimator._about_workers(crowd.workers, crowd.classes, fit)
    votes = runner.worker_votes(crowd)
    workers = Table({"worker": crowd.workers}, {"votes": votes.sum(axis=1)})
    table: Table | None = None
    if model.worker_table is not None:
        table = getattr(model, model.worker_table)
        write_columns(table.columns, desk / _table_file(model.worker_table))
    write_columns(workers.columns, desk / "workers.parquet")
    summary = {**_described(model, crowd, votes, runner.labels), **_ending(fit), "seconds": seconds}
    with replacing(desk / _LAST) as temporary:
        temporary.write_text(json.dumps(summary, ensure_ascii=False, default=str, indent=1), encoding="utf-8")
    _publish(desk, out)
    return DaskResult(out, summary, crowd.classes, workers, table, fit, model)


def _table_file(attribute: str) -> str:
    return f"{attribute.strip('_')}.parquet"


def _files() -> list[str]:
    """What a fit may write beside the folder of tasks, the summary first."""
    tables = {entry.load().worker_table for entry in METHODS.values()} - {None}
    return [_LAST, "workers.parquet", *sorted(_table_file(str(name)) for name in tables)]


def _publish(desk: Path, out: Path) -> None:
    """Move results to their places: those of another fit go first, the summary comes last.

    So whoever sees a summary sees the files that belong to it, even if we are killed on the way.
    """
    files = _files()
    try:
        for name in files:
            (out / name).unlink(missing_ok=True)
        if (out / "tasks").exists():
            (out / "tasks").rename(desk / "tasks of another fit")
        (desk / "tasks").rename(out / "tasks")
        for name in reversed(files):
            if (desk / name).exists():
                (desk / name).rename(out / name)
        flush_folder(out)
    except OSError as error:
        raise cannot_write(out, error) from None


def _require_memory(estimator: Estimator, client: Any, crowd: StagedCrowd) -> None:
    """The driver holds what there is of workers, a dask worker its share of what there is of tasks."""
    sizes = Sizes.of(crowd)._replace(n_annotations=0)
    require_memory(estimator, sizes._replace(n_tasks=0), where="to the driver")
    workers = client.scheduler_info()["workers"].values()
    limits = [int(worker["memory_limit"]) for worker in workers if worker.get("memory_limit")]
    if limits:
        share = sizes._replace(n_tasks=sizes.n_tasks // max(len(client.nthreads()), 1), n_workers=0)
        require_memory(estimator, share, min(limits), "to a dask worker")


def _described(
    model: Estimator, crowd: StagedCrowd, votes: NDArray[np.int64], labels: NDArray[np.int64]
) -> dict[str, Any]:
    shares = votes.sum(axis=0) / max(crowd.n_annotations, 1)
    return {
        "method": model.method_name,
        "parameters": model.get_params(),
        **{name: getattr(crowd, name) for name in ("n_tasks", "n_workers", "n_annotations", "n_dropped", "n_shards")},
        "classes": {
            str(name): {
                "tasks": int(count),
                "share_of_tasks": float(count / crowd.n_tasks),
                "share_of_votes": float(part),
            }
            for name, count, part in zip(crowd.classes.tolist(), labels, shares, strict=True)
        },
    }


def _ending(fit: Fit) -> dict[str, Any]:
    return {
        **{name: getattr(fit, name) for name in ("n_iter", "n_passes", "converged", "status")},
        "objective": fit.history[-1] if fit.history else None,
    }
