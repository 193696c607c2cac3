"""What a round costs on clusters that we do not have, from what it costs here: the tables of docs/scale.md.

From docs/evidence/dask.csv and dask_default.csv (the cost models that ``python -m benchmarks.dask_engine`` fits to
CC-Rasch and to the default) and docs/evidence/one_machine.csv and one_machine_default.csv.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np

from benchmarks import pages
from benchmarks.evidence import read
from rarevote.cluster.data import shards_for
from rarevote.cluster.engine import _MERGED_AT_ONCE, _MERGED_BY_DRIVER
from rarevote.crowd.annotations import smallest_unsigned
from rarevote.kernels.blocks import WORKER

FLOAT = 8
# Local state of a large crowd: previous, current, proposed. One machine without checkpoints needs one posterior only.
POSTERIORS, DIFFICULTIES, POSTERIORS_ON_ONE_MACHINE = 3, 3, 1
NODES = 5

# The cluster that is assumed; every core has a dask worker with one thread, as in the measurements.
CORES, BYTES_PER_SECOND = 16, 1.25e9
# What dask needs to schedule a task, by its own documentation up to a millisecond.
SECONDS_PER_TASK = 1e-3


@dataclass(frozen=True)
class Costs:
    """Seconds of a round on one core, by what they grow with."""

    fixed: float
    annotation: float  # per class
    shard: float  # per worker and class
    worker: float  # per class


@dataclass(frozen=True)
class Method:
    """What a method keeps and sends."""

    difficulties: int  # per task and class
    is_anchored: bool

    def numbers_down(self, n_classes: int) -> int:
        """Parameters of a worker: abilities, and for the default the logarithms of its errors."""
        return n_classes + n_classes**2 if self.is_anchored else n_classes

    def numbers_up(self, n_classes: int) -> int:
        """Sums of a worker: gradient and curvature of every ability; for the default, masses by node and by label."""
        return (NODES + n_classes) * n_classes if self.is_anchored else 2 * n_classes


CC_RASCH, DEFAULT = Method(DIFFICULTIES, False), Method(0, True)


@dataclass(frozen=True)
class Crowd:
    """How large a crowd is."""

    n_annotations: float
    votes_per_task: float
    n_workers: float
    n_classes: int

    @property
    def n_tasks(self) -> float:
        """Number of tasks."""
        return self.n_annotations / self.votes_per_task

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return shards_for(int(self.n_annotations), int(self.n_workers))


@dataclass(frozen=True)
class Round:
    """Seconds of a round, by where they go."""

    dask: float
    annotations: float
    shards: float
    driver: float
    network: float

    @property
    def total(self) -> float:
        """All of them."""
        return self.dask + self.annotations + self.shared

    @property
    def shared(self) -> float:
        """What grows with workers times classes, and not with the data."""
        return self.shards + self.driver + self.network


# --------------------------------------------------------------------------------------------------------------------
# bytes


def bytes_per_annotation(n_workers: float, n_classes: int) -> int:
    """Of the encoded votes: who, and what; by task as they are given back, and in blocks as passes read them."""
    label = np.dtype(smallest_unsigned(n_classes)).itemsize
    return np.dtype(smallest_unsigned(ceil(n_workers))).itemsize + np.dtype(WORKER).itemsize + 2 * label


def bytes_per_task(n_classes: int, posteriors: int = POSTERIORS, method: Method = CC_RASCH) -> int:
    """Where its votes begin, its place in the blocks; posterior and difficulty of every class in all states.

    The pointers of the blocks, eight bytes for every level of ``LANES`` tasks, are left out.
    """
    places = np.dtype(np.int64).itemsize + np.dtype(np.int32).itemsize
    return places + (posteriors + method.difficulties) * n_classes * FLOAT


def data_bytes(crowd: Crowd, posteriors: int = POSTERIORS, method: Method = CC_RASCH) -> float:
    """What the votes and the local state take in all."""
    votes = crowd.n_annotations * bytes_per_annotation(crowd.n_workers, crowd.n_classes)
    return votes + crowd.n_tasks * bytes_per_task(crowd.n_classes, posteriors, method)


def sums_bytes(crowd: Crowd, method: Method = CC_RASCH) -> float:
    """One set of sums: what a dask worker sends up in a round."""
    return FLOAT * crowd.n_workers * method.numbers_up(crowd.n_classes)


def parameter_bytes(crowd: Crowd, method: Method = CC_RASCH) -> float:
    """One set of parameters: what a dask worker receives in a round."""
    return FLOAT * crowd.n_workers * method.numbers_down(crowd.n_classes)


def node_bytes(crowd: Crowd, n_nodes: int, method: Method = CC_RASCH) -> float:
    """Memory of a node: its share of the data, and on every core the sums of a path through the tree."""
    shards = max(crowd.n_shards / (n_nodes * CORES), 1.0)
    return data_bytes(crowd, method=method) / n_nodes + CORES * sums_bytes(crowd, method) * (log2(shards) + 2)


def network_bytes(crowd: Crowd, n_nodes: int, method: Method = CC_RASCH) -> float:
    """What is sent in a round: parameters to every dask worker, and its sums."""
    return n_nodes * CORES * (parameter_bytes(crowd, method) + sums_bytes(crowd, method))


# --------------------------------------------------------------------------------------------------------------------
# seconds


def merges(n_workers: int) -> list[int]:
    """Tasks on each level of the tree in which dask workers add what they sent.

    >>> merges(2), merges(64), merges(1600)
    ([], [8, 1], [200, 25, 4, 1])
    """
    levels = []
    while n_workers > _MERGED_BY_DRIVER:
        n_workers = ceil(n_workers / _MERGED_AT_ONCE)
        levels.append(n_workers)
    return levels


def one_round(costs: Costs, crowd: Crowd, n_nodes: int, method: Method = CC_RASCH) -> Round:
    """A round on so many nodes: data are shared by the cores, the tree and the driver are waited for."""
    cores = n_nodes * CORES
    parameters = crowd.n_workers * crowd.n_classes
    shards = ceil(crowd.n_shards / cores)
    # Parameters are copied from worker to worker; on every level of the tree one receives the sums of seven others.
    levels = merges(cores)
    received = parameter_bytes(crowd, method) * ceil(log2(cores))
    received += sums_bytes(crowd, method) * (_MERGED_AT_ONCE - 1) * len(levels)
    return Round(
        dask=costs.fixed + SECONDS_PER_TASK * (cores + sum(levels)),
        annotations=costs.annotation * crowd.n_annotations * crowd.n_classes / cores,
        shards=costs.shard * shards * parameters,
        driver=costs.worker * parameters,
        network=received / BYTES_PER_SECOND,
    )


def workers_that_take_over(costs: Costs, crowd: Crowd, n_nodes: int, method: Method = CC_RASCH) -> float:
    """How many workers a crowd has when what is shared takes as long as the votes themselves."""
    few, many = 1.0, 1e12
    while many / few > 1.001:
        middle = (few * many) ** 0.5
        found = one_round(costs, replace(crowd, n_workers=middle), n_nodes, method)
        few, many = (middle, many) if found.shared < found.annotations else (few, middle)
    return few


# --------------------------------------------------------------------------------------------------------------------
# the page

PLANS = [
    (Crowd(1e9, 5, 500_000, 2), 4),
    (Crowd(100e9, 5, 5_000_000, 2), 100),
]


def figures(name: str) -> dict[str, str]:
    """Measures and values of an evidence file."""
    return {row["measure"]: row["value"] for row in read(name)}


def costs_of(found: dict[str, str]) -> Costs:
    """The fitted cost model."""
    names = (
        ("fixed, ms", 1e-3),
        ("per annotation and class, ns", 1e-9),
        ("per shard, worker and class, ns", 1e-9),
        ("per worker and class, ns", 1e-9),
    )
    return Costs(*(float(found[f"cost of a round: {name}"]) * unit for name, unit in names))


def short(value: float) -> str:
    """Three digits, with a word for the size.

    >>> [short(value) for value in (0.01234, 7.0, 12_345, 6_400_000, 3.2e12)]
    ['0.0123', '7', '12 300', '6.4 M', '3200 G']
    """
    rounded = float(f"{value:.3g}")
    if rounded >= 1e9:
        return f"{rounded / 1e9:g} G"
    if rounded >= 1e6:
        return f"{rounded / 1e6:g} M"
    return f"{rounded:,.0f}".replace(",", " ") if rounded >= 1e3 else f"{rounded:g}"


def cost_table(found: dict[str, str]) -> str:
    """The coefficients as they were fitted."""
    costs = costs_of(found)
    rows = [
        ["once", f"{costs.fixed * 1e3:.3g} ms"],
        ["per annotation and class", f"{costs.annotation * 1e9:.3g} ns"],
        ["per shard, worker and class", f"{costs.shard * 1e9:.3g} ns"],
        ["per worker and class", f"{costs.worker * 1e9:.3g} ns"],
        ["median error of this model", f"{float(found['cost of a round: median error of this model, %']):.2g}%"],
    ]
    return pages.table(["a round on one core", "takes"], rows)


def plan_table(found: dict[str, str], method: Method = CC_RASCH) -> str:
    """What the model predicts."""
    costs = costs_of(found)
    columns = []
    for crowd, n_nodes in PLANS:
        cost = one_round(costs, crowd, n_nodes, method)
        columns.append(
            [
                f"{short(crowd.n_annotations)} annotations",
                short(crowd.n_tasks),
                short(crowd.n_workers),
                f"{n_nodes} ({n_nodes * CORES} cores)",
                f"{short(node_bytes(crowd, n_nodes, method) / 1e9)} GB",
                f"{short(sums_bytes(crowd, method) / 1e6)} MB",
                f"{short(network_bytes(crowd, n_nodes, method) / 1e9)} GB",
                f"{cost.annotations:.2g} s",
                f"{cost.shards:.2g} s",
                f"{cost.driver:.2g} s",
                f"{cost.network:.2g} s",
                f"{cost.dask:.2g} s",
                f"**{cost.total:.2g} s**",
                short(workers_that_take_over(costs, crowd, n_nodes, method)),
            ]
        )
    names = [
        "",
        "tasks",
        "workers (K = 2)",
        "nodes",
        "memory per node",
        "sums that a dask worker sends",
        "over the network in all",
        "votes",
        "sums of the shards",
        "driver",
        "waiting for the network",
        "dask",
        "a round",
        "workers at which the shared state takes as long as the votes",
    ]
    rows = [list(cells) for cells in zip(names, *columns, strict=True)]
    return pages.table(rows[0], rows[1:])


def one_machine_table(found: dict[str, str]) -> str:
    """The large run on one machine, as it was measured."""
    return pages.table(["measure", "value"], [[name, value] for name, value in found.items()])
