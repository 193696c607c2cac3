"""What is refused before a fit begins: hyper-parameters that make no sense, and more memory than there is.

Parameters come as users write them, and are resolved to one value per class where they are of classes. How much memory
a fit will take follows from the sizes of the crowd: a method says how many tables of 8-byte numbers it has in memory at
the same time, by their shape (:attr:`Estimator.memory_model <rarevote.methods.base.Estimator.memory_model>`)::

    t tasks    w workers    k classes    v votes, where a fit of few votes is computed in whole arrays

>>> from rarevote.methods.dawid_skene import DawidSkene
>>> sizes = Sizes(n_tasks=5000, n_workers=1000, n_classes=1000, n_annotations=40_000)
>>> gigabytes(needed_memory(DawidSkene(), sizes))
'32.1 GB'

The numbers are measured, at their least: who is refused would not have come through.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.errors import NotEnoughMemoryError, ParameterError
from rarevote.kernels.memory import available_memory, gigabytes
from rarevote.kernels.plain import is_small
from rarevote.methods.registry import METHODS

if TYPE_CHECKING:
    from rarevote.methods.base import Estimator


def state_dtype(value: Any) -> np.dtype[Any]:
    """The type that a fit keeps the state of its tasks in, from the parameter ``dtype``."""
    if str(value) not in ("float64", "float32"):
        raise ParameterError(f'dtype must be "float64" or "float32", got {value!r}')
    return np.dtype(str(value))


def per_class(name: str, value: Any, classes: NDArray[Any]) -> FloatArray:
    """One positive number per class from a number, a sequence in the order of the classes, or a mapping by class."""
    given = _in_class_order(name, value, classes)
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise ParameterError(f"{name} must be positive and finite, got {value!r}")
    return given


def _in_class_order(name: str, value: Any, classes: NDArray[Any]) -> FloatArray:
    names = classes.tolist()
    if isinstance(value, Mapping) or (hasattr(value, "to_dict") and hasattr(value, "index")):
        mapping = value if isinstance(value, Mapping) else value.to_dict()
        lacking = [label for label in names if label not in mapping]
        unknown = [label for label in mapping if label not in set(names)]
        if lacking or unknown:
            raise ParameterError(f"{name} must name every class once: classes are {names}, got {list(mapping)}")
        value = [mapping[label] for label in names]
    try:
        given = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be a number or one number per class, got {value!r}") from None
    if given.ndim == 0:
        return np.full(len(names), float(given))
    if given.shape != (len(names),):
        raise ParameterError(f"{name} needs one value or {len(names)} (one per class: {names}), got {given.size}")
    return given.copy()


def resolve_prior(prior: Any, classes: NDArray[Any], *, name: str = "prior") -> tuple[FloatArray, bool]:
    """Log class prior to start from, and whether to re-estimate it.

    Args:
        prior: "uniform", "estimate", or the values (a sequence in the order of the classes, a mapping or Series by
            class); values are normalised.
        classes: names of the classes.
        name: how messages call it.
    """
    if prior is None or (isinstance(prior, str) and prior == "uniform"):
        return np.full(len(classes), -np.log(max(len(classes), 1))), False
    if isinstance(prior, str) and prior == "estimate":
        return np.full(len(classes), -np.log(max(len(classes), 1))), True
    if isinstance(prior, str):
        raise ParameterError(f'{name} must be "uniform", "estimate" or one value per class, got {prior!r}')
    given = per_class(name, prior, classes)
    return np.log(given / given.sum()), False


_BYTES = 8
# Below this nothing is refused: what a machine tells of its memory is not so exact.
_MIN_REFUSED = 1 << 28
# Methods that keep little for every worker, in the order in which they are proposed.
_SMALLER = ("class-conditional", "majority-vote")


class Sizes(NamedTuple):
    """What a crowd's memory depends on."""

    n_tasks: int
    n_workers: int
    n_classes: int
    n_annotations: int

    @classmethod
    def of(cls, crowd: Any) -> Sizes:
        """Those of a crowd."""
        return cls(*(int(getattr(crowd, name)) for name in cls._fields))


def needed_memory(estimator: Estimator, sizes: Sizes) -> int:
    """Bytes that a fit has in memory at the same time, beside the votes."""
    in_arrays = sizes.n_annotations if is_small(sizes.n_annotations) else 0
    size = {"t": sizes.n_tasks, "w": sizes.n_workers, "k": sizes.n_classes, "v": in_arrays}
    # What there is of every task may be stored in single precision.
    of_task = np.dtype(getattr(estimator, "dtype", "float64")).itemsize / _BYTES
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
        sizes: of the crowd, or of what is held in one place of it.
        available: bytes; by default what this process may take.
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
    found = (name for name in _SMALLER if needed_memory(METHODS[name].load()(), sizes) <= available)
    other = next((f", or choose a method that takes less ({name})" for name in found), "")
    raise NotEnoughMemoryError(
        f"{estimator.method_name} needs about {gigabytes(needed)} of memory for {sizes.n_tasks:,} tasks, "
        f"{sizes.n_workers:,} workers and {sizes.n_classes:,} classes, and {gigabytes(available)} are available "
        f"{where}: merge rare classes, or workers with few votes{other}"
    )
