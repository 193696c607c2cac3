"""Collects what a platform's reader finds into an :class:`Export`.

A platform's module reads its records and passes what it finds to a :class:`Collector`: an item, a vote, a gold label,
an answer that does not count. The rules that do not depend on the platform are here: which of several questions,
several choices in one answer, annotators without a name, models as further workers, items without votes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rarevote.crowd.names import is_missing, pair_name, sort_labels
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError, how
from rarevote.io.platforms.base import (
    ABSENT,
    MODEL,
    NO,
    NO_ANNOTATOR,
    NO_ANSWER,
    PREDICTION,
    YES,
    Export,
    ReadAgain,
    as_text,
    choices_in_value,
    look_up,
    nothing_ticked_note,
    shown_names,
    shown_text,
)
from rarevote.io.platforms.questions import QuestionSurvey, refuse_free_text
from rarevote.io.read.columns import ignored_weights
from rarevote.io.read.options import ReadOptions

#: Turns the value of a column into its choices; the second argument is its location.
Splitter = Callable[[Any, str], list[str]]


class Collector:
    """Collects what a platform's reader finds, and creates the :class:`Export`."""

    def __init__(self, title: str, options: ReadOptions) -> None:
        self.title = title
        self.options = options
        self.survey = QuestionSurvey(title, options.question)
        self._answering: tuple[str, str | None] | None = None
        self.values: dict[str, Any] = {}
        self.details: dict[str, Any] = {}
        self.cautions: list[str] = []
        self.notes: list[str] = []
        self.n_records = 0
        self.aliases: dict[str, str] = {}
        self.judges: set[str] = set()
        self._left_out: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._task: list[str] = []
        self._worker: list[str] = []
        self._choices: list[tuple[str, ...]] = []
        self._asked: dict[int, tuple[str, ...]] = {}
        self._shown: dict[str, list[str]] = {name: [] for name in options.show}
        self._ever_shown: set[str] = set()
        self._items: dict[str, list[str]] = {}
        self._asked_of: dict[str, dict[str, None]] = {}
        self._keys: list[str] = []
        self._gold: dict[str, set[tuple[str, ...]]] = {}
        self._several: str | None = None
        self._predicted: set[tuple[str, str]] = set()
        self._n_empty = 0

    # -- the question ------------------------------------------------------------------------------------------------

    @property
    def questions(self) -> list[str]:
        """The questions found so far."""
        return self.survey.names

    def takes(self, question: str) -> bool:
        """Record that a question exists; returns whether its answers should be collected.

        Without a choice, the first question is collected; if another one is needed, :meth:`finish` requests
        that the export is read again.
        """
        self.survey.found(question)
        wanted = self.options.question
        return question == (self.questions[0] if wanted is None else wanted)  # a column can lack a name

    def answering(self, task: str | None, worker: str | None = None) -> None:
        """Set the worker and the task of the next answers; None if it is not a person's, such as a model's."""
        self._answering = None if task is None else (task, worker)

    def note(self, question: str, given: Any) -> None:
        """Record an answer to a question, collected or not: answers decide which question is chosen."""
        self.survey.found(question)
        if self._answering is not None:
            self.survey.note(question, given, *self._answering)

    # -- items -------------------------------------------------------------------------------------------------------

    def item(self, task: str, find: Callable[[str], Any], *, asked: str | None = None) -> None:
        """Record an item of the export, with or without votes; it can be recorded again.

        Args:
            task: the item.
            find: returns the value of a column to show, or ABSENT.
            asked: the choice that an annotator was asked about, if a record is about one choice.
        """
        own = self._names.setdefault
        texts = self._items.get(task)
        if texts is None:
            texts = self._items[own(task, task)] = [""] * len(self._shown)
        for place, name in enumerate(self._shown):
            if not texts[place]:
                texts[place] = self._text_to_show(name, find)
        if asked is not None:
            self._asked_of.setdefault(task, {})[asked] = None

    def _text_to_show(self, name: str, find: Callable[[str], Any]) -> str:
        value = find(name)
        if value is not ABSENT:
            self._ever_shown.add(name)
        text = shown_text(value)
        return self._names.setdefault(text, text)

    # -- answers -----------------------------------------------------------------------------------------------------

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count answers that give no rows."""
        if count:
            self._left_out[reason] += count

    def vote(
        self,
        task: str,
        worker: str | None,
        choices: Sequence[str],
        where: str,
        find: Callable[[str], Any],
        *,
        empty_is_no: bool = True,
        asked: tuple[str, ...] | None = None,
    ) -> None:
        """Record one answer.

        Args:
            task: the task.
            worker: the worker; None is counted as an answer without an annotator.
            choices: the choices.
            where: the record, for messages.
            find: returns the value of a column to show, or ABSENT.
            empty_is_no: whether choosing nothing means no to every choice, which only counts with ``multilabel``, and
                if the user does not say what it means.
            asked: the choices that the annotator was asked about, if not all; then choosing nothing is an explicit no.
        """
        if worker is None:
            self.leave_out(NO_ANNOTATOR)
            return
        kept = tuple(dict.fromkeys(name for name in choices if not is_missing(name)))
        if not kept and (asked is None or choices):
            says_no = empty_is_no if self.options.nothing_ticked is None else self.options.nothing_ticked == "no"
            if not (self.options.multilabel and says_no):
                self.leave_out(NO_ANSWER)
                return
            self._n_empty += 1
        if len(kept) > 1 and not self.options.multilabel and self._several is None:
            self._several = f"{where}: several choices in one answer ({', '.join(map(repr, kept[:5]))})"
        if asked is not None:
            self._asked[len(self._task)] = asked
        own = self._names.setdefault
        self._task.append(own(task, task))
        self._worker.append(own(worker, worker))
        self._choices.append(tuple(own(name, name) for name in kept))
        for name, column in self._shown.items():
            column.append(self._text_to_show(name, find))

    def prediction(
        self, task: str, model: str | None, choices: Sequence[str], where: str, find: Callable[[str], Any]
    ) -> None:
        """Record a model's prediction: a vote of ``model:<version>``, or only counted if models were not requested."""
        if not self.options.include_predictions:
            self.leave_out(PREDICTION)
            return
        self.vote(task, MODEL + (model or "unnamed"), choices, where, find)

    def gold(self, task: str, choices: Sequence[str]) -> None:
        """Record a gold label."""
        kept = tuple(sorted({name for name in choices if not is_missing(name)}))  # in any order, they are the same
        if kept or self.options.multilabel:
            self._gold.setdefault(task, set()).add(kept)

    def named_columns(
        self,
        task: str,
        find: Callable[[str], Any],
        where: str,
        split: Splitter = choices_in_value,
        split_gold: Splitter | None = None,
    ) -> None:
        """Record the columns that the user named: votes of models, once per task, and the gold label."""
        options = self.options
        named = [(name, False) for name in options.prediction_columns]
        for name, is_gold in [*named, (options.gold_column, True)] if options.gold_column is not None else named:
            value = find(name)
            if value is ABSENT:
                continue
            self._ever_shown.add(name)
            if is_missing(value):
                continue
            if is_gold:
                self.gold(task, (split_gold or split)(value, f"{where}: {name}"))
            elif (task, name) not in self._predicted:
                self._predicted.add((task, name))
                self.vote(task, MODEL + name, split(value, f"{where}: {name}"), where, find)

    def finder(self, *places: Any) -> Callable[[str], Any]:
        """A function that finds values by name in the objects of a record; keys are stored for messages."""
        if not self._keys:
            self._keys = [str(key) for place in places if isinstance(place, Mapping) for key in place]
        return lambda name: look_up(name, *places)

    def names(self, value: Any, where: str) -> list[str]:
        """The choices in a value, a name or a list of names; others than text are stored for writing back."""
        names = []
        for item in value if isinstance(value, list) else [value]:
            name = as_text(item, where)
            if name is not None:
                names.append(name)
                if not isinstance(item, str):
                    self.values.setdefault(name, item)
        return names

    def workers_like(self, pattern: re.Pattern[str]) -> int:
        """How many workers have names of this form."""
        return sum(pattern.fullmatch(name) is not None for name in set(self._worker))

    # -- the result --------------------------------------------------------------------------------------------------

    def finish(self, platform: str, path: Path, *, no_annotator: str = "", no_question: str = "") -> Export:
        """The export.

        Args:
            platform: its name.
            path: where it was read from.
            no_annotator: what to do if no answer has an annotator.
            no_question: what was found if there is no question.

        Raises:
            InputError: the question is not clear, an answer has several choices, or no answer is left.
            ReadAgain: the question is clear now, but another one was collected.
        """
        if not self.questions and no_question:
            raise InputError(f"{self.title}: {no_question}")
        question = self.survey.choose()
        if not self.takes(question):
            raise ReadAgain(question)
        if self._several is not None:
            raise InputError(
                f"{self._several}, question {question!r}. For one yes/no problem per choice: "
                + how("multilabel=True", "--multilabel")
            )
        if not self._task:
            self._refuse_nothing(question, no_annotator)
        if not self.options.free_text:
            counts = Counter(name for chosen in self._choices for name in chosen)
            refuse_free_text(self.title, question, counts, len(self._choices))
        self._check_columns()
        if self.options.include_predictions and not any(name.startswith(MODEL) for name in set(self._worker)):
            self.notes.append("no predictions of models were found")
        renamed = self.aliases.get
        worker = [renamed(name, name) for name in self._worker] if self.aliases else self._worker
        gold, contradicting = self._agreed_gold()
        if contradicting:
            several = counted(contradicting, "task has", "tasks have")
            self.notes.append(f"{several} more than one gold answer and no gold")
        self.notes += nothing_ticked_note(self._n_empty)
        options = self.options
        read = {question, *options.show, *options.prediction_columns, options.gold_column}
        self.notes += ignored_weights(self._keys, read)
        voted = set(self._task)
        unvoted = [task for task in self._items if task not in voted]
        export = Export(
            platform,
            path,
            question,
            tuple(self.questions),
            self._task,
            worker,
            [next(iter(chosen), NO) for chosen in self._choices],  # with multilabel, an answer can be empty
            self._shown,
            unanswered=unvoted,
            shown_unanswered=self._shown_of(unvoted),
            gold={task: chosen[0] for task, chosen in gold.items() if chosen},
            left_out=dict(self._left_out.most_common()),
            cautions=self._cautions(worker, no_annotator),
            notes=tuple(self.notes),
            n_records=self.n_records,
            values=self.values,
            details=self.details,
            judges=frozenset(self.judges & set(worker)),
        )
        if self.options.multilabel:
            export = self._one_problem_per_choice(export, gold)
        return replace(export, n_repeated=_count_repeats(export.task, export.worker))

    def _shown_of(self, items: Sequence[str]) -> dict[str, list[str]]:
        return {name: [self._items[item][place] for item in items] for place, name in enumerate(self._shown)}

    def _refuse_nothing(self, question: str, no_annotator: str) -> None:
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in self._left_out.most_common()) or "none given"
        if nameless := self._left_out[NO_ANNOTATOR]:
            answers = "the only answer has no" if nameless == 1 else f"none of the {nameless:,} answers has an"
            others = f" (also ignored: {reasons})" if len(self._left_out) > 1 else ""
            raise InputError(
                f"{self.title}: {answers} annotator, so reliability cannot be estimated{others}. "
                f"{no_annotator or 'Export with the names or numbers of the annotators.'}"
            )
        raise InputError(f"{self.title}: no answers to {question!r} are left ({reasons})")

    def _cautions(self, workers: Sequence[str], no_annotator: str) -> tuple[str, ...]:
        """Important notes about the annotators."""
        said = []
        if nameless := self._left_out[NO_ANNOTATOR]:
            of_all = f"{nameless:,} of {nameless + len(workers):,} answers"
            said.append(f"{of_all} have no annotator and are ignored. {no_annotator}".strip())
        people = {name for name in workers if not name.startswith(MODEL) and name not in self.judges}
        if len(people) == 1 and len(set(workers)) == 1:
            said.append(
                f"all answers are from one annotator ({people.pop()}), so there are no others to compare with: export "
                "the answers of the whole team, or ask two more people about the same items"
            )
        return (*said, *self.cautions)

    def _check_columns(self) -> None:
        named = [*self.options.show, *self.options.prediction_columns]
        if self.options.gold_column is not None:
            named.append(self.options.gold_column)
        for name in named:
            if name not in self._ever_shown:
                raise ParameterError(
                    f"{self.title}: no column is called {name!r}; the columns are {shown_names(self._keys)}"
                )

    def _agreed_gold(self) -> tuple[dict[str, tuple[str, ...]], int]:
        """The gold; labels that contradict each other or name several classes are left out and counted."""
        single = not self.options.multilabel
        agreed = {}
        for task, answers in self._gold.items():
            (answer, *others) = answers
            if not others and not (single and len(answer) > 1):
                agreed[task] = answer
        return agreed, len(self._gold) - len(agreed)

    def _one_problem_per_choice(self, export: Export, gold: Mapping[str, tuple[str, ...]]) -> Export:
        further = [str(name) for name in self.options.classes or ()]
        everything = {name for names in (*self._choices, *self._asked.values(), *gold.values()) for name in names}
        everything.update(further)
        choices = tuple(sort_labels(everything))
        names: dict[tuple[str, str], str] = {}

        def problem(item: str, choice: str) -> str:
            return names.setdefault((item, choice), pair_name(item, choice))

        pairs = [(row, choice) for row in range(len(export)) for choice in self._asked.get(row, choices)]
        voted = {(export.task[row], choice) for row, choice in pairs}
        # An item without answers is a problem for each choice, unless the export says which choices were asked.
        whole = dict.fromkeys(export.unanswered, choices)
        unvoted = [
            (item, choice)
            for item in self._items
            for choice in self._asked_of.get(item) or whole.get(item, ())
            if (item, choice) not in voted
        ]
        shown = {name: [column[row] for row, _ in pairs] for name, column in self._shown.items()}
        shown["item"] = [export.task[row] for row, _ in pairs]
        shown["choice"] = [choice for _, choice in pairs]
        return replace(
            export,
            task=[problem(export.task[row], choice) for row, choice in pairs],
            worker=[export.worker[row] for row, _ in pairs],
            label=[YES if choice in self._choices[row] else NO for row, choice in pairs],
            shown=shown,
            unanswered=[problem(item, choice) for item, choice in unvoted],
            shown_unanswered={
                **self._shown_of([item for item, _ in unvoted]),
                "item": [item for item, _ in unvoted],
                "choice": [choice for _, choice in unvoted],
            },
            gold={
                problem(item, choice): YES if choice in known else NO
                for item, known in gold.items()
                for choice in choices
            },
            multilabel=True,
            choices=choices,
        )


def collector_of(survey: QuestionSurvey, options: ReadOptions) -> tuple[str, Collector]:
    """The chosen question, if all were surveyed before, and the collector of its answers."""
    question = survey.choose()
    collector = Collector(survey.title, replace(options, question=question))
    for name in survey.names:
        collector.takes(name)
    return question, collector


def _count_repeats(task: Sequence[str], worker: Sequence[str]) -> int:
    # Whole numbers, because a million pairs of texts would need a gigabyte.
    code: dict[str, int] = {}
    pairs = {
        code.setdefault(who, len(code)) << 40 | code.setdefault(what, len(code))
        for what, who in zip(task, worker, strict=True)
    }
    return len(task) - len(pairs)
