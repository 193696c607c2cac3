"""The prevalence effect: the rarer a class, the fewer false votes for it.

Annotators of real crowds vote for the rarest class on a quarter of the other items if it is every second item, and
on 3% of them if it is one item in 31. Over 31 real crowds, the odds of such a vote fall with the odds of the class::

    logit P(vote for the rarest class | another class) = a + E logit(share of the rarest class)

A simulated crowd has this effect ``E`` if the odds of an error on an item of the most frequent class are multiplied by
``imbalance ** -E``, so the given accuracies are those for classes of equal size.
"""

from __future__ import annotations

import numpy as np

from rarevote.crowd.numerics import FloatArray

#: The effect in real crowds, fitted to 31 of them by ``benchmarks/shared_errors.py`` (standard error 0.24).
REAL = 0.69


def with_prevalence_effect(chance: FloatArray, imbalance: float, effect: float) -> FloatArray:
    """The probability of a right vote on the most frequent class: the odds of an error times ``imbalance ** -effect``.

    >>> with_prevalence_effect(np.array([0.5, 0.8]), imbalance=16.0, effect=0.5)
    array([0.8       , 0.94117647])
    """
    return np.asarray(chance / (chance + (1.0 - chance) * imbalance**-effect))
