"""What a study found per dataset and method, after its seeds have been put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean, stdev
from typing import Any, Literal

from rarevote.study.cells import SCORES, CellOutcome


@dataclass(frozen=True)
class Result:
    """One dataset, one method; figures are means over seeds, and None unless ``status`` is "done".

    Attributes:
        dataset: slug of the dataset.
        method: name of the method.
        status: "done", "not applicable", "failed", or "absent" where the dataset is not at hand.
        reason: why there are no figures.
        seeds: how many seeds were run; 1 where the method is not random.
        minority_recall_sd: sample standard deviation over seeds, 0 for a single one.
        n_iter: the most iterations that any seed took.
        converged: whether every seed did.
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

    def figure(self, metric: str) -> float | None:
        """A score, or its deviation, by name."""
        value: float | None = getattr(self, metric)
        return value


#: what ``results.csv`` has of them
RESULT_COLUMNS = tuple(field.name for field in fields(Result) if field.name not in ("status", "reason", "macro_f1_sd"))

#: results by slug of the dataset and name of the method
Results = dict[tuple[str, str], Result]


def put_together(dataset: str, method: str, outcomes: Sequence[CellOutcome]) -> Result:
    """The seeds of one dataset and method as one result; one failed seed spoils it."""
    for outcome in outcomes:
        if outcome.status != "done":
            return Result(dataset, method, outcome.status, outcome.reason)

    def values(name: str) -> list[float]:
        return [float(getattr(outcome, name)) for outcome in outcomes]

    def spread(name: str) -> float:
        return stdev(values(name)) if len(outcomes) > 1 else 0.0

    means: dict[str, Any] = {name: fmean(values(name)) for name in (*SCORES, "seconds")}
    return Result(
        dataset,
        method,
        "done",
        seeds=len(outcomes),
        minority_recall_sd=spread("minority_recall"),
        macro_f1_sd=spread("macro_f1"),
        n_iter=int(max(values("n_iter"))),
        converged=all(outcome.converged for outcome in outcomes),
        **means,
    )
