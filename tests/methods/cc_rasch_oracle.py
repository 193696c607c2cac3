"""The paper's objective and M-step written out plainly, as an oracle: no odds, no intercepts, no tricks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rarevote.crowd.annotations import Annotations

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Theta:
    """``(mu_alpha, mu_beta, G, H)``, each with a column per class even where the model shares them."""

    mu_alpha: FloatArray
    mu_beta: FloatArray
    g: FloatArray
    h: FloatArray


@dataclass(frozen=True)
class Paper:
    """Penalties as the paper states them; ``shared`` parts count once."""

    crowd: Annotations
    sigma_alpha: float | FloatArray = 0.5
    sigma_beta: float | FloatArray = 0.5
    sigma_alpha_mu: float | FloatArray = 1.0
    sigma_beta_mu: float | FloatArray = 1.0
    ability: str = "per-class"
    difficulty: str | None = "per-class"

    def log_likelihood(self, theta: Theta) -> FloatArray:
        """log P(votes of task i | class k), (n, K)."""
        crowd, K = self.crowd, self.crowd.n_classes
        task = crowd.task_of_annotation()
        alpha = (theta.mu_alpha + theta.g)[crowd.worker]
        beta = (theta.mu_beta + theta.h)[task]
        p = 1.0 / (1.0 + np.exp(-(alpha - beta)))
        agrees = crowd.label[:, None] == np.arange(K)
        wrong = (1 - p) / (K - 1) if K > 1 else 1 - p
        terms = np.log(np.where(agrees, p, wrong))
        total = np.zeros((crowd.n_tasks, K))
        np.add.at(total, task, terms)
        return total

    def penalty(self, theta: Theta) -> float:
        def ridge(values: FloatArray, sigma: float | FloatArray, shared: bool) -> float:
            squares = values**2 / (2 * np.asarray(sigma) ** 2)
            return float(squares[..., 0].sum() if shared else squares.sum())

        one_ability = self.ability == "shared"
        total = ridge(theta.mu_alpha, self.sigma_alpha_mu, one_ability) + ridge(theta.g, self.sigma_alpha, one_ability)
        if self.difficulty is not None:
            one = self.difficulty == "shared"
            total += ridge(theta.mu_beta, self.sigma_beta_mu, one) + ridge(theta.h, self.sigma_beta, one)
        return total

    def objective(self, theta: Theta, prior: FloatArray) -> float:
        joint = self.log_likelihood(theta) + np.log(prior)
        top = joint.max(1, keepdims=True)
        return float((top[:, 0] + np.log(np.exp(joint - top).sum(1))).sum()) - self.penalty(theta)

    def posterior(self, theta: Theta, prior: FloatArray) -> FloatArray:
        joint = self.log_likelihood(theta) + np.log(prior)
        weights = np.exp(joint - joint.max(1, keepdims=True))
        return np.asarray(weights / weights.sum(1, keepdims=True))

    # -- free variables: any values are mapped onto the centred set ---------------------------------------------------

    def sizes(self) -> list[int]:
        K = self.crowd.n_classes
        a = 1 if self.ability == "shared" else K
        b = {None: 0, "shared": 1, "per-class": K}[self.difficulty]
        return [a, b, self.crowd.n_workers * a, self.crowd.n_tasks * b]

    def theta(self, free: FloatArray) -> Theta:
        K = self.crowd.n_classes
        parts = np.split(free, np.cumsum(self.sizes())[:-1])

        def spread(values: FloatArray, rows: int) -> FloatArray:
            if values.size == 0:
                return np.zeros((rows, K))
            table = values.reshape(rows, -1)
            return np.broadcast_to(table, (rows, K)).copy()

        g, h = spread(parts[2], self.crowd.n_workers), spread(parts[3], self.crowd.n_tasks)
        return Theta(spread(parts[0], 1)[0], spread(parts[1], 1)[0], g - g.mean(0), h - h.mean(0))

    def expected(self, theta: Theta, q: FloatArray) -> float:
        """The paper's Q without the constant of the class prior."""
        return float((q * self.log_likelihood(theta)).sum()) - self.penalty(theta)

    def expected_gradient(self, free: FloatArray, q: FloatArray) -> FloatArray:
        """Gradient of ``expected(theta(free), q)`` by the chain rule through the centring."""
        crowd, K = self.crowd, self.crowd.n_classes
        theta, task = self.theta(free), crowd.task_of_annotation()
        eta = (theta.mu_alpha + theta.g)[crowd.worker] - (theta.mu_beta + theta.h)[task]
        residual = q[task] * ((crowd.label[:, None] == np.arange(K)) - 1.0 / (1.0 + np.exp(-eta)))
        by_worker, by_task = np.zeros((crowd.n_workers, K)), np.zeros((crowd.n_tasks, K))
        np.add.at(by_worker, crowd.worker, residual)
        np.add.at(by_task, task, residual)

        def fold(values: FloatArray, columns: int) -> FloatArray:
            return values.sum(-1, keepdims=True) if columns == 1 else values

        a, b, _, _ = self.sizes()
        mu_alpha = fold(residual.sum(0), a) - theta.mu_alpha[:a] / np.broadcast_to(self.sigma_alpha_mu, K)[:a] ** 2
        g = fold(by_worker, a) - theta.g[:, :a] / np.broadcast_to(self.sigma_alpha, K)[:a] ** 2
        parts = [mu_alpha]
        rest = [(g - g.mean(0)).ravel()]
        if b:
            mu_beta = -fold(residual.sum(0), b) - theta.mu_beta[:b] / np.broadcast_to(self.sigma_beta_mu, K)[:b] ** 2
            h = -fold(by_task, b) - theta.h[:, :b] / np.broadcast_to(self.sigma_beta, K)[:b] ** 2
            parts.append(mu_beta)
            rest.append((h - h.mean(0)).ravel())
        return np.concatenate([*parts, *rest])

    def maximise_expected(self, q: FloatArray, start: FloatArray | None = None) -> Theta:
        """The M-step as the paper runs it: L-BFGS-B on Q over the centred set."""
        first = np.zeros(sum(self.sizes())) if start is None else start
        found = minimize(
            lambda free: -self.expected(self.theta(free), q),
            first,
            jac=lambda free: -self.expected_gradient(free, q),
            method="L-BFGS-B",
            options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-9, "maxcor": 50},
        )
        return self.theta(found.x)
