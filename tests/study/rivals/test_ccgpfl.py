"""CCGPFL's bound term by term against a computation by hand, its slopes, and what a fit makes of a small crowd."""

from __future__ import annotations

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad

from rarevote.errors import InputError
from tests.features.crowds import draw_crowd
from tests.study.rivals import WITHOUT

if os.environ.get("RAREVOTE_REQUIRE_RIVALS") != "1":
    pytest.importorskip("jax", reason=WITHOUT)

import jax

from rarevote.study.peers.ccgpfl.bound import JITTER, CastVotes, GPParameters, bound
from rarevote.study.peers.ccgpfl.estimator import CCGPFL, PrincipalAxes

K, R, Q, M, D, N, S, GAMMA = 3, 2, 4, 3, 2, 5, 7, 0.1
Float = NDArray[np.float64]


@pytest.fixture(scope="module")
def tiny() -> tuple[GPParameters, Float, CastVotes, Float]:
    """Five items, two annotators who did not both vote on all of them, four processes for five functions."""
    rng = np.random.default_rng(3)
    parameters = GPParameters(
        inputs=rng.normal(size=(M, D)),
        log_scale=rng.normal(0.2, 0.3, Q),
        constant=rng.normal(size=Q),
        mixing=rng.normal(size=(Q, K + R)),
        mean=rng.normal(size=(Q, M)),
        root=rng.normal(0, 0.5, size=(Q, M, M)),
    )
    votes = CastVotes(np.array([0, 0, 1, 2, 3, 4, 4]), np.array([0, 1, 0, 1, 0, 0, 1]), np.array([2, 0, 1, 1, 0, 2, 2]))
    return parameters, rng.normal(size=(N, D)), votes, rng.normal(size=(S, N, K))


def by_hand(parameters: GPParameters, x: Float, votes: CastVotes, noise: Float) -> float:
    """All terms without whitening, one number at a time; lambda by adaptive quadrature."""
    mean_g, var_g, divergence = np.zeros((N, Q)), np.zeros((N, Q)), 0.0
    for q in range(Q):
        scale = np.exp(parameters.log_scale[q])

        def k(a: Float, b: Float, scale: float = scale) -> float:
            return float(np.exp(-((a - b) ** 2).sum() / (2 * scale**2)))

        z = parameters.inputs
        prior = np.array([[k(a, b) for b in z] for a in z]) + JITTER * np.eye(M)
        lower, root = np.linalg.cholesky(prior), np.tril(parameters.root[q], -1)
        root = root + np.diag(np.exp(np.diag(parameters.root[q])))
        # q(u) = N(c + L m, L T T' L'), of the values themselves.
        mean_u = parameters.constant[q] + lower @ parameters.mean[q]
        cov_u = lower @ root @ root.T @ lower.T
        inverse, gap = np.linalg.inv(prior), mean_u - parameters.constant[q]
        logs = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(cov_u)[1]
        divergence += 0.5 * (np.trace(inverse @ cov_u) + gap @ inverse @ gap - M + logs)
        for n in range(N):
            row = np.array([k(x[n], b) for b in z])
            mean_g[n, q] = parameters.constant[q] + row @ inverse @ gap
            var_g[n, q] = 1.0 - row @ inverse @ row + row @ inverse @ cov_u @ inverse @ row
    total = 0.0
    for n, r, y in zip(*votes, strict=True):
        moments = [
            (sum(parameters.mixing[q, j] * mean_g[n, q] for q in range(Q)),
             sum(parameters.mixing[q, j] ** 2 * var_g[n, q] for q in range(Q)))
            for j in range(K + R)
        ]  # fmt: skip
        centre, variance = moments[K + r]
        sd = np.sqrt(variance)

        def weighed(f: float, centre: float = centre, sd: float = sd) -> float:
            density = np.exp(-0.5 * ((f - centre) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
            return float(density / (1 + np.exp(-f)))

        trust = quad(weighed, centre - 10 * sd, centre + 10 * sd, epsabs=1e-12)[0]
        fits = []
        for s in range(S):
            f = [moments[j][0] + np.sqrt(moments[j][1]) * noise[s, n, j] for j in range(K)]
            zeta = np.exp(f[y]) / sum(np.exp(one) for one in f)
            fits.append((1 - zeta) ** GAMMA * np.log(zeta))
        total += trust * float(np.mean(fits)) - (1 - trust) * np.log(K)
    return float(total - divergence)


def test_the_bound_is_that_of_the_definition(tiny: tuple[GPParameters, Float, CastVotes, Float]) -> None:
    assert float(bound(*tiny, GAMMA)) == pytest.approx(by_hand(*tiny), abs=1e-5)


def test_a_vote_that_was_not_cast_counts_for_nothing(tiny: tuple[GPParameters, Float, CastVotes, Float]) -> None:
    parameters, x, votes, noise = tiny
    fewer = CastVotes(*(column[:-1] for column in votes))
    assert float(bound(parameters, x, fewer, noise, GAMMA)) == pytest.approx(
        by_hand(parameters, x, fewer, noise), abs=1e-5
    )
    assert float(bound(*tiny, GAMMA)) != pytest.approx(float(bound(parameters, x, fewer, noise, GAMMA)), abs=0.01)


def test_slopes_are_those_of_finite_differences(tiny: tuple[GPParameters, Float, CastVotes, Float]) -> None:
    parameters, x, votes, noise = tiny
    slopes = jax.jit(jax.grad(bound))(parameters, x, votes, noise, GAMMA)
    value = jax.jit(bound)
    for name, part in parameters._asdict().items():
        for place in np.ndindex(part.shape):
            if name == "root" and place[2] > place[1]:
                assert float(slopes.root[place]) == 0.0
                continue
            ends = []
            for step in (1e-5, -1e-5):
                moved = part.copy()
                moved[place] += step
                ends.append(float(value(parameters._replace(**{name: moved}), x, votes, noise, GAMMA)))
            found = float(getattr(slopes, name)[place])
            assert found == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-5), (name, place)


def test_a_class_that_is_certain_has_slopes(tiny: tuple[GPParameters, Float, CastVotes, Float]) -> None:
    parameters, x, votes, noise = tiny
    certain = parameters._replace(mixing=parameters.mixing * 1e3)
    for part in jax.grad(bound)(certain, x, votes, noise, GAMMA):
        assert np.isfinite(np.asarray(part)).all()


@pytest.fixture(scope="module")
def drawn() -> tuple[Float, tuple[NDArray[np.int64], ...], NDArray[np.int64]]:
    crowd = draw_crowd(1, items=120, pool=30, votes=3, workers=6)
    place = {name: number for number, name in enumerate(crowd.ids)}
    votes = np.array([(place[task], int(worker[1:]), int(label[1:])) for task, worker, label in crowd.votes]).T
    return crowd.features, (votes[0], votes[1], votes[2]), crowd.truth


SMALL = CCGPFL(components=5, inducing=10, steps=80, samples=20)


def test_a_fit_learns_from_features_and_the_seed_decides_all(
    drawn: tuple[Float, tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]],
) -> None:
    x, votes, truth = drawn
    fitted = SMALL.fit(x, votes, 2, 6)
    assert fitted.history[-1] > fitted.history[0]
    alone = fitted.predict(x)
    assert alone.sum(axis=1) == pytest.approx(np.ones(150))
    # Items without votes have features too; chance is the share of the larger class.
    pool = np.arange(120, 150)
    share = max(np.bincount(truth[pool]) / 30)
    assert (alone.argmax(axis=1) == truth)[pool].mean() > share
    again = SMALL.fit(x, votes, 2, 6)
    assert (again.predict(x) == alone).all()

    # By Bayes' rule, one vote at a time.
    trust = fitted.reliability(x, votes)
    expected = alone.copy()
    for n, y, lam in zip(votes[0], votes[2], trust, strict=True):
        expected[n] *= [lam * (y == k) + (1 - lam) / 2 for k in range(2)]
    expected /= expected.sum(axis=1, keepdims=True)
    together = fitted.predict_with_votes(x, votes)
    assert together == pytest.approx(expected, abs=1e-12)
    assert together[pool] == pytest.approx(alone[pool])
    assert ((trust > 0) & (trust < 1)).all()


def test_too_many_functions_get_a_sentence() -> None:
    many = CCGPFL(processes=100_000)
    votes = tuple(np.zeros(1, dtype=np.int64) for _ in range(3))
    with pytest.raises(InputError, match=r"each of 2 classes and 5,000 annotators, which are too many here"):
        many.fit(np.zeros((10_000, 3)), (votes[0], votes[1], votes[2]), 2, 5000)


def test_principal_axes_of_a_known_table() -> None:
    rng = np.random.default_rng(0)
    common = rng.normal(size=400)
    table = np.column_stack([3 + 2 * common, np.full(400, 7.0), common, rng.normal(size=400)])
    seen = PrincipalAxes.of(table, 20).project(table)
    # Two columns say the same and one does not vary: two axes, with variances near 2 and 1, here near 4/3 and 2/3.
    assert seen.shape == (400, 2)
    values = np.linalg.eigvalsh(np.corrcoef(table[:, [0, 2, 3]].T))[1:]
    assert np.cov(seen.T, bias=True) == pytest.approx(np.diag(values[::-1] / values.mean()), abs=1e-9)
