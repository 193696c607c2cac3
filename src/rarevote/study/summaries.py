"""The paper's three summary tables and ours: the datasets that they include, and means over the available ones.

The counts in the paper's text do not agree with its tables; the datasets here are those that reproduce the printed
means and deviations from the per-dataset rows: all 22 two-class datasets, all 11 others, and the large ones of either
kind.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Sequence
from functools import cache
from importlib import resources
from statistics import fmean, stdev
from typing import NamedTuple

from rarevote.methods.registry import method_title
from rarevote.study.datasets import DatasetInfo
from rarevote.study.measures import CALIBRATION, DECISION, MEASURE_NOTES, MEASURES, RANKING
from rarevote.study.results import Results
from rarevote.study.tables import StudyTable, TableCell, mean_and_sd, ranked

#: the paper's methods in the order of its summary tables
PAPER_METHODS = ("majority-vote", "dawid-skene", "glad", "crowdfm", "plat", "cc-rasch")

#: rows that cannot be compared, and why; by the paper's name of the dataset and the method
DOUBTFUL_ROWS = {
    ("bird", "plat"): "the paper's row has the imbalance and the scores of Bird, so it belongs to the other release",
}


def dataset_title(info: DatasetInfo) -> str:
    """The paper's name of a dataset, or its slug if the paper does not have it."""
    return info.paper_name or info.slug


class PrintedRow(NamedTuple):
    """A row of the paper's per-dataset table."""

    imbalance: float
    annotations_per_item: float
    minority_recall: float
    minority_recall_sd: float
    macro_f1: float
    macro_f1_sd: float


class PrintedMean(NamedTuple):
    """A cell of the paper's summary tables: mean and sample standard deviation over datasets."""

    mean: float
    sd: float


def _rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("rarevote") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def printed_results() -> dict[tuple[str, str], PrintedRow]:
    """The per-dataset table, keyed by the paper's name of the dataset and our name of the method, in printed order.

    Example:
        >>> printed_results()["CF", "cc-rasch"].minority_recall
        0.667
    """
    return {
        (row["dataset"], row["method"]): PrintedRow(*(float(row[name]) for name in PrintedRow._fields))
        for row in _rows("paper_results.csv")
    }


@cache
def printed_summaries() -> dict[tuple[str, str, str, str], PrintedMean]:
    """The summary tables, keyed by table, regime, method and metric.

    Example:
        >>> printed_summaries()["binary", "all", "cc-rasch", "balanced_accuracy"]
        PrintedMean(mean=0.847, sd=0.127)
    """
    return {
        (row["table"], row["regime"], row["method"], row["metric"]): PrintedMean(float(row["mean"]), float(row["sd"]))
        for row in _rows("paper_summaries.csv")
    }


LARGE_ANNOTATIONS = 20_000
LARGE_ITEMS = 4_000


class Regime(NamedTuple):
    """A group of columns of a summary table: the datasets of one kind."""

    key: str
    title: str
    contains: Callable[[DatasetInfo], bool]


class SummaryTable(NamedTuple):
    """One of the paper's summary tables."""

    key: str
    caption: str
    metrics: tuple[str, ...]
    regimes: tuple[Regime, ...]

    @property
    def file_name(self) -> str:
        """Name of its files, without ending."""
        return f"table_{self.key.replace('-', '_')}"


def _by_classes(key: str, caption: str, of_kind: Callable[[DatasetInfo], bool]) -> SummaryTable:
    return SummaryTable(
        key,
        caption,
        ("minority_recall", "balanced_accuracy"),
        (
            Regime("all", "All", of_kind),
            Regime("imb3", "Imb. ≥ 3", lambda one: of_kind(one) and one.imbalance >= 3),
            Regime("ann10", "Ann./item ≥ 10", lambda one: of_kind(one) and one.annotations_per_item >= 10),
            Regime("annlt5", "Ann./item < 5", lambda one: of_kind(one) and one.annotations_per_item < 5),
        ),
    )


BINARY = _by_classes("binary", "Performance on binary datasets", lambda one: one.n_classes == 2)
MULTICLASS = _by_classes("multiclass", "Performance on multiclass datasets", lambda one: one.n_classes > 2)
LARGE_SCALE = SummaryTable(
    "large-scale",
    "Performance on large-scale datasets",
    ("minority_recall", "balanced_accuracy", "macro_f1"),
    (
        Regime("annotations", "Large-scale annotations", lambda one: (one.n_annotations or 0) >= LARGE_ANNOTATIONS),
        Regime("items", "Large-scale items", lambda one: (one.n_items_truth or 0) >= LARGE_ITEMS),
    ),
)
#: the paper's tables
SUMMARY_TABLES = (BINARY, MULTICLASS, LARGE_SCALE)
#: our table: the ranking without the decision, over all datasets and over each kind
RANKING_TABLE = SummaryTable(
    "ranking",
    "Ranking, calibration and decision",
    (*RANKING, *CALIBRATION, *(name for name in DECISION if name != "macro_f1")),
    (
        Regime("all", "all datasets", lambda one: True),
        *(table.regimes[0]._replace(key=table.key, title=f"{table.key} datasets") for table in (BINARY, MULTICLASS)),
        BINARY.regimes[1]._replace(key="binary_imb3", title="binary datasets with imbalance ≥ 3"),
    ),
)


def members(regime: Regime, sets: Sequence[DatasetInfo]) -> list[DatasetInfo]:
    """The datasets of a regime: among the paper's datasets, or among all if there are none of the paper's."""
    return [one for one in of_paper(sets) or sets if regime.contains(one)]


def of_paper(sets: Sequence[DatasetInfo]) -> list[DatasetInfo]:
    """The datasets that the paper has."""
    return [one for one in sets if one.paper_name]


def n_at_hand(regime: Regime, sets: Sequence[DatasetInfo], absent: Collection[str]) -> int:
    """Number of these datasets that are not among the absent slugs."""
    return sum(one.slug not in absent for one in members(regime, sets))


class Mean(NamedTuple):
    """Mean and sample standard deviation over ``n_sets`` datasets."""

    mean: float
    sd: float
    n_sets: int


def mean_over(values: Sequence[float]) -> Mean | None:
    """Mean over datasets, or None if there are none."""
    if not values:
        return None
    return Mean(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


def regime_mean(results: Results, regime: Regime, sets: Sequence[DatasetInfo], method: str, metric: str) -> Mean | None:
    """Mean of a method over the available datasets of a regime; None if the method lacks a figure for one of them."""
    rows = [results[one.slug, method] for one in members(regime, sets) if (one.slug, method) in results]
    values = [row.figure(metric) for row in rows if row.status != "absent"]
    found = [value for value in values if value is not None]
    return mean_over(found) if len(found) == len(values) else None


class SummaryRow(NamedTuple):
    """A method's row of a summary table, by regime and metric."""

    method: str
    means: dict[tuple[str, str], Mean | None]


def summary_rows(
    table: SummaryTable, results: Results, sets: Sequence[DatasetInfo], methods: Sequence[str]
) -> list[SummaryRow]:
    """The rows of a table; a method that does not apply to the datasets has no row, as in the paper."""
    rows = [
        SummaryRow(
            method,
            {
                (regime.key, metric): regime_mean(results, regime, sets, method, metric)
                for regime in table.regimes
                for metric in table.metrics
            },
        )
        for method in methods
    ]
    return [row for row in rows if any(row.means.values())]


def mean_lines(
    table: SummaryTable, rows: Sequence[SummaryRow], *, with_sd: bool = False
) -> list[tuple[str | TableCell, ...]]:
    """The lines of a table: a method, then its means by regime and metric, with the best highlighted."""
    columns = []
    for regime in table.regimes:
        for metric in table.metrics:
            means = [row.means[regime.key, metric] for row in rows]
            texts = [mean_and_sd(one and one.mean, one and one.sd) for one in means] if with_sd else None
            columns.append(ranked([one and one.mean for one in means], texts, better=MEASURES[metric].better))
    return list(zip((method_title(row.method) for row in rows), *columns, strict=True))


def summary_text(
    table: SummaryTable, rows: Sequence[SummaryRow], sets: Sequence[DatasetInfo], absent: Collection[str]
) -> StudyTable:
    """A summary table in the paper's layout, with a note on absent datasets."""
    counts = [
        f"{regime.title}: {n_at_hand(regime, sets, absent)} of {len(members(regime, sets))}" for regime in table.regimes
    ]
    notes = [f"Mean ± standard deviation over datasets. Datasets at hand: {'; '.join(counts)}."]
    missing = {dataset_title(one) for regime in table.regimes for one in members(regime, sets) if one.slug in absent}
    if missing:
        notes.append(f"Absent, and in none of these figures: {', '.join(sorted(missing))}.")
    return StudyTable(
        ["Method", *(MEASURES[metric].heading for _ in table.regimes for metric in table.metrics)],
        mean_lines(table, rows, with_sd=True),
        caption=f"{table.caption}.",
        groups=[(regime.title, len(table.metrics)) for regime in table.regimes],
        notes=notes,
    )


def ranking_texts(results: Results, sets: Sequence[DatasetInfo], methods: Sequence[str]) -> list[StudyTable]:
    """The ranking tables, one per kind of datasets; a method that lacks a figure for one dataset is left out."""
    texts = []
    for regime in RANKING_TABLE.regimes:
        table = RANKING_TABLE._replace(regimes=(regime,))
        rows = summary_rows(table, results, sets, methods)
        counts = {mean.n_sets for row in rows for mean in row.means.values() if mean}
        texts.append(
            StudyTable(
                ["Method", *(MEASURES[metric].heading for metric in table.metrics)],
                mean_lines(table, rows),
                caption=f"{table.caption}: {regime.title}",
                groups=[("Ranking", len(RANKING)), ("Calibration", len(CALIBRATION)), ("Own decision", 4)],
                notes=[f"Means over {max(counts, default=0)} datasets.", *MEASURE_NOTES],
            )
        )
    return texts


_SHORT = {
    "minority_recall": "recall",
    "minority_precision": "precision",
    "balanced_accuracy": "balacc",
    "macro_f1": "f1",
}


def summary_records(table: SummaryTable, rows: Sequence[SummaryRow]) -> tuple[list[str], list[dict[str, object]]]:
    """Columns and rows of a summary table for CSV: mean, deviation and number of datasets per regime and metric."""
    columns = ["method"]
    for regime in table.regimes:
        columns += [
            f"{regime.key}_{_SHORT.get(metric, metric)}{end}" for metric in table.metrics for end in ("", "_sd")
        ]
        columns.append(f"{regime.key}_sets")
    records = []
    for row in rows:
        record: dict[str, object] = {"method": row.method}
        for (regime_key, metric), one in row.means.items():
            name = f"{regime_key}_{_SHORT.get(metric, metric)}"
            record |= {
                name: one and one.mean,
                f"{name}_sd": one and one.sd,
                f"{regime_key}_sets": one.n_sets if one else 0,
            }
        records.append(record)
    return columns, records
