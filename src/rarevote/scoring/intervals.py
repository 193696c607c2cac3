"""Confidence intervals of scores: a bootstrap over items, the same draws for every method.

Each draw takes as many items as there are, with replacement, and computes every score of every method on them; the
interval is from the 2.5th to the 97.5th percentile of the draws. Two methods are compared on the same draws (*paired*),
so that items that are hard for both do not widen the interval of their difference. A draw without an item of a class
has no recall for that class, and is left out for it.

The intervals reflect the choice of *items*: how much the scores would vary if the truth were known for other items.
The calibration error has none: it sums absolute values, so its bootstrap is biased upwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.scoring.ranking import log_losses

N_DRAWS = 1000
LEVEL = 0.95
_SEED = 20_270_101


class ScoreInterval(NamedTuple):
    """A score and the interval around it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ScoreIntervals:
    """Scores with their intervals.

    Attributes:
        overall: balanced_accuracy, macro_f1, accuracy and log_loss.
        recall: recall of every class that occurs in the truth.
        precision: precision of every class that was answered; for a difference, by both methods.
    """

    overall: dict[str, ScoreInterval]
    recall: dict[Hashable, ScoreInterval]
    precision: dict[Hashable, ScoreInterval]

    def figures(self, rare: str) -> dict[str, Any]:
        """The scores for JSON, under the names of :meth:`rarevote.Scores.figures`: value, low and high of each."""
        recall, precision = (
            {str(name): one._asdict() for name, one in part.items()} for part in (self.recall, self.precision)
        )
        return {
            "rare_recall": recall.get(rare),
            "rare_precision": precision.get(rare),
            **{name: one._asdict() for name, one in self.overall.items()},
            "recall": recall,
            "precision": precision,
        }


@dataclass(frozen=True)
class MethodIntervals:
    """The bootstrap intervals of one method.

    Attributes:
        own: its scores.
        difference: its scores minus those of the first method; None for the first.
    """

    own: ScoreIntervals
    difference: ScoreIntervals | None


def draws_of(n_items: int, n_draws: int = N_DRAWS) -> Iterator[IntArray]:
    """The items of each draw, (n_items); always the same."""
    rng = np.random.default_rng(_SEED)
    for _ in range(n_draws):
        yield rng.integers(n_items, size=n_items)


def score_intervals(
    probabilities: Mapping[str, FloatArray],
    labels: Mapping[str, IntArray],
    truth: IntArray,
    classes: Sequence[Hashable],
    *,
    n_draws: int = N_DRAWS,
) -> dict[str, MethodIntervals]:
    """Intervals of every method, and of its difference from the first.

    Args:
        probabilities: of every class and item, by method, (n, K).
        labels: class number of every item by method, (n); negative for no answer, which is a miss.
        truth: true class number, (n).
        classes: names of the K classes.
        n_draws: number of draws.
    """
    names = list(labels)
    # Only the true class and the answers of an item matter: draws count items of each kind.
    kinds, kind = np.unique(np.column_stack([truth, *labels.values()]), axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    losses = np.column_stack([log_losses(probabilities[name], truth) for name in names])
    counts = np.empty((n_draws + 1, len(kinds)))
    loss = np.empty((n_draws + 1, len(names)))
    # The first row is the original data.
    for row, items in enumerate(chain([np.arange(len(truth))], draws_of(len(truth), n_draws))):
        counts[row], loss[row] = np.bincount(kind[items], minlength=len(kinds)), losses[items].mean(axis=0)
    drawn = {
        name: _figures(counts, kinds[:, 0], kinds[:, 1 + place], len(classes)) | {"log_loss": loss[:, place]}
        for place, name in enumerate(names)
    }
    first = drawn[names[0]]
    return {
        name: MethodIntervals(
            _intervals(found, classes),
            None
            if name == names[0]
            else _intervals({figure: values - first[figure] for figure, values in found.items()}, classes),
        )
        for name, found in drawn.items()
    }


def _figures(counts: FloatArray, truth: IntArray, answers: IntArray, n_classes: int) -> dict[str, FloatArray]:
    """Scores of one method in every draw, those of classes as columns; NaN if a draw has none.

    Args:
        counts: how often each kind of item was drawn, (draws, kinds).
        truth: true class of each kind.
        answers: answer of the method to each kind.
        n_classes: number of classes.
    """
    code = np.arange(n_classes)
    is_true, is_answer = truth[:, None] == code, answers[:, None] == code
    n_true, n_answer = counts @ is_true, counts @ is_answer
    hits = counts @ (is_true & is_answer)
    with np.errstate(invalid="ignore"):
        recall, precision = hits / n_true, hits / n_answer
        f1 = 2 * hits / (n_true + n_answer)
    return {
        "recall": recall,
        "precision": precision,
        "balanced_accuracy": np.nanmean(recall, axis=1),
        "macro_f1": np.nanmean(f1, axis=1),
        "accuracy": hits.sum(axis=1) / counts.sum(axis=1),
    }


def _intervals(drawn: Mapping[str, FloatArray], classes: Sequence[Hashable]) -> ScoreIntervals:
    by_class = {
        figure: {
            name: _interval(drawn[figure][:, k]) for k, name in enumerate(classes) if np.isfinite(drawn[figure][0, k])
        }
        for figure in ("recall", "precision")
    }
    overall = ("balanced_accuracy", "macro_f1", "accuracy", "log_loss")
    return ScoreIntervals({figure: _interval(drawn[figure]) for figure in overall}, **by_class)


def _interval(values: NDArray[np.floating]) -> ScoreInterval:
    """The value of the original data, which come first, and the interval of the draws."""
    tails = np.array([1 - LEVEL, 1 + LEVEL]) / 2
    drawn = values[1:][np.isfinite(values[1:])]
    # In no draw: possible for a class with one item and few draws.
    low, high = np.quantile(drawn, tails).tolist() if drawn.size else (float(values[0]),) * 2
    return ScoreInterval(float(values[0]), low, high)
