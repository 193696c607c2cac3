"""Whole fits with every default: read, fitted until they converge, reported and decided, as a user gets them.

Properties as in tests/methods/contracts.py, but of the answer: the reported probabilities and the decided labels of
``rarevote.fit(votes, method).decide()``. A fit may stop one iteration earlier under other names, and what it reports
then differs by what an iteration changes: :data:`TOLERANCE`. A label may differ only where two classes are that close.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from tests.methods.contracts import Crowd, Size, draw_crowd
from tests.methods.crowds import columns
from tests.tables import MethodRow, small_network

import rarevote
from rarevote.methods.registry import find_method

SIZE = Size(tasks=(200, 400), workers=(6, 30), classes=(6, 8))
TOLERANCE = 1e-6
NAMES = "abcdefgh"


class Answer(NamedTuple):
    """What a user gets: probability by task and class, label by task."""

    probabilities: dict[tuple[str, str], float]
    labels: dict[str, str]


class WholeCase:
    """A method with its defaults and a crowd.

    Args:
        row: the method.
        number: of the crowd.
    """

    def __init__(self, row: MethodRow, number: int) -> None:
        self.row, self.rng = row, np.random.default_rng(number)
        self.crowd: Crowd = draw_crowd(number, binary=row.binary, size=SIZE)
        if row.needs_gold and not self.crowd.gold:
            self.crowd = Crowd(self.crowd.rows, self.crowd.truth, dict(list(self.crowd.truth.items())[:60]))

    def answer(
        self, crowd: Crowd | None = None, *, order: str = NAMES, look: bool = False, **parameters: Any
    ) -> Answer:
        """Fit, report and decide; with ``look`` everything else is asked for before the answer is taken."""
        crowd = crowd or self.crowd
        entry = find_method(self.row.name)
        if entry.capabilities.ordered:
            parameters["ordered"] = list(order)
        if self.row.name == "crowdfm":
            vectors = np.array([np.random.default_rng(order.index(name)).normal(size=32) for name in crowd.classes])
            parameters.update(weights=small_network(), option_vectors=vectors)
        gold = crowd.gold if crowd.gold and entry.capabilities.gold else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = rarevote.fit(columns(crowd.rows), entry.load()(**parameters), gold=gold)
            result = fitted.decide()
            if look:
                result.review(5)
                fitted.diagnose(result)
                result.columns(with_posterior=True)
                result.summary(expected=False)
        tasks, classes = fitted.annotations.task_names().tolist(), fitted.annotations.classes.tolist()
        table = fitted.probabilities
        return Answer(
            {(t, y): float(table[i, k]) for i, t in enumerate(tasks) for k, y in enumerate(classes)},
            dict(zip(tasks, result.labels.tolist(), strict=True)),
        )

    @cached_property
    def own(self) -> Answer:
        """The answer that the others are compared with."""
        return self.answer()


def apart(one: Answer, two: Answer) -> float:
    """The largest difference of a probability; 1 where a label differs that is not close to the other one's."""
    largest = max(abs(value - two.probabilities[key]) for key, value in one.probabilities.items())
    for task, label in one.labels.items():
        other = two.labels[task]
        if other != label and abs(one.probabilities[task, label] - one.probabilities[task, other]) > 10 * TOLERANCE:
            return 1.0
    return largest


def whole_finite(case: WholeCase) -> float:
    sums: dict[str, float] = {}
    for (task, _), value in case.own.probabilities.items():
        if not 0 <= value <= 1:
            return 1.0
        sums[task] = sums.get(task, 0.0) + value
    return max(abs(total - 1) for total in sums.values())


def whole_same_bits(case: WholeCase) -> float:
    return float(case.answer() != case.own)


def whole_other_output(case: WholeCase) -> float:
    """A review list, a diagnosis, columns and a summary change nothing."""
    return float(case.answer(look=True) != case.own)


def whole_threads(case: WholeCase) -> float | None:
    if "n_jobs" not in find_method(case.row.name).load()().get_params():
        return None
    return float(case.answer(n_jobs=3) != case.answer(n_jobs=1))


def whole_rows_shuffled(case: WholeCase) -> float:
    pairs = list(dict.fromkeys(entry[:2] for entry in case.crowd.rows))
    place = dict(zip(pairs, case.rng.permutation(len(pairs)).tolist(), strict=True))
    rows = sorted(case.crowd.rows, key=lambda entry: place[entry[:2]])
    return apart(case.own, case.answer(Crowd(rows, case.crowd.truth, case.crowd.gold)))


def _permuted(case: WholeCase, place: int) -> float | None:
    if case.row.drawn_start:
        return None
    names = sorted({entry[place] for entry in case.crowd.rows})
    other = dict(zip(names, case.rng.permutation(names).tolist(), strict=True))
    task = other if place == 0 else {}
    probabilities = {(task.get(t, t), y): value for (t, y), value in case.own.probabilities.items()}
    labels = {task.get(t, t): label for t, label in case.own.labels.items()}
    return apart(Answer(probabilities, labels), case.answer(case.crowd.renamed(place, other)))


def whole_tasks_permuted(case: WholeCase) -> float | None:
    return _permuted(case, 0)


def whole_workers_permuted(case: WholeCase) -> float | None:
    if find_method(case.row.name).load()().get_params().get("start") == "crowd-kit":
        return None  # MACE as crowd-kit fits it: the start is drawn in the order of the names of workers
    return _permuted(case, 1)


def whole_gold_respected(case: WholeCase) -> float | None:
    if not find_method(case.row.name).capabilities.gold:
        return None
    gold = case.crowd.gold or dict(list(case.crowd.truth.items())[:20])
    found = case.answer(Crowd(case.crowd.rows, case.crowd.truth, gold))
    return float(sum(found.labels[task] != label for task, label in gold.items() if task in found.labels))


def whole_decided_among_votes(case: WholeCase) -> float | None:
    if find_method(case.row.name).capabilities.ordered:
        return None  # a grade between two votes
    voted = {(task, label) for task, _, label in case.crowd.rows} | set(case.crowd.gold.items())
    return float(sum(entry not in voted for entry in case.own.labels.items()))


#: Each with how much may be rounding.
PROPERTIES: dict[str, tuple[Callable[[WholeCase], float | None], float]] = {
    "finite and sums to one": (whole_finite, 1e-9),
    "same bits": (whole_same_bits, 0.0),
    "other output changes nothing": (whole_other_output, 0.0),
    "threads, same bits": (whole_threads, 0.0),
    "rows shuffled": (whole_rows_shuffled, TOLERANCE),
    "tasks permuted": (whole_tasks_permuted, TOLERANCE),
    "workers permuted": (whole_workers_permuted, TOLERANCE),
    "gold respected": (whole_gold_respected, 0.0),
    "decided among votes": (whole_decided_among_votes, 0.0),
}
