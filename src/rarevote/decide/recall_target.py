"""The recall target: how many items to flag for a share of a class, and what is known of that list.

As many of the items that are most probably of the class are flagged as bring the median recall over the draws of one
world to the target (:mod:`rarevote.decide.expectations`): the world in which annotators share errors as in real crowds,
or that in which they err independently. What both need is said.

Gold that is a *random sample* of the items can promise: with ``g`` of them of the class, flagging all items that score
at least as high as the ``(r + 1)``-th lowest of them misses the target with probability at most
``P(Binomial(g, 1 - target) <= r)``. Where they are so few that this cannot be small, nothing is promised, and what
remains is an audit, which needs a minimum number of reviews (:mod:`rarevote.decide.floor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, comb, log
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import FloatArray, IntArray, finite_or_none
from rarevote.crowd.rare import RareClass, split_question
from rarevote.crowd.words import Described, counted
from rarevote.decide.expectations import NOTHING, Curve, Expectations, Expected, World, drawn_rates, logit_of
from rarevote.decide.floor import floor_reviews
from rarevote.errors import ParameterError, how

#: How sure a promise must be.
CONFIDENCE = 0.8
#: The world whose draws say how many items are flagged: nearer to the target on real crowds than the other, and than
#: both together (``benchmarks/recall_targets.py``).
ERRORS: World = "shared"


class Flags(NamedTuple):
    """How many items bring the recall to the target in each world.

    Attributes:
        shared: where annotators share errors as in real crowds.
        independent: where they err independently; None where nothing was drawn.
        errors: the world that is used.
    """

    shared: int
    independent: int | None
    errors: World = ERRORS

    @property
    def used(self) -> int:
        """Those of the world that is used."""
        found = self.shared if self.errors == "shared" else self.independent
        assert found is not None
        return found


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
        flags: items that each world needs, "independent" and "shared"; of the one that is used, those flagged. Empty
            where gold promises the target, and without "independent" where nothing was drawn.
        errors: the world that is used.
        recall: what to expect of the flagged items.
        n_flagged_without: items that are flagged without a target, by the method's own decision.
        recall_without: what to expect of those.
        floor: reviews of unflagged items below which no audit can certify the target for this list.
        description: the promise, or what is expected, and what to do next.
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
        """The same as plain values for JSON."""
        plain = {name: getattr(self, name) for name in ("target", "confidence", "promised", "n_flagged", "floor")}
        return {
            "name": str(self.name),
            **plain,
            # The threshold is infinite where nothing needs a flag.
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
    if errors not in get_args(World):
        raise ParameterError(f"{how('errors', '--errors')} must be independent or shared, got {errors!r}")
    return errors  # type: ignore[no-any-return]


def check_share(name: str, value: Any) -> None:
    """Refuse anything but a share above 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 < value <= 1.0:
        raise ParameterError(f"{name} must be above 0 and at most 1, got {value!r}")


def one_target(wanted: Any, classes: NDArray[Any], grades: Grades | None = None) -> tuple[RareClass, float]:
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
    # Whether a class has votes plays no part in what is meant by its name.
    chosen = RareClass.of(classes, np.ones(len(classes), dtype=np.int64), name, grades, what="min_recall")
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
    used = np.flatnonzero(of_all)
    size, within = of_all[used], that_may[used]
    rate = drawn_rates(logit_of(used), size, curve, np.random.default_rng(4), given)
    return fewest_flags(rate * within, rate @ size, within, target)


def flags_in_draws(drawn: IntArray, that_may: IntArray, target: float) -> int | None:
    """How many of the most probable items that may be flagged reach the target if annotators err independently.

    Args:
        drawn: items of the class whose class is not known, in every draw, all and those that may be flagged, by bin of
            the probability, (n_draws, 2, N_BINS).
        that_may: items that may be flagged, (N_BINS).
        target: the recall.

    Returns:
        A number of items; None where nothing was drawn.
    """
    if not len(drawn):
        return None
    of_all, found = drawn[:, 0], drawn[:, 1]
    return fewest_flags(found.astype(np.float64), of_all.sum(axis=1).astype(np.float64), that_may, target)


def fewest_flags(found: FloatArray, total: FloatArray, within: IntArray, target: float) -> int:
    """How many items, the most probable bins first, bring the median of ``found / total`` over the draws to the target.

    Args:
        found: items of the class that each bin has, in every draw, (n_draws, n_bins).
        total: all items of the class, in every draw, (n_draws).
        within: items of each bin that may be flagged, (n_bins).
    """
    seen = total > 0
    if not within.any() or not seen.any():
        return 0
    upwards = np.cumsum(found[seen, ::-1], axis=1)  # most probable bin first
    recall = np.concatenate([[0.0], np.median(upwards / total[seen, None], axis=0)])
    last = int(np.searchsorted(recall, target - 1e-9))
    if last > within.size:
        return int(within.sum())
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
    flags: Flags | None = None,
    n_known: int = 0,
    n_flagged_without: int = 0,
    recall_without: Expected = NOTHING,
    why_not: str = "",
) -> RecallTarget:
    """What came of a recall target.

    Args:
        expected: of the flagged items.
        n_gold: random known items of the class.
        share: of the class, for how much gold would be needed.
        flags: what each world needs of the items that are not known.
        n_known: known items of the class, which are flagged anyway.
        n_flagged_without: items that the method's own decision flags.
        recall_without: what to expect of those.
        why_not: why independent errors were not drawn, in words.
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
        both[errors] = n_flagged  # as many as are labelled: of equal probabilities all or none
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
    """How many items each world needs, and which number is used, in words."""
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
