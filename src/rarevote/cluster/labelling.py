"""Labels on dask: the decider of one machine, with sums from the hosts instead of arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.data import StagedCrowd
from rarevote.cluster.runner import DaskRunner
from rarevote.cluster.shard_labels import Reported, WriteResults, count_at_least, sum_probabilities, survey
from rarevote.crowd.grades import Grades
from rarevote.crowd.rare import RareClass
from rarevote.decide.decider import Deciding
from rarevote.decide.decision import class_figures, decision_figures, expected_decision, rare_figures
from rarevote.decide.expectations import Belief
from rarevote.decide.guards import CrowdSize
from rarevote.decide.probabilities import FitCalibration, Probabilities, Shares, shares_wanted
from rarevote.decide.rules import OwnLabels, Rule
from rarevote.em.model import FloatArray
from rarevote.methods.base import Estimator
from rarevote.methods.registry import DEFAULT_METHOD


class DecidedBy(NamedTuple):
    """How to decide."""

    rule: Rule
    own: Rule
    rare: Any
    prevalence: Shares
    only_voted: bool
    with_posterior: bool
    grades: Grades | None = None


def label_tasks(
    model: Estimator,
    runner: DaskRunner,
    crowd: StagedCrowd,
    class_votes: NDArray[np.int64],
    folder: Path,
    deciding_by: DecidedBy,
) -> tuple[Estimator, dict[str, Any]]:
    """Let the hosts decide and write; returns the model with its calibration, and the figures of the decision."""
    engine = runner.engine
    reported = Reported(
        runner.of_last_pass,
        model._calibrator(class_votes / max(crowd.n_annotations, 1)),
        np.empty(0),
        model.chooser,
        own_from_posterior=deciding_by.own == OwnLabels(),
    )
    calibration = model.calibration_
    if calibration is None:
        mass = engine.ask(partial(sum_probabilities, reported))
        calibration = FitCalibration(reported.calibrator, np.sum(mass, axis=0) / max(crowd.n_tasks, 1))
        model = model._about_workers(crowd.workers, crowd.classes, model._result, calibration)
    wanted, shares_from = shares_wanted(deciding_by.prevalence, crowd.classes, np.zeros(crowd.n_classes))
    reported = replace(reported, mean=calibration.mean, wanted=wanted)
    is_default = model.method_name == DEFAULT_METHOD
    belief = Belief.in_probabilities(Probabilities(crowd.classes, *_NOTHING, is_default=is_default))
    rare = RareClass.of(crowd.classes, class_votes, deciding_by.rare, deciding_by.grades)
    deciding = Deciding(
        deciding_by.rule,
        deciding_by.own,
        CrowdSize(crowd.workers, crowd.classes, class_votes, model.method_name, DEFAULT_METHOD),
        rare,
        calibration.mean if wanted is None else wanted,
        crowd.n_tasks,
        belief,
        wanted,
        deciding_by.only_voted,
    )
    sums = _added(engine.ask(partial(survey, reported, deciding)))

    def n_at_least(target: RareClass, thresholds: FloatArray) -> NDArray[np.int64]:
        counts = engine.ask(partial(count_at_least, reported, deciding, target, thresholds))
        return np.asarray(np.sum(counts, axis=0))

    decider = deciding.decider(sums, lambda target, k: kth_largest(partial(n_at_least, target), k))
    costs = deciding_by.rule.costs(crowd.classes)
    answers = engine.ask(
        WriteResults(
            crowd.folder,
            folder.resolve(),
            crowd.classes,
            reported,
            deciding,
            decider,
            costs,
            deciding_by.with_posterior,
            runner.kept_posteriors,
            deciding_by.grades,
        )
    )
    found, counts = map(_added, zip(*answers, strict=True))
    decided = deciding.outcome(decider, sums.survey, found)
    decision = expected_decision(
        crowd.classes,
        counts,
        belief,
        rare,
        rule=decided.description,
        shares_from=shares_from or Probabilities.how,
        costs=costs,
        given=wanted,
        target=decided.target,
        only_shared=Probabilities(crowd.classes, *_NOTHING).independent.why_not,
    )
    classes = class_figures(crowd.classes, found.labels, class_votes, crowd.n_tasks)
    return model, {
        "rare": rare_figures(rare, class_votes, counts.n_rare, found.n_rare_unvoted, crowd.n_tasks),
        "classes": classes,
        **({} if deciding_by.grades is None else {"ordered": list(deciding_by.grades.names)}),
        "decided_by": decided.description,
        "n_guarded": decided.n_guarded,
        "guard": deciding_by.rule.guard,
        "cannot_answer": decided.cannot_answer,
        "warnings": [note.description for note in decided.notes] + _left_out(crowd),
        "decision": decision_figures(decision),
    }


def _added(parts: Iterable[Any]) -> Any:
    return reduce(lambda one, other: one.plus(other), parts)


def _left_out(crowd: StagedCrowd) -> list[str]:
    """Notes on rows that are not votes."""
    if not crowd.n_dropped:
        return []
    return [
        f"{crowd.n_dropped:,} rows are not votes (abstentions, missing values or repeated pairs): on dask, an item "
        "with only such rows is not in the result"
    ]


# For a crowd on other machines: no probabilities, no means, no gold.
_NOTHING = (np.empty((0, 0)), np.empty(0), np.empty(0, dtype=np.int64))
# Number of thresholds per query.
_AT_ONCE = 256


def kth_largest(count_at_least: Callable[[FloatArray], NDArray[np.int64]], k: int) -> float:
    """The k-th largest of numbers between 0 and 1 that are on other machines.

    It is the largest threshold that at least ``k`` of them reach. Non-negative numbers have the order of their bits, so
    a few queries with many thresholds each find it to the last bit.

    Args:
        count_at_least: returns how many of the numbers reach each of these thresholds.
        k: from 1 to the number of values.

    Example:
        >>> numbers = np.array([0.1, 0.7, 0.7, 0.3])
        >>> def count(thresholds):
        ...     return (numbers >= thresholds[:, None]).sum(axis=1)
        >>> [kth_largest(count, k) for k in (1, 2, 3, 4)]
        [0.7, 0.7, 0.3, 0.1]
    """
    low, high = 0, int(np.array(1.0).view(np.int64)) + 1  # reached by k numbers; not reached
    while high - low > 1:
        step = -((low - high) // _AT_ONCE)  # in whole numbers: these are too large for floating point
        bits = np.arange(low + step, high, step, dtype=np.int64)
        reached = np.flatnonzero(count_at_least(bits.view(np.float64)) >= k)
        last = int(reached[-1]) if reached.size else -1
        low, high = (int(bits[last]) if last >= 0 else low), (int(bits[last + 1]) if last + 1 < len(bits) else high)
    return float(np.array(low).view(np.float64))
