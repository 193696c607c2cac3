"""Plan recorded rounds again: were the stakes chosen before the answers, or after them?

A certificate is valid if weights, rates and stakes of a round depend only on earlier answers. Files cannot show when
something was written, but the planner is a fixed procedure: from the state before a round, it proposes one choice. The
stakes of a plan are accepted if they equal that choice up to differences between machines:

- ``v``: the recalibrated rates. They are at the maximum of a smooth function, so they are known to the square root of
its rounding; - ``w``: weights that reach the planner's objective at the state before the round, computed from the ``v``
of the plan; - ``gamma``: values of the planner's grid that reach the largest expected growth under the ``w`` and ``v``
of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarevote.audit.estimates import base_logits, recalibrate
from rarevote.audit.plan_file import Plan
from rarevote.audit.planning import (
    TIE,
    choices,
    gamma_reaches,
    left_to_estimate,
)
from rarevote.audit.replay import Replay
from rarevote.audit.strata import scaled_weights
from rarevote.audit.wealth import Stakes, Wealth
from rarevote.crowd.numerics import FloatArray

# A maximum is flat: if its value is right to 1e-12, its position is right to 1e-6.
_RATE_TOLERANCE = 1e-6


@dataclass(frozen=True)
class UnplannedSize:
    """A round whose size differs from the planner's: still valid, but reported.

    Attributes:
        number: number of the round, from 1.
        size: number of items drawn.
        planned: number of items that the planner would have drawn; 0 if it would have stopped.
    """

    number: int
    size: int
    planned: int


def replan(plan: Plan) -> tuple[list[str], list[UnplannedSize]]:
    """Reasons why the stakes of a plan are not the planner's, and the rounds with a size that it did not choose.

    Args:
        plan: a plan whose draws were checked.
    """
    logits = base_logits(plan.strata)
    reasons: list[str] = []
    sizes: list[UnplannedSize] = []
    n_drawn = 0

    def check(number: int, wealth: Wealth) -> None:
        nonlocal n_drawn
        if reasons:  # everything after a forged round depends on it
            return
        one = plan.rounds[number - 1]
        to_estimate = left_to_estimate(plan.aim, plan.strata.n_tasks, n_drawn)
        try:
            _check_rates(one.stakes, recalibrate(logits, wealth.reviewed, wealth.positives).rates)
            reached, planned = choices(wealth, one.stakes.v, plan.flag_cost, to_estimate)
            _check_bets(wealth, one.stakes, reached)
        except _OtherwiseError as error:
            reasons.append(f"round {number} of the plan was not planned from the answers before it: {error}")
            return
        room = plan.room(int(wealth.left.sum()), n_drawn)
        if len(one.tasks) > room:
            reasons.append(f"round {number} of the plan draws {len(one.tasks)} items, more than the budget leaves")
        elif len(one.tasks) != min(planned, room):
            sizes.append(UnplannedSize(number, len(one.tasks), min(planned, room)))
        n_drawn += len(one.tasks)

    Replay(plan, before_round=check)
    return reasons, sizes


class _OtherwiseError(Exception):
    """The planner would have chosen otherwise."""


def _check_rates(stakes: Stakes, rates: FloatArray) -> None:
    off = np.flatnonzero(np.abs(stakes.v - rates) > _RATE_TOLERANCE * rates)
    if off.size:
        b = int(off[0])
        raise _OtherwiseError(f"the rate v of stratum {b} is {stakes.v[b]:g}, the planner's is {rates[b]:g}")


def _check_bets(wealth: Wealth, stakes: Stakes, reached: list[FloatArray]) -> None:
    if not any(_is_rounded(stakes.w, weights) for weights in reached):
        raise _OtherwiseError("the planner chooses other weights w")
    short = np.flatnonzero(~gamma_reaches(wealth, stakes))
    if short.size:
        j = int(short[0])
        raise _OtherwiseError(f"the stake gamma of set {j} is {stakes.gamma[j]:g}, and the planner chooses another")


def _is_rounded(w: tuple[int, ...], weights: FloatArray) -> bool:
    """Whether weights round to these whole numbers, up to a relative error of 1e-9."""
    scaled = np.maximum(scaled_weights(weights), 1.0)
    return bool((np.abs(np.array(w, dtype=np.float64) - scaled) <= 0.5 + TIE * scaled).all())
