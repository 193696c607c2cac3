"""Anchored Rasch written out with loops over votes, classes and nodes, as an oracle: no tables, no sums by worker."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, fsum, log, sqrt

# Roots of He_5(x) = x^5 - 10 x^3 + 15 x, and the weights 5! / (5 He_4(x))^2 that go with them.
_ROOTS = [sign * sqrt(5 + root * sqrt(10)) for sign, root in ((-1, 1), (-1, -1), (1, -1), (1, 1))]
NODES = [*_ROOTS[:2], 0.0, *_ROOTS[2:]]
WEIGHTS = [120 / (5 * (x**4 - 6 * x**2 + 3)) ** 2 for x in NODES]
assert abs(sum(WEIGHTS) - 1) < 1e-14
assert abs(sum(w * x * x for w, x in zip(WEIGHTS, NODES, strict=True)) - 1) < 1e-13

Votes = list[list[tuple[int, int]]]  # of every task: worker, label


@dataclass
class Oracle:
    """A crowd, its anchors and the parameters of its workers."""

    votes: Votes
    n_workers: int
    K: int
    gold: dict[int, int] = field(default_factory=dict)
    sigma: float = 0.6
    tau: float = 8.0

    def __post_init__(self) -> None:
        K, workers = self.K, range(self.n_workers)
        self.s = 1 / K
        self.q = []
        for i, said in enumerate(self.votes):
            share = [sum(y == k for _, y in said) / len(said) for k in range(K)]
            self.q.append([float(self.gold[i] == k) for k in range(K)] if i in self.gold else share)
        means = [max(fsum(q[k] for q in self.q) / len(self.q), 1e-6) for k in range(K)]
        self.pi = [mean / sum(means) for mean in means]
        C = [[[0.0] * K for _ in range(K)] for _ in workers]  # worker, class, label
        for i, said in enumerate(self.votes):
            if len(said) >= 2 or i in self.gold:
                for r, y in said:
                    for k in range(K):
                        C[r][k][y] += self.q[i][k] / (1 + 0.05 * (len(said) - 1))
        N = [[sum(C[r][k]) for k in range(K)] for r in workers]
        self.a = [
            (sum(C[r][k][k] / (N[r][k] + self.tau) for r in workers) + 0.7)
            / (sum(N[r][k] / (N[r][k] + self.tau) for r in workers) + 1)
            for k in range(K)
        ]
        self.mu = [log(a / (1 - a)) for a in self.a]
        self.e = []
        for k in range(K):
            raw = [
                0.0 if y == k else sum(C[r][k][y] / (N[r][k] - C[r][k][k] + self.tau) for r in workers) + 2 / (K - 1)
                for y in range(K)
            ]
            self.e.append([value / sum(raw) for value in raw])
        self.alpha = [list(self.mu) for _ in workers]
        self.errors = [[list(row) for row in self.e] for _ in workers]

    def right(self, r: int, k: int, g: int) -> float:
        return 1 / (1 + exp(-(self.alpha[r][k] - self.s * NODES[g])))

    def chance(self, r: int, y: int, k: int, g: int) -> float:
        p = self.right(r, k, g)
        return p if y == k else (1 - p) * self.errors[r][k][y]

    def joint(self, i: int) -> list[list[float]]:
        """pi_k w_g prod_j P_g(y_ij | k), by class and node; a gold task has its class only."""
        table = []
        for k in range(self.K):
            row = []
            for g in range(5):
                value = self.pi[k] * WEIGHTS[g]
                for r, y in self.votes[i]:
                    value *= self.chance(r, y, k, g)
                row.append(value if self.gold.get(i, k) == k else 0.0)
            table.append(row)
        return table

    def shares(self, i: int, frozen: bool) -> list[list[float]]:
        """A_ikg."""
        if frozen:
            return [[self.q[i][k] * WEIGHTS[g] for g in range(5)] for k in range(self.K)]
        table = self.joint(i)
        total = sum(map(sum, table))
        return [[value / total for value in row] for row in table]

    def objective(self) -> float:
        value = fsum(log(sum(map(sum, self.joint(i)))) for i in range(len(self.votes)))
        for r in range(self.n_workers):
            for k in range(self.K):
                value -= (self.alpha[r][k] - self.mu[k]) ** 2 / (2 * self.sigma**2)
                value -= self.tau * sum(
                    self.e[k][y] * log(self.e[k][y] / self.errors[r][k][y]) for y in range(self.K) if y != k
                )
        return value

    def update(self, *, frozen: bool = False) -> None:
        """One pass over the votes and the step after it; the posterior of the pass is kept in ``q``."""
        K, workers = self.K, range(self.n_workers)
        gradient, hessian = ([[0.0] * K for _ in workers] for _ in range(2))
        wrong = [[[0.0] * K for _ in range(K)] for _ in workers]
        for i, said in enumerate(self.votes):
            A = self.shares(i, frozen)
            self.q[i] = [sum(row) for row in A]
            for r, y in said:
                for k in range(K):
                    for g in range(5):
                        p = self.right(r, k, g)
                        gradient[r][k] += A[k][g] * ((y == k) - p)
                        hessian[r][k] += A[k][g] * p * (1 - p)
                    if y != k:
                        wrong[r][k][y] += self.q[i][k]
        for r in workers:
            for k in range(K):
                step = gradient[r][k] - (self.alpha[r][k] - self.mu[k]) / self.sigma**2
                step /= hessian[r][k] + 1 / self.sigma**2
                self.alpha[r][k] += max(-2.0, min(2.0, step))
                total = self.tau + sum(wrong[r][k])
                self.errors[r][k] = [(self.tau * self.e[k][y] + wrong[r][k][y]) / total for y in range(K)]

    def reported(self) -> tuple[list[list[float]], list[float]]:
        """What is reported at the current parameters, and the shares of the classes."""
        found = []
        for i, said in enumerate(self.votes):
            if i in self.gold:
                found.append([float(k == self.gold[i]) for k in range(self.K)])
                continue
            power = 1 / (1 + 0.2 * (len(said) - 1))
            raw = [self.pi[k] * (sum(row) / self.pi[k]) ** power for k, row in enumerate(self.joint(i))]
            found.append([value / sum(raw) for value in raw])
        f = [fsum(p[k] for p in found) / len(found) for k in range(self.K)]
        lapsed = [
            p if i in self.gold else [0.95 * p[k] + 0.05 * f[k] for k in range(self.K)] for i, p in enumerate(found)
        ]
        return lapsed, f


def balanced_by_hand(p: list[float], f: list[float], votes: list[int], cap: float, voted_only: bool = True) -> int:
    """The decision for one item, class by class."""
    score = [p[k] * (min(max(f) / f[k], cap) if f[k] > 0 else cap) for k in range(len(p))]
    candidates = [k for k in range(len(p)) if votes[k] > 0 or not voted_only] or list(range(len(p)))
    top = max(score[k] for k in candidates)
    tied = [k for k in candidates if score[k] >= top * (1 - 1e-12)]
    return min(tied, key=lambda k: (-votes[k], -f[k], k))
