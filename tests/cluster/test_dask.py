"""The dask engine against the local one, with workers and drivers that die. Small clusters serve all tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote import AnchoredRasch, CCRasch, DawidSkene, MajorityVote, OneCoinDawidSkene
from rarevote.api import Fitted, Result
from rarevote.cluster.engine import DaskEngine, connected
from rarevote.cluster.fit import Dask
from rarevote.em import local
from rarevote.em.loop import Progress
from rarevote.errors import (
    InputError,
    MissingExtraError,
    MissingValuesError,
    NotEnoughMemoryError,
    ParameterError,
    RarevoteError,
    RarevoteWarning,
)
from rarevote.methods.base import Estimator
from rarevote.methods.glad.estimator import GLAD
from rarevote.methods.new_tasks import PredictsNewTasks
from rarevote.methods.registry import methods_that
from tests.cluster.conftest import cluster_of_two
from tests.methods.contracts import DASK_TOLERANCE, Case, local_is_dask
from tests.tables import METHOD_ROWS, MethodRow

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'rarevote[dask]'")
pandas = pytest.importorskip("pandas", reason="pandas is not installed")
# Dask's own warnings are not ours to turn into errors.
pytestmark = pytest.mark.filterwarnings("default")

N_TASKS, N_VOTES, N_WORKERS, CLASSES = 300, 4, 25, ("blue", "green", "red")


@pytest.fixture(scope="module")
def mortal_client() -> Iterator[Any]:
    """Workers that are processes and can be killed."""
    with cluster_of_two(processes=True) as made:
        yield made


def make_frame(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    truth = rng.choice(len(CLASSES), N_TASKS, p=[0.7, 0.2, 0.1])
    task = np.repeat(np.arange(N_TASKS), N_VOTES)
    worker = rng.integers(0, N_WORKERS, task.size)
    label = np.where(rng.random(task.size) < 0.7, truth[task], rng.integers(0, len(CLASSES), task.size))
    order = rng.permutation(task.size)
    return pandas.DataFrame(
        {
            "task": [f"task-{number:05d}" for number in task[order]],
            "worker": [f"worker {number}" for number in worker[order]],
            "label": [CLASSES[k] for k in label[order]],
        }
    )


@pytest.fixture(scope="module")
def frame() -> Any:
    return make_frame()


@pytest.fixture(scope="module")
def parquet(frame: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    for number, begin in enumerate(range(0, len(frame), 500)):
        frame[begin : begin + 500].to_parquet(folder / f"part-{number}.parquet", row_group_size=200)
    return folder


def posterior(folder: Path, column: str = "p") -> Any:
    """Probabilities of all tasks, in the order of their names."""
    rows = pandas.read_parquet(folder / "tasks").sort_values("task")
    return rows[[f"{column}:{name}" for name in CLASSES]].to_numpy()


def decided(estimator: Estimator) -> Result:
    """What the fit decides on one machine; what it warns of is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        return Fitted.of(estimator).decide()


def worker_killer(client: Any, iteration: int, *, everybody: bool) -> Callable[[Progress], None]:
    def kill(progress: Progress) -> None:
        if progress.iteration == iteration:
            there = sorted(client.run(os.getpid).values())
            for victim in there if everybody else there[:1]:
                os.kill(victim, signal.SIGKILL)

    return kill


# --------------------------------------------------------------------------------------------------------------------
# the same answer


@pytest.mark.prove
@pytest.mark.parametrize(
    "estimator",
    [
        AnchoredRasch(12, tol=0),
        CCRasch(15, tol=0),
        DawidSkene(15, tol=0),
        OneCoinDawidSkene(10, tol=0),
        GLAD(10, tol=0),
        MajorityVote(),
    ],
    ids=lambda estimator: estimator.method_name,
)
def test_any_partitioning_gives_the_answer_of_one_machine(
    client: Any, parquet: Path, frame: Any, tmp_path: Path, estimator: Estimator
) -> None:
    result = Dask(tmp_path, client=client, n_shards=5).fit(estimator, parquet, with_posterior=True)
    one = decided(estimator.fit(frame))
    np.testing.assert_allclose(posterior(tmp_path), one.probabilities.p, rtol=0, atol=1e-8)
    np.testing.assert_allclose(posterior(tmp_path, "posterior"), estimator.posterior_, rtol=0, atol=1e-8)
    rows = pandas.read_parquet(tmp_path / "tasks").sort_values("task")
    assert rows["task"].tolist() == one.tasks.tolist()
    assert rows["label"].tolist() == one.labels.tolist()
    assert set(rows["votes"]) == {N_VOTES}
    np.testing.assert_allclose(rows["confidence"], one.confidence, rtol=0, atol=1e-8)
    assert result.summary["n_tasks"] == N_TASKS
    assert result.summary["n_annotations"] == N_TASKS * N_VOTES
    assert sum(entry["tasks"] for entry in result.summary["classes"].values()) == N_TASKS
    assert json.loads((tmp_path / "summary.json").read_text())["method"] == estimator.method_name
    attribute = estimator.worker_table
    assert (result.table is None) == (attribute is None)
    if result.table is not None and attribute is not None:
        ours, theirs = result.table.to_pandas(), getattr(estimator, attribute)
        np.testing.assert_allclose(ours.to_numpy(), theirs.to_numpy(), atol=1e-7)
        assert ours.index.tolist() == theirs.index.tolist()
    if isinstance(estimator, PredictsNewTasks):
        assert isinstance(result.model, PredictsNewTasks)
        there, here = (model.label_new(frame).posterior for model in (result.model, estimator))
        np.testing.assert_allclose(there, here, rtol=0, atol=1e-7)


def test_a_label_needs_a_vote_unless_that_is_lifted(client: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [
        (f"t{task}", f"w{worker}", f"c{rng.integers(6)}")
        for task in range(120)
        for worker in rng.choice(8, 2, replace=False)
    ]
    table = pandas.DataFrame(rows, columns=["task", "worker", "label"])
    table.to_parquet(tmp_path / "votes.parquet")
    given = table.groupby("task")["label"].agg(set)
    strange, guarded = [], []
    for allow_unvoted in (True, False):
        out = tmp_path / f"out-{allow_unvoted}"
        result = Dask(out, client=client, n_shards=2).fit(
            OneCoinDawidSkene(), tmp_path / "votes.parquet", allow_unvoted=allow_unvoted
        )
        written = pandas.read_parquet(out / "tasks")
        strange.append(
            sum(label not in given[task] for task, label in zip(written["task"], written["label"], strict=True))
        )
        guarded.append(result.summary["n_guarded"])
    assert strange[0] > 0
    assert strange[1] == 0
    assert guarded == [0, strange[0]]


@pytest.mark.prove
@pytest.mark.parametrize(("n_shards", "profiled"), [(3, False), (3, True), (7, False)])
def test_equal_shards_give_equal_bits(
    client: Any, frame: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_shards: int, profiled: bool
) -> None:
    if profiled:
        monkeypatch.setattr("rarevote.methods.cc_rasch.estimator._MAX_UNPROFILED_VOTES", 0)
    monkeypatch.setattr(local, "_ANNOTATIONS_PER_SHARD", N_TASKS * N_VOTES // n_shards)
    monkeypatch.setattr(local, "_SHARDS_MULTIPLE", 1)
    here = CCRasch(15, tol=0).fit(frame)
    bounds = local.shard_bounds(here.annotations_)
    assert len(bounds) == n_shards + 1
    number_of = {name: number for number, name in enumerate(here.annotations_.tasks.tolist())}
    shard = np.searchsorted(bounds, frame["task"].map(number_of).to_numpy(), side="right") - 1
    (tmp_path / "in").mkdir()
    for number in range(n_shards):
        frame[shard == number].to_csv(tmp_path / "in" / f"{number}.csv", index=False)
    result = Dask(tmp_path / "out", client=client, partitioned=True).fit(
        CCRasch(15, tol=0), tmp_path / "in", with_posterior=True
    )
    assert result.fit.history == here.loss_history_
    np.testing.assert_array_equal(posterior(tmp_path / "out", "posterior"), here.posterior_)
    np.testing.assert_allclose(posterior(tmp_path / "out"), here.reported_, rtol=0, atol=1e-14)


def test_hosts_stay_where_they_are(client: Any, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask sends tasks of which there are many wherever there is room; there a host would have to be recreated."""

    def recreated(engine: Any, numbers: frozenset[int]) -> None:
        raise AssertionError(f"hosts {set(numbers)} were not found where they are")

    monkeypatch.setattr(DaskEngine, "_recreate", recreated)
    result = Dask(tmp_path, client=client, n_shards=4).fit(CCRasch(15, tol=0), parquet)
    assert result.fit.n_iter == 15


@pytest.mark.prove
def test_a_dask_frame_gold_and_policies(client: Any, frame: Any, tmp_path: Path) -> None:
    dataframe = pytest.importorskip("dask.dataframe")
    extra = pandas.DataFrame({"task": ["task-00000"] * 2, "worker": ["worker 1"] * 2, "label": ["skip", None]})
    given = pandas.concat([frame, frame[:40], extra], ignore_index=True)
    gold = {"task-00000": "red", "task-00007": "green"}
    options: dict[str, Any] = {"abstain": ["skip"], "keep": "last", "missing": "drop"}
    result = Dask(tmp_path, client=client, n_shards=4).fit(
        CCRasch(20, tol=0), dataframe.from_pandas(given, npartitions=3), gold, **options, with_posterior=True
    )
    here = CCRasch(20, tol=0).fit(given, gold, **options)
    np.testing.assert_allclose(posterior(tmp_path), here.reported_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(posterior(tmp_path, "posterior"), here.posterior_, rtol=0, atol=1e-8)
    assert result.summary["n_annotations"] == here.annotations_.n_annotations
    assert result.summary["n_dropped"] == len(given) - here.annotations_.n_annotations


def test_classes_that_the_fit_cannot_tell_apart_are_decided_by_the_votes_of_their_shard(
    client: Any, tmp_path: Path
) -> None:
    """The optimum of four votes is one half each: rounding must not label a unanimous task otherwise."""
    crowd = pandas.DataFrame({"task": list("1122"), "worker": list("abab"), "label": list("xyyy")})
    (tmp_path / "in").mkdir()
    for task, votes in crowd.groupby("task"):
        votes.to_csv(tmp_path / "in" / f"{task}.csv", index=False)
    result = Dask(tmp_path / "out", client=client, partitioned=True).fit(
        CCRasch(), tmp_path / "in", with_posterior=True
    )
    written = pandas.read_parquet(tmp_path / "out" / "tasks").sort_values("task")
    np.testing.assert_allclose(written[["posterior:x", "posterior:y"]], 0.5, atol=1e-4)
    # Where the posterior says nothing, what remains are the shares of all votes.
    np.testing.assert_allclose(written[["p:x", "p:y"]], [[0.25, 0.75]] * 2, atol=1e-4)
    np.testing.assert_allclose(written["confidence"], [0.25, 0.75], atol=1e-4)
    assert dict(zip(written["task"], written["label"], strict=True)) == {"1": "x", "2": "y"}
    assert CCRasch().fit(crowd).labels_.to_dict() == {"1": "x", "2": "y"}
    assert [result.summary["classes"][name]["tasks"] for name in "xy"] == [1, 1]


# --------------------------------------------------------------------------------------------------------------------
# faults


@pytest.mark.prove
def test_a_killed_worker_changes_nothing(
    mortal_client: Any, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rarevote.cluster.engine._MAX_LOGGED_PASSES", 10)  # so that hosts write their state down, too
    calm = Dask(tmp_path / "calm", client=mortal_client, n_shards=5).fit(CCRasch(30, tol=0), parquet)
    for iteration, everybody in ((4, False), (23, True)):
        struck = Dask(tmp_path / "struck", client=mortal_client, n_shards=5).fit(
            CCRasch(30, tol=0), parquet, callback=worker_killer(mortal_client, iteration, everybody=everybody)
        )
        assert struck.fit.history == calm.fit.history
        np.testing.assert_array_equal(posterior(tmp_path / "struck"), posterior(tmp_path / "calm"))
    assert not list((tmp_path / "struck").glob(".*"))  # nothing is left behind


DRIVER = """
import sys
from distributed import Client
from rarevote import CCRasch
from rarevote.cluster.fit import Dask
address, data, out, checkpoint = sys.argv[1:]
Dask(out, scheduler=address, checkpoint=checkpoint, every=5, n_shards=4).fit(CCRasch(400, tol=0), data)
"""


@pytest.mark.prove
def test_a_killed_driver_is_resumed_bit_for_bit(mortal_client: Any, parquet: Path, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    address = mortal_client.scheduler.address
    arguments = [address, str(parquet), str(tmp_path / "out"), str(checkpoint)]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *arguments])
    deadline = time.monotonic() + 60
    while not list(checkpoint.glob("round-*/loop.json")) and time.monotonic() < deadline:
        assert driver.poll() is None, "the driver ended before it could be killed"
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "out" / "summary.json").exists()

    shared: dict[str, Any] = {"client": mortal_client, "every": 5, "n_shards": 4}
    with pytest.raises(InputError, match=r"a checkpoint of another fit.*sigma_alpha"):
        Dask(tmp_path / "out", checkpoint=checkpoint, **shared).fit(CCRasch(40, tol=0, sigma_alpha=0.7), parquet)
    with pytest.raises(InputError, match="checkpoint is of other data"):
        Dask(tmp_path / "out", checkpoint=checkpoint, **shared).fit(CCRasch(40, tol=0), parquet, keep="last")
    told: list[Progress] = []
    resumed = Dask(tmp_path / "out", checkpoint=checkpoint, **shared).fit(
        CCRasch(40, tol=0), parquet, callback=told.append
    )
    assert told[0].iteration % 5 == 0  # it resumed from a checkpoint
    assert not checkpoint.exists()
    undisturbed = Dask(tmp_path / "calm", checkpoint=tmp_path / "other", **shared).fit(CCRasch(40, tol=0), parquet)
    assert resumed.fit.history == undisturbed.fit.history
    assert resumed.fit.n_passes == undisturbed.fit.n_passes
    np.testing.assert_array_equal(posterior(tmp_path / "out"), posterior(tmp_path / "calm"))


def test_a_partition_that_cannot_be_read_is_named(client: Any, parquet: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for path in parquet.iterdir():
        (data / path.name).write_bytes(path.read_bytes())
    broken = data / "part-1.parquet"
    bytes_ = bytearray(broken.read_bytes())
    bytes_[4:900] = b"\xff" * 896  # the footer stays whole: only a worker finds out
    broken.write_bytes(bytes_)
    with pytest.raises(InputError, match=r"part-1\.parquet"):
        Dask(tmp_path / "out", client=client).fit(CCRasch(), data)
    broken.write_bytes(b"not parquet")
    with pytest.raises(InputError, match=r"part-1\.parquet: not a readable Parquet file"):
        Dask(tmp_path / "out", client=client).fit(CCRasch(), data)


def test_rows_with_missing_values_are_named(client: Any, frame: Any, tmp_path: Path) -> None:
    holes = frame.copy()
    holes.loc[[3, 8], "worker"] = None
    holes.to_csv(tmp_path / "holes.csv", index=False)
    with pytest.raises(MissingValuesError, match=r"holes\.csv: 2 rows have no worker \(4, 9\)"):
        Dask(tmp_path / "out", client=client).fit(CCRasch(), tmp_path / "holes.csv")


def test_a_scheduler_that_does_not_answer_leaves_dask_as_it_was(tmp_path: Path) -> None:
    config = pytest.importorskip("dask").config
    with config.set(scheduler="synchronous"):
        with pytest.raises(RarevoteError, match="no dask scheduler responds"):
            Dask(tmp_path / "out", scheduler="nonsense://x").fit(CCRasch(), tmp_path / "votes.csv")
        assert config.get("scheduler") == "synchronous"


@pytest.mark.prove
def test_a_cluster_of_our_own_listens_to_this_machine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    psutil = pytest.importorskip("psutil")  # dask needs it
    monkeypatch.setattr("rarevote.cluster.engine.n_threads", lambda n_jobs: 1)
    with connected() as client:
        address = client.scheduler.address
        with pytest.raises(OSError, match=r"tcp:|Timed out"):
            distributed.Client(address.replace("tls://", "tcp://"), timeout=3)
        this = psutil.Process()
        sockets = [
            socket for process in (this, *this.children(recursive=True)) for socket in process.net_connections("inet")
        ]
    listening = {socket.laddr.ip for socket in sockets if socket.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}
    assert address.startswith("tls://127.0.0.1:")  # and obeys nobody without our keys


# --------------------------------------------------------------------------------------------------------------------
# what is refused before anything starts


@pytest.mark.parametrize("row", METHOD_ROWS, ids=lambda row: row.name)
def test_methods_run_on_dask_exactly_where_they_declare(
    client: Any, frame: Any, row: MethodRow, tmp_path: Path
) -> None:
    """The trial of the capability ``dask``; the others are in ``tests/methods/test_capabilities.py``."""
    estimator = row.make()
    if "n_iter" in estimator.get_params():
        estimator.set_params(n_iter=3)
    if estimator.capabilities.ordered:
        estimator.set_params(ordered=list(CLASSES))
    if row.name in methods_that("dask"):
        (tmp_path / "votes").mkdir()
        frame[:200].to_parquet(tmp_path / "votes" / "part.parquet")
        Dask(tmp_path / "out", client=client, n_shards=2).fit(estimator, tmp_path / "votes")
        found = pandas.read_parquet(tmp_path / "out" / "tasks").set_index("task")["label"]
        one = decided(estimator.fit(frame[:200]))
        assert found.to_dict() == dict(zip(one.tasks.tolist(), one.labels.tolist(), strict=True))
        return
    others = ", ".join(methods_that("dask"))
    with pytest.raises(ParameterError, match=f"^{row.name} cannot run on dask: choose one of {others}$"):
        Dask(tmp_path).fit(estimator, tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_is_said(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no such file"):
        Dask(tmp_path, client=client).fit(CCRasch(), tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="without any Parquet or CSV file"):
        Dask(tmp_path / "out", client=client).fit(CCRasch(), tmp_path / "empty")
    with pytest.raises(ParameterError, match="cannot learn from gold: leave true_labels out"):
        Dask(tmp_path, client=client).fit(MajorityVote(), tmp_path, {"a": "b"})
    with pytest.raises(RarevoteError, match="no dask scheduler responds at nonsense://x"):
        Dask(tmp_path / "out", scheduler="nonsense://x").fit(CCRasch(), tmp_path / "empty")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"rarevote\[dask\]"), connected():
        pass


def test_too_little_memory_is_said_beforehand(client: Any, parquet: Path, tmp_path: Path) -> None:
    """The driver holds what there is of workers, a dask worker its share of what there is of tasks."""
    limit = min(worker["memory_limit"] for worker in client.scheduler_info()["workers"].values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MajorityVote, "memory_model", {"tk": limit})
        with pytest.raises(NotEnoughMemoryError, match="GB are available to a dask worker: merge rare classes"):
            Dask(tmp_path, client=client).fit(MajorityVote(), parquet)
        patch.setattr(MajorityVote, "memory_model", {"w": 10**13})
        with pytest.raises(NotEnoughMemoryError, match="GB are available to the driver: merge rare classes"):
            Dask(tmp_path, client=client).fit(MajorityVote(), parquet)
    assert not (tmp_path / "summary.json").exists()


@pytest.mark.prove
@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("row", [row for row in METHOD_ROWS if row.make().capabilities.dask], ids=lambda row: row.name)
def test_generated_crowds_give_the_answer_of_one_machine(
    client: Any, tmp_path: Path, row: MethodRow, number: int
) -> None:
    difference = local_is_dask(Case.drawn(row, number), client, tmp_path)
    assert difference is not None
    assert difference <= DASK_TOLERANCE


def test_a_generated_crowd_of_two_grades_is_refused_and_not_compared(client: Any, tmp_path: Path) -> None:
    case = Case.drawn(next(row for row in METHOD_ROWS if row.name == "anchored-ordered"), 20009)
    assert case.crowd.classes == ["a", "d"]
    assert local_is_dask(case, client, tmp_path) is None
    votes = tmp_path / "votes.parquet"
    pandas.DataFrame(case.crowd.rows, columns=["task", "worker", "label"]).to_parquet(votes)
    with pytest.raises(InputError, match="only a, d of the grades have votes, and an order needs at least 3"):
        Dask(tmp_path / "out", client=client).fit(case.made(), votes)


def test_rows_that_workers_cannot_exchange_are_no_fault_of_ours(
    client: Any, parquet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask's shuffle on a disk that is full says nothing of it."""

    def fails(*_: Any, **__: Any) -> Any:
        raise RuntimeError("P2P 0123 failed during unpack phase")

    monkeypatch.setattr(type(client), "gather", fails)
    with pytest.raises(InputError, match=r"could not exchange rows \(P2P 0123 failed.*temporary folder is full"):
        Dask(tmp_path / "out", client=client, n_shards=3).fit(CCRasch(5), parquet)
    assert not list((tmp_path / "out").iterdir())
