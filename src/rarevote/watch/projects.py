"""The review project: a second Label Studio project, where experts answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.audit.answers import adjudicated
from rarevote.errors import InputError
from rarevote.io.live.label_studio import Project
from rarevote.io.live.pulled import is_answered, pull, tasks_in
from rarevote.io.platforms.write_back import TASK_KEY, label_studio_task, values_to_show
from rarevote.io.read.answers import Said, read_answers

if TYPE_CHECKING:
    from rarevote.io.read.crowd import Crowd
    from rarevote.result import Result

ANSWERS = "answers.json"


class ReviewProject:
    """Items for an expert, and the expert's answers.

    An item is added only once: its name is in ``data.task``. Labels and scores are not sent
    with it.

    Args:
        project: the project on its server.
        folder: the folder for the file of its answers.
        question: which question of the project, if it has several.
        max_review: the largest number of open items, for review lists.
    """

    def __init__(
        self, project: Project, folder: Path, *, question: str | None = None, max_review: int | None = None
    ) -> None:
        self.project, self.path = project, folder / ANSWERS
        self._question, self._max_review = question, max_review

    def fetch(self) -> list[Said]:
        """Fetch all current answers of the project."""
        found = pull(self.project, self.path)
        return read_answers(self.path, question=self._question) if found.annotations else []

    def answers(self) -> dict[str, str]:
        """The label of each answered item; none if experts disagree."""
        said = adjudicated((str(row.task), row.label) for row in self.fetch())
        return {task: str(label) for task, label in said.items() if label is not None}

    def ask(self, result: Result, known: Mapping[Any, Any]) -> int:
        """Send the items most worth a review to the project; returns the number of new ones."""
        if self._max_review is None:
            return 0
        there = {str(task["data"].get(TASK_KEY)): is_answered(task) for task in tasks_in(self.path)}
        room = self._max_review - list(there.values()).count(False)
        # Items without votes can still get some; an answer on one shows nothing about annotators.
        listed = result.review(self._max_review + result.n_unvoted).items
        worth = [item.task for item in listed if item.row < result.fitted.annotations.n_tasks][: self._max_review]
        new = [task for task in worth if task not in known and str(task) not in there]
        return self.add(new[: max(room, 0)], result.fitted.crowd)

    def add(self, tasks: Iterable[Any], crowd: Crowd) -> int:
        """Add items to the project unless they exist; returns the number of new ones."""
        wanted = list(tasks)
        if not wanted:
            return 0
        place = {task: row for row, task in enumerate(crowd.population.tolist())}
        self._check_data(crowd)
        return self.project.add_tasks(
            [label_studio_task(task, values_to_show(crowd.to_show, place[task])) for task in wanted]
        )

    def _check_data(self, crowd: Crowd) -> None:
        """Refuse a project whose labelling interface needs data that the items do not have."""
        asked = self.project.info.get("parsed_label_config")
        controls = asked.values() if isinstance(asked, dict) else []
        shown = {str(one.get("value")) for control in controls for one in control.get("inputs") or []}
        missing = sorted(shown - {"task", *map(str, crowd.to_show)})
        if missing:
            there = ", ".join(["task", *map(str, crowd.to_show)])
            raise InputError(
                f"{self.project.title}: its labelling interface shows ${missing[0]}, which the items do not have (they "
                f"have {there}); change it to one of these, or add the column with --show {missing[0]}"
            )
