"""The sweeps over made-up crowds: real numbers against an independent count, verdicts against constructed rows."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from rarevote.errors import MissingExtraError
from rarevote.simulate.crowds import simulate_crowd
from rarevote.study import synthetic
from rarevote.study.pool import run_jobs
from rarevote.study.synthetic import SWEEPS, CrowdSettings, SweepTrial, SyntheticRow, SyntheticStudy

SMALL = CrowdSettings(n_tasks=150, n_workers=20)
SPECIALISTS = SWEEPS[0]


def test_a_trial_scores_what_majority_vote_answers() -> None:
    row, _ = SweepTrial(SPECIALISTS, 0.4, 3, ("majority-vote", "cc-rasch"), SMALL).run()
    crowd = simulate_crowd(
        150, 20, p_good=0.25, p_bad=0.25, p_majority=0.4, p_minority=0.1, imbalance=7, votes_per_task=8, random_state=3
    )
    votes = np.zeros((150, 2))
    np.add.at(votes, (crowd.task, crowd.label), 1)
    answers = votes.argmax(axis=1)
    recalls = [(answers[crowd.truth == k] == k).mean() for k in (0, 1)]
    assert row.minority_recall == pytest.approx(recalls[1])
    assert row.balanced_accuracy == pytest.approx(np.mean(recalls))
    assert row.accuracy == pytest.approx((answers == crowd.truth).mean())


def test_sweeps_move_one_thing_and_keep_the_quarters() -> None:
    assert [sweep.name for sweep in SWEEPS] == ["specialists", "imbalance", "votes"]
    for x in SPECIALISTS.values:
        shares = SPECIALISTS.settings_at(x)
        assert sum(shares.values()) == pytest.approx(1)
        assert (shares["p_good"], shares["p_bad"], shares["p_majority"]) == (0.25, 0.25, x)
    assert (SPECIALISTS.values[0], SPECIALISTS.values[-1]) == (0.0, 0.5)
    assert (SWEEPS[1].values[0], SWEEPS[1].values[-1]) == (1, 100)
    assert (SWEEPS[2].values[0], SWEEPS[2].values[-1]) == (2, 30)


def made_up(method: str, slope: float, *, noise: float = 0.01, seeds: int = 20) -> list[SyntheticRow]:
    stream = np.random.default_rng([len(method), seeds])
    return [
        SyntheticRow("specialists", x, seed, method, 0.9 + slope * x + stream.normal(0, noise), 0.5, 0.5, 0.5, True)
        for seed in range(seeds)
        for x in SPECIALISTS.values
    ]


def test_flatness_is_the_mean_of_the_slopes_of_the_seeds() -> None:
    rows = made_up("glad", -0.6)
    found = synthetic.flatness(rows, "glad")
    slopes = [
        stats.linregress(SPECIALISTS.values, [row.minority_recall for row in rows if row.seed == seed]).slope
        for seed in range(20)
    ]
    low, high = stats.t.interval(0.95, 19, loc=np.mean(slopes), scale=stats.sem(slopes))
    assert found.slope == pytest.approx((np.mean(slopes), low, high))
    means = [np.mean([row.minority_recall for row in rows if row.x == x]) for x in SPECIALISTS.values]
    assert found.spread == pytest.approx(max(means) - min(means))
    assert (found.first, found.last) == pytest.approx((means[0], means[-1]))


def test_the_verdict_follows_the_numbers() -> None:
    rows = [
        *made_up("cc-rasch", -0.3),
        *made_up("majority-vote", -0.6),
        *made_up("dawid-skene", 0.1),
        *made_up("glad", -0.3, noise=0.05),
    ]
    (first, *_) = synthetic.findings(rows, ["majority-vote", "dawid-skene", "glad", "cc-rasch"], [SPECIALISTS])
    assert "flatter than Majority Vote (-0.060)" in first
    assert "steeper than Dawid–Skene (+0.0" in first
    assert "no different, within chance, from GLAD" in first


def test_points_carry_t_intervals() -> None:
    (example, *_) = made_up("glad", 0)
    values = (0.5, 0.6, 0.7, 0.6)
    rows = [replace(example, minority_recall=value, seed=seed) for seed, value in enumerate(values)]
    mark = next(mark for mark in synthetic.marks(rows, "specialists") if mark.panel == "Minority recall")
    low, high = stats.t.interval(0.95, 3, loc=0.6, scale=stats.sem(values))
    assert (mark.y, mark.low, mark.high) == pytest.approx((0.6, low, high))


def test_the_study_writes_everything(tmp_path: Path) -> None:
    sweeps = [replace(SWEEPS[0], values=(0.0, 0.5)), replace(SWEEPS[2], values=(2.0, 8.0))]
    done: list[int] = []
    study = SyntheticStudy(["majority-vote", "cc-rasch"], n_seeds=3, sweeps=sweeps, crowd=SMALL)
    section = study.run(tmp_path, n_jobs=1, report=done.append)
    assert done == list(range(2 * 2 * 3 + 1))
    assert len(study.trials()) == 2 * 2 * 3
    with (tmp_path / "synthetic.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 2 * 2 * 3 * 2
    for figure in section.figures:
        assert "150 tasks, 20 workers" in figure.caption
        assert "good 0.9 / 0.9" in figure.caption
        assert (tmp_path / f"{figure.stem}.svg").is_file()
        assert (tmp_path / f"{figure.stem}.png").is_file()
    assert "Synthetic crowds" in (tmp_path / "index.html").read_text(encoding="utf-8")
    again = replace(study, methods=["majority-vote"]).run(tmp_path / "again", n_jobs=1)
    assert again.tables[0].rows[0] == section.tables[0].rows[0]


@pytest.mark.parametrize(("module", "name"), [("joblib", "joblib"), ("pandas", "pandas"), ("scipy.stats", "scipy")])
def test_without_the_extra_nothing_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {name}: pip install 'rarevote\[study\]'"):
        SyntheticStudy(["majority-vote"], n_seeds=1, crowd=SMALL).run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_jobs_keep_their_order_over_processes() -> None:
    done: list[int] = []
    # A built-in function as the work, so that the processes have nothing to import.
    assert run_jobs(list, ["abc", "d", "ef"], n_jobs=2, report=done.append) == list("abcdef")
    assert done == [0, 1, 2, 3]
    assert run_jobs(list, [], n_jobs=2) == []


def test_an_error_of_a_job_is_the_error_of_the_study() -> None:
    with pytest.raises(TypeError, match="not iterable"):
        run_jobs(list, ["ab", 3], n_jobs=2)  # type: ignore[arg-type]
