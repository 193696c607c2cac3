from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from rarevote.em.loop import Progress
from rarevote.errors import InputError, ParameterError
from rarevote.methods.weighted import ZeroBasedSkill
from tests.methods.crowds import EDGES, Rows, check_edges, check_permutation, columns, random_rows


def scores(rows: Rows, skill: dict[str, float]) -> dict[str, dict[str, float]]:
    classes = sorted({label for _, _, label in rows})
    total = {task: dict.fromkeys(classes, 0.0) for task, _, _ in rows}
    for task, worker, label in rows:
        total[task][label] += skill[worker]
    return total


def oracle(rows: Rows, n_iter: int, rate: float, steps: int, factor: float, eps: float) -> dict[str, float]:
    """Every iteration carried out, on dictionaries."""
    skill = dict.fromkeys({worker for _, worker, _ in rows}, 1 / len({label for _, _, label in rows}) + eps)
    for iteration in range(1, n_iter + 1):
        if iteration % steps == 0:
            rate *= factor
        labels = {
            task: min(of, key=lambda label: (-round(of[label], 10), label)) for task, of in scores(rows, skill).items()
        }
        agreed: dict[str, list[bool]] = defaultdict(list)
        for task, worker, label in rows:
            agreed[worker].append(label == labels[task])
        skill = {w: s + rate * (sum(agreed[w]) / len(agreed[w]) - s) for w, s in skill.items()}
    return skill


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "parameters",
    [(100, 1.0, 20, 0.5, 1e-5), (7, 0.3, 2, 0.5, 0.0), (40, 0.9, 3, 0.7, 0.1)],
)
def test_equals_the_slow_one(parameters: tuple[int, float, int, float, float], seed: int) -> None:
    rows, _ = random_rows(25, 6, "abc", accuracy=0.5, seed=seed)
    model = ZeroBasedSkill(*parameters).fit(columns(rows))
    expected = oracle(rows, *parameters)
    assert model.skills_.to_dict() == pytest.approx(expected, abs=1e-12)
    for task, of in scores(rows, expected).items():
        total = sum(of.values())
        assert model.probas_.to_dict()[task] == pytest.approx({label: s / total for label, s in of.items()})


def test_new_tasks_of_known_workers() -> None:
    rows, _ = random_rows(30, 6, "abc")
    model = ZeroBasedSkill().fit(columns(rows))
    assert model.predict(columns(rows)).to_dict() == model.labels_.to_dict()
    assert model.predict_proba(columns(rows)).to_dict() == model.probas_.to_dict()
    with pytest.raises(InputError, match="1 worker was not in the fit"):
        model.predict((["n"], ["nobody"], ["a"]))


def test_stops_when_the_skills_rest() -> None:
    rows, _ = random_rows()
    told: list[Progress] = []
    model = ZeroBasedSkill().fit(columns(rows), callback=told.append)
    assert model.n_iter_ == len(told) < 100
    assert told[-1].change == 0.0


@pytest.mark.parametrize("edge", EDGES)
def test_edges(edge: str) -> None:
    check_edges(ZeroBasedSkill, EDGES[edge])


def test_permutation_without_ties() -> None:
    check_permutation(ZeroBasedSkill, random_rows()[0])


def test_empty_input() -> None:
    assert ZeroBasedSkill().fit(([], [], [])).labels_.to_dict() == {}


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_iter": -1},
        {"lr_init": 0.0},
        {"lr_init": 1.5},
        {"lr_steps_to_reduce": 0.5},
        {"lr_reduce_factor": 2},
        {"eps": -1e-5},
        {"eps": "small"},
    ],
)
def test_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(parameters))):
        ZeroBasedSkill(**parameters).fit(columns(EDGES["one task"]))
