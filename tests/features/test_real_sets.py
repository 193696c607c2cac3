"""The seven real sets with all their votes: average precision of the rarest class and log loss, as the table says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rarevote
from rarevote.io.read.frames import read_truth
from tests.features.test_fit import average_precision

# Votes only, then with features: average precision, log loss.
EXPECTED = {
    "product": ((0.732, 0.221), (0.874, 0.153)),
    "appendicitis": ((0.743, 0.266), (0.790, 0.254)),
    "music": ((0.876, 0.829), (0.903, 0.640)),
    "medical-cause": ((0.940, 0.222), (0.940, 0.215)),
    "amazon-sentiment-negative": ((0.895, 0.112), (0.886, 0.108)),
    "movie-reviews-4class": ((0.843, 0.674), (0.847, 0.635)),
    "rte": ((0.980, 0.256), (0.980, 0.256)),
}
# Flags for each true item of the rarest class at 90% recall, at most.
FLAGS = {"product": 1.3, "appendicitis": 2.1}


@pytest.mark.prove
@pytest.mark.parametrize("name", EXPECTED)
def test_all_votes(name: str, shared_folder: Path) -> None:
    folder = shared_folder / "features" / name
    if not folder.is_dir():
        pytest.skip("the sets with features are not here")
    truth = {str(task): str(label) for task, label in read_truth(folder / "truth.csv").items()}
    labels, counts = np.unique(list(truth.values()), return_counts=True)
    rarest = str(labels[counts.argmin()])
    for features, expected in zip((None, folder / "features.parquet"), EXPECTED[name], strict=True):
        fitted = rarevote.fit(folder / "labels.csv", features=features)
        classes = [str(one) for one in fitted.annotations.classes.tolist()]
        tasks = [str(task) for task in fitted.annotations.tasks.tolist()]
        rows = [number for number, task in enumerate(tasks) if task in truth]
        p, true = fitted.probabilities[rows], [truth[tasks[number]] for number in rows]
        loss = -np.log(np.maximum(p[np.arange(len(rows)), [classes.index(one) for one in true]], 1e-6)).mean()
        is_rare, score = np.array([one == rarest for one in true]), p[:, classes.index(rarest)]
        assert (average_precision(is_rare, score), loss) == pytest.approx(expected, abs=0.002)
    if name in FLAGS:
        found = is_rare[np.argsort(-score, kind="stable")].cumsum()
        assert (np.searchsorted(found, np.ceil(0.9 * found[-1])) + 1) / found[-1] <= FLAGS[name]


# Average precision of the rarest class among the half of the items that has no votes, at least.
POOL = {
    "product": 0.75,
    "appendicitis": 0.6,
    "medical-cause": 0.53,
    "music": 0.6,
    "amazon-sentiment-negative": 0.34,
}


@pytest.mark.prove
@pytest.mark.parametrize("name", POOL)
def test_items_without_votes(name: str, shared_folder: Path) -> None:
    folder = shared_folder / "features" / name
    if not folder.is_dir():
        pytest.skip("the sets with features are not here")
    truth = {str(task): str(label) for task, label in read_truth(folder / "truth.csv").items()}
    labels, counts = np.unique(list(truth.values()), return_counts=True)
    votes = pd.read_csv(folder / "labels.csv", dtype=str)
    tasks = np.unique(votes["task"])
    found = []
    for seed in range(3):
        kept = np.random.default_rng(seed).permutation(tasks)[: len(tasks) // 2]
        fitted = rarevote.fit(votes[votes["task"].isin(kept)], features=folder / "features.parquet")
        pool = fitted.annotations.unanswered.tolist()
        rows = [number for number, task in enumerate(pool) if task in truth]
        is_rare = np.array([truth[pool[number]] == labels[counts.argmin()] for number in rows])
        code = fitted.annotations.classes.tolist().index(str(labels[counts.argmin()]))
        found.append(average_precision(is_rare, fitted.probabilities[fitted.annotations.n_tasks :][rows, code]))
    assert np.mean(found) >= POOL[name]
