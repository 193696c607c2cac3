"""How many tasks to flag for a recall of one class, and what can be said about it.

Votes alone give an expectation (:mod:`rarevote.meaning.expect`), never a promise: as many of the highest-ranked tasks
are flagged as make the *expected* recall reach the target. Gold that is a *random sample* of the tasks can
promise: with ``g`` of them of the class, flagging all tasks that score at least as high as the ``(r + 1)``-th lowest of
them misses the target with probability at most ``P(Binomial(g, 1 - target) <= r)``. Where they are so few that this
cannot be small, nothing is promised, and what remains is an audit, whose cost has a floor that nobody gets below
(:mod:`rarevote.meaning.floor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import find_name, listed
from rarevote.crowd.words import counted
from rarevote.errors import ParameterError
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.expect import curve_of_class, drawn_rates, expectations, given_share, grouped
from rarevote.meaning.floor import floor_reviews

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
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
