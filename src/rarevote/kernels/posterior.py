"""From log joint probabilities to posteriors, for a block of tasks at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import inlined
from rarevote.kernels.fast_math import exp_fast, log_fast

Floats = NDArray[np.float64]


@inlined
def posterior_of_block(
    joint: Floats,
    gold: NDArray[Any],
    begin: int,
    size: int,
    n_classes: int,
    q: Floats,
    log_evidence: Floats,
    total: Floats,
) -> None:
    """Normalise ``exp(joint)`` over classes; a gold task is certain of its class.

    Args:
        joint: (size * K), log probability of the votes of a task together with each class.
        gold: the known class of every task of the shard or -1; or of size 0.
        begin: number of the block's first task in the shard.
        size: tasks in the block.
        n_classes: K.
        q: (size * K), filled with the posterior.
        log_evidence: (size), filled with the log probability of the votes (with the known class, for a gold task).
        total: (size), room to work in.
    """
    for i in range(size):
        highest = joint[i * n_classes]
        for k in range(1, n_classes):
            highest = max(highest, joint[i * n_classes + k])
        log_evidence[i] = highest
        for k in range(n_classes):
            q[i * n_classes + k] = joint[i * n_classes + k] - highest
    for cell in range(size * n_classes):
        q[cell] = exp_fast(q[cell])
    for i in range(size):
        mass = 0.0
        for k in range(n_classes):
            mass += q[i * n_classes + k]
        total[i] = mass
        scale = 1.0 / mass
        for k in range(n_classes):
            q[i * n_classes + k] *= scale
    for i in range(size):
        log_evidence[i] += log_fast(total[i])
    if gold.shape[0] > 0:
        for i in range(size):
            known = gold[begin + i]
            if known >= 0:
                log_evidence[i] = joint[i * n_classes + known]
                for k in range(n_classes):
                    q[i * n_classes + k] = 1.0 if k == known else 0.0
