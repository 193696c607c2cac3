"""What is expected of labels: counts over draws against sums and integrals computed otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from rarevote.meaning.expect import Curve, Expected, counted


def test_a_curve_without_doubt_counts_what_the_probabilities_say() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2.0, 4000).clip(0.01, 0.99)
    kind = (p > 0.4).astype(np.int64)
    none = np.zeros(p.size, dtype=bool)
    hits = counted(p, none, none, kind, 2, 0, curve=Curve((0.0, 0.0), (1e-12, 0.0, 1e-12)))
    for k in (0, 1):
        mean, variance = p[kind == k].sum(), (p * (1 - p))[kind == k].sum()
        assert hits[:, k].mean() == pytest.approx(mean, rel=0.02)
        assert hits[:, k].var() == pytest.approx(variance, rel=0.15)


def test_known_tasks_count_as_they_are() -> None:
    p = np.array([0.01, 0.99, 0.5])
    known = np.ones(3, dtype=bool)
    hits = counted(p, np.array([True, False, True]), known, np.array([0, 1, 1]), 2, 0)
    assert (hits == [1, 1]).all()


def test_a_wide_interval_is_not_told() -> None:
    assert Expected(0.5, 0.45, 0.6).is_told
    assert not Expected(0.5, 0.1, 0.9).is_told
    assert not Expected(np.nan, np.nan, np.nan).is_told
