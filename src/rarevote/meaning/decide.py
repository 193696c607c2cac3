"""From probabilities to decisions: what each task is called, and what to expect of that.

How to decide is a rule (:mod:`rarevote.meaning.rules`). A decision says what it expects: recall and precision of every
class, counted over the draws of :mod:`rarevote.meaning.calibrate`, with 95% intervals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import first_of_best
from rarevote.meaning.calibrate import COVERAGE, CalibratedPosterior
from rarevote.meaning.costs import Costs
from rarevote.meaning.recall_targets import CONFIDENCE, RecallTarget
from rarevote.meaning.rules import ABSTAINED as ABSTAINED
from rarevote.meaning.rules import Basis, rule_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Expectation:
    """A figure per class with its 95% interval; the ends are NaN where there are no draws to count.

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

    Tasks with gold always get their gold label.

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
        >>> from rarevote.calibrate import calibrated
        >>> p = calibrated(np.array([[0.9, 0.1], [0.4, 0.6]]), prevalence=[0.5, 0.5], classes=np.array(["no", "yes"]))
        >>> decide(p).labels.tolist(), decide(p, costs="no:yes=1,yes:no=20").labels.tolist()
        (['no', 'yes'], ['yes', 'yes'])
    """
    rule = rule_of(
        costs=costs,
        min_recall=min_recall,
        abstain_below=abstain_below,
        confidence=confidence,
        random_gold=random_gold,
    )
    rule.check(calibrated.classes)
    basis = Basis(first_of_best(calibrated.method), calibrated.method, calibrated=calibrated)
    chosen = rule.choose(basis)
    codes = np.where(calibrated.gold >= 0, calibrated.gold, chosen.codes).astype(np.int64)
    return with_expectations(calibrated, codes, rule.words, rule.costs(calibrated.classes), chosen.target)


def confidence_of(probabilities: FloatArray, codes: IntArray) -> FloatArray:
    """Probability of each task's decided class, of the likeliest where there is no answer, (n)."""
    own = probabilities[np.arange(len(codes)), codes]
    return np.asarray(np.where(codes == ABSTAINED, probabilities.max(axis=1, initial=0.0), own))


def expected_costs(calibrated: CalibratedPosterior, codes: IntArray, costs: FloatArray) -> FloatArray:
    """Expected cost of each task's decision, (n); without an answer, that of the best there is."""
    table = calibrated.posterior @ costs
    own = table[np.arange(len(codes)), codes]
    return np.asarray(np.where(codes == ABSTAINED, table.min(axis=1, initial=np.inf), own))


# --------------------------------------------------------------------------------------------------------------------
# what to expect


def with_expectations(
    calibrated: CalibratedPosterior,
    codes: IntArray,
    rule: str,
    costs: FloatArray,
    target: RecallTarget | None = None,
) -> Decision:
    """The decision ``codes`` with what the calibrated probabilities expect of it."""
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
        confidence_of(calibrated.posterior, codes),
        rule,
        Expectation(recall, *ends[0]),
        Expectation(precision, *ends[1]),
        f"{how}; class shares {calibrated.how}",
        costs,
        spent,
        target,
    )


def _intervals(calibrated: CalibratedPosterior, codes: IntArray) -> list[tuple[FloatArray, FloatArray]]:
    """Ends of the 95% intervals of recall and of precision, per class."""
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
