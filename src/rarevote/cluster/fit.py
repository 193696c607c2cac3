"""The dask engine: the same methods for data too large for one machine, with results in files instead of in memory.

>>> from rarevote import CCRasch
>>> from rarevote.cluster.fit import Dask
>>> result = Dask("results", scheduler="tcp://head:8786").fit(CCRasch(), "labels/")      # doctest: +SKIP
>>> result.summary["classes"], result.table                                             # doctest: +SKIP

The driver holds nothing per task, so there are no ``labels_`` and ``probas_`` here. The folder contains::

    results/tasks/part-00000.parquet ...   one row per task: task, label, confidence, votes, p:<class>; one per shard
    results/workers.parquet                one row per worker: how many votes
    results/abilities.parquet              the method's estimates about workers, in its own layout and name
    results/summary.json                   counts, parameters, how the fit ended; written last

The folder (and that of the checkpoint) must be on a file system that the driver and all workers see.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd, Staging, stage, staged
from rarevote.cluster.engine import connected
from rarevote.cluster.labelling import DecidedBy, label_tasks
from rarevote.cluster.parts import Parts, find_parts
from rarevote.cluster.runner import DaskRunner
from rarevote.crowd.annotations import Keep, Missing
from rarevote.crowd.grades import MIN_GRADES, Grades
from rarevote.crowd.names import some_names
from rarevote.decide.columns import result_names
from rarevote.decide.probabilities import Shares, shares_wanted
from rarevote.decide.rules import MinRecall
from rarevote.decide.selection import rule_of
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.loop import Callback
from rarevote.errors import InputError, ParameterError, how, warn_user
from rarevote.io.read.frames import read_truth
from rarevote.io.tables import Table
from rarevote.io.write.atomic import cannot_write, flush_folder, make_folder, replacing, temporary_folder
from rarevote.io.write.columns import check_columns, write_columns
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.memory import Sizes, require_memory
from rarevote.methods.registry import DEFAULT_METHOD, METHODS, require_capability

_LAST = "summary.json"


@dataclass(frozen=True)
class DaskResult:
    """The result of a fit on dask.

    Attributes:
        folder: the folder of the files.
        summary: counts, parameters, how the fit ended.
        classes: names of the classes.
        workers: number of votes per worker.
        table: what the method estimated about workers: ``abilities_``, ``errors_``, ``skills_`` or ``alphas_``.
        fit: parameters and history, without anything per task.
        model: the fitted method, which has the workers but no tasks: it labels new tasks and can be saved.
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
        scheduler: address of a running cluster's scheduler; without it (and without ``client``), a cluster of one
            process per core is started on this machine for the duration of the fit.
        client: a ``distributed.Client`` to use instead.
        checkpoint: folder in which to save the encoded data and, at intervals, the fit. After a crash, the same call
            resumes it; it is emptied once the results are written.
        every: iterations between two checkpoints.
        n_shards: number of shards; by default it depends on the number of annotations. Fits with equal shards are equal
            to the last bit, whatever the number of workers.
        partitioned: each part of the data (file, row groups, partition) is used as a shard, without shuffling: all
            rows of a task must be in one part.
    """

    out: str | Path
    scheduler: str | None = None
    client: Any = field(default=None, compare=False)
    checkpoint: str | Path | None = None
    every: int = 10
    n_shards: int | None = None
    partitioned: bool = False

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
        ordered: Any = None,
        rare: Any = None,
        prevalence: Shares = "estimate",
        allow_unvoted: bool = False,
        with_posterior: bool = False,
        **decision: Any,
    ) -> DaskResult:
        """Aggregate the annotations with the method and parameters of ``estimator``, which is not changed.

        Arguments that are not named here are as in :meth:`Estimator.fit` and :meth:`rarevote.Fitted.decide`.

        Args:
            estimator: a method whose ``capabilities.dask`` is true; ``rarevote methods`` lists them.
            data: a Parquet or CSV file, a list or a folder of them, or a dask DataFrame.
            ordered: the grades from lowest to highest, if classes are grades; see :func:`rarevote.fit`.
            rare: the class that matters; by default, the one with the fewest votes.
            with_posterior: whether to also write ``posterior:<class>``, as the method's authors publish it.
            **decision: ``decide``, ``costs``, ``min_recall`` (with ``errors``), ``cap`` or ``abstain_below``.
        """
        if not {"features", "pred_probs"}.isdisjoint(decision):
            raise ParameterError(
                "features and pred_probs need a single machine: use rarevote.fit(data, features=...), or leave them out"
            )
        grades = estimator.grades if ordered is None else Grades.of(ordered)
        if grades is not None and estimator.capabilities.ordered:
            estimator = type(estimator)().set_params(**{**estimator.get_params(), "ordered": list(grades.names)})
        own = estimator.own_rule()
        rule = rule_of(**decision, own=own, grades=grades)
        if isinstance(rule, MinRecall) and rule.errors == "independent":
            errors = how('errors="independent"', "--errors independent")
            raise ParameterError(
                f"{errors} needs all votes in the memory of one machine, which dask does not have: leave it out"
            )
        deciding_by = DecidedBy(rule, own, rare, prevalence, not allow_unvoted, with_posterior, grades)
        _check_method(estimator)
        truth = None if true_labels is None else read_truth(true_labels, prefer=columns)
        if truth is not None:
            require_capability(estimator, "gold", how("true_labels", "--gold"))
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
                parts = find_parts(data, columns=columns, missing=missing)
                policies = (list(classes or ()), list(abstain), keep, truth)
                described = repr((parts.identity, self.n_shards, self.partitioned, *policies))
                identity = hashlib.blake2b(described.encode(), digest_size=16).hexdigest()
                staging = Staging(work, identity, self.n_shards, self.partitioned, *policies)
                crowd = _encoded(client, parts, staging, resumes=kept is not None)
                seconds = {"encode": time.perf_counter() - begin}
                asked = {"callback": callback, "checkpoint": None if kept is None else (kept, self.every)}
                result = _fitted(estimator, client, crowd, (desk, out), seconds, deciding_by, **asked)
        if kept is not None:
            shutil.rmtree(work, ignore_errors=True)
            Checkpoint(kept).clear()
        return result


def _encoded(client: Any, parts: Parts, how: Staging, *, resumes: bool) -> StagedCrowd:
    """The crowd as shards in a folder, which can exist from before a crash."""
    crowd = staged(how.folder) if resumes else None
    if crowd is None:
        return stage(client, parts, how)
    if crowd.identity != how.identity:
        raise InputError(
            f"{how.folder.parent}: this checkpoint is of other data or other reading options. Choose another folder, "
            "or remove this one to start again"
        )
    return crowd


def _check_method(estimator: Estimator) -> None:
    require_capability(estimator, "dask", how("", "--engine dask"))
    per_task = estimator._given_per_task()
    if per_task is not None:
        raise ParameterError(f"on dask, {per_task} must be one number: the driver stores nothing per task")


# --------------------------------------------------------------------------------------------------------------------
# one fit


def _fitted(
    estimator: Estimator,
    client: Any,
    crowd: StagedCrowd,
    places: tuple[Path, Path],
    seconds: dict[str, float],
    deciding_by: DecidedBy,
    **asked: Any,
) -> DaskResult:
    """Fit the method to a staged crowd, and write everything: to a temporary folder, then to its place."""
    desk, out = places
    estimator._validate(crowd)
    if deciding_by.grades is not None:
        _check_grades(estimator, deciding_by.grades, crowd.classes)
    deciding_by.rule.check(crowd.classes)
    names = result_names(crowd.classes.tolist(), ())
    check_columns(names, out / "tasks", otherwise="use a single machine and write .xlsx or .arrow")
    shares_wanted(deciding_by.prevalence, crowd.classes, np.zeros(crowd.n_classes))
    _require_memory(estimator, client, crowd)
    make_folder(desk / "tasks")
    begin = time.perf_counter()
    with DaskRunner(client, crowd, _posteriors(desk) if deciding_by.with_posterior else None) as runner:
        fit = estimator._fit(Request(crowd, runner=runner, **asked))
        seconds["fit"] = time.perf_counter() - begin
        begin = time.perf_counter()
        model = estimator._about_workers(crowd.workers, crowd.classes, fit)
        votes = runner.worker_votes(crowd)
        model, figures = label_tasks(model, runner, crowd, votes.sum(axis=0), desk / "tasks", deciding_by)
    seconds["decide"] = time.perf_counter() - begin
    workers = Table({"worker": crowd.workers}, {"votes": votes.sum(axis=1)})
    table: Table | None = None
    if model.worker_table is not None:
        table = getattr(model, model.worker_table)
        write_columns(table.columns, desk / _table_file(model.worker_table))
    write_columns(workers.columns, desk / "workers.parquet")
    summary = {**_described(model, crowd), **figures, **_ending(fit), "seconds": seconds}
    with replacing(desk / _LAST) as temporary:
        temporary.write_text(json.dumps(summary, ensure_ascii=False, default=str, indent=1), encoding="utf-8")
    _publish(desk, out)
    for words in summary["warnings"]:
        warn_user(words)
    return DaskResult(out, summary, crowd.classes, workers, table, fit, model)


def _check_grades(estimator: Estimator, grades: Grades, classes: NDArray[Any]) -> None:
    """Warn of misspelled grades; refuse a method for grades if too few of them have votes."""
    if (words := grades.doubt(classes)) is not None:
        warn_user(words)
    met = grades.met(classes)
    if len(met) < MIN_GRADES and estimator.capabilities.ordered:
        raise InputError(
            f"only {some_names(met)} of the grades {'has' if len(met) == 1 else 'have'} votes, and an "
            f"order needs at least {MIN_GRADES}: choose another method, such as {DEFAULT_METHOD}"
        )


def _posteriors(desk: Path) -> Path:
    folder = (desk / "posteriors").resolve()
    make_folder(folder)
    return folder


def _table_file(attribute: str) -> str:
    return f"{attribute.strip('_')}.parquet"


def _files() -> list[str]:
    """The files that a fit can write beside the folder of tasks, the summary first."""
    tables = {entry.load().worker_table for entry in METHODS.values()} - {None}
    return [_LAST, "workers.parquet", *sorted(_table_file(str(name)) for name in tables)]


def _publish(desk: Path, out: Path) -> None:
    """Move results to their places: files of another fit are removed first, the summary is moved last.

    So an existing summary has all its files, even if the process is killed meanwhile.
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
    """Check memory: the driver stores the data of workers, a dask worker its share of the data of tasks."""
    sizes = Sizes.of(crowd)._replace(n_annotations=0)
    require_memory(estimator, sizes._replace(n_tasks=0), where="to the driver")
    workers = client.scheduler_info()["workers"].values()
    limits = [int(worker["memory_limit"]) for worker in workers if worker.get("memory_limit")]
    if limits:
        share = sizes._replace(n_tasks=sizes.n_tasks // max(len(client.nthreads()), 1), n_workers=0)
        require_memory(estimator, share, min(limits), "to a dask worker")


def _described(model: Estimator, crowd: StagedCrowd) -> dict[str, Any]:
    return {
        "method": model.method_name,
        "parameters": model.get_params(),
        **model.order_figures(),
        **{name: getattr(crowd, name) for name in ("n_tasks", "n_workers", "n_annotations", "n_dropped", "n_shards")},
    }


def _ending(fit: Fit) -> dict[str, Any]:
    return {
        **{name: getattr(fit, name) for name in ("n_iter", "n_passes", "converged", "status")},
        "objective": fit.history[-1] if fit.history else None,
    }
