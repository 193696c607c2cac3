"""Parameters of a method: those of its constructor, by name, and the checks of their values.

Values are given as users write them; those that concern classes are resolved to one value per class.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.errors import ParameterError
from rarevote.methods.capabilities import Capabilities
from rarevote.methods.registry import DeclaredCapabilities, require_capability

# Parameters that only methods with this capability have.
_OF_CAPABILITIES = {"dtype": "float32", "ordered": "ordered"}


class HasParameters:
    """The constructor's parameters by name, as scikit-learn requires."""

    #: name on the command line
    method_name: ClassVar[str] = ""
    #: what the method can do, from its entry in the registry; can be read from the class or an instance
    capabilities: ClassVar[Capabilities] = DeclaredCapabilities()  # type: ignore[assignment]

    @classmethod
    def parameter_defaults(cls) -> dict[str, Any]:
        """Names of the constructor's parameters and their defaults."""
        if cls.__init__ is object.__init__:
            return {}
        signature = inspect.signature(cls.__init__)
        return {name: entry.default for name, entry in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name (scikit-learn)."""
        return {name: getattr(self, name) for name in self.parameter_defaults()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name (scikit-learn)."""
        known = self.parameter_defaults()
        for name, value in params.items():
            if name in _OF_CAPABILITIES:
                require_capability(self, _OF_CAPABILITIES[name], name)
            if name not in known:
                raise ParameterError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {
            name: value
            for name, value in self.get_params().items()
            if not _same(value, self.parameter_defaults()[name])
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def check_choice(name: str, value: Any, *choices: str | None) -> None:
    """Refuse anything but one of the choices."""
    if value not in choices:
        *others, last = ("None" if choice is None else f'"{choice}"' for choice in choices)
        raise ParameterError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")


def state_dtype(value: Any) -> np.dtype[Any]:
    """The type in which a fit stores the state of its tasks, from the parameter ``dtype``."""
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
        name: the name of the parameter in messages.
    """
    if prior is None or (isinstance(prior, str) and prior == "uniform"):
        return np.full(len(classes), -np.log(max(len(classes), 1))), False
    if isinstance(prior, str) and prior == "estimate":
        return np.full(len(classes), -np.log(max(len(classes), 1))), True
    if isinstance(prior, str):
        raise ParameterError(f'{name} must be "uniform", "estimate" or one value per class, got {prior!r}')
    given = per_class(name, prior, classes)
    return np.log(given / given.sum()), False
