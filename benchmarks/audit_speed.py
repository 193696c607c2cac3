"""How many CPU seconds do the start of an audit and its rounds take in a crowd of a million items?

    python -m benchmarks.audit_speed [--tasks 1000000] [--votes 5] [--rounds 12]

Writes docs/evidence/audit_speed.csv, all in CPU seconds of all threads, which other work on the machine changes little.
`fit_cpu_seconds` is the fit of the default method on votes in memory, `start_cpu_seconds` all that `rarevote audit
start` does beyond it: probabilities, ranking, strata, the first round, the plan on the disk. `start_over_fit` is fit
and start over the fit; it may be 2 at most. `round_ms` is the median to take in the answers of a round, decide its
bets, plan and draw the next one; `round_ms_max` the longest; 100 at most. `replay_cpu_seconds` is reading the plan
again and replaying all of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import rarevote
from benchmarks import evidence
from rarevote.audit.audit import Audit
from rarevote.crowd.annotations import Annotations
from rarevote.kernels.plain import MAX_PLAIN_CELLS
from rarevote.simulate.crowds import simulate_crowd


def measured(n_tasks: int, votes_per_task: int, n_rounds: int, folder: Path) -> dict[str, object]:
    """The row of one crowd."""
    crowd = simulate_crowd(
        n_tasks, max(n_tasks // 100, 50), imbalance=20, votes_per_task=votes_per_task, random_state=0
    )
    votes = Annotations.from_arrays(*crowd.arrays, classes=[0, 1])
    some = slice(MAX_PLAIN_CELLS)  # smaller crowds are fitted without compiled code
    rarevote.fit(Annotations.from_arrays(*(column[some] for column in crowd.arrays), classes=[0, 1]))  # compiles
    begin = time.process_time()
    fitted = rarevote.fit(votes)
    fit_cpu_seconds = time.process_time() - begin
    begin = time.process_time()
    audit = fitted.audit(1, target=0.9, flag_cost=1.0)
    review = audit.round(100)
    audit.save(folder / "audit.json")
    start_cpu_seconds = time.process_time() - begin
    truth, times = dict(zip(votes.tasks.tolist(), crowd.truth[votes.tasks].tolist(), strict=True)), []
    for _ in range(n_rounds):
        begin = time.process_time()
        audit.answer({task: truth[task] for task in review})
        review = audit.round(100)
        times.append(time.process_time() - begin)
    audit.save(folder / "audit.json")
    begin = time.process_time()
    Audit.load(folder / "audit.json")
    replay_cpu_seconds = time.process_time() - begin
    return {
        "items": n_tasks,
        "votes": votes.n_annotations,
        "fit_cpu_seconds": round(fit_cpu_seconds, 2),
        "start_cpu_seconds": round(start_cpu_seconds, 2),
        "start_over_fit": round((fit_cpu_seconds + start_cpu_seconds) / fit_cpu_seconds, 2),
        "rounds": n_rounds,
        "round_ms": round(1e3 * float(np.median(times)), 1),
        "round_ms_max": round(1e3 * max(times), 1),
        "replay_cpu_seconds": round(replay_cpu_seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--votes", type=int, default=5, help="per task")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        row = measured(options.tasks, options.votes, options.rounds, Path(folder))
    print(row)
    print(evidence.write("audit_speed", [row]))


if __name__ == "__main__":
    main()
