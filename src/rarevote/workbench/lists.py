"""A review list at the workbench: the items of a file, and finally a file of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rarevote.audit.instructions import Instructions
from rarevote.audit.journal import Entry, Journal, read_journal, standing
from rarevote.audit.saved_answers import asked_of_list
from rarevote.crowd.names import as_name_array, in_kind, sort_labels
from rarevote.crowd.words import counted
from rarevote.errors import InputError, ParameterError
from rarevote.io.read.answers import ReviewList
from rarevote.io.write.columns import write_columns
from rarevote.workbench.content import ItemContent
from rarevote.workbench.media import Media
from rarevote.workbench.session import UNSURE, Made, ReviewSession

# Columns of a list about the crowd: an expert who reads them is not independent.
_ABOUT_THE_CROWD = ("decided", "doubt", "reason", "expected_gain", "ask")


class ListSession(ReviewSession):
    """A session for the items of a list, in its order.

    Rows that already have a label are not asked again, and are included in the answers.

    Args:
        path: the file of the list, beside which the journal is.
        listed: its contents.
        out: the file for the answers.
        classes: the classes; by default, those that the list names.
        reasons: whether to show what the list says about the crowd.
        media: which files and hosts can be shown.
        show_as: ``COLUMN=KIND`` for columns whose kind the user named.
        instructions: the question, and what classes mean.
        journal: the journal, to which answers are written immediately.
        who: the expert.

    Raises:
        InputError: the journal does not belong to this list.
        ParameterError: fewer than two classes are known.
    """

    def __init__(
        self,
        path: Path,
        listed: ReviewList,
        *,
        out: Path,
        classes: Sequence[str] = (),
        reasons: bool = False,
        media: Media,
        journal: Journal,
        who: str | None = None,
        show_as: Sequence[str] = (),
        instructions: Instructions | None = None,
    ) -> None:
        self._given = {
            task: label
            for task, label in zip(listed.tasks, listed.columns.get("label", []), strict=False)
            if label is not None
        }
        known = sort_labels({*listed.columns.get("decided", []), *listed.columns.get("doubt", []),
                             *self._given.values()} - {None})  # fmt: skip
        labels = in_kind(classes, as_name_array(known)) if classes else known
        if len(set(labels)) < 2:
            raise ParameterError(f"{path} does not name the classes: add them with --class defect --class sound")
        hidden = {"label", *(() if reasons else _ABOUT_THE_CROWD)}
        columns = {
            name: ["" if value is None else str(value) for value in values]
            for name, values in listed.columns.items()
            if name not in hidden
        }
        super().__init__(
            about=f"{path.name} · {counted(len(listed.tasks), 'item')}",
            question="Which class is it?",
            labels=list(dict.fromkeys(labels)),
            content=ItemContent(listed.tasks, columns, media, show_as),
            journal=journal,
            who=who,
            instructions=None if instructions is None else instructions.of_classes(dict.fromkeys(labels)),
        )
        self._out = out
        self.command = ("rarevote", "review", str(path))
        asked = [task for task in listed.tasks if task not in self._given]
        lines = standing(read_journal(path))
        known_tasks = set(listed.tasks)
        strange = [task for task in lines if task not in known_tasks]
        if strange:
            raise InputError(f"{journal.path}: {strange[0]!r} is not on the list; this journal belongs to another list")
        said = [
            None if task not in lines else UNSURE if lines[task].label is None else self.choice_of(lines[task].label)
            for task in asked
        ]
        self.ask(asked, said, first=1)
        self.answered_before(lines)

    @property
    def asked(self) -> tuple[str, int]:
        """The identifier of the list."""
        return asked_of_list(self.tasks, self.labels), 1

    def take(self, entries: Iterable[Entry]) -> int:
        """Add answers that were given elsewhere; returns the number of new ones.

        Raises:
            InputError: an item has another answer already.
        """
        place = {task: i for i, task in enumerate(self.tasks)}
        new = [entry for entry in entries if self._is_new(place[entry.task], entry)]
        for entry in new:
            self.journal.append(entry)
            self.said[place[entry.task]] = UNSURE if entry.label is None else self.choice_of(entry.label)
        return len(new)

    def _is_new(self, place: int, entry: Entry) -> bool:
        said = self.said[place]
        choice = UNSURE if entry.label is None else self.choice_of(entry.label)
        if said is None or (said == UNSURE and choice != UNSURE):
            return True
        if choice not in (UNSURE, said):
            raise InputError(
                f"item {entry.task!r} was answered {self.name_of(said)} before and {self.name_of(choice)} now: "
                "answers are final; to change one, undo it in the workbench first"
            )
        return False

    @property
    def answers(self) -> dict[Any, Any]:
        """Labels by task, without unsure ones."""
        pairs = zip(self.tasks, self.said, strict=True)
        said = {task: self.labels[choice] for task, choice in pairs if choice is not None and choice != UNSURE}
        return {**self._given, **said}

    @property
    def files(self) -> dict[str, Made]:
        """The file of the answers."""
        return {"answers": Made("The answers", self._out)}

    def make(self, name: str) -> Made:
        """Write the answers: task, label."""
        made = self.files[name]
        answers = self.answers
        write_columns({"task": as_name_array(list(answers)), "label": as_name_array(list(answers.values()))}, made.path)
        return made
