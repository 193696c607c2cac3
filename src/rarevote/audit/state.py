"""The state of an audit: what its log proves and supports, and what to expect next."""

from __future__ import annotations

from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np

from rarevote.audit.estimates import Estimate, Estimates, Recalibration, base_logits, recalibrate
from rarevote.audit.plan_file import Plan
from rarevote.audit.planning import Forecast, Step, forecasts, left_to_estimate, step_of, to_be_bought
from rarevote.audit.replay import Replay
from rarevote.audit.wealth import Wealth
from rarevote.decide.floor import floor_reviews, most_positives

#: Why an audit requests no more reviews.
NOTHING_PAYS = "more reviews would cost more than they save"
BUDGET_SPENT = "the review budget is used up"
ALL_REVIEWED = "every item was reviewed"


class AuditState:
    """What follows from a plan and its log."""

    def __init__(self, plan: Plan) -> None:
        """Replay a plan from its log.

        Raises:
            InputError: a round does not match the seed and the weights.
        """
        self._replay = Replay(plan)
        self._logits = base_logits(plan.strata)

    @property
    def plan(self) -> Plan:
        """The settings and the log of the audit."""
        return self._replay.plan

    @property
    def pending(self) -> list[Any]:
        """Drawn tasks without an answer, in drawn order."""
        return self._replay.pending

    @property
    def n_behind_a_gap(self) -> int:
        """Number of answers of the last round that do not count yet, because an item drawn earlier is open."""
        if not self.plan.rounds:
            return 0
        answers = self.plan.rounds[-1].answers
        first_open = answers.index(None) if None in answers else len(answers)
        return sum(answer is not None for answer in answers[first_open:])

    @property
    def wealth(self) -> Wealth:
        """Counts and bets so far."""
        return self._replay.wealth

    @property
    def n_reviewed(self) -> int:
        """Number of drawn tasks whose answers count in a bet."""
        return int(self.wealth.reviewed.sum())

    @property
    def n_positives(self) -> int:
        """Number of positives among them."""
        return int(self.wealth.positives.sum())

    @property
    def certified(self) -> int:
        """Index of the certified set: strata 0 to this one; the last index means all items, which proves nothing."""
        return self.wealth.certified

    @property
    def is_certified(self) -> bool:
        """Whether a set smaller than all items is certified."""
        return self.certified < len(self.plan.strata.tasks) - 1

    @property
    def supported(self) -> int:
        """Index of the supported set: assumes that the crowd's error rate changes smoothly with its confidence."""
        return self._estimates().supported(self.plan.target, self.plan.confidence)

    @property
    def estimate(self) -> Estimate:
        """Prevalence, recall and precision of the certified list, with intervals (not proved)."""
        return self.estimate_of(self.certified)

    def estimate_of(self, set_index: int) -> Estimate:
        """The estimate for another set."""
        return self._estimates().of(set_index)

    @property
    def recalibration(self) -> Recalibration:
        """What the reviews say about the crowd's scores."""
        return recalibrate(self._logits, self.wealth.reviewed, self.wealth.positives)

    @property
    def forecast(self) -> Forecast | None:
        """What further reviews would cost and gain; None if there is no smaller set to certify."""
        return self._cheapest(self.wealth)

    @property
    def bought(self) -> list[Step]:
        """What the reviews have gained: before any, and after every round whose bets are all decided."""
        return self._replay.steps

    @property
    def to_be_bought(self) -> list[Step]:
        """What more reviews are expected to gain; can be off by a factor of two."""
        return to_be_bought(step_of(self.wealth), self._forecasts(self.wealth))

    @property
    def floor(self) -> int:
        """Reviews of unflagged items below which no audit can certify the target, as expected from the scores."""
        return self.floor_at(self.plan.confidence)[0]

    def floor_at(self, confidence: Fraction) -> tuple[int, int]:
        """The minimum number of reviews at another confidence, and the number of unflagged items to draw from.

        The flagged set is the smallest one whose expected recall reaches the target, by the scores alone.
        """
        sizes = np.array(self.plan.strata.sizes)
        expected = np.cumsum(sizes * self.plan.strata.p0) + self.wealth.known_positives
        j = int((expected >= float(self.plan.target) * expected[-1]).argmax())
        unflagged = int(sizes[j + 1 :].sum())
        return floor_reviews(round(expected[j]), unflagged, target=self.plan.target, confidence=confidence), unflagged

    def forecast_at_start(self, confidence: Fraction) -> Forecast | None:
        """The forecast before the first review, at any confidence."""
        known = self.wealth.known_positives
        wealth = Wealth(self.plan.strata.sizes, target=self.plan.target, confidence=confidence, known_positives=known)
        return self._cheapest(wealth)

    def _forecasts(self, wealth: Wealth) -> list[Forecast]:
        rates = recalibrate(self._logits, wealth.reviewed, wealth.positives).rates
        return forecasts(wealth, rates, self.plan.flag_cost)

    def _cheapest(self, wealth: Wealth) -> Forecast | None:
        return min(self._forecasts(wealth), key=attrgetter("cost"), default=None)

    @property
    def stopped(self) -> str | None:
        """Why no more reviews are requested; None while tasks are open or a further round is worth its cost."""
        if self.pending:
            return None
        if not self.wealth.left.any():
            return ALL_REVIEWED
        if self.plan.budget is not None and self._replay.n_drawn >= self.plan.budget:
            return BUDGET_SPENT
        if self._left_to_estimate:
            return None
        forecast = self.forecast
        return None if forecast is not None and forecast.pays else NOTHING_PAYS

    @property
    def most_positives(self) -> int | None:
        """While no positive was found: the largest possible number, at the audit's confidence, without assumptions."""
        if self.wealth.n_found:
            return None
        left, worst = int(self.wealth.left.sum()), int(self.wealth.worst.sum())
        return most_positives(self._replay.chances, left, confidence=self.plan.confidence) + worst

    @property
    def answers(self) -> dict[Any, Any]:
        """The expert's labels by task, without gold."""
        said = {
            task: answer.label
            for one in self.plan.rounds
            for task, answer in zip(one.tasks, one.answers, strict=True)
            if answer is not None and not answer.worst_case
        }
        return {task: answer.label for task, answer in self.plan.extras.items()} | said

    def final_list(self, set_index: int | None = None) -> list[Any]:
        """Tasks to flag, best first; gold is not included.

        These are the certified set (or another) without the expert's negatives, and all of the expert's positives.
        """
        j = self.certified if set_index is None else set_index
        said = {task: self._replay.reading.is_positive(label) for task, label in self.answers.items()}
        return [
            task
            for stratum, tasks in enumerate(self.plan.strata.tasks)
            for task in tasks
            if said.get(task, stratum <= j)
        ]

    def _estimates(self) -> Estimates:
        seed = [self.plan.seed, self._replay.n_taken]
        return Estimates(self.wealth, self.recalibration, n_gold=len(self.plan.gold), seed=seed)

    @property
    def _left_to_estimate(self) -> int:
        return left_to_estimate(self.plan.aim, self.plan.strata.n_tasks, self._replay.n_drawn)
