"""Annotators who make the same mistakes on the same items, and the effective number of independent annotators.

Models of one family, or people who copy, are fewer opinions than votes. With ``e_r`` whether annotator r is
wrong on an item, ``R_ab`` is the correlation of ``e_a`` and ``e_b`` over their common items: wrong by gold if there
is some, otherwise by the votes of all others (without those of a and b). For J annotators::

    effective number of independent annotators = J^2 / sum of the J x J matrix R

Chance, classes that are hard for all, and a reference that is itself a vote make errors correlate slightly. So the
same is computed for simulated annotators who are independent but have the same skills, on the same items. Two are
said to make the same mistakes if their correlation exceeds that by at least 0.2, and by more than any pair of the
simulated ones. Such pairs are merged into clusters as long as the mean excess between two clusters is large (average
linkage).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import numbered
from rarevote.crowd.numerics import FloatArray, IntArray, finite_or_none, row_parts
from rarevote.crowd.steps import steps
from rarevote.crowd.words import count, counted, listed, percent
from rarevote.diagnose.pairs import last_votes, pairs_with_later, pointer_to
from rarevote.kernels.plain import task_of_votes

# With fewer common items, a correlation is not meaningful.
_MIN_COMMON = 20
_MIN_GOLD = 30
_MAX_COMPARED = 200
_MIN_EXCESS = 0.2
# The total number of pairs of votes that are used, and how often independent annotators are simulated.
_MAX_PAIRS = 4_000_000
_MAX_NULLS, _MIN_NULLS = 100, 5
_PAIRS_OF_NULLS = 40_000_000
_TASKS_AT_ONCE = 1_000_000
# As if every annotator had answered this many more items of a class like the average.
_MADE_UP_VOTES = 4.0
# A cluster outvotes the rest if that decides at least this many labels, and this share of them.
_MIN_OUTVOTED, _MANY_OUTVOTED = 3, 0.01


@dataclass(frozen=True, eq=False)
class Cluster:
    """Annotators who make the same mistakes.

    Attributes:
        members: numbers of the annotators in the crowd.
        names: their names.
        n_models: number of models among them.
        correlation: mean correlation of the errors of two of them.
        n_effective: effective number of independent annotators among them.
        n_outvoted: number of items on which they agree and win, but would not with their effective number of votes.
    """

    members: IntArray
    names: list[str]
    n_models: int
    correlation: float
    n_effective: float
    n_outvoted: int

    def figures(self) -> dict[str, Any]:
        """The cluster as plain values for JSON."""
        names = ("n_models", "correlation", "n_effective", "n_outvoted")
        return {"annotators": self.names} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False)
class ErrorsAlike:
    """Which annotators make the same mistakes.

    Attributes:
        workers: numbers of the annotators that are compared, (J).
        names: their names, (J).
        correlation: correlation of errors, (J, J), with ones on the diagonal; NaN if two have too few common items.
        common: number of items on which they are compared, (J, J).
        reference: the reference for errors: "gold" or "others".
        n_items: number of items with a reference.
        clusters: clusters of at least two, the largest first.
        n_effective: effective number of independent annotators; NaN if none can be compared.
        n_tasks: number of tasks of the crowd.
    """

    workers: IntArray
    names: list[str]
    correlation: FloatArray
    common: IntArray
    reference: Literal["gold", "others"]
    n_items: int
    clusters: tuple[Cluster, ...]
    n_effective: float
    n_tasks: int

    @property
    def group(self) -> IntArray:
        """The number of the cluster of each annotator; those in none have their own number, (J)."""
        place = numbered(self.workers.tolist())
        group = np.arange(len(self.workers))
        for cluster in self.clusters:
            inside = [place[worker] for worker in cluster.members.tolist()]
            group[inside] = min(inside)
        return np.unique(group, return_inverse=True)[1]

    def closest(self, most: int) -> list[tuple[str, str, float, int]]:
        """The pairs whose errors correlate most: both names, the correlation, the number of compared items."""
        first, second = np.triu_indices(len(self.names), 1)
        known = np.isfinite(self.correlation[first, second])
        first, second = first[known], second[known]
        order = np.argsort(-self.correlation[first, second], kind="stable")[:most]
        return [
            (self.names[a], self.names[b], float(self.correlation[a, b]), int(self.common[a, b]))
            for a, b in zip(first[order].tolist(), second[order].tolist(), strict=True)
        ]

    @property
    def warnings(self) -> list[str]:
        """Warnings if a few annotators with the same mistakes outvote the rest; usually empty."""
        said = []
        for cluster in self.clusters:
            if cluster.n_outvoted >= max(_MIN_OUTVOTED, _MANY_OUTVOTED * self.n_tasks):
                share = percent(cluster.n_outvoted / self.n_tasks)
                said.append(
                    f"{_who(cluster)} make the same mistakes and outvote all others on "
                    f"{counted(cluster.n_outvoted, 'item')} ({share}): they are {count(len(cluster.names))} votes but "
                    f"only about {cluster.n_effective:.1f} independent opinions. Keep one of them, or give "
                    "gold (--gold) and look at the accuracy of each"
                )
        return said

    def sentences(self) -> list[str]:
        """The results as sentences."""
        if not np.isfinite(self.n_effective):
            return []
        n, by = len(self.workers), "gold" if self.reference == "gold" else "the votes of all others"
        said = [
            f"Judged by {by} on {counted(self.n_items, 'item')}, the {counted(n, 'annotator')} compared amount to "
            f"about {self.n_effective:.1f} independent ones."
        ]
        for cluster in self.clusters:
            said.append(
                f"{_who(cluster)} make the same mistakes: the mean correlation of their errors is "
                f"{cluster.correlation:.2f}, and they amount to about {cluster.n_effective:.1f} independent annotators."
            )
        if not self.clusters:
            said.append(
                "No two annotators make the same mistakes more often than independent ones of their skills would."
            )
        return said

    def figures(self) -> dict[str, Any]:
        """The results as plain values for JSON."""
        return {
            "reference": self.reference,
            "n_items": self.n_items,
            "n_compared": len(self.workers),
            "n_effective": finite_or_none(self.n_effective),
            "annotators": self.names,
            "correlation": [
                [None if np.isnan(value) else round(value, 4) for value in row] for row in self.correlation
            ],
            "clusters": [cluster.figures() for cluster in self.clusters],
            "warnings": self.warnings,
        }


def _who(cluster: Cluster) -> str:
    models = "" if not cluster.n_models else f" ({count(cluster.n_models)} of them models)"
    if cluster.n_models == len(cluster.names):
        models = " (all models)"
    return listed(cluster.names, limit=6) + models


def errors_alike(
    crowd: Annotations,
    *,
    gold: IntArray | None = None,
    models: Iterable[Any] = (),
) -> ErrorsAlike:
    """Find annotators who make the same mistakes.

    Args:
        crowd: the votes.
        gold: known class of each task or -1, (n_tasks); fewer than 30 known tasks are too few to be used.
        models: names of the workers that are models.
    """
    known = np.full(crowd.n_tasks, -1) if gold is None else np.asarray(gold, dtype=np.int64)
    by_gold = int((known >= 0).sum()) >= _MIN_GOLD
    compared = _Compared.of(crowd, known >= 0 if by_gold else np.ones(crowd.n_tasks, dtype=bool))
    references = known[compared.tasks] if by_gold else np.empty(0, dtype=np.int64)
    found, common = compared.correlation(references)
    null, highest = _of_independent(compared, references)
    excess = found - null
    # With gold, errors are exact; with votes as the reference, only the excess over the reference's own errors counts.
    correlation = found if by_gold else np.clip(excess, -1.0, 1.0)
    np.fill_diagonal(correlation, 1.0)
    groups = _linked(excess, common, highest)
    named = [str(name) for name in crowd.workers[compared.workers].tolist()]
    of_models = {str(name) for name in models}
    clusters = []
    for inside in groups:
        members = compared.workers[inside]
        names = [named[j] for j in inside]
        part = correlation[np.ix_(inside, inside)]
        clusters.append(
            Cluster(
                members=members,
                names=names,
                n_models=sum(name in of_models for name in names),
                correlation=_mean_between(part),
                n_effective=effective_number(part),
                n_outvoted=_outvoted(crowd, members, effective_number(part)),
            )
        )
    return ErrorsAlike(
        workers=compared.workers,
        names=named,
        correlation=correlation,
        common=common,
        reference="gold" if by_gold else "others",
        n_items=len(compared.tasks),
        clusters=tuple(sorted(clusters, key=lambda cluster: -len(cluster.names))),
        n_effective=effective_number(correlation),
        n_tasks=crowd.n_tasks,
    )


def effective_number(correlation: FloatArray) -> float:
    """``J^2 / sum of the matrix``, 1 to J; pairs that cannot be compared count as the mean of the others.

    >>> effective_number(np.array([[1.0, 0.5], [0.5, 1.0]])).__round__(3)
    1.333
    """
    n = len(correlation)
    mean = _mean_between(correlation)
    if n < 2 or np.isnan(mean):
        return float("nan")
    total = n + n * (n - 1) * mean
    return float(np.clip(n**2 / total, 1.0, n)) if total > 0 else float(n)


def _mean_between(correlation: FloatArray) -> float:
    off = correlation[~np.eye(len(correlation), dtype=bool)]
    known = off[np.isfinite(off)]
    return float(known.mean()) if known.size else float("nan")


# --------------------------------------------------------------------------------------------------------------------
# correlations


@dataclass(frozen=True, eq=False)
class _Compared:
    """Votes on some tasks of a crowd, only the last of each worker on a task, and the workers to compare.

    Attributes:
        task_ptr: where the votes of each task begin.
        worker: worker of each vote.
        label: label of each vote.
        tasks: numbers of these tasks in the crowd.
        workers: numbers of the workers, (J).
        n_classes: number of classes of the crowd.
        n_all: number of workers of the crowd.
    """

    task_ptr: IntArray
    worker: IntArray
    label: IntArray
    tasks: IntArray
    workers: IntArray
    n_classes: int
    n_all: int

    @classmethod
    def of(cls, crowd: Annotations, wanted: NDArray[np.bool_]) -> _Compared:
        """Only these tasks, or a part of them if there are very many, and the workers with the most votes on them."""
        sizes = np.diff(crowd.task_ptr)
        n_pairs = sum(_n_pairs(sizes[part][wanted[part]]) for part in row_parts(len(sizes)))
        chosen = np.flatnonzero(wanted & (sizes > 1))
        share = _MAX_PAIRS / max(n_pairs, 1)
        if share < 1:
            chosen = np.sort(np.random.default_rng(0).permutation(chosen)[: max(int(share * len(chosen)), 1)])
        size = sizes[chosen]
        del sizes
        task_ptr = pointer_to(size)
        place = np.repeat(crowd.task_ptr[chosen] - task_ptr[:-1], size) + np.arange(task_ptr[-1])
        task_ptr, worker, label = last_votes(
            task_ptr, crowd.worker[place].astype(np.int64), crowd.label[place].astype(np.int64)
        )
        n_votes = np.bincount(worker, minlength=crowd.n_workers)
        busiest = np.argsort(-n_votes, kind="stable")[:_MAX_COMPARED]
        workers = np.sort(busiest[n_votes[busiest] >= _MIN_COMMON])
        return cls(task_ptr, worker, label, chosen, workers, crowd.n_classes, crowd.n_workers)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Votes of every two compared workers on a task, and the index of the pair in a table (J, J)."""
        slots = np.full(self.n_all, -1, dtype=np.int64)
        slots[self.workers] = np.arange(len(self.workers))
        slot = slots[self.worker]
        place = np.flatnonzero(slot >= 0)
        task_ptr = pointer_to(slot >= 0)[self.task_ptr]
        end = np.repeat(task_ptr[1:], np.diff(task_ptr))
        one, other = (place[votes] for votes in pairs_with_later(np.arange(len(place)), end))
        in_order = slot[one] < slot[other]
        first, second = np.where(in_order, one, other), np.where(in_order, other, one)
        return first, second, slot[first] * len(self.workers) + slot[second]

    def correlation(self, known: IntArray, label: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Correlation of errors and the number of common tasks of every two, (J, J) each.

        An error is a vote that differs from the known class of the task. If no class is known, it is a vote that
        differs from the class that most others (not of the pair) voted for; if there is no single such class,
        the task does not count for the pair.
        """
        votes = self.label if label is None else label
        a, b, cell = self._pairs
        task = task_of_votes(self.task_ptr)
        if len(known):
            wrong = (votes != known[task]).astype(np.int64)
            outcome = 2 * wrong[a] + wrong[b]
        else:
            gaps, place = _standing(task, votes, len(self.task_ptr) - 1, self.n_classes)
            outcome = _outcomes()[(16 * gaps[task] + 4 * place)[a] + place[b]]
        J = len(self.workers)
        times = np.bincount(5 * cell + outcome, minlength=5 * J * J).reshape(J, J, 5).astype(np.float64)
        n, first, second, both = (
            times[..., :4].sum(axis=2),
            times[..., 2:4].sum(axis=2),
            times[..., 1:4:2].sum(axis=2),
            times[..., 3],
        )
        spread = np.sqrt(first * (n - first) * second * (n - second))
        with np.errstate(divide="ignore", invalid="ignore"):
            # An annotator without errors shares none.
            upper = np.where(n < _MIN_COMMON, np.nan, np.where(spread > 0, (n * both - first * second) / spread, 0.0))
        lower = np.tril_indices(len(upper), -1)
        upper[lower], n[lower] = upper.T[lower], n.T[lower]
        return upper, n.astype(np.int64)


def _standing(task: IntArray, label: IntArray, n_tasks: int, n_classes: int) -> tuple[IntArray, IntArray]:
    """The standing of the votes on tasks, as far as removing two votes can change which class leads.

    Returns:
        For each task, the leads of the first class over the second, of that over the third, of that over the fourth,
        0 to 3 each, as digits of a number to the base of 4. For each vote, whether its class is the first (0), second
        (1) or third (2) of its task, or a lower one (3).
    """
    width = max(n_classes, 4)
    cell = label * n_tasks + task
    counts = np.bincount(cell, minlength=n_tasks * width).reshape(width, n_tasks)
    first, second, third, fourth = _largest_four(counts * width + np.arange(width)[:, None])
    place = np.full(n_tasks * width, 3)
    tasks = np.arange(n_tasks)
    for number, one in enumerate((first, second, third)):
        place[one % width * n_tasks + tasks] = number
    votes = [one // width for one in (first, second, third, fourth)]
    leads = [np.minimum(one - other, 3) for one, other in pairwise(votes)]
    return 16 * leads[0] + 4 * leads[1] + leads[2], place[cell]


def _largest_four(rows: IntArray) -> list[IntArray]:
    """The four largest entries of each column, the largest first."""
    if len(rows) > 4:
        rows = np.ascontiguousarray(np.partition(np.ascontiguousarray(rows.T), len(rows) - 4, axis=1)[:, -4:].T)
    a, b, c, d = rows
    # A sorting network that compares whole rows at a time.
    a, b = np.maximum(a, b), np.minimum(a, b)
    c, d = np.maximum(c, d), np.minimum(c, d)
    a, c = np.maximum(a, c), np.minimum(a, c)
    b, d = np.maximum(b, d), np.minimum(b, d)
    b, c = np.maximum(b, c), np.minimum(b, c)
    return [a, b, c, d]


@cache
def _outcomes() -> IntArray:
    """Whether two votes are right by the class that leads without them, for every standing and rank of both votes.

    After removing two votes, only the first three classes can lead alone, and a lead of three or more is safe.

    Returns:
        0 if both are right, 1 if the second is wrong, 2 if the first is, 3 if both are, 4 if no single class leads.
    """
    *gaps, one, other = np.indices((4,) * 5).reshape(5, -1)
    votes = np.stack([sum(gaps), gaps[1] + gaps[2], gaps[2], np.zeros_like(one)])
    places = np.arange(4)[:, None]
    left = votes - (places == one) - (places == other)
    leader, is_single = left.argmax(axis=0), (left == left.max(axis=0)).sum(axis=0) == 1
    return np.where(is_single, 2 * (one != leader) + (other != leader), 4)


def _of_independent(compared: _Compared, known: IntArray) -> tuple[FloatArray, float]:
    """Mean correlation of simulated independent workers, (J, J), and the largest deviation, in standard errors.

    Their skills are those of the real ones: shares of each class recognised, by gold or by the votes of all others.
    With gold, the classes are known; otherwise they are drawn from the shares of the votes.
    """
    size = np.diff(compared.task_ptr)
    task = np.repeat(np.arange(len(size)), size)
    worker, label, K = compared.worker, compared.label, compared.n_classes
    votes = np.bincount(task * K + label, minlength=len(size) * K).reshape(-1, K)
    if len(known):
        reference, told = known[task], np.ones(len(task), dtype=bool)
    else:
        rest = votes[task]
        rest[np.arange(len(task)), label] -= 1
        reference = rest.argmax(axis=1)
        told = (rest == rest.max(axis=1, keepdims=True)).sum(axis=1) == 1
    cell = worker * K + reference
    seen = np.bincount(cell[told], minlength=compared.n_all * K).reshape(-1, K)
    right = np.bincount(cell[told & (label == reference)], minlength=compared.n_all * K).reshape(-1, K)
    everybody = (right.sum(axis=0) + 1) / (seen.sum(axis=0) + 2)
    accuracy = (right + _MADE_UP_VOTES * everybody) / (seen + _MADE_UP_VOTES)
    n_pairs = max(int((size * (size - 1) // 2).sum()), 1)
    rng = np.random.default_rng(0)
    below = np.ascontiguousarray((votes / np.maximum(size, 1)[:, None]).cumsum(axis=1).T)
    of_worker, flat = worker * K, accuracy.ravel()
    drawn = []
    n_drawn = int(np.clip(_PAIRS_OF_NULLS // n_pairs, _MIN_NULLS, _MAX_NULLS))
    for _ in steps("comparing the errors of annotators", range(n_drawn)):
        truth = known
        if not len(known):
            truth = np.minimum((below < rng.random(len(size))).sum(axis=0), K - 1)
        z = np.repeat(truth, size)
        is_right = rng.random(len(worker)) < flat.take(of_worker + z)
        other = rng.integers(max(K - 1, 1), size=len(worker))
        wrong = np.minimum(other + (other >= z), K - 1)
        made, common = compared.correlation(known, np.where(is_right, z, wrong))
        drawn.append(made)
    null = np.mean(drawn, axis=0)
    apart = (np.array(drawn) - null) * np.sqrt(common)
    return null, float(np.nanmax(apart, initial=0.0))


def _linked(excess: FloatArray, common: IntArray, highest: float) -> list[IntArray]:
    """Average linkage: join the two clusters with the largest mean excess, while it is large and significant."""
    known = np.isfinite(excess)
    sums, pairs = np.where(known, excess, 0.0), known.astype(np.float64)
    error = np.where(known, 1 / np.sqrt(np.maximum(common, 1)), 0.0)  # summed likewise: many pairs are no advantage
    for table in (sums, pairs, error):
        np.fill_diagonal(table, 0.0)
    groups = [[j] for j in range(len(excess))]
    while len(groups) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(pairs > 0, sums / pairs, -np.inf)
            bar = np.where(pairs > 0, np.maximum(_MIN_EXCESS, highest * error / pairs), np.inf)
        mean = np.where(mean > bar, mean, -np.inf)
        a, b = sorted(np.unravel_index(int(mean.argmax()), mean.shape))
        if not np.isfinite(mean[a, b]):
            break
        for table in (sums, pairs, error):
            table[a] += table[b]
            table[:, a] += table[:, b]
            table[a, a] = 0.0
        sums, pairs, error = (np.delete(np.delete(table, b, 0), b, 1) for table in (sums, pairs, error))
        groups[a] += groups.pop(b)
    return [np.array(sorted(group)) for group in groups if len(group) > 1]


def _n_pairs(sizes: IntArray) -> int:
    """Number of pairs of votes on tasks with these numbers of votes."""
    return int((sizes * (sizes - 1) // 2).sum())


def _outvoted(crowd: Annotations, members: IntArray, n_effective: float) -> int:
    """Number of items that the members decide by number: they agree and win, but not with their effective votes."""
    is_member = np.zeros(crowd.n_workers, dtype=bool)
    is_member[members] = True
    K, found = crowd.n_classes, 0
    for first in range(0, crowd.n_tasks, _TASKS_AT_ONCE):
        pointer = crowd.task_ptr[first : first + _TASKS_AT_ONCE + 1]
        votes = slice(pointer[0], pointer[-1])
        row = np.repeat(np.arange(len(pointer) - 1), np.diff(pointer))
        cell, inside = row * K + crowd.label[votes], is_member[crowd.worker[votes]]
        shape = (len(pointer) - 1, K)
        every = np.bincount(cell, minlength=shape[0] * K).reshape(shape)
        theirs = np.bincount(cell[inside], minlength=shape[0] * K).reshape(shape)
        rest, number = every - theirs, theirs.sum(axis=1)
        rows, said = np.arange(shape[0]), theirs.argmax(axis=1)
        agree = (number > 1) & (theirs[rows, said] == number)
        wins = every.argmax(axis=1) == said
        loses_alone = rest[rows, said] + np.minimum(n_effective, number) < rest.max(axis=1)
        found += int((agree & wins & loses_alone).sum())
    return found
