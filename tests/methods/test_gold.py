from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.methods.base import Estimator
from rarevote.methods.gold import GoldDawidSkene, GoldMajorityVote
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows

METHODS = [GoldMajorityVote, GoldDawidSkene]
CLASSES = "abc"


def some_gold(truth: dict[str, str], share: int = 4) -> dict[str, str]:
    return {task: label for i, (task, label) in enumerate(truth.items()) if i % share == 0}


def slow_vote(rows: Rows, gold: dict[str, str]) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    answers: dict[str, list[bool]] = defaultdict(list)
    for task, worker, label in rows:
        if task in gold:
            answers[worker].append(label == gold[task])
    skill = {worker: sum(given) / len(given) for worker, given in answers.items()}
    mean = sum(skill.values()) / len(skill)
    skill |= {worker: mean for _, worker, _ in rows if worker not in skill}
    scores: dict[str, dict[str, float]] = {task: dict.fromkeys(CLASSES, 0.0) for task, _, _ in rows}
    for task, worker, label in rows:
        scores[task][label] += skill[worker]
    for task, of_class in scores.items():
        total = sum(of_class.values())
        for label in CLASSES:
            of_class[label] = of_class[label] / total if total else 1 / len(CLASSES)
            if task in gold:
                of_class[label] = float(label == gold[task])
    return skill, scores


def slow_dawid_skene(rows: Rows, gold: dict[str, str], s: float, toward: str) -> dict[str, dict[str, float]]:
    K = len(CLASSES)

    def count(label: str, true: str, worker: str | None = None) -> int:
        return sum(
            1 for t, w, y in rows if t in gold and y == label and gold[t] == true and (worker is None or w == worker)
        )

    def crowd(label: str, true: str) -> float:
        if toward == "uniform":
            return 1 / K
        return (count(label, true) + s) / (sum(count(y, true) for y in CLASSES) + s * K)

    def error(worker: str, label: str, true: str) -> float:
        given = sum(count(y, true, worker) for y in CLASSES)
        return (count(label, true, worker) + s * K * crowd(label, true)) / (given + s * K)

    prior = {k: (list(gold.values()).count(k) + s) / (len(gold) + s * K) for k in CLASSES}
    posterior = {}
    for task in {t for t, _, _ in rows}:
        joint = {k: prior[k] * prod(error(w, y, k) for t, w, y in rows if t == task) for k in CLASSES}
        if task in gold:
            joint = {k: float(k == gold[task]) for k in CLASSES}
        posterior[task] = {k: value / sum(joint.values()) for k, value in joint.items()}
    return posterior


def assert_close(result: dict[str, dict[str, float]], expected: dict[str, dict[str, float]]) -> None:
    assert set(result) == set(expected)
    for task, of_class in expected.items():
        for label, value in of_class.items():
            assert result[task][label] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_gold_majority_vote_equals_the_slow_one(seed: int) -> None:
    rows, truth = random_rows(20, 6, CLASSES, accuracy=0.5, seed=seed)
    gold = some_gold(truth)
    model = GoldMajorityVote().fit(columns(rows), gold)
    skills, scores = slow_vote(rows, gold)
    assert model.skills_.to_dict() == pytest.approx(skills)
    assert_close(model.probas_.to_dict(), scores)


@pytest.mark.parametrize("toward", ["crowd", "uniform"])
@pytest.mark.parametrize("smoothing", [1.0, 0.2])
def test_gold_dawid_skene_equals_the_slow_one(toward: Any, smoothing: float) -> None:
    rows, truth = random_rows(12, 5, CLASSES)
    gold = some_gold(truth)
    model = GoldDawidSkene(smoothing=smoothing, toward=toward).fit(columns(rows), gold)
    assert_close(model.probas_.to_dict(), slow_dawid_skene(rows, gold, smoothing, toward))


def test_workers_without_gold_answers() -> None:
    rows: Rows = [("g", "ann", "a"), ("g", "bob", "b"), ("t", "cy", "b"), ("t", "ann", "a")]
    gold = {"g": "a"}
    assert GoldMajorityVote().fit(columns(rows), gold).skills_.to_dict() == {"ann": 1.0, "bob": 0.0, "cy": 0.5}
    given = GoldMajorityVote(default_skill=0.2).fit(columns(rows), gold)
    assert given.skills_.to_dict() == {"ann": 1.0, "bob": 0.0, "cy": 0.2}
    errors = GoldDawidSkene().fit(columns(rows), gold).errors_.to_dict()
    # One answer a and one b on class a: the crowd is even; nothing was seen on class b.
    assert [errors["cy", label]["a"] for label in "ab"] == [0.5, 0.5]
    assert errors["ann", "a"]["a"] == pytest.approx((1 + 2 * 0.5) / 3)
    assert errors["ann", "a"]["b"] == 0.5


def test_errors_sum_to_one_per_true_class_and_priors_to_one() -> None:
    rows, truth = random_rows(30, 6, CLASSES)
    task, worker, label = columns(rows)
    model = GoldDawidSkene().fit(pd.DataFrame({"task": task, "worker": worker, "label": label}), pd.Series(truth))
    assert model.errors_.index.names == ["worker", "label"]
    np.testing.assert_allclose(model.errors_.groupby(level="worker").sum(), 1.0)
    assert model.priors_.sum() == pytest.approx(1.0)


def test_a_task_of_voters_without_skill_is_uniform() -> None:
    model = GoldMajorityVote().fit(columns([("g", "w", "b"), ("t", "w", "b"), ("g", "v", "a")]), {"g": "a"})
    assert model.probas_.to_dict()["t"] == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("method", METHODS)
def test_new_tasks_get_what_they_would_have_got_in_the_fit(method: Any) -> None:
    rows, truth = random_rows(30, 6, CLASSES, accuracy=0.6)
    gold = some_gold(truth)
    model = method().fit(columns(rows), gold)
    rest = [row for row in rows if row[0] not in gold]
    probas = model.probas_.to_dict()
    assert_close(model.predict_proba(columns(rest)).to_dict(), {task: probas[task] for task, _, _ in rest})
    labels = model.labels_.to_dict()
    assert model.predict(columns(rest)).to_dict() == {task: labels[task] for task, _, _ in rest}


def test_unseen_workers_count_as_workers_without_gold_answers() -> None:
    rows: Rows = [("g", "ann", "a"), ("g", "bob", "b"), ("t", "ann", "a"), ("t", "cy", "b")]
    new: Rows = [("n", "ann", "a"), ("n", "cy", "b")]
    stranger: Rows = [("n", "ann", "a"), ("n", "zoe", "b")]
    for method in METHODS:
        model = method().fit(columns(rows), {"g": "a"})
        assert model.predict_proba(columns(stranger)).to_dict() == model.predict_proba(columns(new)).to_dict()
    with pytest.raises(InputError, match="label 'z' was not among the classes"):
        model.predict(columns([("n", "ann", "z")]))


def test_predict_takes_only_some_of_the_classes_and_answers_in_kind() -> None:
    rows, truth = random_rows(12, 5, CLASSES)
    model = GoldMajorityVote().fit(columns(rows), truth)
    frame = pd.DataFrame({"task": ["n"], "worker": ["w00"], "label": ["c"]})
    probas = model.predict_proba(frame)
    assert list(probas.columns) == list(CLASSES)
    assert probas.loc["n", "c"] == 1.0
    assert model.predict(frame).to_dict() == {"n": "c"}
    assert len(model.predict(frame[:0])) == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("edge", EDGES)
def test_edges(method: type[Estimator], edge: str) -> None:
    check_edges(method, EDGES[edge], {"t": "a"})


@pytest.mark.parametrize("method", METHODS)
def test_permutation(method: type[Estimator]) -> None:
    rows, truth = random_rows(40, 7, CLASSES, accuracy=0.6)
    check_permutation(method, rows, some_gold(truth))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("absent", [None, {}])
def test_gold_is_needed(method: type[Estimator], absent: dict[str, str] | None) -> None:
    with pytest.raises(ParameterError, match=r"gold: give some as fit\(data, true_labels\)"):
        method().fit(columns(EDGES["one task"]), absent)


@pytest.mark.parametrize("method", METHODS)
def test_gold_for_unknown_tasks_only_is_refused(method: type[Estimator]) -> None:
    with pytest.raises(InputError, match="none of the 1 gold tasks is in the annotations"):
        method().fit(columns(EDGES["one task"]), {"elsewhere": "a"})


def test_gold_may_name_a_class_without_votes() -> None:
    rows: Rows = [("g", "w", "a"), ("h", "w", "b"), ("t", "w", "a")]
    with pytest.warns(RarevoteWarning, match="classes without votes"):
        model = GoldDawidSkene().fit(columns(rows), {"g": "c", "h": "b"})
    assert model.labels_.to_dict() == {"g": "c", "h": "b", "t": "c"}


@pytest.mark.parametrize("method", METHODS)
def test_empty_input(method: type[Estimator]) -> None:
    assert method().fit(([], [], [])).labels_.to_dict() == {}


@pytest.mark.parametrize(
    "model",
    [
        GoldMajorityVote(default_skill=-1.0),
        GoldMajorityVote(default_skill="high"),  # type: ignore[arg-type]
        GoldDawidSkene(smoothing=0.0),
        GoldDawidSkene(toward="zero"),  # type: ignore[arg-type]
    ],
)
def test_bad_parameters(model: Estimator) -> None:
    with pytest.raises(ParameterError):
        model.fit(columns(EDGES["one task"]), {"t": "a"})


def test_rounding_does_not_decide_between_equal_sums_of_skills() -> None:
    """Skills of 0.1 and 0.2 against 0.3: a tie, which goes to the first class in whatever order they are added."""
    right = {"w1": 1, "w2": 2, "w3": 3}
    rows = [(f"g{i}", worker, "a" if i < n else "b") for worker, n in right.items() for i in range(10)]
    tied = [("t", "w1", "b"), ("t", "w2", "b"), ("t", "w3", "a")]
    model = GoldMajorityVote().fit(columns(rows + tied), {f"g{i}": "a" for i in range(10)})
    assert model.skills_.to_dict() == {"w1": 0.1, "w2": 0.2, "w3": 0.3}
    assert model.labels_.to_dict()["t"] == "a"
    assert model.predict(columns(tied)).to_dict() == {"t": "a"}
