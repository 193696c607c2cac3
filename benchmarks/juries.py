"""Juries with groups of the same mistakes: are they found, how many independent judges are left, how good are labels.

    python -m benchmarks.juries [--juries 20]

Writes docs/evidence/juries.csv. For each kind of jury (simulate_jury), with 150 gold items and without: the adjusted
Rand index of the groups found, the effective number of independent judges over the planted one, the share of juries
within 20 % of it, how many juries had any cluster and how many the warning; and the accuracy of the default method, of
the same with one judge of each cluster found, of a majority vote and of the best judge alone.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from rarevote import Annotations, simulate_jury
from rarevote.diagnose.shared_errors import ErrorsAlike, errors_alike
from rarevote.simulate.juries import SimulatedJury

N_TASKS, N_GOLD = 2000, 150
WEAK = [[0.95, 0.5]] * 5
JURIES: dict[str, dict[str, Any]] = {
    "5 independent": {"groups": ()},
    "5 independent, weak at the rare class": {"groups": (), "accuracy": WEAK, "imbalance": 7},
    "9 independent of mixed skill": {"n_workers": 9, "groups": (), "accuracy": np.linspace(0.6, 0.95, 9)},
    "3 of 5 share errors": {},
    "3 of 5 share errors, weakly": {"together": 0.65},
    "2 of 5 share errors": {"groups": [(0, 1)]},
    "3 of 5 copy": {"how": "copy"},
    "2 and 2 of 5 share errors, 3 classes": {"groups": [(0, 1), (2, 3)], "n_classes": 3, "imbalance": 4},
    "4 of 9 share errors": {"n_workers": 9, "groups": [(0, 1, 2, 3)]},
    "3 poor of 5 share errors": {"accuracy": [0.65, 0.65, 0.65, 0.9, 0.9]},
}


def rand_index(a: Any, b: Any) -> float:
    """Adjusted Rand index of two partitions (Hubert and Arabie 1985)."""
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1)

    def pairs(counts: Any) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, first, second = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    expected, most = first * second / pairs(np.array([len(a)])), (first + second) / 2
    return 1.0 if most == expected else (both - expected) / (most - expected)


def measured(jury: SimulatedJury, n_gold: int, seed: int) -> dict[str, float]:
    """One jury, fitted by the default method."""
    crowd = Annotations.from_arrays(*jury.arrays)
    chosen = np.random.default_rng(seed).permutation(jury.n_tasks)[:n_gold].tolist()
    gold = {task: int(jury.truth[task]) for task in chosen}
    fitted = rarevote.fit(crowd, gold=gold or None)
    codes = fitted.decide("argmax").codes
    rest = np.setdiff1d(np.arange(jury.n_tasks), chosen)
    known = np.full(jury.n_tasks, -1)
    known[chosen] = jury.truth[chosen]
    found = errors_alike(crowd, gold=known)
    right = jury.label.reshape(jury.n_tasks, -1) == jury.truth[:, None]
    return {
        "rand": rand_index(jury.group, found.group),
        "ratio": found.n_effective / jury.n_effective,
        "alarm": bool(found.clusters),
        "warned": bool(found.warnings),
        "default": (codes == jury.truth)[rest].mean(),
        "majority": (crowd.votes().argmax(axis=1) == jury.truth)[rest].mean(),
        "best": right[rest].mean(axis=0).max(),
        "thinned": (_thinned(jury, found, right[chosen], gold).codes == jury.truth)[rest].mean(),
    }


def _thinned(jury: SimulatedJury, found: ErrorsAlike, right: Any, gold: dict[int, int]) -> Any:
    """The default method on the best judge of each cluster by gold (the first without), and all that are in none."""
    quality = right.mean(axis=0) if len(right) else np.zeros(jury.n_workers)
    kept = np.ones(jury.n_workers, dtype=bool)
    for cluster in found.clusters:
        kept[cluster.members] = False
        kept[cluster.members[quality[cluster.members].argmax()]] = True
    counted = kept[jury.worker]
    return rarevote.fit(tuple(column[counted] for column in jury.arrays), gold=gold or None).decide("argmax")


def summary(name: str, n_gold: int, runs: list[dict[str, float]], planted: float) -> dict[str, Any]:
    """A row of the evidence."""
    table = {key: np.array([run[key] for run in runs], dtype=float) for key in runs[0]}
    return {
        "jury": name,
        "gold": n_gold,
        "juries": len(runs),
        "mean_adjusted_rand": f"{table['rand'].mean():.3f}",
        "planted_effective": f"{planted:.2f}",
        "mean_effective_over_planted": f"{table['ratio'].mean():.3f}",
        "within_20_percent": f"{(np.abs(table['ratio'] - 1) <= 0.2).mean():.2f}",
        "juries_with_a_cluster": int(table["alarm"].sum()),
        "juries_warned_of": int(table["warned"].sum()),
        "accuracy_default": f"{table['default'].mean():.4f}",
        "accuracy_default_one_of_each_cluster": f"{table['thinned'].mean():.4f}",
        "accuracy_majority_vote": f"{table['majority'].mean():.4f}",
        "accuracy_best_judge": f"{table['best'].mean():.4f}",
    }


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--juries", type=int, default=20)
    given = parser.parse_args()
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, parameters in JURIES.items():
            for n_gold in (N_GOLD, 0):
                # Alarms on independent judges are rare: five times as many.
                count = given.juries * (1 if parameters.get("groups", True) else 5)
                made = [simulate_jury(N_TASKS, random_state=s, **parameters) for s in range(count)]
                runs = [measured(jury, n_gold, seed) for seed, jury in enumerate(made)]
                rows.append(summary(name, n_gold, runs, made[0].n_effective))
                print(*rows[-1].values(), sep=", ", flush=True)
                path = evidence.write("juries", rows)  # a long run that is stopped leaves what it has
    print(path)


if __name__ == "__main__":
    main()
