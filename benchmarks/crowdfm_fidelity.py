"""CrowdFM's minority recall on every dataset, mean over seeds, beside the paper's printed row.

    python -m benchmarks.crowdfm_fidelity [--weights FILE] [--seeds 8]

Writes docs/evidence/crowdfm_fidelity.csv. The weights are the authors' file, which RAREVOTE_CROWDFM or --weights
names; the datasets are looked for in RAREVOTE_DATA. A row counts as near if it is within 0.03, or within three of the
paper's printed standard deviations. The last line sums up.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
from tests.benchmark_data import Row, datasets, load, scores

from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote import Annotations, CrowdFM, MajorityVote
from rarevote.methods.crowdfm.estimator import WEIGHTS_VARIABLE

CLOSE = 0.03
DEVIATIONS = 3


def printed_rows(shared: Path) -> dict[str, dict[str, str]]:
    with (shared / "paper" / "results_per_dataset.csv").open(newline="", encoding="utf-8") as handle:
        return {row["dataset"]: row for row in csv.DictReader(handle) if row["method"] == "CrowdFM"}


def compared(shared: Path, row: Row, printed: dict[str, str], weights: str, n_seeds: int) -> dict[str, Any]:
    task, worker, label, truth = load(shared, row.slug)
    crowd = Annotations.from_arrays(task, worker, label)
    recalls = [
        scores(truth, CrowdFM(1, random_state=seed, weights=weights).fit(crowd).labels_.to_dict())[0]
        for seed in range(n_seeds)
    ]
    vote = scores(truth, MajorityVote().fit(crowd).labels_.to_dict())[0]
    paper, spread = float(printed["minority_recall"]), float(printed["minority_recall_sd"])
    allowed = max(CLOSE, DEVIATIONS * spread)
    gap = abs(float(np.mean(recalls)) - paper)
    return {
        "dataset": row.slug,
        "annotations": crowd.n_annotations,
        "recall": round(float(np.mean(recalls)), 4),
        "recall_sd": round(float(np.std(recalls, ddof=1)), 4) if n_seeds > 1 else "",
        "recall_paper": paper,
        "recall_paper_sd": spread,
        "gap": round(gap, 4),
        "allowed": round(allowed, 4),
        "near": int(gap <= allowed),
        "near_majority_vote": int(abs(vote - paper) <= allowed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", default=os.environ.get(WEIGHTS_VARIABLE), help="the authors' weights file")
    parser.add_argument("--seeds", type=int, default=8, help="how many draws of the option vectors")
    options = parser.parse_args()
    if not options.weights:
        parser.error(f"name the weights file with --weights or {WEIGHTS_VARIABLE}")
    shared = DATASETS.resolve().parent
    printed = printed_rows(shared)
    rows = []
    for row in datasets(shared):
        rows.append(compared(shared, row, printed[row.paper_name], options.weights, options.seeds))
        print(*rows[-1].values(), flush=True)
    # `near` of the last line counts rows; the rest are means.
    rows.append(
        {
            **dict.fromkeys(rows[0], ""),
            "dataset": f"all {len(rows)}",
            **{
                name: round(float(np.mean([row[name] for row in rows])), 4)
                for name in ("recall", "recall_paper", "gap")
            },
            **{name: sum(row[name] for row in rows) for name in ("near", "near_majority_vote")},
        }
    )
    print(*rows[-1].values())
    print(evidence.write("crowdfm_fidelity", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
