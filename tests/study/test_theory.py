"""Exact errors against the binomial and against enumeration, simulations against exact errors."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from rarevote.diagnose.jury import jury_condition
from rarevote.study.theory import (
    JURIES,
    RARE_SHARE,
    SIZES,
    GrowthTrial,
    SpecialistTrial,
    TheoryStudy,
    vote_error,
)


@pytest.mark.parametrize(("size", "accuracy"), [(1, 0.7), (3, 0.8), (25, 0.55), (101, 0.45)])
def test_error_of_equal_voters_is_binomial(size: int, accuracy: float) -> None:
    expected = stats.binom.cdf(size // 2, size, accuracy)
    assert vote_error(np.full(size, accuracy)) == pytest.approx(expected, rel=1e-9)


def test_error_of_unequal_voters_by_enumeration() -> None:
    accuracies = [0.9, 0.75, 0.3, 0.45, 0.6]
    expected = sum(
        np.prod([p if right else 1 - p for p, right in zip(accuracies, outcome, strict=True)])
        for outcome in product([False, True], repeat=5)
        if sum(outcome) <= 2
    )
    assert vote_error(np.array(accuracies)) == pytest.approx(expected)


def test_the_three_crowds_stand_where_their_titles_say() -> None:
    for size in SIZES[2:]:
        holds, cautious, fails = (jury_condition(jury.accuracies(size)) for jury in JURIES)
        assert holds.holds.tolist() == [True, True]
        assert cautious.holds.tolist() == [True, False]
        assert cautious.mean_margin[1] > 0
        assert fails.holds.tolist() == [True, False]
        assert fails.mean_margin[1] < 0


def test_shares_of_a_crowd_are_rounded_and_keep_its_size() -> None:
    for jury in JURIES:
        assert sum(share for share, *_ in jury.parts) == pytest.approx(1)
        for size in SIZES:
            accuracies = jury.accuracies(size)
            assert accuracies.shape == (size, 2)
            for share, *part in jury.parts:
                assert abs((accuracies == part).all(axis=1).sum() - share * size) < 1


def test_simulated_error_agrees_with_the_exact_one() -> None:
    frequent, rare = GrowthTrial(JURIES[2], 31, 8000, 5).run()
    accuracies = JURIES[2].accuracies(31)
    assert rare.exact_error == pytest.approx(vote_error(accuracies[:, 1]))
    assert rare.n_items == 1000
    deviation = np.sqrt(rare.exact_error * (1 - rare.exact_error) / rare.n_items)
    assert abs(rare.error - rare.exact_error) < 4 * deviation
    # The corollary: what is answered as rare is what was found plus what was mistaken.
    answered = RARE_SHARE * (1 - rare.error) + (1 - RARE_SHARE) * frequent.error
    assert rare.answered_share == pytest.approx(answered)
    assert rare.answered_share + frequent.answered_share == pytest.approx(1)


def test_large_crowds_recover_the_rare_class_or_lose_it() -> None:
    errors = [vote_error(jury.accuracies(401)[:, 1]) for jury in JURIES]
    assert errors[0] < 1e-4
    assert errors[1] < 0.01
    assert errors[2] > 0.95


def test_glad_cannot_tell_one_class_specialists_apart_and_cc_rasch_can() -> None:
    methods = ("majority-vote", "glad", "dawid-skene", "cc-rasch")
    rows = [row for seed in range(2) for row in SpecialistTrial(0.6, seed, methods).run()]
    rare = {
        name: np.mean([row.recall for row in rows if row.method == name and row.class_name == "rare class"])
        for name in methods
    }
    assert rare["glad"] < 0.4 < rare["dawid-skene"] < rare["cc-rasch"]


@pytest.mark.prove
def test_the_study_writes_everything(tmp_path: Path) -> None:
    study = TheoryStudy(["majority-vote", "cc-rasch"], n_seeds=2, n_items=400, sizes=(11, 31), shares=(0.4, 0.8))
    section = study.run(tmp_path, n_jobs=1)
    with (tmp_path / "theory_growth.csv").open(newline="") as handle:
        assert len(list(csv.DictReader(handle))) == len(JURIES) * 2 * 2
    with (tmp_path / "theory_specialists.csv").open(newline="") as handle:
        assert len(list(csv.DictReader(handle))) == 2 * 2 * 2 * 2
    for figure in section.figures:
        assert (tmp_path / f"{figure.stem}.svg").is_file()
    assert [row[3] for row in section.tables[0].rows] == ["yes", "yes", "yes", "no", "yes", "no"]
    assert "jury condition" in (tmp_path / "index.html").read_text(encoding="utf-8")
