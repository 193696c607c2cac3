"""Comparison of methods: with the truth if there is one, with each other if there is none.

With truth, a method is scored by its labels (recall of every class, balanced accuracy, macro-F1) and by its
probabilities (log loss, calibration), and so is a result in a file, whatever its source. Without truth,
the methods can only be compared with one another: how often they agree, how much of that is chance (Cohen's kappa), how
many items each gives to a class, and on which items they differ. If all methods agree, there is nothing to choose;
the items on which they differ should be reviewed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import numbered, some_names, sort_labels, spelling
from rarevote.crowd.numerics import finite_or_none
from rarevote.crowd.population import population
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.frames import read_truth
from rarevote.io.read.results import ResultFile, read_result
from rarevote.io.read.votes import read_truth_table
from rarevote.scoring.intervals import N_DRAWS, MethodIntervals, score_intervals
from rarevote.scoring.metrics import Scores, Tally, score, scores_of_tally
from rarevote.scoring.ranking import calibration_error, log_loss_of

FloatArray = NDArray[Any]
Codes = NDArray[np.int64]
_SILENT: Any = object()  # used instead of a class of any type


@dataclass(frozen=True)
class Agreement:
    """The agreement of two methods.

    Attributes:
        first: name of one method.
        second: name of the other.
        share_equal: share of items with the same label.
        kappa: agreement beyond chance, ``(share - chance) / (1 - chance)``; None if chance is 1.
        n_different: number of items with different labels.
    """

    first: str
    second: str
    share_equal: float
    kappa: float | None
    n_different: int


@dataclass(frozen=True, eq=False)
class MethodFit:
    """The result of one method.

    Attributes:
        labels: decided class of each item, those with votes first, -1 for no answer, (n).
        p: probability of every class, (n, K).
        seconds: how long the fit took.
        n_iter: number of iterations.
        converged: whether the stopping rule was met.
    """

    labels: Codes
    p: FloatArray
    seconds: float
    n_iter: int
    converged: bool


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods on the same votes.

    Attributes:
        annotations: the votes, including classes that only the gold names.
        fits: the result of each method, by name.
        refused: methods that cannot run on these votes, and why.
    """

    annotations: Annotations
    fits: dict[str, MethodFit]
    refused: list[str]

    @property
    def labels(self) -> dict[str, Codes]:
        """Decided classes of tasks with votes, by method."""
        return {name: one.labels[: self.annotations.n_tasks] for name, one in self.fits.items()}

    @property
    def different(self) -> Codes:
        """Tasks on which not all methods agree."""
        return differing_tasks(self.labels)

    def score(self, known: Mapping[Any, Any], gold: Mapping[Any, Any]) -> dict[str, Scores]:
        """The scores of every method; items that any method may have learned from do not count.

        An item without votes has no answer, and counts as a miss of its class for every method.
        """
        truth, classes = self._truth(known, gold), self.annotations.classes.tolist()
        return {name: score_labels(one.p, classes, truth, one.labels) for name, one in self.fits.items()}

    def intervals(
        self, known: Mapping[Any, Any], gold: Mapping[Any, Any], *, n_draws: int = N_DRAWS
    ) -> dict[str, MethodIntervals]:
        """95% intervals of these scores, and of their differences from the first method's.

        They come from a bootstrap over items (:mod:`rarevote.scoring.intervals`).

        Example:
            >>> from rarevote import compare
            >>> votes = [(i, w, "yes" if (i + w) % 5 == 0 else "no") for i in range(40) for w in range(3)]
            >>> found = compare(votes, ["majority-vote", "dawid-skene"])
            >>> truth = {i: "yes" if i % 5 == 0 else "no" for i in range(40)}
            >>> found.intervals(truth, {})["majority-vote"].own.overall["accuracy"].value
            0.8
        """
        truth, names = self._truth(known, gold), self.annotations.classes.tolist()
        classes = [*names, *sort_labels(set(truth.values()).difference(names))]
        place = numbered(classes)
        rows = np.fromiter(truth, dtype=np.int64, count=len(truth))
        codes = np.array([place[label] for label in truth.values()], dtype=np.int64)
        return score_intervals(
            {name: _padded(one.p[rows], len(classes)) for name, one in self.fits.items()},
            {name: one.labels[rows] for name, one in self.fits.items()},
            codes,
            classes,
            n_draws=n_draws,
        )

    def class_sizes(self, known: Mapping[Any, Any], gold: Mapping[Any, Any]) -> dict[str, int]:
        """Number of items of each class that :meth:`score` counts, by the class's name as text, sorted."""
        sizes = Counter(self._truth(known, gold).values())
        return {str(name): sizes[name] for name in sort_labels(sizes)}

    def _truth(self, known: Mapping[Any, Any], gold: Mapping[Any, Any]) -> dict[int, Any]:
        """True labels of the items to score, by number of the item."""
        position = numbered(population(self.annotations).tolist())
        truth = {position[task]: label for task, label in known.items() if task in position and task not in gold}
        if not truth:
            raise InputError("the truth names none of the tasks that are not gold: check ids")
        return truth


def score_labels(p: FloatArray, classes: Sequence[Any], truth: Mapping[int, Any], labels: Codes) -> Scores:
    """Score labels and probabilities of one method.

    Args:
        p: probability of every class, (n, n_classes).
        classes: names of the classes, in the order of the columns.
        truth: the true label by number of the task; it can name classes that ``classes`` lacks.
        labels: class number of every task, int (n_tasks); negative for no answer, which is a miss.

    Raises:
        InputError: the truth is empty.
    """
    if not truth:
        raise InputError("no truth to score against")
    rows = np.fromiter(truth, dtype=np.int64, count=len(truth))
    true_labels = list(truth.values())
    answers = [classes[code] if code >= 0 else _SILENT for code in labels[rows].tolist()]
    loss, error = score_probabilities(p[rows], classes, true_labels, answers)
    return replace(score(true_labels, answers, unanswered=_SILENT), log_loss=loss, calibration_error=error)


def score_probabilities(
    probabilities: FloatArray, classes: Sequence[Any], truth: Sequence[Any], answers: Sequence[Any]
) -> tuple[float, float]:
    """Log loss, and calibration error of the answers; NaN if none of them is a class.

    Args:
        probabilities: of every class, rows summing to one, (n, n_classes).
        classes: names of the classes, in the order of the columns.
        truth: true labels, (n); they can name classes that ``classes`` lacks.
        answers: given labels, (n); one that is not a class has no probability and is left out of the calibration.
    """
    foreign = sort_labels(set(truth).difference(classes))
    place = numbered([*classes, *foreign])
    true = np.fromiter((place[label] for label in truth), dtype=np.int64, count=len(truth))
    codes = np.fromiter((place.get(answer, -1) for answer in answers), dtype=np.int64, count=len(answers))
    return score_probability_codes(probabilities, len(place), true, codes)


def score_probability_codes(p: FloatArray, n_classes: int, truth: Codes, answers: Codes) -> tuple[float, float]:
    """:func:`score_probabilities` for class numbers.

    Args:
        p: probability of every class that could be answered, rows summing to one, (n, K).
        n_classes: number of all classes. Those from ``K`` on have probability zero; the log loss is still
            bounded.
        truth: number of the true class, (n).
        answers: class number of the given label, (n); others than ``0 .. K - 1`` have no probability.
    """
    given = np.flatnonzero((answers >= 0) & (answers < p.shape[1]))
    confidence, right = p[given, answers[given]], truth[given] == answers[given]
    return log_loss_of(_padded(p, n_classes), truth), calibration_error(confidence, right) if given.size else float(
        "nan"
    )


def _padded(probabilities: FloatArray, n_classes: int) -> FloatArray:
    """Rows that sum to one, with zeros for classes that could not be answered."""
    strange = np.zeros((len(probabilities), n_classes - probabilities.shape[1]))
    padded = np.hstack([probabilities, strange])
    return np.asarray(padded / padded.sum(axis=1, keepdims=True))


def agreements(labels: Mapping[str, Codes], n_classes: int) -> list[Agreement]:
    """Every pair of methods; ``labels`` has the class number of every task by method."""
    names = list(labels)
    return [
        _agreement(first, second, labels[first], labels[second], n_classes)
        for number, first in enumerate(names)
        for second in names[number + 1 :]
    ]


def _agreement(first: str, second: str, one: Codes, other: Codes, n_classes: int) -> Agreement:
    n = max(len(one), 1)
    n_different = int(np.count_nonzero(one != other))
    share = 1 - n_different / n
    chance = float(
        (np.bincount(one, minlength=n_classes) / n) @ (np.bincount(other, minlength=n_classes) / n)
    )  # both choose by their own proportions
    kappa = None if chance >= 1 else (share - chance) / (1 - chance)
    return Agreement(first, second, share, kappa, n_different)


def proportions(labels: Mapping[str, Codes], classes: Sequence[Any]) -> dict[str, dict[Any, float]]:
    """Share of the items that each method gives to each class."""
    return {
        name: dict(
            zip(classes, (np.bincount(codes, minlength=len(classes)) / max(len(codes), 1)).tolist(), strict=True)
        )
        for name, codes in labels.items()
    }


def differing_tasks(labels: Mapping[str, Codes]) -> Codes:
    """Numbers of the tasks on which not all methods agree."""
    columns = list(labels.values())
    if not columns:
        return np.empty(0, dtype=np.int64)
    different = np.zeros(len(columns[0]), dtype=bool)
    for other in columns[1:]:
        different |= other != columns[0]
    return np.flatnonzero(different)


def score_result(
    result: str | Path, truth: Any, *, rare: str | None = None, columns: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Score a result file with the truth; ids and labels are compared as text.

    Args:
        result: a file with columns task and label, and optionally ``p:<class>``.
        truth: the true labels: a file, a mapping, a Series or a frame.
        rare: the class that matters; by default, the least frequent true class.
        columns: which column of the result is which, also for the truth if it has these columns.

    Returns:
        The figures; for a result with several labels, those of each label that the truth names, by its name.

    Raises:
        InputError: the truth names none of the tasks.
        ParameterError: ``rare`` is not a class.
    """
    found = read_result(result, columns=columns)
    known = _Known.of(truth, columns)
    parts = found.by_label
    # Truth that belongs to no label of the result is counted with the first label.
    every = known.rows_of(found.tasks)
    strange = known.n_tasks - int((every >= 0).sum())
    scored: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        rows = every if part is found else known.rows_of(part.tasks)
        if (rows >= 0).any():
            scored[name] = _scored(part, known, rows, rare, n_strange=0 if scored else strange)
    if not scored:
        first, other = found.tasks[0], next(iter(known.tasks), None)
        raise InputError(
            f"{result}: the truth names none of its tasks ({first!r} there, {other!r} in the truth): check ids"
        )
    return scored[""] if list(parts) == [""] else scored


@dataclass(frozen=True, eq=False)
class _Known:
    """The truth in columns, as text.

    Attributes:
        tasks: their names; of duplicates, the last counts.
        codes: the number of the label of each in ``names``.
        names: the labels that occur.
    """

    tasks: list[str]
    codes: Codes
    names: list[str]

    @classmethod
    def of(cls, truth: Any, columns: Mapping[str, str] | None) -> _Known:
        """Read it from anything that :func:`read_truth` takes."""
        table = read_truth_table(truth, prefer=columns) if isinstance(truth, (str, Path)) else None
        if table is None or table.names["task"].first_repeated() is not None:
            pairs = read_truth(truth, prefer=columns)
            labels = [spelling(label) for label in pairs.values()]
            names = list(dict.fromkeys(labels))
            place = numbered(names)
            return cls([spelling(task) for task in pairs], np.array([place[one] for one in labels], np.int64), names)
        text = table.spelled(spelling)
        label = text.names["label"]
        names = list(dict.fromkeys(label.names.tolist()))
        same = np.array([names.index(name) for name in label.names.tolist()], dtype=np.int64)
        return cls(text.tasks, same[label.codes], names)

    @cached_property
    def _place(self) -> dict[str, int]:
        return numbered(self.tasks)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(set(self.tasks))

    def rows_of(self, tasks: list[str]) -> Codes:
        """The row of each task; -1 if the truth does not name it."""
        if tasks == self.tasks:  # most truths are in the order of the items; a result has no duplicates
            return np.arange(len(tasks))
        return np.fromiter((self._place.get(task, -1) for task in tasks), dtype=np.int64, count=len(tasks))


def _scored(found: ResultFile, known: _Known, known_rows: Codes, rare: str | None, *, n_strange: int) -> dict[str, Any]:
    """Score one result with the truth of its tasks; ``known_rows`` are their rows in the truth, -1 for none."""
    rows = np.flatnonzero(known_rows >= 0)
    true, given = known.codes[known_rows[rows]], found.codes[rows]
    occurring = {known.names[code] for code in np.unique(true).tolist()}
    occurring |= {found.names[code] for code in np.unique(given[given >= 0]).tolist()}
    classes: list[Any] = sort_labels(occurring)
    place = numbered(classes)
    true_class = _renumbered(true, known.names, place, len(classes))
    given_class = _renumbered(given, found.names, place, len(classes))
    tally = Tally.of_codes(classes, true_class, given_class)
    scores = scores_of_tally(tally)
    names = [str(name) for name in {**scores.recall, **scores.precision}]
    if rare is not None and rare not in names:
        raise ParameterError(f"rare: {rare!r} is not a class; the classes are {some_names(names)}")
    summary: dict[str, Any] = {
        **scores.figures(str(scores.minority_class) if rare is None else rare),
        "n_true": {name: int(tally.n_true[place[name]]) for name in names},
        "n_labelled": {name: int(tally.n_answered[place[name]]) for name in names},
        "n_unanswered": int((given < 0).sum()),
        "truth_without_result": n_strange,
        "result_without_truth": len(found.tasks) - rows.size,
        "probabilities": {},
    }
    for begin, table in found.probabilities.items():
        own = found.classes[begin]
        every = numbered([*own, *sort_labels({classes[k] for k in np.flatnonzero(tally.n_true)}.difference(own))])
        loss, error = score_probability_codes(
            table[rows],
            len(every),
            _renumbered(true_class, classes, every, -1),
            _renumbered(given_class, classes, every, -1),
        )
        summary["probabilities"][begin.removesuffix(":")] = {
            "log_loss": loss,
            "calibration_error": finite_or_none(error),
        }
    return summary


def _renumbered(codes: Codes, names: Sequence[str], place: Mapping[Any, int], other: int) -> Codes:
    """Class numbers in another numbering; ``other`` for a missing class, and for no answer."""
    new = np.array([*(place.get(name, other) for name in names), other], dtype=np.int64)
    return np.asarray(new[np.where(codes < len(names), codes, -1)])
