"""Where the EM methods start: the soft majority vote with gold imposed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import normalise_rows
from rarevote.em.model import Shard


def soft_majority(shard: Shard, n_classes: int) -> NDArray[np.float64]:
    """Vote shares per task, (n, K); a gold task is certain of its class."""
    shares = normalise_rows(shard.votes(n_classes))
    if shard.gold.size:
        known = np.flatnonzero(shard.gold >= 0)
        shares[known] = 0.0
        shares[known, shard.gold[known]] = 1.0
    return shares
