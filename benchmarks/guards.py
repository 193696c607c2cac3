"""What the guards keep from happening: labels that nobody voted for, and made-up answers where nobody can know.

    python -m benchmarks.guards [--datasets cf web] [--methods glad] [--crowds 1000]

Writes docs/evidence/guards.csv: for each real dataset (found through RAREVOTE_DATA) and each method that needs neither
gold nor weights, how many labels nobody voted for on their task, as decided and without the guard; and for random
crowds with one vote an item, the share of crowds whose labels are the votes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote.crowd.annotations import Annotations
from rarevote.errors import InputError, ParameterError
from rarevote.methods.registry import METHODS, methods_that

NEEDS_MORE = ("crowdfm", *methods_that("needs_gold"))  # weights, or gold
RUNNABLE = [name for name in METHODS if name not in NEEDS_MORE]
SLOW = {"mace"}  # starts many times over: a twentieth of the random crowds must do
_EMPTY = {
    "items": "",
    "unvoted": "",
    "unvoted_without_guard": "",
    "share_equal_to_votes": "",
    "seconds": "",
    "note": "",
}


def dataset_rows(chosen: list[str], methods: list[str]) -> list[dict[str, Any]]:
    """Labels that nobody voted for, per dataset and method."""
    rows = []
    for slug in chosen:
        crowd = rarevote.read(DATASETS / slug / "labels.csv")
        voted = crowd.annotations.votes() > 0
        items = np.arange(len(voted))
        for method in methods:
            row = {"what": slug, "method": method, **_EMPTY, "items": len(voted)}
            begin = time.perf_counter()
            try:
                fitted = rarevote.fit(crowd, method)
            except (InputError, ParameterError) as error:
                rows.append({**row, "note": str(error)})
                continue
            guarded, free = fitted.decide(), fitted.decide(allow_unvoted=True)
            row["unvoted"] = int((~voted[items, guarded.codes]).sum())
            row["unvoted_without_guard"] = int((~voted[items, free.codes]).sum())
            row["seconds"] = f"{time.perf_counter() - begin:.2f}"
            rows.append(row)
            print(*row.values(), sep=", ", flush=True)
    return rows


def random_crowd(seed: int) -> Annotations:
    """One vote an item, by 2 to 9 annotators, of two classes (plat knows no more)."""
    rng = np.random.default_rng(seed)
    n_tasks = int(rng.integers(2, 60))
    worker = rng.integers(0, int(rng.integers(2, 10)), n_tasks)
    label = (rng.random(n_tasks) < rng.uniform(0.05, 0.95)).astype(int)
    return Annotations.from_arrays(np.arange(n_tasks), worker, label, classes=[0, 1])


def one_vote_rows(methods: list[str], n_crowds: int) -> list[dict[str, Any]]:
    """Share of random crowds whose labels are the votes, per method."""
    rows = []
    for method in methods:
        begin = time.perf_counter()
        equal, count = 0, n_crowds // 20 if method in SLOW else n_crowds
        for seed in range(count):
            crowd = random_crowd(seed)
            result = rarevote.fit(crowd, method).decide()
            equal += bool((result.codes == crowd.label).all())
        row = {"what": f"{count} random crowds, one vote an item", "method": method, **_EMPTY}
        rows.append({**row, "share_equal_to_votes": equal / count, "seconds": f"{time.perf_counter() - begin:.2f}"})
        print(*rows[-1].values(), sep=", ", flush=True)
    return rows


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--datasets", nargs="*", help="names of folders; default: all")
    parser.add_argument("--methods", nargs="*", default=RUNNABLE)
    parser.add_argument("--crowds", type=int, default=1000)
    given = parser.parse_args()
    folders = sorted(path.parent.name for path in DATASETS.glob("*/labels.csv"))
    chosen = given.datasets or list(dict.fromkeys([*(slug for slug in slugs() if slug in folders), *folders]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = dataset_rows(chosen, given.methods) + one_vote_rows(given.methods, given.crowds)
    print(evidence.write("guards", rows))


if __name__ == "__main__":
    main()
