"""The common part of all experiments: trials on all cores, rows as CSV, charts as files, a summary, and the page.

An experiment is a frozen record of its settings. It lists its trials, each of which produces rows; from the
rows it makes charts, tables and sentences. This module does the rest.

A study publishes a :class:`StudySection`. It is stored as a small JSON file beside the figures, so that studies can be
run one by one, and each rebuilds the page from all sections in the folder. The page is self-contained: no
scripts, no network, inline figures.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Protocol

from markupsafe import Markup

from rarevote import __version__
from rarevote.charts.svg import Chart, inline_svg, save, style_variables
from rarevote.errors import InputError, RarevoteError
from rarevote.io.json_text import parse_json
from rarevote.methods.base import Estimator
from rarevote.page.report import template
from rarevote.scoring.metrics import Scores, score
from rarevote.simulate.crowds import SimulatedCrowd
from rarevote.study.cells import Variant
from rarevote.study.libraries import need_libraries
from rarevote.study.pool import Report, run_jobs
from rarevote.study.tables import StudyTable, TableCell, escape_markdown, to_markdown, write_records, write_text

PAGE = "index.html"
_SUFFIX = ".section.json"
# The order on the page: studies of the paper, then ours; studies that are not named here come last.
_ORDER = ("paper", "ablation", "synthetic", "gold", "features", "theory", "speed")


@dataclass(frozen=True)
class Figure:
    """A figure in the folder: ``stem.svg`` and ``stem.png``."""

    stem: str
    caption: str


@dataclass(frozen=True)
class StudySection:
    """The section of a study on the page.

    Attributes:
        name: name of the study on the command line and of its files.
        title: its heading.
        findings: the results, as sentences.
        figures: in the order on the page.
        tables: likewise.
        settings: the settings that are needed to judge the figures, as sentences.
        command: the command that ran it.
        seconds: how long it took.
        date: the day on which it ran, in UTC.
    """

    name: str
    title: str
    findings: Sequence[str]
    figures: Sequence[Figure]
    tables: Sequence[StudyTable]
    settings: Sequence[str]
    command: str
    seconds: float
    date: str = ""


def today() -> str:
    """The date in UTC, such as 2026-03-31."""
    return datetime.now(UTC).date().isoformat()


def publish(out: Path, section: StudySection) -> Path:
    """Write a section's Markdown, store it for the page, and rebuild the page; returns the path of the page."""
    if not section.date:
        section = replace(section, date=today())
    write_text(out / f"{section.name}.md", section_markdown(section))
    write_text(out / f"{section.name}{_SUFFIX}", json.dumps(asdict(section), indent=1, ensure_ascii=False) + "\n")
    return build_page(out)


def section_markdown(section: StudySection) -> str:
    """The section as Markdown, with figures as links to the PNG files."""
    parts = [f"# {escape_markdown(section.title)}"]
    parts += ["\n".join(f"- {escape_markdown(finding)}" for finding in section.findings)]
    for figure in section.figures:
        headline = escape_markdown(figure.caption.partition(". ")[0])
        parts.append(f"![{headline}]({figure.stem}.png)\n\n*{escape_markdown(figure.caption)}*")
    for table in section.tables:
        caption = [f"**{escape_markdown(table.caption)}**"] if table.caption else []
        parts += [*caption, to_markdown(table).rstrip()]
    parts += [escape_markdown(setting) for setting in section.settings]
    parts.append(f"{section.date}, rarevote {__version__}, {section.seconds:,.0f} s: {as_code(section.command)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def as_code(text: str) -> str:
    """Text as code in Markdown; a backtick would end the code, so it is replaced by another quote."""
    return f"`{text.replace('`', chr(39))}`"


def build_page(out: Path) -> Path:
    """Build the page from all sections of the folder.

    Raises:
        InputError: a section or a figure cannot be read.
    """
    sections = sorted((_read(path) for path in out.glob(f"*{_SUFFIX}")), key=_place)
    drawn = {figure.stem: _drawn(out, figure) for section in sections for figure in section.figures}
    page = template("rarevote.study", "study.html.j2").render(
        sections=sections, figures=drawn, style=Markup(style_variables()), date=today(), version=__version__
    )
    return write_text(out / PAGE, page)


def _drawn(out: Path, figure: Figure) -> Markup:
    path = out / f"{figure.stem}.svg"
    try:
        return Markup(inline_svg(path.read_text(encoding="utf-8"), label=figure.caption))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except RarevoteError as error:
        raise InputError(f"{path}: {error}; delete it and run the study again") from None


def _place(section: StudySection) -> tuple[int, str]:
    return (_ORDER.index(section.name) if section.name in _ORDER else len(_ORDER)), section.name


def _read(path: Path) -> StudySection:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        for table in content["tables"]:
            table["rows"] = [
                [cell if isinstance(cell, str) else TableCell(*cell) for cell in row] for row in table["rows"]
            ]
        tables = [StudyTable(**table) for table in content["tables"]]
        figures = [Figure(**figure) for figure in content["figures"]]
        return StudySection(**{**content, "tables": tables, "figures": figures})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: is not a section of a study ({error}); delete it and run that study again") from None


#: the measures of most experiments, and their titles
METRICS = {"minority_recall": "Minority recall", "balanced_accuracy": "Balanced accuracy"}


class Trial(Protocol):
    """One part of an experiment that can run in its own process."""

    def run(self) -> list[Any]:
        """Run the trial and return its rows."""


@dataclass(frozen=True)
class Account:
    """The results of an experiment: see :class:`rarevote.study.experiment.StudySection`."""

    findings: Sequence[str]
    charts: Sequence[Chart]
    tables: Sequence[StudyTable]
    settings: Sequence[str]


class Experiment(ABC):
    """An experiment with its settings.

    Attributes:
        name: name on the command line, and of its files.
        title: its heading on the page.
        unit: what its trials are called.
        kinds: the record types of its rows, by the name of their CSV file.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    unit: ClassVar[str]
    kinds: ClassVar[Mapping[str, type]]

    @abstractmethod
    def trials(self) -> Sequence[Any]:
        """All trials to run: each is a :class:`Trial`, unless the experiment overrides :meth:`rows`."""

    @abstractmethod
    def account(self, rows: Sequence[Any]) -> Account:
        """Summarise the rows."""

    def rows(self, n_jobs: int | None = None, report: Report | None = None) -> list[Any]:
        """The rows of all trials, in their order."""
        return run_jobs(_run_trial, self.trials(), n_jobs=n_jobs, report=report)

    def run(
        self, out: Path, *, n_jobs: int | None = None, report: Report | None = None, command: str | None = None
    ) -> StudySection:
        """Run it and write the rows as CSV, the figures, a summary and the page into ``out``.

        Args:
            out: a folder, created if needed.
            n_jobs: parallel processes; None for all cores. Results do not depend on it.
            report: called with the number of trials done.
            command: the command line, for the page.
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
    """Save the charts, and publish the account as the section with this name; ``begin`` is the clock at the start."""
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
    """Create the folder for the results, before the work starts.

    Raises:
        MissingExtraError: a library that the study uses is not installed.
        InputError: the folder cannot be created or written to.
    """
    need_libraries()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the folder cannot be created ({error.strerror})") from None
    if not os.access(out, os.W_OK):
        raise InputError(f"{out}: cannot be written to")


def fit_quietly(method: str, seed: int, votes: Any, **options: Any) -> Estimator:
    """Fit a method to the votes without warnings; the rows say whether it converged."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Variant(method).estimator(seed).fit(votes, **options)


def fit_simulated(method: str, seed: int, crowd: SimulatedCrowd, classes: Sequence[int]) -> tuple[Estimator, Scores]:
    """Fit a method to a simulated crowd; returns the fit and its scores."""
    model = fit_quietly(method, seed, crowd.arrays, classes=classes)
    return model, score(crowd.truth[model.annotations_.tasks], model.annotations_.classes[model.label_codes()])
