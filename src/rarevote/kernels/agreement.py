"""Counting who agrees and who errs with whom: sums per task, and every pair of workers that shares a task."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel
from rarevote.kernels.plain import ASKED, FOLLOWED, MET, PAIRED_SHARE, SAME, SHARE, VOTES


@kernel
def mark_last(task_ptr: NDArray[np.int64], worker: NDArray[Any], n_workers: int, kept: NDArray[np.bool_]) -> int:
    """Set ``kept`` to False where the same worker votes again on the same task; returns how often that is."""
    seen = np.full(n_workers, -1, np.int64)
    n_repeats = 0
    for task in range(task_ptr.shape[0] - 1):
        for position in range(task_ptr[task + 1] - 1, task_ptr[task] - 1, -1):
            if seen[worker[position]] == task:
                kept[position] = False
                n_repeats += 1
            seen[worker[position]] = task
    return n_repeats


@kernel
def by_worker(worker: NDArray[Any], worker_ptr: NDArray[np.int64], own: NDArray[np.int64]) -> None:
    """Fill ``worker_ptr`` (n + 1 zeros) and ``own`` with the positions of the votes of each worker, ascending."""
    for position in range(worker.shape[0]):
        worker_ptr[worker[position] + 1] += 1
    for number in range(worker_ptr.shape[0] - 1):
        worker_ptr[number + 1] += worker_ptr[number]
    filled = worker_ptr[:-1].copy()
    for position in range(worker.shape[0]):
        own[filled[worker[position]]] = position
        filled[worker[position]] += 1


@kernel
def task_sums(
    task_ptr: NDArray[np.int64],
    label: NDArray[Any],
    group: NDArray[np.int64],
    sums: NDArray[np.float64],
    tasks: NDArray[np.float64],
    coincidences: NDArray[np.float64],
) -> None:
    """Add up what agreement is made of, by group of tasks.

    Args:
        task_ptr: where the votes of each task begin.
        label: class of each vote.
        group: of each task.
        sums: zeros, (groups, N_SUMS, classes).
        tasks: zeros, (groups, 2): tasks, and tasks with at least two votes.
        coincidences: zeros, (groups, classes, classes), or of no group at all where they are not wanted:
            ``n_c (n_k - [c = k]) / (n - 1)``.
    """
    counts = np.zeros(sums.shape[2])
    wanted = coincidences.shape[0] > 0
    for task in range(task_ptr.shape[0] - 1):
        begin, end = task_ptr[task], task_ptr[task + 1]
        n = float(end - begin)
        if n == 0.0:
            continue
        g = group[task]
        tasks[g, 0] += 1.0
        if n > 1.0:
            tasks[g, 1] += 1.0
        for position in range(begin, end):
            counts[label[position]] += 1.0
        for position in range(begin, end):  # each vote adds its part, so that no class is looked for
            k = label[position]
            sums[g, SHARE, k] += 1.0 / n
            if n > 1.0:
                others = counts[k] - 1.0
                sums[g, VOTES, k] += 1.0
                sums[g, MET, k] += others / (n - 1.0)
                sums[g, PAIRED_SHARE, k] += 1.0 / n
                sums[g, SAME, k] += others / (n * (n - 1.0))
                sums[g, FOLLOWED, k] += others
                sums[g, ASKED, k] += n - 1.0
        if wanted and n > 1.0:
            for one in range(begin, end):
                for other in range(begin, end):
                    if one != other:
                        coincidences[g, label[one], label[other]] += 1.0 / (n - 1.0)
        for position in range(begin, end):
            counts[label[position]] = 0.0


@kernel
def pair_kappas(
    task_ptr: NDArray[np.int64],
    worker: NDArray[Any],
    label: NDArray[Any],
    worker_ptr: NDArray[np.int64],
    own: NDArray[np.int64],
    task: NDArray[Any],
    begin: int,
    end: int,
    n_classes: int,
    n_slots: int,
    n_shared: int,
    pairs: NDArray[np.int32],
    kappa: NDArray[np.float64],
    variance: NDArray[np.float64],
    influence: NDArray[np.float64],
) -> int:
    """Cohen's kappa of every pair of workers that shares a task, in time proportional to the shared votes.

    With ``p_o`` the share of equal votes, ``p_e = sum_k a_k b_k`` from the shares of each class in the votes of both on
    their common tasks, ``kappa = (p_o - p_e) / (1 - p_e)``; NaN where both only ever used one and the same class. Its
    derivative by the weight of a task is what the task contributes to ``influence`` and, squared, to ``variance``.

    Args:
        task_ptr: where the votes of each task begin.
        worker: of each vote, ascending within a task.
        label: of each vote.
        worker_ptr: where the votes of each worker begin in ``own``.
        own: positions of the votes by worker.
        task: of each vote.
        begin: the first of the first workers.
        end: the last of them, plus one.
        n_classes: number of classes.
        n_slots: at least the number of later workers that any one worker meets.
        n_shared: at least the number of votes that any one worker shares with later ones.
        pairs: filled with first worker, second worker, common tasks, equal votes, (at least the number of pairs, 4).
        kappa: filled, by pair.
        variance: filled, by pair.
        influence: zeros, by task; the sum over the pairs that have a kappa.

    Returns:
        The number of pairs.
    """
    n_workers = worker_ptr.shape[0] - 1
    slot_of = np.full(n_workers, -1, np.int64)
    # Votes of the first and of the second worker of a pair for each class, side by side.
    counts = np.zeros((n_slots, n_classes, 2))
    slopes = np.zeros((n_slots, 3))
    shared = np.empty((n_shared, 4), np.int32)  # slot, both votes, task
    n_pairs = 0
    for a in range(begin, end):
        first_pair, n_votes = n_pairs, 0
        for number in range(worker_ptr[a], worker_ptr[a + 1]):
            place = own[number]
            mine = label[place]
            for position in range(place + 1, task_ptr[task[place] + 1]):
                b, theirs = worker[position], label[position]
                slot = slot_of[b]
                if slot < 0:
                    slot = n_pairs - first_pair
                    slot_of[b] = slot
                    pairs[n_pairs, 0], pairs[n_pairs, 1] = a, b
                    pairs[n_pairs, 2], pairs[n_pairs, 3] = 0, 0
                    kappa[n_pairs], variance[n_pairs] = 0.0, 0.0
                    n_pairs += 1
                pairs[first_pair + slot, 2] += 1
                pairs[first_pair + slot, 3] += mine == theirs
                counts[slot, mine, 0] += 1.0
                counts[slot, theirs, 1] += 1.0
                shared[n_votes, 0], shared[n_votes, 1] = slot, mine
                shared[n_votes, 2], shared[n_votes, 3] = theirs, task[place]
                n_votes += 1
        # sum_k a_k b_k: over the classes, or where they are many vote by vote of the first.
        n_met = n_pairs - first_pair
        few_classes = n_met * n_classes < n_votes
        if few_classes:
            for slot in range(n_met):
                for k in range(n_classes):
                    kappa[first_pair + slot] += counts[slot, k, 0] * counts[slot, k, 1]
        else:
            for vote in range(n_votes):
                kappa[first_pair + shared[vote, 0]] += counts[shared[vote, 0], shared[vote, 1], 1]
        for slot in range(n_met):
            pair = first_pair + slot
            n = float(pairs[pair, 2])
            observed, expected = pairs[pair, 3] / n, kappa[pair] / (n * n)
            missed = 1.0 - expected
            if missed > 0.0:
                kappa[pair] = (observed - expected) / missed
                pull = (1.0 - observed) / (missed * missed * n)
                slopes[slot, 0] = 1.0 / (missed * n)
                slopes[slot, 1] = pull / n
                slopes[slot, 2] = 2.0 * expected * pull - observed / (missed * n)
            else:
                kappa[pair] = variance[pair] = nan
                slopes[slot] = 0.0
            slot_of[pairs[pair, 1]] = -1
        for vote in range(n_votes):
            slot, mine, theirs = shared[vote, 0], shared[vote, 1], shared[vote, 2]
            slope = slopes[slot, 2] - slopes[slot, 1] * (counts[slot, mine, 1] + counts[slot, theirs, 0])
            if mine == theirs:
                slope += slopes[slot, 0]
            influence[shared[vote, 3]] += slope
            variance[first_pair + slot] += slope * slope
        if few_classes:
            counts[:n_met] = 0.0
        else:
            for vote in range(n_votes):
                counts[shared[vote, 0], shared[vote, 1], 0] = 0.0
                counts[shared[vote, 0], shared[vote, 2], 1] = 0.0
    return n_pairs


@kernel
def pair_errors(
    task_ptr: NDArray[np.int64],
    slot: NDArray[np.int64],
    label: NDArray[Any],
    known: NDArray[np.int64],
    n_classes: int,
    sums: NDArray[np.float64],
) -> None:
    """Count common tasks and errors of every pair.

    The reference of a pair on a task is its known class, or where nothing is known the class that most others (those
    not of the pair) voted for; without a single such class the task does not count for the pair.

    Args:
        task_ptr: where the votes of each task begin.
        slot: number of the worker of each vote among those that are compared, or -1; each votes once on a task.
        label: class of each vote.
        known: class of each task, or -1; of size 0 where no class is known.
        n_classes: number of classes.
        sums: zeros, (compared, compared, 4): for each pair ``a < b`` common tasks, errors of a, of b, of both.
    """
    counts = np.zeros(n_classes, np.int64)
    used = np.empty(n_classes, np.int64)
    by_known = known.shape[0] > 0
    for task in range(task_ptr.shape[0] - 1):
        begin, end = task_ptr[task], task_ptr[task + 1]
        reference = known[task] if by_known else -1
        if by_known and reference < 0:
            continue
        n_used = 0
        for position in range(begin, end):
            if counts[label[position]] == 0:
                used[n_used] = label[position]
                n_used += 1
            counts[label[position]] += 1
        for one in range(begin, end):
            for other in range(one + 1, end):
                if slot[one] < 0 or slot[other] < 0:
                    continue
                truth = reference
                if not by_known:
                    best, tied = 0, False
                    for number in range(n_used):
                        k = used[number]
                        left = counts[k] - (label[one] == k) - (label[other] == k)
                        if left > best:
                            best, tied, truth = left, False, k
                        elif left == best:
                            tied = True
                    if best == 0 or tied:
                        continue
                a, b = (one, other) if slot[one] < slot[other] else (other, one)
                first, second = label[a] != truth, label[b] != truth
                sums[slot[a], slot[b], 0] += 1.0
                sums[slot[a], slot[b], 1] += first
                sums[slot[a], slot[b], 2] += second
                sums[slot[a], slot[b], 3] += first and second
        for position in range(begin, end):
            counts[label[position]] = 0
