"""What the paper prints: its per-dataset table, its three summary tables, and the names it gives to things."""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources
from typing import NamedTuple

from rarevote.study.datasets import DatasetInfo

#: the paper's methods in the order of its summary tables
PAPER_METHODS = ("majority-vote", "dawid-skene", "glad", "crowdfm", "plat", "cc-rasch")

#: rows that cannot be compared, and why; by the paper's name of the dataset and the method
DOUBTFUL_ROWS = {
    ("bird", "plat"): "the paper's row has the imbalance and the scores of Bird, so it belongs to the other release",
}


def dataset_title(info: DatasetInfo) -> str:
    """The paper's name of a dataset, or the slug of one that the paper has not."""
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
    """The per-dataset table, by the paper's name of the dataset and our name of the method, in printed order.

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
    """The summary tables, by table, regime, method and metric.

    Example:
        >>> printed_summaries()["binary", "all", "cc-rasch", "balanced_accuracy"]
        PrintedMean(mean=0.847, sd=0.127)
    """
    return {
        (row["table"], row["regime"], row["method"], row["metric"]): PrintedMean(float(row["mean"]), float(row["sd"]))
        for row in _rows("paper_summaries.csv")
    }
