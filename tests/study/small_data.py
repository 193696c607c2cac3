"""Tiny simulated crowds under the names of real datasets, in the layout that a data folder has."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError
from rarevote.methods.base import Estimator, Fit, Request
from rarevote.methods.majority import MajorityVote
from rarevote.methods.registry import METHODS, MethodEntry
from rarevote.simulate.crowds import simulate_crowd
from rarevote.study.cells import Problem


def write_dataset(folder: Path, slug: str, *, n_tasks: int = 60, n_classes: int = 2, seed: int = 0) -> None:
    crowd = simulate_crowd(n_tasks, 12, n_classes=n_classes, imbalance=3.0, votes_per_task=5.0, random_state=seed)
    task, worker, label = (column.tolist() for column in crowd.arrays)
    write_rows(folder / slug / "labels.csv", ("task", "worker", "label"), zip(task, worker, label, strict=True))
    write_rows(folder / slug / "truth.csv", ("task", "label"), enumerate(crowd.truth.tolist()))


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def small_problem(name: str = "small", *, n_classes: int = 2, seed: int = 0) -> Problem:
    crowd = simulate_crowd(50, 10, n_classes=n_classes, imbalance=3.0, votes_per_task=5.0, random_state=seed)
    return Problem(name, Annotations.from_arrays(*crowd.arrays), dict(enumerate(crowd.truth.tolist())))


class Broken(MajorityVote):
    """Fails on anything but the small crowd on which methods are tried."""

    def _fit(self, request: Request) -> Fit:
        if request.crowd.n_tasks > 4:
            raise ZeroDivisionError("no such luck")
        return super()._fit(request)


class TwoClasses(MajorityVote):
    """Does not apply to more than two classes."""

    def _fit(self, request: Request) -> Fit:
        if request.crowd.n_classes > 2:
            raise InputError("only for two classes")
        return super()._fit(request)


class NeedsWeights(MajorityVote):
    """Lacks a file that it needs."""

    def _fit(self, request: Request) -> Fit:
        raise InputError("no weights file")


class Chance(Estimator):
    """Answers at random."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def _fit(self, request: Request) -> Fit:
        shape = (request.crowd.n_tasks, request.crowd.n_classes)
        return Fit(np.random.default_rng(self.random_state).dirichlet(np.ones(shape[1]), size=shape[0]))


FAKES: dict[str, type[Estimator]] = {
    "broken": Broken,
    "two-classes": TwoClasses,
    "needs-weights": NeedsWeights,
    "chance": Chance,
}


def register_fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the methods above known, in this process."""
    module = ModuleType("rarevote.methods.fakes")
    for name, kind in FAKES.items():
        setattr(module, kind.__name__, kind)
        monkeypatch.setitem(METHODS, name, MethodEntry(name, kind.__name__, "fakes", "for tests"))
    monkeypatch.setitem(sys.modules, "rarevote.methods.fakes", module)
