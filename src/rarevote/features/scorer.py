"""The scores of items, from columns of numbers, from predicted probabilities, or from both."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.features.columns import Columns
from rarevote.features.ridge import CrossFit
from rarevote.features.settings import FeatureSettings


@dataclass(frozen=True, eq=False)
class LinearMap:
    """Scores that are linear in columns.

    Attributes:
        kept: columns that vary, (d).
        mean: means of these, (d).
        sd: standard deviations of these, (d).
        slopes: slopes of these in standard form, (d, K).
    """

    kept: IntArray
    mean: FloatArray
    sd: FloatArray
    slopes: FloatArray

    def scores(self, values: NDArray[Any]) -> FloatArray:
        """The scores of rows of numbers, (n, K); a cell that is not a finite number counts as the mean."""
        x = (np.asarray(values[:, self.kept], dtype=np.float64) - self.mean) / self.sd
        x[~np.isfinite(x)] = 0.0
        return np.asarray(x @ self.slopes)


@dataclass(frozen=True, eq=False)
class Scorer:
    """Scores of new items, from the mean of the models of all folds.

    Attributes:
        names: names of the columns of features.
        of_values: scores from features; None if there were only predicted probabilities.
        of_predictions: scores from predicted probabilities in addition to features; None unless both are given.
    """

    names: tuple[str, ...]
    of_values: LinearMap | None
    of_predictions: LinearMap | None

    def scores(self, values: NDArray[Any] | None, predictions: FloatArray | None) -> FloatArray:
        """Scores, centred over the classes, (n, K); ``predictions`` are centred log probabilities."""
        if self.of_values is None:
            assert predictions is not None
            return predictions
        assert values is not None
        eta = self.of_values.scores(values)
        if self.of_predictions is not None:
            assert predictions is not None
            eta = eta + self.of_predictions.scores(predictions)
        return np.asarray(eta - eta.mean(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class Scoring:
    """Columns to fit models on.

    Attributes:
        names: names of the columns of features.
        columns: the features in standard form.
        predictions: centred log probabilities in standard form, beside the features; None without.
    """

    names: tuple[str, ...]
    columns: Columns
    predictions: Columns | None

    @property
    def _factor(self) -> float:
        """The scale of predictions, which get as much prior variance as all features together."""
        assert self.predictions is not None
        return float(np.sqrt(self.columns.n_columns / self.predictions.values.shape[1]))

    def rows(self, chosen: IntArray) -> Scoring:
        """The columns of some of the items only."""
        columns = replace(self.columns, row=self.columns.row[chosen])
        beside = self.predictions and replace(self.predictions, row=self.predictions.row[chosen])
        return replace(self, columns=columns, predictions=beside)

    def block(self, part: slice) -> NDArray[Any]:
        """The columns of some items."""
        x = self.columns.block(part)
        if self.predictions is None:
            return x
        return np.concatenate([x, (self._factor * self.predictions.block(part)).astype(x.dtype)], axis=1)

    def fit(self, fold: IntArray, trains: NDArray[np.bool_], soft: FloatArray, settings: FeatureSettings) -> CrossFit:
        """The models of all folds, before the first step."""
        width = self.columns.width + (0 if self.predictions is None else self.predictions.width)
        return CrossFit(self.block, fold, trains, soft, self.columns.n_columns, settings.folds, width)

    def scorer(self, slopes: FloatArray) -> Scorer:
        """The scorer for new items, from the mean slopes of all folds, (p, K)."""
        own, beside = slopes[: self.columns.width], slopes[self.columns.width :]
        of_predictions = None
        if self.predictions is not None:
            of_predictions = _map(self.predictions, self._factor * beside)
        return Scorer(self.names, _map(self.columns, own), of_predictions)


def _map(columns: Columns, slopes: FloatArray) -> LinearMap:
    """The map with principal axes folded into the slopes."""
    folded = slopes if columns.axes is None else columns.axes @ slopes
    return LinearMap(columns.kept, columns.mean, columns.sd, folded)
