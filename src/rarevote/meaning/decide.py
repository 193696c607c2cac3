"""From probabilities to decisions: the method's own label, least expected cost, a recall target, or no answer.

A decision says what it expects: recall and precision of every class, counted over the draws of
:mod:`rarevote.meaning.calibrate`, with 95 % intervals.

A recall target asks for the fewest tasks to flag. Every draw says how many of the highest-ranked tasks would have been
needed in its world; flagging the 80 % quantile of these numbers meets the target in 80 % of the worlds. How far the
numbers differ tells whether the votes can answer at all: where the 90 % quantile is more than 1.7 times the 10 %
quantile, nothing is promised without more gold. Known labels that are a *random sample* of the tasks can promise on
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
from rarevote.crowd.numerics import first_of_best
from rarevote.errors import ParameterError
from rarevote.meaning.calibrate import COVERAGE, CalibratedPosterior
from rarevote.meaning.costs import Costs, cost_matrix

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Share of the draws in which a recall target must be met.
CONFIDENCE = 0.8
#: How far the draws may differ on the number of tasks to flag (90 % over 10 % quantile) for a promise to be made.
WIDEST_SPREAD = 1.7
#: A random gold sample that the threshold serves worse than this would be by chance contradicts the votes.
CONTRADICTION = 0.05

ABSTAINED = -1


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


@dataclass(frozen=True, eq=False)
class Expectation:
    """A figure per class with its 95 % interval; the ends are NaN where there are no draws to count.

    Attributes:
        mean: expected value, (K).
        low: lower end, (K).
        high: upper end, (K).
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Decision:
    """One answer per task, and what to expect of them.

    Attributes:
        classes: names of the classes, (K).
        codes: class number of each task, or -1 for no answer, (n).
        confidence: calibrated probability of the decided class, of the likeliest where there is no answer, (n).
        rule: how it was decided, in words.
        recall: expected recall of every class.
        precision: expected precision of every class; NaN where the class was never decided.
        how: how recall and precision were estimated, in words.
        costs: cost of deciding (column) for a true class (row), (K, K).
        expected_cost: expected sum of the costs over all tasks with an answer.
        target: what came of a recall target, if there was one.
    """

    classes: NDArray[Any]
    codes: IntArray
    confidence: FloatArray
    rule: str
    recall: Expectation
    precision: Expectation
    how: str
    costs: FloatArray
    expected_cost: float
    target: RecallTarget | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """Name of the decided class per task; None where there is no answer."""
        names = np.empty(len(self.classes) + 1, dtype=object)
        names[:-1] = self.classes
        names[-1] = None  # what -1 picks
        return np.asarray(names[self.codes])

    @property
    def n_abstained(self) -> int:
        """Number of tasks without an answer."""
        return int((self.codes == ABSTAINED).sum())


def decide(
    calibrated: CalibratedPosterior,
    *,
    costs: Costs | None = None,
    min_recall: Mapping[Any, float] | None = None,
    abstain_below: float | None = None,
    confidence: float = CONFIDENCE,
    random_gold: bool = False,
) -> Decision:
    """Decide on every task. Without further arguments: the label of the method, as in the paper.

    Known tasks always get their known label.

    Args:
        calibrated: the probabilities.
        costs: what it costs to decide one class where another is true; least expected cost decides. See
            :func:`rarevote.meaning.costs.cost_matrix` for the forms it may have.
        min_recall: one class and the recall that it should reach, such as ``{"defect": 0.95}``.
        abstain_below: give no answer where the method's label has a calibrated probability below this.
        confidence: with ``min_recall``, how sure the target should be.
        random_gold: whether the known tasks are a random sample of all tasks. Only then can they vouch for a recall;
            reviewed tasks are not, because they were chosen for being doubtful.

    Raises:
        ParameterError: arguments out of range or at odds with each other.

    Example:
        >>> from rarevote.meaning.calibrate import calibrated
        >>> p = calibrated(np.array([[0.9, 0.1], [0.4, 0.6]]), prevalence=[0.5, 0.5], classes=np.array(["no", "yes"]))
        >>> decide(p).labels.tolist(), decide(p, costs="no:yes=1,yes:no=20").labels.tolist()
        (['no', 'yes'], ['yes', 'yes'])
    """
    rules = {"costs": costs, "min_recall": min_recall, "abstain_below": abstain_below}
    chosen = [name for name, value in rules.items() if value is not None]
    if len(chosen) > 1:
        raise ParameterError(f"{' and '.join(chosen)} contradict each other: each is a way to decide, choose one")
    K = len(calibrated.classes)
    matrix = 1.0 - np.eye(K) if costs is None else cost_matrix(costs, calibrated.classes)
    target = None
    if min_recall is not None:
        number, wanted = one_target(min_recall, calibrated.classes)
        if not 0.0 < confidence < 1.0:
            raise ParameterError(f"confidence must lie between 0 and 1, got {confidence!r}")
        target, flagged = _flag(calibrated, number, wanted, confidence, random_gold)
        others = calibrated.posterior.copy()
        others[:, number] = -1.0
        codes = np.where(flagged, number, first_of_best(others))
        rule = f"recall of {calibrated.classes[number]} at least {wanted:g}"
    elif costs is not None:
        codes = np.asarray((calibrated.posterior @ matrix).argmin(axis=1))
        rule = "least expected cost"
    else:
        codes = first_of_best(calibrated.method)
        rule = "the method's label"
    known = calibrated.gold >= 0
    codes = np.where(known, calibrated.gold, codes).astype(np.int64)
    rows = np.arange(len(codes))
    own = calibrated.posterior[rows, codes]
    if abstain_below is not None:
        _check_share("abstain_below", abstain_below)
        codes[own < abstain_below] = ABSTAINED
        own = np.where(codes == ABSTAINED, calibrated.posterior.max(axis=1, initial=0.0), own)
        rule += f", none below a probability of {abstain_below:g}"
    return _with_expectations(calibrated, codes, own, rule, matrix, target)


def expected_costs(calibrated: CalibratedPosterior, codes: IntArray, costs: FloatArray) -> FloatArray:
    """Expected cost of each task's decision, (n); without an answer, that of the best there is."""
    table = calibrated.posterior @ costs
    own = table[np.arange(len(codes)), codes]
    return np.asarray(np.where(codes == ABSTAINED, table.min(axis=1, initial=np.inf), own))


def _check_share(name: str, value: Any) -> None:
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
    _check_share(f"the recall target of {name}", target)
    return number, float(target)


# --------------------------------------------------------------------------------------------------------------------
# a recall target


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


def _flag(
    calibrated: CalibratedPosterior, number: int, target: float, confidence: float, random_gold: bool
) -> tuple[RecallTarget, NDArray[np.bool_]]:
    score = calibrated.score[:, number]
    unknown = calibrated.gold < 0
    of_gold = score[calibrated.gold == number] if random_gold else np.empty(0)
    bound = gold_threshold(of_gold, target, confidence) if random_gold else None
    fewest = most = 0
    name, percent = calibrated.classes[number], f"{100 * confidence:g} %"
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


# --------------------------------------------------------------------------------------------------------------------
# what to expect


def _with_expectations(
    calibrated: CalibratedPosterior,
    codes: IntArray,
    confidence: FloatArray,
    rule: str,
    costs: FloatArray,
    target: RecallTarget | None,
) -> Decision:
    K = len(calibrated.classes)
    decided = codes[:, None] == np.arange(K)
    mass = calibrated.posterior.sum(axis=0)
    hit = (calibrated.posterior * decided).sum(axis=0)
    recall, precision = _ratio(hit, mass), _ratio(hit, decided.sum(axis=0))
    none = np.full(K, np.nan)
    ends = [(none, none), (none, none)]
    how = "from the calibrated probabilities"
    if len(calibrated.draws):
        ends = _intervals(calibrated, codes)
        how = f"from {len(calibrated.draws)} draws of how the votes may have come about"
    answered = codes != ABSTAINED
    spent = float(expected_costs(calibrated, codes, costs)[answered].sum()) if codes.size else 0.0
    return Decision(
        calibrated.classes,
        codes,
        confidence,
        rule,
        Expectation(recall, *ends[0]),
        Expectation(precision, *ends[1]),
        f"{how}; class shares {calibrated.how}",
        costs,
        spent,
        target,
    )


def _intervals(calibrated: CalibratedPosterior, codes: IntArray) -> list[tuple[FloatArray, FloatArray]]:
    """Ends of the 95 % intervals of recall and of precision, per class."""
    K = len(calibrated.classes)
    mine = codes[calibrated.drawn_tasks]
    place = (mine + 1) * K
    # Rows: no answer, then the decided classes; columns: the class in the draw.
    tables = [np.bincount(place + draw, minlength=(K + 1) * K).reshape(K + 1, K) for draw in calibrated.draws]
    table = np.stack(tables).astype(np.float64)
    hit = table[:, np.arange(K) + 1, np.arange(K)]
    tail = (1.0 - COVERAGE) / 2
    ends = []
    for total in (table.sum(axis=1), table[:, 1:].sum(axis=2)):
        ratio = _ratio(hit, total)
        low, high = np.full(K, np.nan), np.full(K, np.nan)
        for k in range(K):
            seen = ratio[~np.isnan(ratio[:, k]), k]  # a draw without the class says nothing about it
            if seen.size:
                low[k], high[k] = np.quantile(seen, [tail, 1.0 - tail])
        ends.append((low, high))
    return ends


def _ratio(part: FloatArray, whole: Any) -> FloatArray:
    whole = np.asarray(whole, dtype=np.float64)
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0))
