"""The start of an audit on the command line: the claim to prove, and a check of the plan to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarevote.errors import InputError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rarevote.crowd.grades import Grades


def parse_find(text: str, classes: NDArray[Any] | None = None, grades: Grades | None = None) -> tuple[str, str]:
    """``defect=0.9`` as a class, or a tail, and its recall, which stays text: 0.9 is nine tenths.

    Args:
        classes: text that equals one of them is not split; None if there are none.
        grades: the order of the classes, if there is one.
    """
    from rarevote.crowd.names import as_name_array
    from rarevote.crowd.rare import split_question

    name, recall = split_question(text, as_name_array([]) if classes is None else classes, grades)
    if not recall:
        example = "defect=0.9" if recall is not None else f"{name}=0.9"
        raise ParameterError(f"--find must be CLASS=RECALL, such as {example}, got {text!r}")
    return name, recall


def check_plan_file(plan: Path) -> None:
    """Refuse a plan that cannot be written, or would replace another one."""
    from rarevote.audit.journal import journal_path
    from rarevote.io.write.columns import check_place

    check_place(plan)
    if plan.exists():
        raise InputError(
            f"{plan}: already exists. A plan is never overwritten, because restarting until the draws are favourable "
            "would make the proof worthless: continue that audit, or choose another file"
        )
    if journal_path(plan).exists():
        raise InputError(f"{journal_path(plan)}: has the answers of another audit; move it, or choose another plan")
