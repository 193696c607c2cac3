"""Replay the log of a plan: every round is drawn again and every bet decided again, in drawn order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

import numpy as np

from rarevote.audit.answers import ExpertWords
from rarevote.audit.plan_file import Answer, Plan, Round
from rarevote.audit.planning import step_of
from rarevote.audit.strata import Urn
from rarevote.audit.wealth import Stakes, Wealth
from rarevote.crowd.names import name_key, some_names
from rarevote.errors import InputError, shown

# The number of bets decided at once, which bounds memory.
_BATCH = 1024


class Replay:
    """The state that follows from a plan, updated while rounds and answers are added.

    Attributes:
        plan: the log.
        reading: how labels are read.
        wealth: counts and bets.
        chances: the smallest probability of any item at each draw that was answered before a positive was found.
        n_taken: number of decided bets.
        drawn: position in drawn order, by task.
        steps: the certified set before any answer, and after every round whose bets are all decided.

    Args:
        plan: the log.
        before_round: called with the number of a round (from 1) and the state before it, for every round.

    Raises:
        InputError: a round does not match the seed and the weights, or a label is not stored as answers are.
    """

    def __init__(self, plan: Plan, before_round: Callable[[int, Wealth], None] | None = None) -> None:
        self.plan = plan
        self._before_round = before_round
        self.reading = ExpertWords(plan.name, plan.classes, plan.tail)
        self._check_labels()
        self.wealth = Wealth(
            plan.strata.sizes,
            target=plan.target,
            confidence=plan.confidence,
            known_positives=sum(map(self.reading.is_positive, plan.gold.values())),
        )
        self.chances: list[float] = []
        self.n_taken = 0
        self.steps = [step_of(self.wealth)]
        self._urn = Urn(plan.strata.sizes)
        self._queue: list[tuple[int, int, int]] = []  # round, position in it and stratum of every drawn item
        self.drawn: dict[Any, int] = {}
        for number in range(1, len(plan.rounds) + 1):
            self._check_draws(number)
        self.take_in()

    @property
    def n_drawn(self) -> int:
        """Number of tasks drawn, answered or not."""
        return len(self._queue)

    @property
    def pending(self) -> list[Any]:
        """Drawn tasks without an answer, in drawn order; only the last round can have any."""
        if not self.plan.rounds:
            return []
        last = self.plan.rounds[-1]
        return [task for task, answer in zip(last.tasks, last.answers, strict=True) if answer is None]

    def add_round(self, stakes: Stakes, size: int) -> None:
        """Draw a round and add it to the plan."""
        tasks = self._draw(len(self.plan.rounds) + 1, stakes, size)
        # Items that were answered without being requested are not asked again.
        self.plan.rounds.append(Round(stakes, tasks, [self.plan.extras.get(task) for task in tasks]))
        self.take_in()

    def record(self, task: Any, answer: Answer) -> None:
        """Add an answer to the plan, unless the task has one."""
        if self.standing(task) is not None:
            return
        if task in self.drawn:
            number, place, _ = self._queue[self.drawn[task]]
            slots = self.plan.rounds[number - 1].answers
            if slots[place] is None:
                slots[place] = answer
                return
        # Not requested, or closed as the worst case: the answer affects the item's label, but no bet.
        self.plan.extras[task] = answer

    def close(self, answer: Answer) -> None:
        """Give all open tasks the same answer, the worst case."""
        if self.plan.rounds:
            last = self.plan.rounds[-1]
            last.answers = [answer if standing is None else standing for standing in last.answers]

    def standing(self, task: Any) -> Answer | None:
        """The answer on a task; a task closed as the worst case has none until it is answered later."""
        if task in self.drawn:
            number, place, _ = self._queue[self.drawn[task]]
            answer = self.plan.rounds[number - 1].answers[place]
            if answer is not None and not answer.worst_case:
                return answer
        return self.plan.extras.get(task)

    def take_in(self) -> None:
        """Decide bets in drawn order up to the first open answer."""
        while self.n_taken < len(self._queue):
            number, first, _ = self._queue[self.n_taken]
            one = self.plan.rounds[number - 1]
            if first == 0 and self._before_round is not None:
                self._before_round(number, self.wealth)
            # Until a positive is found, the probability of every draw is stored; after that, the answered rest of the
            # round is processed at once.
            wanted = one.answers[first : first + (_BATCH if self.wealth.n_found else 1)]
            ready = list(takewhile(lambda answer: answer is not None, wanted))
            if not ready:
                return
            strata = [stratum for _, _, stratum in self._queue[self.n_taken : self.n_taken + len(ready)]]
            positive = [None if said.worst_case else self.reading.is_positive(said.label) for said in ready if said]
            if not self.wealth.n_found and positive == [False]:
                w, left = np.array(one.stakes.w, dtype=np.float64), self.wealth.left
                self.chances.append(float(w[left > 0].min() / (w @ left)))
            self.wealth.observe(strata, positive, one.stakes)
            self.n_taken += len(ready)
            if first + len(ready) == len(one.tasks):
                self.steps.append(step_of(self.wealth))

    def _draw(self, number: int, stakes: Stakes, size: int) -> list[Any]:
        """Draw the tasks of a round and queue them."""
        weights, tasks = list(stakes.w), []
        for place in range(size):
            stratum, position = self._urn.draw(self.plan.seed, number, place, weights)
            task = self.plan.strata.tasks[stratum][position]
            self.drawn[task] = len(self._queue)
            self._queue.append((number, place, stratum))
            tasks.append(task)
        return tasks

    def _check_labels(self) -> None:
        """Refuse labels that answers are never stored as: a positive in another spelling would count as a negative."""
        seen, by_0_2 = set(), self.plan.planner is None
        for task, label in self.plan.labelled():
            if name_key(label) not in seen and not self.reading.is_stored(label, by_0_2=by_0_2):
                raise InputError(
                    f"the plan is damaged: item {shown(task)} has the label {shown(label)}, which no answer is stored "
                    f"as; the labels are {some_names(self.plan.labels)}"
                )
            seen.add(name_key(label))

    def _check_draws(self, number: int) -> None:
        """Draw a recorded round again."""
        one = self.plan.rounds[number - 1]
        if len(one.tasks) > sum(self._urn.left):
            raise InputError(f"round {number} of the plan has more tasks than were left: the plan was altered")
        tasks = self._draw(number, one.stakes, len(one.tasks))
        if tasks != one.tasks:
            i = next(i for i, task in enumerate(tasks) if task != one.tasks[i])
            raise InputError(
                f"round {number} of the plan was altered: seed and weights draw {tasks[i]!r} at place {i + 1}, "
                f"the plan has {one.tasks[i]!r}"
            )
