"""How far annotators agree, beyond chance: Krippendorff's alpha, kappas, AC1, per class and per pair.

With ``n_ik`` of the ``n_i`` votes on task i for class k, over tasks with at least two votes, raw agreement is the share
of pairs of votes that are equal, averaged over tasks::

    p_a = mean_i sum_k n_ik (n_ik - 1) / (n_i (n_i - 1))

Chance is what the coefficients disagree about. With ``s_k`` the mean over all tasks of ``n_ik / n_i``::

    Fleiss' kappa = (p_a - p_e) / (1 - p_e),   p_e = sum_k s_k^2                     (Fleiss 1971)
    AC1           = (p_a - p_e) / (1 - p_e),   p_e = sum_k s_k (1 - s_k) / (K - 1)   (Gwet 2008)

for any number of votes a task; with the same number everywhere the first is Fleiss' own. Krippendorff's alpha counts
coincidences ``o_ck = sum_i n_ic (n_ik - [c = k]) / (n_i - 1)``, with ``n_c`` their sums and n the sum of all::

    alpha = 1 - (n - 1) sum_ck o_ck d_ck / sum_ck n_c n_k d_ck

where ``d_ck`` is 1 for different classes (nominal), the squared difference of values (interval), or the squared number
of votes that lie between two classes, ``(n_c / 2 + ... + n_k / 2)^2`` (ordinal). Cohen's kappa is that of two workers
on their common tasks; of a crowd it is the mean over all pairs that have one (Light 1971).

Intervals are those of the bootstrap over tasks (95%, 1 000 draws), of at most 2 000 groups of tasks drawn at random
once: sums per group are all that a draw needs, whatever the number of votes. The mean of Cohen's
kappas takes part with its linear part, and a pair's interval is that of large samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.names import in_kind, some_names
from rarevote.crowd.numerics import FloatArray
from rarevote.errors import ParameterError
from rarevote.io.read.crowd import read_or_empty
from rarevote.io.tables import Table
from rarevote.kernels.plain import (
    ASKED,
    FOLLOWED,
    MET,
    N_SUMS,
    PAIRED_SHARE,
    SAME,
    SHARE,
    VOTES,
    comparing,
)

Level = Literal["nominal", "ordinal", "interval"]

_MAX_GROUPS, _MIN_GROUPS = 2_000, 50
_MAX_CELLS = 20_000_000  # of all groups together
_DRAWS = 1_000
_TAILS = (0.025, 0.975)
_NORMAL = 1.959963984540054
# Pairs of votes from which on threads are worth their start, and how many share the work.
_PAIRS_WORTH_THREADS = 500_000
_PARTS = 4
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
    """How far annotators agree; NaN where nothing can tell (no task has two votes, or there is one class only).

    Attributes:
        alpha: Krippendorff's alpha at ``level``.
        fleiss_kappa: Fleiss' kappa.
        cohen_kappa: mean of Cohen's kappas over the pairs that have one.
        ac1: Gwet's AC1.
        raw: share of pairs of votes on a task that are equal, averaged over tasks.
        per_class: by class: ``votes``, ``share`` of a task's votes, ``raw`` (where one votes so, the share of
            the others on the task who do), ``fleiss_kappa`` and ``alpha`` of the class against all others, the latter
            with the ends of its interval.
        intervals: both ends by coefficient.
        level: that of ``alpha``.
        n_tasks: tasks with at least two votes.
        n_repeats: votes left out because the same worker voted again on the task.
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
        """By pair of workers that share a task: ``common`` tasks, ``raw``, ``cohen_kappa`` with its interval.

        Put together when it is asked for: sparse crowds have more pairs than votes.
        """
        return self._pairs()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name):.3f}" for name in COEFFICIENTS)
        return f"AnnotatorAgreement({values}, level={self.level!r})"


def agreement(
    data: Any, level: Level = "nominal", order: Sequence[Any] | None = None, **reading: Any
) -> AnnotatorAgreement:
    """Measure how far annotators agree.

    Of repeated votes of a worker on a task the last one counts.

    Args:
        data: whatever :func:`rarevote.read` takes.
        level: what alpha takes classes for: "nominal" names, "ordinal" ranks, "interval" numbers.
        order: the classes from the lowest to the highest, where they are no numbers; with "interval" and names that are
            no numbers, one apart.
        **reading: how to read the data.

    Raises:
        ParameterError: an unknown level, or classes without an order.

    Example:
        >>> votes = [("a", "ann", "yes"), ("a", "bob", "yes"), ("b", "ann", "no"), ("b", "bob", "no"),
        ...          ("c", "ann", "yes"), ("c", "bob", "no")]
        >>> agreement(votes)
        AnnotatorAgreement(alpha=0.444, fleiss_kappa=0.333, cohen_kappa=0.400, ac1=0.333, raw=0.667, level='nominal')
    """
    crowd = read_or_empty(data, **reading)
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
        deliver: turns tables into the kind that is wanted.
        most_shared: with more pairs of votes on a task than this, all together, there are no pairs of workers.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise ParameterError(f'level must be "nominal", "ordinal" or "interval", got {level!r}')
    deliver = deliver or (lambda table: table)
    places, values = _scale(crowd.classes, level, order)
    votes = _Votes.of(crowd)
    group, n_groups = _groups(crowd, level)
    sums = _Sums.of(votes, group, n_groups, level, places, values)
    size = np.diff(votes.task_ptr)
    met = _Pairs.of(votes) if (size * (size - 1) // 2).sum() <= most_shared else _Pairs.none(len(size))

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
        n_repeats=votes.n_repeats,
        _pairs=lambda: deliver(met.table(crowd.workers)),
    )


def agreement_figures(found: AnnotatorAgreement) -> dict[str, Any]:
    """The same as plain values for JSON; null where nothing can tell."""

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
# what classes stand for


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
                f"level {level!r} needs an order, and {some_names(map(repr, names))} are no numbers: give "
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
# votes and sums


@dataclass(frozen=True, eq=False)
class _Votes:
    """The votes of a crowd, one per task and worker."""

    task_ptr: NDArray[np.int64]
    worker: NDArray[Any]
    label: NDArray[Any]
    n_workers: int
    n_classes: int
    n_repeats: int

    @classmethod
    def of(cls, crowd: Annotations) -> _Votes:
        task_ptr, worker, label = crowd.task_ptr, crowd.worker, crowd.label
        kept = np.ones(worker.size, dtype=bool)
        n_repeats = int(comparing(task_ptr, crowd.n_classes).mark_last(task_ptr, worker, crowd.n_workers, kept))
        if n_repeats:
            left = np.concatenate([[0], np.cumsum(kept)])
            task_ptr, worker, label = left[task_ptr], worker[kept], label[kept]
        return cls(task_ptr, worker, label, crowd.n_workers, crowd.n_classes, n_repeats)


def _groups(crowd: Annotations, level: Level) -> tuple[NDArray[np.int64], int]:
    """A group for each task: its own, or one of many drawn at random, as many as memory allows."""
    cells = crowd.n_classes * (crowd.n_classes if level == "ordinal" else N_SUMS)
    n_groups = min(max(crowd.n_tasks, 1), int(np.clip(_MAX_CELLS // max(cells, 1), _MIN_GROUPS, _MAX_GROUPS)))
    group = np.arange(crowd.n_tasks)
    if n_groups < crowd.n_tasks:
        group = np.random.default_rng(1).permutation(crowd.n_tasks) % n_groups
    return group, n_groups


@dataclass(frozen=True, eq=False)
class _Sums:
    """What the coefficients are made of, by group of tasks or by draw of groups (r rows).

    Attributes:
        sums: (r, N_SUMS, K), see :func:`rarevote.kernels.agreement.task_sums`.
        tasks: (r, 2).
        coincidences: (r, K, K) in the order of ranks, for the ordinal level; else of no row.
        squares: (r), sum over pairs of votes on a task of the squared difference over ``n_i - 1``, for intervals.
        values: of the classes, (K).
        level: of alpha.
    """

    sums: FloatArray
    tasks: FloatArray
    coincidences: FloatArray
    squares: FloatArray
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    level: Level = "nominal"

    @classmethod
    def of(
        cls, votes: _Votes, group: NDArray[np.int64], n_groups: int, level: Level, places: Any, values: FloatArray
    ) -> _Sums:
        K = votes.n_classes
        sums, tasks = np.zeros((n_groups, N_SUMS, K)), np.zeros((n_groups, 2))
        coincidences = np.zeros((n_groups if level == "ordinal" else 0, K, K))
        comparing(votes.task_ptr, K).task_sums(votes.task_ptr, votes.label, group, sums, tasks, coincidences)
        if level == "ordinal":
            by_rank = np.argsort(places)
            coincidences = coincidences[:, by_rank][:, :, by_rank]
        squares = np.zeros(n_groups)
        if level == "interval":
            size = np.diff(votes.task_ptr)
            task = np.repeat(np.arange(len(size)), size)
            # Around the mean of all, so that large numbers do not cancel.
            value = (values - values.mean())[votes.label]
            first = np.bincount(task, value, minlength=len(size))
            second = np.bincount(task, value**2, minlength=len(size))
            spread = 2.0 * (size * second - first**2) / np.maximum(size - 1, 1)
            squares[:] = np.bincount(group, np.where(size > 1, spread, 0.0), minlength=n_groups)
        return cls(sums, tasks, coincidences, squares, values, level)

    def weighted(self, weights: FloatArray) -> _Sums:
        """Sums over groups with these weights, (rows, groups)."""

        def added(array: FloatArray) -> FloatArray:
            if not len(array):
                return np.zeros((0, *array.shape[1:]))
            return np.asarray(weights @ array.reshape(len(array), -1)).reshape(len(weights), *array.shape[1:])

        parts = [added(array) for array in (self.sums, self.tasks, self.coincidences, self.squares)]
        return _Sums(parts[0], parts[1], parts[2], parts[3], self.values, self.level)

    def total(self) -> _Sums:
        """One row: the sum over all groups."""
        return self.weighted(np.ones((1, len(self.sums))))

    def _shares(self) -> FloatArray:
        return _over(self.sums[:, SHARE], self.tasks[:, :1])

    def coefficients(self) -> dict[str, FloatArray]:
        """All but Cohen's kappa, (r) each."""
        raw = _over(self.sums[:, SAME].sum(axis=1), self.tasks[:, 1])
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
        votes = self.sums[:, VOTES]
        n = votes.sum(axis=1)
        if self.level == "nominal":
            observed, expected = n - self.sums[:, MET].sum(axis=1), n**2 - (votes**2).sum(axis=1)
        elif self.level == "interval":
            values = self.values - self.values.mean() if len(self.values) else self.values
            observed, expected = self.squares, 2 * (n * (votes @ values**2) - (votes @ values) ** 2)
        else:
            ordered = self.coincidences.sum(axis=2)
            middle = np.cumsum(ordered, axis=1) - ordered / 2  # votes below the middle of a class
            distance = (middle[:, :, None] - middle[:, None, :]) ** 2
            observed = (self.coincidences * distance).sum(axis=(1, 2))
            expected = np.einsum("rc,rk,rck->r", ordered, ordered, distance)
        return 1 - _over((n - 1) * observed, expected)

    def class_alpha(self) -> FloatArray:
        """Alpha of each class against all others, (r, K)."""
        votes = self.sums[:, VOTES]
        n = votes.sum(axis=1, keepdims=True)
        return 1 - _over((n - 1) * (votes - self.sums[:, MET]), votes * (n - votes))

    def per_class(self) -> dict[str, FloatArray]:
        """The columns of the table of classes, (r, K) each."""
        shares = self._shares()
        apart = _over(self.sums[:, PAIRED_SHARE] - self.sums[:, SAME], self.tasks[:, 1:])
        return {
            "votes": self.sums[:, VOTES],
            "share": shares,
            "raw": _over(self.sums[:, FOLLOWED], self.sums[:, ASKED]),
            "fleiss_kappa": 1 - _over(apart, shares * (1 - shares)),
            "alpha": self.class_alpha(),
        }


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Every two workers that share a task.

    Attributes:
        pairs: first worker, second worker, common tasks, equal votes, (p, 4).
        kappa: Cohen's, (p).
        error: its standard error, (p).
        influence: derivative of the mean kappa by the weight of each task, (n).
    """

    pairs: NDArray[np.int32]
    kappa: FloatArray
    error: FloatArray
    influence: FloatArray

    @classmethod
    def of(cls, votes: _Votes) -> _Pairs:
        task_ptr, n_workers = votes.task_ptr, votes.n_workers
        size = np.diff(task_ptr)
        task = np.repeat(np.arange(len(size), dtype=np.int32), size)
        worker, label = votes.worker, votes.label
        if worker.size and not ((worker[1:] > worker[:-1]) | (task[1:] > task[:-1])).all():
            order = np.lexsort((worker, task))
            worker, label = worker[order], label[order]
        own, worker_ptr = np.empty(worker.size, dtype=np.int64), np.zeros(n_workers + 1, dtype=np.int64)
        kernels = comparing(task_ptr, votes.n_classes)
        kernels.by_worker(worker, worker_ptr, own)
        later = np.repeat(task_ptr[1:], size) - np.arange(worker.size) - 1
        met = np.bincount(worker, later, minlength=n_workers).astype(np.int64)

        def part(begin: int, end: int) -> tuple[Any, ...]:
            """Pairs whose first worker is one of these."""
            widest = int(met[begin:end].max(initial=0))
            most = int(np.minimum(met[begin:end], n_workers - 1 - np.arange(begin, end)).sum())
            filled = np.empty((most, 4), dtype=np.int32), np.empty(most), np.empty(most), np.zeros(len(size))
            n = kernels.pair_kappas(
                task_ptr, worker, label, worker_ptr, own, task, begin, end,
                votes.n_classes, min(widest, n_workers), widest, *filled,
            )  # fmt: skip
            return *(array[:n] for array in filled[:3]), filled[3]

        # The same parts on any machine, and their sums in the same order.
        n_parts = _PARTS if met.sum() > _PAIRS_WORTH_THREADS else 1
        edges = np.searchsorted(np.cumsum(met), np.linspace(0, met.sum(), n_parts + 1)[1:-1])
        bounds = [0, *edges.tolist(), n_workers]
        with ThreadPoolExecutor(max_workers=n_parts) as pool:
            made = list(pool.map(part, bounds[:-1], bounds[1:]))
        pairs, kappa, variance = (np.concatenate([one[field] for one in made]) for field in range(3))
        n_counted = max(int(np.isfinite(kappa).sum()), 1)
        return cls(pairs, kappa, np.sqrt(variance), sum(one[3] for one in made) / n_counted)

    @classmethod
    def none(cls, n_tasks: int) -> _Pairs:
        """Of no pair."""
        return cls(np.empty((0, 4), dtype=np.int32), np.empty(0), np.empty(0), np.zeros(n_tasks))

    def mean_kappa(self) -> float:
        """Over the pairs that have one; NaN if none has."""
        counted = np.isfinite(self.kappa)
        return float(self.kappa[counted].mean()) if counted.any() else float("nan")

    def table(self, workers: NDArray[Any]) -> Table:
        """One row per pair."""
        first, second, common, equal = self.pairs.T
        return Table(
            {"worker": workers[first], "other": workers[second]},
            {
                "common": common,
                "raw": equal / np.maximum(common, 1),
                "cohen_kappa": self.kappa,
                "low": np.maximum(self.kappa - _NORMAL * self.error, -1.0),
                "high": np.minimum(self.kappa + _NORMAL * self.error, 1.0),
            },
        )


def _over(top: Any, bottom: Any) -> FloatArray:
    """A quotient; NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(np.asarray(bottom) > 0, top / bottom, np.nan))


def _ends(draws: FloatArray) -> tuple[Any, Any]:
    """Both ends of the central interval of draws along the first axis; NaN where no draw has a value."""
    known = np.isfinite(draws)
    if not known.any():
        return (np.full(draws.shape[1:], np.nan),) * 2
    if known.all():
        low, high = np.quantile(draws, _TAILS, axis=0)
        return low, high
    filled = np.where(known.any(axis=0), np.where(known, draws, np.nan), 0.0)
    low, high = np.nanquantile(filled, _TAILS, axis=0)
    return np.where(known.any(axis=0), low, np.nan), np.where(known.any(axis=0), high, np.nan)
