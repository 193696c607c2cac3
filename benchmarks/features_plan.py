"""Votes bought one batch at a time on a pool: `plan` beside random and uncertainty sampling.

    python -m benchmarks.features_plan [--draws 4] [--batches 8] [--sets product,...] [--strategies find,...]

Writes docs/evidence/features_plan.csv. All votes on a random half of the items are hidden (half of the votes, nearly).
In each round the items are fitted with their features, a batch of items is chosen among those that have hidden votes
left, and each of them gets one of these, at random. A batch has a sixteenth as many votes as there are items without
votes at first, so that eight batches are one vote for every other item. Items are chosen by

- plan: `Result.plan`, the largest fall of the expected cost, where a miss costs what the balanced rule says; an item
  that nobody has labelled counts as one of the most frequent class;
- find: `Result.plan(find=class)`, items without votes, the likeliest of the rarest class first;
- uncertainty: the smallest probability of the likeliest class, from the same fit;
- random: items without a vote first, which is the best that chance can do for finding a class.

After each batch: which part of the hidden items of the rarest class has a vote by now, which part of all items of that
class has its label, and the average precision (AP) of that class over all items, from a fit to all votes so far. Rows
are means over draws; all strategies start from the same votes, and buy the same votes of an item in the same order.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import rarevote
from benchmarks import evidence
from benchmarks.feature_sets import INFORMATIVE, FeatureSet, load
from rarevote.crowd.names import spelling

STRATEGIES = ("plan", "find", "uncertainty", "random")
PART = 16  # of the items without votes is a batch
MEASURES = ("found", "recall", "ap")


def chosen(
    strategy: str, result: rarevote.Result, rarest: str, n_votes: NDArray[np.int64], rng: np.random.Generator
) -> list[int]:
    """All items in the order in which a strategy would ask for a vote on them."""
    # A fit to few votes may leave the features out: then there is nothing to find by.
    if strategy == "plan" or (strategy == "find" and result.probabilities.has_features):
        find = rarest if strategy == "find" else None
        return [item.row for item in result.plan(len(result.codes), find=find).items]
    chance = rng.random(len(n_votes))
    first = result.probabilities.p.max(axis=1) if strategy == "uncertainty" else n_votes
    return np.lexsort((chance, first)).tolist()  # type: ignore[no-any-return]


def measured(one: FeatureSet, fitted: rarevote.Fitted, result: rarevote.Result, hidden: set[str]) -> list[float]:
    """What part of the rare items has a vote, what part its label, and the average precision."""
    rows, true = one.known(fitted)
    tasks = [spelling(task) for task in fitted.crowd.population.tolist()]
    rare = [row for row, label in zip(rows.tolist(), true, strict=True) if label == one.rarest]
    pool = [row < fitted.annotations.n_tasks for row in rare if tasks[row] in hidden]
    labelled = [spelling(result.labels[row]) == one.rarest for row in rare]
    return [float(np.mean(pool)), float(np.mean(labelled)), one.scores(fitted)[0]]


def bought(one: FeatureSet, strategy: str, batches: int, seed: int) -> NDArray[np.float64]:
    """The measures before the first batch and after each, (batches + 1, measures)."""
    rng = np.random.default_rng(seed)
    tasks = np.unique(one.votes["task"])
    hidden = set(rng.permutation(tasks)[: len(tasks) // 2].tolist())
    shuffled = one.votes.iloc[rng.permutation(len(one.votes))]
    is_hidden = shuffled["task"].isin(hidden)
    left = {task: rows.index.tolist() for task, rows in shuffled[is_hidden].groupby("task", sort=False)}
    votes, size = shuffled[~is_hidden], len(hidden) // PART
    found = []
    for number in range(batches + 1):
        fitted = rarevote.fit(votes.sort_index(), features=one.features)
        result = fitted.decide()
        found.append(measured(one, fitted, result, hidden))
        if number == batches:
            break
        n_items, n_tasks = len(result.codes), fitted.annotations.n_tasks
        n_votes = np.concatenate([np.diff(fitted.annotations.task_ptr), np.zeros(n_items - n_tasks, dtype=np.int64)])
        names = [spelling(task) for task in fitted.crowd.population.tolist()]
        order = (names[row] for row in chosen(strategy, result, one.rarest, n_votes, rng))
        batch = [task for task in order if left.get(task)][:size]
        votes = pd.concat([votes, shuffled.loc[[left[task].pop() for task in batch]]])
    return np.array(found)


def main() -> None:
    """Measure, and write the evidence."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--sets", default=",".join(INFORMATIVE))
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.sets.split(","):
        one = load(name)
        rows: list[dict[str, Any]] = []
        for strategy in given.strategies.split(","):
            runs = np.array([bought(one, strategy, given.batches, seed) for seed in range(given.draws)])
            for batch, mean in enumerate(runs.mean(axis=0)):
                figures = {measure: f"{value:.3f}" for measure, value in zip(MEASURES, mean, strict=True)}
                rows.append({"set": name, "strategy": strategy, "batch": batch, "draws": given.draws, **figures})
            print(name, strategy, [row["found"] for row in rows[-1 - given.batches :]], rows[-1], flush=True)
        print(evidence.write("features_plan", rows, by=("set", "strategy", "batch")), flush=True)


if __name__ == "__main__":
    main()
