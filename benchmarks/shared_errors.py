"""How far real annotators share errors: the strength behind ``simulate --shared-errors real``.

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
were made up with none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp
from scipy.stats import norm

from benchmarks import evidence, pages
from benchmarks.datasets import slugs
from benchmarks.expectations import opened
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
    strength = votes.strength()
    return {
        "dataset": slug,
        "source_group": find_dataset(slug).source_group,
        "items": int((truth >= 0).sum()),
        "votes": int(known.sum()),
        "accuracy_of_votes": round(float(votes.right.mean()), 3),
        "strength": strength,
        "recovered": votes.made_up(strength, 1).strength(),
        "independent": votes.made_up(0.0, 1).strength(),
    }


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
    for name in ("strength", "recovered", "independent"):
        means = [np.mean([row[name] for row in rows if row["source_group"] == group]) for group in groups]
        medians[name] = round(float(np.median(means)), 3)
    rows.append(dict.fromkeys(rows[0], "") | {"dataset": "median of groups", **medians})
    print(rows[-1])
    print(evidence.write("shared_errors", rows).relative_to(evidence.REPOSITORY))


if __name__ == "__main__":
    main()
