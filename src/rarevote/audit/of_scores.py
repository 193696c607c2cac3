"""An audit of any ranking: the scores of a classifier, a screening tool or a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.audit.audit import Audit
from rarevote.crowd.numerics import sigmoid
from rarevote.decide.floor import Share
from rarevote.errors import InputError
from rarevote.io.read.scores import ScoredItems

# Base rates of the first and the last item of a ranking without probabilities.
_BEST, _WORST = 0.9, 0.01


def audit_of_scores(
    items: ScoredItems,
    name: Any,
    target: Share,
    *,
    ascending: bool = False,
    gold: Mapping[Any, Any] | None = None,
    files: Mapping[str, Any] | None = None,
    **options: Any,
) -> Audit:
    """Start an audit of one class whose items are ranked by a score.

    The expert answers the class or not the class. Any ranking is valid: a bad one costs more reviews, but the proof
    still holds.

    Args:
        name: the class, as the expert calls it.
        ascending: whether the smallest score is the most likely, as for ranks from 1.
        gold: gold labels, by item; by default, those in the table.
        files: what the plan records about the files.
        **options: as in :meth:`Audit.start`.

    Raises:
        InputError: no item has a score.
    """
    population = items.crowd.population.tolist()
    return Audit.start(
        population,
        base_rates(items.scores, ascending=ascending),
        name=name,
        target=target,
        gold=items.crowd.gold if gold is None else gold,
        source={**(files or {}), "other": f"not {name}", "others": []},
        score="given",
        **options,
    )


def base_rates(scores: NDArray[np.float64], *, ascending: bool = False) -> NDArray[np.float64]:
    """Probabilities for planning: the scores if they lie between 0 and 1, else a curve over their ranks.

    >>> base_rates(np.array([3.0, 1.0, np.nan, 2.0])).round(2).tolist()
    [0.9, 0.01, nan, 0.23]
    """
    known = np.isfinite(scores)
    if not known.any():
        raise InputError("no item has a score: check the name of the column")
    if not ascending and scores[known].min() >= 0.0 and scores[known].max() <= 1.0:
        return scores
    signed = -scores if ascending else scores
    levels, place = np.unique(-signed[known], return_inverse=True)
    best, worst = (np.log(p / (1.0 - p)) for p in (_BEST, _WORST))
    rates = np.full(scores.shape, np.nan)
    rates[known] = sigmoid(best + (worst - best) * place / max(len(levels) - 1, 1))
    return rates
