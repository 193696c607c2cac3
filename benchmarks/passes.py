"""How many passes CC-Rasch takes on large crowds: abilities mixed alone with slow tasks solved, and SQUAREM.

    python -m benchmarks.passes [--tasks 1_000_000]

Writes docs/evidence/passes.csv. Passes are counted where they are made, those that were not taken included; a vote that
is visited once more to solve a slow task counts as the part of a pass that it is. A pass that may solve tasks costs
more than one that does not: the ratio of the seconds of both fits says what is left of the gain.
"""

from __future__ import annotations

import argparse
import time
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks import evidence
from benchmarks.netease import N_CLASSES, N_WORKERS, VOTES_PER_TASK
from rarevote import Annotations, CCRasch, simulate_crowd
from rarevote.em.local import LocalEngine
from rarevote.methods.cc_rasch import estimator


def fitted(crowd: Annotations, *, profiled: bool) -> tuple[float, float, CCRasch]:
    """Pass equivalents, seconds of the processor, and the fit."""
    made = 0.0
    original = LocalEngine.run

    def counted(*args: Any, **keywords: Any) -> Any:
        nonlocal made
        stats, change = original(*args, **keywords)
        made += 1.0 + stats.scalars[2] / crowd.n_annotations
        return stats, change

    limit = 0 if profiled else crowd.n_annotations
    with patch.object(LocalEngine, "run", counted), patch.object(estimator, "_MAX_UNPROFILED_VOTES", limit):
        begin = time.process_time()
        model = CCRasch(n_jobs=1).fit(crowd)
        return made, time.process_time() - begin, model


def measured(title: str, crowd: Annotations, at_most: int) -> dict[str, Any]:
    CCRasch(1, tol=0).fit(crowd)  # compiled
    passes, seconds, model = fitted(crowd, profiled=True)
    passes_squarem, seconds_squarem, squarem = fitted(crowd, profiled=False)
    differ = int((model.posterior_.argmax(axis=1) != squarem.posterior_.argmax(axis=1)).sum())
    row = {
        "crowd": title,
        "annotations": crowd.n_annotations,
        "passes": f"{passes:.1f}",
        "wanted": f"at most {at_most}",
        "passes_squarem": f"{passes_squarem:.0f}",
        "seconds_ratio": f"{seconds / seconds_squarem:.3g}",
        "objective_gain": f"{model.loss_history_[-1] - squarem.loss_history_[-1]:.2g}",
        "labels_that_differ": differ,
        "largest_difference": f"{np.abs(model.posterior_ - squarem.posterior_).max():.2g}",
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    n_tasks = parser.parse_args().tasks
    rows = []
    for seed in (0, 1, 2):
        simulated = simulate_crowd(
            n_tasks, N_WORKERS, n_classes=N_CLASSES, votes_per_task=VOTES_PER_TASK, imbalance=5.0, random_state=seed
        )
        crowd = Annotations.from_arrays(*simulated.arrays)
        rows.append(measured(f"NetEase's size, K = {N_CLASSES}, seed {seed}", crowd, 22))
    for imbalance in (1.0, 5.0):
        simulated = simulate_crowd(n_tasks, 20_000, n_classes=2, votes_per_task=5, imbalance=imbalance, random_state=0)
        crowd = Annotations.from_arrays(*simulated.arrays)
        rows.append(measured(f"5 votes a task, K = 2, imbalance {imbalance:g}", crowd, 28))
    print(evidence.write("passes", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
