"""Gold against no gold on a small dataset of ours, with the gold vote recomputed by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rarevote import CCRasch
from rarevote.errors import InputError, ParameterError
from rarevote.simulate.crowds import SimulatedCrowd, simulate_crowd
from rarevote.study import gold
from rarevote.study.datasets import find_dataset
from rarevote.study.gold import CONTENDERS, GoldRow, GoldStudy, GoldTrial
from tests.study import small_data

N_TASKS = 240


def crowd_of(seed: int) -> SimulatedCrowd:
    return simulate_crowd(N_TASKS, 15, imbalance=4, votes_per_task=5, exact_counts=True, random_state=seed)


def write_dataset(folder: Path, crowd: SimulatedCrowd, *, stranger: bool = False) -> None:
    folder.mkdir(parents=True)
    names = {0: "no", 1: "yes"}
    with (folder / "labels.csv").open("w", newline="") as handle:
        csv.writer(handle).writerows(
            [("task", "worker", "label")]
            + [(f"t{t:03}", f"w{w}", names[y]) for t, w, y in zip(*(c.tolist() for c in crowd.arrays), strict=True)]
        )
    with (folder / "truth.csv").open("w", newline="") as handle:
        rows = [(f"t{t:03}", names[y]) for t, y in enumerate(crowd.truth.tolist())]
        csv.writer(handle).writerows([("task", "label"), *rows, *([("nobody", "no")] if stranger else [])])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Our crowd under the name of a dataset of the registry."""
    write_dataset(tmp_path / "data" / "product", crowd_of(1), stranger=True)
    gold._load.cache_clear()
    return tmp_path / "data"


def by_title(rows: list[GoldRow]) -> dict[str, GoldRow]:
    return {row.contender: row for row in rows}


def test_contenders_against_computation_by_hand(data: Path) -> None:
    rows = by_title(GoldTrial("product", str(data), 0.2, 7, CONTENDERS).run())
    crowd = crowd_of(1)
    order = np.random.default_rng(7).permutation(N_TASKS)
    revealed, rest = order[:48], order[48:]
    told = np.isin(crowd.task, revealed)
    right = crowd.label == crowd.truth[crowd.task]
    skill = np.bincount(crowd.worker[told], right[told], 15) / np.bincount(crowd.worker[told], minlength=15)

    def recalls(weight: NDArray[np.float64]) -> list[float]:
        votes = np.zeros((N_TASKS, 2))
        np.add.at(votes, (crowd.task, crowd.label), weight[crowd.worker])
        answers = votes.argmax(axis=1)
        return [float((answers[rest] == k)[crowd.truth[rest] == k].mean()) for k in (0, 1)]

    for title, weight in (("Gold majority vote", skill), ("Majority vote (no gold)", np.ones(15))):
        expected = recalls(weight)
        assert rows[title].minority_recall == pytest.approx(expected[1])
        assert rows[title].balanced_accuracy == pytest.approx(np.mean(expected))
        assert (rows[title].n_gold, rows[title].n_scored) == (48, N_TASKS - 48)

    # Without gold means without the gold items: fitted on the votes of the rest alone.
    votes = tuple(column[~told] for column in crowd.arrays)
    labels = CCRasch(n_jobs=1).fit(votes).labels_.to_dict()
    is_rare = crowd.truth[rest] == 1
    found = np.array([labels[task] for task in rest.tolist()]) == 1
    assert rows["CC-Rasch without gold"].minority_recall == pytest.approx(found[is_rare].mean())
    with_gold = CCRasch(n_jobs=1).fit(crowd.arrays, {int(t): int(crowd.truth[t]) for t in revealed}).labels_.to_dict()
    found = np.array([with_gold[task] for task in rest.tolist()]) == 1
    assert rows["CC-Rasch with gold"].minority_recall == pytest.approx(found[is_rare].mean())


def test_the_rare_class_is_that_of_the_whole_dataset() -> None:
    from rarevote.crowd.annotations import Annotations

    crowd = Annotations.from_arrays(["a", "a", "b", "c"], [1, 2, 1, 1], ["x", "y", "y", "x"])
    numbered = gold.number(crowd, {"a": "y", "b": "z", "c": "y"})
    # "z" got no vote but is the truth of b: it is a class, and the rarest.
    assert (numbered.n_classes, numbered.rare) == (3, 2)
    assert numbered.truth.tolist() == [1, 2, 1]


def test_datasets_are_chosen_on_both_sides_one_per_source(tmp_path: Path) -> None:
    for slug in ("rte", "sp", "zc-all", "zc-in", "product", "bird-crowdfm", "dog"):
        (tmp_path / slug).mkdir()
        for part, text in (("labels", "task,worker,label\n"), ("truth", "task,label\n")):
            (tmp_path / slug / f"{part}.csv").write_text(text)
    chosen = gold.choose_datasets(tmp_path)
    # zc-in shares its source with zc-all, bird-crowdfm is too small, dog is neither balanced nor imbalanced.
    assert [info.slug for info in chosen] == ["sp", "rte", "product", "zc-all"]
    assert [info.slug for info in gold.choose_datasets(tmp_path, ["dog"])] == ["dog"]
    with pytest.raises(InputError, match="ms was not found"):
        gold.choose_datasets(tmp_path, ["ms"])
    with pytest.raises(ParameterError, match="did you mean"):
        gold.choose_datasets(tmp_path, ["prodct"])


def test_the_benchmark_has_four_datasets_on_each_side(shared_folder: Path) -> None:
    chosen = gold.choose_datasets(shared_folder / "datasets")
    assert sum(info.imbalance < 1.3 for info in chosen) == 4
    assert sum(info.imbalance > 3 for info in chosen) == 4
    assert len({info.source_group for info in chosen}) == 8


def made_up(values: dict[str, float]) -> list[GoldRow]:
    stream = np.random.default_rng(0)
    return [
        GoldRow(dataset, share, seed, title, 1, 1, value + noise, value + noise, 0.5)
        for dataset in ("product", "zc-all")
        for share in (0.1, 0.5)
        for seed in range(20)
        for noise in [stream.normal(0, 0.01)]
        for title, value in values.items()
    ]


def test_findings_say_who_beats_whom_beyond_chance() -> None:
    rows = made_up({"CC-Rasch without gold": 0.8, "Gold majority vote": 0.7, "CC-Rasch with gold": 0.85})
    (sentence, *_) = gold.findings(rows, [find_dataset("product"), find_dataset("zc-all")])
    assert "by Gold majority vote at no share tried (-0.100 at 50%)" in sentence
    assert "by CC-Rasch with gold from 10% gold on (+0.050 at 50%)" in sentence


def test_a_lead_is_paired_by_draw() -> None:
    rows = [
        GoldRow("product", 0.1, seed, title, 1, 1, value, 0, 0)
        for seed, (a, b) in enumerate([(0.5, 0.6), (0.7, 0.75), (0.2, 0.35)])
        for title, value in (("base", a), ("rival", b))
    ]
    gaps = [0.1, 0.05, 0.15]
    low, high = stats.t.interval(0.95, 2, loc=0.1, scale=stats.sem(gaps))
    found = gold.lead(rows, [find_dataset("product")], "minority_recall", 0.1, "rival", "base")
    assert found == pytest.approx((0.1, low, high))


@pytest.mark.prove
def test_the_study_writes_everything(data: Path, tmp_path: Path) -> None:
    chosen = gold.choose_datasets(data)
    out = tmp_path / "out"
    section = GoldStudy(chosen, data=data, n_seeds=2, shares=(0.1, 0.5)).run(out, n_jobs=1)
    with (out / "gold.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert len(rows) == 2 * 2 * len(CONTENDERS)
    assert {row["contender"] for row in rows} == {one.title for one in CONTENDERS}
    assert any("no labels (first: 'nobody')" in setting for setting in section.settings)
    assert "With and without gold" in (out / "index.html").read_text(encoding="utf-8")
    few = GoldStudy(chosen, data=data, methods=["majority-vote"], n_seeds=1, shares=(0.5,)).run(out, n_jobs=1)
    assert few.findings == []
    with pytest.raises(ParameterError, match="compares majority-vote"):
        GoldStudy(chosen, data=data, methods=["glad"])


def test_a_folder_without_the_papers_datasets_gives_its_own(tmp_path: Path) -> None:
    small_data.write_dataset(tmp_path, "mine", n_tasks=300)
    small_data.write_dataset(tmp_path, "too-small", n_tasks=50)
    assert [one.slug for one in gold.choose_datasets(tmp_path)] == ["mine"]
    assert [one.slug for one in gold.choose_datasets(tmp_path, ["too-small"])] == ["too-small"]
