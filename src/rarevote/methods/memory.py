"""Estimate the memory of a fit from the sizes of the crowd, and refuse the fit if there is not enough.

A method states how many tables of 8-byte numbers it has in memory at the same time, by their shape
(:attr:`Estimator.memory_model <rarevote.methods.base.Estimator.memory_model>`)::

    t tasks    w workers    k classes    v votes, if a fit of few votes is computed in whole arrays

>>> from rarevote.methods.dawid_skene import DawidSkene
>>> sizes = Sizes(n_tasks=5000, n_workers=1000, n_classes=1000, n_annotations=40_000)
>>> gigabytes(needed_memory(DawidSkene(), sizes))
'32.1 GB'

The numbers are measured lower limits: a fit that is refused would have failed.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rarevote.errors import NotEnoughMemoryError
from rarevote.kernels.memory import available_memory, gigabytes
from rarevote.kernels.plain import is_small
from rarevote.methods.registry import METHODS

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator

_BYTES = 8
# Below this nothing is refused: the free memory that a machine reports is not that exact.
_MIN_REFUSED = 1 << 28
# Methods that store little per worker, in the order in which they are suggested.
_SMALLER = ("class-conditional", "majority-vote")


class Sizes(NamedTuple):
    """The sizes of a crowd that its memory depends on."""

    n_tasks: int
    n_workers: int
    n_classes: int
    n_annotations: int

    @classmethod
    def of(cls, crowd: Any) -> Sizes:
        """The sizes of a crowd."""
        return cls(*(int(getattr(crowd, name)) for name in cls._fields))


def needed_memory(estimator: Estimator, sizes: Sizes) -> int:
    """Bytes that a fit needs in memory at the same time, besides the votes."""
    in_arrays = sizes.n_annotations if is_small(sizes.n_annotations, sizes.n_classes) else 0
    size = {"t": sizes.n_tasks, "w": sizes.n_workers, "k": sizes.n_classes, "v": in_arrays}
    # The state of the tasks can be stored in single precision.
    of_task = np.dtype(estimator.dtype).itemsize / _BYTES
    return int(
        sum(
            tables * _BYTES * prod(size[letter] for letter in shape) * (of_task if shape.startswith("t") else 1)
            for shape, tables in estimator.memory_model.items()
        )
    )


def require_memory(estimator: Estimator, sizes: Sizes, available: int | None = None, where: str = "here") -> None:
    """Refuse a fit that does not fit into memory.

    Args:
        estimator: the method with its parameters.
        sizes: the sizes of the crowd, or of the part in one process.
        available: bytes; by default, what this process can use.
        where: whose memory that is, for the message.

    Raises:
        NotEnoughMemoryError: more is needed than available.
    """
    needed = needed_memory(estimator, sizes)
    if needed < _MIN_REFUSED:
        return
    available = available_memory() if available is None else available
    if available is None or needed <= available:
        return
    raise NotEnoughMemoryError(
        f"{estimator.method_name} needs about {gigabytes(needed)} of memory for {_described(sizes)}, and "
        f"{gigabytes(available)} are available {where}: {_advice(estimator, sizes, available)}"
    )


def out_of_memory(estimator: Estimator, sizes: Sizes) -> NotEnoughMemoryError:
    """The error for a fit that was not refused but ran out of memory."""
    needed = gigabytes(needed_memory(estimator, sizes))
    return NotEnoughMemoryError(
        f"{estimator.method_name} ran out of memory with {_described(sizes)}; it needs at least {needed} beside the "
        f"votes: {_advice(estimator, sizes, available_memory())}"
    )


def _described(sizes: Sizes) -> str:
    return f"{sizes.n_tasks:,} tasks, {sizes.n_workers:,} workers and {sizes.n_classes:,} classes"


def _advice(estimator: Estimator, sizes: Sizes, available: int | None) -> str:
    found = (
        name
        for name in _SMALLER
        if name != estimator.method_name
        and (available is None or needed_memory(METHODS[name].load()(), sizes) <= available)
    )
    other = next((f", or choose a method that takes less ({name})" for name in found), "")
    return f"merge rare classes, or workers with few votes{other}"
