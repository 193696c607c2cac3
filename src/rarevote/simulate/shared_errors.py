"""The errors that simulated annotators share: items that many of them get wrong.

Errors in real crowds are correlated: an item that one annotator misreads is also misread by others. Task ``i`` has a
difficulty ``z_i`` that all annotators share, and every vote ``r`` on it has its own noise ``e_ir``, both standard
normal. A vote that is right with probability ``p_ir`` is right if::

    sqrt(S) z_i + sqrt(1 - S) e_ir < Phi^-1(p_ir)

So the strength ``S`` is the correlation of the latent values of two votes on one item, and accuracies do not depend on
it: ``P(right) = p_ir`` whatever ``S``, and ``P(both right) = Phi_2(Phi^-1(p_ir), Phi^-1(p_is); S)``. With more than two
classes, every task has one wrong class that attracts its errors: a wrong vote falls on it with probability ``S``, and
otherwise on any wrong class, all equally likely.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.simulate.blocks import TaskBlock

#: The strength in real crowds, fitted to 31 of them by ``benchmarks/shared_errors.py``.
REAL = 0.35


def thresholds(chance: FloatArray) -> FloatArray:
    """The threshold below which a vote is right, from its probability of being right: ``Phi^-1(chance)``."""
    values, place = np.unique(chance, return_inverse=True)
    normal = NormalDist()
    return np.array([normal.inv_cdf(value) for value in values.tolist()])[place].reshape(chance.shape)


def shared_answers(
    block: TaskBlock, threshold: FloatArray, n_classes: int, strength: float, stream: np.random.Generator
) -> tuple[NDArray[np.int32], FloatArray]:
    """Answer the tasks of a block with errors that annotators share.

    Args:
        block: the tasks and their workers.
        threshold: of every vote, from `thresholds`.
        n_classes: number of classes.
        strength: the correlation ``S``.
        stream: separate random numbers, so that the rest of a crowd is the same for any strength.

    Returns:
        The labels of the votes, and the shared difficulty of every task.
    """
    difficulty = stream.standard_normal(len(block.truth))
    attracts = stream.integers(n_classes - 1, size=len(block.truth), dtype=np.int32)
    luck = stream.standard_normal(len(block.row))
    wrong = np.flatnonzero(strength**0.5 * difficulty[block.row] + (1 - strength) ** 0.5 * luck >= threshold)
    other = stream.integers(n_classes - 1, size=len(wrong), dtype=np.int32)
    follows = stream.random(len(wrong)) < strength
    other[follows] = attracts[block.row[wrong[follows]]]
    return block.with_errors(wrong, other), difficulty
