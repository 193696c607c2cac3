"""The compiled counts of agreement against the same in NumPy; what both should be is tested where they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rarevote.kernels import agreement, plain

N_WORKERS, N_CLASSES = 12, 4


def votes(seed: int = 0, n_tasks: int = 60) -> tuple[Any, Any, Any, Any]:
    """No worker twice on a task, workers ascending; some tasks have one vote and one has none."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 8, n_tasks)
    size[7] = 0
    worker = np.concatenate([np.sort(rng.choice(N_WORKERS, n, replace=False)) for n in size])
    task_ptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    label = rng.choice(N_CLASSES, worker.size, p=[0.6, 0.2, 0.2, 0.0])
    return task_ptr, worker.astype(np.int64), label, np.repeat(np.arange(n_tasks), size)


def test_the_last_vote_of_a_worker() -> None:
    task_ptr, _, label, _ = votes()
    worker = np.random.default_rng(1).integers(0, 3, label.size)
    kept = [np.ones(label.size, dtype=bool) for _ in range(2)]
    counted = [module.mark_last(task_ptr, worker, 3, one) for module, one in zip((plain, agreement), kept, strict=True)]
    assert counted[0] == counted[1] > 0
    np.testing.assert_array_equal(kept[0], kept[1])


@pytest.mark.parametrize("ordinal", [False, True])
def test_sums_by_group(ordinal: bool) -> None:
    task_ptr, _, label, _ = votes()
    group = np.arange(task_ptr.size - 1) % 5
    found = []
    for module in (plain, agreement):
        sums = np.zeros((5, plain.N_SUMS, N_CLASSES)), np.zeros((5, 2))
        coincidences = np.zeros((5 if ordinal else 0, N_CLASSES, N_CLASSES))
        module.task_sums(task_ptr, label, group, *sums, coincidences)
        found.append((*sums, coincidences))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("bounds", [(0, N_WORKERS), (3, 9)])
def test_kappas_of_pairs(bounds: tuple[int, int]) -> None:
    task_ptr, worker, label, task = votes()
    label[worker < 2] = 0  # two who only ever say one thing have no kappa
    found = []
    for module in (plain, agreement):
        own, worker_ptr = np.empty(worker.size, dtype=np.int64), np.zeros(N_WORKERS + 1, dtype=np.int64)
        module.by_worker(worker, worker_ptr, own)
        filled = np.empty((200, 4), dtype=np.int32), np.empty(200), np.empty(200), np.zeros(task_ptr.size - 1)
        sizes = (N_CLASSES, N_WORKERS, worker.size * 8)
        n = module.pair_kappas(task_ptr, worker, label, worker_ptr, own, task, *bounds, *sizes, *filled)
        found.append((own, worker_ptr, *(array[:n] for array in filled[:3]), filled[3]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-13)
    assert bounds[0] > 0 or np.isnan(found[0][3]).sum() == 1


@pytest.mark.parametrize("known", [False, True])
def test_errors_of_pairs(known: bool) -> None:
    task_ptr, worker, label, _ = votes()
    truth = (
        np.random.default_rng(2).integers(-1, N_CLASSES, task_ptr.size - 1) if known else np.empty(0, dtype=np.int64)
    )
    slot = np.where(worker > 1, (worker * 5) % N_WORKERS - 1, -1)
    found = [np.zeros((N_WORKERS, N_WORKERS, 4)) for _ in range(2)]
    for module, sums in zip((plain, agreement), found, strict=True):
        module.pair_errors(task_ptr, slot, label, truth, N_CLASSES, sums)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0][:, :, 3].sum() > 5


def test_only_small_data_are_counted_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain.comparing(np.array([0, 3, 5]), 2) is plain
    assert plain.comparing(np.array([0, 3, 2_000]), 2) is agreement, "too many pairs"
    monkeypatch.setattr(plain, "MAX_PLAIN_VOTES", 4)
    assert plain.comparing(np.array([0, 3, 5]), 2) is agreement
