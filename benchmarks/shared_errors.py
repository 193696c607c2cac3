"""How real annotators err: the strengths behind ``simulate --shared-errors real --prevalence-effect real``.

    RAREVOTE_DATA=... python -m benchmarks.shared_errors

The model is that of `rarevote.simulate.shared_errors`. With the truth known, every vote r on item i is right or wrong,
``c_ir``, and the likelihood of a strength S integrates over the difficulty z that the item's votes share::

    L_i(S) = integral prod_r P(c_ir | z) phi(z) dz
    P(right | z) = Phi((Phi^-1(p_ir) - sqrt(S) z) / sqrt(1 - S))

``p_ir`` is the annotator's share of right votes on the item's true class, as if 4 more votes had been like the average
of all annotators on that class. The strength of a dataset maximises the sum of ``log L_i``, searched in steps of 0.1
and then of 0.01. Datasets of one source group share items or annotators: the strength of real crowds is the median over
groups of the mean over the group's datasets. (A median, because on a few datasets many annotators agree against the
truth, and the strength comes out near 1.)

Two checks stand beside it: ``recovered`` is what the same fit finds in votes that were made up with that strength for
the same items and annotators (it says how far the fit itself is off), and ``independent`` what it finds where they
were made up with none. ``rarest`` and ``others`` are the strengths on the items of the rarest class alone and on all
others: they hardly differ.

``share`` is that of the rarest class among the items, ``false_votes`` the share of votes for it among the votes on all
other items. The prevalence effect E of `rarevote.simulate.prevalence` is the slope of least squares over all datasets,
every source group with the same weight::

    logit false_votes = a + E logit share
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logit, logsumexp
from scipy.stats import norm

from benchmarks import evidence, pages
from benchmarks.datasets import slugs
from benchmarks.expectations import opened, rarest
from rarevote.study.datasets import find_dataset

STRENGTHS = np.round(np.arange(0.0, 0.96, 0.01), 2)
_LIKE_AVERAGE = 4.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_LOG_WEIGHTS = np.log(_WEIGHTS / _WEIGHTS.sum())
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes on items whose true class is known; all of shape (n_votes).

    Attributes:
        task: item of each vote, ascending.
        worker: annotator of each vote.
        truth: true class of each vote's item.
        label: the vote.
    """

    task: NDArray[Any]
    worker: NDArray[Any]
    truth: NDArray[Any]
    label: NDArray[Any]

    @property
    def right(self) -> NDArray[np.bool_]:
        return np.asarray(self.label == self.truth)

    def chance(self) -> NDArray[np.float64]:
        """Share of right votes of each vote's annotator on the true class."""
        of_class = np.bincount(self.truth, self.right) / np.maximum(np.bincount(self.truth), 1)
        _, cell = np.unique(np.stack([self.worker, self.truth]), axis=1, return_inverse=True)
        cell = cell.reshape(-1)
        right = np.bincount(cell, self.right)[cell] + _LIKE_AVERAGE * of_class[self.truth]
        return np.asarray(np.clip(right / (np.bincount(cell)[cell] + _LIKE_AVERAGE), 0.001, 0.999))

    def strength(self) -> float:
        """The likeliest strength."""
        coarse = max(STRENGTHS[::10].tolist(), key=self.log_likelihood)
        return float(max(STRENGTHS[np.abs(STRENGTHS - coarse) < 0.1].tolist(), key=self.log_likelihood))

    def log_likelihood(self, strength: float) -> float:
        """Sum of ``log L_i``."""
        threshold, sign = self.limits
        start = np.flatnonzero(np.diff(self.task, prepend=-1))
        by_node = np.empty((len(start), len(_NODES)))
        for number, z in enumerate(_NODES.tolist()):
            away = sign * (threshold - strength**0.5 * z) / (1 - strength) ** 0.5
            by_node[:, number] = np.add.reduceat(log_ndtr(away), start)
        return float(logsumexp(by_node + _LOG_WEIGHTS, axis=1).sum())

    @cached_property
    def limits(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``Phi^-1(p)`` of every vote, and 1 where it is right, else -1."""
        return norm.ppf(self.chance()), np.where(self.right, 1, -1)

    def on(self, some: NDArray[np.bool_]) -> Votes:
        """Some of the votes."""
        return Votes(self.task[some], self.worker[some], self.truth[some], self.label[some])

    def made_up(self, strength: float, seed: int) -> Votes:
        """Votes of the same annotators on the same items, with errors of this strength."""
        rng = np.random.default_rng(seed)
        item = np.unique(self.task, return_inverse=True)[1].reshape(-1)
        difficulty, luck = rng.standard_normal(item.max() + 1), rng.standard_normal(len(item))
        wrong = strength**0.5 * difficulty[item] + (1 - strength) ** 0.5 * luck >= norm.ppf(self.chance())
        return replace(self, label=np.where(wrong, self.truth + 1, self.truth))


def fitted(slug: str) -> Row:
    """The strength of one dataset, and what the fit finds in made-up votes."""
    crowd, truth = opened(slug)
    task = np.repeat(np.arange(crowd.n_tasks), np.diff(crowd.task_ptr))
    known = truth[task] >= 0
    votes = Votes(task[known], crowd.worker[known].astype(np.int64), truth[task[known]], crowd.label[known])
    strength, rare = votes.strength(), rarest(truth)
    on_rare = votes.truth == rare
    return {
        "dataset": slug,
        "source_group": find_dataset(slug).source_group,
        "items": int((truth >= 0).sum()),
        "votes": int(known.sum()),
        "accuracy_of_votes": round(float(votes.right.mean()), 3),
        "strength": strength,
        "recovered": votes.made_up(strength, 1).strength(),
        "independent": votes.made_up(0.0, 1).strength(),
        "rarest": votes.on(on_rare).strength(),
        "others": votes.on(~on_rare).strength(),
        "share": round(float((truth[truth >= 0] == rare).mean()), 4),
        "false_votes": round(float((votes.label[~on_rare] == rare).mean()), 4),
    }


def prevalence_effect(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, float, float]:
    """The constant and the slope of the log odds of false votes on those of the class, and their standard errors."""
    groups = [row["source_group"] for row in rows]
    weight = np.array([1.0 / groups.count(group) for group in groups])
    share, false_votes = (logit(np.array([float(row[name]) for row in rows])) for name in ("share", "false_votes"))
    sides = np.stack([np.ones(len(rows)), share], axis=1)
    inverse = np.linalg.inv(sides.T @ (weight[:, None] * sides))
    found = inverse @ (sides.T @ (weight * false_votes))
    variance = weight @ (false_votes - sides @ found) ** 2 / (weight.sum() - 2)
    constant, slope = found.tolist()
    of_constant, of_slope = np.sqrt(variance * np.diag(inverse)).tolist()
    return constant, slope, of_constant, of_slope


def table() -> str:
    """Strengths by source group, the largest first, for the page on benchmarks."""
    rows = [row for row in evidence.read("shared_errors") if row["source_group"]]
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row["source_group"], []).append(row)

    def mean(mine: list[dict[str, str]], name: str) -> float:
        return float(np.mean([float(row[name]) for row in mine]))

    ordered = sorted(groups.values(), key=lambda mine: -mean(mine, "strength"))
    columns = "strength", "recovered", "independent", "accuracy_of_votes"
    shown = [
        [", ".join(row["dataset"] for row in mine), *(f"{mean(mine, name):.2f}" for name in columns)]
        for mine in ordered
    ]
    head = ["datasets of one source", "strength", "recovered", "with none", "votes that are right"]
    return pages.table(head, shown)


def main() -> None:
    rows = []
    for slug in slugs(match="exact"):
        rows.append(fitted(slug))
        print(*rows[-1].values(), sep=", ", flush=True)
    groups = dict.fromkeys(row["source_group"] for row in rows)
    medians = {}
    for name in ("strength", "recovered", "independent", "rarest", "others"):
        means = [np.mean([row[name] for row in rows if row["source_group"] == group]) for group in groups]
        medians[name] = round(float(np.median(means)), 3)
    rows.append(dict.fromkeys(rows[0], "") | {"dataset": "median of groups", **medians})
    constant, slope, *errors = (round(value, 3) for value in prevalence_effect(rows[:-1]))
    empty = dict.fromkeys(rows[0], "")
    rows.append(empty | {"dataset": "prevalence effect: constant, slope", "share": constant, "false_votes": slope})
    rows.append(empty | {"dataset": "standard errors of both", "share": errors[0], "false_votes": errors[1]})
    print(*rows[-3:], sep="\n")
    print(evidence.write("shared_errors", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
