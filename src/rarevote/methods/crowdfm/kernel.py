"""Compiled loops of the CrowdFM graph network; :mod:`rarevote.methods.crowdfm.network` explains the algebra.

A node's state is a row of ``WIDTH`` numbers and attention has ``HEADS`` heads. Both belong to the published
network; as constants they let the compiler unroll and vectorise. A number per head and
dimension is in column ``h * WIDTH + j`` of ``FLAT``. No scratch array grows with the number of annotations,
tasks or workers, and every sum has one fixed order, so results repeat to the bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import kernel, piece

WIDTH = 32
HEADS = 4
FLAT = HEADS * WIDTH
LAYER_NORM_EPSILON = 1e-5
LEAKY_SLOPE = 0.01

# Nodes whose matrix products are done together, and edges whose scores are held at a time.
TILE = 16
CHUNK = 64

Floats = NDArray[np.float64]


class NodeMaps(NamedTuple):
    """The folded linear maps of one layer and side for nodes: of the scores and of the messages."""

    own_key: Floats  # (WIDTH, FLAT): own state -> what a neighbour's state is compared with
    key_bias: Floats  # (FLAT,)
    own_value: Floats  # (WIDTH, WIDTH): own state -> message
    neighbour_value: Floats  # (FLAT, WIDTH): attended neighbour states, head by head -> message
    node_bias: Floats  # (WIDTH,): added once for a node with edges
    edge_bias: Floats  # (WIDTH,): added once for each edge


class OptionMaps(NamedTuple):
    """The same layer and side applied to the K option vectors."""

    key: Floats  # (K, FLAT): compared with the neighbour's state
    own: Floats  # (K, FLAT): compared with the node's own state
    constant: Floats  # (K, HEADS): score of the option by itself
    value: Floats  # (K, FLAT): the option's part of the message, head by head


class _Scratch(NamedTuple):
    """Work space of one node's attention; ``query``, ``offset`` and ``share`` are valid for seen options."""

    query: Floats  # (K, FLAT): the node's key plus the option's
    offset: Floats  # (K, HEADS): score that all of the node's edges with this option share
    share: Floats  # (K, HEADS): attention on this option
    seen_at: NDArray[np.int64]  # (K,): last node that met the option
    seen: NDArray[np.int64]  # (K,): options the node met, in order
    score: Floats  # (CHUNK, HEADS)
    top: Floats  # (HEADS,): largest score so far
    mass: Floats  # (HEADS,): sum of exp(score - top) so far


@kernel
def place_edges(
    pointer: NDArray[np.int64],
    worker: NDArray[np.uint32],
    label: NDArray[np.uint32],
    first_task: int,
    cursor: NDArray[np.int64],
    task: NDArray[np.uint32],
    grouped_label: NDArray[np.unsignedinteger[Any]],
) -> None:
    """Scatter a block of edges to their workers: the last pass of a stable counting sort.

    ``cursor[w]`` is where worker ``w``'s next edge goes, and advances; ``pointer`` delimits the block's tasks,
    which are numbered from ``first_task``.
    """
    for t in range(pointer.shape[0] - 1):
        for e in range(pointer[t], pointer[t + 1]):
            place = cursor[worker[e]]
            task[place] = first_task + t
            grouped_label[place] = label[e]
            cursor[worker[e]] = place + 1


@piece
def _add_product(rows: Floats, size: int, matrix: Floats, out: Floats) -> None:
    """Add ``rows[:size] @ matrix`` to ``out[:size]``; the inner size is a multiple of four.

    This does not use BLAS, so that a row's result depends neither on its position nor on the number of threads.
    """
    for r in range(size):
        for i in range(0, matrix.shape[0], 4):
            # Four terms per pass, so that ``out`` is loaded and stored a quarter as often.
            a, b, c, d = rows[r, i], rows[r, i + 1], rows[r, i + 2], rows[r, i + 3]
            for j in range(matrix.shape[1]):
                out[r, j] += a * matrix[i, j] + b * matrix[i + 1, j] + c * matrix[i + 2, j] + d * matrix[i + 3, j]


@piece
def _head_product(flat: Floats, row: int, head: int, state: Floats, node: int) -> float:
    """Inner product of one head of ``flat[row]`` with ``state[node]``."""
    # The compiler cannot reorder a sum: eight explicit partial sums let it use wide registers.
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    shift = head * WIDTH
    for i in range(0, WIDTH, 8):
        s0 += flat[row, shift + i] * state[node, i]
        s1 += flat[row, shift + i + 1] * state[node, i + 1]
        s2 += flat[row, shift + i + 2] * state[node, i + 2]
        s3 += flat[row, shift + i + 3] * state[node, i + 3]
        s4 += flat[row, shift + i + 4] * state[node, i + 4]
        s5 += flat[row, shift + i + 5] * state[node, i + 5]
        s6 += flat[row, shift + i + 6] * state[node, i + 6]
        s7 += flat[row, shift + i + 7] * state[node, i + 7]
    return ((s0 + s4) + (s1 + s5)) + ((s2 + s6) + (s3 + s7))


@kernel
def self_scores(state: Floats, quadratic: Floats, out: Floats) -> None:
    """Set ``out[y, h] = z_y' A_h z_y`` for every row ``z_y`` of ``state``.

    ``quadratic`` (WIDTH, FLAT) holds the symmetric ``A_h`` side by side; ``out`` is (n, HEADS).
    """
    own = np.empty((TILE, WIDTH))
    image = np.empty((TILE, FLAT))
    for first in range(0, state.shape[0], TILE):
        size = min(TILE, state.shape[0] - first)
        for r in range(size):
            for j in range(WIDTH):
                own[r, j] = state[first + r, j]
            for j in range(FLAT):
                image[r, j] = 0.0
        _add_product(own, size, quadratic, image)
        for r in range(size):
            for h in range(HEADS):
                out[first + r, h] = _head_product(image, r, h, own, r)


@piece
def _attend(
    node: int,
    r: int,
    edges: tuple[int, int],
    own: Floats,
    key: Floats,
    neighbour: NDArray[np.uint32],
    label: NDArray[np.uint32],
    neighbour_state: Floats,
    neighbour_self: Floats,
    options: OptionMaps,
    scratch: _Scratch,
    mixed: Floats,
) -> int:
    """Softmax attention of ``node``, row ``r`` of the tile, over its edges ``edges[0] .. edges[1]``.

    Leaves ``sum_e exp(score - top) z_y`` in ``mixed[r]`` (zeros on entry) and the sums of the weights, in total
    and by option, in ``scratch``. Returns the number of options met.
    """
    score, top, mass, share = scratch.score, scratch.top, scratch.mass, scratch.share
    n_seen = 0
    for h in range(HEADS):
        top[h] = -np.inf
        mass[h] = 0.0
    # Edges are taken in chunks, and sums are rescaled whenever a chunk brings a larger score, so that a worker of
    # a million annotations needs no more memory than one with ten.
    for start in range(edges[0], edges[1], CHUNK):
        stop = min(start + CHUNK, edges[1])
        for e in range(start, stop):
            o, y = int(label[e]), int(neighbour[e])
            if scratch.seen_at[o] != node:
                scratch.seen_at[o] = node
                scratch.seen[n_seen] = o
                n_seen += 1
                for j in range(FLAT):
                    scratch.query[o, j] = key[r, j] + options.key[o, j]
                for h in range(HEADS):
                    scratch.offset[o, h] = options.constant[o, h] + _head_product(options.own, o, h, own, r)
                    share[o, h] = 0.0
            for h in range(HEADS):
                match = _head_product(scratch.query, o, h, neighbour_state, y)
                score[e - start, h] = match + scratch.offset[o, h] + neighbour_self[y, h]
        for h in range(HEADS):
            peak = top[h]
            for e in range(stop - start):
                peak = max(peak, score[e, h])
            if mass[h] > 0.0 and peak > top[h]:
                shrink = math.exp(top[h] - peak)
                mass[h] *= shrink
                for j in range(h * WIDTH, (h + 1) * WIDTH):
                    mixed[r, j] *= shrink
                for k in range(n_seen):
                    share[scratch.seen[k], h] *= shrink
            top[h] = peak
        for e in range(start, stop):
            o, y = int(label[e]), int(neighbour[e])
            for h in range(HEADS):
                weight = math.exp(score[e - start, h] - top[h])
                mass[h] += weight
                share[o, h] += weight
                for j in range(WIDTH):
                    mixed[r, h * WIDTH + j] += weight * neighbour_state[y, j]
    return n_seen


@piece
def _layer_norm(rows: Floats, size: int, gain: Floats, shift: Floats, first: int, out: Floats) -> None:
    """LayerNorm (biased variance) of ``rows[:size]`` into ``out[first : first + size]``."""
    for r in range(size):
        mean = 0.0
        for j in range(WIDTH):
            mean += rows[r, j]
        mean /= WIDTH
        variance = 0.0
        for j in range(WIDTH):
            variance += (rows[r, j] - mean) ** 2
        scale = 1.0 / math.sqrt(variance / WIDTH + LAYER_NORM_EPSILON)
        for j in range(WIDTH):
            out[first + r, j] = (rows[r, j] - mean) * scale * gain[j] + shift[j]


@kernel
def update_nodes(
    state: Floats,
    pointer: NDArray[np.int64],
    neighbour: NDArray[np.uint32],
    label: NDArray[np.uint32],
    neighbour_state: Floats,
    neighbour_self: Floats,
    maps: NodeMaps,
    options: OptionMaps,
    gain: Floats,
    shift: Floats,
    out: Floats,
) -> None:
    """One layer on one side: ``out[x] = LayerNorm(state[x] + sum of the messages of x's edges)``.

    For an edge ``e`` of ``x`` with neighbour ``y`` and option ``o``, and every head ``h``::

        score_eh = z_y . (key_h(x) + key_h(o)) + z_x . own_h(o) + constant_h(o) + self_h(y)
        a_eh = softmax of score_eh over the edges of x
        sum = own_value(x) + node_bias + degree(x) * edge_bias
              + sum_h [neighbour_value_h(sum_e a_eh z_y) + sum_e a_eh value_h(o)]

    and the sum is zero for a node without edges.

    Args:
        state: (n, WIDTH) states of the nodes to update.
        pointer: (n + 1,) edges of node ``x`` are ``pointer[x] .. pointer[x + 1]``.
        neighbour: (edges,) node at the other end.
        label: (edges,) option.
        neighbour_state: (m, WIDTH) states of the other side.
        neighbour_self: (m, HEADS) its :func:`self_scores`.
        maps: The layer's maps of nodes.
        options: The layer's maps of options, applied.
        gain: (WIDTH,) gain of the LayerNorm.
        shift: (WIDTH,) shift of the LayerNorm.
        out: (n, WIDTH) new states; can be ``state`` itself, since a node reads no other node of its side.
    """
    n_options = options.key.shape[0]
    scratch = _Scratch(
        np.empty((n_options, FLAT)),
        np.empty((n_options, HEADS)),
        np.empty((n_options, HEADS)),
        np.full(n_options, -1, np.int64),
        np.empty(n_options, np.int64),
        np.empty((CHUNK, HEADS)),
        np.empty(HEADS),
        np.empty(HEADS),
    )
    own = np.empty((TILE, WIDTH))
    key = np.empty((TILE, FLAT))
    mixed = np.empty((TILE, FLAT))
    total = np.empty((TILE, WIDTH))
    for first in range(0, state.shape[0], TILE):
        size = min(TILE, state.shape[0] - first)
        for r in range(size):
            for j in range(FLAT):
                key[r, j] = maps.key_bias[j]
                mixed[r, j] = 0.0
            for j in range(WIDTH):
                own[r, j] = state[first + r, j]
                total[r, j] = maps.node_bias[j]
        _add_product(own, size, maps.own_key, key)
        _add_product(own, size, maps.own_value, total)
        for r in range(size):
            node = first + r
            edges = (pointer[node], pointer[node + 1])
            degree = edges[1] - edges[0]
            if degree == 0:
                for j in range(WIDTH):
                    total[r, j] = own[r, j]
                continue
            n_seen = _attend(
                node,
                r,
                edges,
                own,
                key,
                neighbour,
                label,
                neighbour_state,
                neighbour_self,
                options,
                scratch,
                mixed,
            )
            for j in range(WIDTH):
                total[r, j] += own[r, j] + degree * maps.edge_bias[j]
            for h in range(HEADS):
                scale = 1.0 / scratch.mass[h]
                for j in range(h * WIDTH, (h + 1) * WIDTH):
                    mixed[r, j] *= scale
                for k in range(n_seen):
                    o = scratch.seen[k]
                    weight = scratch.share[o, h] * scale
                    for j in range(WIDTH):
                        total[r, j] += weight * options.value[o, h * WIDTH + j]
        _add_product(mixed, size, maps.neighbour_value, total)
        _layer_norm(total, size, gain, shift, first, out)


@kernel
def classify(state: Floats, task_map: Floats, option_part: Floats, readout: Floats, bias: float, out: Floats) -> None:
    """Set ``out[t, o] = bias + readout . LeakyReLU(z_t @ task_map + option_part[o])``.

    ``task_map`` is (WIDTH, 2 WIDTH), ``option_part`` (K, 2 WIDTH) with the hidden bias in it, ``out`` (n, K).
    """
    own = np.empty((TILE, WIDTH))
    hidden = np.empty((TILE, 2 * WIDTH))
    for first in range(0, state.shape[0], TILE):
        size = min(TILE, state.shape[0] - first)
        for r in range(size):
            for j in range(WIDTH):
                own[r, j] = state[first + r, j]
            for j in range(2 * WIDTH):
                hidden[r, j] = 0.0
        _add_product(own, size, task_map, hidden)
        for r in range(size):
            for o in range(option_part.shape[0]):
                total = bias
                for j in range(2 * WIDTH):
                    value = hidden[r, j] + option_part[o, j]
                    total += readout[j] * max(value, LEAKY_SLOPE * value)
                out[first + r, o] = total
