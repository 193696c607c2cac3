"""From probabilities to labels: rules, guards, expectations, and the decider that combines them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    # ``from rarevote.decide import decide`` worked in version 0.2; it is deprecated and warns.
    if name in ("Decision", "decide"):
        return getattr(import_module("rarevote.compat.version_0_2"), name)
    raise AttributeError(f"module 'rarevote.decide' has no attribute {name!r}")
