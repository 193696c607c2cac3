"""Writing of a plan file: the same audit with more rounds or answers replaces it, and nothing else does."""

from __future__ import annotations

from pathlib import Path

from rarevote.audit.locks import alone
from rarevote.audit.plan_file import Plan, Round, parse_plan, read_text, to_text
from rarevote.errors import InputError
from rarevote.io.write.atomic import replacing


def write_plan(path: Path | str, plan: Plan) -> None:
    """Write a plan, completely or not at all; replaces an existing one only if it is the same audit with more answers.

    If two processes write at the same time, the second sees what the first has written.

    Raises:
        InputError: the file exists and is something else, or the folder cannot be written to.
    """
    path = Path(path)
    with alone(path):
        if path.exists():
            _check_successor(path, plan)
        with replacing(path) as temporary:
            temporary.write_text(to_text(plan.as_json()), encoding="utf-8")


def _check_successor(path: Path, plan: Plan) -> None:
    there = parse_plan(read_text(path))
    if there.frozen() != plan.frozen():
        raise InputError(
            f"{path}: contains another audit. A plan is never overwritten, because restarting until the draws are "
            "favourable would make the proof worthless: continue that audit, or choose another file"
        )
    missing = (
        len(there.rounds) > len(plan.rounds)
        or any(not _continues(old, new) for old, new in zip(there.rounds, plan.rounds, strict=False))
        or any(plan.extras.get(task) != answer for task, answer in there.extras.items())
        or any(plan.repeats.get(task) != answer for task, answer in there.repeats.items())
    )
    if missing:
        raise lacking(path)


def lacking(path: Path | str) -> InputError:
    """The error where a plan or its journal has more than the audit that is to be saved."""
    return InputError(f"{path}: has rounds or answers that this audit lacks; load it again before you continue")


def _continues(old: Round, new: Round) -> bool:
    before, after = old.as_json(), new.as_json()
    if {**before, "answers": None} != {**after, "answers": None}:
        return False
    return all(was is None or was == now for was, now in zip(before["answers"], after["answers"], strict=True))
