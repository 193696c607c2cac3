"""Classes in numbers: shares, from probabilities to classes, the class that matters, gold as class numbers per task.

The class that matters is the one that is named, else the one with the fewest votes. Fewest votes, not fewest labels or
expected items: this is the same for every method, every decision and every verb on the same data, and it is known
before anything is fitted. A class that nobody voted for is never meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import as_name_array, find_name, positions_of, some_names, sort_labels
from rarevote.errors import InputError, ParameterError, warn_user

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Probabilities are kept this far from zero where a logarithm follows.
TINY = 1e-10


def sigmoid(log_odds: NDArray[Any]) -> FloatArray:
    """``1 / (1 + exp(-log_odds))``, through tanh because that never overflows."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * log_odds))


def dot(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The sum of the products of two arrays (broadcast against each other), without BLAS.

    BLAS splits long sums over as many threads as there are cores, which shows in the last bits; and those threads go on
    spinning for a while, beside whatever is computed next.
    """
    return float((one * other).sum())


def column_sums(table: NDArray[Any]) -> FloatArray:
    """The sum of each column of a long table with few columns, (K).

    NumPy would go down the rows, a few numbers at a time; columns laid out one after the other are summed several times
    as fast, and in pairs, which rounds less.
    """
    return np.asarray(np.ascontiguousarray(table.T).sum(axis=1))


def log_prior_from_mass(mass: NDArray[Any]) -> NDArray[np.float64]:
    """Log of class shares estimated from summed posteriors, kept away from zero."""
    share = np.maximum(mass / max(float(mass.sum()), TINY), TINY)
    return np.asarray(np.log(share / share.sum()))


def normalise_rows(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Rows that sum to one; a row without any mass becomes uniform."""
    total = scores.sum(axis=1, keepdims=True)
    shares = scores / np.where(total > 0, total, 1.0)
    empty = total[:, 0] <= 0
    if empty.any():
        shares[empty] = 1.0 / max(scores.shape[1], 1)
    return np.asarray(shares)


def first_of_best(scores: NDArray[Any]) -> NDArray[np.int64]:
    """The best column of each row; ties go to the first column, that is the first class in sorted order."""
    if scores.shape[1] == 0:
        return np.zeros(scores.shape[0], dtype=np.int64)
    return np.asarray(scores.argmax(axis=1))


# Cells at a time: the work arrays stay in the cache, whatever the number of tasks.
_CELLS = 1 << 16


def picked(table: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """``table[i, columns[i]]`` for every row i; the rows are numbered a part at a time, not all at once.

    >>> picked(np.array([[1, 2], [3, 4]]), np.array([1, 0])).tolist()
    [2, 3]
    """
    found = np.empty(len(columns), dtype=table.dtype)
    for begin in range(0, len(columns), _CELLS):
        part = columns[begin : begin + _CELLS]
        found[begin : begin + _CELLS] = table[np.arange(begin, begin + len(part)), part]
    return found


class Chooser(Protocol):
    """From the probabilities of some tasks to their classes."""

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks; ``votes`` per task and class are counted only if they are needed."""


@dataclass(frozen=True)
class ByVotes:
    """The most probable class, and the votes where that is too close to tell (see :func:`best_by_votes`)."""

    margin: float

    def codes(self, posterior: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return best_by_votes(posterior, self.margin, votes)


def best_by_votes(
    posterior: NDArray[Any], margin: float, votes: Callable[[], NDArray[np.float64]]
) -> NDArray[np.int64]:
    """The best column of each row; of columns within ``margin`` of it, the one with the most votes.

    ``votes`` is of the shape of ``posterior`` and only counted if there is such a row.
    """
    chosen = first_of_best(posterior)
    if not posterior.size:
        return chosen
    tied = posterior >= posterior.max(axis=1, keepdims=True) - margin
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if rows.size:
        chosen[rows] = first_of_best(np.where(tied[rows], votes()[rows], -1.0))
    return chosen


# Scores this near to each other, relative to the best, are equal.
_TIE = 1e-12


def balanced_codes(
    reported: NDArray[Any],
    votes: NDArray[Any],
    cap: float = 10.0,
    voted_only: bool = True,
    *,
    shares: NDArray[Any] | None = None,
) -> NDArray[np.int64]:
    """Class numbers of tasks by the balanced rule.

    A miss counts as much as the classes are unequal, at most as ``cap`` false alarms::

        label_i = argmax_k  p_ik min(max_l f_l / f_k, cap),      f = mean_i p_i

    among the classes with at least one vote on the item. The most probable class would hardly ever be a rare one;
    dividing by the shares alone would flag everything that a single person once called rare.

    Ties go to the class with more votes, then to the one with the larger share, then to the first. A task none of
    whose voted classes is possible (gold says otherwise, or it has no votes) may get any class.

    Args:
        reported: probability of every class, (n, K).
        votes: votes for every class, (n, K).
        cap: the most that a class counts, at least 1; 1 is the most probable class.
        voted_only: whether only classes with a vote on the task can be its label.
        shares: of the classes, (K); the means of ``reported`` if not given.

    Returns:
        int64 (n).

    Example:
        >>> p = np.array([[0.1, 0.9], [0.3, 0.7], [0.0, 1.0], [0.2, 0.8]])
        >>> balanced_codes(p, np.array([[1, 2], [1, 2], [0, 3], [0, 3]])).tolist()
        [1, 0, 1, 1]
    """
    n_tasks, n_classes = reported.shape
    codes = np.zeros(n_tasks, dtype=np.int64)
    if not n_tasks or not n_classes:
        return codes
    if shares is None:
        shares = reported.mean(axis=0, dtype=np.float64)
    largest = shares.max()
    with np.errstate(divide="ignore"):
        weight = np.where(shares > 0, np.minimum(largest / shares, cap), cap)
    # Classes in the order in which they win a full tie: argmax takes the first.
    order = np.lexsort((np.arange(n_classes), -shares))
    rows = max(_CELLS // n_classes, 1)
    for begin in range(0, n_tasks, rows):
        part = slice(begin, begin + rows)
        score = reported[part] * weight
        counted = np.asarray(votes[part])
        if voted_only:
            possible = np.where(counted > 0, score, 0.0)
            stuck = ~(possible.max(axis=1) > 0)
            possible[stuck] = score[stuck]
            score = possible
        best = score.max(axis=1, keepdims=True)
        tied = (score >= best * (1.0 - _TIE))[:, order]
        codes[part] = order[np.where(tied, counted[:, order], -1).argmax(axis=1)]
    return codes


@dataclass(frozen=True, eq=False)
class ByBalance:
    """The balanced rule with the shares of a whole crowd, for a part of its tasks.

    Attributes:
        cap: as in :func:`balanced_codes`.
        shares: as in :func:`balanced_codes`.
    """

    cap: float
    shares: NDArray[Any]

    def codes(self, reported: NDArray[Any], votes: Callable[[], NDArray[np.float64]]) -> NDArray[np.int64]:
        """Class numbers of tasks."""
        return balanced_codes(reported, votes(), self.cap, shares=self.shares)


# Below this part of an equal share a class is called rare.
_RARE = 0.8


def rare_class(crowd: Annotations, wanted: Any = None) -> int:
    """Number of the class that matters.

    Args:
        crowd: the votes.
        wanted: name of the class, as it is or as text (on a command line every class is text); None for the class with
            the fewest votes among those that have any, the first in sorted order on a tie.

    Raises:
        ParameterError: no class has that name.

    Example:
        >>> crowd = Annotations.from_arrays([1, 1, 2], ["ann", "bob", "ann"], ["sound", "defect", "sound"])
        >>> rare_class(crowd), rare_class(crowd, "sound")
        (0, 1)
    """
    if wanted is not None:
        number = find_name(wanted, crowd.classes)
        if number is None:
            known = some_names(crowd.classes.tolist())
            raise ParameterError(f"rare: no class is called {str(wanted)!r}; the classes are {known}")
        return number
    votes = crowd.class_votes
    return int(np.where(votes > 0, votes, np.iinfo(np.int64).max).argmin())


def is_rare(crowd: Annotations, number: int) -> bool:
    """Whether a class is rare enough to be called so: clearly below an equal share of the votes."""
    votes = crowd.class_votes
    voted = int((votes > 0).sum())
    return bool(voted > 1 and votes[number] < _RARE / voted * crowd.n_annotations)


def with_gold(annotations: Annotations, truth: Mapping[Any, Any]) -> tuple[Annotations, NDArray[np.int32]]:
    """Gold as class numbers per task, and the crowd with any class that only the gold names.

    Gold for tasks without votes is an error if it names no task of the crowd at all, else a warning: it is mostly a
    sign of ids that do not match.
    """
    if not annotations.n_tasks:
        return annotations, np.empty(0, dtype=np.int32)  # nothing was voted on, so nothing is known of it
    known = set(annotations.classes.tolist())
    extra = [name for name in dict.fromkeys(truth.values()) if name not in known]
    if extra:
        warn_user(
            f"gold names classes that nobody voted for: {', '.join(map(repr, extra[:5]))}; they are kept as classes"
        )
        annotations = add_classes(annotations, extra)
    code = {name: k for k, name in enumerate(annotations.classes.tolist())}
    gold = np.full(annotations.n_tasks, -1, dtype=np.int32)
    place = positions_of(annotations.tasks, list(truth))
    absent = [task for task, number in zip(truth, place.tolist(), strict=True) if number < 0]
    if truth and len(absent) == len(truth):
        raise InputError(
            f"none of the {len(truth):,} gold tasks is in the annotations (first: {absent[0]!r}, while the tasks "
            f"look like {annotations.tasks[:1].tolist()[0]!r}): check ids and their types"
        )
    if absent:
        warn_user(f"gold for {len(absent):,} tasks without annotations is left out (first: {absent[0]!r})")
    codes = np.array([code[label] for label in truth.values()], dtype=np.int32)
    gold[place[place >= 0]] = codes[place >= 0]
    return annotations, gold


def gold_codes(annotations: Annotations, gold: Mapping[Any, Any]) -> NDArray[np.int64]:
    """Known class of each task or -1, (n); tasks that are not in the crowd are passed over."""
    known = np.full(annotations.n_tasks, -1, dtype=np.int64)
    if gold:
        place = positions_of(annotations.tasks, list(gold))
        code = {name: k for k, name in enumerate(annotations.classes.tolist())}
        labels = np.array([code[label] for label in gold.values()], dtype=np.int64)
        known[place[place >= 0]] = labels[place >= 0]
    return known


def add_classes(annotations: Annotations, names: Iterable[Any]) -> Annotations:
    """The same crowd with further classes, in sorted order."""
    old = annotations.classes.tolist()
    classes = sort_labels([*old, *names])
    rank = {name: k for k, name in enumerate(classes)}
    renumber = np.array([rank[name] for name in old], dtype=np.uint16)
    label = renumber[annotations.label].astype(annotations.label.dtype if len(classes) <= 256 else np.uint16)
    return Annotations(
        annotations.task_ptr,
        annotations.worker,
        label,
        annotations.tasks,
        annotations.workers,
        as_name_array(classes),
        annotations.abstentions,
        annotations.unanswered,
        annotations.n_dropped,
    )
