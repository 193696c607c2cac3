"""The check example of the specification, made by a formula and kept beside the benchmark datasets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.features.table import FeatureTable, PredictionTable, WhichColumns, read_features
from rarevote.io.read.crowd import read
from rarevote.io.read.frames import read_truth


@dataclass(frozen=True)
class CheckExample:
    """300 items, 240 of them with two votes, and four columns."""

    folder: Path
    votes: Annotations
    table: FeatureTable
    truth: dict[str, str]

    @property
    def noise(self) -> FeatureTable:
        """Every item with the features of another one."""
        rows = [(7 * number + 3) % 300 for number in range(300)]
        return FeatureTable("noise", self.table.place, self.table.names, self.table.values[rows])

    @property
    def probabilities(self) -> NDArray[Any]:
        """``P(1) = sigmoid(1.2 x1 + .8 x2 - 1.5)`` of each row of the table."""
        positive = 1.0 / (1.0 + np.exp(1.5 - self.table.values[:, :2] @ np.array([1.2, 0.8])))
        return np.column_stack([1.0 - positive, positive])

    @property
    def predictions(self) -> PredictionTable:
        return PredictionTable("predictions", self.table.place, ["0", "1"], self.probabilities)


@pytest.fixture(scope="session")
def example(shared_folder: Path) -> CheckExample:
    folder = shared_folder / "features" / "check"
    if not folder.is_dir():
        pytest.skip("the check example of features is not here")
    votes = read(folder / "votes.csv").annotations
    table = read_features(folder / "features.csv", WhichColumns())
    return CheckExample(folder, votes, table, read_truth(folder / "truth.csv"))
