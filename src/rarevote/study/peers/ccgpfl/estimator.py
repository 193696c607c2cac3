"""The estimator of CCGPFL: start, maximisation of the bound by Adam, probabilities with and without an item's votes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError
from rarevote.features.ridge import softmax
from rarevote.study.peers.ccgpfl.bound import (
    Array,
    CastVotes,
    GPParameters,
    bound,
    class_margins,
    processes,
    reliability,
)

_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-8  # of Adam
_DRAWS = 2000  # of zeta, for a prediction
_START_SD = 0.5  # of the processes at the inducing inputs
_START_NOISE = 0.1
# Arrays that the gradient needs for each array of the bound, and the most memory that they may take.
_COPIES = 6
_MAX_BYTES = 8e9


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """The first principal components of standardised columns, with a mean variance of one.

    Attributes:
        mean: of the columns, (D).
        weights: from centred columns to components, (D, components).
    """

    mean: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, features: FloatArray, components: int) -> PrincipalAxes:
        """The components of these rows; constant columns are ignored."""
        mean, sd = features.mean(axis=0), features.std(axis=0)
        varies = sd > 1e-9 * np.maximum(1.0, np.abs(mean))
        scale = np.where(varies, 1.0 / np.where(varies, sd, 1.0), 0.0)
        _, length, axes = np.linalg.svd((features - mean) * scale, full_matrices=False)
        kept = min(components, max(int((length > 1e-6 * length[0]).sum()), 1))
        # One scale for all: the component that varies most counts most in a distance.
        size = max(float(np.sqrt((length[:kept] ** 2).mean() / len(features))), 1e-12)
        return cls(mean, scale[:, None] * axes[:kept].T / size)

    def project(self, features: FloatArray) -> FloatArray:
        """The components of any rows, (N, components)."""
        return np.asarray((features - self.mean) @ self.weights)


@dataclass(frozen=True)
class CCGPFL:
    """A crowd model in which classes and annotators are Gaussian processes of the features.

    Attributes:
        components: number of principal components of the features to use.
        inducing: M, inducing inputs.
        processes: Q, latent processes; at most one per class and annotator.
        steps: steps of Adam, each over all votes.
        rate: step size of Adam.
        samples: draws for the expectation over zeta of each item.
        batch: S, the number of draws that each step uses, in turn.
        gamma: exponent of ``1 - zeta`` in the bound.
        seed: seed of the start and of the draws.
    """

    components: int = 20
    inducing: int = 25
    processes: int = 24
    steps: int = 300
    rate: float = 0.1
    samples: int = 200
    batch: int = 20
    gamma: float = 0.1
    seed: int = 0

    def fit(
        self,
        features: FloatArray,
        votes: tuple[IntArray, IntArray, IntArray],
        n_classes: int,
        n_workers: int,
        report: Callable[[int], None] | None = None,
    ) -> CCGPFLFit:
        """Maximise the bound.

        Args:
            features: features of all items, with or without votes, finite numbers, (N, D).
            votes: numbers of item, annotator and class of the votes, (V) each.
            n_classes: K.
            n_workers: R.
            report: called with the number of steps done.

        Raises:
            InputError: the model needs too much memory.
        """
        n_processes = min(self.processes, n_classes + n_workers)
        self._check_size(len(features), len(votes[0]), n_classes, n_workers, n_processes)
        rng = np.random.default_rng(self.seed)
        axes = PrincipalAxes.of(features, self.components)
        x = axes.project(features)
        parameters = self._start(x, n_processes, n_classes + n_workers, rng)
        n_batches = max(self.samples // self.batch, 1)
        noise = jnp.asarray(rng.standard_normal((n_batches, self.batch, len(x), n_classes)))
        seen = (jnp.asarray(x), CastVotes(*(jnp.asarray(column) for column in votes)))
        first = second = jax.tree.map(jnp.zeros_like, parameters)
        history = []
        for number in range(1, self.steps + 1):
            drawn = noise[number % n_batches]
            parameters, first, second, value = _compiled_step(
                parameters, first, second, number, *seen, drawn, self.gamma, self.rate
            )
            history.append(float(value))
            if report is not None:
                report(number)
        return CCGPFLFit(parameters, axes, n_classes, self.seed, np.array(history))

    def _start(self, x: FloatArray, n_processes: int, n_functions: int, rng: np.random.Generator) -> GPParameters:
        """Inducing inputs at random items; the first functions each use their own process, and a little of others."""
        n_inducing = min(self.inducing, len(x))
        mixing = _START_NOISE * rng.standard_normal((n_processes, n_functions))
        mixing[np.arange(n_processes), np.arange(n_processes)] += 1.0
        started = GPParameters(
            inputs=x[rng.choice(len(x), n_inducing, replace=False)],
            log_scale=np.full(n_processes, 0.5 * np.log(x.shape[1])),  # the shape of x
            constant=_START_NOISE * rng.standard_normal(n_processes),
            mixing=mixing,
            mean=_START_NOISE * rng.standard_normal((n_processes, n_inducing)),
            root=np.tile(np.log(_START_SD) * np.eye(n_inducing), (n_processes, 1, 1)),
        )
        return GPParameters(*(jnp.asarray(part) for part in started))

    def _check_size(self, n: int, n_votes: int, n_classes: int, n_workers: int, n_processes: int) -> None:
        numbers = n * (self.inducing * n_processes + self.batch * n_classes) + n_votes * (n_processes + 20)
        numbers += n_processes * (n_classes + n_workers + self.inducing**2)
        needed = 8 * _COPIES * numbers
        if needed > _MAX_BYTES:
            raise InputError(
                f"CCGPFL has a function for each of {n_classes:,} classes and {n_workers:,} annotators, which are too "
                f"many here: with {n_processes:,} processes and {n:,} items it needs about {needed / 1e9:,.0f} GB. "
                "Leave it out, or give it fewer items, processes or annotators"
            )


@dataclass(frozen=True, eq=False)
class CCGPFLFit:
    """A fitted model.

    Attributes:
        parameters: the learned parameters.
        axes: the principal components of the features.
        n_classes: K.
        seed: seed of the draws for predictions.
        history: the bound before each step, (steps).
    """

    parameters: GPParameters
    axes: PrincipalAxes
    n_classes: int
    seed: int
    history: FloatArray

    def predict(self, features: FloatArray) -> FloatArray:
        """``E[zeta]`` of any items from their features alone, (N, K): the votes on an item are not used."""
        centre, sd = map(np.asarray, class_margins(self.parameters, self._moments(features), self.n_classes))
        rng = np.random.default_rng(self.seed)
        draws = (softmax(centre + sd * rng.standard_normal(self.n_classes)) for _ in range(_DRAWS))
        return np.asarray(sum(draws) / _DRAWS)

    def reliability(self, features: FloatArray, votes: tuple[IntArray, IntArray, IntArray]) -> FloatArray:
        """``E[lambda]`` of each vote, (V)."""
        return np.asarray(reliability(self.parameters, self._moments(features), CastVotes(*votes), self.n_classes))

    def predict_with_votes(self, features: FloatArray, votes: tuple[IntArray, IntArray, IntArray]) -> FloatArray:
        """Our variant: also uses the votes on the item, by Bayes' rule, (N, K).

        An annotator gives the true class with probability ``lambda``, and otherwise any class at random::

            p_k  ~  zeta_k  prod over votes of  lambda_r [y_r = k] + (1 - lambda_r) / K
        """
        item, _, label = votes
        trust, K = self.reliability(features, votes), self.n_classes
        scores = np.log(np.maximum(self.predict(features), 1e-300))
        at_random = np.maximum((1.0 - trust) / K, 1e-300)
        np.add.at(scores, (item, label), np.log(trust + at_random) - np.log(at_random))
        return np.asarray(softmax(scores))

    def _moments(self, features: FloatArray) -> tuple[Array, Array]:
        return processes(self.parameters, jnp.asarray(self.axes.project(features)))


def _step(
    parameters: GPParameters, first: GPParameters, second: GPParameters, number: Array, x: Array, votes: CastVotes,
    noise: Array, gamma: float, rate: float,
) -> tuple[GPParameters, GPParameters, GPParameters, Array]:  # fmt: skip
    """One step of Adam: parameters, both moments, and the bound before the step."""
    value, slope = jax.value_and_grad(bound)(parameters, x, votes, noise, gamma)
    first = jax.tree.map(lambda moment, g: _FIRST * moment + (1.0 - _FIRST) * g, first, slope)
    second = jax.tree.map(lambda moment, g: _SECOND * moment + (1.0 - _SECOND) * g**2, second, slope)
    rise = rate / (1.0 - _FIRST**number)
    moved = jax.tree.map(
        lambda part, m, s: part + rise * m / (jnp.sqrt(s / (1.0 - _SECOND**number)) + _EPSILON),
        parameters, first, second,
    )  # fmt: skip
    return moved, first, second, value


# Compiled once for all fits of the same size.
_compiled_step = jax.jit(_step)
