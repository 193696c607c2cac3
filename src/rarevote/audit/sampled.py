"""Draws of a crowd: how its votes may have come about if people err independently of one another.

The votes are explained by a relative of CC-Rasch in which nothing is maximised and everything uncertain stays uncertain
(:mod:`rarevote.audit.sampler`). The draws rank items for an audit, which stays valid whatever the ranking. They
are never another probability: that is :mod:`rarevote.decide.probabilities`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations

if TYPE_CHECKING:
    from rarevote.audit.sampler import Drawn

_N_DRAWS = 400
_MAX_CELLS = 20_000_000  # workers x classes x classes; the sampler keeps a few tables of this size


def can_be_sampled(annotations: Annotations) -> bool:
    """Whether the sampler's tables fit into memory, and there is anything to draw."""
    K = annotations.n_classes
    return bool(annotations.n_tasks and K >= 2 and annotations.n_workers * K * K <= _MAX_CELLS)


def sample_crowd(
    annotations: Annotations, gold: NDArray[Any], *, n_sweeps: int | None = None, random_state: int = 0
) -> Drawn:
    """Draw how the votes may have come about.

    Args:
        annotations: the votes, of at least two classes.
        gold: known class of each task or -1, (n).
        n_sweeps: sweeps of the sampler; by default until the shares of the classes are known well enough.
        random_state: seed of the sampler.
    """
    from rarevote.audit.sampler import VoteSampler

    return VoteSampler(annotations, gold.astype(np.int32), random_state).run(_N_DRAWS, n_sweeps)
