"""The watch of an audit: items are sent to a Label Studio project and answers are read, until the certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarevote.audit import Audit
from rarevote.audit.answers import by_expert
from rarevote.audit.certificate import write_certificate
from rarevote.audit.of_fit import result_columns
from rarevote.audit.source import read_again
from rarevote.crowd.names import some_names
from rarevote.errors import warn_user
from rarevote.io.write.columns import write_columns
from rarevote.watch.labels import RESULT
from rarevote.watch.projects import ReviewProject

CERTIFICATE, PAGE = "certificate.json", "certificate.html"


@dataclass(frozen=True)
class AuditRound:
    """The state of an audit after a poll.

    Attributes:
        audit: the audit, as saved on disk.
        taken: number of answers that were added.
        asked: number of items that are new in the project.
        is_over: whether no more items are needed; then result and certificate are written.
    """

    audit: Audit
    taken: int
    asked: int
    is_over: bool


class AuditWatch:
    """An audit that is answered in a project.

    The plan is saved before its items are sent to the project, and existing items are not imported again: it can be
    interrupted at any time.

    Args:
        plan: the plan of the audit; labels and answers beside it are read as usual.
        out: the folder of the results.
        review: the project.

    Raises:
        InputError: plan or labels cannot be read.
    """

    def __init__(self, plan: Path, out: Path, review: ReviewProject) -> None:
        self.plan, self.out, self.review = plan, out, review
        self._crowd = read_again(Audit.load(plan), plan)
        self._warned: set[Any] = set()

    def poll(self) -> AuditRound:
        """Add the answers, draw the next items if all are answered, and send them to the project.

        Raises:
            InputError: an answer is not a class, or the server refuses.
        """
        audit = Audit.load(self.plan)
        taken = self._take_in(audit)
        asked = audit.round()
        audit.save(self.plan)
        if asked:
            return AuditRound(audit, taken, self.review.add(asked, self._crowd), is_over=False)
        self._finish(audit)
        return AuditRound(audit, taken, 0, is_over=True)

    def _take_in(self, audit: Audit) -> int:
        """Add the answers on open items to the audit; returns their number."""
        waiting = {str(task): task for task in audit.pending}
        rows = self.review.fetch()
        self._warn_of_changes(audit, rows)
        open_rows = [row._replace(task=waiting[str(row.task)]) for row in rows if str(row.task) in waiting]
        experts, disputed = by_expert(open_rows)
        for task in disputed:
            self._warn(task, f"item {task}: two different answers; it stays open until the experts agree")
        taken = 0
        for name, labels in experts.items():
            said = {task: label for task, label in labels.items() if label is not None}
            audit.answer(said, who=name)
            taken += len(said)
        return taken

    def _warn_of_changes(self, audit: Audit, rows: list[Any]) -> None:
        stands = {str(task): label for task, label in audit.answers.items()}
        changed = [
            row.task
            for row in rows
            if row.label is not None and str(row.task) in stands and str(stands[str(row.task)]) != str(row.label)
        ]
        new = [task for task in changed if task not in self._warned]
        if new:
            self._warned.update(new)
            warn_user(f"{some_names(new)}: the answer in the project has changed; an audit keeps the first answer")

    def _warn(self, task: Any, message: str) -> None:
        if task not in self._warned:
            self._warned.add(task)
            warn_user(message)

    def _finish(self, audit: Audit) -> None:
        """Write the result, the certificate, and its page."""
        from rarevote.page.proved import write_proved_page  # imports the charts, which nothing else here needs

        rows = result_columns(audit, self._crowd.annotations, self._crowd.shown)
        write_columns(rows, self.out / RESULT)
        write_certificate(audit, self.out / CERTIFICATE)
        write_proved_page(audit, self.out / PAGE, source=Path(self._crowd.title).name)
