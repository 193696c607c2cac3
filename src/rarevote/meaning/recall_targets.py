"""How many tasks to flag for a recall of one class, and what can be said about it.

A recall target asks for the fewest tasks to flag. Every draw says how many of the highest-ranked tasks would have been
needed in its world; flagging the 80% quantile of these numbers meets the target in 80% of the worlds. How far the
numbers differ tells whether the votes can answer at all: where the 90% quantile is more than 1.7 times the 10%
quantile, nothing is promised without more gold. Gold that is a *random sample* of the tasks can promise on
their own: with ``g`` of them of the class, flagging all tasks that score at least as high as the ``(r + 1)``-th lowest
of them misses the target with probability at most ``P(Binomial(g, 1 - target) <= r)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, comb, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.names import find_name, listed
from rarevote.errors import ParameterError
from rarevote.meaning.calibrate import CalibratedPosterior

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Share of the draws in which a recall target must be met.
CONFIDENCE = 0.8
#: How far the draws may differ on the number of tasks to flag (90% over 10% quantile) for a promise to be made.
WIDEST_SPREAD = 1.7
#: A random gold sample that the threshold serves worse than this would be by chance contradicts the votes.
CONTRADICTION = 0.05


@dataclass(frozen=True)
class RecallTarget:
    """What came of a recall target.

    Attributes:
        name: the class.
        target: the recall asked for.
        confidence: how sure it should be.
        threshold: tasks whose calibrated probability of the class is at least this are flagged.
        promised: whether the target is promised.
        source: "votes", "gold", or "none" where nothing can be promised.
        n_flagged: tasks flagged.
        fewest: how many the most favourable tenth of the draws would have flagged at most.
        most: how many the least favourable tenth would have flagged at least.
        words: the promise, or why there is none and what would help.
    """

    name: Any
    target: float
    confidence: float
    threshold: float
    promised: bool
    source: str
    n_flagged: int
    fewest: int
    most: int
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


def needed_flags(calibrated: CalibratedPosterior, number: int, target: float) -> IntArray:
    """How many of the highest-ranked tasks each draw needs for the target, sorted; known tasks are left out."""
    unknown = np.flatnonzero(calibrated.gold[calibrated.drawn_tasks] < 0)
    score = calibrated.score[calibrated.drawn_tasks[unknown], number]
    ranked = unknown[np.argsort(-score, kind="stable")]
    needed = []
    for draw in calibrated.draws:
        place = np.flatnonzero(draw[ranked] == number)  # ranks of the class's tasks in this draw
        n_wanted = ceil(target * place.size - 1e-9)
        needed.append(int(place[n_wanted - 1]) + 1 if n_wanted else 0)
    return np.sort(np.array(needed, dtype=np.int64))


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


def flag(
    calibrated: CalibratedPosterior, number: int, target: float, confidence: float, random_gold: bool
) -> tuple[RecallTarget, NDArray[np.bool_]]:
    """Which tasks to flag for a recall of the class, and what came of the target."""
    score = calibrated.score[:, number]
    unknown = calibrated.gold < 0
    of_gold = score[calibrated.gold == number] if random_gold else np.empty(0)
    bound = gold_threshold(of_gold, target, confidence) if random_gold else None
    fewest = most = 0
    name, percent = calibrated.classes[number], f"{100 * confidence:g}%"
    if len(calibrated.draws):
        needed = needed_flags(calibrated, number, target)
        fewest, middle, most = (int(needed[ceil(share * needed.size) - 1]) for share in (0.1, confidence, 0.9))
        ranked = np.sort(score[calibrated.drawn_tasks][unknown[calibrated.drawn_tasks]])[::-1]
        # The draws may be about a sample of the tasks.
        scale = unknown.sum() / max(ranked.size, 1)
        threshold = float(ranked[middle - 1]) if middle else np.inf
        told = not calibrated.caution and fewest > 0 and most <= WIDEST_SPREAD * fewest
        fewest, most = round(fewest * scale), round(most * scale)
        contradicted = _contradicts(of_gold, threshold, target)
    else:
        # No draws: take the probabilities at their word, and promise nothing.
        order = np.argsort(-score[unknown], kind="stable")
        reached = np.cumsum(score[unknown][order])
        threshold = np.inf
        if reached.size:
            threshold = float(score[unknown][order][np.searchsorted(reached, target * reached[-1] - 1e-12)])
        told = contradicted = False
    if told and not contradicted:
        source = "votes"
        words = (
            f"recall of {name} at least {target:g} in {percent} of the draws from the votes, if annotators err "
            "independently of one another. Votes alone cannot show whether they do: check it with a random sample of "
            "known tasks"
        )
    elif bound is not None:
        source, threshold = "gold", bound
        words = f"recall of {name} at least {target:g} with {percent} confidence, by {of_gold.size} random known tasks"
    else:
        source = "none"
        words = _why_not(calibrated, number, target, confidence, contradicted, fewest, most, of_gold.size)
    flagged = np.where(unknown, score >= threshold, calibrated.gold == number)
    found = RecallTarget(
        name, target, confidence, threshold, source != "none", source, int(flagged.sum()), fewest, most, words
    )
    return found, flagged


def _contradicts(of_gold: FloatArray, threshold: float, target: float) -> bool:
    """Whether so many random known tasks of the class below the threshold would hardly be chance."""
    n, missed = of_gold.size, int((of_gold < threshold).sum())
    if not missed:
        return False
    fewer = sum(comb(n, k) * (1.0 - target) ** k * target ** (n - k) for k in range(missed))
    return 1.0 - fewer < CONTRADICTION


def _why_not(
    calibrated: CalibratedPosterior,
    number: int,
    target: float,
    confidence: float,
    contradicted: bool,
    fewest: int,
    most: int,
    n_gold: int,
) -> str:
    name = calibrated.classes[number]
    if contradicted:
        reason = "the random known tasks contradict what the votes suggest"
    elif calibrated.caution or not most:
        reason = calibrated.caution or "there may be none"
    else:
        reason = f"the votes cannot tell whether {fewest:,} or {most:,} tasks must be flagged"
    text = f"no promise on the recall of {name}: {reason}"
    if target >= 1.0:
        return f"{text}. No sample can promise that nothing is missed: lower the target."
    # Without a single miss allowed, target^g is the chance of being wrong.
    n_needed = ceil(log(1.0 - confidence) / log(target))
    share = max(float(calibrated.prevalence[number]), 1.0 / max(calibrated.n_tasks, 1))
    have = f" ({n_gold} are known)" if n_gold else ""
    return (
        f"{text}. Gold is needed: {n_needed} known tasks of class {name}{have}, about {ceil(n_needed / share):,} tasks "
        "drawn at random and labelled by an expert, would do."
    )
