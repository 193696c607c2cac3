"""The minimum of an audit: the smallest number of expert reviews that can certify a recall, whatever the method."""

from __future__ import annotations

from bisect import bisect_left
from decimal import Decimal
from fractions import Fraction
from math import floor, inf, lgamma, log, log1p, perm

from rarevote.errors import ParameterError

Share = str | int | float | Fraction | Decimal

#: With fewer items than this, all are reviewed: there is nothing to save.
SMALL_POPULATION = 50
# If logarithms differ by less than this, exact integer arithmetic decides.
_CLOSE = 1e-6


def exact_share(value: Share, what: str) -> Fraction:
    """A share as an exact fraction: 0.9 is 9/10 and not the nearest binary number.

    >>> exact_share(0.9, "target"), exact_share("19/20", "confidence")
    (Fraction(9, 10), Fraction(19, 20))
    """
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"{what} must be a share between 0 and 1 such as 0.9 or 9/10, got {value!r}") from None


def positives_that_break(found: int, target: Fraction) -> int:
    """The smallest number of missed positives with which the recall falls below ``target``, given ``found`` positives.

    >>> positives_that_break(9, Fraction(9, 10)), positives_that_break(500, Fraction(9, 10))
    (2, 56)
    """
    return floor(found * (1 - target) / target) + 1


def floor_reviews(found: int, unflagged: int, *, target: Share = 0.9, confidence: Share = 0.95) -> int:
    """The smallest number of reviews of unflagged items that can certify a recall, whatever the method.

    With ``K`` positives found among the flagged items, ``U`` items not flagged, and no positive among those that
    were reviewed, a case in which ``m = floor(K (1 - rho) / rho) + 1`` random unflagged items are positive has a
    recall below ``rho`` and would give the same observations with probability ``C(U - m, n) / C(U, n)``. Without
    further assumptions, a sample of fixed size ``n`` must make that at most ``alpha``.

    Args:
        found: positives among the flagged items, ``K``.
        unflagged: items that are not flagged, ``U``.
        target: the recall ``rho``, above 0 and at most 1.
        confidence: ``1 - alpha``, between 0 and 1.

    Returns:
        The smallest ``n`` with ``C(U - m, n) / C(U, n) <= alpha``; 0 if even ``U`` misses would still meet the target.

    Example:
        >>> floor_reviews(500, 500), floor_reviews(375, 2300), floor_reviews(10, 950)
        (25, 157, 738)
    """
    rho, alpha = exact_share(target, "target"), 1 - exact_share(confidence, "confidence")
    if not 0 < rho <= 1 or not 0 < alpha < 1:
        raise ParameterError(f"target and confidence must be shares between 0 and 1, got {target} and {confidence}")
    m = positives_that_break(found, rho)
    if m > unflagged:
        return 0
    # With unflagged - m + 1 reviewed, fewer than m items are left.
    return bisect_left(range(unflagged - m + 1), True, lo=1, key=lambda n: _is_enough(n, unflagged, m, alpha))


def _is_enough(n: int, unflagged: int, m: int, alpha: Fraction) -> bool:
    """Whether ``C(U - m, n) / C(U, n) = perm(U - n, m) / perm(U, m) <= alpha``."""
    left = unflagged - n
    log_chance = _log_perm(left, m) - _log_perm(unflagged, m) if left >= m else -inf
    margin = log_chance - log(alpha)
    if abs(margin) > _CLOSE:
        return margin < 0
    return perm(left, m) * alpha.denominator <= perm(unflagged, m) * alpha.numerator


def _log_perm(n: int, m: int) -> float:
    return lgamma(n + 1) - lgamma(n - m + 1)


def most_positives(chances: list[float], left: int, *, confidence: Fraction) -> int:
    """The largest number of positives among the remaining items if no draw has found one, without assumptions.

    With ``m`` positives left and every item drawn at step ``i`` with probability at least ``q_i``, a draw finds none
    with probability at most ``1 - m q_i``; ``1 / prod (1 - m q_i)`` is a wealth process as in
    :mod:`rarevote.audit.wealth`, so the bound holds at every step.

    Args:
        chances: the smallest probability of any item at each draw, ``q_i``.
        left: number of remaining items.
        confidence: ``1 - alpha``.

    Example:
        >>> most_positives([1 / (100 - i) for i in range(20)], 80, confidence=Fraction(19, 20))
        12
    """

    def is_refuted(m: int) -> bool:
        return sum(log1p(-m * q) if m * q < 1 else -inf for q in chances) <= log(1 - confidence)

    return bisect_left(range(left + 1), True, lo=1, key=is_refuted) - 1
