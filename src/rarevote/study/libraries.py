"""Libraries of the extra ``study``, each loaded on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rarevote.errors import MissingExtraError


def library(name: str) -> Any:
    """Import the module with this name.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        distribution = name.partition(".")[0]
        raise MissingExtraError(f"this needs {distribution}: pip install 'rarevote[study]'") from None


def need_libraries() -> None:
    """Check before the study starts that its libraries are installed.

    Raises:
        MissingExtraError: a library that experiments use is not installed.
    """
    for name in ("joblib", "pandas", "scipy.stats"):
        library(name)
