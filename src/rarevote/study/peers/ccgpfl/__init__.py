"""CCGPFL: a crowd model in which classes and annotators are Gaussian processes of the items' features.

Implemented from its definition, for the study of features; it is not offered as a method, see docs/methods.md. It needs
JAX, the extra ``study-gp``; nothing here imports it before :func:`need_jax`.
"""

from __future__ import annotations

from rarevote.errors import need_library


def need_jax() -> None:
    """Check that JAX is installed.

    Raises:
        MissingExtraError: JAX is not installed.
    """
    need_library("jax", "CCGPFL needs JAX: pip install 'rarevote[study-gp]'")
