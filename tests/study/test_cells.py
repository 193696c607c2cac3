from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarevote.scoring.metrics import score
from rarevote.study import cells
from rarevote.study.cells import Cell, CellOutcome, Problem, StudyProgress, Variant, fit_cell, run_cells, unavailable
from tests.study.small_data import register_fakes, small_problem

VOTE, RASCH = Variant("majority-vote"), Variant("cc-rasch")


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    register_fakes(monkeypatch)


def run(folder: Path, *variants: Variant, n_seeds: int = 2) -> cells.Outcomes:
    return run_cells([small_problem()], variants, folder, n_seeds=n_seeds, n_jobs=1)


def test_a_cell_has_the_scores_of_its_fit() -> None:
    problem = small_problem()
    fitted = RASCH.estimator().fit(problem.annotations)
    labels = fitted.labels_.to_dict()
    expected = score(list(problem.truth.values()), [labels[task] for task in problem.truth])
    outcome = fit_cell(problem, RASCH, None)
    assert outcome.status == "done"
    assert outcome.minority_recall == expected.minority_recall
    assert outcome.balanced_accuracy == expected.balanced_accuracy
    assert outcome.macro_f1 == expected.macro_f1
    assert outcome.accuracy == expected.accuracy
    assert outcome.n_iter == fitted.n_iter_
    assert outcome.converged == fitted.converged_


def test_finished_cells_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path, VOTE, RASCH)

    def never(*_: object) -> CellOutcome:
        raise AssertionError("ran a finished cell again")

    monkeypatch.setattr(cells, "fit_cell", never)
    assert run(tmp_path, VOTE, RASCH) == first


def test_variants_of_the_same_parameters_share_their_cells(tmp_path: Path) -> None:
    outcomes = run(tmp_path, RASCH, Variant("cc-rasch", (("prior", "uniform"),)))
    assert len(list(tmp_path.iterdir())) == 1
    assert len(outcomes) == 2


def test_the_key_follows_everything_that_decides_the_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small_problem()
    truth = dict(problem.truth)
    truth[0] = 1 - truth[0]
    names = {
        Cell(problem, RASCH, None).file_name,
        Cell(small_problem("other"), RASCH, None).file_name,
        Cell(small_problem(seed=1), RASCH, None).file_name,
        Cell(Problem("small", problem.annotations, truth), RASCH, None).file_name,
        Cell(problem, Variant("cc-rasch", (("prior", "estimate"),)), None).file_name,
        Cell(problem, RASCH, 0).file_name,
    }
    monkeypatch.setattr(cells, "__version__", "999")
    names.add(Cell(problem, RASCH, None).file_name)
    assert len(names) == 7


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"key": {}, "status": "done"}', "[" * 100_000])
def test_a_damaged_cell_is_run_again(tmp_path: Path, content: str) -> None:
    first = run(tmp_path, VOTE)
    (file,) = tmp_path.iterdir()
    file.write_text(content, encoding="utf-8")
    again = run(tmp_path, VOTE)
    assert again["small", VOTE][0].macro_f1 == first["small", VOTE][0].macro_f1
    assert json.loads(file.read_text(encoding="utf-8"))["status"] == "done"


def test_random_methods_run_with_every_seed(tmp_path: Path) -> None:
    outcomes = run(tmp_path, Variant("chance"), VOTE, n_seeds=4)
    assert len(outcomes["small", VOTE]) == 1
    assert len({outcome.macro_f1 for outcome in outcomes["small", Variant("chance")]}) > 1
    assert len(outcomes["small", Variant("chance")]) == 4
    assert len(list(tmp_path.iterdir())) == 5


def test_more_seeds_only_run_the_new_ones(tmp_path: Path) -> None:
    before = run(tmp_path, Variant("chance"), n_seeds=2)["small", Variant("chance")]
    assert run(tmp_path, Variant("chance"), n_seeds=3)["small", Variant("chance")][:2] == before


def test_a_failure_is_recorded_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Variant("broken")
    outcomes = run(tmp_path, broken, VOTE)
    assert outcomes["small", broken] == [CellOutcome("failed", "ZeroDivisionError: no such luck")]
    assert outcomes["small", VOTE][0].status == "done"
    assert len(list(tmp_path.iterdir())) == 2

    monkeypatch.setattr(cells, "fit_cell", lambda *_: CellOutcome("done"))
    assert run(tmp_path, broken)["small", broken] == [CellOutcome("done")]


def test_a_method_that_does_not_apply_says_so(tmp_path: Path) -> None:
    variant = Variant("two-classes")
    problems = [small_problem("two"), small_problem("three", n_classes=3)]
    outcomes = run_cells(problems, [variant], tmp_path, n_jobs=1)
    assert outcomes["two", variant][0].status == "done"
    assert outcomes["three", variant] == [CellOutcome("not applicable", "only for two classes")]


def test_unavailable_methods_are_found_once() -> None:
    needy = Variant("needs-weights")
    assert unavailable([VOTE, RASCH, needy, Variant("broken")]) == {needy: "no weights file"}


def test_progress_counts_kept_cells_and_comes_to_an_end(tmp_path: Path) -> None:
    seen: list[StudyProgress] = []
    run(tmp_path, VOTE)
    run_cells([small_problem()], [VOTE, RASCH, Variant("chance")], tmp_path, n_seeds=2, n_jobs=1, report=seen.append)
    assert [now.done for now in seen] == [1, 2, 3, 4]
    assert {now.total for now in seen} == {4}
    assert seen[0].seconds_left is None
    assert seen[1].seconds_left is not None
    assert seen[-1].seconds_left == 0


def test_processes_give_the_same_outcomes(tmp_path: Path) -> None:
    problems = [small_problem("a"), small_problem("b", n_classes=3, seed=1)]
    here = run_cells(problems, [VOTE, RASCH], tmp_path / "here", n_jobs=1)
    there = run_cells(problems, [VOTE, RASCH], tmp_path / "there", n_jobs=2)
    assert here.keys() == there.keys()
    for place, outcomes in here.items():
        for name in ("status", "minority_recall", "balanced_accuracy", "macro_f1", "accuracy", "n_iter", "converged"):
            assert getattr(outcomes[0], name) == getattr(there[place][0], name)
