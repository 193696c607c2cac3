"""The recall target: how many items to flag for a share of a class, and what is known of that list.

As many of the items that are most probably of the class are flagged as make the *expected* recall reach the target
(:mod:`rarevote.decide.expectations`). Gold that is a *random sample* of the items can promise: with ``g`` of them of
the class, flagging all items that score at least as high as the ``(r + 1)``-th lowest of them misses the target with
probability at most ``P(Binomial(g, 1 - target) <= r)``. Where they are so few that this cannot be small, nothing is
promised, and what remains is an audit, whose cost has a floor (:mod:`rarevote.decide.floor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.rare import RareClass, split_question
from rarevote.crowd.words import Described, counted
from rarevote.decide.expectations import Curve, Expectations, drawn_rates, logit_of
from rarevote.decide.floor import floor_reviews
from rarevote.errors import ParameterError

#: How sure a promise must be.
CONFIDENCE = 0.8


@dataclass(frozen=True)
class RecallTarget(Described):
    """What came of a recall target.

    Attributes:
        name: the class.
        target: the recall asked for.
        confidence: how sure it should be.
        threshold: items whose probability of the class is at least this are flagged.
        promised: whether the target is promised, by a random sample of known items.
        n_flagged: items flagged.
        floor: reviews of unflagged items below which no audit can certify the target for this list.
        description: the promise, or what is expected, and where to go from there.
    """

    name: Any
    target: float
    confidence: float
    threshold: float
    promised: bool
    n_flagged: int
    floor: int
    description: str


def check_share(name: str, value: Any) -> None:
    """Refuse anything but a share above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value <= 1.0:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}")


def one_target(
    wanted: Mapping[Any, float] | str, classes: NDArray[Any], grades: Grades | None = None
) -> tuple[RareClass, float]:
    """The class, or the tail of grades, and its recall target.

    Args:
        wanted: the target by class, or text such as ``defect=0.95`` or ``>=severe=0.9``.
        classes: names of the classes, (K).
        grades: the order of the classes, where there is one.

    Raises:
        ParameterError: not exactly one class, one that does not exist, or a target out of range.
    """
    if isinstance(wanted, str):
        asked, recall = split_question(wanted, classes, grades)
        if recall is None:
            raise ParameterError(f"min_recall: {wanted!r} says no recall: give one, such as '{wanted}=0.9'")
        wanted = {asked: number_of(recall)}
    if len(wanted) != 1:
        raise ParameterError(
            f"min_recall takes one class, because targets of several can exclude each other; got {wanted}"
        )
    ((name, target),) = wanted.items()
    try:
        # Whether a class has votes plays no part in what is meant by its name.
        chosen = RareClass.of(classes, np.ones(len(classes), dtype=np.int64), name, grades)
    except ParameterError as error:
        raise ParameterError(f"min_recall: {str(error).removeprefix('rare: ')}") from None
    check_share(f"the recall target of {name}", target)
    return chosen, float(target)


def number_of(text: str) -> float:
    """A number; NaN for other text."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def gold_threshold(scores: FloatArray, target: float, confidence: float) -> float | None:
    """The highest threshold that known items of a class, a random sample, allow; None if they are too few."""
    n = len(scores)
    allowed, probability = -1, 0.0
    while allowed + 1 < n:
        misses = allowed + 1
        probability += comb(n, misses) * (1.0 - target) ** misses * target ** (n - misses)
        if probability > 1.0 - confidence:
            break
        allowed = misses
    return None if allowed < 0 else float(np.sort(scores)[allowed])


def flags_needed(of_all: IntArray, that_may: IntArray, target: float, curve: Curve, given: float | None = None) -> int:
    """How many of the most probable items that may be flagged make the expected recall reach the target.

    Args:
        of_all: items whose class is not known, by bin of the probability, (N_BINS).
        that_may: those that may be flagged, (N_BINS).
        target: the recall.
        curve: how far the probabilities are believed.
        given: the share of the class, where that is known.

    Returns:
        A number of items; all that may be flagged if they do not reach it.
    """
    if not that_may.any():
        return 0
    used = np.flatnonzero(of_all)
    size, within = of_all[used], that_may[used]
    rate = drawn_rates(logit_of(used), size, curve, np.random.default_rng(4), given)
    found = np.cumsum((rate * within)[:, ::-1], axis=1)  # most probable bin first
    recall = np.concatenate([[0.0], np.median(found / (rate @ size)[:, None], axis=0)])
    last = int(np.searchsorted(recall, target - 1e-9))
    if last > size.size:
        return int(that_may.sum())
    # Of the bin within which the target is reached, as many items as the way from one end to the other needs.
    needed = (target - recall[last - 1]) / max(recall[last] - recall[last - 1], 1e-12)
    above, inside = int(within[::-1][: last - 1].sum()), int(within[::-1][last - 1])
    return above + min(max(ceil(float(needed) * inside - 1e-9), 1), inside)


def target_reached(
    expected: Expectations,
    *,
    target: float,
    confidence: float,
    threshold: float,
    promised: bool,
    n_flagged: int,
    n_items: int,
    n_gold: int,
    share: float,
) -> RecallTarget:
    """What came of a recall target.

    Args:
        expected: of the flagged items.
        n_gold: random known items of the class.
        share: of the class, for how much gold would be needed.
    """
    hits = 0 if not n_flagged else round(n_flagged * expected.precision.value)
    floor = floor_reviews(hits, n_items - n_flagged, target=target, confidence=confidence)
    name, sure = expected.name, f"{100 * confidence:g}% confidence"
    if promised:
        words = f"recall of {name} at least {target:g} with {sure}, gold included, by {n_gold} random known tasks"
    else:
        words = (
            f"no promise on the recall of {name}: expected is {expected.recall.description}. "
            f"{_what_would_promise(name, target, confidence, n_gold, max(share, 1.0 / max(n_items, 1)))}"
        )
    words += (
        f". Nobody can certify it for this list, whatever the crowd, with fewer than {counted(floor, 'review')} of the "
        f"{counted(n_items - n_flagged, 'task')} that are not on it: see rarevote audit"
    )
    return RecallTarget(name, target, confidence, threshold, promised, n_flagged, floor, words)


def _what_would_promise(name: Any, target: float, confidence: float, n_gold: int, share: float) -> str:
    """How much gold could promise the target, in words."""
    if target >= 1.0:
        return "No sample can promise that nothing is missed: lower the target"
    # Without a single miss allowed, target^g is the chance of being wrong.
    n_needed = ceil(log(1.0 - confidence) / log(target))
    have = f" ({n_gold} are known)" if n_gold else ""
    return (
        f"A random sample could promise it: {n_needed} known tasks of class {name}{have}, about "
        f"{ceil(n_needed / share):,} tasks drawn at random and labelled by an expert"
    )
