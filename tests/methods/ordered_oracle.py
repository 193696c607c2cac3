"""Anchored Ordered as one function of its parameters, for a general optimiser: loops over votes and classes, no EM."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

SPREADS = (1.0, 0.3, 0.7, 0.3)

Votes = list[list[tuple[int, int]]]  # by task: worker, label


def anchors_by_hand(
    votes: Votes, n_workers: int, K: int, gold: dict[int, int]
) -> tuple[list[float], list[list[float]]]:
    """pi and B, B by class and label."""
    C = np.zeros((n_workers, K, K))
    mass = [0.0] * K
    for i, said in enumerate(votes):
        share = [float(k == gold[i]) for k in range(K)] if i in gold else [0.0] * K
        if i not in gold:
            for _, y in said:
                share[y] += 1 / len(said)
        for k in range(K):
            mass[k] += share[k]
            if len(said) >= 2 or i in gold:
                for r, y in said:
                    C[r, k, y] += share[k] / (1 + 0.05 * (len(said) - 1))
    pi = [max(m / len(votes), 1e-6) for m in mass]
    pi = [p / sum(pi) for p in pi]
    B = [[0.0] * K for _ in range(K)]
    for k in range(K):
        met = [sum(C[r, k]) for r in range(n_workers)]
        a = sum(C[r, k, k] / (met[r] + 8) for r in range(n_workers)) + 0.7
        a /= sum(n / (n + 8) for n in met) + 1
        e = [
            0.0 if m == k else sum(C[r, k, m] / (met[r] - C[r, k, k] + 8) for r in range(n_workers)) + 2 / (K - 1)
            for m in range(K)
        ]
        B[k] = [a if m == k else (1 - a) * e[m] / sum(e) for m in range(K)]
    return pi, B


class Objective:
    """J, and its gradient by differences of single workers' tables left to the optimiser."""

    def __init__(self, votes: Votes, n_workers: int, positions: list[float | None], gold: dict[int, int]) -> None:
        self.votes, self.m, self.K, self.gold, self.x = votes, n_workers, len(positions), gold, positions
        self.pi, self.B = anchors_by_hand(votes, n_workers, self.K, gold)
        inside = [x for x in positions if x is not None]
        self.middle = sum(inside) / len(inside)

    def chance(self, theta: Any, k: int) -> list[float]:
        """P(label | class k) of a worker."""
        hit, near, lean, *habit = theta
        weights = []
        for m in range(self.K):
            a, b = self.x[k], self.x[m]
            distance = 0.0 if k == m else 1.0 if a is None or b is None else (a - b) ** 2
            tilt = 0.0 if b is None else b - self.middle
            weights.append(self.B[k][m] * exp(hit * (k == m) - near * distance + lean * tilt + habit[m]))
        return [w / sum(weights) for w in weights]

    def __call__(self, flat: NDArray[np.float64]) -> float:
        """J at the parameters, workers first, then the two means."""
        theta, mu = flat[:-2].reshape(self.m, self.K + 3), flat[-2:]
        P = [[self.chance(theta[r], k) for k in range(self.K)] for r in range(self.m)]
        J = 0.0
        for i, said in enumerate(self.votes):
            total = 0.0
            for k in [self.gold[i]] if i in self.gold else range(self.K):
                joint = self.pi[k]
                for r, y in said:
                    joint *= P[r][k][y]
                total += joint
            J += log(total)
        spread = [*SPREADS[:3], *[SPREADS[3]] * self.K]
        mean = [*mu, 0.0, *[0.0] * self.K]
        for r in range(self.m):
            J -= sum((theta[r, j] - mean[j]) ** 2 / (2 * spread[j] ** 2) for j in range(self.K + 3))
        return float(J - (mu**2).sum() / 2)

    def maximum(self, start: NDArray[np.float64]) -> float:
        """The largest J that BFGS finds from there."""
        found = minimize(lambda flat: -self(flat), start, method="BFGS", options={"gtol": 1e-6})
        return -float(found.fun)
