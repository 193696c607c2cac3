"""The local state of a shard, and sums whose bits do not depend on who adds them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote.cluster.engine import spread
from rarevote.em.model import Shard
from rarevote.em.shards import ShardState, add_to, added, combine, read_local, write_local
from rarevote.errors import InputError

EMPTY = np.empty(0, dtype=np.uint8)


class State(NamedTuple):
    posterior: Any
    slope: Any
    height: Any


class Model:
    """Nothing but a start: the tests fill the buffers themselves."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns

    def start_local(self, shard: Shard) -> State:
        n = shard.task_ptr.size - 1
        return State(np.zeros((n, 2)), np.zeros((n, self.n_columns)), np.zeros(n))


def make_state(n_tasks: int = 5, n_columns: int = 3) -> Any:
    model: Any = Model(n_columns)
    return ShardState(model, Shard(np.arange(n_tasks + 1), EMPTY, EMPTY, EMPTY.astype(np.int32)))


def fill(state: Any, rng: np.random.Generator) -> None:
    for array in state.proposed:
        array[...] = rng.normal(size=array.shape)


def moved(n_tasks: int = 5, n_columns: int = 3) -> tuple[Any, list[State], Any]:
    """A shard at its third point, the three points, and offsets for them."""
    rng = np.random.default_rng(0)
    state = make_state(n_tasks, n_columns)
    points = []
    for last in (False, False, True):
        fill(state, rng)
        points.append(State(*(array.copy() for array in state.proposed)))
        if not last:
            state.advance()
    offsets = tuple((rng.normal(size=n_columns), np.asarray(rng.normal())) for _ in range(3))
    return state, points, offsets


# --------------------------------------------------------------------------------------------------------------------
# local state


@pytest.mark.parametrize(("n_tasks", "n_columns"), [(5, 3), (5, 0), (0, 2)])
def test_extrapolated_steps_are_what_the_formula_says(n_tasks: int, n_columns: int) -> None:
    state, points, offsets = moved(n_tasks, n_columns)
    r, v, far = {}, {}, {}
    for column, name in enumerate(("slope", "height")):
        t0, t1, t2 = (getattr(point, name) + offset[column] for point, offset in zip(points, offsets, strict=True))
        r[name], v[name] = t1 - t0, t2 - 2 * t1 + t0
        far[name] = t0 + 2 * 1.7 * r[name] + 1.7**2 * v[name]
    first, second = state.distances(offsets)
    assert first == pytest.approx(sum((entry**2).sum() for entry in r.values()))
    assert second == pytest.approx(sum((entry**2).sum() for entry in v.values()))
    sums = state.extrapolate(offsets, 1.7)
    for name, total in zip(("slope", "height"), sums, strict=True):
        np.testing.assert_allclose(getattr(state.proposed, name), far[name])
        np.testing.assert_allclose(total, far[name].sum(0))
    np.testing.assert_array_equal(state.proposed.posterior, points[2].posterior)
    state.advance()
    state.take_plain()
    np.testing.assert_array_equal(state.current.slope, points[2].slope)
    state.retreat()
    np.testing.assert_array_equal(state.current.slope, points[1].slope)


def test_everything_that_matters_survives_on_disk(tmp_path: Path) -> None:
    state, points, offsets = moved()
    state.extrapolate(offsets, 2.0)
    state.advance()
    write_local(tmp_path, 3, state, everything=True)
    other = make_state()
    read_local(tmp_path, 3, other)
    np.testing.assert_array_equal(other.current.slope, state.current.slope)
    other.take_plain()
    np.testing.assert_array_equal(other.current.slope, points[2].slope)
    other.retreat()
    np.testing.assert_array_equal(other.current.slope, points[1].slope)
    with pytest.raises(InputError, match=r"local-00003\.npz: from other data or another method"):
        read_local(tmp_path, 3, make_state(6))
    with pytest.raises(InputError, match=r"local-00004\.npz: cannot be read"):
        read_local(tmp_path, 4, other)


# --------------------------------------------------------------------------------------------------------------------
# sums


@given(st.integers(1, 40), st.lists(st.integers(0, 39), max_size=5), st.randoms(use_true_random=False))
def test_sums_have_the_same_bits_however_shards_are_held(n_shards: int, cuts: list[int], dice: Any) -> None:
    terms = [(np.array([dice.uniform(-1, 1) * 10 ** dice.randint(-8, 8)]),) for _ in range(n_shards)]
    bounds = sorted({0, n_shards, *(cut for cut in cuts if cut < n_shards)})
    leaves = {(number, number + 1): tuple(array.copy() for array in term) for number, term in enumerate(terms)}
    (whole,) = combine(leaves, n_shards, added).values()
    held = [
        combine({(number, number + 1): (terms[number][0].copy(),) for number in range(begin, end)}, n_shards, add_to)
        for begin, end in pairwise(bounds)
    ]
    dice.shuffle(held)
    together = {node: sums for part in held for node, sums in part.items()}
    ((total,),) = combine(together, n_shards, added).values()
    assert total[0] == whole[0][0]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_shards_are_spread_over_all_threads(sizes: list[int], threads: list[int]) -> None:
    ranges = spread(sizes, threads)
    assert [number for part in ranges for number in part] == list(range(len(sizes)))
    assert 1 <= len(ranges) <= len(threads)
    most = max(sum(sizes[number] for number in part) / threads[0] for part in ranges) if len(set(threads)) == 1 else 0
    assert most <= sum(sizes) / sum(threads) + max(sizes)


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_shards_that_differ_a_little_leave_nobody_with_more_and_one_sum_each(n_workers: int, seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(499_000, 501_000, 20).tolist()
    parts = spread(sizes, [1] * n_workers)
    assert [len(part) for part in parts] == [20 // n_workers] * n_workers
    for part in parts:
        held = {(number, number + 1): (np.ones(1),) for number in part}
        ((node, (total,)),) = combine(held, len(sizes), add_to).items()
        assert node == (part.start, part.stop)
        assert total == len(part)
