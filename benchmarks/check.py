"""What `check` says of real crowds, beside how right their labels are; and its false alarms about its own models.

    python -m benchmarks.check [--only real,simulated] [--crowds 25]

Real crowds are found through RAREVOTE_DATA. Writes docs/evidence/verdict.csv: the verdict on the labels of the default
method, the accuracy that it goes by, and the labels against the truth, which the check does not see; then the rank
correlation (Spearman) of the expected accuracy with the true one, and the area under the curve (AUC) of telling
accuracies of at least 0.8 from others. Beside both, those of the verdict of version 0.2, which was that of the gravest
finding: docs/evidence/verdict_before.csv has it as measured then.
Writes docs/evidence/check.csv, the false alarms: a model that was fitted to a simulated crowd casts the votes again, is
fitted to them, and is asked whether it explains them: so they were made.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote.crowd.annotations import Annotations
from rarevote.diagnose.check import check_fit
from rarevote.diagnose.model_fit import model_fit
from rarevote.diagnose.verdict import VERDICTS
from rarevote.methods.vote_model import SomeVotes
from rarevote.simulate.crowds import simulate_crowd

METHODS = ("anchored-rasch", "cc-rasch", "dawid-skene", "one-coin")
SIZES = (50, 200, 800)  # items
_GRAVITY = {"can be used": 2, "use with care": 1, "do not use": 0}
_RIGHT = 0.8


def real_rows() -> list[dict[str, Any]]:
    before = {row["what"]: row["verdict"] for row in evidence.read("verdict_before")}
    rows: list[dict[str, Any]] = []
    for slug in slugs(match="exact"):
        fitted = rarevote.fit(DATASETS / slug / "labels.csv")
        result = fitted.decide()
        scores = result.score(DATASETS / slug / "truth.csv")
        # The verdict does not depend on how the model casts the votes again.
        found = check_fit(
            fitted.method, result.probabilities, result.decision, result.notes, rare=fitted.rare, n_replicates=3
        )
        rows.append(
            {
                "dataset": slug,
                "verdict": VERDICTS[found.weight],
                "expected_accuracy": round(found.accuracy.value, 4),
                "low": round(found.accuracy.low, 4),
                "high": round(found.accuracy.high, 4),
                "verdict_before": before[slug],
                "leans_to": found.leaning.world or "",
                "accuracy": round(scores["accuracy"], 4),
                "balanced_accuracy": round(scores["balanced_accuracy"], 4),
            }
        )
        print(*rows[-1].values(), sep=" | ", flush=True)
    return [*rows, *ranks(rows), *means(rows)]


def ranks(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How well the expected accuracy, and the verdict of before, rank crowds by their true accuracy."""
    truth = np.array([row["accuracy"] for row in rows])
    numbers = {
        "expected_accuracy": np.array([row["expected_accuracy"] for row in rows]),
        "verdict_before": np.array([_GRAVITY[row["verdict_before"]] for row in rows]),
    }
    blank = dict.fromkeys(rows[0], "")
    correlation = {name: round(float(spearmanr(one, truth).statistic), 3) for name, one in numbers.items()}
    areas = {name: round(area_under(one, truth >= _RIGHT), 3) for name, one in numbers.items()}
    return [{**blank, "dataset": "rank correlation", **correlation}, {**blank, "dataset": "AUC", **areas}]


def area_under(number: NDArray[Any], is_right: NDArray[np.bool_]) -> float:
    """Share of the pairs of a right and a wrong crowd that the number puts in order; half of those that it ties."""
    apart = np.sign(number[is_right][:, None] - number[~is_right])
    return float((apart + 1).mean() / 2)


def means(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The mean over the crowds with each verdict."""
    found = []
    for verdict in VERDICTS.values():
        mine = [row for row in rows if row["verdict"] == verdict]
        if mine:
            accuracy = {name: round(float(np.mean([row[name] for row in mine])), 4) for name in _MEANS}
            found.append(
                {**dict.fromkeys(rows[0], ""), "dataset": f"mean of {len(mine)}", "verdict": verdict, **accuracy}
            )
    return found


_MEANS = ("expected_accuracy", "accuracy", "balanced_accuracy")


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
            row = {"what": f"its own crowds, {n_tasks} items", "method": method}
            rows.append({**row, "crowds": n_crowds, "alarms": alarms})
            print(*rows[-1].values(), sep=" | ", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="real,simulated")
    parser.add_argument("--crowds", type=int, default=25, help="of each method and size")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if "real" in options.only:
        print(evidence.write("verdict", real_rows()).relative_to(evidence.REPOSITORY))
    if "simulated" in options.only:
        print(evidence.write("check", simulated_rows(options.crowds)).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
