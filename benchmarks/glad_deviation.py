"""GLAD's penalised objective at our solution beside crowd-kit's, with minority recall of both and of the paper.

    python -m benchmarks.glad_deviation [--all | DATASET ...]

Writes docs/evidence/glad_deviation.csv. By default: the datasets whose recall is further than 0.01 from the paper, and
the small ones (crowd-kit needs 46 s for `dog` and 15 minutes for `trec`). crowd-kit runs in the Python that
CROWDKIT_PYTHON names, or else in this one; the datasets are looked for in RAREVOTE_DATA.

`objective_continued` is where our EM ends when it starts from crowd-kit's parameters: near `objective`, crowd-kit
stopped early on the way to our optimum; near `objective_crowdkit`, it had found another.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.benchmark_data import Row, datasets, load, paper_row, scores

from benchmarks import evidence
from benchmarks.datasets import DATASETS
from rarevote.crowd.annotations import Annotations
from rarevote.em.local import LocalEngine
from rarevote.em.loop import StoppingRule, run_em
from rarevote.em.model import Shard
from rarevote.methods.glad.estimator import GLAD
from rarevote.methods.glad.model import GLADLocal, GLADModel, GLADShared

SMALL = 2_500
OFF = 0.01

_CROWDKIT = """
import json, sys, warnings
warnings.filterwarnings("ignore")
import pandas as pd
from crowdkit.aggregation import GLAD
frame = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
model = GLAD().fit(frame)
json.dump({"alphas": model.alphas_.to_dict(), "betas": model.betas_.to_dict(), "labels": model.labels_.to_dict()},
          sys.stdout)
"""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FromParameters(GLADModel):
    """GLAD started from given parameters; for crowds of one shard."""

    given_alpha: Floats = field(default_factory=lambda: np.empty(0))
    given_easiness: Floats = field(default_factory=lambda: np.empty(0))

    def start(self) -> GLADShared:
        return GLADShared(self.given_alpha, 0.0, self.log_prior)

    def start_local(self, shard: Shard) -> GLADLocal:
        n, K = shard.task_ptr.size - 1, self.log_prior.size
        return GLADLocal(np.full((n, K), 1.0 / K), self.given_easiness)


def objectives(crowd: Annotations, alpha: Floats, easiness: Floats) -> tuple[float, float]:
    """``F`` at the parameters, and at the optimum that EM reaches from them."""
    plain = GLAD()._model(crowd)
    model = FromParameters(**vars(plain), given_alpha=alpha, given_easiness=easiness)
    shared = model.start()
    with LocalEngine(model, crowd, np.empty(0, np.int32), n_jobs=1) as engine:
        stats, _ = engine.run(shared, refresh=True, damping=0.0)
        here = model.objective(shared, stats)
        engine.advance()
        rule = StoppingRule(10_000, np.inf, 1e-9 * crowd.n_annotations)
        outcome = run_em(model, engine, model.update(shared, stats, 0.0), rule)
    return here, outcome.history[-1]


def compared(shared: Path, row: Row, python: str) -> dict[str, Any]:
    task, worker, label, truth = load(shared, row.slug)
    ours = GLAD().fit((task, worker, label))
    shown = subprocess.run(
        [python, "-c", _CROWDKIT, str(shared / "datasets" / row.slug / "labels.csv")],
        check=True,
        capture_output=True,
        text=True,
    )
    theirs = json.loads(shown.stdout)
    crowd = ours.annotations_
    alpha = np.array([theirs["alphas"][name] for name in crowd.workers.tolist()])
    easiness = np.array([theirs["betas"][name] for name in crowd.tasks.tolist()])
    there, continued = objectives(crowd, alpha, easiness)
    labels = ours.labels_.to_dict()
    return {
        "dataset": row.slug,
        "annotations": crowd.n_annotations,
        "objective": round(ours.loss_history_[-1], 3),
        "objective_crowdkit": round(there, 3),
        "objective_continued": round(continued, 3),
        "recall": round(scores(truth, labels)[0], 4),
        "recall_crowdkit": round(scores(truth, theirs["labels"])[0], 4),
        "recall_paper": paper_row(shared, row.paper_name, "GLAD")[0],
        "labels_that_differ": sum(labels[name] != theirs["labels"][name] for name in labels),
    }


def is_off_or_small(shared: Path, row: Row) -> bool:
    task, worker, label, truth = load(shared, row.slug)
    if len(task) <= SMALL:
        return True
    recall = scores(truth, GLAD().fit((task, worker, label)).labels_.to_dict())[0]
    return abs(recall - paper_row(shared, row.paper_name, "GLAD")[0]) > OFF


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", help="names of datasets")
    parser.add_argument("--all", action="store_true", help="every dataset, which takes crowd-kit half an hour")
    options = parser.parse_args()
    shared = DATASETS.resolve().parent
    rows = [
        row
        for row in datasets(shared)
        if options.all or (row.slug in options.datasets if options.datasets else is_off_or_small(shared, row))
    ]
    results = []
    for row in rows:
        results.append(compared(shared, row, os.environ.get("CROWDKIT_PYTHON", sys.executable)))
        print(*results[-1].values(), flush=True)
    print(evidence.write("glad_deviation", results).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
