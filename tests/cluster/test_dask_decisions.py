"""Decisions on dask against those of one machine: the same labels, probabilities, guards and figures."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rarevote
from rarevote import AnchoredOrdered, AnchoredRasch, CCRasch, DawidSkene, MajorityVote
from rarevote.api import Fitted, Result
from rarevote.cluster.fit import Dask
from rarevote.cluster.labelling import kth_largest
from rarevote.decide.sampled import IndependentDraws
from rarevote.em import local
from rarevote.errors import ParameterError, RarevoteWarning
from rarevote.methods.base import Estimator
from tests.command import rarevote as command

pandas = pytest.importorskip("pandas", reason="pandas is not installed")
# Dask's own warnings are not ours to turn into errors.
pytestmark = pytest.mark.filterwarnings("default")

N_SHARDS, CLASSES = 3, ("blue", "green", "red")
COSTS = {(true, said): 8.0 if true == "red" else 1.0 for true in CLASSES for said in CLASSES if true != said}
DECISIONS: dict[str, dict[str, Any]] = {
    "own": {},
    "cost": {"costs": COSTS},
    "recall": {"min_recall": {"red": 0.8}},
    "cap": {"cap": 3.0},
    "abstain": {"abstain_below": 0.8},
}


def make_frame(n_tasks: int = 150, n_votes: int = 3) -> Any:
    """Three classes, few votes, and annotators who differ: guards have something to do."""
    rng = np.random.default_rng(7)
    truth = rng.choice(3, n_tasks, p=[0.7, 0.2, 0.1])
    skill = rng.uniform(0.35, 0.9, 12)
    rows = [
        (
            f"task-{task:04d}",
            f"worker {worker}",
            CLASSES[truth[task] if rng.random() < skill[worker] else rng.choice(3)],
        )
        for task in range(n_tasks)
        for worker in rng.choice(12, n_votes, replace=False)
    ]
    return pandas.DataFrame(rows, columns=["task", "worker", "label"])


@pytest.fixture(scope="module")
def frame() -> Any:
    return make_frame()


@pytest.fixture(scope="module")
def shards(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The votes in files, each of which is a shard of the fit on one machine: fits of equal shards have equal bits."""
    folder = tmp_path_factory.mktemp("shards")
    with equal_shards(len(frame)):
        votes = rarevote.read(frame).annotations
        bounds = local.shard_bounds(votes)
    assert len(bounds) == N_SHARDS + 1
    place = {name: number for number, name in enumerate(votes.tasks.tolist())}
    of_row = np.searchsorted(bounds, frame["task"].map(place).to_numpy(), side="right") - 1
    for number in range(N_SHARDS):
        frame[of_row == number].to_csv(folder / f"{number}.csv", index=False)
    return folder


@contextmanager
def equal_shards(n_votes: int) -> Iterator[None]:
    """Fits on one machine cut the votes into so many shards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "_ANNOTATIONS_PER_SHARD", n_votes // N_SHARDS)
        patch.setattr(local, "_SHARDS_MULTIPLE", 1)
        yield


METHODS: dict[str, tuple[Callable[[], Estimator], bool]] = {
    "dawid-skene": (lambda: DawidSkene(12, tol=0), False),
    "cc-rasch": (lambda: CCRasch(12, tol=0), False),
    "majority-vote": (MajorityVote, False),
    "anchored-rasch": (lambda: AnchoredRasch(12, tol=0), True),
}


@pytest.fixture(scope="module")
def fits(frame: Any) -> dict[str, Fitted]:
    """Each method on one machine."""
    with equal_shards(len(frame)):
        return {
            name: rarevote.fit(frame, make(), gold=gold_of(frame, given)) for name, (make, given) in METHODS.items()
        }


@pytest.fixture(autouse=True)
def without_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine expects what dask does: independent errors are sampled only where all votes are in one memory."""

    def none(fitted: Fitted) -> IndependentDraws:
        return IndependentDraws.none(len(fitted.reported), "the votes are not in memory")

    monkeypatch.setattr(Fitted, "independent", property(none))


def gold_of(frame: Any, given: bool) -> dict[str, str] | None:
    """Known classes of some tasks; the first of them has no vote for its class."""
    if not given:
        return None
    tasks = sorted(frame["task"].unique())[::10]
    votes = frame.groupby("task")["label"].agg(list)
    unvoted = next(name for name in CLASSES if name not in votes[tasks[0]])
    return {tasks[0]: unvoted, **{task: max(votes[task], key=votes[task].count) for task in tasks[1:]}}


def decided(fitted: Fitted, **how: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        return fitted.decide(**how)


def on_dask(client: Any, data: Path, out: Path, estimator: Estimator, gold: Any = None, **how: Any) -> tuple[Any, Any]:
    """Rows by name of the task, and the summary as the file has it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Dask(out, client=client, partitioned=True).fit(estimator, data, gold, **how)
    rows = pandas.read_parquet(out / "tasks").sort_values("task").reset_index(drop=True)
    return rows, json.loads((out / "summary.json").read_text(encoding="utf-8"))


def same_figures(there: Any, here: Any, where: str = "") -> None:
    """Numbers to rounding, all else exactly."""
    assert type(there) is type(here) or {type(there), type(here)} <= {int, float}, where
    if isinstance(here, dict):
        assert list(there) == list(here), where
        for name, value in here.items():
            same_figures(there[name], value, f"{where}.{name}")
    elif isinstance(here, list):
        assert len(there) == len(here), where
        for number, value in enumerate(here):
            same_figures(there[number], value, f"{where}[{number}]")
    elif isinstance(here, float):
        assert there == pytest.approx(here, rel=1e-9, abs=1e-9), where
    else:
        assert there == here, where


def same_answer(rows: Any, summary: Any, here: Result) -> None:
    """Rows and summary of dask are those of the result."""
    assert rows["task"].tolist() == here.tasks.tolist()
    assert rows["label"].tolist() == here.labels.tolist()
    columns = here.columns(with_posterior=True)
    for name in rows.columns.difference(["task", "label"]):
        if isinstance(columns[name][0], str):
            assert rows[name].tolist() == columns[name].tolist()
            continue
        np.testing.assert_allclose(rows[name], columns[name], rtol=0, atol=1e-12, err_msg=name)
    wanted = json.loads(json.dumps(here.summary(), default=str))
    wanted["decision"].pop("leans_to")  # compares pairs of annotators, which dask does not
    # Where class shares are given, that is the first reason why nothing is sampled.
    why = [one["decision"].pop("only_shared") for one in (summary, wanted)]
    assert why[0] == "the votes are not in memory"
    assert why[1] in (why[0], "the class shares are given")
    for name in ("decision", "rare", "classes", "decided_by", "n_guarded", "cannot_answer", "warnings"):
        same_figures(summary[name], wanted[name], name)


# One method that reports itself and one that is tempered with every run of the tests; the others in the proofs.
ALWAYS = ("anchored-rasch", "dawid-skene")
EACH = [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.prove) for name in METHODS]


@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("method", EACH)
def test_decisions_are_those_of_one_machine(
    client: Any, frame: Any, shards: Path, fits: dict[str, Fitted], tmp_path: Path, method: str, decision: str
) -> None:
    make, given = METHODS[method]
    gold = gold_of(frame, given)
    here = decided(fits[method], **DECISIONS[decision])
    how = DECISIONS[decision] | {"with_posterior": True}
    rows, summary = on_dask(client, shards, tmp_path, make(), gold, **how)
    same_answer(rows, summary, here)
    if gold:
        known = rows.set_index("task")["label"]
        assert {task: known[task] for task in gold} == gold
    if decision == "abstain":
        assert 0 < (rows["label"] == "").sum() == summary["decision"]["n_abstained"]


@pytest.mark.parametrize(
    "how",
    [
        {"decide": "argmax"},
        {"decide": "labels"},
        {"rare": "green"},
        {"prevalence": {"blue": 0.5, "green": 0.3, "red": 0.2}, "cap": 2.0},
        {"min_recall": {"green": 0.999}},
        {"allow_unvoted": True, "costs": COSTS},
        {"allow_unvoted": True, "min_recall": {"red": 0.9}},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["anchored-rasch", pytest.param("dawid-skene", marks=pytest.mark.prove)])
def test_other_ways_to_decide(
    client: Any, frame: Any, shards: Path, fits: dict[str, Fitted], tmp_path: Path, method: str, how: dict[str, Any]
) -> None:
    make, given = METHODS[method]
    fitted = fits[method]
    if "rare" in how:
        with equal_shards(len(frame)):
            fitted = rarevote.fit(frame, make(), gold=gold_of(frame, given), rare=how["rare"])
    here = decided(fitted, **{name: value for name, value in how.items() if name != "rare"})
    rows, summary = on_dask(client, shards, tmp_path, make(), gold_of(frame, given), **how)
    assert not [name for name in rows if name.startswith("posterior:")]
    same_answer(rows, summary, here)


GRADES = ["green", "blue", "red"]


@pytest.mark.parametrize(
    "how",
    [{}, {"rare": ">=blue"}, {"rare": "<=blue", "min_recall": {">=red": 0.9}}, {"decide": "mean"}],
    ids=str,
)
@pytest.mark.parametrize("method", ["anchored-ordered", pytest.param("dawid-skene", marks=pytest.mark.prove)])
def test_grades_are_those_of_one_machine(
    client: Any,
    frame: Any,
    shards: Path,
    tmp_path: Path,
    method: str,
    how: dict[str, Any],
) -> None:
    estimator = AnchoredOrdered(12, tol=0) if method == "anchored-ordered" else DawidSkene(12, tol=0)
    gold = gold_of(frame, True)
    with equal_shards(len(frame)), warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        fitted = rarevote.fit(frame, estimator, ordered=GRADES, gold=gold, rare=how.get("rare"))
    here = decided(fitted, **{name: value for name, value in how.items() if name != "rare"})
    rows, summary = on_dask(client, shards, tmp_path, estimator, gold, ordered=GRADES, **how)
    same_answer(rows, summary, here)
    columns = ["grade", *(f"{what}{name}" for name in [how.get("rare", "")] if name for what in ("p", "flag"))]
    assert [name for name in rows if name in ("grade", "p>=blue", "flag>=blue", "p<=blue", "flag<=blue")] == columns


def test_what_cannot_be_decided_is_refused_before_the_fit(client: Any, shards: Path, tmp_path: Path) -> None:
    for how, message in (
        ({"min_recall": {"pink": 0.9}}, "'pink' is not a class"),
        ({"costs": {("pink", "red"): 1.0}}, "'pink' is not a class"),
        ({"rare": "pink"}, "'pink' is not a class"),
        ({"rare": ">=red"}, "needs their order"),
        ({"ordered": ["red", "pink", "white"], "rare": ">=red"}, "holds all of the grades"),
        ({"prevalence": {"pink": 0.9}}, "'pink' is not a class"),
        ({"min_recall": {"red": 0.9}, "errors": "independent"}, "needs all votes in the memory of one machine"),
        ({"cap": 3.0, "decide": "argmax"}, "decide and cap cannot be used together"),
    ):
        with pytest.raises(ParameterError, match=message):
            Dask(tmp_path / "out", client=client, partitioned=True).fit(MajorityVote(), shards, **how)
        assert not (tmp_path / "out" / "summary.json").exists()


# --------------------------------------------------------------------------------------------------------------------
# guards


def aggregated(client: Any, votes: Path, out: Path, *options: str, code: int = 0) -> str:
    """What ``rarevote aggregate --engine dask`` says."""
    scheduler = ("--engine", "dask", "--scheduler", client.scheduler.address)
    return command("aggregate", votes, *scheduler, "--out", out, *options, code=code).stderr


def warnings_in(said: str) -> list[str]:
    return sorted(line for line in said.splitlines() if line.startswith("rarevote: warning: "))


@pytest.mark.parametrize("method", ["anchored-rasch", "dawid-skene"])
def test_one_annotator_is_told_and_strict_about(client: Any, tmp_path: Path, method: str) -> None:
    votes = tmp_path / "votes.csv"
    given = {f"t{number:02d}": "ab"[number % 4 == 0] for number in range(40)}
    votes.write_text("task,worker,label\n" + "".join(f"{task},ann,{label}\n" for task, label in given.items()))
    arguments = ("--method", method, "--strict")
    here = command("aggregate", votes, *arguments, "--out", tmp_path / "here.csv", code=3).stderr
    there = aggregated(client, votes, tmp_path / "there", *arguments, code=3)
    assert any("all votes are by one annotator (ann), so no method can learn" in line for line in warnings_in(here))
    assert warnings_in(there) == warnings_in(here)
    found = pandas.read_parquet(tmp_path / "there" / "tasks")
    assert dict(zip(found["task"], found["label"], strict=True)) == given
    assert json.loads((tmp_path / "there" / "summary.json").read_text())["cannot_answer"] is True


def test_mostly_single_votes_are_told_and_not_strict_about(client: Any, tmp_path: Path) -> None:
    votes = tmp_path / "votes.csv"
    rows = [
        (f"t{n:02d}", worker, "ab"[n % 4 == 0]) for n in range(40) for worker in ("uvw" if n % 4 == 1 else "uvw"[n % 3])
    ]
    votes.write_text("task,worker,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    here = command("aggregate", votes, "--strict", "--out", tmp_path / "here.csv").stderr
    there = aggregated(client, votes, tmp_path / "there", "--strict")
    told = "rarevote: warning: 30 of 40 items have a single vote, which is the label"
    assert [line.startswith(told) for line in warnings_in(here)].count(True) == 1
    assert warnings_in(there) == warnings_in(here)


@pytest.mark.parametrize("seed", range(3))
def test_the_kth_largest_is_found_to_the_last_bit(seed: int) -> None:
    """Against sorting, with ties, neighbours in floating point, and the ends."""
    rng = np.random.default_rng(seed)
    numbers = rng.random(50) ** rng.integers(1, 30)
    numbers = np.concatenate([numbers, numbers[:5], np.nextafter(numbers[:5], 1.0), [0.0, 0.0, 1.0, 5e-324]])
    asked = []

    def count_at_least(thresholds: Any) -> Any:
        asked.append(len(thresholds))
        return (numbers >= thresholds[:, None]).sum(axis=1)

    wanted = np.sort(numbers)[::-1]
    for k in range(1, len(numbers) + 1):
        assert kth_largest(count_at_least, k) == wanted[k - 1]
    assert len(asked) <= 9 * len(numbers)  # questions to all machines
