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

    An item is there once, however often it is asked for: its name is in ``data.task``. Neither labels nor scores go
    with it.

    Args:
        project: on its server.
        folder: where its answers are kept in a file.
        question: which question of it, where it asks several.
        max_review: how many items are open at a time, for review lists.
    """

    def __init__(
        self, project: Project, folder: Path, *, question: str | None = None, max_review: int | None = None
    ) -> None:
        self.project, self.path = project, folder / ANSWERS
        self._question, self._max_review = question, max_review

    def fetch(self) -> list[Said]:
        """All answers that are in the project now."""
        found = pull(self.project, self.path)
        return read_answers(self.path, question=self._question) if found.annotations else []

    def answers(self) -> dict[str, str]:
        """The label of each answered item; where experts disagree there is none."""
        said = adjudicated((str(row.task), row.label) for row in self.fetch())
        return {task: str(label) for task, label in said.items() if label is not None}

    def ask(self, result: Result, known: Mapping[Any, Any]) -> int:
        """Put the items whose review is worth most into the project; returns how many are new in it."""
        if self._max_review is None:
            return 0
        there = {str(task["data"].get(TASK_KEY)): is_answered(task) for task in tasks_in(self.path)}
        room = self._max_review - list(there.values()).count(False)
        # Items without votes may get some yet; an answer about one teaches nothing about annotators.
        listed = result.review(self._max_review + result.n_unvoted).items
        worth = [item.task for item in listed if item.row < result.fitted.annotations.n_tasks][: self._max_review]
        new = [task for task in worth if task not in known and str(task) not in there]
        return self.add(new[: max(room, 0)], result.fitted.crowd)

    def add(self, tasks: Iterable[Any], crowd: Crowd) -> int:
        """Put items into the project unless they are there; returns how many were not."""
        wanted = list(tasks)
        if not wanted:
            return 0
        place = {task: row for row, task in enumerate(crowd.population.tolist())}
        self._check_data(crowd)
        return self.project.add_tasks(
            [label_studio_task(task, values_to_show(crowd.to_show, place[task])) for task in wanted]
        )

    def _check_data(self, crowd: Crowd) -> None:
        """Refuse a project whose labelling interface shows what the items do not have."""
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
