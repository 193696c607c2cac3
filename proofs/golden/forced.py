"""The one place that reaches inside: which passes compute a fit, and how many votes a shard has."""

from __future__ import annotations

from rarevote.em import local
from rarevote.kernels import plain


def force_passes(engine: str) -> None:
    """Use the passes of ``"numpy"`` or ``"numba"`` for data of any size, in shards small enough for two threads."""
    plain.MAX_PLAIN_CELLS = -1 if engine == "numba" else 10**9
    local._ANNOTATIONS_PER_SHARD = 300
