"""Juries with groups: what is planted is what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rarevote import simulate_jury
from rarevote.errors import ParameterError
from rarevote.simulate.juries import SimulatedJury


def errors_of(jury: SimulatedJury) -> Any:
    return (jury.label.reshape(-1, jury.n_workers) != jury.truth[:, None]).astype(float)


@pytest.mark.parametrize(
    "parameters",
    [
        {"groups": ()},
        {"groups": [(0, 1, 2)]},
        {"groups": [(0, 1), (3, 4)], "together": 0.5, "n_classes": 3},
        {"how": "copy", "together": 0.7},
        {"how": "copy", "accuracy": [0.9, 0.8, 0.7, 0.8, 0.6], "n_classes": 4, "imbalance": 5},
        {"accuracy": np.array([[0.9, 0.4], [0.9, 0.5], [0.8, 0.7], [0.7, 0.9], [0.95, 0.45]]), "imbalance": 7},
    ],
    ids=["independent", "share", "two groups", "copy", "copy, skills differ", "weak at the rare class"],
)
def test_errors_correlate_as_planted(parameters: dict[str, Any]) -> None:
    jury = simulate_jury(60_000, random_state=1, **parameters)
    errors = errors_of(jury)
    np.testing.assert_allclose(np.corrcoef(errors.T), jury.error_correlation, atol=0.025)
    for k in range(jury.n_classes):
        accuracy = 1 - errors[jury.truth == k].mean(axis=0)
        np.testing.assert_allclose(accuracy, jury.accuracy[:, k], atol=0.03)
    assert jury.n_effective == pytest.approx(25 / jury.error_correlation.sum())


def test_a_group_shares_the_wrong_answer_too() -> None:
    jury = simulate_jury(5000, 3, groups=[(0, 1)], together=1.0, n_classes=5, random_state=0)
    label = jury.label.reshape(-1, 3)
    assert (label[:, 0] == label[:, 1]).all()
    assert (label[:, 0] == label[:, 2]).mean() < 0.8


def test_everybody_judges_everything_and_the_seed_decides() -> None:
    jury, again = (simulate_jury(50, 4, groups=[(1, 3)], random_state=5) for _ in range(2))
    assert jury.n_annotations == 200
    assert jury.group.tolist() == [0, 1, 2, 1]
    np.testing.assert_array_equal(jury.label, again.label)


@pytest.mark.parametrize(
    ("parameters", "word"),
    [
        ({"together": 1.5}, "together"),
        ({"how": "steal"}, "how"),
        ({"groups": [(0, 1), (1, 2)]}, "two groups"),
        ({"groups": [(0, 9)]}, "judges 0 to 4"),
        ({"accuracy": 1.2}, "accuracy"),
    ],
)
def test_bad_parameters(parameters: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        simulate_jury(10, **parameters)
