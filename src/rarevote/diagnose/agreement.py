"""Agreement of annotators beyond chance: Krippendorff's alpha, kappas, AC1, per class and per pair.

With ``n_ik`` of the ``n_i`` votes on task i for class k, over tasks with at least two votes, raw agreement is the share
of pairs of votes that are equal, averaged over tasks::

    p_a = mean_i sum_k n_ik (n_ik - 1) / (n_i (n_i - 1))

The coefficients differ in how they define chance. With ``s_k`` the mean over all tasks of ``n_ik / n_i``::

    Fleiss' kappa = (p_a - p_e) / (1 - p_e),   p_e = sum_k s_k^2                     (Fleiss 1971)
    AC1           = (p_a - p_e) / (1 - p_e),   p_e = sum_k s_k (1 - s_k) / (K - 1)   (Gwet 2008)

for any number of votes per task; with the same number everywhere, the first is Fleiss' original. Krippendorff's alpha
counts coincidences ``o_ck = sum_i n_ic (n_ik - [c = k]) / (n_i - 1)``, with ``n_c`` their sums and n the sum of all::

    alpha = 1 - (n - 1) sum_ck o_ck d_ck / sum_ck n_c n_k d_ck

where ``d_ck`` is 1 for different classes (nominal), the squared difference of values (interval), or the squared number
of votes that lie between two classes, ``(n_c / 2 + ... + n_k / 2)^2`` (ordinal). Cohen's kappa is that of two workers
on their common tasks; for a crowd, it is the mean over all pairs that have one (Light 1971).

Intervals are from a bootstrap over tasks (95%, 1 000 draws), with at most 2 000 random groups of tasks,
drawn once: a draw needs only sums per group, whatever the number of votes. The mean of Cohen's
kappas is linearised, and the interval of a pair assumes large samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import in_kind, some_names
from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.crowd.steps import doing
from rarevote.diagnose.pairs import AT_ONCE, LastVotes, PairKappas, last_votes, pairs_with_later, pointer_to
from rarevote.errors import ParameterError
from rarevote.io.read.crowd import read_or_empty
from rarevote.io.read.labels import one_problem
from rarevote.io.tables import Table
from rarevote.kernels.plain import runs, sum_by, task_of_votes

Level = Literal["nominal", "ordinal", "interval"]

# Rows of the sums of votes by class; n is the number of votes on a task, n_k that for class k.
_VOTES, _MET, _SHARE, _PAIRED_SHARE, _SAME, _FOLLOWED, _ASKED = range(7)
_N_SUMS = 7

_MAX_GROUPS, _MIN_GROUPS = 2_000, 50
_MAX_CELLS = 20_000_000  # of all groups together
_DRAWS = 1_000
_TAILS = (0.025, 0.975)
# The ordinal distance needs every pair of classes.
_MAX_ORDERED = 1_000

#: the coefficients of a whole crowd, by their field
COEFFICIENTS: Mapping[str, str] = {
    "alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "cohen_kappa": "Cohen's kappa, mean over pairs",
    "ac1": "Gwet's AC1",
    "raw": "raw agreement",
}


@dataclass(frozen=True, eq=False)
class AnnotatorAgreement:
    """How far annotators agree; NaN if undefined (no task has two votes, or there is only one class).

    Attributes:
        alpha: Krippendorff's alpha at ``level``.
        fleiss_kappa: Fleiss' kappa.
        cohen_kappa: mean of Cohen's kappas over the pairs that have one.
        ac1: Gwet's AC1.
        raw: share of pairs of votes on a task that are equal, averaged over tasks.
        per_class: by class: ``votes``, ``share`` of a task's votes, ``raw`` (if one annotator votes so, the share of
            the others on the task who do), ``fleiss_kappa`` and ``alpha`` of the class versus all others, the latter
            with the ends of its interval.
        intervals: both ends by coefficient.
        level: level of measurement of ``alpha``.
        n_tasks: number of tasks with at least two votes.
        n_repeats: number of votes left out because the same worker voted again on the task.
    """

    alpha: float
    fleiss_kappa: float
    cohen_kappa: float
    ac1: float
    raw: float
    per_class: Any
    intervals: dict[str, tuple[float, float]]
    level: Level = "nominal"
    n_tasks: int = 0
    n_repeats: int = 0
    _pairs: Callable[[], Any] = field(default=lambda: None, repr=False)

    @cached_property
    def pairs(self) -> Any:
        """One row per pair of workers with a common task: ``common`` tasks, ``raw``, ``cohen_kappa`` with its interval.

        Computed on first use: sparse crowds have more pairs than votes.
        """
        return self._pairs()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name):.3f}" for name in COEFFICIENTS)
        return f"AnnotatorAgreement({values}, level={self.level!r})"


def agreement(
    data: Any, level: Level = "nominal", order: Sequence[Any] | None = None, **reading: Any
) -> AnnotatorAgreement:
    """Measure how far annotators agree.

    If a worker votes on a task repeatedly, the last vote counts.

    Args:
        data: anything that :func:`rarevote.read` takes.
        level: how alpha treats classes: "nominal" as names, "ordinal" as ranks, "interval" as numbers.
        order: the classes from lowest to highest, if they are not numbers; with "interval", neighbouring classes are
            one apart.
        **reading: how to read the data.

    Raises:
        ParameterError: an unknown level, or classes without an order.

    Example:
        >>> votes = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"),
        ...          ("c", "ann", "yes"), ("c", "bob", "no")]
        >>> agreement(votes)
        AnnotatorAgreement(alpha=0.444, fleiss_kappa=0.333, cohen_kappa=0.400, ac1=0.333, raw=0.667, level='nominal')
    """
    crowd = one_problem(read_or_empty(data, **reading))
    return agreement_of(crowd.annotations, level, order, deliver=crowd.source.deliver)


def agreement_of(
    crowd: Annotations,
    level: Level = "nominal",
    order: Sequence[Any] | None = None,
    *,
    deliver: Any = None,
    most_shared: float = np.inf,
) -> AnnotatorAgreement:
    """:func:`agreement` of an encoded crowd.

    Args:
        deliver: turns tables into the requested type.
        most_shared: with more pairs of votes in total than this, pairs of workers are not computed.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ParameterError(f'level must be "nominal", "ordinal" or "interval", got {level!r}')
    deliver = deliver or (lambda table: table)
    doing("measuring agreement")
    places, values = _scale(crowd.classes, level, order)
    votes = last_votes(crowd.task_ptr, crowd.worker, crowd.label)
    group, n_groups = _groups(crowd, level)
    sums = _Sums.of(votes, group, n_groups, level, places, values)
    size = np.diff(votes.task_ptr)
    is_feasible = (size * (size - 1) // 2).sum() <= most_shared
    met = PairKappas.of(votes, crowd.n_workers, crowd.n_classes) if is_feasible else PairKappas.none(len(size))

    drawn = np.random.default_rng(0).integers(n_groups, size=(_DRAWS, n_groups))
    weights = np.array([np.bincount(row, minlength=n_groups) for row in drawn], dtype=np.float64)
    whole, again = sums.total(), sums.weighted(weights)
    found = {name: float(values[0]) for name, values in whole.coefficients().items()}
    boot = again.coefficients()
    found["cohen_kappa"] = mean_kappa = met.mean_kappa()
    boot["cohen_kappa"] = mean_kappa + weights @ np.bincount(group, met.influence, minlength=n_groups)
    low, high = _ends(again.class_alpha())
    first = {name: array[0] for name, array in whole.per_class().items()}
    per_class = Table({"label": crowd.classes}, {**first, "alpha_low": low, "alpha_high": high})
    return AnnotatorAgreement(
        **found,
        per_class=deliver(per_class),
        intervals={name: tuple(map(float, _ends(boot[name]))) for name in COEFFICIENTS},  # type: ignore[misc]
        level=level,
        n_tasks=int(whole.tasks[0, 1]),
        n_repeats=crowd.n_annotations - votes.worker.size,
        _pairs=lambda: deliver(met.table(crowd.workers)),
    )


def agreement_figures(found: AnnotatorAgreement) -> dict[str, Any]:
    """The agreement as plain values for JSON; null if undefined."""

    def plain(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    return {
        **{name: plain(getattr(found, name)) for name in COEFFICIENTS},
        "intervals": {name: list(map(plain, ends)) for name, ends in found.intervals.items()},
        "level": found.level,
        "n_tasks": found.n_tasks,
        "per_class": {
            str(label): {name: plain(value) for name, value in row.items()}
            for label, row in found.per_class.to_dict().items()
        },
    }


# --------------------------------------------------------------------------------------------------------------------
# ranks and values of classes


def _scale(classes: NDArray[Any], level: Level, order: Sequence[Any] | None) -> tuple[NDArray[np.int64], FloatArray]:
    """Rank and value of every class."""
    names = classes.tolist()
    ranks = np.arange(len(names))
    if order is not None:
        place = {name: rank for rank, name in enumerate(in_kind(order, classes))}
        if lacking := [name for name in names if name not in place]:
            raise ParameterError(
                f"order leaves out {some_names(map(repr, lacking))}: name every class, the lowest first"
            )
        ranks = np.array([place[name] for name in names], dtype=np.int64)
    if level == "nominal":
        return ranks, ranks.astype(np.float64)
    numbers = _as_numbers(names)
    if order is None:
        if numbers is None:
            raise ParameterError(
                f"level {level!r} needs an order, and {some_names(map(repr, names))} are not numbers: give "
                "order=[...], the lowest class first"
            )
        ranks = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    if level == "ordinal" and len(names) > _MAX_ORDERED:
        raise ParameterError(f'{len(names):,} classes are too many ranks: use level="interval"')
    return ranks, ranks.astype(np.float64) if numbers is None else numbers


def _as_numbers(names: list[Any]) -> FloatArray | None:
    try:
        numbers = np.array([float(name) for name in names])
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if np.isfinite(numbers).all() else None


# --------------------------------------------------------------------------------------------------------------------
# sums


def _groups(crowd: Annotations, level: Level) -> tuple[NDArray[np.int64], int]:
    """The group of each task: its own, or a random one, with as many groups as memory allows."""
    cells = crowd.n_classes * (crowd.n_classes if level == "ordinal" else _N_SUMS)
    n_groups = min(max(crowd.n_tasks, 1), int(np.clip(_MAX_CELLS // max(cells, 1), _MIN_GROUPS, _MAX_GROUPS)))
    group = np.arange(crowd.n_tasks)
    if n_groups < crowd.n_tasks:
        group = np.random.default_rng(1).permutation(crowd.n_tasks) % n_groups
    return group, n_groups


@dataclass(frozen=True, eq=False)
class _Sums:
    """The sums behind the coefficients, by group of tasks or by draw of groups (r rows).

    Attributes:
        sums: (r, _N_SUMS, K).
        tasks: (r, 2), number of tasks and of tasks with at least two votes.
        coincidences: ``o_ck``, (r, K, K) in the order of ranks, for the ordinal level; otherwise without rows.
        squares: (r), sum over pairs of votes on a task of the squared difference over ``n_i - 1``, for intervals.
        values: values of the classes, (K).
        level: level of alpha.
    """

    sums: FloatArray
    tasks: FloatArray
    coincidences: FloatArray
    squares: FloatArray
    values: FloatArray
    level: Level

    @classmethod
    def of(
        cls, votes: LastVotes, group: IntArray, n_groups: int, level: Level, places: IntArray, values: FloatArray
    ) -> _Sums:
        size = np.diff(votes.task_ptr)
        tasks = np.stack([sum_by(group, size > least, n_groups) for least in (0, 1)], axis=1)
        rank = places[votes.label] if level == "ordinal" else np.empty(0, dtype=np.int64)
        return cls(
            sums=_class_sums(votes, group, n_groups, len(values)),
            tasks=tasks,
            coincidences=_coincidences(votes.task_ptr, rank, group, n_groups if rank.size else 0, len(values)),
            squares=_squares(votes, group, n_groups, values) if level == "interval" else np.zeros(n_groups),
            values=values,
            level=level,
        )

    def weighted(self, weights: FloatArray) -> _Sums:
        """Sums over groups with these weights, (rows, groups)."""

        def added(array: FloatArray) -> FloatArray:
            if not len(array):
                return array
            return np.asarray(weights @ array.reshape(len(array), -1)).reshape(len(weights), *array.shape[1:])

        return replace(
            self,
            sums=added(self.sums),
            tasks=added(self.tasks),
            coincidences=added(self.coincidences),
            squares=added(self.squares),
        )

    def total(self) -> _Sums:
        """One row: the sum over all groups."""
        return self.weighted(np.ones((1, len(self.sums))))

    def _shares(self) -> FloatArray:
        return _over(self.sums[:, _SHARE], self.tasks[:, :1])

    def coefficients(self) -> dict[str, FloatArray]:
        """All coefficients except Cohen's kappa, (r) each."""
        raw = _over(self.sums[:, _SAME].sum(axis=1), self.tasks[:, 1])
        shares = self._shares()
        by_shares = (shares**2).sum(axis=1)
        by_doubt = _over((shares * (1 - shares)).sum(axis=1), np.float64(shares.shape[1] - 1))
        return {
            "alpha": self._alpha(),
            "fleiss_kappa": _over(raw - by_shares, 1 - by_shares),
            "ac1": _over(raw - by_doubt, 1 - by_doubt),
            "raw": raw,
        }

    def _alpha(self) -> FloatArray:
        votes = self.sums[:, _VOTES]
        n = votes.sum(axis=1)
        if self.level == "nominal":
            observed, expected = n - self.sums[:, _MET].sum(axis=1), n**2 - (votes**2).sum(axis=1)
        elif self.level == "interval":
            values = _centred(self.values)
            observed, expected = self.squares, 2 * (n * (votes @ values**2) - (votes @ values) ** 2)
        else:
            ordered = self.coincidences.sum(axis=2)
            middle = np.cumsum(ordered, axis=1) - ordered / 2  # votes below the middle of a class
            distance = (middle[:, :, None] - middle[:, None, :]) ** 2
            observed = (self.coincidences * distance).sum(axis=(1, 2))
            expected = np.einsum("rc,rk,rck->r", ordered, ordered, distance)
        return 1 - _over((n - 1) * observed, expected)

    def class_alpha(self) -> FloatArray:
        """Alpha of each class versus all others, (r, K)."""
        votes = self.sums[:, _VOTES]
        n = votes.sum(axis=1, keepdims=True)
        return 1 - _over((n - 1) * (votes - self.sums[:, _MET]), votes * (n - votes))

    def per_class(self) -> dict[str, FloatArray]:
        """The columns of the table of classes, (r, K) each."""
        shares = self._shares()
        apart = _over(self.sums[:, _PAIRED_SHARE] - self.sums[:, _SAME], self.tasks[:, 1:])
        return {
            "votes": self.sums[:, _VOTES],
            "share": shares,
            "raw": _over(self.sums[:, _FOLLOWED], self.sums[:, _ASKED]),
            "fleiss_kappa": 1 - _over(apart, shares * (1 - shares)),
            "alpha": self.class_alpha(),
        }


def _class_sums(votes: LastVotes, group: IntArray, n_groups: int, n_classes: int) -> FloatArray:
    """The sums over votes by class and group of tasks."""
    sums = np.zeros((n_groups, _N_SUMS, n_classes))
    for begin, end in runs(votes.task_ptr):
        ptr = votes.task_ptr[begin : end + 1]
        task, label = task_of_votes(ptr), votes.label[ptr[0] : ptr[-1]].astype(np.int64)
        n = np.diff(ptr)[task].astype(np.float64)
        _, same, times = np.unique(task * n_classes + label, return_inverse=True, return_counts=True)
        others, paired, rest = times[same] - 1.0, n > 1.0, np.maximum(n - 1.0, 1.0)
        parts = {
            _VOTES: paired,
            _MET: others / rest,
            _SHARE: 1.0 / n,
            _PAIRED_SHARE: paired / n,
            _SAME: others / (n * rest),
            _FOLLOWED: others,
            _ASKED: n - 1.0,
        }
        cell = group[begin:end][task] * n_classes + label
        for row, part in parts.items():
            sums[:, row] += sum_by(cell, part, n_groups * n_classes).reshape(n_groups, n_classes)
    return sums


def _coincidences(task_ptr: IntArray, rank: IntArray, group: IntArray, n_groups: int, n_classes: int) -> FloatArray:
    """``sum_i n_ic (n_ik - [c = k]) / (n_i - 1)``, (n_groups, K, K), summed over pairs of votes on a task."""
    found = np.zeros((n_groups, n_classes, n_classes))
    size, task = np.diff(task_ptr), task_of_votes(task_ptr)
    end = task_ptr[1:][task]
    for first, last in runs(pointer_to(end - np.arange(len(task)) - 1), AT_ONCE) if n_groups else ():
        one, other = pairs_with_later(np.arange(first, last), end)
        cell = (group[task[one]] * n_classes + rank[one]) * n_classes + rank[other]
        found += sum_by(cell, 1.0 / (size[task[one]] - 1), found.size).reshape(found.shape)
    return found + found.swapaxes(1, 2)


def _squares(votes: LastVotes, group: IntArray, n_groups: int, values: FloatArray) -> FloatArray:
    """Squared differences between the values of every two votes on a task, over ``n_i - 1``, (n_groups)."""
    size, task, value = np.diff(votes.task_ptr), task_of_votes(votes.task_ptr), _centred(values)[votes.label]
    first, second = (sum_by(task, value**power, len(size)) for power in (1, 2))
    spread = 2.0 * (size * second - first**2) / np.maximum(size - 1, 1)
    return sum_by(group, np.where(size > 1, spread, 0.0), n_groups)


def _centred(values: FloatArray) -> FloatArray:
    """The values minus their mean, so that large numbers do not cancel."""
    return values - values.mean() if values.size else values


def _over(top: Any, bottom: Any) -> FloatArray:
    """A quotient; NaN if the denominator is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.asarray(bottom) > 0, top / bottom, np.nan))


def _ends(draws: FloatArray) -> tuple[Any, Any]:
    """Both ends of the central interval of draws along the first axis; NaN if no draw has a value."""
    known = np.isfinite(draws)
    if not known.any():
        return (np.full(draws.shape[1:], np.nan),) * 2
    if known.all():
        low, high = np.quantile(draws, _TAILS, axis=0)
        return low, high
    filled = np.where(known.any(axis=0), np.where(known, draws, np.nan), 0.0)
    low, high = np.nanquantile(filled, _TAILS, axis=0)
    return np.where(known.any(axis=0), low, np.nan), np.where(known.any(axis=0), high, np.nan)
