"""What every method promises, as properties of generated crowds: written once, for the suite and for the benchmark.

A property takes a :class:`Case` (a method and a crowd) and returns by how much it is broken: 0 for not at all, and
nothing at all (None) where it promises nothing of such a crowd. :data:`PROPERTIES` says how much may be rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import rarevote
from rarevote.crowd.grades import MIN_GRADES
from rarevote.em import local
from rarevote.kernels import plain
from rarevote.methods.base import Estimator
from tests.methods.crowds import Rows, columns
from tests.tables import MethodRow

SILENT = "skipped"  # the answer that is no vote
# Properties hold after any number of iterations, and after few of them rounding has not been magnified yet.
N_ITER = 6


@dataclass(frozen=True)
class Crowd:
    """Votes by name, the truth that they were drawn from, and gold for some tasks."""

    rows: Rows
    truth: dict[str, str]
    gold: dict[str, str]

    @property
    def classes(self) -> list[str]:
        return sorted({label for _, _, label in self.rows} | set(self.gold.values()))

    def renamed(self, place: int, names: dict[str, str]) -> Crowd:
        """Tasks (0), workers (1) or classes (2) with other names."""

        def changed(entry: tuple[str, str, str]) -> tuple[str, str, str]:
            return tuple(names[name] if at == place else name for at, name in enumerate(entry))  # type: ignore[return-value]

        def of_gold(known: dict[str, str]) -> dict[str, str]:
            task, label = (names if place == at else {} for at in (0, 2))
            return {task.get(t, t): label.get(y, y) for t, y in known.items()}

        return Crowd([changed(entry) for entry in self.rows], of_gold(self.truth), of_gold(self.gold))


class Size(NamedTuple):
    """How many tasks, workers and classes a drawn crowd has: from, and to."""

    tasks: tuple[int, int] = (1, 24)
    workers: tuple[int, int] = (1, 8)
    classes: tuple[int, int] = (2, 5)


SMALL = Size()


def draw_crowd(seed: int, *, binary: bool = False, size: Size = SMALL) -> Crowd:
    """A crowd of any kind: sparse or full, able or adverse, with rare classes, repeated votes, gold, or not."""
    rng = np.random.default_rng(seed)
    n_tasks, n_workers = (int(rng.integers(low, high + 1)) for low, high in (size.tasks, size.workers))
    names = "abcdefgh"[: 2 if binary else int(rng.integers(size.classes[0], size.classes[1] + 1))]
    shares = rng.dirichlet(np.full(len(names), rng.choice([0.3, 1.0, 10.0])))
    right, wrong = rng.choice([[4.0, 1.0], [2.0, 2.0], [9.0, 1.0], [1.0, 3.0]]).tolist()
    ability = rng.beta(right, wrong, n_workers)
    habit = rng.dirichlet(np.full(len(names), 0.7), n_workers)
    truth = {f"t{i:02d}": names[rng.choice(len(names), p=shares)] for i in range(n_tasks)}
    density = rng.choice([0.15, 0.5, 1.0])
    repeats = 0.2 if rng.random() < 0.25 else 0.0
    rows: Rows = []
    for task, label in truth.items():
        voting = np.flatnonzero(rng.random(n_workers) < density)
        for r in voting if len(voting) else [int(rng.integers(n_workers))]:
            for _ in range(1 + int(rng.random() < repeats)):
                is_right = rng.random() < ability[r]
                rows.append((task, f"w{r}", label if is_right else names[rng.choice(len(names), p=habit[r])]))
    order = rng.permutation(len(rows))
    known = [task for task in truth if rng.random() < rng.choice([0.0, 0.0, 0.4])]
    return Crowd([rows[i] for i in order], truth, {task: truth[task] for task in known})


@dataclass(frozen=True, eq=False)
class Case:
    """A method, a crowd, and the dice for what is done to it."""

    row: MethodRow
    crowd: Crowd
    rng: np.random.Generator = field(repr=False)

    @classmethod
    def drawn(cls, row: MethodRow, seed: int, **options: Any) -> Case:
        """The case of a number."""
        crowd = draw_crowd(seed, binary=row.binary, **options)
        if not row.make().capabilities.gold:
            crowd = replace(crowd, gold={})
        elif row.needs_gold and not crowd.gold:
            crowd = replace(crowd, gold=dict(list(crowd.truth.items())[:3]))
        if row.binary and len(crowd.classes) > 2:
            crowd = replace(crowd, gold={})
        return cls(row, crowd, np.random.default_rng(seed))

    def made(self, classes: dict[str, str] | None = None, **parameters: Any) -> Estimator:
        """The method; where the vectors of the classes are drawn, each class keeps its own under its new name."""
        method = self.row.make()
        wanted = {"n_iter": N_ITER, **parameters}
        method.set_params(**{name: value for name, value in wanted.items() if name in method.get_params()})
        if self.row.make().capabilities.ordered:
            order = method.get_params()["ordered"]
            if not set(self.crowd.classes) <= set(order):
                order = self.crowd.classes
            method.set_params(ordered=list(dict.fromkeys((classes or {}).get(name, name) for name in order)))
        if self.row.name == "crowdfm":
            own = {new: old for old, new in (classes or {name: name for name in self.crowd.classes}).items()}
            method.set_params(option_vectors=np.array([_vector(own[name]) for name in sorted(own)]))
        return method

    def fitted(self, crowd: Crowd | None = None, method: Estimator | None = None, **options: Any) -> Estimator:
        """The method after its fit."""
        crowd, method = crowd or self.crowd, method or self.made()
        gold = (crowd.gold,) if crowd.gold else ()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return method.fit(columns(crowd.rows), *gold, **options)

    @cached_property
    def plain_fit(self) -> Estimator:
        """The fit that the others are compared with."""
        return self.fitted()

    @property
    def table(self) -> dict[tuple[Any, Any], float]:
        """Its probabilities."""
        return table(self.plain_fit)

    def tied(self) -> bool:
        """Whether a decision inside the method may fall at a tie, which goes by the order of the class names."""
        if not self.row.sees_ties:
            return False
        counted = replace(self.crowd, gold={})
        # For some methods the last of repeated answers counts, for others all of them.
        return any(
            _has_ties(self.fitted(counted, rarevote.MajorityVote(), keep=keep).annotations_.votes())
            for keep in ("all", "last")
        )


def _has_ties(votes: NDArray[np.float64]) -> bool:
    """Whether a task has two classes with the most votes, or two classes have as many votes in all."""
    best = votes == votes.max(axis=1, keepdims=True)
    of_class = votes.sum(axis=0).tolist()
    return bool((best.sum(axis=1) > 1).any() or len(set(of_class)) < len(of_class))


def _vector(name: str) -> NDArray[np.float64]:
    return np.random.default_rng(ord(name)).normal(size=32)


def table(model: Estimator) -> dict[tuple[Any, Any], float]:
    """Probability by task and class."""
    crowd = model.annotations_
    tasks, classes = crowd.task_names().tolist(), crowd.classes.tolist()
    return {(t, y): float(model.posterior_[i, k]) for i, t in enumerate(tasks) for k, y in enumerate(classes)}


def apart(first: dict[tuple[Any, Any], float], second: dict[tuple[Any, Any], float]) -> float:
    """The largest difference of a probability that both tables have; those of the first must all be there."""
    return max((abs(value - second[key]) for key, value in first.items()), default=0.0)


# --------------------------------------------------------------------------------------------------------------------
# the properties


def finite(case: Case) -> float:
    posterior = case.plain_fit.posterior_
    return float(not np.isfinite(posterior).all()) + float(np.maximum(-posterior, 0).max(initial=0.0))


def sums_to_one(case: Case) -> float:
    return float(np.abs(case.plain_fit.posterior_.sum(axis=1) - 1).max(initial=0.0))


def _permuted(case: Case, place: int) -> float:
    names = sorted({entry[place] for entry in case.crowd.rows} | (set(case.crowd.classes) if place == 2 else set()))
    other = dict(zip(names, case.rng.permutation(names).tolist(), strict=True))
    one = case.table
    method = case.made(other if place == 2 else None)
    two = table(case.fitted(case.crowd.renamed(place, other), method))
    task, label = (other if place == at else {} for at in (0, 2))
    return apart({(task.get(t, t), label.get(y, y)): value for (t, y), value in one.items()}, two)


def tasks_permuted(case: Case) -> float | None:
    return None if case.row.drawn_start else _permuted(case, 0)


def workers_permuted(case: Case) -> float | None:
    return None if case.row.drawn_start else _permuted(case, 1)


def classes_permuted(case: Case) -> float | None:
    return None if case.row.drawn_start or case.tied() else _permuted(case, 2)


def renamed(case: Case) -> float:
    """Other names in the same order: nothing at all may change."""
    crowd = case.crowd
    for place in range(3):
        names = {name for entry in crowd.rows for name in [entry[place]]} | (
            set(crowd.classes) if place == 2 else set()
        )
        names |= set(crowd.truth) if place == 0 else set(crowd.truth.values()) if place == 2 else set()
        crowd = crowd.renamed(place, {name: f"{name}-é" for name in names})
    one = case.table
    two = table(case.fitted(crowd, case.made({name: f"{name}-é" for name in case.crowd.classes})))
    return apart({(f"{t}-é", f"{y}-é"): value for (t, y), value in one.items()}, two)


def rows_shuffled(case: Case) -> float:
    """Repeated answers of a worker to a task keep their order: for some methods the last one counts."""
    pairs = list(dict.fromkeys((task, worker) for task, worker, _ in case.crowd.rows))
    place = dict(zip(pairs, case.rng.permutation(len(pairs)).tolist(), strict=True))
    other = sorted(case.crowd.rows, key=lambda entry: place[entry[:2]])
    return apart(case.table, table(case.fitted(replace(case.crowd, rows=other))))


def silence_is_nothing(case: Case) -> float:
    """A worker who never votes and a task that nobody votes on."""
    task, worker, _ = case.crowd.rows[0]
    more: Rows = [(task, "w~", SILENT), ("t~", worker, SILENT), ("t!", "w~", SILENT)]
    rows = [*more[:1], *case.crowd.rows, *more[1:]]
    one = case.table
    two = table(case.fitted(replace(case.crowd, rows=rows), abstain=[SILENT]))
    return apart(one, two) + float(set(one) != set(two))


def empty_class_is_nothing(case: Case) -> float | None:
    """A class that nobody voted for and no gold names."""
    if case.row.binary or case.row.counts_classes:
        return None
    classes = [*case.crowd.classes, "z"]
    two = case.fitted(method=case.made({name: name for name in classes}), classes=classes)
    assert two.classes_.tolist()[-1] == "z"
    return max(apart(case.table, table(two)), float(two.posterior_[:, -1].max(initial=0.0)))


def copies_agree(case: Case) -> float | None:
    """Tasks with the same votes of the same workers get the same probabilities."""
    if case.row.drawn_start:
        return None
    copies = [(f"{task}-copy", worker, label) for task, worker, label in case.crowd.rows]
    crowd = replace(case.crowd, rows=[*case.crowd.rows, *copies])
    crowd = replace(crowd, gold={**crowd.gold, **{f"{task}-copy": label for task, label in crowd.gold.items()}})
    found = table(case.fitted(crowd))
    return max(abs(found[t, y] - found[f"{t}-copy", y]) for t, y in found if not t.endswith("-copy"))


def objective_never_falls(case: Case) -> float | None:
    if case.row.climbs is None:
        return None
    climbed = np.array(case.row.climbs(case.fitted(method=case.made(n_iter=25))))
    return float(np.maximum(-np.diff(climbed) / (1 + np.abs(climbed[:-1])), 0.0).max(initial=0.0))


def same_seed_same_bits(case: Case) -> float:
    return apart(case.table, table(case.fitted()))


@contextmanager
def small_shards() -> Iterator[None]:
    """Shards of a dozen votes, so that threads have something to share."""
    with patch.object(local, "_ANNOTATIONS_PER_SHARD", 12):
        yield


def threads_same_bits(case: Case) -> float | None:
    if "n_jobs" not in case.row.make().get_params():
        return None
    with small_shards():
        one, three = (table(case.fitted(method=case.made(n_jobs=number))) for number in (1, 3))
    return apart(one, three)


def compiled_is_plain(case: Case) -> float:
    one = case.table
    with patch.object(plain, "MAX_PLAIN_CELLS", -1):
        return apart(one, table(case.fitted()))


def gold_respected(case: Case) -> float | None:
    if not case.row.make().capabilities.gold:
        return None
    # One that is wrong, whatever the votes say.
    task = case.crowd.rows[0][0]
    wrong = {task: case.crowd.classes[int(case.rng.integers(len(case.crowd.classes)))]}
    crowd = replace(case.crowd, gold={**case.crowd.gold, **wrong})
    found = table(case.fitted(crowd))
    return max(1.0 - found[t, y] for t, y in crowd.gold.items() if (t, y) in found)


def decided_among_votes(case: Case) -> float:
    """The decision is a class that somebody voted for on the task, or gold; a grade lies between two such."""
    crowd = case.crowd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rarevote.fit(columns(crowd.rows), case.made(), gold=crowd.gold or None).decide()
    voted = {(task, label) for task, _, label in crowd.rows} | set(crowd.gold.items())
    if case.row.make().capabilities.ordered:
        of_task: dict[str, list[str]] = {}
        for task, label in voted - set(crowd.gold.items()):
            of_task.setdefault(task, []).append(label)
        voted |= {(t, y) for t, labels in of_task.items() for y in crowd.classes if min(labels) <= y <= max(labels)}
    decided = zip(result.fitted.annotations.task_names().tolist(), result.labels.tolist(), strict=True)
    return float(sum(entry not in voted for entry in decided))


def too_few_grades(case: Case) -> bool:
    """Whether the method needs an order and the crowd has too few grades for one: dask refuses such a crowd."""
    grades = case.made().grades if case.row.make().capabilities.ordered else None
    return grades is not None and len(grades.met(np.array(case.crowd.classes))) < MIN_GRADES


def local_is_dask(case: Case, client: Any, folder: Path) -> float | None:
    """Where the method runs on dask, the same probabilities and posteriors come from there."""
    import pandas

    from rarevote.cluster.fit import Dask

    if not case.row.make().capabilities.dask or too_few_grades(case):
        return None
    votes = folder / "votes.parquet"
    pandas.DataFrame(case.crowd.rows, columns=["task", "worker", "label"]).to_parquet(votes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Dask(folder / "out", client=client, n_shards=3).fit(
            case.made(), votes, case.crowd.gold or None, with_posterior=True
        )
    found = pandas.read_parquet(folder / "out" / "tasks").set_index("task")
    crowd = case.plain_fit.annotations_
    rows = found.loc[crowd.tasks.tolist()]
    return max(
        float(np.abs(rows[[f"{column}:{name}" for name in crowd.classes]].to_numpy() - array).max(initial=0.0))
        for column, array in (("p", case.plain_fit.reported_), ("posterior", case.plain_fit.posterior_))
    )


class Property(NamedTuple):
    """A property and how much of a difference is rounding."""

    check: Callable[[Case], float | None]
    tolerance: float = 0.0


_ROUNDING = 1e-7
DASK_TOLERANCE = 1e-8
PROPERTIES = {
    entry.check.__name__: entry
    for entry in (
        Property(finite),
        Property(sums_to_one, 1e-9),
        Property(tasks_permuted, _ROUNDING),
        Property(workers_permuted, _ROUNDING),
        Property(classes_permuted, _ROUNDING),
        Property(renamed),
        Property(rows_shuffled, _ROUNDING),
        Property(silence_is_nothing),
        Property(empty_class_is_nothing, _ROUNDING),
        Property(copies_agree, _ROUNDING),
        Property(objective_never_falls, 1e-9),
        Property(same_seed_same_bits),
        Property(threads_same_bits),
        Property(compiled_is_plain, 1e-6),
        Property(gold_respected, 1e-15),  # 1 less the last bit, where a class is summed over nodes
        Property(decided_among_votes),
    )
}
