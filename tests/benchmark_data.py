"""The real datasets and the paper's printed results, for the fidelity tests."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rarevote.scoring.metrics import score

# The paper prints three decimals.
PRINTED = 6e-4


@dataclass(frozen=True)
class Row:
    slug: str
    paper_name: str
    n_classes: int


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@cache
def datasets(shared: Path) -> list[Row]:
    """The datasets that agree with the paper's description."""
    index = _rows(shared / "datasets" / "index.csv")
    return [Row(row["slug"], row["paper_name"], int(row["n_classes"])) for row in index if row["match"] == "exact"]


@cache
def load(shared: Path, slug: str) -> tuple[list[str], list[str], list[str], dict[str, str]]:
    """Task, worker and label columns, and the truth."""
    labels = _rows(shared / "datasets" / slug / "labels.csv")
    truth = _rows(shared / "datasets" / slug / "truth.csv")
    columns = ([row[name] for row in labels] for name in ("task", "worker", "label"))
    task, worker, label = columns
    return task, worker, label, {row["task"]: row["label"] for row in truth}


@cache
def _paper(shared: Path) -> dict[tuple[str, str], tuple[float, float]]:
    return {
        (row["dataset"], row["method"]): (float(row["minority_recall"]), float(row["macro_f1"]))
        for row in _rows(shared / "paper" / "results_per_dataset.csv")
    }


def paper_row(shared: Path, paper_name: str, method: str) -> tuple[float, float]:
    """Minority recall and macro-F1 as printed."""
    return _paper(shared)[paper_name, method]


def scores(truth: Mapping[str, str], labels: Mapping[str, str]) -> tuple[float, float]:
    """Minority recall and macro-F1 over the items that have both."""
    items = [task for task in truth if task in labels]
    true, predicted = [truth[task] for task in items], [labels[task] for task in items]
    found = score(true, predicted)
    return found.minority_recall, found.macro_f1
