"""How many tasks to flag for a recall of one class, what can be said about it, and what a proof costs at least.

Votes alone give an expectation (:mod:`rarevote.meaning.expect`), never a promise: as many of the highest-ranked tasks
are flagged as make the *expected* recall reach the target. Gold that is a *random sample* of the tasks can promise:
with ``g`` of them of the class, flagging all tasks that score at least as high as the ``(r + 1)``-th lowest of them
misses the target with probability at most ``P(Binomial(g, 1 - target) <= r)``. Where they are so few that this cannot
be small, nothing is promised, and what remains is an audit, whose cost has a floor that nobody gets below, whatever the
method (:func:`floor_reviews`).

With ``K`` positives found among the flagged items, ``U`` items not flagged and no positive among those of them that
were reviewed, a world in which ``m = floor(K (1 - rho) / rho) + 1`` random unflagged items are positive has a recall
below ``rho`` and would leave the same record with probability ``C(U - m, n) / C(U, n)``. An assumption-free sample of
fixed size ``n`` must make that at most ``alpha``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, comb, floor, inf, lgamma, log, log1p, perm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import find_name, listed
from rarevote.crowd.numerics import FloatArray
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.expect import curve_of_class, drawn_rates, expectations, given_share, grouped

Share = str | int | float | Fraction | Decimal

# Differences of logarithms below this are decided in whole numbers.
_CLOSE = 1e-6


def exact_share(value: Share, what: str) -> Fraction:
    """A share as the rational number that was written: 0.9 is 9/10 and not the binary number next to it.

    >>> exact_share(0.9, "target"), exact_share("19/20", "confidence")
    (Fraction(9, 10), Fraction(19, 20))
    """
    try:
        return Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise ParameterError(f"{what} must be a share between 0 and 1 such as 0.9 or 9/10, got {value!r}") from None


def positives_that_break(found: int, target: Fraction) -> int:
    """The fewest missed positives ``m`` with which the recall of ``found`` falls below ``target``.

    >>> positives_that_break(9, Fraction(9, 10)), positives_that_break(500, Fraction(9, 10))
    (2, 56)
    """
    return floor(found * (1 - target) / target) + 1


def floor_reviews(found: int, unflagged: int, *, target: Share = 0.9, confidence: Share = 0.95) -> int:
    """The fewest reviews of unflagged items that can certify a recall.

    Args:
        found: positives among the flagged items, ``K``.
        unflagged: items that are not flagged, ``U``.
        target: the recall ``rho``, above 0 and at most 1.
        confidence: ``1 - alpha``, between 0 and 1.

    Returns:
        The smallest ``n`` with ``C(U - m, n) / C(U, n) <= alpha``; 0 if even ``U`` misses would not break the target.

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
    low, high = 0, unflagged - m + 1  # with as many reviewed, fewer than m items are left
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_enough(middle, unflagged, m, alpha) else (middle, high)
    return high


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
    """How many positives there can be among the items left if no draw has shown one, with no assumption.

    With ``m`` of them left and every item drawn at step ``i`` with probability ``q_i`` at least, a draw shows none with
    probability ``1 - m q_i`` at most; ``1 / prod (1 - m q_i)`` is a fortune as in :mod:`rarevote.meaning.audit.wealth`,
    so the bound holds at any number of looks.

    Args:
        chances: the smallest probability of any item at each draw, ``q_i``.
        left: items that are left.
        confidence: ``1 - alpha``.

    Example:
        >>> most_positives([1 / (100 - i) for i in range(20)], 80, confidence=Fraction(19, 20))
        12
    """
    threshold = log(1 - confidence)
    low, high = 0, left + 1
    while high - low > 1:
        m = (low + high) // 2
        refuted = sum(log1p(-m * q) if m * q < 1 else -inf for q in chances) <= threshold
        low, high = (low, m) if refuted else (m, high)
    return low


BoolArray = NDArray[np.bool_]

#: How sure a promise must be.
CONFIDENCE = 0.8


@dataclass(frozen=True)
class RecallTarget:
    """What came of a recall target.

    Attributes:
        name: the class.
        target: the recall asked for.
        confidence: how sure it should be.
        threshold: tasks whose calibrated probability of the class is at least this are flagged.
        promised: whether the target is promised, by a random sample of known tasks.
        n_flagged: tasks flagged.
        floor: reviews of unflagged tasks below which no audit can certify the target for this list.
        words: the promise, or what is expected, and where to go from there.
    """

    name: Any
    target: float
    confidence: float
    threshold: float
    promised: bool
    n_flagged: int
    floor: int
    words: str


def check_share(name: str, value: Any) -> None:
    """Refuse anything but a share above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value <= 1.0:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}")


def one_target(wanted: Mapping[Any, float], classes: NDArray[Any]) -> tuple[int, float]:
    """Number of the class and its recall target.

    Raises:
        ParameterError: not exactly one class, one that does not exist, or a target out of range.
    """
    if len(wanted) != 1:
        raise ParameterError(
            f"min_recall takes one class, because targets of several can exclude each other; got {wanted}"
        )
    ((name, target),) = wanted.items()
    number = find_name(name, classes)
    if number is None:
        raise ParameterError(f"min_recall names {name!r}, which is no class ({listed(classes.tolist())})")
    check_share(f"the recall target of {name}", target)
    return number, float(target)


def gold_threshold(scores: FloatArray, target: float, confidence: float) -> float | None:
    """The highest threshold that known tasks of a class, a random sample, allow; None if they are too few."""
    n = len(scores)
    allowed, probability = -1, 0.0
    while allowed + 1 < n:
        misses = allowed + 1
        probability += comb(n, misses) * (1.0 - target) ** misses * target ** (n - misses)
        if probability > 1.0 - confidence:
            break
        allowed = misses
    return None if allowed < 0 else float(np.sort(scores)[allowed])


def expected_threshold(calibrated: CalibratedPosterior, number: int, target: float, allowed: BoolArray) -> float:
    """The highest threshold at which the expected recall of the unknown tasks reaches the target; the lowest if none.

    Args:
        calibrated: the probabilities.
        number: the class.
        target: the recall.
        allowed: which tasks may be flagged, (n).
    """
    unknown = calibrated.gold < 0
    score, may = calibrated.score[unknown, number], allowed[unknown]
    if not may.any():
        return np.inf
    logit, size, group = grouped(score)
    given = given_share(calibrated, number)
    rate = drawn_rates(logit, size, curve_of_class(calibrated), np.random.default_rng(4), given)
    within = np.bincount(group[may], minlength=size.size)
    found = np.cumsum((rate * within)[:, ::-1], axis=1)  # most probable group first
    recall = np.concatenate([[0.0], np.median(found / (rate @ size)[:, None], axis=0)])
    last = int(np.searchsorted(recall, target - 1e-9))
    if last > size.size:
        return float(score[may].min())
    # Of the group within which the target is reached, as many tasks as the way from one end to the other needs.
    needed = (target - recall[last - 1]) / max(recall[last] - recall[last - 1], 1e-12)
    inside = np.sort(score[may & (group == size.size - last)])[::-1]
    return float(inside[min(max(ceil(needed * inside.size - 1e-9), 1), inside.size) - 1])


def flag(
    calibrated: CalibratedPosterior,
    number: int,
    target: float,
    confidence: float,
    random_gold: bool,
    allowed: BoolArray | None = None,
) -> tuple[RecallTarget, BoolArray]:
    """Which tasks to flag for a recall of the class, and what came of the target.

    Args:
        calibrated: the probabilities.
        number: the class.
        target: its recall.
        confidence: how sure a promise must be.
        random_gold: whether the known tasks are a random sample of all tasks.
        allowed: which tasks may be flagged where nothing is promised, (n); all if not given.
    """
    score, unknown = calibrated.score[:, number], calibrated.gold < 0
    of_gold = score[calibrated.gold == number] if random_gold else np.empty(0)
    n_gold = of_gold.size
    bound = gold_threshold(of_gold, target, confidence) if target < 1.0 else None
    if bound is None:
        may = np.ones(len(score), dtype=bool) if allowed is None else allowed
        threshold = expected_threshold(calibrated, number, target, may)
    else:
        # A promise that some samples could not make would be made by the lucky ones alone: nothing may be left out.
        may, threshold = np.ones(len(score), dtype=bool), bound
    flagged = np.where(unknown, (score >= threshold) & may, calibrated.gold == number)
    expected = expectations(calibrated, np.where(flagged, number, -1), number)
    n_flagged = int(flagged.sum())
    hits = 0 if not n_flagged else round(n_flagged * expected.precision.value)
    floor = floor_reviews(hits, len(score) - n_flagged, target=target, confidence=confidence)
    name, sure = calibrated.classes[number], f"{100 * confidence:g}% confidence"
    if bound is not None:
        words = f"recall of {name} at least {target:g} with {sure}, gold included, by {n_gold} random known tasks"
    else:
        words = (
            f"no promise on the recall of {name}: expected is {expected.recall.words}. "
            f"{_what_would_promise(calibrated, number, target, confidence, n_gold)}"
        )
    words += (
        f". Nobody can certify it for this list, whatever the crowd, with fewer than {counted(floor, 'review')} of the "
        f"{counted(len(score) - n_flagged, 'task')} that are not on it: see rarevote audit"
    )
    return RecallTarget(name, target, confidence, threshold, bound is not None, n_flagged, floor, words), flagged


def _what_would_promise(
    calibrated: CalibratedPosterior, number: int, target: float, confidence: float, n_gold: int
) -> str:
    """How much gold could promise the target, in words."""
    if target >= 1.0:
        return "No sample can promise that nothing is missed: lower the target"
    # Without a single miss allowed, target^g is the chance of being wrong.
    n_needed = ceil(log(1.0 - confidence) / log(target))
    share = max(float(calibrated.prevalence[number]), 1.0 / max(calibrated.n_tasks, 1))
    have = f" ({n_gold} are known)" if n_gold else ""
    return (
        f"A random sample could promise it: {n_needed} known tasks of class {calibrated.classes[number]}{have}, about "
        f"{ceil(n_needed / share):,} tasks drawn at random and labelled by an expert"
    )
