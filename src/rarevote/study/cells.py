"""Studies as cells: one fit of one method on one dataset with one seed, each stored in its own file.

A finished cell is stored (:mod:`rarevote.study.kept`) under dataset, method, parameters, seed, version of the package
and a digest of the data. Cells that failed are tried again.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from rarevote import __version__
from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, RarevoteError
from rarevote.methods.base import Estimator
from rarevote.methods.registry import find_method
from rarevote.study.kept import as_key, file_name, read_kept, write_kept
from rarevote.study.measures import score_fit
from rarevote.study.pool import run_jobs

Status = Literal["done", "not applicable", "failed"]

# Parameters that affect only the speed of a fit, or that follow from the seed of the cell.
_NOT_PART_OF_A_VARIANT = ("n_jobs", "random_state")
# Rough cost per annotation and class, relative to a method that is not named here; only the order of cells and the
# first estimate of the time left depend on it.
_RELATIVE_COST = {"crowdfm": 10.0, "glad": 2.0, "mace": 20.0, "majority-vote": 0.05, "plat": 0.05}


@dataclass(frozen=True, eq=False)
class Problem:
    """A crowd with the truth of some of its tasks."""

    name: str
    annotations: Annotations
    truth: Mapping[Any, Any]

    @cached_property
    def digest(self) -> str:
        """Changes whenever a vote, a name or a true label does."""
        crowd = self.annotations
        found = hashlib.sha256()
        for array in (crowd.task_ptr, crowd.worker, crowd.label):
            found.update(array.astype("<i8").tobytes())
        names = [crowd.tasks.tolist(), crowd.workers.tolist(), crowd.classes.tolist()]
        found.update(json.dumps([*names, list(self.truth.items())], default=repr).encode())
        return found.hexdigest()


@dataclass(frozen=True)
class Variant:
    """A method with some of its parameters set."""

    method: str
    settings: tuple[tuple[str, Any], ...] = ()

    def estimator(self, seed: int | None = None) -> Estimator:
        """An estimator that uses one thread, since cells run in parallel."""
        estimator = find_method(self.method).load()()
        known = estimator.parameter_defaults()
        if "n_jobs" in known:
            estimator.set_params(n_jobs=1)
        if "random_state" in known:
            estimator.set_params(random_state=seed)
        return estimator.set_params(**dict(self.settings))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """All parameters of the method, including defaults, so that a changed default gives a new cell."""
        given = self.estimator().get_params()
        return {name: value for name, value in given.items() if name not in _NOT_PART_OF_A_VARIANT}

    @cached_property
    def is_random(self) -> bool:
        """Whether the result depends on a seed."""
        return "random_state" in find_method(self.method).load().parameter_defaults()

    def seeds(self, n_seeds: int) -> list[int | None]:
        """The seeds to run: a single one, without effect, if the method is not random."""
        return list(range(n_seeds)) if self.is_random else [None]


@dataclass(frozen=True)
class CellOutcome:
    """The outcome of a cell; figures (see :func:`score_fit`) are None unless ``status`` is "done"."""

    status: Status
    reason: str = ""
    minority_recall: float | None = None
    minority_precision: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    accuracy: float | None = None
    average_precision: float | None = None
    mean_average_precision: float | None = None
    roc_auc: float | None = None
    log_loss: float | None = None
    ece: float | None = None
    r_precision: float | None = None
    flags_90: int | None = None
    flags_95: int | None = None
    minority_items: int | None = None
    flagged: int | None = None
    balanced: dict[str, float] | None = None
    curve: list[list[int]] | None = None
    seconds: float | None = None
    n_iter: int | None = None
    converged: bool | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """One fit that a study needs."""

    problem: Problem
    variant: Variant
    seed: int | None

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that affects the outcome, after a round trip through JSON."""
        parts = {
            "dataset": self.problem.name,
            "method": self.variant.method,
            "parameters": self.variant.parameters,
            "seed": self.seed,
            "version": __version__,
            "data": self.problem.digest,
        }
        return as_key(parts)

    @cached_property
    def file_name(self) -> str:
        """Name of the file that stores it."""
        seed = "" if self.seed is None else f".seed{self.seed}"
        return file_name(f"{self.problem.name}.{self.variant.method}{seed}", self.key)

    @property
    def cost(self) -> float:
        """Estimated duration, in arbitrary units."""
        crowd = self.problem.annotations
        return crowd.n_annotations * crowd.n_classes * _RELATIVE_COST.get(self.variant.method, 1.0) + 1.0


@dataclass(frozen=True)
class StudyProgress:
    """The progress of a study. ``seconds_left`` is None until it can be estimated."""

    done: int
    total: int
    seconds_left: float | None


Report = Callable[[StudyProgress], None]
Outcomes = dict[tuple[str, Variant], list[CellOutcome]]


def run_cells(
    problems: Sequence[Problem],
    variants: Sequence[Variant],
    folder: Path,
    *,
    n_seeds: int = 4,
    n_jobs: int | None = None,
    report: Report | None = None,
) -> Outcomes:
    """Run every variant on every problem, except for cells that are already in ``folder``.

    Args:
        variants: the methods; two with the same parameters share their cells.
        n_jobs: parallel processes; None for all cores. Results do not depend on it.
        report: called at the start and after every cell.

    Returns:
        The outcomes of all seeds, by name of the problem and variant.
    """
    wanted = {
        (problem.name, variant): [Cell(problem, variant, seed) for seed in variant.seeds(n_seeds)]
        for problem in problems
        for variant in variants
    }
    cells = {cell.file_name: cell for group in wanted.values() for cell in group}
    outcomes = {name: found for name, cell in cells.items() if (found := _read(folder / name, cell)) is not None}
    # Longest first: a long cell at the end would leave all but one core idle.
    missing = sorted((cell for name, cell in cells.items() if name not in outcomes), key=lambda cell: -cell.cost)
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
    clock = _Clock([cell.cost for cell in missing], len(outcomes))
    notify = (lambda n_done: report(clock.progress(n_done))) if report else None
    outcomes.update(run_jobs(_run_cell, [(cell, folder) for cell in missing], n_jobs=n_jobs, report=notify))
    return {place: [outcomes[cell.file_name] for cell in group] for place, group in wanted.items()}


def unavailable(variants: Sequence[Variant]) -> dict[Variant, str]:
    """Variants that cannot run here, and why: missing weights, or gold that a method needs.

    Each is tried on a crowd of four tasks, so that the reason is shown once and not once per dataset.
    """
    crowd = Annotations.from_arrays([0, 0, 0, 1, 1, 1, 2, 2, 3, 3], [0, 1, 2, 0, 1, 2, 0, 1, 1, 2], list("nnynnyyyny"))
    reasons: dict[Variant, str] = {}
    for variant in variants:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                variant.estimator(0).fit(crowd)
        except RarevoteError as error:
            reasons[variant] = str(error)
    return reasons


# --------------------------------------------------------------------------------------------------------------------
# files


def _read(path: Path, cell: Cell) -> CellOutcome | None:
    """The stored outcome of exactly this cell, or None."""
    kept = read_kept(path, cell.key)
    try:
        outcome = CellOutcome(**{field.name: (kept or {})[field.name] for field in fields(CellOutcome)})
    except (KeyError, TypeError):
        return None  # absent, or changed by hand: the cell is run again
    return outcome if outcome.status != "failed" else None


# --------------------------------------------------------------------------------------------------------------------
# running


def fit_cell(problem: Problem, variant: Variant, seed: int | None) -> CellOutcome:
    """Fit and score once. An error becomes part of the outcome, so that the study continues."""
    try:
        with warnings.catch_warnings():
            # The outcome says whether the fit converged.
            warnings.simplefilter("ignore")
            if _loads_code(problem, variant):
                _timed(problem, variant, seed)
            fitted, seconds = _timed(problem, variant, seed)
        figures = score_fit(fitted, problem.truth)
        n_iter, converged = int(fitted.n_iter_), bool(fitted.converged_)
        return CellOutcome("done", seconds=seconds, n_iter=n_iter, converged=converged, **figures)
    except InputError as error:
        return CellOutcome("not applicable", str(error))
    except Exception as error:
        return CellOutcome("failed", f"{type(error).__name__}: {error}")


# What this process has fitted so far, keyed by everything that compiled code is specialised for.
_FITTED: set[tuple[Any, ...]] = set()


def _loads_code(problem: Problem, variant: Variant) -> bool:
    """Whether a fit would also have to load or compile code, which can take longer and should not be timed."""
    crowd = problem.annotations
    kind = (variant, crowd.n_classes, crowd.worker.dtype, crowd.label.dtype)
    is_new = kind not in _FITTED
    _FITTED.add(kind)
    return is_new


def _timed(problem: Problem, variant: Variant, seed: int | None) -> tuple[Estimator, float]:
    estimator = variant.estimator(seed)
    begin = time.perf_counter()
    estimator.fit(problem.annotations)
    return estimator, time.perf_counter() - begin


def _run_cell(job: tuple[Cell, Path]) -> list[tuple[str, CellOutcome]]:
    """Run a cell and store its outcome at once, so that nothing is lost if the study is stopped."""
    cell, folder = job
    outcome = fit_cell(cell.problem, cell.variant, cell.seed)
    write_kept(folder / cell.file_name, cell.key, asdict(outcome))
    return [(cell.file_name, outcome)]


class _Clock:
    """Estimates the time left from the cost of the finished cells, which finish in about the given order."""

    def __init__(self, costs: Sequence[float], n_kept: int) -> None:
        self._cost_done = [0.0, *accumulate(costs)]
        self._n_kept = n_kept
        self._begin = time.perf_counter()

    def progress(self, n_done: int) -> StudyProgress:
        done, total = self._cost_done[n_done], self._cost_done[-1]
        elapsed = time.perf_counter() - self._begin
        left = elapsed * (total - done) / done if n_done else None
        return StudyProgress(self._n_kept + n_done, self._n_kept + len(self._cost_done) - 1, left)
