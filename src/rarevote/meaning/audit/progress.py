"""What the reviews of an audit have bought so far, and what more of them would."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rarevote.meaning.audit.planning import Forecast
from rarevote.meaning.audit.wealth import Wealth


@dataclass(frozen=True)
class Step:
    """A point of the curve.

    Attributes:
        reviews: items that the expert answered.
        flagged: items of the certified set that nobody has looked at.
    """

    reviews: int
    flagged: int


def step_of(wealth: Wealth) -> Step:
    """Where an audit stands."""
    return Step(int(wealth.reviewed.sum()), wealth.unreviewed(wealth.certified))


def to_be_bought(here: Step, forecasts: Iterable[Forecast]) -> list[Step]:
    """From here on: fewer flagged items for more reviews, as far as they are expected to become fewer.

    >>> ahead = [Forecast(3, 80.0, 500, 0.0, 0.0), Forecast(2, 60.0, 400, 0.0, 0.0), Forecast(1, 900.0, 90, 0.0, 0.0)]
    >>> [(step.reviews, step.flagged) for step in to_be_bought(Step(100, 700), ahead)]
    [(100, 700), (160, 400), (1000, 90)]
    """
    kept = [here]
    for forecast in sorted(forecasts, key=lambda one: (one.reviews, one.flagged)):
        if forecast.flagged < kept[-1].flagged:
            kept.append(Step(here.reviews + round(forecast.reviews), forecast.flagged))
    return kept
