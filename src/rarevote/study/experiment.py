"""What all experiments share: trials over all cores, rows as CSV, charts as files, and a section of the page.

An experiment is a frozen record of its settings. It names its trials, each of which turns itself into rows; from the
rows it makes charts, tables and sentences. Everything else happens here.
"""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from rarevote.charts.svg import Chart, save
from rarevote.errors import InputError
from rarevote.meaning.metrics import Scores, score
from rarevote.methods.base import Estimator
from rarevote.simulate.crowds import SimulatedCrowd
from rarevote.study.cells import Variant
from rarevote.study.page import Figure, StudySection, publish
from rarevote.study.pool import Report, run_jobs
from rarevote.study.tables import StudyTable, write_records

#: what most experiments mark methods by, and its titles
METRICS = {"minority_recall": "Minority recall", "balanced_accuracy": "Balanced accuracy"}


class Trial(Protocol):
    """One piece of an experiment that can run in a process of its own."""

    def run(self) -> list[Any]:
        """The rows that it gives."""


@dataclass(frozen=True)
class Account:
    """What an experiment has to say: see :class:`rarevote.study.page.StudySection`."""

    findings: Sequence[str]
    charts: Sequence[Chart]
    tables: Sequence[StudyTable]
    settings: Sequence[str]


class Experiment(ABC):
    """An experiment with its settings.

    Attributes:
        name: on the command line, and of its files.
        title: its heading on the page.
        unit: what its trials are called.
        kinds: the records that its rows are, by name of the CSV file that they go to.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    kinds: ClassVar[Mapping[str, type]]

    @abstractmethod
    def trials(self) -> Sequence[Any]:
        """All that is to be run: each a :class:`Trial`, unless the experiment has a way of its own (:meth:`rows`)."""

    @abstractmethod
    def account(self, rows: Sequence[Any]) -> Account:
        """What the rows say."""

    def rows(self, n_jobs: int | None = None, report: Report | None = None) -> list[Any]:
        """The rows of all trials, in their order."""
        return run_jobs(_run_trial, self.trials(), n_jobs=n_jobs, report=report)

    def run(
        self, out: Path, *, n_jobs: int | None = None, report: Report | None = None, command: str | None = None
    ) -> StudySection:
        """Run it and write the rows as CSV, the figures, a summary and the page into ``out``.

        Args:
            out: a folder, made if need be.
            n_jobs: processes side by side; None for all cores. Results do not depend on it.
            report: called with the number of trials done.
            command: what was typed, for the page.
        """
        begin = time.perf_counter()
        make_folder(out)
        rows = self.rows(n_jobs, report)
        for name, kind in self.kinds.items():
            write_records(out / f"{name}.csv", kind, (row for row in rows if isinstance(row, kind)))
        command = command or f"rarevote study {self.name}"
        return publish_account(out, self.name, self.title, self.account(rows), command=command, begin=begin)


def _run_trial(trial: Trial) -> list[Any]:
    return trial.run()


def publish_account(out: Path, name: str, title: str, account: Account, *, command: str, begin: float) -> StudySection:
    """Save the charts, and publish the account as the section of that name; the clock stood at ``begin``."""
    for chart in account.charts:
        save(chart.spec, out / chart.name)
    section = StudySection(
        name=name,
        title=title,
        findings=account.findings,
        figures=[Figure(chart.name, f"{chart.title}. {chart.caption}") for chart in account.charts],
        tables=account.tables,
        settings=account.settings,
        command=command,
        seconds=time.perf_counter() - begin,
    )
    publish(out, section)
    return section


def make_folder(out: Path) -> None:
    """Make the folder for the results: better to fail before the work than after it.

    Raises:
        InputError: it cannot be made or written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be made a folder ({error.strerror})") from None
    if not os.access(out, os.W_OK):
        raise InputError(f"{out}: cannot be written to")


def fit_quietly(method: str, seed: int, votes: Any, **options: Any) -> Estimator:
    """The method fitted to the votes; whether that converged is for the rows to say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Variant(method).estimator(seed).fit(votes, **options)


def fit_simulated(method: str, seed: int, crowd: SimulatedCrowd, classes: Sequence[int]) -> tuple[Estimator, Scores]:
    """The method fitted to a simulated crowd, and how it did."""
    model = fit_quietly(method, seed, crowd.arrays, classes=classes)
    return model, score(crowd.truth[model.annotations_.tasks], model.annotations_.classes[model.label_codes()])
