"""Everything rarevote raises or warns of on purpose.

::

    RarevoteError(Exception)
    ├── InputError(ValueError)          the data given cannot be used: what, where, what to do
    │   ├── ColumnsError(KeyError)      the table lacks a column that is needed
    │   ├── MissingValuesError          empty or missing ids or labels
    │   └── WeightsError                a weights file that cannot be trusted or does not fit
    ├── ParameterError(ValueError)      a parameter of a method is out of range
    ├── NotFittedError(ValueError, AttributeError)
    └── MissingExtraError(ImportError)  an optional library is needed and absent
    RarevoteWarning(UserWarning)
    └── ConvergenceWarning

Errors about data and parameters are also ``ValueError``, the type that scikit-learn and crowd-kit users catch.
"""

from __future__ import annotations

import sys
import warnings


class RarevoteError(Exception):
    """Base of every error raised on purpose."""


class InputError(RarevoteError, ValueError):
    """The data given cannot be used."""


class ColumnsError(InputError, KeyError):
    """A table lacks a column that is needed; also a ``KeyError``, as pandas and crowd-kit raise."""

    __str__ = Exception.__str__  # that of KeyError shows a message in quotes


class MissingValuesError(InputError):
    """Ids or labels are empty or missing."""


class WeightsError(InputError):
    """A weights file is absent, damaged, of another shape, or names something that is no tensor."""


class ParameterError(RarevoteError, ValueError):
    """A parameter is out of range or contradicts another."""


class NotFittedError(RarevoteError, ValueError, AttributeError):
    """A result was asked for before ``fit``."""


class MissingExtraError(RarevoteError, ImportError):
    """An optional library is needed and not installed."""


class RarevoteWarning(UserWarning):
    """Base of every warning given on purpose."""


class ConvergenceWarning(RarevoteWarning):
    """The iteration limit was reached before the stopping rule was met."""


def warn_user(message: str, category: type[RarevoteWarning] = RarevoteWarning) -> None:
    """Warn at the line of the user's own code that led here, however many of our calls lie between."""
    level, frame = 2, sys._getframe(1)
    # Methods add their own fit() to the way, and fit_predict() one more: a fixed number would point into the package.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rarevote":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
