from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, precision_score, recall_score

from rarevote.api import compare
from rarevote.scoring.intervals import N_DRAWS, draws_of, score_intervals
from rarevote.scoring.ranking import log_loss_of

RNG = np.random.default_rng(4)
CLASSES = ["a", "b", "c"]
N = 240


@pytest.fixture(scope="module")
def crowd() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    truth = RNG.choice(3, N, p=[0.7, 0.2, 0.1])
    p = {name: RNG.dirichlet([1.0, 1.0, 1.0], N) + 2 * np.eye(3)[truth] * (RNG.random((N, 1)) < 0.7) for name in "xy"}
    p = {name: one / one.sum(axis=1, keepdims=True) for name, one in p.items()}
    labels = {name: one.argmax(axis=1) for name, one in p.items()}
    labels["y"][:7] = -1  # no answer
    return p, labels, truth


def test_intervals_are_those_of_a_plain_loop_over_draws_of_items(
    crowd: tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray],
) -> None:
    p, labels, truth = crowd
    found = score_intervals(p, labels, truth, CLASSES, n_draws=150)
    figures: dict[str, dict[str, list[float]]] = {name: {} for name in "xy"}
    for items in draws_of(N, 150):
        for name in "xy":
            true, given = truth[items], labels[name][items]
            one = {
                "accuracy": np.mean(true == given),
                "balanced_accuracy": np.mean([np.mean(given[true == k] == k) for k in range(3)]),
                "macro_f1": f1_score(true, given, average=None, labels=[0, 1, 2]).mean(),
                "log_loss": log_loss_of(p[name][items], true),
                "recall b": recall_score(true, given, labels=[1], average=None)[0],
                "precision c": precision_score(true, given, labels=[2], average=None)[0],
            }
            if (given >= 0).all():
                assert one["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, given))
            for key, value in one.items():
                figures[name].setdefault(key, []).append(value)
    for name in "xy":
        of_method = found[name].own
        ours = {
            **of_method.overall,
            "recall b": of_method.recall["b"],
            "precision c": of_method.precision["c"],
        }
        assert set(ours) == set(figures[name])
        for key, values in figures[name].items():
            assert ours[key][1:] == pytest.approx(np.quantile(values, [0.025, 0.975]), abs=1e-12), (name, key)
    less = found["y"].difference
    assert less is not None
    assert found["x"].difference is None
    of_pair = {**less.overall, "recall b": less.recall["b"], "precision c": less.precision["c"]}
    for key, interval in of_pair.items():
        gaps = np.subtract(figures["y"][key], figures["x"][key])
        assert interval[1:] == pytest.approx(np.quantile(gaps, [0.025, 0.975]), abs=1e-12), key
    assert less.overall["accuracy"].value == pytest.approx(
        np.mean(labels["y"] == truth) - np.mean(labels["x"] == truth)
    )


def test_draws_are_of_items_with_replacement_and_always_the_same() -> None:
    first, second = [np.array(list(draws_of(50, 40))) for _ in range(2)]
    assert (first == second).all()
    assert first.shape == (40, 50)
    assert (first.min(), first.max()) == (0, 49)
    # Of n items a draw has n (1 - 1/e) different ones on average.
    assert np.mean([len(set(one.tolist())) for one in first]) == pytest.approx(50 * (1 - np.exp(-1)), abs=1)


def test_a_class_that_is_in_no_draw_or_never_answered_has_no_interval() -> None:
    truth, answers = np.zeros(20, dtype=np.int64), {"x": np.zeros(20, dtype=np.int64)}
    (one,) = score_intervals({"x": np.tile([0.9, 0.1], (20, 1))}, answers, truth, ["a", "b"], n_draws=20).values()
    assert list(one.own.recall) == ["a"]
    assert list(one.own.precision) == ["a"]
    assert one.own.overall["accuracy"] == (1.0, 1.0, 1.0)


def test_a_comparison_has_intervals_around_its_scores() -> None:
    rows = [(task, worker, "xy"[int(RNG.random() < 0.2 + 0.5 * (task % 3 == 0))]) for task in range(90) for worker in range(3)]  # fmt: skip # noqa: E501
    truth = {task: "yxx"[task % 3] for task in range(95)}
    found = compare(rows, ["majority-vote", "dawid-skene"])
    scores, intervals = found.score(truth, {1: "y"}), found.intervals(truth, {1: "y"})
    assert list(intervals) == ["majority-vote", "dawid-skene"]
    for name, one in intervals.items():
        own = one.own
        assert own.overall["macro_f1"].value == pytest.approx(scores[name].macro_f1)
        assert own.overall["log_loss"].value == pytest.approx(scores[name].log_loss)
        assert {k: v.value for k, v in own.recall.items()} == pytest.approx(scores[name].recall)
        assert {k: v.value for k, v in own.precision.items()} == pytest.approx(scores[name].precision)
        assert all(figure.low <= figure.value <= figure.high for figure in own.overall.values())
    assert N_DRAWS >= 1000
