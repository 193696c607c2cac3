"""The layout in blocks: every vote is where the description says, whatever the tasks are like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rarevote.kernels import blocks
from rarevote.kernels.blocks import LANES, blocks_of


@pytest.mark.parametrize(
    "n_votes",
    [
        np.random.default_rng(0).integers(1, 9, 1000),
        np.random.default_rng(1).integers(0, 4, 9000),  # more than two windows, tasks without a vote
        np.array([3, 5000, 1, 2, 4096]),  # more votes than a window has tasks
        np.full(LANES, 2),
        np.array([1]),
        np.empty(0, dtype=np.int64),
    ],
    ids=["usual", "windows", "long", "one block", "one task", "none"],
)
def test_every_vote_is_in_its_lane(n_votes: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    before = 7  # a shard begins somewhere in the votes of all
    task_ptr = np.concatenate([[0], np.cumsum(n_votes)]).astype(np.int64) + before
    worker = rng.integers(0, 60_000, int(task_ptr[-1]) + 5).astype(np.uint16)
    label = rng.integers(0, 5, worker.size).astype(np.uint8)
    made = blocks_of(task_ptr, worker, label)
    assert sorted(made.order.tolist()) == list(range(n_votes.size))
    assert made.worker.size == made.label.size == n_votes.sum()
    assert made.worker.dtype == np.dtype(np.uint32)  # one width for every crowd
    assert made.label.dtype == label.dtype
    found: dict[int, list[tuple[int, int]]] = {task: [] for task in range(n_votes.size)}
    for block in range(made.block_ptr.size - 1):
        lanes = made.order[block * LANES : (block + 1) * LANES]
        assert (np.diff(n_votes[lanes]) <= 0).all()
        assert np.ptp(lanes // blocks._WINDOW) == 0
        for level in range(made.block_ptr[block], made.block_ptr[block + 1]):
            begin, end = made.level_ptr[level], made.level_ptr[level + 1]
            for lane, vote in enumerate(range(begin, end)):
                found[int(lanes[lane])].append((int(made.worker[vote]), int(made.label[vote])))
    for task, (begin, end) in enumerate(pairwise(task_ptr.tolist())):
        assert found[task] == list(zip(worker[begin:end].tolist(), label[begin:end].tolist(), strict=True))
