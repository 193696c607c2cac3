"""The variational bound of CCGPFL, a sum over votes and latent processes that JAX differentiates.

With ``Q`` processes on ``M`` inducing inputs ``z``, ``K`` classes and ``R`` annotators, the functions of an item's
features ``x`` are ``f_j(x) = sum_q a_qj g_q(x)``, ``j = 1 .. K + R``::

    g_q ~ GP(c_q, exp(-|x - x'|^2 / (2 l_q^2))),     g_q(z) = c_q + L_q v_q,     q(v_q) = N(m_q, T_q T_q')
    bound = sum over votes y_nr of  E[lambda_r] E[(1 - zeta_y)^gamma log zeta_y] - (1 - E[lambda_r]) log K
            - sum_q KL(q(v_q) || N(0, I))

where ``zeta = softmax(f_1 .. f_K)`` and ``lambda_r = sigmoid(f_{K+r})`` at ``x_n``, and ``L_q L_q'`` is the covariance
of the inducing inputs. Only existing votes count. Expectations are over the normal marginals of the ``f_j``: of
zeta by samples, of lambda by Gauss–Hermite quadrature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

# JAX uses single precision by default; the Cholesky factors need double precision.
jax.config.update("jax_enable_x64", True)

Array = Any  # an array of JAX or NumPy

JITTER = 1e-6  # added to the diagonal of a covariance, before it is factored
_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(20)
_LEAST = 1e-15  # of 1 - zeta, whose power has no slope at 0


class GPParameters(NamedTuple):
    """The learned parameters.

    Attributes:
        inputs: z, (M, D).
        log_scale: logarithm of the length-scales, (Q).
        constant: c, (Q).
        mixing: a, (Q, K + R).
        mean: m, (Q, M).
        root: T below the diagonal, its logarithm on it, (Q, M, M).
    """

    inputs: Array
    log_scale: Array
    constant: Array
    mixing: Array
    mean: Array
    root: Array

    @property
    def factor(self) -> Array:
        """T, (Q, M, M)."""
        diagonal = jnp.exp(jnp.diagonal(self.root, axis1=1, axis2=2))
        return jnp.tril(self.root, -1) + jnp.eye(self.root.shape[1]) * diagonal[:, None, :]


class CastVotes(NamedTuple):
    """The votes: numbers of item, annotator and class, (V) each."""

    item: Array
    worker: Array
    label: Array


def _covariance(x: Array, z: Array, log_scale: Array) -> Array:
    """Covariances of the processes between two sets of inputs, (Q, rows of x, rows of z)."""
    squares = (x**2).sum(1)[:, None] + (z**2).sum(1) - 2.0 * x @ z.T
    return jnp.exp(-0.5 * jnp.maximum(squares, 0.0) * jnp.exp(-2.0 * log_scale)[:, None, None])


def _inverse_factors(covariance: Array) -> Array:
    """The inverses of the Cholesky factors of covariances, (Q, M, M).

    One process after the other: on two cores, two batched calls of LAPACK can take both threads of JAX and then wait
    for each other for ever (jaxlib 0.10.2).
    """
    unit = jnp.eye(covariance.shape[1])

    def inverse_factor(one: Array) -> Array:
        return jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(one + JITTER * unit), unit, lower=True)

    return jax.lax.map(inverse_factor, covariance)


def processes(parameters: GPParameters, x: Array) -> tuple[Array, Array]:
    """Means and variances of all ``g_q(x)``, (N, Q) each."""
    z, scale = parameters.inputs, parameters.log_scale
    weights = _inverse_factors(_covariance(z, z, scale)) @ _covariance(z, x, scale)  # (Q, M, N)
    mean = parameters.constant[:, None] + jnp.einsum("qmn,qm->qn", weights, parameters.mean)
    spread = jnp.einsum("qmk,qmn->qkn", parameters.factor, weights)
    variance = 1.0 - (weights**2).sum(1) + (spread**2).sum(1)
    return mean.T, jnp.maximum(variance, 1e-12).T


def class_margins(parameters: GPParameters, moments: tuple[Array, Array], n_classes: int) -> tuple[Array, Array]:
    """Means and standard deviations of the class functions, (N, K) each, from those of the processes."""
    mixing = parameters.mixing[:, :n_classes]
    return moments[0] @ mixing, jnp.sqrt(moments[1] @ mixing**2)


def reliability(parameters: GPParameters, moments: tuple[Array, Array], votes: CastVotes, n_classes: int) -> Array:
    """``E[lambda_r(x_n)]`` of each vote, (V), from the moments of the processes."""
    mixing = parameters.mixing[:, n_classes:].T[votes.worker]  # (V, Q)
    mean, variance = (moment[votes.item] for moment in moments)
    centre, sd = (mean * mixing).sum(1), jnp.sqrt((variance * mixing**2).sum(1) + 1e-12)
    at_nodes = jax.nn.sigmoid(centre[:, None] + np.sqrt(2.0) * sd[:, None] * _NODES)
    return at_nodes @ (_WEIGHTS / np.sqrt(np.pi))


def divergence(parameters: GPParameters) -> Array:
    """``sum_q KL(q(v_q) || N(0, I))``."""
    log_diagonal = jnp.diagonal(parameters.root, axis1=1, axis2=2)
    squares = (parameters.factor**2).sum() + (parameters.mean**2).sum()
    return 0.5 * (squares - parameters.mean.size) - log_diagonal.sum()


def bound(parameters: GPParameters, x: Array, votes: CastVotes, noise: Array, gamma: float) -> Array:
    """The bound.

    Args:
        parameters: the learned parameters.
        x: features, (N, D).
        votes: the votes.
        noise: standard normal draws for the expectation over zeta, (S, N, K).
        gamma: exponent of ``1 - zeta``.
    """
    n_classes = noise.shape[2]
    moments = processes(parameters, x)
    mean, sd = class_margins(parameters, moments, n_classes)
    log_zeta = jnp.minimum(jax.nn.log_softmax(mean + sd * noise, axis=2), -_LEAST)
    fit = (jnp.exp(gamma * jnp.log(-jnp.expm1(log_zeta))) * log_zeta).mean(0)  # (N, K)
    trust = reliability(parameters, moments, votes, n_classes)
    of_votes = trust * fit[votes.item, votes.label] - (1.0 - trust) * np.log(n_classes)
    return of_votes.sum() - divergence(parameters)
