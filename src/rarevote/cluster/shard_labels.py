"""The labels of a shard: a host's decisions from its posteriors, as on one machine (:mod:`rarevote.decide`).

Each function is an action of :class:`rarevote.cluster.host.OnShards`: the last two arguments are the number of a shard
and its state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.cluster.host import State, names_file, read_names
from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import Chooser, FloatArray, IntArray, column_sums, first_of_best
from rarevote.crowd.rare import RareClass
from rarevote.decide.columns import grade_columns
from rarevote.decide.decider import CrowdSums, Decider, Deciding, Labelled
from rarevote.decide.decision import DecisionCounts, confidence_of
from rarevote.decide.probabilities import Calibrator, Probabilities, certain, reweighted
from rarevote.decide.rules import ABSTAINED, ItemBatch
from rarevote.io.arrays import load_arrays, save_arrays


def keep_posterior(folder: Path, number: int, state: State) -> None:
    """Write the posterior of the last pass to a file: another model will replace it."""
    save_arrays(_posterior_file(folder, number), {"posterior": np.asarray(state.proposed[0])})


def _posterior_file(folder: Path, number: int) -> Path:
    return folder / f"posterior-{number:05d}.npz"


@dataclass(frozen=True, eq=False)
class Reported:
    """How to compute the probabilities of a shard from its state.

    Attributes:
        of_last_pass: whether the last pass has the posterior, or the state before it.
        calibrator: turns the posterior into probabilities.
        mean: mean probability of every class, (K); of size 0 until it is known.
        chooser: chooses the method's own labels from the posterior; by default, the most probable class.
        own_from_posterior: whether own labels follow from the posterior, else from the probabilities.
        wanted: given class shares, (K).
    """

    of_last_pass: bool
    calibrator: Calibrator
    mean: FloatArray
    chooser: Chooser | None = None
    own_from_posterior: bool = True
    wanted: FloatArray | None = None

    def posterior(self, state: State) -> NDArray[Any]:
        """The posterior that the method computed."""
        return np.asarray((state.proposed if self.of_last_pass else state.current)[0])

    def discounted(self, state: State) -> FloatArray:
        """Probabilities before lapses, (n, K)."""
        found = self.calibrator.discounted(self.posterior(state), np.diff(state.shard.task_ptr))
        return certain(found, state.shard.gold)

    def part(self, state: State) -> ItemBatch:
        """What is known about the tasks of a shard."""
        shard, posterior = state.shard, self.posterior(state)
        votes = partial(shard.votes, posterior.shape[1])
        gold = shard.gold.astype(np.int64) if shard.gold.size else np.full(state.n_tasks, -1)
        p = self.calibrator.reported(self.discounted(state), self.mean)
        if self.wanted is not None:
            p = reweighted(p, self.mean, self.wanted)
        p = certain(p, gold)
        own = np.full(state.n_tasks, ABSTAINED)
        if self.own_from_posterior:
            own = first_of_best(posterior) if self.chooser is None else self.chooser.codes(posterior, votes)
        return ItemBatch(p, votes(), own, gold, p)


def sum_probabilities(how: Reported, number: int, state: State) -> FloatArray:
    """Sums of the probabilities before lapses, (K)."""
    return column_sums(how.discounted(state))


def survey(how: Reported, deciding: Deciding, number: int, state: State) -> CrowdSums:
    """The sums over the tasks that the decider needs."""
    part = deciding.with_own(how.part(state))
    begin = state.shard.task_ptr - state.shard.task_ptr[0]
    return deciding.look(part, begin, state.shard.worker)


def count_at_least(
    how: Reported, deciding: Deciding, wanted: RareClass, thresholds: FloatArray, number: int, state: State
) -> IntArray:
    """How many tasks that can be flagged have at least each of these probabilities of a class or a tail."""
    part = how.part(state)
    scores = np.sort(wanted.mass(part.p[deciding.may(part) & (part.gold < 0)]))
    return np.asarray(scores.size - np.searchsorted(scores, thresholds), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class WriteResults:
    """Write one row per task to a Parquet file: task, label, confidence, votes, p:<class>; of grades also the grade.

    Attributes:
        names: the folder of the encoded shards.
        folder: the folder for the files.
        classes: names of the classes.
        how: where probabilities come from.
        deciding: the decision to make.
        decider: the rule for labels.
        costs: costs of mistakes, (K, K).
        with_posterior: whether to also write ``posterior:<class>``.
        posteriors: folder of :func:`keep_posterior`; None if the hosts have the posterior.
        grades: the order of the classes, if there is one.
    """

    names: Path
    folder: Path
    classes: NDArray[Any]
    how: Reported
    deciding: Deciding
    decider: Decider
    costs: FloatArray
    with_posterior: bool = False
    posteriors: Path | None = None
    grades: Grades | None = None

    def __call__(self, number: int, state: State) -> tuple[Labelled, DecisionCounts]:
        """Write the tasks of a shard and return their results."""
        from rarevote.io.write.columns import write_columns

        part = self.deciding.with_own(self.how.part(state))
        codes, n_guarded = self.decider.codes(part)
        found = self.deciding.labelled(self.decider, part, codes, n_guarded)
        some = Probabilities(self.classes, part.p, self.how.mean, part.gold)
        flagged = self.deciding.flagged(self.decider, part, codes)
        counts = DecisionCounts.of(some, codes, self.costs, self.deciding.rare, flagged)
        if not state.n_tasks:  # few tasks on many shards; a file without rows would have no types
            return found, counts
        names = np.append(self.classes.astype(object), "")  # index -1 picks this
        columns = {
            "task": read_names(names_file(self.names, number)),
            "label": self.classes[codes] if (codes >= 0).all() else names[codes],
            "confidence": confidence_of(part.p, codes),
            "votes": np.diff(state.shard.task_ptr),
        }
        tables = {"p": part.p} | ({"posterior": self._posterior(number, state)} if self.with_posterior else {})
        for begin, table in tables.items():
            for k, name in enumerate(self.classes.tolist()):
                columns[f"{begin}:{name}"] = np.ascontiguousarray(table[:, k])
        if self.grades is not None:
            columns |= grade_columns(self.grades, self.deciding.rare, part.p, flagged, self.classes)
        write_columns(columns, self.folder / f"part-{number:05d}.parquet")
        return found, counts

    def _posterior(self, number: int, state: State) -> NDArray[Any]:
        """The posterior as published: that of the hosts, unless a report replaced it."""
        if self.posteriors is None:
            return self.how.posterior(state)
        return load_arrays(_posterior_file(self.posteriors, number))["posterior"]
