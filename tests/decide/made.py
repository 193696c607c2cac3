"""Probabilities and crowds made by hand, and the decision on them through the one decider."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.rare import RareClass
from rarevote.decide.decider import Decided, decide_crowd
from rarevote.decide.decision import Decision, with_expectations
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.rules import Argmax, Rule
from rarevote.decide.selection import rule_of

NAMES = np.array(["defect", "sound"])


def made(p: Any, *, gold: dict[int, int] | None = None, names: NDArray[Any] | None = None) -> Probabilities:
    """These probabilities, with 0 and 1 where gold says so; their ranking is as if there were no gold."""
    blind = np.asarray(p, dtype=np.float64)
    n, n_classes = blind.shape
    known, certain = np.full(n, -1), blind.copy()
    for row, number in (gold or {}).items():
        known[row], certain[row] = number, np.eye(n_classes)[number]
    classes = np.arange(n_classes) if names is None else names
    return Probabilities(classes, certain, certain.mean(axis=0), known, how="made up", blind=blind if gold else None)


def crowd_of(votes: Any, classes: NDArray[Any] | None = None) -> Annotations:
    """A crowd with so many votes for every class, (n, K): the j-th vote on an item is by the j-th worker."""
    counts = np.asarray(votes, dtype=np.int64)
    n, n_classes = counts.shape
    names = np.arange(n_classes) if classes is None else classes
    task = np.repeat(np.arange(n), counts.sum(axis=1))
    label = np.concatenate([np.repeat(names, row) for row in counts])
    worker = np.concatenate([np.arange(row.sum()) for row in counts])
    return Annotations.from_arrays(task, worker, label, classes=names.tolist())


def decided(found: Probabilities, rule: Rule, votes: Any = None, *, allow_unvoted: bool | None = False) -> Decided:
    """What a rule decides; every class has a vote on every item, unless ``votes`` are given."""
    crowd = crowd_of(np.ones_like(found.p) if votes is None else votes, found.classes)
    return decide_crowd(
        crowd,
        found,
        rule,
        own=Argmax(),
        own_codes=None,
        rare=RareClass.of(crowd.classes, crowd.class_votes, found.classes[0]),
        method="made up",
        default_method="anchored-rasch",
        allow_unvoted=allow_unvoted,
    )


def decide(found: Probabilities, votes: Any = None, **how: Any) -> Decision:
    """The decision that these arguments of :func:`rule_of` mean, with what to expect of it."""
    rule = rule_of(**how, own=Argmax())
    rule.check(found.classes)
    answer = decided(found, rule, votes)
    rare = RareClass((0,), found.classes[0], named=True)
    return with_expectations(found, answer.codes, answer.description, rule.costs(found.classes), rare, answer.target)
