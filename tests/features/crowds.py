"""Small crowds whose items have features that say something, drawn by a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class DrawnCrowd:
    """Votes on the first items, features of all."""

    votes: list[tuple[str, str, str]]
    ids: list[str]
    features: NDArray[np.float64]
    truth: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    @property
    def given(self) -> tuple[list[str], NDArray[np.float64]]:
        return self.ids, self.features


def draw_crowd(
    seed: int = 0, *, items: int = 200, pool: int = 40, columns: int = 5, votes: int = 2, classes: int = 2, **more: Any
) -> DrawnCrowd:
    rng = np.random.default_rng(seed)
    n = items + pool
    x = rng.normal(size=(n, columns))
    scores = np.concatenate([np.zeros((n, 1)), 2.0 * x[:, : classes - 1] - 1.0], axis=1)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    truth = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    ids = [f"item-{number}" for number in range(n)]
    cast = []
    for number in range(items):
        for worker in rng.choice(more.get("workers", 12), size=votes, replace=False):
            right = rng.random() < 0.8
            label = truth[number] if right else (truth[number] + rng.integers(1, classes)) % classes
            cast.append((ids[number], f"w{worker}", f"c{label}"))
    return DrawnCrowd(cast, ids, x, truth, p)
