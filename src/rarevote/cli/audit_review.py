"""``rarevote audit review``: the audit's loop in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rarevote.cli.options.common import Json, Quiet, examples, takes
from rarevote.cli.options.workbench import WorkbenchOptions

if TYPE_CHECKING:
    from rarevote.meaning.audit.journal import Journal
    from rarevote.workbench.sitting import Sitting

EXAMPLES = examples(
    "rarevote audit review audit.json",
    "rarevote audit review audit.json --images photos/ --who anna",
    "rarevote audit review audit.json --port 8080 --no-browser",
)


@takes(WorkbenchOptions)
def review(
    workbench: WorkbenchOptions,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan that `rarevote audit start` wrote.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Answer what the audit asks in the browser; every answer is on the disk before the next item shows."""
    from rarevote.meaning.audit.journal import writing
    from rarevote.workbench.audits import AuditSitting, check_plan

    pictures = workbench.pictures()
    check_plan(plan)

    def sit(journal: Journal) -> Sitting:
        return AuditSitting(plan, pictures=pictures, journal=journal, who=workbench.who)

    workbench.run(sit, writing(plan), quiet=quiet, as_json=as_json)
