"""The paper's study as a section of the page: its tables, ours beside theirs, and the headline figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from math import ceil, floor
from pathlib import Path
from typing import Any

from rarevote.charts.svg import Chart, Key, to_svg
from rarevote.errors import InputError
from rarevote.methods.registry import method_title
from rarevote.study.datasets import list_datasets
from rarevote.study.experiment import METRICS, Account, publish_account
from rarevote.study.figures import Axis, Dot, dot_chart
from rarevote.study.operating_points import operating_chart
from rarevote.study.page import StudySection, as_code, today
from rarevote.study.paper import PaperStudy
from rarevote.study.results import ResultRow, Results
from rarevote.study.summaries import (
    BINARY,
    SUMMARY_TABLES,
    SummaryRow,
    SummaryTable,
    mean_columns,
    n_at_hand,
    summary_rows,
)
from rarevote.study.tables import StudyTable, escape_markdown, signed, to_markdown, write_text

_KEYS = (Key("Minority recall", "vermillion", "circle"), Key("Balanced accuracy", "blue", "diamond"))
#: of the paper's table of binary datasets, all of them and those in which one class is rare
HEADLINE = SummaryTable("headline", BINARY.caption, tuple(METRICS), BINARY.regimes[:2])


def read_results(path: Path) -> Results:
    """The results of a study from its ``results.csv``.

    The file has no status: a dataset without figures of any method is absent, and a method that alone lacks a figure
    does not apply.

    Raises:
        InputError: the file is not there or is no such file.
    """
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            rows = list(csv.DictReader(handle))
        has_figures = {row["dataset"] for row in rows if row["minority_recall"]}
        return {(row["dataset"], row["method"]): _result(row, has_figures) for row in rows}
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"{path}: is no results.csv of a study ({error}); run rarevote study paper first") from None


def _result(row: dict[str, str], has_figures: set[str]) -> ResultRow:
    if not row["minority_recall"]:
        status: Any = "not applicable" if row["dataset"] in has_figures else "absent"
        return ResultRow(row["dataset"], row["method"], status)
    return ResultRow(
        row["dataset"],
        row["method"],
        "done",
        seeds=int(row["seeds"]),
        minority_recall=float(row["minority_recall"]),
        balanced_accuracy=float(row["balanced_accuracy"]),
    )


def write_headline(study: Path, svg: Path, *, command: str | None = None, date: str | None = None) -> str:
    """Write the figure to ``svg`` and return the table as Markdown, with the date and the command below it.

    Args:
        study: output folder of ``rarevote study paper``.
        svg: where the figure goes.
        command: how the study was run; by default what the study itself recorded.
        date: when, likewise.
    """
    results = read_results(study / "results.csv")
    recorded = _recorded(study / "paper.section.json")
    sets = [info for info in list_datasets() if any(slug == info.slug for slug, _ in results)]
    methods = list(dict.fromkeys(method for _, method in results))
    rows = summary_rows(HEADLINE, results, sets, methods)
    if not rows:
        raise InputError(f"{study / 'results.csv'}: has no method with figures for all binary datasets at hand")
    present = {slug for (slug, _), result in results.items() if result.status != "absent"}
    absent = {one.slug for one in sets} - present
    counts = {regime.key: n_at_hand(regime, sets, absent) for regime in HEADLINE.regimes}
    write_text(svg, to_svg(headline_chart(rows, counts)))
    when, how = date or recorded.get("date") or today(), command or recorded.get("command") or "rarevote study paper"
    return f"{to_markdown(headline_table(rows, counts))}\nMade on {escape_markdown(when)} by {as_code(how)}.\n"


def _recorded(path: Path) -> dict[str, str]:
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return {name: str(kept[name]) for name in ("date", "command")}
    except (OSError, ValueError, KeyError):
        return {}


def _titles(counts: dict[str, int]) -> dict[str, str]:
    return {"all": f"All {counts['all']} binary datasets", "imb3": f"The {counts['imb3']} with imbalance ≥ 3"}


def _best_first(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    return sorted(rows, key=lambda row: -(mean.mean if (mean := row.means["all", "minority_recall"]) else 0.0))


def headline_chart(rows: Sequence[SummaryRow], counts: dict[str, int]) -> Any:
    """Mean minority recall and balanced accuracy of every method, on all binary datasets and on the imbalanced."""
    dots = [
        Dot(title, method_title(row.method), metric_title, mean.mean)
        for key, title in _titles(counts).items()
        for row in _best_first(rows)
        for metric, metric_title in METRICS.items()
        if (mean := row.means[key, metric])
    ]
    # Whole twentieths around the data.
    first, last = floor(20 * min(dot.value for dot in dots)), ceil(20 * max(dot.value for dot in dots))
    x = Axis(
        "mean over datasets",
        ticks=[step / 20 for step in range(first, last + 1)],
        format=".2f",
        domain=(first / 20, last / 20),
    )
    return dot_chart(dots, title="How much of the rare class is found", x=x, keys=_KEYS)


def headline_table(rows: Sequence[SummaryRow], counts: dict[str, int]) -> StudyTable:
    """The numbers of the chart."""
    ordered = _best_first(rows)
    columns = mean_columns(HEADLINE, ordered)
    return StudyTable(
        ["Method", *(title for _ in HEADLINE.regimes for title in METRICS.values())],
        [(method_title(row.method), *(column[place] for column in columns)) for place, row in enumerate(ordered)],
        groups=[(title, len(METRICS)) for title in _titles(counts).values()],
    )


def publish_paper(study: PaperStudy, out: Path, *, command: str, begin: float) -> StudySection:
    """Add a finished paper study to the page of its folder; the clock stood at ``begin`` when it began."""
    # The rows of all datasets, one by one against the paper's, are for the file and not for the page.
    tables = [table for name, texts in study.texts().items() for table in (texts[:2] if name == "deviation" else texts)]
    account = Account(
        findings=_findings(study),
        charts=_charts(study),
        tables=[table for table in tables if table.rows],
        settings=[
            *(f"Absent: {slug} ({how})." for slug, how in study.absent.items()),
            *(f"{method_title(method)} was not run: {reason}." for method, reason in study.not_run.items()),
            *study.notes,
            *study.failures,
        ],
    )
    return publish_account(out, "paper", "The paper's study on real data", account, command=command, begin=begin)


def _charts(study: PaperStudy) -> list[Chart]:
    points = study.operating_points()
    drawn = [operating_chart(points)] if points else []
    rows = summary_rows(HEADLINE, study.results, study.sets, study.methods)
    if not rows:
        return drawn
    counts = {regime.key: n_at_hand(regime, study.sets, study.absent) for regime in HEADLINE.regimes}
    title = "Mean minority recall and balanced accuracy on binary datasets"
    caption = "Methods in the order of their recall."
    return [Chart("paper_headline", title, caption, (), headline_chart(rows, counts)), *drawn]


def _findings(study: PaperStudy) -> list[str]:
    """How far our means are from those of the paper's own rows over the same datasets."""
    sentences = []
    for table in SUMMARY_TABLES:
        regime = table.regimes[0]
        found = [
            one
            for one in study.means()
            if (one.table, one.regime, one.against, one.metric) == (table.key, regime.key, "rows", "minority_recall")
        ]
        if found:
            said = ", ".join(f"{method_title(one.method)} {one.ours:.3f} ({signed(one.difference)})" for one in found)
            sentences.append(
                f"{table.caption}: mean minority recall, and how far that is from the paper's own rows over the same "
                f"datasets: {said}."
            )
    return sentences
