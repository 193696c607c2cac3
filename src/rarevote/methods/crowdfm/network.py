"""The CrowdFM graph network (Liu et al., ICLR 2026), inference only: from annotations to a score per task and option.

The published definition maps every edge ``e = [z_w ; z_t ; z_o]`` to three vectors of 128 numbers, on each side of each
layer. The same result is computed without any array of that size. Let ``x`` be the node that attends
over its edges, ``y`` the node at the other end, ``o`` the option, and ``S_h = (Q_h' K_h + K_h' Q_h) / sqrt(d)`` in
blocks:

* the score ``q_h . k_h / sqrt(d)`` is a quadratic form of ``e``. Terms in ``x`` alone are equal for all edges
  of ``x`` and cancel in the softmax. The rest is ``z_y . (S_yx z_x + S_yo z_o + l_y) + z_o . S_ox z_x`` plus a
  number for ``y`` and one for ``o``, where ``l = (Q_h' b_k + K_h' b_q) / sqrt(d)``;
* the messages are linear in the values, and attention sums to one, so states are averaged first (``sum_e a z_y``
  per head) and mapped once per node, by the product of the output and the value matrices. The node's own part and
  the value bias enter once, the output bias once per edge.

Everything is float64: a permutation of the input permutes the scores to rounding error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.errors import InputError, WeightsError
from rarevote.methods.crowdfm.kernel import (
    FLAT,
    HEADS,
    WIDTH,
    NodeMaps,
    OptionMaps,
    classify,
    place_edges,
    self_scores,
    update_nodes,
)

Floats = NDArray[np.float64]
Unsigned = NDArray[np.unsignedinteger[Any]]

# Edges converted and handed to a kernel at a time (whole nodes, so one with more edges makes a larger block).
BLOCK_EDGES = 1 << 16

_LAYER_NAME = re.compile(r"encoder\.(?:q|k|v|out)_(?:worker|task)\.(0|[1-9][0-9]{0,3})\.")
_NAMES_SHOWN = 4


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """One side's attention in all L layers, as published: ``y = W x + b`` with ``W`` (out, in).

    ``query``, ``key`` and ``value`` are (L, 128, 96) with biases (L, 128), ``out`` is (L, 32, 128) with (L, 32).
    """

    query: Floats
    query_bias: Floats
    key: Floats
    key_bias: Floats
    value: Floats
    value_bias: Floats
    out: Floats
    out_bias: Floats


@dataclass(frozen=True, eq=False)
class CrowdFMWeights:
    """The network's parameters in float64; :meth:`from_tensors` makes and checks them."""

    x_worker: Floats
    x_task: Floats
    worker: AttentionWeights
    task: AttentionWeights
    norm_gain: Floats
    norm_shift: Floats
    hidden: Floats
    hidden_bias: Floats
    readout: Floats
    readout_bias: float

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, NDArray[Any]]) -> CrowdFMWeights:
        """Parameters from named tensors, as read from a checkpoint; the names give the number of layers.

        Args:
            tensors: Arrays under their published names: ``encoder.x_worker`` (32,),
                ``encoder.q_task.0.weight`` (128, 96), ``task_option_classifactor.2.weight`` (1, 64) and so on.

        Returns:
            The parameters, copied.

        Raises:
            WeightsError: A tensor is missing, unexpected, of the wrong shape, or not made of finite numbers.
        """
        n_layers = len({match[1] for name in tensors if (match := _LAYER_NAME.match(name))})
        _check_tensors(tensors, _expected_shapes(n_layers))
        values = {name: np.array(tensor, dtype=np.float64) for name, tensor in tensors.items()}

        def stack(part: str, kind: str) -> Floats:
            return np.stack([values[f"encoder.{part}.{layer}.{kind}"] for layer in range(n_layers)])

        def attention(side: str) -> AttentionWeights:
            parts = (f"{part}_{side}" for part in ("q", "k", "v", "out"))
            return AttentionWeights(*(stack(part, kind) for part in parts for kind in ("weight", "bias")))

        return cls(
            x_worker=values["encoder.x_worker"],
            x_task=values["encoder.x_task"],
            worker=attention("worker"),
            task=attention("task"),
            norm_gain=values["encoder.layer_norm.weight"],
            norm_shift=values["encoder.layer_norm.bias"],
            hidden=values["task_option_classifactor.0.weight"],
            hidden_bias=values["task_option_classifactor.0.bias"],
            readout=values["task_option_classifactor.2.weight"][0],
            readout_bias=float(values["task_option_classifactor.2.bias"][0]),
        )

    @cached_property
    def folded(self) -> list[tuple[_FoldedSide, _FoldedSide]]:
        """Every layer's folded maps, worker side and task side; made once, used by every seed."""
        worker, task = slice(0, WIDTH), slice(WIDTH, 2 * WIDTH)
        return list(zip(_fold(self.worker, worker, task), _fold(self.task, task, worker), strict=True))


def _expected_shapes(n_layers: int) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a network with this number of layers (at least one)."""
    shapes: dict[str, tuple[int, ...]] = {
        "encoder.x_worker": (WIDTH,),
        "encoder.x_task": (WIDTH,),
        "encoder.layer_norm.weight": (WIDTH,),
        "encoder.layer_norm.bias": (WIDTH,),
        "task_option_classifactor.0.weight": (2 * WIDTH, 2 * WIDTH),
        "task_option_classifactor.0.bias": (2 * WIDTH,),
        "task_option_classifactor.2.weight": (1, 2 * WIDTH),
        "task_option_classifactor.2.bias": (1,),
    }
    for layer in range(max(n_layers, 1)):
        for side in ("worker", "task"):
            for part in "qkv":
                shapes[f"encoder.{part}_{side}.{layer}.weight"] = (FLAT, 3 * WIDTH)
                shapes[f"encoder.{part}_{side}.{layer}.bias"] = (FLAT,)
            shapes[f"encoder.out_{side}.{layer}.weight"] = (WIDTH, FLAT)
            shapes[f"encoder.out_{side}.{layer}.bias"] = (WIDTH,)
    return shapes


def _check_tensors(tensors: Mapping[str, NDArray[Any]], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise one WeightsError that names what is missing, unexpected, misshapen or not finite."""
    common = [name for name in shapes if name in tensors]
    misshapen = [name for name in common if tensors[name].shape != shapes[name]]
    problems = {
        "missing": [name for name in shapes if name not in tensors],
        "unexpected": [repr(name) for name in tensors if name not in shapes],
        "of the wrong shape": [f"{name} {tensors[name].shape}, not {shapes[name]}" for name in misshapen],
        "not finite real numbers": [
            name for name in common if tensors[name].dtype.kind != "f" or not np.isfinite(tensors[name]).all()
        ],
    }
    found = [f"{kind}: {_some(names)}" for kind, names in problems.items() if names]
    if found:
        raise WeightsError("These tensors are not CrowdFM's. " + "; ".join(found) + ".")


def _some(names: list[str]) -> str:
    shown = ", ".join(name if len(name) <= 80 else name[:77] + "..." for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


class _FoldedSide(NamedTuple):
    """One layer and side in the form for the kernels, before the option maps are applied to option vectors."""

    nodes: NodeMaps
    neighbour_quadratic: Floats  # (WIDTH, FLAT), symmetric head by head
    option_quadratic: Floats  # (WIDTH, FLAT), symmetric head by head
    option_linear: Floats  # (WIDTH, HEADS)
    option_key: Floats  # (WIDTH, FLAT)
    option_own: Floats  # (WIDTH, FLAT)
    option_value: Floats  # (WIDTH, FLAT)

    def options(self, vectors: Floats) -> OptionMaps:
        """The maps applied to the (K, WIDTH) option vectors."""
        constant = np.empty((len(vectors), HEADS))
        self_scores(vectors, self.option_quadratic, constant)
        constant += _product(vectors, self.option_linear)
        key, own, value = (_product(vectors, m) for m in (self.option_key, self.option_own, self.option_value))
        return OptionMaps(key, own, constant, value)


def _product(rows: Floats, matrix: Floats) -> Floats:
    """``rows @ matrix`` without BLAS, whose last bits depend on the number of threads."""
    product: Floats = np.einsum("ri,ij->rj", rows, matrix)
    return product


def _fold(attention: AttentionWeights, own: slice, neighbour: slice) -> list[_FoldedSide]:
    """The maps of each layer; ``own`` and ``neighbour`` are the columns of ``e`` that hold the two states."""
    option = slice(2 * WIDTH, 3 * WIDTH)
    scale = 1.0 / np.sqrt(WIDTH)
    layers = []
    for layer in range(len(attention.query)):
        query, key, value = (
            weight[layer].reshape(HEADS, WIDTH, 3 * WIDTH)
            for weight in (attention.query, attention.key, attention.value)
        )
        query_bias, key_bias, value_bias = (
            bias[layer].reshape(HEADS, WIDTH)
            for bias in (attention.query_bias, attention.key_bias, attention.value_bias)
        )
        out = attention.out[layer].reshape(WIDTH, HEADS, WIDTH)
        half = np.einsum("hri,hrj->hij", query, key) * scale
        form = half + half.transpose(0, 2, 1)
        linear = np.einsum("hri,hr->hi", query, key_bias) + np.einsum("hri,hr->hi", key, query_bias)
        linear *= scale
        message = np.einsum("ohr,hri->iho", out, value)

        def columns(rows: slice, cols: slice, form: Floats = form) -> Floats:
            """Block of ``form``: what the part ``rows`` is mapped to, for comparison with the part ``cols``."""
            return np.ascontiguousarray(form[:, rows, cols].transpose(1, 0, 2)).reshape(WIDTH, FLAT)

        nodes = NodeMaps(
            own_key=columns(own, neighbour),
            key_bias=linear[:, neighbour].reshape(FLAT),
            own_value=np.ascontiguousarray(message[own].sum(axis=1)),
            neighbour_value=np.ascontiguousarray(message[neighbour].transpose(1, 0, 2)).reshape(FLAT, WIDTH),
            node_bias=np.einsum("ohr,hr->o", out, value_bias),
            edge_bias=attention.out_bias[layer].copy(),
        )
        layers.append(
            _FoldedSide(
                nodes=nodes,
                neighbour_quadratic=0.5 * columns(neighbour, neighbour),
                option_quadratic=0.5 * columns(option, option),
                option_linear=np.ascontiguousarray(linear[:, option].T),
                option_key=columns(option, neighbour),
                option_own=columns(option, own),
                option_value=np.ascontiguousarray(message[option]).reshape(WIDTH, FLAT),
            )
        )
    return layers


class _Edges(NamedTuple):
    """Edges grouped by the nodes of one side (``pointer``), with the other end and the option of each."""

    pointer: NDArray[np.int64]
    neighbour: Unsigned
    label: Unsigned

    def blocks(self) -> Iterator[tuple[int, int, NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]]:
        """Runs of nodes ``first .. last`` with a pointer from zero, and their edges in one integer type.

        So the kernels compile for one type only, whatever small type stores the annotations.
        """
        first, n_nodes = 0, len(self.pointer) - 1
        while first < n_nodes:
            limit = np.searchsorted(self.pointer, self.pointer[first] + BLOCK_EDGES, side="right")
            last = min(max(first + 1, int(limit) - 1), first + BLOCK_EDGES, n_nodes)
            edges = slice(int(self.pointer[first]), int(self.pointer[last]))
            yield (
                first,
                last,
                self.pointer[first : last + 1] - self.pointer[first],
                self.neighbour[edges].astype(np.uint32),
                self.label[edges].astype(np.uint32),
            )
            first = last


def _group_by_worker(by_task: _Edges, n_workers: int) -> _Edges:
    """The same edges grouped by worker (counting sort: linear, and the order of tasks is kept)."""
    pointer = np.zeros(n_workers + 1, np.int64)
    for *_, worker, _ in by_task.blocks():
        pointer[1:] += np.bincount(worker, minlength=n_workers)
    np.cumsum(pointer, out=pointer)
    task = np.empty(len(by_task.neighbour), np.uint32)
    label = np.empty(len(by_task.label), by_task.label.dtype)
    cursor = pointer[:-1].copy()
    for first, _, task_pointer, worker, task_label in by_task.blocks():
        place_edges(task_pointer, worker, task_label, first, cursor, task, label)
    return _Edges(pointer, task, label)


def _update_side(
    edges: _Edges,
    state: Floats,
    neighbour_state: Floats,
    side: _FoldedSide,
    option_vectors: Floats,
    weights: CrowdFMWeights,
    out: Floats,
) -> None:
    """One layer on one side, block by block, into ``out`` (which can be ``state``)."""
    neighbour_self = np.empty((len(neighbour_state), HEADS))
    self_scores(neighbour_state, side.neighbour_quadratic, neighbour_self)
    options = side.options(option_vectors)
    for first, last, pointer, neighbour, label in edges.blocks():
        update_nodes(
            state[first:last],
            pointer,
            neighbour,
            label,
            neighbour_state,
            neighbour_self,
            side.nodes,
            options,
            weights.norm_gain,
            weights.norm_shift,
            out[first:last],
        )


def task_option_logits(
    task_ptr: NDArray[np.int64],
    worker: Unsigned,
    label: Unsigned,
    n_workers: int,
    n_classes: int,
    weights: CrowdFMWeights,
    option_vectors: ArrayLike,
) -> Floats:
    """Score of every option for every task; the prediction is the argmax of a row.

    ``logit(t, o) = readout . LeakyReLU(W [z_t ; z_o] + b) + c``, where ``z_t`` is the state of task ``t`` after
    all layers of attention over the annotation graph and ``z_o`` the option's vector. Memory is 32 numbers per node
    plus a few bytes per annotation. The same input gives the same result to the last bit.

    Args:
        task_ptr: (n_tasks + 1,) the annotations of task ``t`` are ``task_ptr[t] .. task_ptr[t + 1]``; a task
            may have none, and a worker may annotate a task more than once.
        worker: (N,) worker of each annotation, below ``n_workers``.
        label: (N,) option chosen, below ``n_classes``.
        n_workers: Number of workers.
        n_classes: Number of options K, at least one.
        weights: The network's parameters.
        option_vectors: (K, 32) vectors ``z_o``, drawn from N(0, I) once per option and seed.

    Returns:
        (n_tasks, K) logits.

    Raises:
        InputError: The sizes of the arrays do not match.
    """
    by_task = _Edges(task_ptr, worker, label)
    vectors = np.ascontiguousarray(option_vectors, dtype=np.float64)
    _check_graph(by_task, n_workers, n_classes, vectors)
    by_worker = _group_by_worker(by_task, n_workers)
    n_tasks = len(task_ptr) - 1
    worker_state = np.tile(weights.x_worker, (n_workers, 1))
    next_worker_state = np.empty_like(worker_state)
    task_state = np.tile(weights.x_task, (n_tasks, 1))
    for worker_side, task_side in weights.folded:
        # Both sides read the old states: new worker states go to a second array, then tasks are updated in place.
        _update_side(by_worker, worker_state, task_state, worker_side, vectors, weights, next_worker_state)
        _update_side(by_task, task_state, worker_state, task_side, vectors, weights, task_state)
        worker_state, next_worker_state = next_worker_state, worker_state
    logits = np.empty((n_tasks, n_classes))
    task_map, option_map = np.ascontiguousarray(weights.hidden.T).reshape(2, WIDTH, 2 * WIDTH)
    option_part = _product(vectors, option_map) + weights.hidden_bias
    classify(task_state, task_map, option_part, weights.readout, weights.readout_bias, logits)
    return logits


def _check_graph(edges: _Edges, n_workers: int, n_classes: int, vectors: Floats) -> None:
    """Refuse numbers out of range: the kernels do not check bounds."""
    pointer, worker, label = edges
    if pointer.ndim != 1 or len(pointer) == 0 or worker.ndim != 1 or worker.shape != label.shape:
        raise InputError("task_ptr needs n_tasks + 1 entries; worker and label need one entry per annotation")
    if pointer[0] != 0 or pointer[-1] != len(worker) or (np.diff(pointer) < 0).any():
        raise InputError(f"task_ptr must rise from 0 to the {len(worker)} annotations")
    for name, codes, bound in (("worker", worker, n_workers), ("label", label, n_classes)):
        if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < bound:
            raise InputError(f"{name} must lie in 0 .. {bound - 1}, found {codes.min()} .. {codes.max()}")
    if n_classes < 1 or vectors.shape != (n_classes, WIDTH) or not np.isfinite(vectors).all():
        raise InputError(f"option_vectors must be {n_classes} rows of {WIDTH} finite numbers")
