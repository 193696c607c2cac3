"""Every compiled pass against the same pass in NumPy, which is the readable form of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from rarevote import GLAD, CCRasch
from rarevote.crowd.annotations import Annotations
from rarevote.em.model import Shard
from rarevote.em.shards import ShardState
from rarevote.kernels import plain
from rarevote.methods.anchored_rasch.model import (
    AnchorCount,
    AnchoredModel,
    AnchoredReport,
    AnchorSmoothing,
    ReportShared,
    anchors_from,
)
from rarevote.methods.dawid_skene.model import DawidSkeneModel
from rarevote.methods.mace.model import MaceModel

N_WORKERS = 40


@contextmanager
def passes(*, compiled: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "MAX_PLAIN_CELLS", -1 if compiled else 10**9)
        yield


def crowd_of(n_classes: int, n_tasks: int = 150) -> Annotations:
    """Tasks with one to nine votes, and two with so many that a plain product of their likelihoods is zero."""
    rng = np.random.default_rng(n_classes)
    n_votes = rng.integers(1, 10, n_tasks)
    n_votes[[17, 80]] = 1500
    task = np.repeat(np.arange(n_tasks), n_votes)
    truth = rng.integers(0, n_classes, n_tasks)
    guess = rng.integers(0, n_classes, task.size)
    label = np.where(rng.random(task.size) < 0.6, truth[task], guess)
    worker = rng.integers(0, N_WORKERS, task.size)
    with passes(compiled=False):
        return Annotations.from_arrays(task, worker, label, classes=range(n_classes))


def shard_of(crowd: Annotations, *, gold: bool) -> Shard:
    known = np.empty(0, dtype=np.int32)
    if gold:
        known = np.full(crowd.n_tasks, -1, dtype=np.int32)
        known[::7] = np.arange(known[::7].size) % crowd.n_classes
    return Shard(crowd.task_ptr, crowd.worker, crowd.label, known)


def crowd_arrays(crowd: Annotations) -> tuple[Any, ...]:
    return crowd.task_ptr, crowd.worker, crowd.label, np.empty(0, dtype=np.int32)


def cc_rasch(**parameters: Any) -> Callable[[Annotations], Any]:
    return lambda crowd: CCRasch(**parameters)._model(crowd)


def anchored(crowd: Annotations, n_nodes: int = 5, dtype: str = "float64") -> AnchoredModel:
    count = AnchorCount(crowd.n_workers, crowd.n_classes, 0.05)
    sums = count.empty_stats(())
    shard = shard_of(crowd, gold=True)
    nothing = count.start_local(shard)
    count.step((), shard, nothing, nothing, sums, False, 0.0)
    anchors = anchors_from(sums, AnchorSmoothing())
    return AnchoredModel(crowd.n_workers, anchors, 1.0, 0.4, 8.0, n_nodes, np.dtype(dtype))


def dawid_skene(crowd: Annotations, **parameters: Any) -> DawidSkeneModel:
    prior = np.log(np.full(crowd.n_classes, 1.0 / crowd.n_classes))
    sizes = (crowd.n_workers, crowd.n_classes, crowd.n_annotations)
    return DawidSkeneModel(*sizes, prior, smoothing=0.1, **parameters)


def mace(crowd: Annotations) -> MaceModel:
    votes = np.zeros((crowd.n_workers, crowd.n_classes))
    np.add.at(votes, (crowd.worker, crowd.label), 1.0)
    return MaceModel(votes, np.array([0.5, 0.5]), 0.5, "vb")


MODELS: dict[str, Callable[[Annotations], Any]] = {
    "cc-rasch": cc_rasch(),
    "one difficulty": cc_rasch(difficulty="shared"),
    "no difficulty": cc_rasch(difficulty=None),
    "anchored": anchored,
    "dawid-skene": dawid_skene,
    "glad": lambda crowd: GLAD()._model(crowd),
    "mace": mace,
    # Numbers of classes and nodes that are not compiled in, and state in single precision.
    "cc-rasch 7": cc_rasch(),
    "anchored 7": lambda crowd: anchored(crowd, n_nodes=3),
    "dawid-skene 7": dawid_skene,
    "cc-rasch float32": cc_rasch(dtype="float32"),
    "anchored float32": lambda crowd: anchored(crowd, dtype="float32"),
    "dawid-skene float32": lambda crowd: dawid_skene(crowd, dtype=np.dtype("float32")),
}


_LONG = [pytest.mark.prove]  # to compile


def after_three_steps(model: Any, shard: Shard) -> tuple[ShardState[Any, Any, Any], Any]:
    with passes(compiled=False):
        state: ShardState[Any, Any, Any] = ShardState(model, shard)
        shared = model.start()
        for refresh in (False, True, True):
            stats = model.empty_stats(shared)
            state.run(shared, stats, refresh=refresh, damping=0.0)
            shared = model.update(shared, stats, 0.0)
            state.advance()
    return state, shared


def assert_near(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("name", [pytest.param(name, marks=_LONG if "float32" in name else ()) for name in MODELS])
def test_compiled_passes_are_the_plain_ones(name: str, gold: bool) -> None:
    crowd = crowd_of(7 if name.endswith("7") else 3)
    model = MODELS[name](crowd)
    state, shared = after_three_steps(model, shard_of(crowd, gold=gold))
    for refresh, damping in ((True, 0.0), (False, 0.0), (True, 2.0)):
        found = {}
        for compiled in (False, True):
            with passes(compiled=compiled):
                stats = model.empty_stats(shared)
                change = state.run(shared, stats, refresh=refresh, damping=damping)
                updated = model.update(shared, stats, damping)
                found[compiled] = (change, [array.copy() for array in state.proposed], stats, updated)
        inside = 2e-6 if name == "cc-rasch float32" else 0.0  # computes in single precision; the others only store it
        assert found[True][0] == pytest.approx(found[False][0], rel=1e-10, abs=max(1e-13, inside))
        assert_near(found[True][1], found[False][1], 2e-6 if name.endswith("float32") else 1e-11)
        assert_near(found[True][2], found[False][2], max(1e-9 if name.endswith("float32") else 1e-11, inside))
        assert_near(found[True][3], found[False][3], max(1e-7, inside))  # a step may be ill-conditioned


@pytest.mark.parametrize("gold", [False, True])
@pytest.mark.parametrize("settle", [1e-2, 1e-4, 1e-7])
def test_tasks_that_are_solved(settle: float, gold: bool) -> None:
    crowd = crowd_of(3)
    model = CCRasch()._model(crowd)
    state, shared = after_three_steps(model, shard_of(crowd, gold=gold))
    found = {}
    for compiled in (False, True):
        with passes(compiled=compiled):
            stats = model.empty_stats(shared)
            change = state.run(shared._replace(settle=settle), stats, refresh=True, damping=0.0)
            found[compiled] = ([change], *[array.copy() for array in state.proposed], *stats)
    assert_near(found[True], found[False], 1e-9)
    assert found[True][4][2] > 0, "some votes are visited again"


@pytest.mark.parametrize("gold", [False, True])
def test_anchors_and_reports(gold: bool) -> None:
    crowd = crowd_of(3)
    model = anchored(crowd)
    shard = shard_of(crowd, gold=gold)
    state, shared = after_three_steps(model, shard)
    count, report = AnchorCount(crowd.n_workers, 3, 0.05), AnchoredReport(model, 0.1, 0.02)
    counted, reported = {}, {}
    for compiled in (False, True):
        with passes(compiled=compiled):
            counted[compiled] = count.empty_stats(())
            nothing = count.start_local(shard)
            count.step((), shard, nothing, nothing, counted[compiled], False, 0.0)
            counting = ReportShared(shared, np.empty(0))
            sums, out = report.empty_stats(counting), report.start_local(shard)
            report.step(counting, shard, state.current, out, sums, True, 0.0)
            reported[compiled] = (out.posterior, sums.class_mass)
    assert_near(counted[True], counted[False])
    assert_near(reported[True], reported[False])
    # The second pass, in the place of the first: a lapse, but not where the answer is known.
    weighed, shares = out.posterior.copy(), np.array([0.5, 0.3, 0.2])
    report.step(ReportShared(shared, shares), shard, out, out, sums, True, 0.0)
    known = shard.gold >= 0 if gold else np.zeros(len(weighed), dtype=bool)
    assert known.any() == gold
    assert np.array_equal(out.posterior[known], weighed[known])
    np.testing.assert_allclose(out.posterior[~known], 0.98 * weighed[~known] + 0.02 * shares, rtol=1e-14)


def test_one_class_is_certain_to_the_last_bit() -> None:
    for name in ("cc-rasch", "anchored", "dawid-skene", "glad", "mace"):
        with passes(compiled=False):
            crowd = Annotations.from_arrays([0, 0, 1], ["a", "b", "a"], ["x", "x", "x"])
            state, _ = after_three_steps(MODELS[name](crowd), Shard(*crowd_arrays(crowd)))
        assert state.current[0].tolist() == [[1.0], [1.0]], name


def test_extrapolated_steps() -> None:
    model = cc_rasch()(crowd := crowd_of(3))
    state, shared = after_three_steps(model, shard_of(crowd, gold=False))
    with passes(compiled=False):
        state.run(shared, model.empty_stats(shared), refresh=True, damping=0.0)
    offsets = tuple((np.full(3, 0.1 * number),) for number in range(3))
    found = {}
    for compiled in (False, True):
        with passes(compiled=compiled):
            distances = state.distances(offsets)  # type: ignore[arg-type]
            kept = state.proposed
            sums = state.extrapolate(offsets, 1.7)  # type: ignore[arg-type]
            found[compiled] = (*distances, sums[0], state.proposed[1].copy())
            state.proposed = kept
    assert_near(found[True], found[False])


def test_grouping_and_counting() -> None:
    rng = np.random.default_rng(0)
    task, worker, label = rng.integers(0, 400, 3000), rng.integers(0, 300, 3000), rng.integers(0, 4, 3000)
    weight = rng.random(3000)
    found = {}
    for compiled in (False, True):
        with passes(compiled=compiled):
            crowd = Annotations.from_arrays(task, worker, label)
            found[compiled] = (crowd.task_ptr, crowd.worker, crowd.label, crowd.votes(), crowd.votes(weight))
    for one, other in zip(found[True], found[False], strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint16, np.uint64])
def test_rows_in_order_need_no_compiler(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    task, worker, label = np.sort(rng.integers(0, 400, 3000)), rng.integers(0, 300, 3000), rng.integers(0, 4, 3000)
    weight = rng.random(3000)
    monkeypatch.setattr(plain, "_AT_ONCE", 7)
    monkeypatch.setitem(sys.modules, "rarevote.kernels.encode", None)  # to import it is an error
    with passes(compiled=True):
        crowd = Annotations.from_arrays(task.astype(kind), worker, label)
        found = crowd.votes(), crowd.votes(weight)
    np.testing.assert_array_equal(crowd.task_ptr, np.searchsorted(task, [*np.unique(task), 400]))
    np.testing.assert_array_equal(crowd.workers[crowd.worker], worker)
    np.testing.assert_array_equal(crowd.label, label)
    row = np.searchsorted(np.unique(task), task)
    for votes, weights in zip(found, (np.ones(3000), weight), strict=True):
        wanted = np.zeros((crowd.n_tasks, 4))
        np.add.at(wanted, (row, label), weights)
        np.testing.assert_array_equal(votes, wanted)
    np.testing.assert_array_equal(crowd.class_votes, np.bincount(label))


def test_glad_shortens_steps_alike() -> None:
    """A state from which the Newton step of some tasks falls."""
    crowd = crowd_of(2)
    model = GLAD()._model(crowd)
    state, shared = after_three_steps(model, shard_of(crowd, gold=False))
    rng = np.random.default_rng(1)
    state.current[1][:] = rng.normal(0.0, 3.0, crowd.n_tasks)
    shared = shared._replace(alpha=rng.normal(0.0, 4.0, N_WORKERS))
    found = {}
    for compiled in (False, True):
        with passes(compiled=compiled):
            stats = model.empty_stats(shared)
            state.run(shared, stats, refresh=True, damping=0.0)
            found[compiled] = ([array.copy() for array in state.proposed], stats)
    assert_near(found[True][0], found[False][0])
    for one, other in zip(found[True][1], found[False][1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


FIT = """
import sys
import numpy as np
import rarevote
from rarevote.methods.registry import METHODS
rng = np.random.default_rng(0)
data = rng.integers(0, 200, 1000), rng.integers(0, 20, 1000), rng.integers(0, 2, 1000)
gold = {task: task % 2 for task in range(200)}
for name, method in METHODS.items():
    if name != "crowdfm":
        order = {"ordered": [0, 1, 2]} if method.capabilities.ordered else {}
        method.load()(**order).fit(data, *([gold] if "gold" in name or name == "rasch" else []))
from rarevote.diagnose.agreement import agreement
from rarevote.diagnose.shared_errors import errors_alike
crowd = rarevote.Annotations.from_arrays(*data)
agreement(crowd)
errors_alike(crowd)
sys.exit("numba" in sys.modules)
"""


def test_small_data_never_load_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FIT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr or "numba was loaded"
