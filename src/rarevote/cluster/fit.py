"""The dask engine for users: the same methods where one machine is too small, results in files instead of in memory.

>>> from rarevote import CCRasch
>>> from rarevote.cluster.fit import Dask
>>> result = Dask("results", scheduler="tcp://head:8786").fit(CCRasch(), "labels/")      # doctest: +SKIP
>>> result.summary["classes"], result.table                                             # doctest: +SKIP

The driver holds nothing per task, so there are no ``labels_`` and ``probas_`` here. What it leaves in the folder::

    results/tasks/part-00000.parquet ...   one row per task: task, label, confidence, p:<class>; a file per shard
    results/workers.parquet                one row per worker: how many votes
    results/abilities.parquet              what the method found out about workers, in its own layout and name
    results/summary.json                   counts, parameters, how the fit ended; written last

The folder (and that of the checkpoint) must be on a file system that the driver and all workers see.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd, Staging, stage, staged
from rarevote.cluster.engine import DaskEngine, connected
from rarevote.cluster.parts import find_parts
from rarevote.crowd.annotations import Keep, Missing
from rarevote.em.checkpoint import Checkpoint, identity_of, make_folder, write_whole
from rarevote.em.loop import Callback, Model, Shard, StoppingRule, run_em
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.frames import Origin, read_truth
from rarevote.io.tables import Table
from rarevote.io.write.columns import write_columns
from rarevote.methods.base import Estimator, Fit
from rarevote.methods.dawid_skene.model import DawidSkeneLocal
from rarevote.methods.glad.model import GLADModel
from rarevote.methods.start import soft_majority

# Methods that run on dask, and the attribute that says what they found out about workers.
ON_DASK = {
    "cc-rasch": "abilities_",
    "class-conditional": "abilities_",
    "dawid-skene": "errors_",
    "one-coin": "skills_",
    "glad": "alphas_",
    "majority-vote": "",
}
_UNFINISHED = ".tasks.tmp"  # where results are until all are written


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
    """

    folder: Path
    summary: dict[str, Any]
    classes: NDArray[Any]
    workers: Table
    table: Table | None
    fit: Fit

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
        checkpoint: folder in which to keep the encoded data and, now and then, the fit. The same call goes on from
            there after a crash; it is emptied once the results are written.
        every: iterations between two checkpoints.
        n_shards: number of shards; by default it goes by the number of annotations. Fits with equal shards are equal
            to the last bit, whatever the number of workers.
        partitioned: each part of the data (file, row groups, partition) is taken as a shard, without shuffling: all
            rows of a task are in one part already.
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
    ) -> DaskResult:
        """Aggregate the annotations with the method and parameters of ``estimator``, which is left as it is.

        Args:
            estimator: one of CCRasch, ClassConditional, DawidSkene, OneCoinDawidSkene, GLAD, MajorityVote.
            data: a Parquet or CSV file, a list or a folder of them, or a dask DataFrame.
            true_labels: as in :meth:`Estimator.fit`.
            columns: as in :meth:`Estimator.fit`.
            classes: as in :meth:`Estimator.fit`.
            abstain: as in :meth:`Estimator.fit`.
            keep: as in :meth:`Estimator.fit`.
            missing: as in :meth:`Estimator.fit`.
            callback: as in :meth:`Estimator.fit`.
        """
        _check_method(estimator)
        truth = None if true_labels is None else read_truth(true_labels)
        if truth is not None and not estimator.uses_gold:
            raise ParameterError(f"{type(estimator).__name__} cannot use true_labels")
        if self.n_shards is not None and self.n_shards < 1:
            raise ParameterError(f"n_shards must be at least 1, got {self.n_shards!r}")
        out = Path(self.out).resolve()
        kept = None if self.checkpoint is None else Path(self.checkpoint).resolve()
        work = (kept or out / ".work") / "data"
        try:
            with connected(self.client, self.scheduler) as client:
                begin = time.perf_counter()
                crowd = self._encoded(
                    client,
                    work,
                    _Labels(data, truth, columns, list(classes or ()), list(abstain), keep, missing),
                    resumes=kept is not None,
                )
                make_folder(out)
                fit = _Fit(self, estimator, client, crowd, callback)
                result = fit.result(out, encode_seconds=time.perf_counter() - begin)
            if kept is not None:
                shutil.rmtree(work, ignore_errors=True)
                Checkpoint(kept).clear()
            return result
        finally:
            if kept is None:
                shutil.rmtree(work.parent, ignore_errors=True)
            shutil.rmtree(out / _UNFINISHED, ignore_errors=True)

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
                "this one to begin anew"
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
    name = estimator.method_name
    if name not in ON_DASK:
        raise ParameterError(f"{name} runs on a single machine only; on dask there are {', '.join(ON_DASK)}")
    if isinstance(getattr(estimator, "betas_priors_mean", None), Mapping) or hasattr(
        getattr(estimator, "betas_priors_mean", None), "to_dict"
    ):
        raise ParameterError("on dask, betas_priors_mean must be one number: the driver holds nothing per task")


# --------------------------------------------------------------------------------------------------------------------
# one fit


class _Votes:
    """The majority vote, as a model without parameters: its local state at the start is its result."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def start_local(self, shard: Shard) -> DawidSkeneLocal:
        return DawidSkeneLocal(soft_majority(shard, self.n_classes))


@dataclass(frozen=True)
class _CountedGLAD(GLADModel):
    """GLAD that knows how many tasks there are, but nothing of each."""

    count: int = 0

    @property
    def n_tasks(self) -> int:
        return self.count


class _Fit:
    """A fit of one method to one staged crowd."""

    def __init__(
        self, options: Dask, estimator: Estimator, client: Any, crowd: StagedCrowd, callback: Callback | None
    ) -> None:
        self.client, self.crowd, self.callback = client, crowd, callback
        self.checkpoint: Checkpoint | None = None
        if options.checkpoint is not None and estimator.method_name != "majority-vote":
            identity = identity_of(estimator.method_name, estimator.get_params(), crowd.identity)
            self.checkpoint = Checkpoint(Path(options.checkpoint).resolve(), options.every, identity)
        # The method works on a copy that has its passes done elsewhere and knows of no task.
        self.method = copy.copy(estimator)
        self.method.__dict__.update(_em=self._em, _initial_error=None, _reported_labels=self._reported_labels)
        self.votes = np.empty((0, 0), dtype=np.int64)
        self.labels = np.empty(0, dtype=np.int64)
        self.folder = Path()

    def result(self, out: Path, *, encode_seconds: float) -> DaskResult:
        """Fit, and write everything."""
        crowd: Any = self.crowd
        self.method._validate(crowd)
        self.folder = out / _UNFINISHED
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.folder)
        begin = time.perf_counter()
        if self.method.method_name == "majority-vote":
            fit = self._majority_vote()
        else:
            fit = self.method._fit(crowd, np.empty(0, dtype=np.int32), self.callback)
        seconds = {"encode": encode_seconds, "fit": time.perf_counter() - begin}
        self.method.__dict__.update(
            _annotations_=crowd, _source_=Origin(), _fit_=fit, classes_=crowd.classes, n_iter_=fit.n_iter
        )
        attribute = ON_DASK[self.method.method_name]
        table: Table | None = getattr(self.method, attribute) if attribute else None
        workers = Table({"worker": crowd.workers}, {"votes": self.votes.sum(axis=1)})
        for name in set(filter(None, ON_DASK.values())):
            (out / f"{name.strip('_')}.parquet").unlink(missing_ok=True)  # of another fit
        if table is not None:
            write_columns(table.columns, out / f"{attribute.strip('_')}.parquet")
        write_columns(workers.columns, out / "workers.parquet")
        _replace_folder(self.folder, out / "tasks")
        summary = self._summary(fit, seconds)
        text = json.dumps(summary, ensure_ascii=False, default=str, indent=1)
        write_whole(out / "summary.json", lambda handle: handle.write(text.encode()))
        return DaskResult(out, summary, crowd.classes, workers, table, fit)

    def _em(
        self,
        model: Model[Any, Any, Any],
        annotations: Any,
        gold: NDArray[np.int32],
        rule: StoppingRule,
        callback: Callback | None,
        **options: Any,
    ) -> tuple[Any, NDArray[Any], tuple[NDArray[Any], ...]]:
        """What :meth:`EMEstimator._em` does, on dask: gold is with the shards, and nothing per task comes back."""
        if not (isinstance(rule.n_iter, (int, np.integer)) and rule.n_iter >= 1):
            raise ParameterError(f"n_iter must be a whole number of at least 1, got {rule.n_iter!r}")
        if isinstance(model, GLADModel):
            model = _CountedGLAD(**vars(model), count=self.crowd.n_tasks)
        with DaskEngine(self.client, model, self.crowd) as engine:
            outcome = run_em(
                model,
                engine,
                model.start(annotations),
                rule,
                callback=callback,
                checkpoint=self.checkpoint,
                **options,
            )
            self._finish(engine, of_last_pass=True)
        empty = np.empty(0, dtype=np.uint8)
        nothing = model.start_local(Shard(np.zeros(1, dtype=np.int64), empty, empty, gold))
        return outcome, nothing[0], tuple(nothing[1:])

    def _majority_vote(self) -> Fit:
        model: Any = _Votes(self.crowd.n_classes)
        with DaskEngine(self.client, model, self.crowd) as engine:
            self._finish(engine, of_last_pass=False)
        return Fit(np.empty((0, self.crowd.n_classes)))

    def _finish(self, engine: DaskEngine[Any, Any, Any], *, of_last_pass: bool) -> None:
        # Only some methods let the votes decide where they cannot.
        margin = getattr(self.method, "tie_margin", None)
        self.labels = engine.write_results(self.folder, of_last_pass=of_last_pass, tie_margin=margin)
        self.votes = engine.count_votes()

    def _reported_labels(self) -> NDArray[np.bool_]:
        """Which (worker, label) pairs have a confusion row: ``ConfusionEstimator`` would look into the votes."""
        used = self.votes > 0
        return np.ones_like(used) if getattr(self.method, "smoothing", 0) > 0 else used

    def _summary(self, fit: Fit, seconds: dict[str, float]) -> dict[str, Any]:
        crowd = self.crowd
        shares = self.votes.sum(axis=0) / max(crowd.n_annotations, 1)
        return {
            "method": self.method.method_name,
            "parameters": self.method.get_params(),
            "n_tasks": crowd.n_tasks,
            "n_workers": crowd.n_workers,
            "n_annotations": crowd.n_annotations,
            "n_dropped": crowd.n_dropped,
            "n_shards": crowd.n_shards,
            "classes": {
                str(name): {
                    "tasks": int(count),
                    "share_of_tasks": float(count / crowd.n_tasks),
                    "share_of_votes": float(part),
                }
                for name, count, part in zip(crowd.classes.tolist(), self.labels, shares, strict=True)
            },
            "n_iter": fit.n_iter,
            "n_passes": fit.n_passes,
            "converged": fit.converged,
            "status": fit.status,
            "objective": fit.history[-1] if fit.history else None,
            "seconds": seconds,
        }


def _replace_folder(new: Path, target: Path) -> None:
    """Put a finished folder in its place; readers see the old one or the new one, never a mixture."""
    old = new.with_name(f"{new.name}.old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    shutil.rmtree(old, ignore_errors=True)
