"""The recall target: how many items to flag to find a share of a class, and what to expect of these items.

The most probable items of the class are flagged, until the median recall over the draws of one
world reaches the target (:mod:`rarevote.decide.expectations`): the world in which annotators share errors as in real
crowds, or the one in which their errors are independent. The numbers for both are reported.

Gold that is a *random sample* of the items can guarantee it: with ``g`` gold items of the class, flagging all that
score at least as high as the ``(r + 1)``-th lowest of them misses the target with probability at most
``P(Binomial(g, 1 - target) <= r)``. If there are too few for a small probability, nothing is guaranteed, and the
alternative is an audit, which needs a minimum number of reviews (:mod:`rarevote.decide.floor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, comb, log
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.names import is_missing, some_names
from rarevote.crowd.numerics import FloatArray, IntArray, finite_or_none
from rarevote.crowd.rare import RareClass, split_question
from rarevote.crowd.words import Described, counted
from rarevote.decide.expectations import NOTHING, Curve, Expectations, Expected, World, drawn_rates, logit_of
from rarevote.decide.floor import floor_reviews
from rarevote.errors import ParameterError, how

#: The confidence of a guarantee.
CONFIDENCE = 0.8
#: The world whose draws decide how many items are flagged: nearer to the target on real crowds than the other, and than
#: both together (``benchmarks/recall_targets.py``).
ERRORS: World = "shared"


class Flags(NamedTuple):
    """Number of items that reach the target in each world.

    Attributes:
        shared: if annotators share errors as in real crowds.
        independent: if their errors are independent; None if nothing was drawn.
        errors: the world that is used.
    """

    shared: int
    independent: int | None
    errors: World = ERRORS

    @property
    def used(self) -> int:
        """The number in the world that is used."""
        found = self.shared if self.errors == "shared" else self.independent
        assert found is not None
        return found


@dataclass(frozen=True)
class RecallTarget(Described):
    """The outcome of a recall target.

    Attributes:
        name: the class.
        target: the requested recall.
        confidence: the requested confidence.
        threshold: items whose probability of the class is at least this are flagged.
        promised: whether a random sample of known items guarantees the target.
        n_flagged: number of items flagged.
        flags: number of items that each world needs, "independent" and "shared"; for the world used, those flagged.
            Empty if gold guarantees the target, and without "independent" if nothing was drawn.
        errors: the world that is used.
        recall: what to expect of the flagged items.
        n_flagged_without: number of items that the method's own decision flags, without a target.
        recall_without: what to expect of these.
        floor: reviews of unflagged items below which no audit can certify the target for this list.
        description: the guarantee, or what to expect, and what to do next.
    """

    name: Any
    target: float
    confidence: float
    threshold: float
    promised: bool
    n_flagged: int
    floor: int
    description: str
    flags: Mapping[World, int] = field(default_factory=dict)
    errors: World = ERRORS
    recall: Expected = NOTHING
    n_flagged_without: int = 0
    recall_without: Expected = NOTHING

    def figures(self) -> dict[str, Any]:
        """The outcome as plain values for JSON."""
        plain = {name: getattr(self, name) for name in ("target", "confidence", "promised", "n_flagged", "floor")}
        return {
            "name": str(self.name),
            **plain,
            # The threshold is infinite if no item needs a flag.
            "threshold": finite_or_none(self.threshold),
            "errors": self.errors,
            "flags": dict(self.flags),
            "expected_recall": finite_or_none(self.recall.value),
            "expected_recall_interval": self.recall.interval,
            "without_target": {
                "n_flagged": self.n_flagged_without,
                "expected_recall": finite_or_none(self.recall_without.value),
                "expected_recall_interval": self.recall_without.interval,
            },
            "words": self.description,
        }


def check_errors(errors: Any) -> World:
    """Refuse anything but the name of a world."""
    if not isinstance(errors, str) or errors not in get_args(World):
        raise ParameterError(f"{how('errors', '--errors')} must be independent or shared, got {errors!r}")
    return errors  # type: ignore[return-value]


def check_share(name: str, value: Any) -> None:
    """Refuse anything but a share above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value <= 1.0:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}")


def one_target(wanted: Any, classes: NDArray[Any], grades: Grades | None = None) -> tuple[RareClass, float]:
    """The class, or the tail of grades, and its recall target.

    Args:
        wanted: the target by class, or text such as ``defect=0.95`` or ``>=severe=0.9``.
        classes: names of the classes, (K).
        grades: the order of the classes, if there is one.

    Raises:
        ParameterError: not exactly one class, an unknown class, or a target out of range.
    """
    if isinstance(wanted, str):
        asked, recall = split_question(wanted, classes, grades)
        if recall is None:
            raise ParameterError(f"min_recall: {wanted!r} has no recall: give one, such as '{wanted}=0.9'")
        wanted = {asked: number_of(recall)}
    if not isinstance(wanted, Mapping):
        example = {classes.tolist()[0] if len(classes) else "defect": 0.9}
        raise ParameterError(f"min_recall takes a class and its recall, such as {example}, got {wanted!r}")
    if len(wanted) != 1:
        raise ParameterError(
            f"min_recall takes one class, because targets of several can exclude each other; got {wanted}"
        )
    ((name, target),) = wanted.items()
    if is_missing(name):
        raise ParameterError(f"min_recall: {name!r} is not a class; the classes are {some_names(classes.tolist())}")
    # The name of a class is valid even if it has no votes.
    chosen = RareClass.of(classes, np.ones(len(classes), dtype=np.int64), name, grades, what="min_recall")
    check_share(f"the recall target of {name}", target)
    return chosen, float(target)


def number_of(text: str) -> float:
    """The number in a text; NaN for other text."""
    try:
        return float(text)
    except ValueError:
        return np.nan


def gold_threshold(scores: FloatArray, target: float, confidence: float) -> float | None:
    """The highest threshold that a random sample of known items of the class allows; None if there are too few."""
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
    """How many of the most probable items that can be flagged are needed for the expected recall to reach the target.

    Args:
        of_all: items whose class is not known, by bin of the probability, (N_BINS).
        that_may: items that can be flagged, (N_BINS).
        target: the recall.
        curve: how far the probabilities are trusted.
        given: the share of the class, if it is known.

    Returns:
        A number of items; all that can be flagged if they do not reach it.
    """
    used = np.flatnonzero(of_all)
    size, within = of_all[used], that_may[used]
    rate = drawn_rates(logit_of(used), size, curve, np.random.default_rng(4), given)
    return fewest_flags(rate * within, rate @ size, within, target)


def flags_in_draws(drawn: IntArray, that_may: IntArray, target: float) -> int | None:
    """How many of the most probable items that can be flagged reach the target if errors are independent.

    Args:
        drawn: items of the class without gold, in every draw, all and those that can be flagged, by bin of
            the probability, (n_draws, 2, N_BINS).
        that_may: items that can be flagged, (N_BINS).
        target: the recall.

    Returns:
        A number of items; None if nothing was drawn.
    """
    if not len(drawn):
        return None
    of_all, found = drawn[:, 0], drawn[:, 1]
    return fewest_flags(found.astype(np.float64), of_all.sum(axis=1).astype(np.float64), that_may, target)


def fewest_flags(found: FloatArray, total: FloatArray, within: IntArray, target: float) -> int:
    """How many items, from the most probable bin down, raise the median of ``found / total`` to the target.

    Args:
        found: items of the class in each bin, in every draw, (n_draws, n_bins).
        total: all items of the class, in every draw, (n_draws).
        within: items of each bin that can be flagged, (n_bins).
    """
    seen = total > 0
    if not within.any() or not seen.any():
        return 0
    upwards = np.cumsum(found[seen, ::-1], axis=1)  # most probable bin first
    recall = np.concatenate([[0.0], np.median(upwards / total[seen, None], axis=0)])
    last = int(np.searchsorted(recall, target - 1e-9))
    if last > within.size:
        return int(within.sum())
    # In the bin where the target is reached, interpolate between its two ends.
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
    flags: Flags | None = None,
    n_known: int = 0,
    n_flagged_without: int = 0,
    recall_without: Expected = NOTHING,
    why_not: str = "",
) -> RecallTarget:
    """The outcome of a recall target.

    Args:
        expected: what to expect of the flagged items.
        n_gold: number of known items of the class in the random sample.
        share: share of the class, to say how much gold would be needed.
        flags: number of items without gold that each world needs.
        n_known: number of known items of the class, which are always flagged.
        n_flagged_without: number of items that the method's own decision flags.
        recall_without: what to expect of these.
        why_not: why independent errors were not drawn, as text.
    """
    hits = 0 if not n_flagged else round(n_flagged * expected.precision.value)
    floor = floor_reviews(hits, n_items - n_flagged, target=target, confidence=confidence)
    name, sure = expected.name, f"{100 * confidence:g}% confidence"
    both: dict[World, int] = {}
    errors: World = ERRORS
    if promised or flags is None:
        words = f"recall of {name} at least {target:g} with {sure}, gold included, by {n_gold} random known tasks"
    else:
        errors = flags.errors
        if flags.independent is not None:
            both["independent"] = flags.independent + n_known
        both["shared"] = flags.shared + n_known
        both[errors] = n_flagged  # the number labelled: of items with equal probabilities, all or none
        words = (
            f"the recall of {name} is not promised: expected is {expected.recall.description}. "
            f"{_flags_wanted(both, errors, why_not)}. Without a target {n_flagged_without:,} are flagged; expected "
            f"recall: {recall_without.description}. "
            f"{_what_would_promise(name, target, confidence, n_gold, max(share, 1.0 / max(n_items, 1)))}"
        )
    words += (
        f". Proving it for this list takes at least {counted(floor, 'review')} of the "
        f"{counted(n_items - n_flagged, 'task')} that are not on it, whatever the crowd: run an audit"
    )
    return RecallTarget(
        name, target, confidence, threshold, promised, n_flagged, floor, words,
        flags=both,
        errors=errors,
        recall=expected.recall,
        n_flagged_without=n_flagged_without,
        recall_without=recall_without,
    )  # fmt: skip


def _flags_wanted(flags: Mapping[World, int], errors: World, why_not: str) -> str:
    """A sentence on how many items each world needs, and which number is used."""
    if "independent" not in flags:
        return (
            f"Flag {counted(flags['shared'], 'item')} if annotators share errors as real crowds do (what independent "
            f"errors need is not known: {why_not})"
        )
    return (
        f"Flag {counted(flags['independent'], 'item')} if annotators err independently, {flags['shared']:,} if they "
        f"share errors as real crowds do; the {'first' if errors == 'independent' else 'second'} is used"
    )


def _what_would_promise(name: Any, target: float, confidence: float, n_gold: int, share: float) -> str:
    """A sentence on how much gold could guarantee the target."""
    if target >= 1.0:
        return "No sample can promise that nothing is missed: lower the target"
    # If no miss is allowed, target^g is the probability of being wrong.
    n_needed = ceil(log(1.0 - confidence) / log(target))
    have = f" ({n_gold} are known)" if n_gold else ""
    return (
        f"A random sample could promise it: {n_needed} known tasks of class {name}{have}, about "
        f"{ceil(n_needed / share):,} tasks drawn at random and labelled by an expert"
    )
