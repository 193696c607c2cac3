from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, recall_score
from sklearn.metrics import log_loss as sklearn_log_loss

from rarevote.api import compare
from rarevote.errors import InputError
from rarevote.scoring.compare import agreements, differing_tasks, proportions, score_labels
from rarevote.scoring.metrics import log_loss
from rarevote.scoring.ranking import calibration_error

RNG = np.random.default_rng(0)


def test_scores_are_those_of_scikit_learn() -> None:
    posterior = RNG.dirichlet([1.0, 2.0, 3.0], size=400)
    labels = posterior.argmax(axis=1)
    truth = {int(row): "abc"[RNG.integers(3)] for row in RNG.permutation(400)[:300]}
    found = score_labels(posterior, list("abc"), truth, labels)
    rows = list(truth)
    assert found.n_items == 300
    assert found.log_loss == pytest.approx(sklearn_log_loss(list(truth.values()), posterior[rows], labels=list("abc")))
    assert found.accuracy == pytest.approx(np.mean(["abc"[labels[row]] == truth[row] for row in rows]))
    assert found.balanced_accuracy == pytest.approx(np.mean(list(found.recall.values())))


def test_a_true_class_that_no_method_knows() -> None:
    posterior = np.array([[0.9, 0.1], [0.2, 0.8]])
    found = score_labels(posterior, ["a", "b"], {0: "z", 1: "b"}, np.array([0, 1]))
    assert found.recall == {"b": 1.0, "z": 0.0}
    assert found.log_loss is not None
    assert np.isfinite(found.log_loss)
    with pytest.raises(InputError, match="no truth"):
        score_labels(posterior, ["a", "b"], {}, np.array([0, 1]))


def test_no_answer_is_a_miss_of_any_type_of_class() -> None:
    posterior = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    found = score_labels(posterior, [1, 2], {0: 1, 1: 2, 2: 2}, np.array([0, 1, -1]))
    assert found.recall == {1: 1.0, 2: 0.5}
    assert found.precision == {1: 1.0, 2: 1.0}
    assert found.log_loss == pytest.approx(-np.log([0.9, 0.8, 0.4]).mean())
    silent = score_labels(posterior, [1, 2], {2: 2}, np.array([0, 1, -1]))
    assert (silent.recall, silent.precision, silent.accuracy) == ({2: 0.0}, {}, 0.0)


def test_items_without_votes_are_misses_of_every_method() -> None:
    rows = [(task, worker, "xy"[int(RNG.random() < 0.4)]) for task in range(12) for worker in range(3)]
    truth = {task: "xy"[task % 2] for task in range(16)}
    found = compare(rows, ["majority-vote", "dawid-skene"], items=range(15))
    scores = found.score(truth, {1: "y"})
    for name, one in scores.items():
        fit = found.fits[name]
        assert fit.labels[12:].tolist() == [-1] * 3
        labels = [found.annotations.classes[code] for code in fit.labels[:12]] + [""] * 3
        table = np.vstack([fit.p[:12], np.tile(fit.p[:12].mean(axis=0), (3, 1))])
        scored = [task for task in range(15) if task != 1]
        true = [truth[task] for task in scored]
        given = [labels[task] for task in scored]
        assert one.n_items == 14
        for k, recall in zip("xy", recall_score(true, given, average=None, labels=["x", "y"]), strict=True):
            assert one.recall[k] == pytest.approx(recall)
        assert one.log_loss == pytest.approx(log_loss(true, table[scored], classes=["x", "y"]))


def test_calibration() -> None:
    confidence = np.repeat([0.65, 0.95], 100)
    right = np.r_[np.arange(100) < 65, np.arange(100) < 95]
    assert calibration_error(confidence, right) == pytest.approx(0)
    assert calibration_error(confidence, np.zeros(200, dtype=bool)) == pytest.approx(0.8)
    assert calibration_error(np.array([1.0]), np.array([True])) == 0
    assert calibration_error(np.empty(0), np.empty(0, dtype=bool)) == 0


def test_agreement_is_cohens_kappa() -> None:
    labels = {name: RNG.choice(3, 500, p=[0.7, 0.2, 0.1]) for name in ("x", "y", "z")}
    labels["y"][:300] = labels["x"][:300]
    found = agreements(labels, 3)
    assert [(one.first, one.second) for one in found] == [("x", "y"), ("x", "z"), ("y", "z")]
    for one in found:
        assert one.kappa == pytest.approx(cohen_kappa_score(labels[one.first], labels[one.second]))
        assert one.share_equal == pytest.approx(np.mean(labels[one.first] == labels[one.second]))
        assert one.n_different == round(500 * (1 - one.share_equal))


def test_one_class_alone_has_no_kappa() -> None:
    (one,) = agreements({"x": np.zeros(5, dtype=np.int64), "y": np.zeros(5, dtype=np.int64)}, 2)
    assert one.kappa is None
    assert one.share_equal == 1


def test_proportions_and_differences() -> None:
    labels = {"x": np.array([0, 1, 1, 0]), "y": np.array([0, 1, 0, 0]), "z": np.array([0, 0, 1, 0])}
    assert proportions(labels, ["a", "b"])["x"] == {"a": 0.5, "b": 0.5}
    assert differing_tasks(labels).tolist() == [1, 2]
    assert differing_tasks({"x": labels["x"]}).tolist() == []
    assert differing_tasks({}).tolist() == []
