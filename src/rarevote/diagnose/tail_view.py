"""The tail of a scale as a two-class problem: its part of a diagnosis.

Votes, probabilities, labels and truth are merged into "in the tail" and "not in the tail"; everything else is described
as for two classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rarevote.crowd.names import name_key, object_array
from rarevote.crowd.numerics import FloatArray, first_of_best
from rarevote.crowd.rare import RareClass
from rarevote.decide.decision import Decision
from rarevote.decide.expectations import believed, majority_recall
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.rules import ABSTAINED
from rarevote.diagnose.classes import describe_classes
from rarevote.diagnose.items import describe_overruled, relative_entropy
from rarevote.diagnose.trade_off import expected_trade_off, trade_off
from rarevote.diagnose.truth import check_truth
from rarevote.diagnose.workers import describe_workers

if TYPE_CHECKING:
    from rarevote.diagnose.diagnosis import Diagnosis

_TAIL, _REST = 0, 1


def tail_view(
    found: Diagnosis,
    probabilities: Probabilities,
    decision: Decision,
    rare: RareClass,
    posterior: FloatArray,
    truth: Mapping[Any, Any] | None = None,
) -> Diagnosis:
    """The diagnosis of a tail.

    Args:
        found: the diagnosis of all classes.
        probabilities: probabilities of all items, those with votes first.
        decision: the labels, and the items that are flagged for the tail.
        rare: the tail.
        posterior: the method's own posterior, (n_tasks, n_classes).
        truth: true labels.
    """
    names = object_array([rare.name, f"not {rare.name}"])
    crowd = replace(found.crowd, classes=names, label=(~rare.holds(found.crowd.label)).astype(np.uint8))
    n = crowd.n_tasks
    codes = np.where(decision.flagged, _TAIL, np.where(decision.codes == ABSTAINED, ABSTAINED, _REST))
    two = replace(probabilities.against_the_rest(rare), classes=names)
    voted, votes, label = two.first(n), crowd.votes(), codes[:n]
    meant = np.where(label == ABSTAINED, first_of_best(voted.p), label)
    items = replace(
        found.items,
        label=label,
        majority=first_of_best(votes),
        votes=votes.astype(np.int64),
        probabilities=voted.p,
        confidence=voted.p[np.arange(n), meant],
        entropy=relative_entropy(voted.p),
        disputed=relative_entropy(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)),
        difficulty=None,
        typical_accuracy=None,
    )
    workers = describe_workers(crowd, label, voted.p, rare=_TAIL, common=_REST)
    expected, of_majority, mass = decision.of_rare, majority_recall(voted, votes, _TAIL), believed(voted, _TAIL)
    rest = replace(expected, name=names[_REST], prevalence=expected.prevalence.rest)
    check, true_trade_offs = None, found.true_trade_offs[:0]
    if truth is not None:
        of_tail = set(map(name_key, found.crowd.classes[list(rare.codes)].tolist()))
        merged = {task: names[_TAIL if name_key(name) in of_tail else _REST] for task, name in truth.items()}
        unvoted = dict(zip(crowd.unanswered.tolist(), codes[n:].tolist(), strict=True))
        mine = rare.mass(posterior)
        both = np.column_stack([mine, 1.0 - mine])
        check = check_truth(items, names, merged, rare=_TAIL, posterior=both, unvoted=unvoted)
        code = check.classes.index(names[_TAIL])
        is_tail = (check.truth == code).astype(np.float64)
        true_trade_offs = (trade_off(items, _TAIL, is_tail, check.items, int((check.unvoted == code).sum())),)
    return replace(
        found,
        crowd=crowd,
        rare=_TAIL,
        common=_REST,
        workers=workers,
        items=items,
        classes=describe_classes(items, workers, names, (expected, rest), codes),
        overruled=describe_overruled(items),
        leading=_TAIL,
        expected={_TAIL: expected},
        majority_recall={_TAIL: of_majority},
        trade_offs=(expected_trade_off(items, _TAIL, mass, expected, of_majority),),
        true_trade_offs=true_trade_offs,
        truth=check,
        grades=None,
    )
