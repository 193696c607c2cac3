"""When does a majority vote recover a class? The jury condition, computed from the accuracies of a crowd.

Condorcet's theorem requires that voters are right more often than not. Under class imbalance, this must hold class
by class: a crowd can be excellent on the frequent class and miss the rare one completely. With ``p_r`` the
accuracy of annotator ``r`` on class ``k``, split the crowd of ``R`` into ``G = {p_r > 1/2 + delta}`` (the
specialists of the class) and ``B = {U <= p_r <= 1/2}``. Majority vote recovers the class as the crowd grows if::

    |G|/R (1 + 2 delta) + 2 |B|/R U > 1

The left side replaces every member of ``G`` by the worst of ``G`` and every member of ``B`` by the worst of ``B``, and
omits those in between, so it never exceeds twice the mean accuracy: a cautious form of "the mean accuracy is above
1/2".
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarevote.crowd.numerics import FloatArray
from rarevote.crowd.words import counted, listed, percent, quoted
from rarevote.errors import InputError

# A crowd is not expected to grow beyond this many times its size.
_MAX_NEWCOMERS = 10
_MAX_LACKING = 3


@dataclass(frozen=True, eq=False)
class JuryCondition:
    """The jury condition of every class; all arrays have shape ``(n_classes,)``.

    Attributes:
        n_workers: size of the crowd, ``R``.
        left_side: the largest left side over all ``delta``.
        delta: the margin of the specialists at that maximum; 0 if there is no specialist.
        lower: ``U``, the smallest accuracy in ``B``; 1/2 (no bound) if ``B`` is empty.
        n_good: ``|G|``, the specialists of the class.
        n_bad: ``|B|``, the annotators who are right at most half the time.
        mean_margin: mean accuracy minus 1/2, of which the bound is a cautious estimate.
        missing_specialists: how many specialists of margin ``delta`` must join until the condition holds; 0 if
            it does, infinity if no annotator has a positive margin.
    """

    n_workers: int
    left_side: FloatArray
    delta: FloatArray
    lower: FloatArray
    n_good: NDArray[np.int64]
    n_bad: NDArray[np.int64]
    mean_margin: FloatArray
    missing_specialists: FloatArray

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Whether majority vote recovers the class as the crowd grows, as far as the bound shows."""
        return self.left_side > 1


def jury_condition(accuracies: ArrayLike) -> JuryCondition:
    """Evaluate the jury condition for every class.

    ``delta`` trades the number of specialists against their margin. Between two accuracies the left side rises with
    ``delta`` and the set ``G`` does not change, so the best ``delta`` lies just below the margin of some annotator;
    the limit is reported, with that annotator counted in ``G``. The condition holds for the limit exactly
    if it holds for some ``delta``.

    Args:
        accuracies: probability that an annotator recognises a class, shape ``(n_workers, n_classes)``.

    Returns:
        Both sides of the trade and what is missing, per class.

    Raises:
        InputError: the shape is wrong, the crowd is empty, or a value is not a probability.

    Example:
        >>> jury = jury_condition([[0.9, 0.8], [0.9, 0.3], [0.9, 0.3]])
        >>> jury.left_side.round(3).tolist(), jury.holds.tolist(), jury.missing_specialists.tolist()
        ([1.8, 0.933], [True, False], [0.0, 1.0])
    """
    table = np.asarray(accuracies, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise InputError(f"accuracies must be a table of annotators by classes, but the shape is {table.shape}")
    # Written so that NaN, for which every comparison is false, also fails.
    if not ((table >= 0) & (table <= 1)).all():
        raise InputError("accuracies must lie between 0 and 1")
    n_workers = table.shape[0]
    best_first = -np.sort(-table, axis=0)
    rank = np.arange(1, n_workers + 1)[:, None]
    # The j best annotators as G, with the margin of the last of them: j (1 + 2 (p_j - 1/2)) = 2 j p_j.
    from_good = np.where(best_first > 0.5, 2 * rank * best_first, 0.0)
    chosen = from_good.argmax(axis=0)
    has_good = best_first[0] > 0.5
    columns = np.arange(table.shape[1])
    n_good = np.where(has_good, chosen + 1, 0)
    delta = np.where(has_good, best_first[chosen, columns] - 0.5, 0.0)
    n_bad = (table <= 0.5).sum(axis=0)
    lower = np.where(n_bad > 0, table.min(axis=0), 0.5)
    return JuryCondition(
        n_workers=n_workers,
        left_side=(n_good * (1 + 2 * delta) + 2 * n_bad * lower) / n_workers,
        delta=delta,
        lower=lower,
        n_good=n_good.astype(np.int64),
        n_bad=n_bad.astype(np.int64),
        mean_margin=table.mean(axis=0) - 0.5,
        missing_specialists=_missing(n_workers, n_good, delta, n_bad, lower),
    )


def _missing(
    n_workers: int,
    n_good: NDArray[np.int64],
    delta: FloatArray,
    n_bad: NDArray[np.int64],
    lower: FloatArray,
) -> FloatArray:
    """The smallest ``s`` with ``((|G| + s)(1 + 2 delta) + 2 |B| U) / (R + s) > 1``."""

    def enough(extra: FloatArray) -> NDArray[np.bool_]:
        left = (n_good + extra) * (1 + 2 * delta) + 2 * n_bad * lower
        return np.asarray(left / (n_workers + extra) > 1)

    # Each newcomer adds 2 delta to the difference of both sides; the closed form can be off by one by rounding.
    short = n_workers - n_good * (1 + 2 * delta) - 2 * n_bad * lower
    margin = np.where(delta > 0, 2 * delta, np.inf)
    guess = np.maximum(np.floor(short / margin) + 1, 0.0)
    fewer = np.maximum(guess - 1, 0.0)
    count = np.where(enough(fewer), fewer, np.where(enough(guess), guess, guess + 1))
    # If no annotator is above 1/2, the left side is at most 1, and newcomers without a margin do not change that.
    return np.where(delta > 0, count, np.inf)


def jury_sentences(jury: JuryCondition, names: NDArray[Any]) -> list[str]:
    """Whether more votes alone would let a majority vote find each class."""
    held = [quoted(names[k]) for k in range(len(names)) if jury.holds[k]]
    said = []
    if held:
        said.append(
            f"With ever more votes from people like these, a majority vote would recover {listed(held)}: enough of "
            "them recognise it more often than not (the jury condition holds)."
        )
    lacking = [k for k in range(len(names)) if not jury.holds[k]]
    for k in lacking[:_MAX_LACKING]:
        missing = jury.missing_specialists[k]
        cure = "No annotator here recognises it more often than not."
        if isfinite(missing) and missing > _MAX_NEWCOMERS * jury.n_workers:
            cure = "Only new annotators who are far better at it would change that."
        elif isfinite(missing):
            people, best = counted(missing, "more annotator"), counted(jury.n_good[k], "best person", "best people")
            cure = f"It would take about {people} as good at it as its {best}."
        said.append(
            f"For {quoted(names[k])} that cannot be promised: the average annotator recognises only "
            f"{percent(jury.mean_margin[k] + 0.5)} of it. {cure}"
        )
    if len(lacking) > _MAX_LACKING:
        said.append(f"The same holds for {counted(len(lacking) - _MAX_LACKING, 'further class', 'further classes')}.")
    return said
