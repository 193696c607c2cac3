"""CCGPFL: a crowd whose classes and annotators are Gaussian processes of the items' features.

Rebuilt from its definition, for the study of features; it is not offered for aggregating, see docs/methods.md. It needs
JAX, the extra ``study-gp``; nothing here loads it before :func:`need_jax`.
"""

from __future__ import annotations

from rarevote.errors import need_library


def need_jax() -> None:
    """Refuse before the work where JAX is absent.

    Raises:
        MissingExtraError: JAX is not installed.
    """
    need_library("jax", "CCGPFL needs JAX: pip install 'rarevote[study-gp]'")
