"""Our figures compared with the paper's: by row, as means over the same datasets, and with its summary tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from rarevote.methods.registry import method_title
from rarevote.study.datasets import DatasetInfo
from rarevote.study.results import Results
from rarevote.study.summaries import (
    DOUBTFUL_ROWS,
    SUMMARY_TABLES,
    dataset_title,
    members,
    of_paper,
    printed_results,
    printed_summaries,
    regime_mean,
)
from rarevote.study.tables import StudyTable, signed

#: the figures in the paper per dataset; balanced accuracy is only in its summary tables
ROW_METRICS = ("minority_recall", "macro_f1")


@dataclass(frozen=True)
class Deviation:
    """One figure of one dataset and method."""

    dataset: str
    method: str
    metric: str
    ours: float
    paper: float
    difference: float
    printed_sd: float
    note: str


@dataclass(frozen=True)
class MeanDeviation:
    """A mean over datasets.

    Attributes:
        table: summary table that the datasets belong to.
        regime: its group of columns.
        method: name of the method.
        metric: name of the metric.
        against: "rows" for the mean of the paper's own rows over the same datasets, "table" for the mean it prints,
            which includes the datasets that we lack.
        sets: number of datasets in our mean.
        ours: our mean.
        paper: the paper's mean.
        difference: our mean minus the paper's.
    """

    table: str
    regime: str
    method: str
    metric: str
    against: Literal["rows", "table"]
    sets: int
    ours: float
    paper: float
    difference: float


def deviations(results: Results, sets: Sequence[DatasetInfo]) -> list[Deviation]:
    """The deviation of every figure that both we and the paper have."""
    slugs = {one.paper_name: one.slug for one in sets if one.paper_name}
    found = []
    for (paper_name, method), row in printed_results().items():
        result = results.get((slugs.get(paper_name, ""), method))
        if result is None:
            continue
        for metric in ROW_METRICS:
            ours, paper = result.figure(metric), getattr(row, metric)
            if ours is not None:
                sd = getattr(row, f"{metric}_sd")
                note = DOUBTFUL_ROWS.get((paper_name, method), "")
                found.append(Deviation(result.dataset, method, metric, ours, paper, ours - paper, sd, note))
    return found


def mean_deviations(results: Results, sets: Sequence[DatasetInfo], methods: Sequence[str]) -> list[MeanDeviation]:
    """Every mean of the summary tables, compared with the paper's rows and with its printed table."""
    columns = [(table, regime) for table in SUMMARY_TABLES for regime in table.regimes if of_paper(sets)]
    found = []
    for method in methods:
        for table, regime in columns:
            for metric in ROW_METRICS:
                pairs = [
                    (ours, float(getattr(printed_results()[one.paper_name, method], metric)))
                    for one in members(regime, sets)
                    if (one.slug, method) in results and (one.paper_name, method) in printed_results()
                    if (ours := results[one.slug, method].figure(metric)) is not None
                ]
                if pairs:
                    means = (fmean(side) for side in zip(*pairs, strict=True))
                    found.append(_mean_deviation((table.key, regime.key, method, metric), "rows", len(pairs), *means))
        for table, regime in columns:
            for metric in table.metrics:
                place = (table.key, regime.key, method, metric)
                mean, printed = regime_mean(results, regime, sets, method, metric), printed_summaries().get(place)
                if mean and printed:
                    found.append(_mean_deviation(place, "table", mean.n_sets, mean.mean, printed.mean))
    return found


def _mean_deviation(
    place: tuple[str, str, str, str], against: Literal["rows", "table"], sets: int, ours: float, paper: float
) -> MeanDeviation:
    return MeanDeviation(*place, against, sets, ours, paper, ours - paper)


def deviation_texts(
    rows: Sequence[Deviation], means: Sequence[MeanDeviation], sets: Sequence[DatasetInfo]
) -> list[StudyTable]:
    """Three tables: means over the same datasets, means compared with the printed tables, single rows."""
    titles = {one.slug: dataset_title(one) for one in sets}
    figures = ("ours", "paper", "difference")

    def of_means(against: str, caption: str, note: str) -> StudyTable:
        return StudyTable(
            ("Table", "Regime", "Method", "Metric", "Sets", *figures),
            [
                (one.table, one.regime, method_title(one.method), one.metric, str(one.sets), *_shown(one))
                for one in means
                if one.against == against
            ],
            caption=caption,
            notes=(note,),
            n_text_columns=4,
        )

    return [
        of_means(
            "rows",
            "Means against the paper's own rows",
            "Both means are over the datasets that we have and the paper prints a row for.",
        ),
        of_means(
            "table",
            "Means against the paper's summary tables",
            "Our means are over the datasets at hand, the paper's include those that are absent here.",
        ),
        StudyTable(
            ("Dataset", "Method", "Metric", *figures, "printed sd"),
            [
                (titles[one.dataset], method_title(one.method), one.metric, *_shown(one), f"{one.printed_sd:.3f}")
                for one in rows
            ],
            caption="Every row",
            notes=[
                f"{dataset}, {method_title(method)}: {reason}." for (dataset, method), reason in DOUBTFUL_ROWS.items()
            ],
            n_text_columns=3,
        ),
    ]


def _shown(one: Deviation | MeanDeviation) -> tuple[str, str, str]:
    return f"{one.ours:.3f}", f"{one.paper:.3f}", signed(one.difference)
