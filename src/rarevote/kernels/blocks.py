"""Votes in blocks of tasks, so that a compiled loop processes several tasks at once.

A task has few votes, and their number is hard to predict; a sum over them is a chain in which every addition needs the
previous one. So tasks with similar numbers of votes are grouped, ``LANES`` to a block, and their votes are stored by
level: first the first vote of every task of the block, then the second ones, and so on. In a block the tasks with the
most votes come first, so the tasks with a vote on a level are always the first ones. A loop over a level
visits each task once, contiguously in memory, and becomes vector instructions.

Tasks are sorted by their number of votes within windows only: the data of the tasks of a block are never far apart.
The layout depends on the votes alone, so that results do not depend on threads.
"""

from __future__ import annotations

import mmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rarevote.kernels.compile import kernel, piece

LANES = 64
# One integer type for all crowds, so that passes are compiled only once.
WORKER = np.uint32
# Up to this many classes, their number is a compile-time constant of a pass, which unrolls the loops over classes.
MAX_UNROLLED = 5
_WINDOW = 4096
# Smaller arrays are not worth separate pages.
_MAPPED = 1 << 18


class Blocks(NamedTuple):
    """The votes of ``n`` tasks in blocks; block ``b`` has the places ``LANES * b`` to ``LANES * (b + 1)``."""

    order: NDArray[np.uint32]  # (n), the task at each place
    block_ptr: NDArray[np.int64]  # (blocks + 1), the first level of each block
    level_ptr: NDArray[np.int64]  # (levels + 1), where the votes of each level begin
    worker: NDArray[np.uint32]  # (N)
    label: NDArray[Any]  # (N)


def blocks_of(task_ptr: NDArray[np.int64], worker: NDArray[Any], label: NDArray[Any]) -> Blocks:
    """Arrange the votes of a range of tasks.

    Args:
        task_ptr: (n + 1), absolute positions into worker and label.
        worker: worker of every vote.
        label: label of every vote.
    """
    first, last, n_tasks = int(task_ptr[0]), int(task_ptr[-1]), task_ptr.size - 1
    own_worker, own_label = worker[first:last].astype(WORKER, copy=False), label[first:last]
    order = np.empty(n_tasks, dtype=np.uint32)
    block_ptr = np.zeros(-(-n_tasks // LANES) + 1, dtype=np.int64)
    _order_tasks(task_ptr, order, block_ptr)
    level_ptr = np.zeros(int(block_ptr[-1]) + 1, dtype=np.int64)
    places = (empty_mapped(last - first, votes.dtype) for votes in (own_worker, own_label))
    placed = Blocks(order, block_ptr, level_ptr, *places)
    _place_votes(task_ptr, own_worker, own_label, *placed)
    return placed


def empty_mapped(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """An uninitialised array whose memory is returned to the system as soon as the array is deleted.

    An allocator returns only large arrays; arrays of a few megabytes stay with the process after use, and there can
    be many of them.
    """
    dtype = np.dtype(dtype)
    if size * dtype.itemsize < _MAPPED or not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(size, dtype=dtype)
    pages = mmap.mmap(-1, size * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype=dtype)


@kernel
def _order_tasks(task_ptr: NDArray[np.int64], order: NDArray[np.uint32], block_ptr: NDArray[np.int64]) -> None:
    """Sort the tasks of each window by their number of votes, most first; count the levels of each block."""
    n = task_ptr.shape[0] - 1
    for begin in range(0, n, _WINDOW):
        end = min(begin + _WINDOW, n)
        most = 0
        for task in range(begin, end):
            most = max(most, task_ptr[task + 1] - task_ptr[task])
        # A counting sort: place[c] is where the next task with most - c votes goes. Its numbers are at most the size of
        # a window, and it is no longer than the votes of one task.
        place = np.zeros(most + 2, np.int16)
        for task in range(begin, end):
            place[most - (task_ptr[task + 1] - task_ptr[task]) + 1] += 1
        for votes in range(most + 1):
            place[votes + 1] += place[votes]
        for task in range(begin, end):
            column = most - (task_ptr[task + 1] - task_ptr[task])
            order[begin + place[column]] = task
            place[column] += 1
    for block in range(block_ptr.shape[0] - 1):
        first = order[block * LANES]
        block_ptr[block + 1] = block_ptr[block] + task_ptr[first + 1] - task_ptr[first]


@kernel
def _place_votes(
    task_ptr: NDArray[np.int64],
    worker_in: NDArray[np.uint32],  # of the votes from task_ptr[0] on
    label_in: NDArray[Any],
    order: NDArray[np.uint32],
    block_ptr: NDArray[np.int64],
    level_ptr: NDArray[np.int64],
    worker_out: NDArray[np.uint32],
    label_out: NDArray[Any],
) -> None:
    """Write the votes level by level."""
    n = order.shape[0]
    position = 0
    for block in range(block_ptr.shape[0] - 1):
        begin = block * LANES
        active = min(LANES, n - begin)
        for level in range(block_ptr[block], block_ptr[block + 1]):
            number = level - block_ptr[block]
            while task_ptr[order[begin + active - 1]] + number >= task_ptr[order[begin + active - 1] + 1]:
                active -= 1
            for lane in range(active):
                vote = task_ptr[order[begin + lane]] - task_ptr[0] + number
                worker_out[position] = worker_in[vote]
                label_out[position] = label_in[vote]
                position += 1
            level_ptr[level + 1] = position


@piece
def sum_of(values: NDArray[np.float64]) -> float:
    """The sum, in order. numba's own function handles every kind of array, and takes half a second to compile."""
    total = 0.0
    for i in range(values.shape[0]):
        total += values[i]
    return total


@piece
def largest_of(values: NDArray[np.float64]) -> float:
    """The largest of some non-negative numbers."""
    largest = 0.0
    for i in range(values.shape[0]):
        largest = max(largest, values[i])
    return largest
