"""The paper's study as a section of the page: its tables, ours beside theirs, and the headline figure."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor
from pathlib import Path
from typing import Any

from rarevote.charts.svg import Chart, Key
from rarevote.methods.registry import method_title
from rarevote.study.experiment import METRICS, Account, StudySection, publish_account
from rarevote.study.figures import Axis, Dot, dot_chart
from rarevote.study.operating_points import operating_chart
from rarevote.study.paper import PaperStudy
from rarevote.study.summaries import (
    BINARY,
    SUMMARY_TABLES,
    SummaryRow,
    SummaryTable,
    mean_lines,
    n_at_hand,
    summary_rows,
)
from rarevote.study.tables import StudyTable, signed

_KEYS = (Key("Minority recall", "vermillion", "circle"), Key("Balanced accuracy", "blue", "diamond"))
#: columns of the paper's table of binary datasets: all datasets, and those in which one class is rare
HEADLINE = SummaryTable("headline", BINARY.caption, tuple(METRICS), BINARY.regimes[:2])


def _titles(counts: dict[str, int]) -> dict[str, str]:
    return {"all": f"All {counts['all']} binary datasets", "imb3": f"The {counts['imb3']} with imbalance ≥ 3"}


def _best_first(rows: Sequence[SummaryRow]) -> list[SummaryRow]:
    return sorted(rows, key=lambda row: -(mean.mean if (mean := row.means["all", "minority_recall"]) else 0.0))


def headline_chart(rows: Sequence[SummaryRow], counts: dict[str, int]) -> Any:
    """Mean minority recall and balanced accuracy of every method, on all binary datasets and on the imbalanced ones."""
    dots = [
        Dot(title, method_title(row.method), metric_title, mean.mean)
        for key, title in _titles(counts).items()
        for row in _best_first(rows)
        for metric, metric_title in METRICS.items()
        if (mean := row.means[key, metric])
    ]
    # Round the limits outwards to multiples of 0.05.
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
    return StudyTable(
        ["Method", *(title for _ in HEADLINE.regimes for title in METRICS.values())],
        mean_lines(HEADLINE, _best_first(rows)),
        groups=[(title, len(METRICS)) for title in _titles(counts).values()],
    )


def publish_paper(study: PaperStudy, out: Path, *, command: str, begin: float) -> StudySection:
    """Add a finished paper study to the page of its folder; ``begin`` is the clock at its start."""
    # The comparison of single datasets with the paper is in the file, not on the page.
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
    """How far our means are from the means of the paper's rows over the same datasets."""
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
