from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from rarevote.errors import InputError, WeightsError
from rarevote.methods.crowdfm import network as crowdfm_network
from rarevote.methods.crowdfm.network import CrowdFMWeights, task_option_logits
from rarevote.methods.crowdfm.weights import read_tensors

Floats = NDArray[np.float64]
Tensors = dict[str, NDArray[Any]]


def random_tensors(n_layers: int = 3, sharpness: float = 1.5, seed: int = 0) -> Tensors:
    rng = np.random.default_rng(seed)

    def linear(prefix: str, n_out: int, n_in: int, scale: float = 1.0) -> Tensors:
        weight = rng.normal(size=(n_out, n_in)) * scale / np.sqrt(n_in)
        return {f"{prefix}.weight": weight, f"{prefix}.bias": rng.normal(size=n_out) * 0.3}

    tensors: Tensors = {
        "encoder.x_worker": rng.normal(size=32),
        "encoder.x_task": rng.normal(size=32),
        "encoder.layer_norm.weight": rng.uniform(0.5, 1.5, size=32),
        "encoder.layer_norm.bias": rng.normal(size=32) * 0.2,
        **linear("task_option_classifactor.0", 64, 64),
        **linear("task_option_classifactor.2", 1, 64),
    }
    for layer in range(n_layers):
        for side in ("worker", "task"):
            for part in "qkv":
                tensors |= linear(f"encoder.{part}_{side}.{layer}", 128, 96, sharpness)
            tensors |= linear(f"encoder.out_{side}.{layer}", 32, 128)
    return tensors


class Graph(NamedTuple):
    task_ptr: NDArray[np.int64]
    worker: NDArray[Any]
    label: NDArray[Any]
    n_workers: int
    n_classes: int

    @property
    def task(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.task_ptr) - 1), np.diff(self.task_ptr))


def graph_of(task: NDArray[Any], worker: NDArray[Any], label: NDArray[Any], sizes: tuple[int, int, int]) -> Graph:
    n_tasks, n_workers, n_classes = sizes
    order = np.argsort(task, kind="stable")
    pointer = np.zeros(n_tasks + 1, np.int64)
    np.cumsum(np.bincount(task, minlength=n_tasks), out=pointer[1:])
    return Graph(pointer, worker[order].astype(np.uint16), label[order].astype(np.uint16), n_workers, n_classes)


def random_graph(n_edges: int, n_tasks: int, n_workers: int, n_classes: int, seed: int = 0) -> Graph:
    """Pairs repeat when there are more edges than pairs; some tasks and workers may have none."""
    rng = np.random.default_rng(seed)
    sizes = (n_tasks, n_workers, n_classes)
    task, worker, label = (rng.integers(size, size=n_edges) for size in sizes)
    return graph_of(task, worker, label, sizes)


def vectors(n_classes: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).standard_normal((n_classes, 32))


def reference(graph: Graph, tensors: Mapping[str, NDArray[Any]], z_option: Floats) -> Floats:
    """The definition, edge by edge in float64."""
    n_layers = sum(name.startswith("encoder.q_task.") for name in tensors) // 2

    def linear(prefix: str, x: Floats) -> Floats:
        return np.asarray(tensors[f"{prefix}.weight"] @ x + tensors[f"{prefix}.bias"], np.float64)

    def norm(x: Floats) -> Floats:
        scaled = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
        return np.asarray(scaled * tensors["encoder.layer_norm.weight"] + tensors["encoder.layer_norm.bias"])

    n_tasks = len(graph.task_ptr) - 1
    state = {
        "worker": [tensors["encoder.x_worker"].astype(float)] * graph.n_workers,
        "task": [tensors["encoder.x_task"].astype(float)] * n_tasks,
    }
    ends = {"worker": graph.worker.astype(int), "task": graph.task}
    for layer in range(n_layers):
        edges = [
            np.concatenate([state["worker"][w], state["task"][t], z_option[o]])
            for w, t, o in zip(ends["worker"], ends["task"], graph.label, strict=True)
        ]
        new = {}
        for side in ("worker", "task"):
            total = [row.copy() for row in state[side]]
            for node in range(len(total)):
                own = [edge for edge, end in zip(edges, ends[side], strict=True) if end == node]
                if not own:
                    continue
                heads = [
                    [linear(f"encoder.{part}_{side}.{layer}", edge).reshape(4, 32) for edge in own] for part in "qkv"
                ]
                score = np.array([(q * k).sum(axis=1) for q, k in zip(*heads[:2], strict=True)]) / np.sqrt(32)
                attention = np.exp(score - score.max(axis=0))
                attention /= attention.sum(axis=0)
                for a, value in zip(attention, heads[2], strict=True):
                    total[node] += linear(f"encoder.out_{side}.{layer}", (a[:, None] * value).ravel())
            new[side] = [norm(row) for row in total]
        state = new
    logits = np.empty((n_tasks, graph.n_classes))
    for t in range(n_tasks):
        for o in range(graph.n_classes):
            hidden = linear("task_option_classifactor.0", np.concatenate([state["task"][t], z_option[o]]))
            logits[t, o] = linear("task_option_classifactor.2", np.where(hidden > 0, hidden, 0.01 * hidden))[0]
    return logits


def logits_of(graph: Graph, tensors: Tensors, z_option: Floats) -> Floats:
    return task_option_logits(*graph, CrowdFMWeights.from_tensors(tensors), z_option)


@pytest.mark.parametrize(
    ("n_edges", "n_tasks", "n_workers", "n_classes"),
    [(7, 3, 3, 2), (60, 9, 4, 1), (150, 20, 7, 3), (300, 3, 2, 5), (40, 60, 50, 11), (30, 1, 1, 2), (200, 40, 1, 300)],
)
def test_logits_equal_the_definition(n_edges: int, n_tasks: int, n_workers: int, n_classes: int) -> None:
    graph = random_graph(n_edges, n_tasks, n_workers, n_classes)
    tensors = random_tensors()
    expected = reference(graph, tensors, vectors(n_classes))
    np.testing.assert_allclose(logits_of(graph, tensors, vectors(n_classes)), expected, rtol=1e-9, atol=1e-10)


def test_sharp_attention_neither_overflows_nor_loses_accuracy() -> None:
    graph = random_graph(400, 6, 3, 3)
    tensors = random_tensors(n_layers=2, sharpness=30.0)
    logits = logits_of(graph, tensors, vectors(3))
    np.testing.assert_allclose(logits, reference(graph, tensors, vectors(3)), rtol=1e-6, atol=1e-7)


def test_the_check_of_the_definition(shared_folder: Path) -> None:
    edges = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 2, 1], [2, 2, 1], [2, 0, 1]])
    graph = graph_of(edges[:, 1], edges[:, 0], edges[:, 2], (3, 3, 2))
    z_option = np.sqrt(2) * np.sin(1 + 32 * np.arange(2)[:, None] + np.arange(32))
    expected = [[-0.458578, -0.790244], [-0.453535, -0.465779], [-0.880290, 0.038775]]
    tensors = dict(read_tensors(shared_folder / "crowdfm" / "checkpoint.pt"))
    np.testing.assert_allclose(logits_of(graph, tensors, z_option), expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_published_weights_equal_the_definition(shared_folder: Path, n_classes: int) -> None:
    tensors = {
        name: value.astype(np.float64)
        for name, value in read_tensors(shared_folder / "crowdfm" / "weights.safetensors").items()
    }
    graph = random_graph(160, 12, 5, n_classes)
    expected = reference(graph, tensors, vectors(n_classes))
    np.testing.assert_allclose(logits_of(graph, tensors, vectors(n_classes)), expected, rtol=1e-8, atol=1e-9)


def test_permuting_tasks_workers_and_classes_permutes_the_logits() -> None:
    rng = np.random.default_rng(3)
    n_tasks, n_workers, n_classes = 80, 30, 4
    graph = random_graph(900, n_tasks, n_workers, n_classes)
    tensors, z_option = random_tensors(n_layers=10), vectors(n_classes)
    logits = logits_of(graph, tensors, z_option)
    tasks, workers, classes = (rng.permutation(size) for size in (n_tasks, n_workers, n_classes))
    shuffle = rng.permutation(len(graph.worker))
    permuted = graph_of(
        tasks[graph.task][shuffle],
        workers[graph.worker][shuffle],
        classes[graph.label][shuffle],
        (n_tasks, n_workers, n_classes),
    )
    z_permuted = np.empty_like(z_option)
    z_permuted[classes] = z_option
    found = logits_of(permuted, tensors, z_permuted)
    np.testing.assert_allclose(found[tasks][:, classes], logits, rtol=1e-9, atol=1e-10)


def test_integer_types_blocks_and_threads_leave_every_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(700, 90, 20, 3)
    weights, z_option = CrowdFMWeights.from_tensors(random_tensors()), vectors(3)
    logits = task_option_logits(*graph, weights, z_option)
    for worker_type, label_type in ((np.uint8, np.uint8), (np.uint64, np.uint32), (np.int64, np.int64)):
        typed = graph._replace(worker=graph.worker.astype(worker_type), label=graph.label.astype(label_type))
        for array in typed[:3]:
            array.flags.writeable = False
        np.testing.assert_array_equal(task_option_logits(*typed, weights, z_option), logits)
    with ThreadPoolExecutor(2) as pool:
        for again in pool.map(lambda _: task_option_logits(*graph, weights, z_option), range(4)):
            np.testing.assert_array_equal(again, logits)
    monkeypatch.setattr(crowdfm_network, "BLOCK_EDGES", 7)
    np.testing.assert_array_equal(task_option_logits(*graph, weights, z_option), logits)


def test_tasks_and_workers_without_annotations() -> None:
    tensors, z_option = random_tensors(), vectors(2)
    graph = graph_of(np.array([1, 1, 3]), np.array([1, 3, 1]), np.array([0, 1, 1]), (6, 5, 2))
    logits = logits_of(graph, tensors, z_option)
    np.testing.assert_allclose(logits, reference(graph, tensors, z_option), rtol=1e-9)
    np.testing.assert_array_equal(logits[0], logits[5])
    nothing = Graph(np.zeros(4, np.int64), np.empty(0, np.uint8), np.empty(0, np.uint8), 0, 2)
    assert np.isfinite(logits_of(nothing, tensors, z_option)).all()
    assert logits_of(nothing._replace(task_ptr=np.zeros(1, np.int64)), tensors, z_option).shape == (0, 2)


@pytest.mark.parametrize(("n_tasks", "n_workers"), [(1000, 400), (100_000, 50)])
def test_memory_is_a_few_bytes_an_annotation_and_32_numbers_a_node(n_tasks: int, n_workers: int) -> None:
    n_edges = 400_000
    graph = random_graph(n_edges, n_tasks, n_workers, 2)
    weights, z_option = CrowdFMWeights.from_tensors(random_tensors(n_layers=1)), vectors(2)
    task_option_logits(*random_graph(5, 2, 2, 2), weights, z_option)
    tracemalloc.start()
    task_option_logits(*graph, weights, z_option)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * n_edges + 50 * 8 * (n_tasks + n_workers) + 4_000_000


def test_more_layers_than_published_or_fewer_are_taken_from_the_names() -> None:
    for n_layers in (1, 12):
        assert len(CrowdFMWeights.from_tensors(random_tensors(n_layers)).task.query) == n_layers


def test_tensors_that_do_not_fit_are_listed() -> None:
    tensors = random_tensors()
    del tensors["encoder.k_task.1.bias"], tensors["encoder.x_task"]
    tensors["encoder.extra"] = np.zeros(3)
    tensors["encoder.v_worker.0.weight"] = np.zeros((128, 64))
    tensors["encoder.x_worker"] = np.full(32, np.nan)
    tensors["encoder.layer_norm.bias"] = np.zeros(32, np.int64)
    with pytest.raises(WeightsError) as caught:
        CrowdFMWeights.from_tensors(tensors)
    message = str(caught.value)
    assert "missing: encoder.x_task, encoder.k_task.1.bias" in message
    assert "unexpected: 'encoder.extra'" in message
    assert "encoder.v_worker.0.weight (128, 64), not (128, 96)" in message
    assert "not finite real numbers: encoder.x_worker, encoder.layer_norm.bias" in message
    assert "\n" not in message


def test_no_tensor_a_gap_in_the_layers_and_an_absurd_layer_are_refused() -> None:
    with pytest.raises(WeightsError, match=r"missing: encoder\.x_worker.* and 20 more"):
        CrowdFMWeights.from_tensors({})
    gap = {name.replace(".1.", ".5."): value for name, value in random_tensors(2).items()}
    with pytest.raises(WeightsError, match="unexpected"):
        CrowdFMWeights.from_tensors(gap)
    with pytest.raises(WeightsError, match="999999999"):
        CrowdFMWeights.from_tensors({**random_tensors(1), "encoder.q_task.999999999.weight": np.zeros((128, 96))})


@pytest.mark.parametrize(
    "change",
    [
        {"n_workers": 2},
        {"n_classes": 1},
        {"task_ptr": np.array([0, 2, 9])},
        {"task_ptr": np.array([1, 2, 4])},
        {"task_ptr": np.array([0, 5, 4])},
        {"task_ptr": np.empty(0, np.int64)},
        {"worker": np.zeros(3, np.uint8)},
        {"worker": np.array([0, -1, 1, 2])},
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    graph = Graph(np.array([0, 2, 4]), np.array([0, 1, 2, 0]), np.array([0, 1, 1, 0]), 3, 2)._replace(**change)
    with pytest.raises(InputError):
        logits_of(graph, random_tensors(1), vectors(graph.n_classes))


@pytest.mark.parametrize("z_option", [np.zeros((3, 32)), np.zeros((2, 31)), np.full((2, 32), np.inf)])
def test_option_vectors_that_do_not_fit_are_refused(z_option: Floats) -> None:
    with pytest.raises(InputError, match="option_vectors"):
        logits_of(random_graph(9, 3, 3, 2), random_tensors(1), z_option)
