"""The file of answers that the review page saves."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from rarevote.audit.journal import Entry
from rarevote.audit.saved_answers import asked_of_list, read_saved_answers
from rarevote.errors import InputError

TASKS, LABELS = ["t1", "t2"], ["yes", "no"]
WHEN = "2026-01-01T00:00:00Z"


def test_a_field_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    of = asked_of_list(TASKS, LABELS)
    kept = {"of": of, "round": 1, "who": "anna", "answers": [[1, 0, WHEN], [0, -1, WHEN]]}
    digest = sha256(json.dumps(list(kept.values()), separators=(",", ":")).encode()).hexdigest()
    text = json.dumps({"format": "rarevote answers", "version": 1, **kept, "sha256": digest})
    path = tmp_path / "saved.json"
    path.write_text(text)
    found = read_saved_answers(path, of=of, number=1, tasks=TASKS, labels=LABELS)
    assert found == [Entry("t2", "yes", "anna", WHEN), Entry("t1", None, "anna", WHEN)]
    path.write_text('{"who": "eve", ' + text[1:])
    with pytest.raises(InputError, match="not a file of answers; use the file that the review page saved"):
        read_saved_answers(path, of=of, number=1, tasks=TASKS, labels=LABELS)
