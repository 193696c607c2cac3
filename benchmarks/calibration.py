"""What the vote sampler costs, and whether a chain that ends by itself says what a long one says.

    python -m benchmarks.calibration [--seeds 5]

Writes docs/evidence/calibration.csv. Made-up crowds of several sizes (5 votes a task, class k as frequent as 1/k):
sweeps and processor seconds until the class shares are known well enough, beside those of 2 000 sweeps, which every
small crowd took before. Simulated crowds (`simulate_crowd`): prevalence intervals of both, against the truth.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import evidence
from rarevote.crowd.annotations import Annotations
from rarevote.decide.sampled import sample_crowd
from rarevote.decide.sampler import VoteSampler
from rarevote.simulate.crowds import simulate_crowd

SIZES = [(2, 2, 3), (100, 2, 10), (1000, 2, 50), (10_000, 2, 100), (5000, 10, 100), (5000, 100, 100)]
LONG = 2000
Row = dict[str, Any]


def made_up(n_tasks: int, n_classes: int, n_workers: int, seed: int = 0) -> Annotations:
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, n_classes + 1)
    truth = rng.choice(n_classes, n_tasks, p=share / share.sum())
    task, worker = np.repeat(np.arange(n_tasks), 5), rng.integers(0, n_workers, 5 * n_tasks)
    is_right = rng.random(5 * n_tasks) < rng.beta(8, 3, n_workers)[worker]
    label = np.where(is_right, truth[task], rng.integers(0, n_classes, 5 * n_tasks))
    return Annotations.from_arrays(task, worker, label, classes=list(range(n_classes)))


def cost(n_tasks: int, n_classes: int, n_workers: int) -> Row:
    crowd = made_up(n_tasks, n_classes, n_workers)
    sampler = VoteSampler(crowd, np.full(n_tasks, -1, dtype=np.int32), 0)
    sweep, counts = sampler.sweep, [0]

    def counting() -> tuple[NDArray[Any], NDArray[Any]]:
        counts[0] += 1
        return sweep()

    sampler.sweep = counting  # type: ignore[method-assign]
    begin = time.process_time()
    sampler.run(400)
    seconds = time.process_time() - begin
    size = f"{n_tasks:,} tasks, {n_classes} classes"
    return {
        "crowd": size,
        "sweeps": counts[0],
        "cpu_seconds": round(seconds, 2),
        "cpu_seconds_of_2000_sweeps": round(seconds * LONG / counts[0], 1),
    }


def prevalence(votes: Annotations, **options: Any) -> tuple[float, float, float]:
    """Share of the second class over the draws: lower end of its interval (95%), mean, upper end."""
    draws = sample_crowd(votes, np.full(votes.n_tasks, -1), **options)
    shares = (draws.classes == 1).mean(axis=1)
    low, high = np.quantile(shares, (0.025, 0.975)).tolist()
    return low, float(shares.mean()), high


def coverage(n_tasks: int, imbalance: int, n_seeds: int) -> Row:
    """How many prevalence intervals (95%) hold the truth, and how far apart the two estimates are."""
    short_covers, long_covers, apart = 0, 0, []
    for seed in range(n_seeds):
        crowd = simulate_crowd(n_tasks, imbalance=imbalance, random_state=seed)
        votes, share = Annotations.from_arrays(*crowd.arrays, classes=[0, 1]), float((crowd.truth == 1).mean())
        low, short, high = prevalence(votes)
        from_, long, to = prevalence(votes, n_sweeps=LONG, random_state=1)
        short_covers += bool(low <= share <= high)
        long_covers += bool(from_ <= share <= to)
        apart.append(abs(short - long) / (to - from_))
    return {
        "crowd": f"simulate_crowd, {n_tasks:,} tasks, imbalance {imbalance}",
        "crowds": n_seeds,
        "interval_holds": short_covers,
        "interval_of_2000_sweeps_holds": long_covers,
        "mean_difference_in_widths_of_the_interval": round(float(np.mean(apart)), 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="simulated crowds of each kind")
    options = parser.parse_args()
    rows: list[Row] = []
    for size in SIZES:
        rows.append(cost(*size))
        print(rows[-1], flush=True)
    for n_tasks, imbalance in ((3000, 7), (6000, 30)):
        rows.append(coverage(n_tasks, imbalance, options.seeds))
        print(rows[-1], flush=True)
    names = list(dict.fromkeys(name for row in rows for name in row))
    written = evidence.write("calibration", [{name: row.get(name, "") for name in names} for row in rows])
    print(written.relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
