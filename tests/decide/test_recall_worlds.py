"""A recall target in two worlds: what each needs against draws counted by hand, and the same numbers everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote as library
from rarevote.decide import sampled
from rarevote.decide.expectations import N_BINS
from rarevote.decide.recall_target import flags_in_draws
from rarevote.errors import ParameterError
from tests.command import rarevote

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")


@pytest.fixture(scope="module")
def fitted() -> Any:
    made = library.simulate_crowd(600, 25, imbalance=9, votes_per_task=5, random_state=2)
    return library.fit(made.arrays, rare=1)


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    rarevote("simulate", "--out", folder, "--tasks", "400", "--workers", "20", "--votes", "5", "--seed", "3")
    return folder / "labels.csv"


@pytest.mark.parametrize("target", [0.3, 0.8, 0.95, 1.0])
def test_flags_of_independent_errors_against_one_draw_at_a_time(target: float) -> None:
    rng = np.random.default_rng(4)
    bins, may = rng.integers(0, N_BINS, 300), rng.random(300) < 0.9
    drawn = rng.random((40, 300)) < (bins / N_BINS) ** 3
    by_bin = np.zeros((40, 2, N_BINS), dtype=np.int64)
    for one, of_class in zip(by_bin, drawn, strict=True):
        for i in np.flatnonzero(of_class):
            one[0, bins[i]] += 1
            one[1, bins[i]] += may[i]
    that_may = np.bincount(bins[may], minlength=N_BINS)
    needed = flags_in_draws(by_bin, that_may, target)
    assert needed is not None

    def recall(n_bins: int) -> float:
        """Median recall of all items that may be flagged in the highest bins."""
        flagged = may & (bins >= N_BINS - n_bins)
        return float(np.median([(one & flagged).sum() / one.sum() for one in drawn]))

    whole = next((n for n in range(N_BINS + 1) if recall(n) >= target - 1e-9), None)
    if whole is None:
        assert needed == may.sum()
    else:
        sizes = [int((may & (bins >= N_BINS - n)).sum()) for n in (whole - 1, whole)]
        assert sizes[0] < needed <= sizes[1]


def test_nothing_drawn_and_nothing_to_find() -> None:
    within = np.ones(N_BINS, dtype=np.int64)
    assert flags_in_draws(np.zeros((0, 2, N_BINS), dtype=np.int64), within, 0.9) is None
    assert flags_in_draws(np.zeros((5, 2, N_BINS), dtype=np.int64), within, 0.9) == 0


def test_both_numbers_are_said_and_the_chosen_one_is_used(fitted: Any) -> None:
    default, shared, independent = (
        fitted.decide(min_recall={1: 0.9}, **given) for given in ({}, {"errors": "shared"}, {"errors": "independent"})
    )
    assert np.array_equal(default.codes, shared.codes)
    for result, errors in ((shared, "shared"), (independent, "independent")):
        target = result.target
        assert target.errors == errors
        assert target.n_flagged == target.flags[errors] == (result.labels == 1).sum()
    # Ties apart, each says of the other what that one flags.
    for world in ("independent", "shared"):
        assert shared.target.flags[world] == pytest.approx(independent.target.flags[world], abs=3)
    few, many = shared.target.flags["independent"], shared.target.flags["shared"]
    assert few < many / 2  # the crowd is simulated: its annotators do err independently
    sentence = f"Flag {few} items if annotators err independently, {many} if they share errors as real crowds do"
    assert f"{sentence}; the second is used" in shared.target.description
    assert "; the first is used" in independent.target.description


def test_independent_errors_reach_the_target_where_annotators_err_independently() -> None:
    """The oracle is the truth: on crowds whose errors are independent, the mean recall is near the target."""
    recalls, per_oracle = [], []
    for seed in range(4):
        made = library.simulate_crowd(1000, 30, imbalance=7, votes_per_task=8, random_state=seed)
        result = library.fit(made.arrays, rare=1).decide(min_recall={1: 0.9}, errors="independent")
        flagged, of_class = result.labels == 1, made.truth == 1
        recalls.append((flagged & of_class).sum() / of_class.sum())
        ranked = of_class[np.argsort(-result.probabilities.p[:, 1], kind="stable")]
        oracle = np.searchsorted(np.cumsum(ranked), np.ceil(0.9 * of_class.sum())) + 1
        per_oracle.append(flagged.sum() / oracle)
    assert np.mean(recalls) == pytest.approx(0.9, abs=0.06)
    assert np.mean(per_oracle) < 1.4


def test_what_is_flagged_without_a_target_stands_beside_it(fitted: Any) -> None:
    target = fitted.decide(min_recall={1: 0.9}).target
    own = fitted.decide()
    assert target.n_flagged_without == (own.labels == 1).sum()
    assert target.recall_without == own.expect(1).recall
    beside = (
        f"Without a target {target.n_flagged_without} are flagged; expected recall: {own.expect(1).recall.description}"
    )
    assert beside in target.description


def test_without_draws_the_other_number_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampled, "MAX_VOTES", 100)
    made = library.simulate_crowd(100, 10, random_state=1)
    fitted = library.fit(made.arrays, rare=1)
    target = fitted.decide(min_recall={1: 0.9}).target
    assert target is not None
    assert set(target.flags) == {"shared"}
    assert "(what independent errors need is not known: there are more than 100 votes)" in target.description
    with pytest.raises(ParameterError, match=r"errors independent needs draws .* more than 100 votes"):
        fitted.decide(min_recall={1: 0.9}, errors="independent")


def test_errors_belong_to_a_recall_target(fitted: Any, votes: Path) -> None:
    with pytest.raises(ParameterError, match="errors must be independent or shared, got 'both'"):
        fitted.decide(min_recall={1: 0.9}, errors="both")
    with pytest.raises(ParameterError, match="errors independent sets how a recall target is counted"):
        fitted.decide(errors="independent")
    alone = rarevote("aggregate", votes, "--errors", "independent", code=2).stderr
    assert "needs --min-recall" in alone
    assert "must be independent or shared" in rarevote("aggregate", votes, "--errors", "both", code=2).stderr
