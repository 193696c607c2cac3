"""From log joint probabilities to posteriors, for a block of tasks at a time."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.kernels.compile import inlined
from rarevote.kernels.fast_math import exp_fast, log_fast

Floats = NDArray[np.float64]

# A product of likelihoods below this is split before it underflows.
SMALLEST_PRODUCT = 1e-150
# Replaces a share of zero before its logarithm is taken; the logarithm is then multiplied by zero.
_SMALLEST_SHARE = 1e-300


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
        total: (size), work space.
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


@inlined
def posterior_of_lanes(
    product: Floats,
    taken_out: Floats,
    is_folded: bool,
    smallest: float,
    log_prior: Floats,
    prior: Floats,
    known: NDArray[np.int64],
    refresh: bool,
    size: int,
    n_classes: int,
    q_in: Floats,
    q: Floats,
    total: Floats,
    loglik: Floats,
) -> None:
    """The posterior of a block of tasks in lanes, from likelihoods as products; a gold task is certain of its class.

    Args:
        product: (K, LANES), likelihood of a task's votes given each class.
        taken_out: (K, LANES), logarithm of the factors removed from the product to prevent underflow; overwritten.
        is_folded: whether any factors were removed.
        smallest: products below this are unreliable.
        log_prior: (K).
        prior: (K), its exponential, in the precision of the products.
        known: (LANES), the known class or -1; or of size 0.
        refresh: whether to compute the posterior; otherwise ``q_in`` is held fixed, and the bound at it is added.
        size: tasks in the block.
        n_classes: K.
        q_in: (K, LANES), the previous posterior.
        q: (K, LANES), filled with the posterior.
        total: (LANES), work space.
        loglik: (LANES), added to: the log probability of the votes (with the known class, for a gold task).
    """
    n_lost = 0
    if refresh and not is_folded:
        total[:] = 0.0
        for k in range(n_classes):
            for i in range(size):
                q[k, i] = prior[k] * product[k, i]
                total[i] += q[k, i]
        for i in range(size):
            n_lost += 1 if total[i] < smallest else 0
    if refresh and not is_folded and n_lost == 0:
        # Only one logarithm, of the evidence, and no exponential.
        for i in range(size):
            loglik[i] += log_fast(total[i])
            total[i] = 1.0 / total[i]
        for k in range(n_classes):
            for i in range(size):
                q[k, i] *= total[i]
        if known.shape[0] > 0:
            for i in range(size):
                if known[i] >= 0:
                    loglik[i] += log(total[i]) + log_prior[known[i]] + log(product[known[i], i])
    else:
        for k in range(n_classes):
            for i in range(size):
                taken_out[k, i] = log_fast(product[k, i]) + taken_out[k, i] + log_prior[k]
        if refresh:
            for i in range(size):
                top = taken_out[0, i]
                for k in range(1, n_classes):
                    top = max(top, taken_out[k, i])
                mass = 0.0
                for k in range(n_classes):
                    q[k, i] = exp_fast(taken_out[k, i] - top)
                    mass += q[k, i]
                for k in range(n_classes):
                    q[k, i] /= mass
                is_known = known.shape[0] > 0 and known[i] >= 0
                loglik[i] += taken_out[known[i], i] if is_known else top + log(mass)
        else:
            for k in range(n_classes):
                for i in range(size):
                    share = q_in[k, i]
                    q[k, i] = share
                    loglik[i] += share * (taken_out[k, i] - log_fast(max(share, _SMALLEST_SHARE)))
    if refresh and known.shape[0] > 0:
        for i in range(size):
            if known[i] >= 0:
                for k in range(n_classes):
                    q[k, i] = 1.0 if k == known[i] else 0.0
