"""All errors that rarevote raises and all warnings that it gives.

::

    RarevoteError(Exception)
    ├── InputError(ValueError)          the data given cannot be used: what, where, what to do
    │   ├── ColumnsError(KeyError)      the table lacks a column that is needed
    │   ├── MissingValuesError          empty or missing ids or labels
    │   └── WeightsError                a weights file that cannot be trusted or does not fit
    ├── ParameterError(ValueError)      a parameter of a method is out of range
    ├── NotFittedError(ValueError, AttributeError)
    ├── NotEnoughMemoryError(MemoryError)   the work would not fit into memory; raised before it starts
    └── MissingExtraError(ImportError)  an optional library is needed but not installed
    RarevoteWarning(UserWarning)
    └── ConvergenceWarning

Errors about data and parameters are also ``ValueError``, the type that scikit-learn and crowd-kit users catch. Messages
say what to do in the reader's terms (:func:`how`): an argument in Python, a flag on the command line.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

_SPEAKS_FLAGS: ContextVar[bool] = ContextVar("messages name flags", default=False)
_ABOUT: ContextVar[str] = ContextVar("what warnings are about", default="")


# Names in the data can have any length; a message of several pages hides its point.
_MAX_MESSAGE = 1_900
_KEPT_AT_THE_END = 600  # where messages say what to do


class RarevoteError(Exception):
    """Base class of all errors that rarevote raises.

    >>> len(str(InputError("no column " + "a" * 100_000 + ": say which one")))
    1900
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_without_middle(text) if isinstance(text, str) else text for text in args))


def _without_middle(message: str) -> str:
    if len(message) <= _MAX_MESSAGE:
        return message
    return f"{message[: _MAX_MESSAGE - _KEPT_AT_THE_END - 3]} … {message[-_KEPT_AT_THE_END:]}"


class InputError(RarevoteError, ValueError):
    """The data given cannot be used."""


class ColumnsError(InputError, KeyError):
    """A table lacks a column that is needed; also a ``KeyError``, as pandas and crowd-kit raise."""

    __str__ = Exception.__str__  # the one of KeyError puts the message in quotes


class MissingValuesError(InputError):
    """Ids or labels are empty or missing."""


class WeightsError(InputError):
    """A weights file is absent, damaged, of the wrong shape, or contains something that is not a tensor."""


class ParameterError(RarevoteError, ValueError):
    """A parameter is out of range or contradicts another."""


class NotFittedError(RarevoteError, ValueError, AttributeError):
    """A result was requested before ``fit``."""


class NotEnoughMemoryError(RarevoteError, MemoryError):
    """The requested work needs more memory than is available."""


class MissingExtraError(RarevoteError, ImportError):
    """An optional library is needed but not installed."""


class RarevoteWarning(UserWarning):
    """Base class of all warnings that rarevote gives."""


class ConvergenceWarning(RarevoteWarning):
    """The iteration limit was reached before the stopping rule was met."""


def how(argument: str, flag: str) -> str:
    """What to type: an argument in Python, a flag on the command line.

    >>> how('missing="drop"', "--missing drop")
    'missing="drop"'
    >>> with speaking_flags():
    ...     how('missing="drop"', "--missing drop")
    '--missing drop'
    """
    return flag if _SPEAKS_FLAGS.get() else argument


def shown(value: object, limit: int = 60) -> str:
    """A value from the data as text for messages: on one line, and shortened if it is long.

    >>> shown("defect"), shown(7)
    ("'defect'", '7')
    >>> shown("a" * 1000, limit=12)
    "'aaaaaaaaaa…'"
    """
    if isinstance(value, str):
        return repr(value if len(value) <= limit else value[: limit - 2] + "…")
    # Python itself can refuse to print a number of many digits, or deeply nested lists.
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"{type(value).__name__} too long to write"
    return text if len(text) <= limit else text[: limit - 1] + "…"


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put the name of a file, or a place in it, before the message of an :class:`InputError`."""
    try:
        yield
    except InputError as error:
        kind = MissingValuesError if isinstance(error, MissingValuesError) else InputError
        raise kind(f"{place}: {error}") from None


@contextmanager
def about(part: str) -> Iterator[None]:
    """Put the name of a part of the data before the message of an :class:`InputError` or a warning.

    >>> with warnings.catch_warnings(record=True) as caught, about("health"):
    ...     warnings.simplefilter("always")
    ...     warn_user("few votes")
    >>> str(caught[0].message)
    'health: few votes'
    """
    token = _ABOUT.set(f"{part}: ")
    try:
        with naming(part):
            yield
    finally:
        _ABOUT.reset(token)


def need_library(name: str, message: str) -> Any:
    """Import an optional library.

    Raises:
        MissingExtraError: it is not installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(message) from None


@contextmanager
def speaking_flags() -> Iterator[None]:
    """A context in which messages name flags instead of arguments, for the command line."""
    token = _SPEAKS_FLAGS.set(True)
    try:
        yield
    finally:
        _SPEAKS_FLAGS.reset(token)


def warn_user(message: str, category: type[RarevoteWarning] = RarevoteWarning) -> None:
    """Warn at the line of the user's own code that led here, however many calls of this package lie between."""
    level, frame = 2, sys._getframe(1)
    # A method's fit() adds a call, and fit_predict() one more: a fixed stack level would point into the package.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rarevote":
        level, frame = level + 1, frame.f_back
    warnings.warn(_ABOUT.get() + message, category, stacklevel=level)
