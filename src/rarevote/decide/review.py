"""The tasks to review: those whose true class, once known, lowers the expected cost most.

For a task with probabilities ``p_k`` and decision ``d``, learning the truth saves the expected cost of the decision
beyond that of the truth::

    gain = sum_k p_k (C[k, d] - min_e C[k, e])

With equal costs this is the probability of being wrong. With unequal costs it is not: if a missed defect costs 20, a
rail called sound that is a defect with probability 0.2 comes before a rail called defect that is sound with
probability 0.6. Answers from a review are gold in the next run.

A plan of votes also chooses among items without votes. Their class is unknown, whatever their features
are, so ``d`` is the most frequent class: an item of another class is missed as long as it is not labelled, and
its gain grows with the probability of these classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.arguments import check_count
from rarevote.crowd.names import find_name, object_array, plain_name, some_names
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.steps import doing
from rarevote.crowd.words import NO_ANSWER, aligned, counted
from rarevote.decide.decision import expected_costs
from rarevote.decide.probabilities import Probabilities
from rarevote.decide.rules import ABSTAINED, BoolArray
from rarevote.errors import InputError, ParameterError, how
from rarevote.io.platforms.write_back import (
    argilla_record,
    label_studio_task,
    shown_columns,
    values_to_show,
    write_records,
)
from rarevote.io.write.columns import write_columns

# The number of tasks of a plan, and of annotators, that are shown.
SHOWN_ITEMS = 20
_SHOWN_NAMES = 3


@dataclass(frozen=True)
class ReviewItem:
    """One task to review.

    Attributes:
        row: position of the task in the crowd.
        task: its name.
        decided: the label decided so far; None without an answer.
        doubt: the strongest alternative class.
        gain: by how much the expected cost falls once the truth is known.
        reason: why it is on the list, as text.
        annotators: whom to ask, best first; without those who have voted on the task.
    """

    row: int
    task: Any
    decided: Any
    doubt: Any
    gain: float
    reason: str
    annotators: tuple[Any, ...]


@dataclass(frozen=True, repr=False)
class ReviewPlan:
    """Tasks to review, most useful first.

    Attributes:
        items: the tasks.
        expected_cost: expected cost of all current decisions; in a plan of votes, items without votes count as if
            decided as the most frequent class, so it can be above the cost of the decision.
        saved: by how much the review is expected to lower it.
        votes_per_item: in a plan of further votes, how many each task gets; 0 for a review by an expert.
    """

    items: tuple[ReviewItem, ...]
    expected_cost: float
    saved: float
    votes_per_item: int = 0

    @property
    def saving(self) -> str:
        """What a review would save, as text."""
        left = self.expected_cost - self.saved
        return f"knowing them lowers the expected cost from {self.expected_cost:,.1f} to {left:,.1f}"

    def __repr__(self) -> str:
        return f"ReviewPlan({counted(len(self.items), 'task')}; {self.saving})"

    def __str__(self) -> str:
        return self.text()

    def text(self, top: int = SHOWN_ITEMS, *, has_file: bool = False) -> str:
        """The text for the terminal.

        Args:
            top: the largest number of tasks to show.
            has_file: whether all of them are in a file, so that the others need no mention.
        """
        if not self.votes_per_item:
            return f"{counted(len(self.items), 'task')} to review; {self.saving}"
        if not self.items:
            return "nothing is in doubt: further votes would change no label"
        rows = [
            [
                str(item.task),
                NO_ANSWER if item.decided is None else str(item.decided),
                str(item.doubt),
                f"{item.gain:.3f}",
                ", ".join(map(str, item.annotators)) or "a new annotator",
            ]
            for item in self.items[:top]
        ]
        lines = [aligned(["item", "decided", "may be", "gain", "ask"], rows)]
        if len(self.items) > top:
            every = how("items has them all", "--top N shows more, --out FILE writes them all")
            lines.append(f"... {len(self.items) - top:,} more" + ("" if has_file else f" ({every})"))
        n_votes, n_items = len(self.items) * self.votes_per_item, len(self.items)
        lines += [
            f"\n{counted(n_votes, 'vote')} on {counted(n_items, 'item')}; gain: by how much the expected cost falls "
            "once the item is known,",
            f"together from {self.expected_cost:,.1f} to {self.expected_cost - self.saved:,.1f} at best",
        ]
        if self.load:
            most = [f"{name} ({number})" for name, number in list(self.load.items())[:_SHOWN_NAMES]]
            lines.append(f"{counted(len(self.load), 'person is', 'people are')} asked, most often {', '.join(most)}")
        return "\n".join(lines)

    @property
    def load(self) -> dict[Any, int]:
        """The number of tasks that each annotator is suggested for, in descending order."""
        return dict(Counter(name for item in self.items for name in item.annotators).most_common())


def review_gains(p: FloatArray, codes: IntArray, costs: FloatArray) -> FloatArray:
    """By how much knowing each task's class would lower its expected cost, (n)."""
    known = p @ costs.min(axis=1)
    return np.asarray(np.maximum(expected_costs(p, codes, costs) - known, 0.0))


def plan_review(
    probabilities: Probabilities,
    codes: IntArray,
    costs: FloatArray,
    annotations: Annotations,
    names: Any,
    *,
    max_review: int,
    abilities: FloatArray,
    n_annotators: int = 3,
    max_each: int | None = None,
    available: IntArray | None = None,
    worth: FloatArray | None = None,
    unlabelled: BoolArray | None = None,
) -> ReviewPlan:
    """Choose the tasks whose review lowers the expected cost most, or the best by another measure.

    Args:
        probabilities: probabilities of all tasks, those with votes first.
        codes: class number of each task as it was decided, -1 for no answer, (n).
        costs: the cost of deciding a class (column) if another is true (row), (n_classes, n_classes).
        annotations: the votes.
        names: names of all tasks, (n).
        max_review: the largest number of tasks to list; tasks without any gain are not listed.
        abilities: ability of every worker per class, (n_workers, n_classes), larger is better.
        n_annotators: how many annotators to suggest per task.
        max_each: the largest number of tasks per annotator; no limit by default.
        available: numbers of the workers who can be asked; all by default.
        worth: the value by which tasks are chosen, the largest first, 0 for never, (n); by default, the fall of the
            cost.
        unlabelled: tasks that count as the most frequent class until they are labelled, (n); none by default.

    Raises:
        ParameterError: ``max_review`` is not a whole number of at least 1.
        InputError: the arguments have different numbers of tasks.
    """
    if isinstance(max_review, bool) or not isinstance(max_review, (int, np.integer)) or max_review < 1:
        raise ParameterError(f"max_review must be a whole number of at least 1, got {max_review!r}")
    if not len(names) == len(probabilities) == len(codes):
        raise InputError(
            f"{len(probabilities):,} probabilities and {len(codes):,} decisions do not fit {len(names):,} tasks"
        )
    doing("choosing items to review")
    unlabelled = np.zeros(len(codes), dtype=bool) if unlabelled is None else unlabelled
    codes = np.where(unlabelled, int(probabilities.mean.argmax()), codes)
    gain = review_gains(probabilities.p, codes, costs)
    worth = gain if worth is None else worth
    chosen = np.argsort(-worth, kind="stable")[:max_review]
    chosen = chosen[worth[chosen] > 0]
    ask = _Suggestions(annotations, abilities, n_annotators, max_each, available)
    # Read all names at once: those of a large crowd are on disk.
    items = tuple(
        _item(
            probabilities,
            int(codes[row]),
            costs,
            annotations,
            name,
            row,
            float(gain[row]),
            ask,
            is_unlabelled=bool(unlabelled[row]),
        )
        for row, name in zip(chosen.tolist(), np.asarray(names[chosen]).tolist(), strict=True)
    )
    total = float(expected_costs(probabilities.p, codes, costs).sum())
    return ReviewPlan(items, total, float(gain[chosen].sum()))


def unlabelled_tasks(probabilities: Probabilities, annotations: Annotations) -> BoolArray:
    """Which tasks have neither votes nor gold, (n)."""
    return (np.arange(len(probabilities)) >= annotations.n_tasks) & (probabilities.gold < 0)


def unseen_of(probabilities: Probabilities, annotations: Annotations, code: int) -> FloatArray:
    """The probability of a class for tasks without votes and gold, else 0, (n): where to search for the class.

    Raises:
        ParameterError: there are no features that distinguish these tasks.
    """
    if not probabilities.has_features:
        raise ParameterError(
            f"{how('find', '--find')} orders items without votes by their features: give features that count "
            f"({how('features=', '--features FILE')})"
        )
    return np.where(unlabelled_tasks(probabilities, annotations), probabilities.p[:, code], 0.0)


def check_budget(budget: int, votes_per_item: int) -> None:
    """Check the numbers of votes of a plan.

    Raises:
        ParameterError: a number is not whole or is below 1, or a budget that is too small for one task.
    """
    total, each = how("budget", "--budget"), how("votes_per_item", "--votes-per-item")
    check_count(total, budget)
    check_count(each, votes_per_item)
    if votes_per_item > budget:
        raise ParameterError(f"{total} {budget} is too small for one item of {votes_per_item} votes ({each})")


def available_workers(named: Iterable[Any], annotations: Annotations) -> IntArray:
    """Numbers of the available annotators, ascending.

    Raises:
        ParameterError: no annotator is named, or a named one has no votes.
    """
    numbers = []
    for name in named:
        number = find_name(name, annotations.workers)
        if number is None:
            known = some_names(annotations.workers.tolist())
            raise ParameterError(
                f"{how('named', '--named')}: {name!r} has not voted ({known}): skills are estimated from votes"
            )
        numbers.append(number)
    if not numbers:
        raise ParameterError(f"{how('named', '--named')} must name at least one annotator")
    return np.unique(numbers)


def shared_load(n_votes: int, n_workers: int) -> int:
    """The largest number of these votes for one annotator: a fifth, but in a small crowd twice an equal share.

    >>> shared_load(100, 50), shared_load(100, 5), shared_load(3, 40)
    (20, 40, 1)
    """
    return ceil(n_votes * max(0.2, 2.0 / max(n_workers, 1)))


def plan_figures(plan: ReviewPlan) -> dict[str, Any]:
    """The plan as plain values for JSON."""
    return {
        "n_tasks": len(plan.items),
        "expected_cost": plan.expected_cost,
        "saved": plan.saved,
        "load": {str(name): number for name, number in plan.load.items()},
        "tasks": [{"task": item.task, **_about(item)} for item in plan.items],
    }


def _item(
    probabilities: Probabilities,
    code: int,
    costs: FloatArray,
    annotations: Annotations,
    task: Any,
    row: int,
    gain: float,
    ask: _Suggestions,
    *,
    is_unlabelled: bool,
) -> ReviewItem:
    names, p = probabilities.classes, probabilities.p[row]
    if code == ABSTAINED:
        code, doubt = (int(k) for k in np.argsort(-p, kind="stable")[:2])
        decided, start = None, "no answer yet"
    else:
        # The alternative to the decision: the class that contributes most to the expected cost.
        share = p * (costs[:, code] - costs.min(axis=1))
        doubt = int(share.argmax())
        decided, start = names[code], f"decided {names[code]} (probability {p[code]:.2f})"
        if is_unlabelled:
            decided, start = None, f"not labelled, which counts as {names[code]} (probability {p[code]:.2f})"
    votes = np.bincount(annotations.label[annotations.votes_on(row)], minlength=len(p))
    cast = ", ".join(f"{votes[k]} {names[k]}" for k in np.argsort(-votes, kind="stable") if votes[k]) or "none"
    cost = costs[doubt, code]
    reason = f"{start}, but {names[doubt]} has {p[doubt]:.2f}; being wrong costs {cost:g}; votes: {cast}"
    return ReviewItem(row, task, decided, names[doubt], gain, reason, ask.for_task(row, code, doubt))


class _Suggestions:
    """The annotators who best distinguish two classes, of those available, new to the task and below their limit."""

    def __init__(
        self,
        annotations: Annotations,
        abilities: FloatArray,
        wanted: int,
        max_each: int | None,
        available: IntArray | None,
    ) -> None:
        self._annotations, self._wanted, self._max_each = annotations, wanted, max_each
        self._available = np.arange(annotations.n_workers) if available is None else available
        self._asked = np.zeros(annotations.n_workers, dtype=np.int64)
        self._accuracy = 0.5 + 0.5 * np.tanh(0.5 * np.asarray(abilities, dtype=np.float64))
        self._order: dict[tuple[int, int], list[int]] = {}

    def for_task(self, row: int, one: int, other: int) -> tuple[Any, ...]:
        """Names, best first; none if abilities are not known."""
        if not self._accuracy.size:
            return ()
        pair = (min(one, other), max(one, other))
        if pair not in self._order:
            both = self._accuracy[self._available, pair[0]] + self._accuracy[self._available, pair[1]]
            self._order[pair] = self._available[np.argsort(-both, kind="stable")].tolist()
        crowd = self._annotations
        voted = set(crowd.worker[crowd.votes_on(row)].tolist())
        names: list[Any] = []
        for worker in self._order[pair]:
            if len(names) == self._wanted:
                break
            if worker not in voted and (self._max_each is None or self._asked[worker] < self._max_each):
                self._asked[worker] += 1
                names.append(plain_name(crowd.workers[worker]))
        return tuple(names)


# --------------------------------------------------------------------------------------------------------------------
# the list as a table, and as tasks of annotation platforms

Shown = Mapping[str, NDArray[Any]]


#: The columns of a list, apart from those to show.
REVIEW_NAMES = ("task", "decided", "doubt", "reason", "expected_gain", "ask")


def review_columns(plan: ReviewPlan, shown: Shown | None = None) -> dict[str, NDArray[Any]]:
    """The list as columns: task, shown columns, decided, doubt, reason, expected_gain, ask.

    Args:
        shown: what annotators were shown, one text per task of the crowd, by name of the column.
    """
    items = plan.items
    columns: dict[str, NDArray[Any]] = {"task": object_array([item.task for item in items])}
    columns |= shown_columns(shown or {}, (item.row for item in items), REVIEW_NAMES)
    columns["decided"] = object_array(["" if item.decided is None else item.decided for item in items])
    columns["doubt"] = object_array([item.doubt for item in items])
    columns["reason"] = object_array([item.reason for item in items])
    columns["expected_gain"] = np.array([item.gain for item in items], dtype=np.float64)
    columns["ask"] = object_array([", ".join(map(str, item.annotators)) for item in items])
    return columns


def label_studio_tasks(plan: ReviewPlan, shown: Shown | None = None) -> list[dict[str, Any]]:
    """The list in Label Studio's import format: what is shown in ``data``, the rest in ``meta``."""
    return [
        {**label_studio_task(item.task, values_to_show(shown or {}, item.row)), "meta": _about(item)}
        for item in plan.items
    ]


def argilla_records(plan: ReviewPlan, shown: Shown | None = None) -> list[dict[str, Any]]:
    """The list as Argilla's records (version 2): what is shown in ``fields``, the rest in ``metadata``."""
    return [
        argilla_record(
            item.task,
            values_to_show(shown or {}, item.row),
            {**_about(item), "ask": ", ".join(map(str, item.annotators))},
        )
        for item in plan.items
    ]


def write_review(plan: ReviewPlan, path: Path, form: str = "table", shown: Shown | None = None) -> None:
    """Write the list, completely or not at all: a table in the format of its ending, or tasks for a platform."""
    if form == "table":
        write_columns(review_columns(plan, shown), path)
        return
    records = (label_studio_tasks if form == "label-studio" else argilla_records)(plan, shown)
    write_records(records, path)


def _about(item: ReviewItem) -> dict[str, Any]:
    return {
        "decided": "" if item.decided is None else str(item.decided),
        "doubt": str(item.doubt),
        "reason": item.reason,
        "expected_gain": round(item.gain, 6),
        "ask": [str(name) for name in item.annotators],
    }
