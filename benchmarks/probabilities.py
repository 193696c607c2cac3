"""What probabilities are worth on real crowds: the one that results report, beside the posterior as published.

    python -m benchmarks.probabilities

Writes docs/evidence/probabilities.csv: log loss and calibration error of both, for every method that needs neither gold
nor a weights file, on each dataset; then means. Methods for two classes have the binary datasets only. The datasets are
looked for in RAREVOTE_DATA.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.datasets import DATASETS, slugs
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.frames import read_truth
from rarevote.methods.registry import METHODS
from rarevote.scoring.ranking import calibration_error, log_loss_of

NAMES = [name for name, entry in METHODS.items() if not entry.capabilities.needs_gold and name != "crowdfm"]
Row = dict[str, Any]


def figures(p: NDArray[Any], truth: NDArray[np.int64]) -> tuple[float, float]:
    """Log loss, and calibration error of the most probable class."""
    return log_loss_of(p, truth), calibration_error(p.max(axis=1), p.argmax(axis=1) == truth)


def rows_of(slug: str) -> list[Row]:
    truth = read_truth(str(DATASETS / slug / "truth.csv"))
    # A class that only the truth names is a class.
    crowd = rarevote.read(DATASETS / slug / "labels.csv", classes=sorted({str(label) for label in truth.values()}))
    votes = crowd.annotations
    number = {name: k for k, name in enumerate(votes.classes.tolist())}
    known = np.array([number[truth[task]] if task in truth else -1 for task in votes.task_names().tolist()])
    items = np.flatnonzero(known >= 0)
    rows = []
    for name in NAMES:
        try:
            fitted = rarevote.fit(crowd, name, use_gold=False)
        except (InputError, ParameterError):
            continue  # two classes only
        loss, error = figures(fitted.probabilities[items], known[items])
        posterior_loss, posterior_error = figures(fitted.method.posterior_[items], known[items])
        row = {
            "dataset": slug,
            "method": name,
            "log_loss": loss,
            "calibration_error": error,
            "posterior_log_loss": posterior_loss,
            "posterior_calibration_error": posterior_error,
        }
        rows.append(row)
        print(*row.values(), flush=True)
    return rows


def main() -> None:
    warnings.simplefilter("ignore")
    rows = [row for slug in slugs(match="exact") for row in rows_of(slug)]
    for name in NAMES:
        own = [row for row in rows if row["method"] == name]
        means = {key: float(np.mean([row[key] for row in own])) for key in own[0] if key not in ("dataset", "method")}
        rows.append({"dataset": f"mean of {len(own)}", "method": name, **means})
    shown = [{key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()} for row in rows]
    print(evidence.write("probabilities", shown).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
