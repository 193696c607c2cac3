"""Methods side by side: against the truth where there is some, against each other where there is none.

With truth a method is judged by its labels (recall of every class, balanced accuracy, macro-F1) and by its
probabilities (log loss, calibration), and so is a result that was written to a file, whatever made it. Without truth
the methods can only be compared with one another: how often they agree, how much of that is chance (Cohen's kappa), how
many items each gives to a class, and on which items they differ. Where all methods agree there is nothing to choose;
the items on which they differ are the ones to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from rarevote.scoring.intervals import N_DRAWS, MethodIntervals, score_intervals
from rarevote.scoring.metrics import Scores, log_loss, score
from rarevote.scoring.ranking import calibration_error

FloatArray = NDArray[Any]
Codes = NDArray[np.int64]
_NO_ANSWER = ""  # in a file, in place of a label; no class is called so
_SILENT: Any = object()  # in place of a class of any type


@dataclass(frozen=True)
class Agreement:
    """Two methods against each other.

    Attributes:
        first: name of the one.
        second: name of the other.
        share_equal: share of items with the same label.
        kappa: the same beyond chance, ``(share - chance) / (1 - chance)``; None where chance alone is one.
        n_different: items with different labels.
    """

    first: str
    second: str
    share_equal: float
    kappa: float | None
    n_different: int


@dataclass(frozen=True, eq=False)
class MethodFit:
    """What one method made of the votes.

    Attributes:
        labels: decided class of each item, those with votes first, -1 for no answer, (n).
        p: probability of every class, (n, K).
        seconds: how long the fit took.
        n_iter: iterations done.
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
        annotations: the votes, with any class that only the gold names.
        fits: what each method made of them, by name.
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
        """Every method against the truth; items that any method may have learned from do not count.

        An item without votes has no answer, and is a miss of its class for every method.
        """
        truth, classes = self._truth(known, gold), self.annotations.classes.tolist()
        return {name: score_labels(one.p, classes, truth, one.labels) for name, one in self.fits.items()}

    def intervals(
        self, known: Mapping[Any, Any], gold: Mapping[Any, Any], *, n_draws: int = N_DRAWS
    ) -> dict[str, MethodIntervals]:
        """95% intervals of these scores, and of their differences to the first method's.

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
        """How many items of each class :meth:`score` counts, by the class's name as text, sorted."""
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
    """Judge labels and probabilities of one method.

    Args:
        p: probability of every class, (n, n_classes).
        classes: names of the classes, in the order of the columns.
        truth: the true label by number of the task; it may name classes that ``classes`` lacks.
        labels: class number of every task, int (n_tasks); negative where there is no answer, which is a miss.

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
        truth: true labels, (n); they may name classes that ``classes`` lacks.
        answers: labels given, (n); one that is no class has no probability and is left out of the calibration.
    """
    # A class that could not be answered has probability zero; the log loss is bounded all the same.
    foreign = sort_labels(set(truth).difference(classes))
    padded = _padded(probabilities, len(classes) + len(foreign))
    place = numbered(classes)
    codes = np.array([place.get(answer, -1) for answer in answers], dtype=np.int64)
    given = np.flatnonzero(codes >= 0)
    right = np.array([truth[row] == answers[row] for row in given.tolist()], dtype=np.bool_)
    confidence = probabilities[given, codes[given]]
    error = calibration_error(confidence, right) if given.size else float("nan")
    return log_loss(truth, padded, classes=[*classes, *foreign]), error


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
    )  # both draw by their own proportions
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
    """A result file against the truth, in figures; ids and labels are compared as text.

    Args:
        result: a file with columns task and label, and perhaps ``p:<class>``.
        truth: the labels to score against: a file, a mapping, a Series or a frame.
        rare: the class that matters; the least frequent true one if not given.
        columns: which column of the result is which, and of the truth where it has such a column.

    Returns:
        The figures; of a result of several labels, those of each label that the truth names, by its name.

    Raises:
        InputError: the truth names none of the tasks.
        ParameterError: ``rare`` is not a class.
    """
    found = read_result(result, columns=columns)
    known = {spelling(task): spelling(label) for task, label in read_truth(truth, prefer=columns).items()}
    parts = found.by_label
    # What the truth says about no label of the result is counted with the first.
    strange = sum(task not in found.labels for task in known)
    scored: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        own = {task: label for task, label in known.items() if task in part.labels}
        if own:
            scored[name] = _scored(part, own, rare, n_strange=0 if scored else strange)
    if not scored:
        first, other = next(iter(found.labels)), next(iter(known), None)
        raise InputError(
            f"{result}: the truth names none of its tasks ({first!r} there, {other!r} in the truth): check ids"
        )
    return scored[""] if list(parts) == [""] else scored


def _scored(found: ResultFile, known: Mapping[str, str], rare: str | None, *, n_strange: int) -> dict[str, Any]:
    """One result against the truth of its tasks."""
    items = [task for task in found.labels if task in known]
    true, labels = [known[task] for task in items], [found.labels[task] for task in items]
    scores = score(true, labels, unanswered=_NO_ANSWER)
    names = [str(name) for name in {**scores.recall, **scores.precision}]
    if rare is not None and rare not in names:
        raise ParameterError(f"rare: {rare!r} is not a class; the classes are {some_names(names)}")
    n_true, n_given = Counter(true), Counter(labels)
    summary: dict[str, Any] = {
        **scores.figures(str(scores.minority_class) if rare is None else rare),
        "n_true": {name: n_true[name] for name in names},
        "n_labelled": {name: n_given[name] for name in names},
        "n_unanswered": n_given[_NO_ANSWER],
        "truth_without_result": n_strange,
        "result_without_truth": len(found.labels) - len(items),
        "probabilities": {},
    }
    place = numbered(found.labels)
    rows = [place[task] for task in items]
    for begin, table in found.probabilities.items():
        loss, error = score_probabilities(table[rows], found.classes[begin], true, labels)
        summary["probabilities"][begin.removesuffix(":")] = {
            "log_loss": loss,
            "calibration_error": finite_or_none(error),
        }
    return summary
