from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarevote.errors import InputError
from rarevote.methods.weighted import Wawa
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows


def majority(rows: Rows) -> dict[str, str]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for task, _, label in rows:
        counts[task][label] += 1
    return {task: min(of, key=lambda label: (-of[label], label)) for task, of in counts.items()}


def oracle(rows: Rows) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    labels = majority(rows)
    given: dict[str, list[bool]] = defaultdict(list)
    for task, worker, label in set(rows):  # an answer repeated word for word counts once
        given[worker].append(label == labels[task])
    skill = {worker: sum(agreed) / len(agreed) for worker, agreed in given.items()}
    classes = sorted({label for _, _, label in rows})
    scores = {task: dict.fromkeys(classes, 0.0) for task in labels}
    for task, worker, label in rows:
        scores[task][label] += skill[worker]
    totals = {task: sum(of.values()) for task, of in scores.items()}
    probas = {
        task: {label: s / totals[task] if totals[task] else 1 / len(classes) for label, s in of.items()}
        for task, of in scores.items()
    }
    return skill, probas


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("tuvw"), st.sampled_from("klmn"), st.sampled_from("abc")), min_size=1))
def test_equals_the_slow_one(rows: Rows) -> None:
    model = Wawa().fit(columns(rows))
    skill, probas = oracle(rows)
    assert model.skills_.to_dict() == pytest.approx(skill)
    result = model.probas_.to_dict()
    assert {task: pytest.approx(of) for task, of in probas.items()} == result


def test_new_tasks_of_known_workers() -> None:
    rows, _ = random_rows(30, 6, "abc")
    model = Wawa().fit(columns(rows))
    assert model.predict(columns(rows)).to_dict() == model.labels_.to_dict()
    assert model.predict_proba(columns(rows)).to_dict() == model.probas_.to_dict()
    skill = model.skills_.to_dict()
    new = model.predict_proba((["n", "n"], ["w01", "w04"], ["a", "b"])).to_dict()["n"]
    total = skill["w01"] + skill["w04"]
    assert new == pytest.approx({"a": skill["w01"] / total, "b": skill["w04"] / total, "c": 0.0})


def test_unknown_workers_are_refused() -> None:
    model = Wawa().fit(columns(EDGES["one task"]))
    with pytest.raises(InputError, match=r"2 workers were not in the fit \(first: 'y'\)"):
        model.predict((["n", "n", "n"], ["w", "y", "z"], ["a", "b", "b"]))


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str) -> None:
    check_edges(Wawa, EDGES[edge])


def test_permutation_without_ties() -> None:
    # Three votes for two classes cannot tie.
    check_permutation(Wawa, random_rows()[0])


def test_empty_input() -> None:
    model = Wawa().fit(([], [], []))
    assert model.labels_.to_dict() == {}
    assert len(model.predict(([], [], []))) == 0
