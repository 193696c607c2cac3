"""CrowdFM's network as one would first write it in NumPy, N x 128 arrays and all, to check and to time against.

    python benchmarks/crowdfm_numpy.py WEIGHTS LABELS_CSV

prints, for one seed, the times of the package (compiled beforehand) and of this version, both in float64, and their
largest difference. Set OPENBLAS_NUM_THREADS=1 for a comparison on one thread.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.methods.crowdfm.network import AttentionWeights, CrowdFMWeights, task_option_logits
from rarevote.methods.crowdfm.weights import read_tensors

Floats = NDArray[np.float64]
Codes = NDArray[Any]


def _messages(edges: Floats, node: Codes, n_nodes: int, side: AttentionWeights, layer: int) -> Floats:
    """Sum of the messages of each node; ``edges`` (N, 96) come sorted by ``node``."""
    query = edges @ side.query[layer].T + side.query_bias[layer]
    key = edges @ side.key[layer].T + side.key_bias[layer]
    value = edges @ side.value[layer].T + side.value_bias[layer]
    score = (query * key).reshape(-1, 4, 32).sum(axis=2) / np.sqrt(32)
    start = np.flatnonzero(np.r_[True, node[1:] != node[:-1]])
    length = np.diff(np.r_[start, len(node)])
    weight = np.exp(score - np.repeat(np.maximum.reduceat(score, start), length, axis=0))
    weight /= np.repeat(np.add.reduceat(weight, start), length, axis=0)
    mixed = (weight[:, :, None] * value.reshape(-1, 4, 32)).reshape(-1, 128)
    message = mixed @ side.out[layer].T + side.out_bias[layer]
    total = np.zeros((n_nodes, 32))
    total[node[start]] = np.add.reduceat(message, start)
    return total


def _layer_norm(rows: Floats, weights: CrowdFMWeights) -> Floats:
    centred = rows - rows.mean(axis=1, keepdims=True)
    scaled: Floats = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    return scaled * weights.norm_gain + weights.norm_shift


def task_option_logits_materialised(
    task_ptr: NDArray[np.int64],
    worker: Codes,
    label: Codes,
    n_workers: int,
    n_classes: int,
    weights: CrowdFMWeights,
    option_vectors: ArrayLike,
) -> Floats:
    n_tasks = len(task_ptr) - 1
    task = np.repeat(np.arange(n_tasks), np.diff(task_ptr))
    by_worker = np.argsort(worker, kind="stable")
    z_worker = np.tile(weights.x_worker, (n_workers, 1))
    z_task = np.tile(weights.x_task, (n_tasks, 1))
    z_option = np.asarray(option_vectors, np.float64)
    for layer in range(len(weights.task.query)):
        edges = np.concatenate([z_worker[worker], z_task[task], z_option[label]], axis=1)
        to_worker = _messages(edges[by_worker], worker[by_worker], n_workers, weights.worker, layer)
        to_task = _messages(edges, task, n_tasks, weights.task, layer)
        z_worker = _layer_norm(z_worker + to_worker, weights)
        z_task = _layer_norm(z_task + to_task, weights)
    pairs = np.concatenate([np.repeat(z_task, n_classes, axis=0), np.tile(z_option, (n_tasks, 1))], axis=1)
    hidden = pairs @ weights.hidden.T + weights.hidden_bias
    logits: Floats = np.where(hidden > 0, hidden, 0.01 * hidden) @ weights.readout + weights.readout_bias
    return logits.reshape(n_tasks, n_classes)


def _read_labels(path: Path) -> tuple[NDArray[np.int64], Codes, Codes, int, int]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = [(row["task"], row["worker"], row["label"]) for row in csv.DictReader(stream)]
    columns = [np.unique(column, return_inverse=True) for column in zip(*rows, strict=True)]
    (tasks, task), (workers, worker), (labels, label) = columns
    order = np.argsort(task, kind="stable")
    pointer = np.zeros(len(tasks) + 1, np.int64)
    np.cumsum(np.bincount(task), out=pointer[1:])
    codes = worker[order].astype(np.uint32), label[order].astype(np.uint16)
    return pointer, *codes, len(workers), len(labels)


def main(weights_path: str, labels_path: str) -> None:
    weights = CrowdFMWeights.from_tensors(read_tensors(Path(weights_path)))
    graph = _read_labels(Path(labels_path))
    vectors = np.random.default_rng(0).standard_normal((graph[-1], 32))
    start = time.perf_counter()
    package = task_option_logits(*graph, weights, vectors)
    print(f"package, first call (may compile): {time.perf_counter() - start:.2f} s")
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        task_option_logits(*graph, weights, vectors)
        seconds.append(time.perf_counter() - start)
    print(f"package: median {np.median(seconds):.2f} s, best {min(seconds):.2f} s of {len(seconds)}")
    start = time.perf_counter()
    plain = task_option_logits_materialised(*graph, weights, vectors)
    taken = time.perf_counter() - start
    print(f"NumPy: {taken:.2f} s, {taken / np.median(seconds):.1f} times the median")
    print(f"largest difference {np.abs(plain - package).max():.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
