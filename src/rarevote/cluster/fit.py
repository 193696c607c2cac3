"""The dask engine for users: the same methods where one machine is too small, results in files instead of in memory.

>>> from rarevote import CCRasch
>>> from rarevote.cluster.fit import Dask
>>> result = Dask("results", scheduler="tcp://head:8786").fit(CCRasch(), "labels/")      # doctest: +SKIP
>>> result.summary["classes"], result.table                                             # doctest: +SKIP

The driver holds nothing per task, so there are no ``labels_`` and ``probas_`` here. What it leaves in the folder::

    results/tasks/part-00000.parquet ...   one row per task: task, label, confidence, votes, p:<class>; one per shard
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
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd, Staging, stage, staged
from rarevote.cluster.engine import DaskEngine, connected
from rarevote.cluster.host import CountAtLeast, KeepPosterior, Look, Reported, SumProbabilities, WriteResults
from rarevote.cluster.parts import find_parts
from rarevote.crowd.annotations import Keep, Missing
from rarevote.crowd.rare import RareClass
from rarevote.decide.costs import Costs
from rarevote.decide.decider import Deciding
from rarevote.decide.decision import class_figures, decision_figures, expected_decision
from rarevote.decide.expectations import Belief
from rarevote.decide.guards import CrowdSize
from rarevote.decide.probabilities import FitCalibration, Probabilities, Shares, shares_wanted
from rarevote.decide.rules import OwnLabels, Rule, parse_rule, rule_of
from rarevote.em.checkpoint import Checkpoint
from rarevote.em.engine import Run, Runner
from rarevote.em.loop import Callback, StoppingRule, run_em
from rarevote.em.model import CrowdFacts, FloatArray, Model, Shard, Start
from rarevote.errors import InputError, ParameterError, how, warn_user
from rarevote.io.read.frames import read_truth
from rarevote.io.tables import Table
from rarevote.io.write.atomic import cannot_write, flush_folder, make_folder, replacing, temporary_folder
from rarevote.io.write.columns import write_columns
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.checks import Sizes, require_memory
from rarevote.methods.registry import DEFAULT_METHOD, METHODS, require_capability


class DaskRunner(Runner):
    """Runs models over the shards of one staged crowd, whose gold is with its votes; a context manager.

    The engine of the last run stays open: its hosts hold the posteriors that labels follow from.

    Args:
        client: a ``distributed.Client``.
        crowd: where the encoded shards are.
        posteriors: a folder for posteriors that a report takes the place of; they are gone without one.
    """

    def __init__(self, client: Any, crowd: StagedCrowd, posteriors: Path | None = None) -> None:
        self._client, self._crowd, self._posteriors = client, crowd, posteriors
        self._open = ExitStack()
        self._engine: DaskEngine[Any, Any, Any] | None = None
        self._votes: NDArray[np.int64] | None = None
        self.of_last_pass = True
        self.kept_posteriors: Path | None = None

    def __enter__(self) -> DaskRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _opened(self, model: Any) -> DaskEngine[Any, Any, Any]:
        """An engine that stays open until the next one is, or all is done."""
        self._open.close()
        self._engine = self._open.enter_context(DaskEngine(self._client, model, self._crowd))
        return self._engine

    @property
    def engine(self) -> DaskEngine[Any, Any, Any]:
        """That of the last run."""
        assert self._engine is not None
        return self._engine

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
        """Fit a model; a checkpoint stays until all results are written."""
        outcome = run_em(
            model, self._opened(model), model.start(), rule, callback=callback, checkpoint=checkpoint, **options
        )
        self.of_last_pass = True
        posterior, *local = model.start_local(_no_tasks(gold))
        return Run(outcome, posterior, tuple(local))

    def start(self, model: Start, crowd: CrowdFacts, gold: NDArray[np.int32]) -> FloatArray:
        """The posterior that the tasks begin with stays with the hosts."""
        self._opened(cast("Model[Any, Any, Any]", model))
        self.of_last_pass = False
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
        then: Callable[[Any], Any],
    ) -> FloatArray:
        """Two passes; what the second gives stays with the hosts."""
        if self._posteriors is not None:
            self.engine.ask(KeepPosterior(self._posteriors))
            self.kept_posteriors = self._posteriors
        engine = self._opened(model)
        second = then(engine.run(shared, refresh=True, damping=0.0)[0])
        engine.advance()
        engine.run(second, refresh=True, damping=0.0)
        self.of_last_pass = True
        posterior: FloatArray = model.start_local(_no_tasks(gold))[0]
        return posterior

    def worker_votes(self, crowd: CrowdFacts) -> NDArray[np.int64]:
        """How often each worker gave each label, (n_workers, n_classes); known after a run."""
        if self._votes is None:
            self._votes = self.engine.count_votes()
        return self._votes

    def digest(self, crowd: CrowdFacts, gold: NDArray[np.int32]) -> str:
        """What the encoded crowd was made from."""
        return self._crowd.identity


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
        rare: Any = None,
        decide: Rule | str | None = None,
        costs: Costs | None = None,
        min_recall: Mapping[Any, float] | None = None,
        cap: float | None = None,
        abstain_below: float | None = None,
        prevalence: Shares = "estimate",
        allow_unvoted: bool = False,
        with_posterior: bool = False,
    ) -> DaskResult:
        """Aggregate the annotations with the method and parameters of ``estimator``, which is left as it is.

        Arguments that are not named here are as in :meth:`Estimator.fit`, those of the decision as in
        :meth:`rarevote.Fitted.decide`.

        Args:
            estimator: a method whose ``capabilities.dask`` is true; ``rarevote methods`` lists them.
            data: a Parquet or CSV file, a list or a folder of them, or a dask DataFrame.
            rare: the class that matters; the one with the fewest votes if not given.
            with_posterior: whether to write ``posterior:<class>`` too, as the method's authors publish it.
        """
        own = parse_rule(estimator.own_decision)
        rule = rule_of(decide, costs=costs, min_recall=min_recall, cap=cap, abstain_below=abstain_below, own=own)
        asked_for = _Decided(rule, own, rare, prevalence, not allow_unvoted, with_posterior)
        _check_method(estimator)
        truth = None if true_labels is None else read_truth(true_labels)
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
                crowd = self._encoded(
                    client,
                    work,
                    _Labels(data, truth, columns, list(classes or ()), list(abstain), keep, missing),
                    resumes=kept is not None,
                )
                seconds = {"encode": time.perf_counter() - begin}
                asked = {"callback": callback, "checkpoint": None if kept is None else (kept, self.every)}
                result = _fitted(estimator, client, crowd, (desk, out), seconds, asked_for, **asked)
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
    require_capability(estimator, "dask", how("", "--engine dask"))
    per_task = estimator._given_per_task()
    if per_task is not None:
        raise ParameterError(f"on dask, {per_task} must be one number: the driver holds nothing per task")


# --------------------------------------------------------------------------------------------------------------------
# one fit


class _Decided(NamedTuple):
    """How to decide."""

    rule: Rule
    own: Rule
    rare: Any
    prevalence: Shares
    only_voted: bool
    with_posterior: bool


def _fitted(
    estimator: Estimator,
    client: Any,
    crowd: StagedCrowd,
    places: tuple[Path, Path],
    seconds: dict[str, float],
    deciding_by: _Decided,
    **asked: Any,
) -> DaskResult:
    """Fit the method to a staged crowd, and write everything: on the desk, then where it belongs."""
    desk, out = places
    estimator._validate(crowd)
    deciding_by.rule.check(crowd.classes)
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
        model, figures = _labelled(model, runner, crowd, votes.sum(axis=0), desk / "tasks", deciding_by)
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


def _labelled(
    model: Estimator,
    runner: DaskRunner,
    crowd: StagedCrowd,
    class_votes: NDArray[np.int64],
    folder: Path,
    deciding_by: _Decided,
) -> tuple[Estimator, dict[str, Any]]:
    """Have the hosts decide and write; returns the model that knows how to report, and what was decided in figures."""
    engine = runner.engine
    reported = Reported(
        runner.of_last_pass,
        model._calibrator(class_votes / max(crowd.n_annotations, 1)),
        np.empty(0),
        model.chooser,
        own_from_posterior=deciding_by.own == OwnLabels(),
    )
    calibration = model.calibration_
    if calibration is None:
        mass = engine.ask(SumProbabilities(reported))
        calibration = FitCalibration(reported.calibrator, np.sum(mass, axis=0) / max(crowd.n_tasks, 1))
        model = model._about_workers(crowd.workers, crowd.classes, model._result, calibration)
    wanted, shares_from = shares_wanted(deciding_by.prevalence, crowd.classes, np.zeros(crowd.n_classes))
    reported = replace(reported, mean=calibration.mean, wanted=wanted)
    is_default = model.method_name == DEFAULT_METHOD
    belief = Belief.in_probabilities(Probabilities(crowd.classes, *_NOTHING, is_default=is_default))
    rare = RareClass.of(crowd.classes, class_votes, deciding_by.rare)
    deciding = Deciding(
        deciding_by.rule,
        deciding_by.own,
        CrowdSize(crowd.workers, crowd.classes, class_votes, model.method_name, DEFAULT_METHOD),
        rare,
        calibration.mean if wanted is None else wanted,
        crowd.n_tasks,
        belief,
        wanted,
        deciding_by.only_voted,
    )
    sums = reduce(lambda one, other: one.plus(other), engine.ask(Look(reported, deciding)))

    def count_at_least(number: int, thresholds: FloatArray) -> NDArray[np.int64]:
        return np.asarray(np.sum(engine.ask(CountAtLeast(reported, deciding, number, thresholds)), axis=0))

    decider = deciding.decider(sums, lambda number, k: kth_largest(partial(count_at_least, number), k))
    costs = deciding_by.rule.costs(crowd.classes)
    answers = engine.ask(
        WriteResults(
            folder.resolve(),
            crowd.classes,
            reported,
            deciding,
            decider,
            costs,
            deciding_by.with_posterior,
            runner.kept_posteriors,
        )
    )
    found = reduce(lambda one, other: one.plus(other), (answer[0] for answer in answers))
    counts = reduce(lambda one, other: one.plus(other), (answer[1] for answer in answers))
    decided = deciding.outcome(decider, sums.survey, found)
    decision = expected_decision(
        crowd.classes,
        counts,
        belief,
        rare,
        rule=decided.words,
        shares_from=shares_from or Probabilities.how,
        costs=costs,
        given=wanted,
        target=decided.target,
    )
    classes = class_figures(crowd.classes, found.labels, class_votes, crowd.n_tasks)
    return model, {
        "rare": {"class": str(rare.name), "is_rare": rare.is_rare, "named": rare.named, **classes[str(rare.name)]},
        "classes": classes,
        "decided_by": decided.words,
        "n_guarded": decided.n_guarded,
        "cannot_answer": decided.cannot_answer,
        "warnings": [note.words for note in decided.notes] + _left_out(crowd),
        "decision": decision_figures(decision),
    }


def _left_out(crowd: StagedCrowd) -> list[str]:
    """What to know of rows that are not votes."""
    if not crowd.n_dropped:
        return []
    return [
        f"{crowd.n_dropped:,} rows are not votes (abstentions, missing values or repeated pairs): on dask, an item "
        "that only such rows name has no row in the result"
    ]


def _posteriors(desk: Path) -> Path:
    folder = (desk / "posteriors").resolve()
    make_folder(folder)
    return folder


# Of a crowd that is elsewhere: no probabilities, no means, no gold.
_NOTHING = (np.empty((0, 0)), np.empty(0), np.empty(0, dtype=np.int64))
# How many thresholds are asked about at once.
_AT_ONCE = 256


def kth_largest(count_at_least: Callable[[FloatArray], NDArray[np.int64]], k: int) -> float:
    """The k-th largest of numbers between 0 and 1 that are elsewhere.

    It is the largest threshold that at least ``k`` of them reach. Numbers from 0 on are ordered as their bits are, so
    that a few questions of many thresholds each find it to the last bit.

    Args:
        count_at_least: how many of the numbers reach each of these thresholds.
        k: at least 1, and at most how many there are.

    Example:
        >>> numbers = np.array([0.1, 0.7, 0.7, 0.3])
        >>> def count(thresholds):
        ...     return (numbers >= thresholds[:, None]).sum(axis=1)
        >>> [kth_largest(count, k) for k in (1, 2, 3, 4)]
        [0.7, 0.7, 0.3, 0.1]
    """
    low, high = 0, int(np.array(1.0).view(np.int64)) + 1  # reached by k numbers; not reached
    while high - low > 1:
        step = -((low - high) // _AT_ONCE)  # in whole numbers: these are too large for floating point
        bits = np.arange(low + step, high, step, dtype=np.int64)
        reached = np.flatnonzero(count_at_least(bits.view(np.float64)) >= k)
        last = int(reached[-1]) if reached.size else -1
        low, high = (int(bits[last]) if last >= 0 else low), (int(bits[last + 1]) if last + 1 < len(bits) else high)
    return float(np.array(low).view(np.float64))


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


def _described(model: Estimator, crowd: StagedCrowd) -> dict[str, Any]:
    return {
        "method": model.method_name,
        "parameters": model.get_params(),
        **{name: getattr(crowd, name) for name in ("n_tasks", "n_workers", "n_annotations", "n_dropped", "n_shards")},
    }


def _ending(fit: Fit) -> dict[str, Any]:
    return {
        **{name: getattr(fit, name) for name in ("n_iter", "n_passes", "converged", "status")},
        "objective": fit.history[-1] if fit.history else None,
    }
