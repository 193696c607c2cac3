"""Hyper-parameters as users write them: checked, and resolved to one value per class where they are of classes."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.errors import ParameterError

FloatArray = NDArray[np.float64]


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


def check_count(name: str, value: Any, *, at_least: int = 1) -> None:
    """Refuse anything but a whole number of at least so much."""
    if isinstance(value, bool) or not (isinstance(value, (int, np.integer)) and value >= at_least):
        raise ParameterError(f"{name} must be a whole number of at least {at_least}, got {value!r}")


def check_number(name: str, value: Any, *, above: float = -inf, at_least: float = -inf, at_most: float = inf) -> None:
    """Refuse anything but a finite number within the bounds."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if is_number and above < value < inf and at_least <= value <= at_most:
        return
    bounds = {"above": (above, -inf), "at least": (at_least, -inf), "at most": (at_most, inf)}
    words = [f"{word} {bound:g}" for word, (bound, none) in bounds.items() if bound != none]
    raise ParameterError(f"{name} must be a finite number {' and '.join(words)}, got {value!r}")
