"""Agreement on grades: coefficients in which a small difference counts less than a large one.

Votes outside the scale are left out; if a worker votes on a task repeatedly, the last vote counts. With ``x`` the
positions of the K grades that have votes, weights ``w_kl = 1 - (x_k - x_l)^2 / (max x - min x)^2``, ``n_ik`` of the
``n_i`` votes on task i for k, and ``s_k`` the mean over tasks of ``n_ik / n_i``::

    p_a = mean_i sum_kl w_kl n_ik (n_il - [k = l]) / (n_i (n_i - 1))                       over tasks with two votes
    Gwet's AC2      = (p_a - p_e) / (1 - p_e),   p_e = sum_kl w_kl / (K (K - 1)) sum_k s_k (1 - s_k)     (Gwet 2014)
    quadratic kappa = (p_a - p_e) / (1 - p_e),   p_e = sum_kl w_kl s_k s_l              Fleiss' kappa with weights

Krippendorff's alpha is that of the ordinal level (:mod:`rarevote.diagnose.agreement`). Intervals are from a
bootstrap over tasks, as in that module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rarevote.crowd.annotations import Annotations
from rarevote.crowd.grades import Grades
from rarevote.crowd.numerics import FloatArray
from rarevote.diagnose.agreement import agreement_of

_DRAWS = 1_000
_MAX_GROUPS = 2_000
_TAILS = (0.025, 0.975)

#: the coefficients, by their field
ORDERED_COEFFICIENTS = {
    "alpha": "Krippendorff's alpha, ordinal",
    "ac2": "Gwet's AC2, quadratic",
    "quadratic_kappa": "quadratic kappa",
}


@dataclass(frozen=True)
class OrderedAgreement:
    """How far annotators agree on grades; NaN if undefined.

    Attributes:
        alpha: Krippendorff's alpha, ordinal.
        ac2: Gwet's AC2 with quadratic weights.
        quadratic_kappa: Fleiss' kappa with quadratic weights.
        intervals: both ends by coefficient.
        n_tasks: number of tasks with at least two votes on the scale.
    """

    alpha: float
    ac2: float
    quadratic_kappa: float
    intervals: dict[str, tuple[float, float]]
    n_tasks: int

    @property
    def description(self) -> str:
        """All three coefficients in a sentence."""
        said = []
        for name, words in ORDERED_COEFFICIENTS.items():
            (low, high), value = self.intervals[name], getattr(self, name)
            ends = f" ({low:.2f} to {high:.2f})" if np.isfinite([low, high]).all() else ""
            said.append(f"{words} {value:.2f}{ends}" if np.isfinite(value) else f"{words} unknown")
        return f"On grades, where a near miss counts less than a far one: {', '.join(said)}."

    def figures(self) -> dict[str, Any]:
        """The agreement as plain values for JSON; null if undefined."""

        def plain(value: float) -> float | None:
            return float(value) if np.isfinite(value) else None

        return {
            **{name: plain(getattr(self, name)) for name in ORDERED_COEFFICIENTS},
            "intervals": {name: list(map(plain, ends)) for name, ends in self.intervals.items()},
            "n_tasks": self.n_tasks,
        }


def ordered_agreement(crowd: Annotations, grades: Grades) -> OrderedAgreement:
    """Measure how far annotators agree on grades.

    Example:
        >>> crowd = Annotations.from_arrays([1, 1, 2, 2, 3, 3], list("abababab")[:6], [1, 2, 3, 3, 1, 1])
        >>> found = ordered_agreement(crowd, Grades.of("1..3"))
        >>> round(found.quadratic_kappa, 3), round(found.ac2, 3)
        (0.793, 0.786)
    """
    votes = _on_scale(crowd, grades)
    names = grades.met(votes.classes)
    if len(names) < 2:
        nothing = dict.fromkeys(ORDERED_COEFFICIENTS, (np.nan, np.nan))
        return OrderedAgreement(np.nan, np.nan, np.nan, nothing, 0)
    nominal = agreement_of(votes, "ordinal", names, most_shared=0)
    counts, x = votes.votes(), grades.positions(votes.classes)
    weights = 1.0 - (x[:, None] - x) ** 2 / (x.max() - x.min()) ** 2
    size = counts.sum(axis=1)
    paired = size >= 2
    near = np.einsum("ik,kl,il->i", counts, weights, counts) - size
    sums = np.column_stack(
        [
            counts / size[:, None],
            np.ones(len(size)),
            np.where(paired, near / np.maximum(size * (size - 1), 1), 0),
            paired,
        ]
    )
    n_groups = min(len(sums), _MAX_GROUPS)
    group = np.random.default_rng(1).permutation(len(sums)) % n_groups
    by_group = np.column_stack([np.bincount(group, column, minlength=n_groups) for column in sums.T])
    rng = np.random.default_rng(0)
    drawn = np.array(
        [np.bincount(rng.integers(n_groups, size=n_groups), minlength=n_groups) for _ in range(_DRAWS)],
        dtype=np.float64,
    )
    whole, again = _coefficients(by_group.sum(axis=0)[None], weights), _coefficients(drawn @ by_group, weights)
    intervals = {name: _ends(values) for name, values in again.items()}
    found = {name: float(values[0]) for name, values in whole.items()}
    ends = {"alpha": nominal.intervals["alpha"], **intervals}
    return OrderedAgreement(nominal.alpha, **found, intervals=ends, n_tasks=int(paired.sum()))


def _coefficients(sums: FloatArray, weights: FloatArray) -> dict[str, FloatArray]:
    """AC2 and kappa from sums over tasks: shares, tasks, agreement, tasks with two votes, (r, K + 3)."""
    K = len(weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[:, :K] / sums[:, K : K + 1]
        agreed = sums[:, K + 1] / sums[:, K + 2]
        by_doubt = weights.sum() / (K * (K - 1)) * (shares * (1.0 - shares)).sum(axis=1)
        by_shares = np.einsum("rk,kl,rl->r", shares, weights, shares)

        def beyond(chance: FloatArray) -> FloatArray:
            return np.where(chance < 1.0, (agreed - chance) / (1.0 - chance), np.nan)

        return {"ac2": beyond(by_doubt), "quadratic_kappa": beyond(by_shares)}


def _ends(draws: FloatArray) -> tuple[float, float]:
    known = draws[np.isfinite(draws)]
    if not len(known):
        return np.nan, np.nan
    low, high = np.quantile(known, _TAILS)
    return float(low), float(high)


def _on_scale(crowd: Annotations, grades: Grades) -> Annotations:
    """The votes for grades, one per task and worker."""
    task, worker, label = crowd.task_of_annotation(), crowd.worker.astype(np.int64), crowd.label.astype(np.int64)
    pair = task * crowd.n_workers + worker
    # The last of repeated votes is the first in reverse order.
    _, last = np.unique(pair[::-1], return_index=True)
    kept = np.sort(len(pair) - 1 - last)
    kept = kept[np.isfinite(grades.positions(crowd.classes))[label[kept]]]
    return Annotations.from_arrays(task[kept], worker[kept], crowd.classes[label[kept]])
