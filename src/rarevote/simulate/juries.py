"""Juries with groups that make the same mistakes: judges of one model family who share mistakes, or copy each other.

Every judge answers every task. Judge r of a group uses, for each task and with probability ``together``, the random
numbers of the whole group instead of their own:

* ``"share"``: the group has one draw ``U`` and one wrong answer per task, and judge r is wrong if ``U < q_r``. So two
  judges of a group with the same error rate q have errors that correlate by ``together^2``.
* ``"copy"``: the others give the answer of the first judge of their group, right or wrong. Their errors correlate with
  that judge's by about ``together``, and with each other by about ``together^2``.

The simulated dependence is known exactly, and stored with the jury: the correlation of the errors of every two judges,
and the effective number of independent judges, ``J^2 / sum of the J x J matrix``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.simulate.blocks import CrowdPlan, Stream, require
from rarevote.simulate.crowds import SimulatedCrowd

How = Literal["share", "copy"]


@dataclass(frozen=True, eq=False)
class SimulatedJury(SimulatedCrowd):
    """A simulated crowd of judges in groups.

    Attributes:
        group: number of each judge's group, shape ``(n_workers,)``; a judge outside all groups is a group of one.
        error_correlation: simulated correlation of the errors of every two judges, shape ``(n_workers, n_workers)``.
    """

    group: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    error_correlation: FloatArray = field(default_factory=lambda: np.empty((0, 0)))

    @property
    def n_effective(self) -> float:
        """The effective number of independent judges under the simulated correlations."""
        return float(self.n_workers**2 / self.error_correlation.sum())


def simulate_jury(
    n_tasks: int = 2000,
    n_workers: int = 5,
    *,
    groups: Sequence[Sequence[int]] = ((0, 1, 2),),
    together: float = 0.8,
    how: How = "share",
    accuracy: ArrayLike = 0.8,
    n_classes: int = 2,
    imbalance: float = 1.0,
    random_state: int | None = None,
) -> SimulatedJury:
    """Draw a jury in which groups of judges make the same mistakes.

    Args:
        n_tasks: number of tasks.
        n_workers: number of judges, J.
        groups: numbers of the judges of each group; a judge can be in one group only.
        together: probability that a judge uses the random numbers of the group.
        how: ``"share"`` mistakes, or ``"copy"`` the first judge of the group.
        accuracy: accuracy of independent judges: one value, one per judge, or judges by classes.
        n_classes: number of classes, 2 to 65 535; a wrong answer is any other one.
        imbalance: size of the largest class (0) over that of the smallest (the last).
        random_state: seed, not negative; the same seed gives the same jury.

    Raises:
        ParameterError: a parameter is out of range, or a judge is in two groups.

    Example:
        >>> jury = simulate_jury(100, 5, groups=[(0, 1, 2)], together=0.8, random_state=0)
        >>> jury.group.tolist(), jury.error_correlation[0].round(2).tolist(), round(jury.n_effective, 2)
        ([0, 0, 0, 1, 2], [1.0, 0.64, 0.64, 0.0, 0.0], 2.83)
    """
    plan = CrowdPlan(n_tasks, n_workers, n_classes, imbalance, 1.0, False, random_state)
    require(0 <= together <= 1, f"together must lie between 0 and 1, not {together}")
    require(how in ("share", "copy"), f'how must be "share" or "copy", not {how!r}')
    named = [judge for members in groups for judge in members]
    require(len(set(named)) == len(named), f"a judge is in two groups: {named}")
    require(all(0 <= judge < n_workers for judge in named), f"groups name judges 0 to {n_workers - 1}, not {named}")
    given = np.asarray(accuracy, dtype=np.float64)
    table = np.broadcast_to(given[:, None] if given.ndim == 1 else given, (n_workers, n_classes))
    require(bool(((table > 0) & (table < 1)).all()), "accuracy must lie between 0 and 1")

    leader = np.arange(n_workers)
    for members in groups:
        leader[list(members)] = members[0]
    stream = plan.stream(Stream.BLOCK, 0)
    truth = np.searchsorted(plan.class_shares.cumsum()[:-1], stream.random(n_tasks), side="right")
    # The random numbers of each judge, and those of each group, stored at its first judge.
    luck, wrong = stream.random((2, n_tasks, n_workers)), stream.integers(n_classes - 1, size=(2, n_tasks, n_workers))
    with_group = stream.random((n_tasks, n_workers)) < together
    error = 1 - table
    shared = with_group if how == "share" else np.zeros_like(with_group)
    own_luck, own_wrong = (np.where(shared, drawn[1][:, leader], drawn[0]) for drawn in (luck, wrong))
    label = np.where(own_luck < error.T[truth], own_wrong + (own_wrong >= truth[:, None]), truth[:, None])
    if how == "copy":
        label = np.where(with_group, label[:, leader], label)
    return SimulatedJury(
        task=np.repeat(np.arange(n_tasks), n_workers),
        worker=np.tile(np.arange(n_workers, dtype=np.int32), n_tasks),
        label=label.reshape(-1).astype(np.int32),
        truth=truth.astype(np.int32),
        accuracy=1 - _marginal_error(error, leader, together, how),
        group=np.unique(leader, return_inverse=True)[1],
        error_correlation=_planted(error, plan.class_shares, leader, together, how),
    )


def _marginal_error(error: FloatArray, leader: NDArray[np.int64], together: float, how: How) -> FloatArray:
    """Error rate of each judge per class, (J, K): including copied answers."""
    if how == "share":
        return error
    copies = (leader != np.arange(len(leader)))[:, None]
    return np.where(copies, together * error[leader] + (1 - together) * error, error)


def _planted(error: FloatArray, shares: FloatArray, leader: NDArray[np.int64], together: float, how: How) -> FloatArray:
    """Correlation of errors, (J, J): within classes from the group, between classes from common weaknesses."""
    n_workers = len(error)
    first = leader == np.arange(n_workers)
    rates = _marginal_error(error, leader, together, how)
    joint = np.einsum("k,ak,bk->ab", shares, rates, rates)  # P(both are wrong) for independent judges
    for a in range(n_workers):
        for b in range(n_workers):
            if a == b:
                joint[a, b] = shares @ rates[a]
            elif leader[a] == leader[b]:
                if how == "share":
                    both, depend = np.minimum(error[a], error[b]) - error[a] * error[b], together**2
                else:
                    both, depend = error[leader[a]] * (1 - error[leader[a]]), together ** (2 - first[a] - first[b])
                joint[a, b] += depend * (shares @ both)
    mean = rates @ shares
    covariance = joint - np.outer(mean, mean)
    spread = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(spread, spread))
