"""What deciding costs beside the fit, and whether a class that is rarer than people's mistakes is told of.

    python -m benchmarks.deciding [--tasks 100000]

Writes docs/evidence/deciding.csv: seconds of the fit and of the decision of the default method on a simulated crowd of
five votes an item, in one process after a first fit that compiles; and for simulated crowds at 0.5 % (a quarter of the
annotators bad), for the real datasets (found through RAREVOTE_DATA) and for the example that comes along, the agreement
on the rare class beyond chance, how many of the items labelled so are, and whether there is a warning.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.io.read.votes import read_truth_file
from rarevote.methods.registry import DEFAULT_METHOD
from rarevote.simulate.crowds import simulate_crowd
from rarevote.simulate.files import example_files


def row_of(what: str, data: Any, truth: Any) -> dict[str, Any]:
    """One crowd: times, agreement, precision, warning."""
    crowd = rarevote.read(data)
    begin = time.perf_counter()
    fitted = rarevote.fit(crowd)
    middle = time.perf_counter()
    result = fitted.decide()
    end = time.perf_counter()
    known: Mapping[Any, Any] = fitted.crowd.known(truth)
    flagged = result.codes == fitted.rare.code
    true = [known[task] == fitted.rare.name for task in result.tasks[flagged].tolist() if task in known]
    row = {
        "what": what,
        "method": DEFAULT_METHOD,
        "items": len(flagged),
        "fit_seconds": f"{middle - begin:.3f}",
        "decide_seconds": f"{end - middle:.3f}",
        "decide_to_fit": f"{(end - middle) / (middle - begin):.3f}",
        "labelled_rare": int(flagged.sum()),
        "agreement_on_rare": f"{agreement(fitted):.3f}",
        "precision_of_rare": f"{np.mean(true):.3f}" if true else "",
        "warning": any("hardly agree" in message for message in result.warnings),
    }
    print(*row.values(), sep=", ", flush=True)
    return row


def agreement(fitted: rarevote.Fitted) -> float:
    """Agreement on the class that matters beyond chance: Fleiss' kappa of one category."""
    votes = fitted.annotations.votes()
    mine, total = votes[:, fitted.rare.code], votes.sum(axis=1)
    share = mine.sum() / total.sum()
    joined = (mine * (mine - 1)).sum() / (mine * (total - 1)).sum()
    return float((joined - share) / (1 - share))


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=100_000)
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rarevote.fit(simulate_crowd(200, random_state=0).arrays).decide()  # compiled, or loaded
        large = simulate_crowd(given.tasks, 1000, votes_per_task=5.0, random_state=0)
        rows = [row_of("simulated, 1 : 7", large.arrays, dict(enumerate(large.truth.tolist())))]
        for seed in range(5):
            crowd = simulate_crowd(imbalance=199.0, random_state=seed)
            rows.append(row_of(f"simulated at 0.5 %, seed {seed}", crowd.arrays, dict(enumerate(crowd.truth.tolist()))))
        files = example_files()
        rows.append(row_of("example", files.labels, files.truth))
        folders: list[Path] = sorted(path.parent for path in DATASETS.glob("*/labels.csv"))
        rows += [
            row_of(folder.name, folder / "labels.csv", read_truth_file(folder / "truth.csv")) for folder in folders
        ]
    print(evidence.write("deciding", rows))


if __name__ == "__main__":
    main()
