"""An audit at the workbench: items in drawn order, so that every answer counts immediately.

The answers of a round are in the journal and can be undone until the expert continues. Then they become part of the
plan, because the next draw depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rarevote.audit import Audit
from rarevote.audit.certificate import write_certificate
from rarevote.audit.journal import Journal, read_journal, standing
from rarevote.audit.of_fit import result_columns
from rarevote.audit.plan_file import Answer, read_text
from rarevote.audit.saved_answers import asked_in
from rarevote.audit.source import read_again
from rarevote.audit.words import (
    forecast_words,
    gold_words,
    percent_words,
    relative_to,
    share_words,
    status_sentences,
)
from rarevote.crowd.words import quoted
from rarevote.errors import InputError
from rarevote.io.write.columns import write_columns
from rarevote.io.write.overwrite import refuse_overwriting
from rarevote.workbench.content import ItemContent
from rarevote.workbench.media import Media
from rarevote.workbench.session import ANOTHER, UNSURE, Made, OvertakenError, ReviewSession


class AuditSession(ReviewSession):
    """A session for an audit, round by round.

    Args:
        path: the plan, beside which the journal is.
        media: which files and hosts can be shown.
        show_as: ``COLUMN=KIND`` for columns whose kind the user named.
        journal: the journal, to which answers are written immediately.
        who: the expert.

    Attributes:
        audit: the audit in its current state.

    Raises:
        InputError: plan, journal or labels cannot be read or contradict each other.
    """

    proves, noun = True, "round"

    def __init__(
        self, path: Path, *, media: Media, journal: Journal, who: str | None = None, show_as: Sequence[str] = ()
    ) -> None:
        self._path = path
        self.command = ("rarevote", "audit", "review", str(path))
        audit = self.audit = Audit.from_json(read_text(path))
        self._in_plan = self._answered()
        audit.take_journal(path)
        plan = audit.plan
        # A plan created in Python may name no labels: then only the items' names can be shown.
        self._crowd = read_again(audit, path) if "labels" in (plan.source or {}) else None
        tasks, to_show = ([], {}) if self._crowd is None else (self._crowd.population.tolist(), self._crowd.to_show)
        content = ItemContent(tasks, to_show, media, show_as)
        super().__init__(
            about=f"{path.name} · recall of {quoted(plan.name)} at least {share_words(plan.target)}, "
            f"{percent_words(plan.confidence)} confidence",
            question="Which class is it?" if plan.classes else f"Is it {quoted(plan.name)}?",
            labels=plan.labels,
            content=content,
            journal=journal,
            who=who,
            instructions=plan.instructions,
        )
        if plan.labels[-1] is False:
            self.choices = [str(plan.name), f"not {plan.name}"]
        self._unsaved = False
        self._ask_round()

    @property
    def asked(self) -> tuple[str, int]:
        """The identifier of the audit, and its last round."""
        return asked_in(self.audit.plan), len(self.audit.plan.rounds)

    def _expected_in_all(self) -> int:
        forecast = self.audit.forecast
        more = round(forecast.reviews) if forecast is not None and forecast.pays else 0
        # The open items of this round are the first items of the forecast.
        return len(self.tasks) - len(self.audit.pending) + more

    @property
    def is_over(self) -> bool:
        """Whether no more items are needed."""
        return not self._unsaved and self.audit.stopped is not None

    def claims(self) -> list[str]:
        """CERTIFIED, SUPPORTED, prevalence, what more reviews would gain; nothing about single items."""
        audit = self.audit
        ahead = forecast_words(audit) if audit.pending else []
        return [*status_sentences(audit), *filter(None, [gold_words(audit)]), *ahead, relative_to(audit)]

    def resume(self, *, worst_case: bool = False) -> None:
        """Make the answers final and draw the next round.

        Args:
            worst_case: close unsure items with the worst answer for every claim.

        Raises:
            OvertakenError: there are open items.
            InputError: the plan cannot be written; then no new items are drawn, and it can be tried again.
        """
        if not self._unsaved:
            if self.next_open() is not None or (self.audit.pending and not worst_case):
                raise OvertakenError("Some items are open; answer them first.")
            if self.audit.pending:
                self.audit.worst_case(who=self.who)
            self.audit.round()
            # Whether or not the plan can be written: the round is drawn, and depends on these answers.
            self._fixed.update(range(len(self.tasks)))
        self._save()
        self._ask_round()

    @property
    def files(self) -> dict[str, Made]:
        """The files of `rarevote audit finish`, beside the plan."""
        stem = self._path.with_suffix("")
        lists = {
            "final-list": Made("Final list", Path(f"{stem}.final-list.csv")),
            "labels": Made("All labels", Path(f"{stem}.labels.csv")),
        }
        return {
            **({} if self._crowd is None else lists),
            "certificate": Made("Certificate", Path(f"{stem}.certificate.json")),
            "page": Made("Page", Path(f"{stem}.certificate.html")),
        }

    def make(self, name: str) -> Made:
        """Make the answers final, so that the plan's hash is that of the certificate, and write a file."""
        made = self.files[name]
        if self._crowd is not None:
            refuse_overwriting(made.path, self._crowd.files)
        self._save()
        if name == "certificate":
            write_certificate(self.audit, made.path)
            return made
        if name == "page":
            from rarevote.page.proved import write_proved_page  # imports the charts, which nothing else here needs

            source = self._path if self._crowd is None else Path(self._crowd.title)
            write_proved_page(self.audit, made.path, source=source.name)
            return made
        assert self._crowd is not None
        rows = result_columns(self.audit, self._crowd.annotations, self._crowd.shown)
        if name == "final-list":
            final = set(self.audit.final_list())
            flagged = np.array([task in final for task in rows["task"].tolist()], dtype=bool)
            rows = {column: values[flagged] for column, values in rows.items()}
        write_columns(rows, made.path)
        return made

    # ----------------------------------------------------------------------------------------------------------------
    # inside

    def _took(self, place: int, before: int | None) -> None:
        task, choice = self.tasks[place], self.said[place]
        if before is not None and before != UNSURE:
            self.audit.withdraw(task)
        if choice is not None and choice != UNSURE:
            self.audit.answer({task: self.labels[choice]}, who=self.who)

    def _save(self) -> None:
        self._unsaved = True
        self.audit.save(self._path, journal=self.journal)
        self._unsaved = False
        self._in_plan = self._answered()
        self._fixed.update(i for i, task in enumerate(self.tasks) if task in self._in_plan)
        self._order = {place: None for place in self._order if place not in self._fixed}

    def _round(self) -> list[tuple[Any, Answer | None]]:
        """The tasks of the last round and their answers."""
        rounds = self.audit.plan.rounds
        return list(zip(rounds[-1].tasks, rounds[-1].answers, strict=True)) if rounds else []

    def _answered(self) -> set[Any]:
        """Tasks of the last round that currently have an answer."""
        return {task for task, answer in self._round() if answer is not None}

    def _ask_round(self) -> None:
        asked = self._round()
        if not asked:
            return
        lines = standing(read_journal(self._path))
        unsure = {task for task, entry in lines.items() if entry.label is None}
        said = [self._choice_in_plan(one) if one else UNSURE if task in unsure else None for task, one in asked]
        first = 1 + sum(len(one.tasks) for one in self.audit.plan.rounds[:-1])
        fixed = [i for i, (task, _) in enumerate(asked) if task in self._in_plan]
        self.ask([task for task, _ in asked], said, first=first, fixed=fixed)
        self.answered_before(lines)

    def _choice_in_plan(self, answer: Answer) -> int:
        """The choice of an answer; a file of answers can say "no" to one of many classes."""
        try:
            return UNSURE if answer.worst_case else self.choice_of(answer.label)
        except InputError:
            return ANOTHER


def check_plan(path: Path) -> None:
    """Refuse a path that is not a file, before a journal is created beside it.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; `rarevote audit start` writes a plan")
