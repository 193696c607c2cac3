"""Features through the one way in: `rarevote.fit`, and everything that reads its probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import rarevote
from rarevote.api import Fitted
from rarevote.errors import ParameterError
from tests.features.conftest import CheckExample
from tests.features.crowds import draw_crowd

IDS = [f"t{number}" for number in range(300)]


@pytest.fixture(scope="module")
def with_features(example: CheckExample) -> Fitted:
    return rarevote.fit(example.folder / "votes.csv", features=example.folder / "features.csv")


@pytest.fixture(scope="module")
def votes_only(example: CheckExample) -> Fitted:
    return rarevote.fit(example.folder / "votes.csv")


@pytest.fixture(scope="module")
def with_noise(example: CheckExample) -> Fitted:
    return rarevote.fit(example.folder / "votes.csv", features=(IDS, example.noise.values))


def average_precision(truth: NDArray[Any], p: NDArray[Any]) -> float:
    """Sum over groups of tied items of the gain in recall times the precision at the end of the group."""
    found, last = 0.0, 0
    for value in sorted(set(p.tolist()), reverse=True):
        flagged = p >= value
        hits = int(truth[flagged].sum())
        found += (hits - last) / truth.sum() * hits / flagged.sum()
        last = hits
    return found


def scores(example: CheckExample, fitted: Fitted, part: slice) -> tuple[float, float, float]:
    """Average precision, log loss and balanced accuracy."""
    result = fitted.decide()
    truth = np.array([int(example.truth[name]) for name in result.tasks.tolist()])[part]
    p, labels = result.probabilities.p[part, 1], result.codes[part]
    loss = -np.log(np.maximum(np.where(truth == 1, p, 1.0 - p), 1e-6)).mean()
    right = [(labels[truth == k] == k).mean() for k in (0, 1)]
    return average_precision(truth, p), float(loss), float(np.mean(right))


VOTED, POOL = slice(0, 240), slice(240, None)


@pytest.mark.parametrize(
    ("part", "expected"), [(VOTED, (0.984146, 0.135762, 0.947090)), (POOL, (0.909524, 0.190321, 0.905660))]
)
def test_scores_with_features(
    example: CheckExample, with_features: Fitted, part: slice, expected: tuple[float, ...]
) -> None:
    assert scores(example, with_features, part) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("part", "expected"), [(VOTED, (0.888372, 0.265847, 0.850763)), (POOL, (0.116667, 0.410362, 0.5))]
)
def test_scores_where_features_are_left_out(
    example: CheckExample, with_noise: Fitted, part: slice, expected: tuple[float, ...]
) -> None:
    assert scores(example, with_noise, part) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("part", "expected"), [(VOTED, (0.989990, 0.136899, 0.952381)), (POOL, (0.871521, 0.208082))])
def test_scores_with_predicted_probabilities(example: CheckExample, part: slice, expected: tuple[float, ...]) -> None:
    given = (list(example.table.place), example.probabilities, ["0", "1"])
    fitted = rarevote.fit(example.folder / "votes.csv", pred_probs=given)
    assert scores(example, fitted, part)[: len(expected)] == pytest.approx(expected, abs=1e-4)


def test_left_out_means_the_bits_of_the_votes(votes_only: Fitted, with_noise: Fitted) -> None:
    one, other = votes_only.decide(), with_noise.decide()
    assert np.array_equal(one.codes, other.codes[:240])
    assert np.array_equal(votes_only.probabilities, with_noise.probabilities[:240])
    assert np.array_equal(with_noise.probabilities[240:], np.broadcast_to(votes_only.reported.mean, (60, 2)))
    assert "they were left out" in with_noise.features_.reason  # type: ignore[union-attr]


def test_without_features_there_is_no_trace(votes_only: Fitted) -> None:
    result = votes_only.decide()
    assert votes_only.features_ is None
    assert "features" not in result.summary(expected=False)
    assert "decision" not in result.columns()
    with pytest.raises(ParameterError, match="needs features or pred_probs"):
        result.columns(with_prior=True)


def test_rows_of_the_result(with_features: Fitted) -> None:
    result = with_features.decide()
    rows = result.columns(with_prior=True, with_posterior=True)
    assert len(rows["task"]) == 300
    assert rows["votes"][240:].sum() == 0
    assert set(rows["decision"][240:]) == {"features"}
    assert set(rows["label"]) == {"0", "1"}
    assert np.array_equal(rows["prior:1"][240:], rows["posterior:1"][240:]) or np.allclose(
        rows["prior:1"][240:], rows["posterior:1"][240:], atol=1e-15
    )
    figures = result.summary(expected=False)
    assert figures["features"]["used"]
    assert figures["features"]["labels_without_a_vote"] == 10
    assert figures["n_without_votes"] == 60


def test_no_label_without_a_vote_where_that_is_asked_for(with_features: Fitted) -> None:
    result = with_features.decide(allow_unvoted=False)
    assert result.n_without_a_vote == 0
    assert result.n_guarded == 10
    assert (result.codes[240:] >= 0).all()


def test_plan_names_items_without_votes(with_features: Fitted) -> None:
    """An item without a label counts as one of the most frequent class: the likelier rare, the more it gains."""
    result = with_features.decide()
    plan = result.plan(300)
    p, share = with_features.probabilities, with_features.probabilities.mean(axis=0)
    miss = min(share[0] / share[1], 10.0)  # of the balanced rule; a false alarm costs 1
    gains = {}
    for row in range(300):
        if row >= 240 or result.codes[row] == 0:
            gains[row] = miss * p[row, 1]
        else:
            gains[row] = p[row, 0]
    assert {item.row: item.gain for item in plan.items} == pytest.approx(gains)
    assert [item.row for item in plan.items] == sorted(gains, key=lambda row: -gains[row])
    assert plan.expected_cost == pytest.approx(sum(gains.values()))
    first = next(item for item in plan.items if item.row >= 240)
    assert first.decided is None
    assert first.reason.startswith("not labelled, which counts as ")
    pool = [item.row for item in plan.items if item.row >= 240]
    assert pool == sorted(range(240, 300), key=lambda row: -p[row, 1])


def test_another_method_is_refused(example: CheckExample) -> None:
    with pytest.raises(ParameterError, match="glad cannot use features of the items: leave features out"):
        rarevote.fit(example.folder / "votes.csv", "glad", features=example.folder / "features.csv")


def test_gold_without_votes_teaches_and_is_certain(example: CheckExample) -> None:
    gold = {name: example.truth[name] for name in ("t250", "t251", "t0")}
    fitted = rarevote.fit(example.folder / "votes.csv", gold=gold, features=example.folder / "features.csv")
    result = fitted.decide()
    rows = dict(zip(result.tasks.tolist(), range(300), strict=True))
    for name, label in gold.items():
        assert result.labels[rows[name]] == label
        assert result.probabilities.p[rows[name], int(label)] == 1.0
    assert fitted.features_.items == 242  # type: ignore[union-attr]


@pytest.mark.parametrize("method", [None, "anchored-rasch"])
def test_an_order_and_features_do_not_go_together(method: str | None) -> None:
    drawn = draw_crowd(1)
    with pytest.raises(ParameterError, match="features ignore the order of classes: omit features or ordered"):
        rarevote.fit(drawn.votes, method, features=drawn.given, ordered=["a", "b", "c"])


def test_an_estimator_says_where_features_go() -> None:
    drawn = draw_crowd(1)
    with pytest.raises(ParameterError, match=r"use rarevote.fit\(data, AnchoredRasch\(\), features=...\)"):
        rarevote.AnchoredRasch().fit(drawn.votes, features=drawn.given)
    with pytest.raises(ParameterError, match="glad cannot use features of the items"):
        rarevote.GLAD().fit(drawn.votes, features=drawn.given)
