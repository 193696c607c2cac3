"""The record of how features were used, and its sentences."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from rarevote.crowd.words import counted, percent
from rarevote.features.settings import FeatureSettings


@dataclass(frozen=True)
class FeatureRecord:
    """How features were used.

    Attributes:
        used: whether they are used in the result.
        reason: the reason, as sentences.
        gain: held-out gain in nats; None if they were left out before it was computed.
        se: its standard error.
        lam: the weight.
        tau2: the variance of the logit; None for predicted probabilities.
        items: number of items with votes or gold that have features.
        columns: number of columns that vary.
        dropped_columns: number of columns that do not.
        missing_cells: number of cells that were not finite numbers, which were replaced by the mean.
        unmatched: number of items with votes that have no features.
        pool_items: number of items with features that have no votes.
    """

    used: bool
    reason: str
    gain: float | None
    se: float | None
    lam: float | None
    tau2: float | None
    items: int
    columns: int
    dropped_columns: int
    missing_cells: int
    unmatched: int
    pool_items: int

    @property
    def figures(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)


def _nats(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def too_few(settings: FeatureSettings) -> str:
    """The sentence for too few data to learn from."""
    return (
        f"features need at least {settings.least_items} voted items (and {settings.least_mass:g} of a second class); "
        "votes only"
    )


def coverage(n_with: int, n_voted: int) -> list[str]:
    """The sentence if less than half of the items with votes have features."""
    return [f"features cover {percent(n_with / n_voted)} of the voted items"] if 2 * n_with < n_voted else []


def verdict(used: bool, gain: float, se: float, settings: FeatureSettings) -> str:
    """The sentence of the guard.

    >>> verdict(False, 1.2, 1.8, FeatureSettings())
    'the features do not predict the votes (gain 1.2 nats, needs max(5, 3.5 s.e.) = 6.3): they were left out'
    >>> verdict(True, 376.0, 22.25, FeatureSettings())[:83]
    'features used: they predict held-out votes (gain 376 nats, 16.9 s.e.); they count a'
    """
    if used:
        errors = f", {gain / se:.1f} s.e." if se > 0 else ""
        return (
            f"features used: they predict held-out votes (gain {_nats(gain)} nats{errors}); they count about as one "
            "more vote per item"
        )
    needed = max(settings.least_gain, settings.least_errors * se)
    return (
        f"the features do not predict the votes (gain {_nats(gain)} nats, needs max({settings.least_gain:g}, "
        f"{settings.least_errors:g} s.e.) = {_nats(needed)}): they were left out"
    )


def pool_note(n_pool: int) -> list[str]:
    """The sentence on items that have features and no votes.

    >>> pool_note(1204)
    ['1,204 items without votes are ranked by their features alone']
    """
    if not n_pool:
        return []
    return [f"{counted(n_pool, 'item')} without votes {'is' if n_pool == 1 else 'are'} ranked by their features alone"]


def subsample_note(n_chosen: int, n_items: int) -> str:
    """The sentence if the weight was chosen on a part of the items."""
    return f"the weight of the features was chosen on {n_chosen:,} of {n_items:,} items"


IN_SAMPLE = (
    "the model agrees with single votes as often as the truth would: were these probabilities computed out of sample? "
    "use cross-validation"
)
ONE_VOTE = "one vote per item: give some items a second vote, so that the weight of the features can be checked"


def in_words_of_predictions(reason: str) -> str:
    """The sentences if the features are predicted probabilities."""
    return reason.replace("features", "predicted probabilities")
