"""What `check` says of real crowds, beside how right their labels are; and its false alarms about its own models.

    python -m benchmarks.check [--crowds 25]

Writes docs/evidence/check.csv. Real crowds are found through RAREVOTE_DATA: the verdict on the labels of the default
method, its reasons, and the labels against the truth, which the check does not see. For the false alarms, a model that
was fitted to a simulated crowd casts the votes again, is fitted to them, and is asked whether it explains them: so
they were made.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from typing import Any

import numpy as np

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote.crowd.annotations import Annotations
from rarevote.diagnose.model_fit import model_fit
from rarevote.methods.vote_model import SomeVotes
from rarevote.simulate.crowds import simulate_crowd

METHODS = ("anchored-rasch", "cc-rasch", "dawid-skene", "one-coin")
SIZES = (50, 200, 800)  # items
_EMPTY = {"verdict": "", "reasons": "", "accuracy": "", "balanced_accuracy": "", "crowds": "", "alarms": ""}


def real_rows() -> list[dict[str, Any]]:
    rows = []
    for slug in slugs():
        fitted = rarevote.fit(DATASETS / slug / "labels.csv")
        result = fitted.decide()
        found, scores = fitted.check(result), result.score(DATASETS / slug / "truth.csv")
        verdict, _, reasons = found.verdict.partition(": ")
        rows.append(
            {
                "what": slug,
                "method": "anchored-rasch",
                **_EMPTY,
                "verdict": verdict.partition(",")[0],
                "reasons": reasons,
                "accuracy": f"{scores['accuracy']:.4f}",
                "balanced_accuracy": f"{scores['balanced_accuracy']:.4f}",
            }
        )
        print(*rows[-1].values(), sep=" | ", flush=True)
    return rows + summary(rows)


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean over the crowds with each verdict."""
    by_verdict: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_verdict[row["verdict"]].append(row)

    def mean(some: list[dict[str, Any]], name: str) -> str:
        return f"{np.mean([float(row[name]) for row in some]):.4f}"

    return [
        {
            "what": "mean of real crowds",
            "method": "anchored-rasch",
            **_EMPTY,
            "verdict": verdict,
            **{name: mean(some, name) for name in ("accuracy", "balanced_accuracy")},
            "crowds": len(some),
        }
        for verdict, some in sorted(by_verdict.items())
    ]


def cast_again(method: str, n_tasks: int, seed: int) -> Any:
    """A crowd whose votes a fitted model of this method has cast."""
    crowd = simulate_crowd(n_tasks, 20, n_classes=2 + seed % 2, votes_per_task=5, random_state=seed)
    estimator = rarevote.fit(crowd.arrays, method).method
    votes = SomeVotes.of(estimator.annotations_)
    model = estimator.vote_model(votes)
    label = model.draw(np.random.default_rng(seed))
    return Annotations.from_arrays(votes.task, votes.worker, label, classes=range(votes.n_classes))


def simulated_rows(n_crowds: int) -> list[dict[str, Any]]:
    rows = []
    for method in METHODS:
        for n_tasks in SIZES:
            alarms = 0
            for seed in range(n_crowds):
                found = model_fit(rarevote.fit(cast_again(method, n_tasks, seed), method).method)
                alarms += found is not None and bool(found.off or found.pairs)
            row = {"what": f"its own crowds, {n_tasks} items", "method": method, **_EMPTY}
            rows.append({**row, "crowds": n_crowds, "alarms": alarms})
            print(*rows[-1].values(), sep=" | ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crowds", type=int, default=25, help="of each method and size")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [*real_rows(), *simulated_rows(options.crowds)]
    print(evidence.write("check", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
