"""An audit: prove a recall with few reviews by an expert, whatever the quality of the crowd or the model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from rarevote.audit.answers import ExpertWords
from rarevote.audit.certificate import certificate
from rarevote.audit.instructions import Instructions
from rarevote.audit.journal import Journal, journal_path, read_journal, standing, writing
from rarevote.audit.opening import audited, checked_options, now
from rarevote.audit.plan_file import (
    PLANNER,
    Aim,
    Answer,
    Plan,
    checked_source,
    fingerprint,
    is_tail_of,
    parse_plan,
    read_text,
    to_text,
)
from rarevote.audit.plan_writing import lacking, write_plan
from rarevote.audit.planning import FLAG_COST, propose
from rarevote.audit.replay import Replay
from rarevote.audit.state import AuditState
from rarevote.audit.strata import build_strata, shuffle_key
from rarevote.audit.wealth import Stakes
from rarevote.crowd.arguments import check_count
from rarevote.crowd.names import as_name_array, in_kind, plain_name, values_by_name
from rarevote.crowd.steps import doing
from rarevote.decide.floor import Share
from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from rarevote.audit.verify import Verdict
    from rarevote.crowd.annotations import Annotations


class Audit(AuditState):
    """An audit of one class; made by :meth:`start`, :meth:`load` or :meth:`from_json`.

    Example:
        >>> scores = [0.9 - 0.0085 * i for i in range(100)]
        >>> audit = Audit.start(range(100), scores, name="defect", target=0.9, seed=1)
        >>> while review := audit.round():
        ...     _ = audit.answer({task: task < 40 for task in review})
        >>> audit.stopped is not None, set(range(40)) - set(audit.final_list())
        (True, set())
    """

    @classmethod
    def start(
        cls,
        tasks: Iterable[Any],
        scores: ArrayLike,
        *,
        name: Any,
        target: Share,
        confidence: Share = 0.95,
        flag_cost: float = FLAG_COST,
        aim: Aim = "certificate",
        budget: int | None = None,
        gold: Mapping[Any, Any] | None = None,
        classes: Iterable[Any] | None = None,
        tail: Iterable[Any] | None = None,
        seed: int | None = None,
        labels_sha256: str | None = None,
        gold_sha256: str | None = None,
        source: dict[str, Any] | None = None,
        earlier: Sequence[Audit] = (),
        unvoted: Collection[Any] | None = None,
        only_voted_items: bool = False,
        score: str | None = None,
        instructions: Instructions | None = None,
    ) -> Audit:
        """Start an audit: fix everything that it depends on, before any answer.

        Args:
            tasks: all tasks of the crowd, (N); text or numbers.
            scores: calibrated probability of the class for each task, (N). NaN if there is no score, as for tasks
                without votes: these form a separate last stratum, with the mean score as base rate.
            name: the class whose recall is to be proved.
            target: the recall, above 0 and at most 1; 0.9 is read as nine tenths.
            confidence: 1 - alpha; the probability of a false certificate is at most alpha.
            flag_cost: cost of a flagged item that turns out negative, in reviews.
            aim: "certificate", or "estimate" to spend the first reviews on narrow intervals.
            budget: the largest number of reviews to ask for.
            gold: labels of tasks known before the audit, by task. They are removed from the population; positives count
                as found.
            classes: all classes; if given, any other answer is an error.
            tail: for a tail of grades, the classes that count as positive; ``name`` is then the name of the tail,
                and the plan has version 2.
            seed: 64 bits; by default from the operating system. Give a seed only in tests.
            labels_sha256: SHA-256 of the labels that the scores came from.
            gold_sha256: SHA-256 of the gold.
            source: a record of where the labels are, for the plan; used to write the result.
            earlier: earlier audits of the same labels; the certificate names them.
            unvoted: the tasks without votes, so that plan and certificate can count them.
            only_voted_items: whether to leave these out; plan and certificate say so.
            score: the kind of the scores, for the plan: "sampler", "posterior" or "reported".
            instructions: the question and the definitions of classes, stored in plan and certificate.

        Raises:
            ParameterError: a parameter is out of range.
            InputError: tasks and scores do not match, a task occurs twice, or no gold task is among the tasks.
        """
        exact_target, exact_confidence, drawn_by = checked_options(target, confidence, flag_cost, aim, budget, seed)
        try:
            checked_source(source)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"source cannot be stored in a plan: {error}") from None
        doing("planning the audit")
        reading = ExpertWords(name, classes, tail)
        if reading.tail is not None and not is_tail_of(reading.name, reading.tail, reading.classes):
            raise ParameterError(f"{reading.tail} is not a tail of the classes {reading.classes}")
        about = audited(list(tasks), scores, gold, reading, unvoted, only_voted_items)
        return cls(
            Plan(
                name=reading.name,
                classes=reading.classes,
                target=exact_target,
                confidence=exact_confidence,
                flag_cost=float(flag_cost),
                aim=aim,
                budget=None if budget is None else int(budget),
                seed=drawn_by,
                started=now(),
                labels_sha256=labels_sha256,
                gold_sha256=gold_sha256,
                source=source,
                earlier=[one._mention() for one in earlier],
                gold=about.gold,
                strata=build_strata(about.tasks, about.scores, drawn_by),
                score=score,
                population=about.population,
                planner=PLANNER,
                tail=reading.tail,
                instructions=_checked(instructions, reading),
            )
        )

    # ----------------------------------------------------------------------------------------------------------------
    # files

    def to_json(self) -> str:
        """The text of the plan file."""
        return to_text(self.plan.as_json())

    @classmethod
    def from_json(cls, text: str) -> Audit:
        """An audit from its plan's text, replayed from the log.

        Raises:
            InputError: the text is not a plan, or was altered.
        """
        return cls(parse_plan(text))

    def save(self, path: Path | str, *, journal: Journal | None = None) -> None:
        """Write the plan, completely or not at all; concurrent writers do not lose each other's answers.

        Args:
            journal: the journal beside it, if the caller writes to it.

        Raises:
            InputError: the file contains another audit, or answers that this one lacks, or another process writes
                answers.
        """
        if journal is not None or not journal_path(path).exists():
            write_plan(path, self.plan)
            return
        with writing(path):
            self._check_journal(path)
            write_plan(path, self.plan)

    @classmethod
    def load(cls, path: Path | str) -> Audit:
        """Read a plan and the journal beside it.

        Raises:
            InputError: a file cannot be read or was altered, or the two contradict each other.
        """
        audit = cls.from_json(read_text(path))
        audit.take_journal(path)
        return audit

    def _check_journal(self, path: Path | str) -> None:
        """Refuse to write a plan that the journal beside it contradicts: the two could not be read any more."""
        for entry in standing(read_journal(path)).values():
            for task, label in self._read({entry.task: entry.label}):
                if self._contradicted(task, label) is not None:
                    raise lacking(path)

    def take_journal(self, path: Path | str) -> None:
        """Add the answers in the journal beside a plan.

        Raises:
            InputError: the journal cannot be read, or contradicts the plan.
        """
        for entry in standing(read_journal(path)).values():
            self.answer({entry.task: entry.label}, who=entry.who, when=entry.when)

    def check_labels(self, labels_sha256: str) -> None:
        """Refuse labels that differ from those at the start of the audit.

        Raises:
            InputError: they differ.
        """
        if self.plan.labels_sha256 not in (None, labels_sha256):
            raise InputError(
                "the labels have changed since the audit started, but its ranking is frozen: start a new audit"
            )

    @property
    def sha256(self) -> str:
        """SHA-256 of the current plan, which is that of the saved file."""
        return fingerprint(self.plan.as_json())

    def _mention(self) -> dict[str, Any]:
        """How a later audit names this one."""
        return {
            "plan_sha256": self.sha256,
            "class": self.plan.name,
            "target": str(self.plan.target),
            "started": self.plan.started,
            "reviews": self.n_reviewed,
            "certified": self.is_certified,
        }

    # ----------------------------------------------------------------------------------------------------------------
    # asking and answering

    def round(self, n: int | None = None) -> list[Any]:
        """The tasks to review next, in an order that reveals nothing about them; empty if no more are needed.

        Drawn tasks without an answer come first: new tasks are drawn only once all of them are answered.

        Args:
            n: draw this many instead of the planned number, even if the planner would stop.

        Raises:
            ParameterError: ``n`` is not a whole number of at least 1.
        """
        if n is not None:
            check_count("n", n)
        while not self.pending:
            planned = self._next_round(n)
            if planned is None:
                return []
            self._replay.add_round(*planned)
        number = len(self.plan.rounds)
        return sorted(self.pending, key=shuffle_key(self.plan.seed, "list", number))

    def answer(self, answers: Mapping[Any, Any], *, who: str | None = None, when: str | None = None) -> int:
        """Add the expert's answers. They count up to the first open task in drawn order; later ones are stored.

        Args:
            answers: label by task; True for the class and False for not the class; None, blank or "unsure" if the
                expert is not sure: the task then stays in the queue.
            who: the expert.
            when: time of the answer; by default now.

        Returns:
            The number of bets decided by the answers.

        Raises:
            InputError: a task is not in the audit, a label is not a class, or an answer contradicts an earlier one.
        """
        before, stamp = self._replay.n_taken, when or now()
        read = self._read(answers)
        for task, label in read:
            self._check_answer(task, label)
        for task, label in read:
            if label is not None and task not in self.plan.gold:
                self._replay.record(task, Answer(label, who, stamp))
        self._replay.take_in()
        return self._replay.n_taken - before

    def withdraw(self, task: Any) -> None:
        """Remove an answer of the last round; all bets are decided again.

        Raises:
            InputError: the task is not in the last round: later draws depend on its answer.
        """
        last = self.plan.rounds[-1] if self.plan.rounds else None
        if last is None or task not in last.tasks:
            raise InputError(f"task {task!r} is not in the last round, so its answer is final")
        last.answers[last.tasks.index(task)] = None
        self.plan.extras.pop(task, None)  # it may have been answered before it was drawn
        self._replay = Replay(self.plan)

    def worst_case(self, *, who: str | None = None) -> int:
        """Close all open tasks with the worst answer for every claim; returns the number of bets decided."""
        before = self._replay.n_taken
        self._replay.close(Answer(None, who, now(), worst_case=True))
        self._replay.take_in()
        return self._replay.n_taken - before

    def repeat_list(self, share: float = 0.05) -> list[Any]:
        """Tasks to show the expert again, without the first answers, to measure how consistent the expert is."""
        asked = [task for task, answer in self.answers.items() if task not in self.plan.repeats]
        wanted = ceil(share * len(self.answers)) - len(self.plan.repeats)
        return sorted(asked, key=shuffle_key(self.plan.seed, "repeat"))[: max(wanted, 0)]

    def answer_repeats(self, answers: Mapping[Any, Any], *, who: str | None = None) -> None:
        """Store second answers. They change no bet; the certificate reports how many differ.

        Raises:
            InputError: a task has no first answer, or a label is not a class.
        """
        first = self.answers
        read = self._read(answers)
        for task, _ in read:
            if task not in first:
                raise InputError(f"task {task!r} has no first answer yet: only answered tasks can be repeated")
        for task, label in read:
            if label is not None:
                self.plan.repeats.setdefault(task, Answer(label, who, now()))

    def certificate(self) -> dict[str, Any]:
        """The current certificate, as a record for a JSON file that :mod:`rarevote.audit.verify` checks."""
        return certificate(self)

    def verify(
        self, claimed: str | Mapping[str, Any], *, labels_sha256: str | None = None, votes: Annotations | None = None
    ) -> Verdict:
        """Reasons why a certificate does not follow from this audit's log; see :mod:`rarevote.audit.verify`."""
        from rarevote.audit.verify import verify

        return verify(self, claimed, labels_sha256=labels_sha256, votes=votes)

    # ----------------------------------------------------------------------------------------------------------------
    # inside

    def _next_round(self, n: int | None) -> tuple[Stakes, int] | None:
        """Stakes and size of the next round; None to stop. A requested number is drawn in any case."""
        room = self.plan.room(int(self.wealth.left.sum()), self._replay.n_drawn)
        if room <= 0:
            return None
        proposed = propose(self.wealth, self.recalibration.rates, self.plan.flag_cost, self._left_to_estimate)
        size = n or proposed.size
        return (proposed.stakes, min(size, room)) if size else None

    def _read(self, answers: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        """Tasks with their names in the audit, and labels in the type of the data."""
        # The drawn tasks are few: the others, up to millions, are searched only for tasks that were not requested.
        tasks, drawn = list(map(plain_name, answers)), self._replay.drawn
        if any(task not in drawn for task in tasks):
            everything = self.plan.tasks
            # A name means itself, wherever it is; only other spellings are searched among the drawn tasks first.
            for known in (drawn, everything):
                tasks = _meant(tasks, known, everything)
            strange = next((task for task in tasks if task not in everything), None)
            if strange is not None:
                raise InputError(f"task {strange!r} is not in this audit: check ids and their types")
        labels = [self._replay.reading.label(said) for said in answers.values()]
        read = list(zip(tasks, labels, strict=True))
        values_by_name(((task, label) for task, label in read if label is not None), "task")  # 7 and "7" must agree
        return read

    def _contradicted(self, task: Any, label: Any) -> Any:
        """The earlier label on a task that this one contradicts, or None."""
        standing = self._replay.standing(task)
        before = self.plan.gold.get(task) if standing is None else standing.label
        return before if label is not None and before != label else None

    def _check_answer(self, task: Any, label: Any) -> None:
        before = self._contradicted(task, label)
        if before is not None:
            raise InputError(
                f"task {task!r} was answered {before!r} before and {label!r} now: answers are final; where "
                "experts disagree, they must agree first"
            )


def _checked(instructions: Instructions | None, reading: ExpertWords) -> Instructions | None:
    """Instructions with the class names of the audit; None if they are empty."""
    if not instructions:
        return None
    return instructions.of_classes(reading.classes or [reading.name, f"not {reading.name}"])


def _meant(tasks: list[Any], known: Collection[Any], everything: Collection[Any]) -> list[Any]:
    """Each task that has no exact name by its known name, if it has one: 7 for "7"."""
    unknown = [task for task in tasks if task not in everything]
    if not unknown or not known:
        return tasks
    meant = dict(zip(unknown, in_kind(unknown, as_name_array(list(known))), strict=True))
    return [meant[task] if task in meant and meant[task] in known else task for task in tasks]
