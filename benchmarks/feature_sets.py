"""Sets with votes, truth and features: reading, thinning, and the rows of ``docs/evidence/features.csv``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.api import Fitted
from rarevote.crowd.names import spelling
from rarevote.scoring.ranking import average_precision

FOLDER = DATASETS.parent / "features"
# Those whose features say something; "rte" is the one whose features the guard leaves out.
INFORMATIVE = (
    "product",
    "appendicitis",
    "music",
    "medical-cause",
    "amazon-sentiment-negative",
    "movie-reviews-4class",
)
SETS = (*INFORMATIVE, "rte")


@dataclass(frozen=True, eq=False)
class FeatureSet:
    """Votes, truth and features of one set, all ids and labels as text.

    Attributes:
        name: of the set.
        votes: columns task, worker, label.
        truth: class by task.
        features: column task and columns of numbers.
        rarest: the class with the fewest true items.
    """

    name: str
    votes: pd.DataFrame
    truth: dict[str, str]
    features: pd.DataFrame
    rarest: str

    def thinned(self, n_votes: int | None, rng: np.random.Generator) -> pd.DataFrame:
        """So many random votes on each item at most; all of them for None."""
        if n_votes is None:
            return self.votes
        shuffled = self.votes.iloc[rng.permutation(len(self.votes))]
        return shuffled[shuffled.groupby("task").cumcount() < n_votes].sort_index()

    def shuffled_features(self, rng: np.random.Generator) -> pd.DataFrame:
        """Every item with the features of a random other one."""
        values = self.features.drop(columns="task")
        return values.iloc[rng.permutation(len(values))].reset_index(drop=True).assign(task=self.features["task"])

    def known(self, fitted: Fitted, *, pool: bool | None = None) -> tuple[NDArray[np.int64], list[str]]:
        """Rows of the items whose class is known, and their classes: all items, those without votes, or the others."""
        tasks = [spelling(task) for task in fitted.crowd.population.tolist()]
        n_voted = fitted.annotations.n_tasks
        rows = [
            row for row, task in enumerate(tasks) if task in self.truth and (pool is None or (row >= n_voted) == pool)
        ]
        return np.array(rows, dtype=np.int64), [self.truth[tasks[row]] for row in rows]

    def scores(self, fitted: Fitted, *, pool: bool | None = None) -> tuple[float, float]:
        """Average precision of the rarest class, and log loss (a probability counts as at least 1e-6)."""
        rows, true = self.known(fitted, pool=pool)
        classes = [spelling(name) for name in fitted.annotations.classes.tolist()]
        p = fitted.probabilities[rows]
        of_truth = np.array(
            [row[classes.index(one)] if one in classes else 0.0 for row, one in zip(p, true, strict=True)]
        )
        loss = float(-np.log(np.maximum(of_truth, 1e-6)).mean())
        if self.rarest not in classes:
            return float(np.mean([one == self.rarest for one in true])), loss
        return average_precision(p[:, classes.index(self.rarest)], [one == self.rarest for one in true]), loss


def load(name: str, folder: Path = FOLDER) -> FeatureSet:
    """One of the sets."""
    votes = pd.read_csv(folder / name / "labels.csv", dtype=str)[["task", "worker", "label"]]
    true = pd.read_csv(folder / name / "truth.csv", dtype=str)
    features = pd.read_parquet(folder / name / "features.parquet")
    features["task"] = features["task"].astype(str)
    counts = true["label"].value_counts()
    rarest = str(min(counts.index, key=lambda one: (counts[one], one)))
    return FeatureSet(name, votes, dict(zip(true["task"], true["label"], strict=True)), features, rarest)


def write_rows(rows: list[dict[str, Any]]) -> Path:
    """Put rows into ``docs/evidence/features.csv``; those of other points stay as they were measured."""
    return evidence.write("features", rows, by=("point", "set", "votes", "measure"))


def row(
    point: str, set_: str, votes: str, measure: str, *, runs: int, with_features: str, votes_only: str = "",
    wanted: str = "", holds: bool | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A row of the evidence: what was measured, what is wanted, and whether it holds."""
    said = "" if holds is None else "yes" if holds else "no"
    return {
        "point": point,
        "set": set_,
        "votes": votes,
        "measure": measure,
        "runs": runs,
        "votes_only": votes_only,
        "with_features": with_features,
        "wanted": wanted,
        "holds": said,
    }
