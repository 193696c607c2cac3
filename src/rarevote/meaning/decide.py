"""From probabilities to decisions: what each task is called, and what to expect of that.

How to decide is a rule (:mod:`rarevote.meaning.rules`). A decision says what it expects: recall, precision and
prevalence of every class and the accuracy of the labels, with 90% intervals (:mod:`rarevote.meaning.expect`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import first_of_best
from rarevote.meaning.calibrate import CalibratedPosterior
from rarevote.meaning.costs import Costs
from rarevote.meaning.expect import Expectations, Expected, expectations, expected_accuracy
from rarevote.meaning.recall_targets import CONFIDENCE, RecallTarget
from rarevote.meaning.rules import ABSTAINED as ABSTAINED
from rarevote.meaning.rules import Basis, rule_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Decision:
    """One answer per task, and what to expect of them.

    Attributes:
        classes: names of the classes, (K).
        codes: class number of each task, or -1 for no answer, (n).
        confidence: calibrated probability of the decided class, of the likeliest where there is no answer, (n).
        rule: how it was decided, in words.
        expected: what to expect of every class: recall, precision, prevalence.
        accuracy: expected share of the labels that are right.
        how: how that was estimated, in words.
        costs: cost of deciding (column) for a true class (row), (K, K).
        expected_cost: expected sum of the costs over all tasks with an answer.
        target: what came of a recall target, if there was one.
    """

    classes: NDArray[Any]
    codes: IntArray
    confidence: FloatArray
    rule: str
    expected: tuple[Expectations, ...]
    accuracy: Expected
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
        confidence: with ``min_recall``, how sure a promise must be.
        random_gold: whether the known tasks are a random sample of all tasks. Only then can they promise a recall;
            reviewed tasks are not, because they were chosen for being doubtful. And only if ``calibrated.score`` is of
            a fit that did not learn from them: :meth:`rarevote.Fitted.decide` sees to that, here the caller has to.

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
    """The decision ``codes`` with what to expect of it."""
    answered = codes != ABSTAINED
    spent = float(expected_costs(calibrated, codes, costs)[answered].sum()) if codes.size else 0.0
    return Decision(
        calibrated.classes,
        codes,
        confidence_of(calibrated.posterior, codes),
        rule,
        tuple(expectations(calibrated, codes, k) for k in range(len(calibrated.classes))),
        expected_accuracy(calibrated, codes),
        f"as in real crowds whose annotators share some of their errors; class shares {calibrated.how}",
        costs,
        spent,
        target,
    )
