"""Half the precision gives the same result: every label of the decision, and every probability to 1e-4."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.evidence import read
from benchmarks.float32 import METHODS_COMPARED, P_WITHIN

import rarevote
from rarevote import Annotations, simulate_crowd
from rarevote.api import make_method
from tests.benchmark_data import datasets, load

# The sets with the largest differences, among them three and four classes.
REAL = ("face", "rte", "cf-star", "weather-sentiment-amt", "ms", "zc-us")


def assert_the_same(votes: Annotations, method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        double, single = (
            rarevote.fit(votes, make_method(method, dtype=dtype)).decide() for dtype in ("float64", "float32")
        )
    assert single.fitted.method.posterior_.dtype == np.float32
    assert double.fitted.method.posterior_.dtype == np.float64
    assert double.codes.tolist() == single.codes.tolist()
    assert double.fitted.method.label_codes().tolist() == single.fitted.method.label_codes().tolist()
    np.testing.assert_allclose(single.fitted.probabilities, double.fitted.probabilities, rtol=0, atol=P_WITHIN)
    np.testing.assert_allclose(single.confidence, double.confidence, rtol=0, atol=P_WITHIN)


@pytest.mark.parametrize("method", METHODS_COMPARED)
@pytest.mark.parametrize(("n_classes", "votes", "seed"), [(2, 3, 0), (2, 5, 1), (3, 5, 2), (5, 4, 3)])
def test_simulated_crowds(method: str, n_classes: int, votes: int, seed: int) -> None:
    crowd = simulate_crowd(600, 25, n_classes=n_classes, votes_per_task=votes, random_state=seed)
    assert_the_same(Annotations.from_arrays(*crowd.arrays), method)


@pytest.mark.parametrize("method", ["anchored-rasch", "cc-rasch"])
@pytest.mark.parametrize("slug", REAL)
def test_real_crowds(shared_folder: Path, method: str, slug: str) -> None:
    assert_the_same(Annotations.from_arrays(*load(shared_folder, slug)[:3]), method)


@pytest.mark.prove  # compiles
@pytest.mark.usefixtures("compiled")
def test_real_crowds_compiled(shared_folder: Path) -> None:
    for entry in datasets(shared_folder):
        assert_the_same(Annotations.from_arrays(*load(shared_folder, entry.slug)[:3]), "anchored-rasch")


@pytest.mark.parametrize("method", METHODS_COMPARED)
def test_evidence_of_every_dataset(method: str) -> None:
    rows = [row for row in read("float32") if row["method"] == method and row["p_difference"]]
    assert len({row["what"] for row in rows}) == len(rows) == 31
    for row in rows:
        assert (row["labels_changed"], row["same"]) == ("0", "yes"), row["what"]
        assert float(row["p_difference"]) <= P_WITHIN
