"""Arguments as users give them: whole numbers and numbers within bounds."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from rarevote.errors import ParameterError


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
