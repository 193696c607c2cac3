"""The results of a study per dataset and method, combined over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np

from rarevote.scoring.ranking import FlagCurve
from rarevote.study.cells import CellOutcome
from rarevote.study.measures import RANKS, SCORES


@dataclass(frozen=True)
class ResultRow:
    """One dataset, one method; figures are means over seeds, and None unless ``status`` is "done".

    Attributes:
        dataset: slug of the dataset.
        method: name of the method.
        status: "done", "not applicable", "failed", or "absent" if the dataset is not available.
        reason: why there are no figures.
        seeds: how many seeds were run; 1 if the method is not random.
        minority_recall_sd: sample standard deviation over seeds, 0 for a single one.
        n_iter: the largest number of iterations of any seed.
        converged: whether every seed converged.
        minority_items: number of items of the rarest true class.
        flagged: number of items labelled so; this and all following figures are on items with truth.
        minority_precision: share of the flagged items that have the class; 0 if there are none.
        average_precision: average precision of the rarest class, from the probabilities.
        mean_average_precision: mean of the average precision over all true classes.
        roc_auc: ROC AUC of the rarest class.
        log_loss: in nats; probabilities below a millionth count as a millionth.
        ece: expected calibration error of the likeliest class.
        recall_at_ds: recall among as many of the highest-ranked items as Dawid–Skene flagged; None if it was not
            run.
        r_precision: recall among as many of the highest-ranked items as truly have the class.
        flags_90: number of highest-ranked items that contain 90% of the class.
        flags_95: likewise for 95%.
        balanced: figures of the balanced rule on the same probabilities, by name.
        curves: found against flagged items, one curve per seed.
    """

    dataset: str
    method: str
    status: Literal["done", "not applicable", "failed", "absent"]
    reason: str = ""
    seeds: int = 0
    minority_recall: float | None = None
    minority_recall_sd: float | None = None
    balanced_accuracy: float | None = None
    macro_f1: float | None = None
    macro_f1_sd: float | None = None
    accuracy: float | None = None
    seconds: float | None = None
    n_iter: int | None = None
    converged: bool | None = None
    minority_items: int | None = None
    flagged: float | None = None
    minority_precision: float | None = None
    average_precision: float | None = None
    mean_average_precision: float | None = None
    roc_auc: float | None = None
    log_loss: float | None = None
    ece: float | None = None
    recall_at_ds: float | None = None
    r_precision: float | None = None
    flags_90: float | None = None
    flags_95: float | None = None
    balanced: dict[str, float] | None = None
    curves: tuple[FlagCurve, ...] = ()

    def figure(self, metric: str) -> float | None:
        """A score, or its deviation, by name."""
        value: float | None = getattr(self, metric)
        return value

    def _per_item(self, flags: float | None) -> float | None:
        return None if flags is None or not self.minority_items else flags / self.minority_items

    @property
    def flags_per_item(self) -> float | None:
        """Items labelled as the rarest class, per item that has it."""
        return self._per_item(self.flagged)

    @property
    def flags_90_per_item(self) -> float | None:
        """Flags for 90% recall, per item of the class."""
        return self._per_item(self.flags_90)

    @property
    def flags_95_per_item(self) -> float | None:
        """Flags for 95% recall, per item of the class."""
        return self._per_item(self.flags_95)

    def recall_at(self, n_flags: float) -> float | None:
        """Recall of the rarest class among this many of the highest-ranked items; the mean over seeds."""
        return fmean(float(curve.recall_at(n_flags)) for curve in self.curves) if self.curves else None


_NOT_WRITTEN = ("status", "reason", "macro_f1_sd", "balanced", "curves")
#: the fields in ``results.csv``
RESULT_COLUMNS = tuple(field.name for field in fields(ResultRow) if field.name not in _NOT_WRITTEN)

#: results by slug of the dataset and name of the method
Results = dict[tuple[str, str], ResultRow]


def put_together(
    dataset: str, method: str, outcomes: Sequence[CellOutcome], reference: Sequence[CellOutcome] = ()
) -> ResultRow:
    """Combine the seeds of one dataset and method into one result; it fails if one seed failed.

    Args:
        reference: outcomes of the method whose number of flags is the reference (Dawid–Skene).
    """
    for outcome in outcomes:
        if outcome.status != "done":
            return ResultRow(dataset, method, outcome.status, outcome.reason)

    def values(name: str) -> list[float]:
        return [float(value) for outcome in outcomes if (value := getattr(outcome, name)) is not None]

    def spread(name: str) -> float:
        return stdev(values(name)) if len(outcomes) > 1 else 0.0

    names = (*SCORES, *RANKS, "flagged", "seconds")
    means: dict[str, Any] = {name: fmean(found) for name in names if (found := values(name))}
    curves = [FlagCurve(np.array(one.curve[0]), np.array(one.curve[1])) for one in outcomes if one.curve]
    flags = [one.flagged for one in reference if one.flagged is not None]
    balanced = [one.balanced for one in outcomes if one.balanced]
    return ResultRow(
        dataset,
        method,
        "done",
        seeds=len(outcomes),
        minority_recall_sd=spread("minority_recall"),
        macro_f1_sd=spread("macro_f1"),
        n_iter=int(max(values("n_iter"))),
        converged=all(outcome.converged for outcome in outcomes),
        minority_items=outcomes[0].minority_items,
        recall_at_ds=fmean(float(curve.recall_at(fmean(flags))) for curve in curves) if flags and curves else None,
        balanced={name: fmean(one[name] for one in balanced) for name in balanced[0]} if balanced else None,
        curves=tuple(curves),
        **means,
    )
