"""One page for a person who decides: from a fitted method to a single HTML file, and its charts as files.

>>> from rarevote import CCRasch                                                            # doctest: +SKIP
>>> from rarevote.page.report import write_report                                                # doctest: +SKIP
>>> write_report(CCRasch().fit("labels.csv"), "report.html", source="labels.csv")           # doctest: +SKIP
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote import __version__
from rarevote.errors import InputError
from rarevote.io.read.detect import refuse_address
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.diagnose import diagnose
from rarevote.meaning.rules import parse_rule
from rarevote.methods.base import Estimator
from rarevote.methods.registry import method_title
from rarevote.page.build import build_page, export_charts, write_page
from rarevote.page.sections import Section, page_sections
from rarevote.page.sentences import About, headline
from rarevote.page.tables import Shown

__all__ = ["Report", "check_page_path", "write_example_report", "write_report"]


@dataclass(frozen=True)
class Report:
    """What was written.

    Attributes:
        page: the HTML file.
        n_bytes: its size.
        headline: the answer in one sentence.
        charts: files of the exported charts.
    """

    page: Path
    n_bytes: int
    headline: str
    charts: list[Path]


def write_report(
    estimator: Estimator,
    path: str | Path,
    *,
    source: str = "your data",
    truth: Mapping[Any, Any] | None = None,
    gold: Mapping[Any, Any] | None = None,
    rare: Any = None,
    shown: Shown | None = None,
    models: Iterable[Any] = (),
    labels: NDArray[Any] | None = None,
    decision: str | None = None,
    calibration: CalibratedPosterior | None = None,
    cautions: Sequence[str] = (),
    extra: Sequence[Section] = (),
    charts: str | Path | None = None,
) -> Report:
    """Write the page of a fitted method.

    Args:
        estimator: the fitted method.
        path: where to write; ends in ``.html``.
        source: what the page calls the data.
        truth: true labels to check the result against.
        gold: true labels that the fit was given.
        rare: the class that matters; the one with the fewest votes if not given.
        shown: columns that say what an item shows, each with one value per item in the order of the crowd.
        models: names of the annotators that are models.
        labels: class numbers of another decision than the method's own, -1 for no answer, (n_tasks).
        decision: how these labels were decided on, in a sentence.
        calibration: probabilities of the classes, if they have been computed already.
        cautions: what else to know before relying on the page, in sentences.
        extra: sections of the page beside its own.
        charts: a folder for every chart as SVG and PNG.

    Raises:
        InputError: there are no votes, the truth names none of the tasks, or a file cannot be written.
        ParameterError: ``rare`` is no class.
    """
    page_path = check_page_path(Path(path))
    found = diagnose(
        estimator, calibration=calibration, labels=labels, rare=rare, truth=truth, gold=gold, models=models
    )
    about = About(
        source=source,
        method=method_title(estimator.method_name),
        parameters=repr(estimator).partition("(")[2].removesuffix(")"),
        decision=decision or _decision(estimator),
        n_gold=len(gold or ()),
        date=datetime.now(UTC).date().isoformat(),
        version=__version__,
        cautions=tuple(cautions),
    )
    sections = page_sections(found, about, shown=shown, extra=extra)
    page = build_page(found, about, sections)
    files = [] if charts is None else export_charts(Path(charts), sections)
    write_page(page_path, page)
    return Report(page_path, len(page.encode()), headline(found), files)


def _decision(estimator: Estimator) -> str:
    if estimator.own_decision != "argmax":
        return parse_rule(estimator.own_decision).words
    prior = estimator.get_params().get("prior")
    if isinstance(prior, str) and prior == "uniform":
        return "the most probable class, with all classes taken as equally likely beforehand"
    return "the most probable class by the method"


def check_page_path(path: Path) -> Path:
    """The path, if a page can be written there: better known before a long fit than after it.

    Raises:
        InputError: it cannot.
    """
    refuse_address(path, "write the page here and copy it there")
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the page is HTML; give it a name that ends in .html")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written (there is no folder {path.parent})")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written (no permission for the folder {path.parent})")
    return path


def write_example_report(path: str | Path) -> Path:
    """Write the page of the example that comes with the package: simulated rail inspections, checked against truth."""
    from rarevote.io.read.frames import read_truth
    from rarevote.methods.cc_rasch.estimator import CCRasch
    from rarevote.simulate.example import example_files

    files = example_files()
    made = write_report(
        CCRasch().fit(files.labels), path, source="Rail inspection (simulated)", truth=read_truth(files.truth)
    )
    return made.page
