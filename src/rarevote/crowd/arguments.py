"""Checks of users' arguments: existing names, whole numbers, and numbers within bounds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from functools import wraps
from math import inf
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from rarevote.errors import ParameterError

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def named_arguments(*sources: Any, leave_out: tuple[str, ...] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for public functions: an unknown argument raises an error that names the most similar one.

    Args:
        *sources: where the names of ``**options`` come from: the fields of a dataclass, or the keyword arguments of a
            function. The signature of the decorated function then lists them.
        leave_out: names from the sources that the function does not accept.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        own = signature.parameters
        listed = [one for one in own.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        if sources:
            further = {one.name: one for source in sources for one in _keywords(source)}
            listed += [one for name, one in further.items() if name not in own and name not in leave_out]
        elif len(listed) < len(own):
            return function  # only the function knows its options
        signature = signature.replace(parameters=listed)
        names = [one.name for one in listed if one.name != "self"]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in names:
                    raise ParameterError(_unknown(function.__name__, name, names))
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise ParameterError(f"{function.__name__}: {error}; it takes {', '.join(names)}") from None
            return function(*args, **kwargs)

        cast(Any, call).__signature__ = signature
        return call

    return decorate


def with_named_arguments(kind: C) -> C:
    """A decorator for classes: applies :func:`named_arguments` to each public method that is not decorated yet."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_") and not hasattr(method, "__signature__"):
            setattr(kind, name, named_arguments()(method))
    return kind


def _keywords(source: Any) -> list[inspect.Parameter]:
    """The keyword-only arguments of a dataclass or a function."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if is_dataclass(source):
        return [inspect.Parameter(one.name, kind, default=one.default, annotation=one.type) for one in fields(source)]
    return [one for one in inspect.signature(source).parameters.values() if one.kind is kind]


def _unknown(function: str, name: str, names: list[str]) -> str:
    """The message about an unknown argument.

    >>> _unknown("fit", "metod", ["data", "method"])
    "fit has no argument 'metod': did you mean 'method'?"
    """
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    advice = f"did you mean {nearest[0]!r}?" if nearest else f"it takes {', '.join(names)}"
    return f"{function} has no argument {name!r}: {advice}"


def check_count(name: str, value: Any, *, at_least: int = 1) -> None:
    """Refuse anything but a whole number of at least this value."""
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
