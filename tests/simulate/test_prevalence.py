"""False votes for a rare class become fewer as it becomes rarer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import evidence, shared_errors

from rarevote.errors import ParameterError
from rarevote.simulate.crowds import DEFAULT_ACCURACIES, SimulatedCrowd, simulate_chunks, simulate_crowd
from rarevote.simulate.prevalence import REAL
from tests.command import rarevote


def error_odds(crowd: SimulatedCrowd, worker_type: str, hard: bool, true_class: int) -> float:
    """Odds of an error among the votes of one type of workers, counted."""
    assert crowd.worker_type is not None
    assert crowd.hard is not None
    mine = (crowd.worker_type[crowd.worker] == worker_type) & (crowd.hard[crowd.task] == hard)
    mine &= crowd.truth[crowd.task] == true_class
    wrong = float((crowd.label[mine] != true_class).mean())
    return wrong / (1 - wrong)


@pytest.mark.parametrize("shared_errors", [0.0, "real"])
def test_odds_of_errors_on_the_frequent_class_fall_with_the_imbalance(shared_errors: Any) -> None:
    crowd = simulate_crowd(
        60_000, 40, imbalance=9, prevalence_effect=0.5, shared_errors=shared_errors, exact_counts=True, random_state=1
    )
    for name, (frequent, rare) in DEFAULT_ACCURACIES.items():
        for hard, penalty in ((False, 0.0), (True, 0.15)):
            given = (1 - frequent + penalty) / (frequent - penalty)
            assert error_odds(crowd, name, hard, 0) == pytest.approx(given / 3, rel=0.12)
            given = (1 - rare + penalty) / (rare - penalty)
            assert error_odds(crowd, name, hard, 1) == pytest.approx(given, rel=0.12)


def test_zero_and_classes_of_equal_size_are_the_crowd_of_before() -> None:
    for imbalance, effect in ((7, 0), (1, "real")):
        plain = simulate_crowd(3000, 30, imbalance=imbalance, random_state=4)
        same = simulate_crowd(3000, 30, imbalance=imbalance, prevalence_effect=effect, random_state=4)
        assert np.array_equal(plain.label, same.label)
        assert np.array_equal(plain.accuracy, same.accuracy)


@pytest.mark.parametrize("given", [-0.1, 1, "much", None, float("nan"), True])
def test_bad_effects_are_refused(given: Any) -> None:
    with pytest.raises(ParameterError, match='prevalence_effect must be "real" or a number from 0 to below 1'):
        simulate_chunks(prevalence_effect=given)


def test_command_line(tmp_path: Path) -> None:
    for folder, effect in (("a", "real"), ("b", str(REAL)), ("c", "0")):
        rarevote("simulate", "--out", tmp_path / folder, "--tasks", "200", "--seed", "1", "--prevalence-effect", effect)
    labels = {folder: (tmp_path / folder / "labels.csv").read_bytes() for folder in "abc"}
    assert labels["a"] == labels["b"] != labels["c"]


def test_real_is_what_was_measured_and_what_the_fit_finds_again() -> None:
    rows = evidence.read("shared_errors")
    assert float(next(row for row in rows if "slope" in row["dataset"])["false_votes"]) == pytest.approx(
        REAL, abs=0.005
    )
    made_up = []
    for number, share in enumerate((0.03, 0.1, 0.2, 0.4)):
        odds = np.exp(-1.0) * (share / (1 - share)) ** 0.6
        made_up.append({"source_group": str(number), "share": share, "false_votes": odds / (1 + odds)})
    made_up.append(dict(made_up[0]))  # a second dataset of a source changes nothing
    assert shared_errors.prevalence_effect(made_up) == pytest.approx((-1.0, 0.6, 0.0, 0.0), abs=1e-7)
