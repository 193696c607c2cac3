"""How long agreement takes on a million votes, beside the default fit on the same votes, one after the other.

    python -m benchmarks.agreement [--votes 1000000] [--repeats 3]

Writes docs/evidence/agreement.csv: seconds of both, the best of the repeats, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import rarevote
from benchmarks import evidence
from rarevote import Annotations, simulate_crowd

#: workers, votes per task, classes
SHAPES = [(2000, 5.0, 2), (2000, 5.0, 5), (20_000, 3.0, 2), (300, 10.0, 3)]


def best_of(repeats: int, run: Callable[[], Any]) -> float:
    """Seconds of the fastest of some runs; the first one compiles and does not count."""
    run()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    rows = []
    for n_workers, per_task, n_classes in SHAPES:
        made = simulate_crowd(
            int(given.votes / per_task), n_workers, votes_per_task=per_task, n_classes=n_classes, random_state=0
        )
        crowd = Annotations.from_arrays(*made.arrays)
        fit = best_of(given.repeats, lambda crowd=crowd: rarevote.AnchoredRasch().fit(crowd))  # type: ignore[misc]
        agreement = best_of(given.repeats, lambda crowd=crowd: rarevote.agreement(crowd))  # type: ignore[misc]
        row = {
            "annotations": crowd.n_annotations,
            "tasks": crowd.n_tasks,
            "workers": n_workers,
            "classes": n_classes,
            "pairs": len(rarevote.agreement(crowd).pairs),
            "seconds_default_fit": f"{fit:.2f}",
            "seconds_agreement": f"{agreement:.2f}",
            "ratio": f"{agreement / fit:.2f}",
        }
        print(*row.values(), sep=", ", flush=True)
        rows.append(row)
    print(evidence.write("agreement", rows))


if __name__ == "__main__":
    main()
