"""Draws of the true classes, if errors of annotators are independent.

The model is a variant of CC-Rasch that is sampled instead of maximised, so that uncertainty is kept
(:mod:`rarevote.decide.sampler`). The draws are one of the two worlds of :mod:`rarevote.decide.expectations`, and their
mean ranks items for an audit, which is valid whatever the ranking. They do not give the probability of an item:
that is in :mod:`rarevote.decide.probabilities`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.annotations import Annotations

if TYPE_CHECKING:
    from rarevote.decide.sampler import Drawn

#: The largest number of votes that are sampled, which takes seconds.
MAX_VOTES = 300_000
#: The largest number of items, including those without votes, whose draws fit into memory.
MAX_ITEMS = 1_000_000
#: Sweeps of the sampler for a fit: enough for a ranking and for intervals.
SWEEPS = 400
#: Draws that are kept of these sweeps.
N_DRAWS = 150
#: The budget: cells (a class at a level of difficulty) of votes, tasks and workers that all sweeps together visit. It
#: counts work, not time, so that the same votes give the same draws on any machine. It takes some seconds.
CELL_VISITS = 2_000_000_000

# With a smaller budget, sweeps and draws are reduced down to these; then the chain visits only a part of the tasks.
_MIN_SWEEPS, _MIN_DRAWS = 150, 30
_MIN_TASKS = 1000
_TASK_VISITS = 6

_MAX_CELLS = 20_000_000  # workers x classes x classes; the sampler keeps a few tables of this size


@dataclass(frozen=True, eq=False)
class IndependentDraws:
    """The true class of every item, drawn many times, if errors are independent.

    Attributes:
        classes: class number of every item in each draw, (n_draws, n); no rows if nothing was drawn.
        score: mean probability of each class for items with votes, from the votes alone, (n_voted, K); no rows if
            the votes were not sampled.
        why_not: why there are no draws, as text; empty if there are.
    """

    classes: NDArray[Any]
    score: NDArray[Any]
    why_not: str = ""

    @classmethod
    def none(cls, n_items: int, why_not: str) -> IndependentDraws:
        """An instance without draws, and why."""
        return cls(np.empty((0, n_items), dtype=np.uint8), np.empty((0, 0)), why_not)

    def of_class(self, number: int) -> NDArray[np.bool_]:
        """Whether each item has a class in each draw, (n_draws, n)."""
        return np.asarray(self.classes == number)

    def first(self, n: int) -> IndependentDraws:
        """The draws of the first ``n`` items."""
        return IndependentDraws(self.classes[:, :n], self.score, self.why_not)


#: makes the draws on first use, because they take seconds
DrawsLater = Callable[[], IndependentDraws]


def cells_of_sweep(n_votes: float, n_tasks: float, n_workers: int, n_classes: int) -> float:
    """Cells that a sweep visits: every vote once, every task several times, every error of every worker."""
    return 2 * n_classes * (n_votes + _TASK_VISITS * n_tasks + n_classes * n_workers)


class SamplingPlan(NamedTuple):
    """How much of a crowd is sampled within the budget.

    Attributes:
        n_sweeps: sweeps of the sampler.
        n_draws: draws that are kept.
        share: share of the tasks that the chain visits; the classes of the others are drawn from what it learns.
    """

    n_sweeps: int
    n_draws: int
    share: float = 1.0

    @classmethod
    def of(cls, annotations: Annotations) -> SamplingPlan | None:
        """The plan within the budget; None if the budget is too small."""
        votes, tasks, K = annotations.n_annotations, annotations.n_tasks, annotations.n_classes
        workers = annotations.n_workers
        n_sweeps = min(SWEEPS, int(CELL_VISITS // max(cells_of_sweep(votes, tasks, workers, K), 1)))
        if n_sweeps >= min(SWEEPS, _MIN_SWEEPS):
            return cls(n_sweeps, N_DRAWS)
        # Half of the budget is for the chain, half for the classes of the tasks that it does not visit.
        half, of_workers = CELL_VISITS / 2 / _MIN_SWEEPS, cells_of_sweep(0, 0, workers, K)
        share = (half - of_workers) / cells_of_sweep(votes, tasks, 0, K)
        n_draws = min(N_DRAWS, int(CELL_VISITS / 2 // cells_of_sweep(votes, tasks, 0, K)))
        if share * tasks < _MIN_TASKS or n_draws < _MIN_DRAWS:
            return None
        return cls(_MIN_SWEEPS, min(n_draws, _MIN_SWEEPS - _MIN_SWEEPS // 4), share)


def why_not_sampled(annotations: Annotations) -> str:
    """Why the votes cannot be sampled, as text; empty if they can."""
    K = annotations.n_classes
    if annotations.n_annotations > MAX_VOTES:
        return f"there are more than {MAX_VOTES:,} votes"
    if not annotations.n_tasks or K < 2:
        return "there are fewer than two classes"
    if annotations.n_workers * K * K > _MAX_CELLS:
        return "there are too many annotators and classes"
    if SamplingPlan.of(annotations) is None:
        return "there are too many votes and classes"
    return ""


def independent_draws(annotations: Annotations, gold: NDArray[Any], why_not: str = "") -> IndependentDraws:
    """The draws of all items of a fit, with a fixed seed.

    The class of an item without votes is drawn from the class shares of the items with votes in the same draw.

    Args:
        annotations: the votes.
        gold: known class of every item or -1, (n); items without votes are the last.
        why_not: why nothing should be drawn, as text.
    """
    why_not = why_not or why_not_sampled(annotations)
    if why_not:
        return IndependentDraws.none(len(gold), why_not)
    n, K = annotations.n_tasks, annotations.n_classes
    plan = SamplingPlan.of(annotations)
    assert plan is not None
    drawn = sample_crowd(annotations, gold[:n], n_sweeps=plan.n_sweeps, n_draws=plan.n_draws, share=plan.share)
    if len(gold) > MAX_ITEMS:
        return replace(IndependentDraws.none(len(gold), f"there are more than {MAX_ITEMS:,} items"), score=drawn.score)
    classes = np.empty((len(drawn.classes), len(gold)), dtype=drawn.classes.dtype)
    classes[:, :n] = drawn.classes
    rng = np.random.default_rng(6)
    for row in classes if len(gold) > n else ():
        below = np.cumsum(np.bincount(row[:n], minlength=K) / n)
        row[n:] = np.minimum(np.searchsorted(below, rng.random(len(gold) - n), side="right"), K - 1)
    known = np.flatnonzero(gold >= 0)
    classes[:, known] = gold[known]
    return IndependentDraws(classes, drawn.score)


def sample_crowd(
    annotations: Annotations,
    gold: NDArray[Any],
    *,
    n_sweeps: int | None = None,
    n_draws: int = 400,
    share: float = 1.0,
    random_state: int = 0,
) -> Drawn:
    """Draw samples from the model of the votes.

    Args:
        annotations: the votes, with at least two classes.
        gold: known class of each task or -1, (n).
        n_sweeps: sweeps of the sampler; by default, until the class shares are known well enough.
        n_draws: the smallest number of draws to keep, if the chain is long enough; less than twice as many are kept.
        share: share of the tasks that the chain visits, chosen at random; the classes of the others are drawn from what
            it learns, with exactly ``n_draws`` draws.
        random_state: seed of the sampler.
    """
    from rarevote.decide.sampler import VoteSampler

    part = None
    if share < 1.0:
        n = annotations.n_tasks
        part = np.sort(np.random.default_rng([random_state, 2]).permutation(n)[: max(int(share * n), 1)])
    return VoteSampler(annotations, gold.astype(np.int32), random_state, part).run(n_draws, n_sweeps)
