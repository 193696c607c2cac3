"""The errors that simulated annotators share: items that many of them get wrong together.

Annotators of real crowds err together: an item that one of them misreads is misread by others too. Task ``i`` has a
difficulty ``z_i`` that all annotators share, and every vote ``r`` on it some luck ``e_ir`` of its own, both standard
normal. A vote that is right with probability ``p_ir`` is right if::

    sqrt(S) z_i + sqrt(1 - S) e_ir < Phi^-1(p_ir)

So the strength ``S`` is the correlation of what decides two votes on one item, and no annotator's accuracy depends on
it: ``P(right) = p_ir`` whatever ``S``, and ``P(both right) = Phi_2(Phi^-1(p_ir), Phi^-1(p_is); S)``. Of more than two
classes, every task has one wrong class that attracts its errors: a wrong vote falls on it with probability ``S``, and
on any wrong class alike otherwise.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.simulate.blocks import TaskBlock

#: The strength of real crowds, fitted to 31 of them by ``benchmarks/shared_errors.py``.
REAL = 0.35


def thresholds(chance: FloatArray) -> FloatArray:
    """What the difficulty and luck of a vote must stay below for it to be right, by its chance: ``Phi^-1(chance)``."""
    values, place = np.unique(chance, return_inverse=True)
    normal = NormalDist()
    return np.array([normal.inv_cdf(value) for value in values.tolist()])[place].reshape(chance.shape)


def shared_answers(
    block: TaskBlock, threshold: FloatArray, n_classes: int, strength: float, stream: np.random.Generator
) -> tuple[NDArray[np.int32], FloatArray]:
    """Answer the tasks of a block with errors that annotators share.

    Args:
        block: the tasks and who works on them.
        threshold: of every vote, from `thresholds`.
        n_classes: number of classes.
        strength: the correlation ``S``.
        stream: random numbers for nothing else, so that all else of a crowd is the same for any strength.

    Returns:
        The labels of the votes, and the difficulty that all share of every task.
    """
    difficulty = stream.standard_normal(len(block.truth))
    attracts = stream.integers(n_classes - 1, size=len(block.truth), dtype=np.int32)
    luck = stream.standard_normal(len(block.row))
    wrong = np.flatnonzero(strength**0.5 * difficulty[block.row] + (1 - strength) ** 0.5 * luck >= threshold)
    other = stream.integers(n_classes - 1, size=len(wrong), dtype=np.int32)
    follows = stream.random(len(wrong)) < strength
    other[follows] = attracts[block.row[wrong[follows]]]
    return block.with_errors(wrong, other), difficulty
