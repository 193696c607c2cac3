"""Passes of CC-Rasch with and without SQUAREM extrapolation, on every benchmark dataset.

    python -m benchmarks.acceleration

Writes docs/evidence/acceleration.csv, one row a dataset and one with medians. A pass is one run of the fused kernel
over all annotations; they are counted where they are made, so that the first one, those at far points that were not
taken and those that were damped count like any other. (An extrapolated step also reads the difficulties of all tasks
twice, without any annotation; the seconds include that.)

Stopping early would save passes too, so two further columns ask for the same result: the passes until the accelerated
fit first reaches the objective at which the plain one stopped, and the difference of the two objectives when both have
settled. The datasets are looked for in RAREVOTE_DATA.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from math import inf
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote import Annotations, CCRasch
from rarevote.em.local import LocalEngine
from rarevote.em.loop import Progress
from rarevote.errors import ConvergenceWarning
from rarevote.io.read.crowd import read

# More than any of the datasets needs to stop; a fit that ends there is refused.
MOST = 5_000
# After so many nothing moves any more but the last digits.
SETTLED = 1_500
REPEATS = 5
WANTED = 0.60
# Of the objective, relative: what counts as the same.
SAME = 1e-8


@dataclass(frozen=True)
class Run:
    """A fit: passes and objective after each iteration, and how long it all took."""

    passes: list[int]
    objective: list[float]
    seconds: float
    converged: bool


def fit(crowd: Annotations, *, accelerate: bool, n_iter: int = MOST, **options: Any) -> Run:
    count = 0
    passes: list[int] = []
    objective: list[float] = []
    original = LocalEngine.run

    def counted(*args: Any, **keywords: Any) -> Any:
        nonlocal count
        count += 1
        return original(*args, **keywords)

    def told(progress: Progress) -> None:
        passes.append(count)
        objective.append(progress.objective)

    with patch.object(LocalEngine, "run", counted):
        begin = time.perf_counter()
        model = CCRasch(n_iter, accelerate=accelerate, **options).fit(crowd, callback=told)
        seconds = time.perf_counter() - begin
    return Run(passes, objective, seconds, model.converged_)


def passes_until(run: Run, target: float) -> int:
    """Passes until the objective is at least the target."""
    return next(made for made, value in zip(run.passes, run.objective, strict=True) if value >= target)


def measure(slug: str) -> dict[str, Any]:
    crowd = read(DATASETS / slug / "labels.csv").annotations
    plain = fit(crowd, accelerate=False)
    fast = fit(crowd, accelerate=True)
    if not (plain.converged and fast.converged):
        sys.exit(f"{slug}: not converged after {MOST} iterations")
    settled = [fit(crowd, accelerate=accelerate, n_iter=SETTLED, tol=0) for accelerate in (False, True)]
    until = passes_until(settled[1], plain.objective[-1])
    seconds = [inf, inf]
    for _ in range(REPEATS):
        for number, accelerate in enumerate((False, True)):
            seconds[number] = min(seconds[number], fit(crowd, accelerate=accelerate).seconds)
    size = abs(plain.objective[-1])
    row = {
        "dataset": slug,
        "annotations": crowd.n_annotations,
        "classes": crowd.n_classes,
        "passes_plain": plain.passes[-1],
        "passes_accelerated": fast.passes[-1],
        "ratio": fast.passes[-1] / plain.passes[-1],
        "passes_to_the_plain_objective": until,
        "ratio_to_the_plain_objective": until / plain.passes[-1],
        "ratio_of_seconds": seconds[1] / seconds[0],
        "objective_difference": (fast.objective[-1] - plain.objective[-1]) / size,
        "objective_difference_settled": (settled[1].objective[-1] - settled[0].objective[-1]) / size,
    }
    print(*(f"{value:.3g}" if isinstance(value, float) else value for value in row.values()), flush=True)
    return row


def shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}


def main() -> None:
    if len(sys.argv) > 1:
        sys.exit(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = [measure(slug) for slug in sorted(slugs())]
    ratios = [name for name in rows[0] if name.startswith("ratio")]
    middle = {name: median(row[name] for row in rows) for name in ratios}
    worst = {
        name: max((row[name] for row in rows), key=abs) for name in rows[0] if name.startswith("objective_difference")
    }
    summary = {**dict.fromkeys(rows[0], ""), "dataset": f"median ratio, worst difference of {len(rows)}"}
    summary.update(middle | worst)
    wanted = f"ratio at most {WANTED:.2f}, differences at most {SAME:.0e}"
    full = [{**shown(row), "wanted": ""} for row in rows] + [{**shown(summary), "wanted": wanted}]
    print(full[-1])
    print(evidence.write("acceleration", full).relative_to(evidence.REPOSITORY))
    if middle["ratio"] > WANTED or max(abs(value) for value in worst.values()) > SAME:
        sys.exit("does not hold")


if __name__ == "__main__":
    main()
