from __future__ import annotations

import numpy as np
import scipy.special

from rarevote.kernels.special import digamma, log_gamma

X = np.concatenate([np.logspace(-6, 8, 500), np.linspace(0.5, 12.0, 500)]).reshape(2, 500)


def test_digamma() -> None:
    expected = scipy.special.digamma(X)
    # Near its root at 1.46 only the absolute error can be small.
    assert (np.abs(digamma(X) - expected) <= 4e-15 * (1.0 + np.abs(expected))).all()


def test_log_gamma() -> None:
    expected = scipy.special.gammaln(X)
    assert (np.abs(log_gamma(X) - expected) <= 4e-15 * (1.0 + np.abs(expected))).all()


def test_any_shape() -> None:
    assert digamma(X.T).shape == log_gamma(X.T).shape == X.T.shape
    assert digamma(np.empty((0, 3))).shape == (0, 3)
