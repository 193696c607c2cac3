"""The file of answers that the offline page saves: items, round and answers.

One JSON object::

    format, version     "rarevote answers", 1
    of                  SHA-256 of the questions: the frozen part of a plan, or a review list
    round               the round of the plan; 1 for a list
    who                 the expert, or null
    answers             [position, choice, time]: position in the round from 0, number of the class or -1 for unsure,
    UTC sha256              of the four fields above as JSON without blanks: a truncated or edited file is refused

Positions and choices are whole numbers instead of names, because a browser rounds large ids.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rarevote.audit.journal import Entry
from rarevote.audit.plan_file import Plan, fingerprint, read_text
from rarevote.errors import InputError
from rarevote.io.json_text import parse_json

FORMAT, VERSION = "rarevote answers", 1
_UNSURE = -1


def asked_in(plan: Plan) -> str:
    """An identifier of the audit of a plan, independent of its answers."""
    return fingerprint(plan.frozen())


def asked_of_list(tasks: Sequence[Any], labels: Sequence[Any]) -> str:
    """An identifier of a review list."""
    return fingerprint([list(map(str, tasks)), list(map(str, labels))])


def is_saved_answers(path: Path) -> bool:
    """Whether a file looks like saved answers of a page."""
    try:
        with path.open("rb") as handle:
            return FORMAT.encode() in handle.read(200)
    except OSError:
        return False


def read_saved_answers(path: Path, *, of: str, number: int, tasks: Sequence[Any], labels: Sequence[Any]) -> list[Entry]:
    """Answers by task, in the order in which they were given.

    Args:
        of: the identifier from :func:`asked_in` or :func:`asked_of_list`.
        number: the round.
        tasks: tasks of the round, in order.
        labels: possible answers, in order.

    Raises:
        InputError: the file does not contain answers, was altered, or belongs to something else.
    """
    try:
        record = parse_json(read_text(path), unique_keys=True)
        kept = [record[name] for name in ("of", "round", "who", "answers")]
        whole = record["format"] == FORMAT and record["version"] == VERSION
        digest = sha256(json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not a file of answers; use the file that the review page saved") from None
    if not whole or digest != record.get("sha256"):
        raise InputError(f"{path}: the answers were altered after they were saved; save them again from the page")
    of_file, round_of_file, who, answers = kept
    if of_file != of:
        raise InputError(f"{path}: these answers belong to another audit or list")
    if round_of_file != number:
        raise InputError(f"{path}: these answers are for round {round_of_file}, but round {number} is open")
    try:
        return [_entry(tasks, labels, who, *one) for one in answers]
    except (TypeError, ValueError, IndexError):
        raise InputError(f"{path}: an answer names an item or a class that was not asked for") from None


def _entry(tasks: Sequence[Any], labels: Sequence[Any], who: Any, place: Any, choice: Any, when: Any) -> Entry:
    if type(place) is not int or type(choice) is not int or place < 0 or choice < _UNSURE or not isinstance(when, str):
        raise ValueError("not an answer")
    return Entry(tasks[place], None if choice == _UNSURE else labels[choice], None if who is None else str(who), when)
