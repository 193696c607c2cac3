"""Crowds to audit, real and simulated: a score and a truth for every item, kept in a folder once they are computed.

Three scores. "sampled" is the calibrated probability that the sampler of votes gives, whatever the method (CC-Rasch is
fitted): what an audit ranks by unless the crowd is large. "posterior" is that of the default method: what an audit
ranks by in a large crowd. "reported" is what the default method reports itself, for comparison. No gold, items with
truth only; the class is the rarest. Real datasets are looked for in RAREVOTE_DATA and left out if absent.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import rarevote
from benchmarks.datasets import DATASETS, slugs
from rarevote.crowd.annotations import Annotations
from rarevote.decide.sampled import sample_crowd
from rarevote.simulate.crowds import simulate_crowd

Score = Literal["sampled", "posterior", "reported"]
SCORES: tuple[Score, ...] = ("sampled", "posterior", "reported")
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: simulated crowds: imbalance and number of tasks
SIMULATED = {"simulated-7": (7, 3000), "simulated-30": (30, 6000), "simulated-100": (100, 12_000)}


class Ranked(NamedTuple):
    """A score and a truth for every item, (n)."""

    scores: Floats
    truth: Bools


def real_sets() -> list[str]:
    """Binary datasets that are there."""
    if not (DATASETS / "index.csv").is_file():
        return []
    return slugs(n_classes="2", match="exact")


def real_votes(slug: str) -> tuple[Annotations, dict[str, str]]:
    """Votes and truth of a dataset."""
    with (DATASETS / slug / "labels.csv").open(newline="", encoding="utf-8") as handle:
        rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(handle)]
    with (DATASETS / slug / "truth.csv").open(newline="", encoding="utf-8") as handle:
        truth = {row["task"]: row["label"] for row in csv.DictReader(handle)}
    return Annotations.from_arrays(*(list(column) for column in zip(*rows, strict=True))), truth


def rarest(votes: Annotations, truth: dict[str, str]) -> str:
    """The class that the truth has least of."""
    labels = list(truth.values())
    return str(min(votes.classes.tolist(), key=labels.count))


def _score(votes: Annotations, score: Score, column: int) -> Floats:
    if score == "sampled":
        posterior = sample_crowd(votes, np.full(votes.n_tasks, -1)).score
    else:
        fitted = rarevote.fit(votes)
        posterior = fitted.method.posterior_ if score == "posterior" else fitted.probabilities
    return np.asarray(posterior[:, column], dtype=np.float64)


def real_ranked(slug: str, score: Score) -> Ranked:
    """The items of a dataset that have a truth."""
    votes, truth = real_votes(slug)
    known = [i for i, task in enumerate(votes.tasks.tolist()) if task in truth]
    rare = rarest(votes, truth)
    found = _score(votes, score, votes.classes.tolist().index(rare))
    return Ranked(found[known], np.array([truth[votes.tasks[i]] == rare for i in known]))


def _simulated(name: str, seed: int, score: Score) -> Ranked:
    imbalance, n_tasks = SIMULATED[name]
    crowd = simulate_crowd(n_tasks, imbalance=imbalance, random_state=seed)
    votes = Annotations.from_arrays(*crowd.arrays, classes=[0, 1])
    return Ranked(_score(votes, score, 1), crowd.truth[np.array(votes.tasks.tolist())] == 1)


def crowds_of(name: str, score: Score, n_crowds: int, work: Path) -> list[Ranked]:
    """The crowds behind a name: one of real votes, or so many simulated ones."""
    if name not in SIMULATED:
        return [_kept(work / f"{name}.{score}.npz", real_ranked, name, score)]
    return [_kept(work / f"{name}.{seed}.{score}.npz", _simulated, name, seed, score) for seed in range(n_crowds)]


def _kept(path: Path, make: Any, *arguments: Any) -> Ranked:
    if not path.exists():
        np.savez(path, **make(*arguments)._asdict())
    with np.load(path) as stored:
        return Ranked(stored["scores"], stored["truth"])
