"""Metrics against scikit-learn, against values worked out by hand, and on input that must be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.errors import InputError, MissingValuesError
from rarevote.scoring import metrics

CASES = [
    # n_items, classes of the truth, classes of the answers
    pytest.param(200, 2, 2, id="binary"),
    pytest.param(500, 5, 5, id="five-classes"),
    pytest.param(300, 3, 7, id="answers-hold-classes-absent-from-truth"),
    pytest.param(300, 7, 3, id="some-true-classes-never-answered"),
    pytest.param(40, 30, 30, id="many-classes-few-items"),
    pytest.param(50, 1, 2, id="one-true-class"),
    pytest.param(1, 1, 1, id="one-item"),
]


@pytest.mark.filterwarnings("ignore::UserWarning")  # scikit-learn remarks on absent classes
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize(("n_items", "n_true", "n_answered"), CASES)
def test_scores_equal_scikit_learn(n_items: int, n_true: int, n_answered: int, text: bool) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.ones(n_true))
        truth: Any = rng.choice(n_true, size=n_items, p=shares)
        guess = rng.integers(n_answered, size=n_items)
        predicted: Any = np.where((rng.random(n_items) < 0.6) & (truth < n_answered), truth, guess)
        if text:
            truth, predicted = np.char.add("c", truth.astype(str)), np.char.add("c", predicted.astype(str))

        scores = metrics.score(truth, predicted)

        assert scores.n_items == n_items
        assert scores.accuracy == pytest.approx(sklearn.metrics.accuracy_score(truth, predicted))
        assert scores.macro_f1 == pytest.approx(sklearn.metrics.f1_score(truth, predicted, average="macro"))
        assert scores.balanced_accuracy == pytest.approx(sklearn.metrics.balanced_accuracy_score(truth, predicted))
        for name, value in scores.recall.items():
            expected = sklearn.metrics.recall_score(truth, predicted, labels=[name], average=None)[0]
            assert value == pytest.approx(expected)
        for name, value in scores.precision.items():
            expected = sklearn.metrics.precision_score(truth, predicted, labels=[name], average=None)[0]
            assert value == pytest.approx(expected)
        assert set(scores.recall) == set(truth.tolist())
        assert set(scores.precision) == set(predicted.tolist())
        np.testing.assert_array_equal(
            metrics.confusion_matrix(truth, predicted, classes=sorted({*truth.tolist(), *predicted.tolist()})),
            sklearn.metrics.confusion_matrix(truth, predicted),
        )


def test_hand_computed_case() -> None:
    #        six sound, three cracked, one broken
    truth = ["sound"] * 6 + ["cracked"] * 3 + ["broken"]
    predicted = ["sound"] * 5 + ["cracked"] + ["cracked", "sound", "sound"] + ["lost"]

    scores = metrics.score(truth, predicted)

    assert (scores.minority_class, scores.n_items, scores.minority_recall) == ("broken", 10, 0.0)
    assert scores.balanced_accuracy == pytest.approx((5 / 6 + 1 / 3 + 0) / 3)
    # F1: sound 2*5/(6+7), cracked 2*1/(3+2), broken 0, lost 0
    assert scores.macro_f1 == pytest.approx((10 / 13 + 2 / 5) / 4)
    assert scores.accuracy == pytest.approx(0.6)
    assert scores.recall == pytest.approx({"broken": 0.0, "cracked": 1 / 3, "sound": 5 / 6})
    assert scores.precision == pytest.approx({"cracked": 0.5, "lost": 0.0, "sound": 5 / 7})
    assert list(scores.recall) == ["broken", "cracked", "sound"]


def test_single_metrics_are_the_fields_of_score() -> None:
    truth, predicted = [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]
    scores = metrics.score(truth, predicted)
    assert scores.minority_recall == 0.5
    assert scores.recall == {0: 0.75, 1: 0.5}
    assert scores.balanced_accuracy == 0.625
    assert scores.macro_f1 == pytest.approx((6 / 8 + 2 / 4) / 2)
    assert scores.accuracy == pytest.approx(4 / 6)
    assert metrics.confusion_matrix(truth, predicted).tolist() == [[3, 1], [1, 1]]


@pytest.mark.parametrize(
    ("truth", "expected"),
    [
        ([1, 0, 1, 0], 0),
        (["b", "a", "c"], "a"),
        ([3.0, 3.0, 2.0, 2.0, 10.0, 10.0], 2.0),
        (["10", "9", "10", "9"], "9"),  # whole numbers as text go by value
        (["10", "9", "10", "9", "9"], "10"),
        ([True, False, False], True),
    ],
)
def test_minority_class_and_its_ties(truth: list[Any], expected: Any) -> None:
    assert metrics.minority_class(truth) == expected
    assert metrics.score(truth, truth).minority_class == expected


def test_minority_class_follows_a_given_order_and_passes_over_absent_classes() -> None:
    assert metrics.minority_class(["a", "b"], classes=["z", "b", "a"]) == "b"
    with pytest.raises(InputError, match="'c' is not among the classes"):
        metrics.minority_class(["a", "c"], classes=["a", "b"])
    with pytest.raises(InputError, match="twice"):
        metrics.minority_class(["a"], classes=["a", "a"])


def test_tied_minority_recall_is_that_of_the_first_class() -> None:
    assert metrics.score([0, 0, 1, 1], [0, 0, 0, 0]).minority_recall == 1.0
    assert metrics.score([0, 0, 1, 1], [1, 1, 1, 1]).minority_recall == 0.0


def test_labels_of_several_python_types_score_alike() -> None:
    truth, predicted = [0, 1, 1, 2], [0, 1, 2, 2]
    expected = metrics.score(truth, predicted)
    assert metrics.score(np.array(truth), tuple(predicted)) == expected
    assert metrics.score(np.array(truth, dtype=object), np.array(predicted, dtype=np.uint8)) == expected
    assert metrics.score(pd.Series(truth, index=[9, 8, 7, 6]), pd.Series(predicted, index=[9, 8, 7, 6])) == expected


def test_mixed_labels_have_scores() -> None:
    scores = metrics.score([1, "x", "x", (2, 3)], [1, "x", 1, (2, 3)])
    assert scores.accuracy == 0.75
    assert scores.recall == {1: 1.0, "x": 0.5, (2, 3): 1.0}


def test_confusion_matrix_with_given_classes() -> None:
    counts = metrics.confusion_matrix(["b", "a"], ["a", "a"], classes=["b", "x", "a"])
    assert counts.tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 1]]
    with pytest.raises(InputError, match="'a' is not among the classes"):
        metrics.confusion_matrix(["b", "a"], ["a", "a"], classes=["b"])


def test_score_needs_no_square_table() -> None:
    truth = np.arange(100_000)  # a square table would hold 10^10 cells
    assert metrics.score(truth, np.roll(truth, 1)).accuracy == 0.0
    assert metrics.score(truth, truth).macro_f1 == 1.0


def test_log_loss_equals_scikit_learn() -> None:
    rng = np.random.default_rng(4)
    for n_classes in (2, 3, 6):
        truth = rng.integers(n_classes, size=60)
        table = rng.dirichlet(np.full(n_classes, 0.3), size=60)
        table[0] = np.eye(n_classes)[(truth[0] + 1) % n_classes]  # certain and wrong
        clipped = np.clip(table, 1e-6, None)  # a certain mistake costs as much as one in a million
        expected = -np.log(clipped[np.arange(60), truth]).mean()
        usual = sklearn.metrics.log_loss(
            truth[1:], clipped[1:] / clipped[1:].sum(axis=1, keepdims=True), labels=range(n_classes)
        )
        assert metrics.log_loss(truth[1:], table[1:], classes=range(n_classes)) == pytest.approx(usual, rel=1e-4)
        assert metrics.log_loss(truth, table, classes=range(n_classes)) == pytest.approx(expected)


def test_log_loss_columns_follow_the_given_classes() -> None:
    table = [[0.9, 0.1], [0.2, 0.8]]
    loss = metrics.log_loss(["no", "no"], table, classes=["yes", "no"])
    assert loss == pytest.approx(-(np.log(0.1) + np.log(0.8)) / 2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.5]], "shape"),
        ([[0.5, 0.5], [0.7, 0.7]], "item 1 are not a distribution"),
        ([[np.nan, 0.5], [0.5, 0.5]], "item 0 are not a distribution"),
        ([[1.5, -0.5], [0.5, 0.5]], "item 0 are not a distribution"),
    ],
)
def test_log_loss_refuses_what_is_no_distribution(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        metrics.log_loss([0, 1], table, classes=[0, 1])


PAIRED: list[Callable[[Any, Any], object]] = [
    metrics.score,
    metrics.confusion_matrix,
]


@pytest.mark.parametrize("metric", PAIRED, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(
    ("truth", "predicted", "message"),
    [
        ([], [], "truth is empty"),
        ([1], [], "predicted is empty"),
        ([1, 2], [1], "2 items and predicted 1"),
        ([[1], [2]], [1, 2], "not hashable"),
        (np.ones((2, 2)), [1, 2], "one dimension"),
        ({1: 2}, [1], "says whose labels they are"),
        ("ab", ["a", "b"], "sequence of labels"),
        (["1", "0"], [1, 0], "convert one of them"),
        ([1, 0], ["1", "0"], "convert one of them"),
    ],
)
def test_unusable_input_is_refused(
    metric: Callable[[Any, Any], object], truth: Any, predicted: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        metric(truth, predicted)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_missing_labels_are_refused(missing: Any) -> None:
    with pytest.raises(MissingValuesError, match="truth holds a missing label"):
        metrics.score(["a", missing], ["a", "b"])
    with pytest.raises(MissingValuesError, match="predicted holds a missing label"):
        metrics.score(["a", "b"], ["a", missing])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40), st.randoms())
def test_order_of_items_and_names_of_classes_do_not_matter(pairs: list[tuple[int, int]], random: Any) -> None:
    scores = metrics.score([t for t, _ in pairs], [p for _, p in pairs])
    shuffled = random.sample(pairs, len(pairs))
    assert metrics.score([t for t, _ in shuffled], [p for _, p in shuffled]) == scores
    renamed = metrics.score([f"class {t}" for t, _ in pairs], [f"class {p}" for _, p in pairs])
    assert renamed.minority_class == f"class {scores.minority_class}"
    assert renamed.macro_f1 == pytest.approx(scores.macro_f1)


def test_no_answer_is_a_miss_and_no_false_alarm() -> None:
    found = metrics.score(["a", "a", "b", "b"], ["a", "", "b", "a"], unanswered="")
    assert found.recall == {"a": 0.5, "b": 0.5}
    assert found.precision == {"a": 0.5, "b": 1.0}
    # F1: a has one hit, one miss, one false alarm; b one hit and one miss.
    assert found.macro_f1 == pytest.approx((2 / 4 + 2 / 3) / 2)
    assert found.accuracy == 0.5
    assert metrics.score(["a", "b"], ["a", "b"], unanswered="") == metrics.score(["a", "b"], ["a", "b"])
