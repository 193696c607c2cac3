"""The verdict on labels, from the share that is expected to be right.

The expected accuracy ranks real crowds better than any finding does (``benchmarks/check.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Literal

from rarevote.crowd.words import percent
from rarevote.decide.expectations import Expected
from rarevote.diagnose.agreement import AnnotatorAgreement

Weight = Literal["note", "care", "stop"]

#: the verdicts by weight
VERDICTS: Mapping[Weight, str] = {"note": "can be used", "care": "use with care", "stop": "do not use"}

# From the first share of expected right labels, they can be used; below the second, they should not be.
_ACCURATE, _INACCURATE = 0.9, 0.65
# Krippendorff's alpha up to which agreement counts as chance.
_NO_AGREEMENT = 0.05


def chance_agreement(agreement: AnnotatorAgreement) -> str:
    """A sentence if annotators agree hardly more than by chance, so that they cannot answer; empty otherwise."""
    high = agreement.intervals["alpha"][1]
    # With one class, alpha is NaN: there is nothing to disagree about.
    is_chance = agreement.alpha < _NO_AGREEMENT and not high > _NO_AGREEMENT
    return "annotators agree hardly more than by chance" if is_chance else ""


def weight_of(accuracy: Expected, *, is_unproved_jury: bool = False) -> Weight:
    """The weight of a verdict, from the expected share of right labels.

    Args:
        accuracy: expected share of the labels that are right.
        is_unproved_jury: whether models cast most of the votes, and no gold shows how accurate they are: then never
            "note".

    >>> [weight_of(Expected(value, 0.0, 1.0)) for value in (0.9, 0.899, 0.65, 0.649, float("nan"))]
    ['note', 'care', 'care', 'stop', 'care']
    >>> weight_of(Expected(0.95, 0.9, 1.0), is_unproved_jury=True)
    'care'
    """
    if accuracy.value < _INACCURATE:
        return "stop"
    return "note" if accuracy.value >= _ACCURATE and not is_unproved_jury else "care"


def why_weight(accuracy: Expected, *, is_unproved_jury: bool = False) -> str:
    """The reason for the weight, as text for the verdict.

    >>> why_weight(Expected(0.93, 0.8, 0.97))
    '93% of the labels are expected to be right (80% to 97%)'
    """
    if not isfinite(accuracy.value):
        return "no item has a label"
    right = f"{percent(accuracy.value)} of the labels are expected to be right ({accuracy.percent_range})"
    return f"{right}, but no gold and no audit shows how accurate these models are" if is_unproved_jury else right
