"""Votes and features: numbers about the items beside one or two votes each, and items without votes.

How-to: docs/howto/features.md
"""

from __future__ import annotations

import numpy as np

import rarevote


def main() -> None:
    """Six hundred items with two numbers each, a tenth of them defects; the last hundred have no votes yet."""
    rng = np.random.default_rng(0)
    is_defect = rng.random(600) < 0.1
    ids = [f"item {number}" for number in range(600)]
    numbers = rng.normal(size=(600, 2)) + 1.5 * is_defect[:, None]
    votes = []
    for number in range(500):
        for worker in rng.choice(10, size=rng.integers(1, 3), replace=False):
            is_right = rng.random() < 0.8
            label = "defect" if is_defect[number] == is_right else "sound"
            votes.append((ids[number], f"rater {worker}", label))
    for features in (None, (ids, numbers)):
        fitted = rarevote.fit(votes, features=features, rare="defect")
        place = {task: row for row, task in enumerate(fitted.crowd.population.tolist())}
        rows = [place[name] for name in ids[:500]]
        likeliest = np.argsort(-fitted.probabilities[rows, 0], kind="stable")[:50]
        found = is_defect[:500][likeliest].sum()
        print(f"with features: {features is not None}; defects among the 50 likeliest items with votes: {found}")
        if fitted.features_ is not None:
            print(fitted.features_.reason)
            unseen = fitted.probabilities[[place[name] for name in ids[500:]], 0]
            print(f"likeliest defect without votes: {ids[500 + int(unseen.argmax())]}, p {unseen.max():.2f}")


if __name__ == "__main__":
    main()
