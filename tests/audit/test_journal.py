"""The journal with answers that were changed, taken back, or could not be written; and what an audit makes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit import Audit, journal
from rarevote.audit.journal import Entry, journal_path, read_journal, standing, writing
from rarevote.errors import InputError
from tests.audit.worlds import independent_replay, started


def test_the_last_line_on_a_task_counts(tmp_path: Path) -> None:
    path = tmp_path / "audit.json"
    audit, truth = started(600)
    review = audit.plan.rounds[-1].tasks if audit.round(20) else []
    audit.save(path)
    with writing(path) as book:
        for task in review[:5]:
            book.append(Entry(task, "defect" if truth[task] else "sound", "anna", "t"))
        book.append(Entry(review[0], "sound" if truth[review[0]] else "defect", "anna", "t"))
        book.append(Entry(review[4], None, "anna", "t", undo=True))
        book.append(Entry(review[5], "defect", "anna", "t"))
    again = Audit.load(path)
    expected = {task: "defect" if truth[task] else "sound" for task in review[1:4]}
    expected |= {review[0]: "sound" if truth[review[0]] else "defect", review[5]: "defect"}
    assert again.answers == expected
    assert again.n_reviewed == 4  # the sixth waits behind the one taken back
    assert list(standing(read_journal(path))) == [*review[1:4], review[0], review[5]]


def test_a_withdrawn_answer_was_never_given() -> None:
    audit, truth = started(600)
    audit.round(10)
    audit.answer({task: truth[task] for task in audit.pending})
    audit.round(10)
    drawn = audit.pending
    audit.answer({task: truth[task] for task in drawn[:3]}, when="t")
    expected = independent_replay(audit.to_json())
    text = audit.to_json()
    audit.answer({drawn[3]: True, drawn[4]: False})
    assert independent_replay(audit.to_json()) != expected
    audit.withdraw(drawn[4])
    audit.withdraw(drawn[3])
    assert audit.to_json() == text
    assert audit.wealth.log_wealth.tolist() == pytest.approx(expected, abs=1e-12)
    with pytest.raises(InputError, match="not in the last round"):
        audit.withdraw(audit.plan.rounds[0].tasks[0])
    with pytest.raises(InputError, match="not in the last round"):
        started(60)[0].withdraw(0)


def test_an_answer_from_before_its_draw_can_be_withdrawn() -> None:
    audit, truth = started(60)
    audit.answer(dict(enumerate(truth)))
    assert audit.pending == []
    audit.round(20)
    task = audit.plan.rounds[-1].tasks[3]
    audit.withdraw(task)
    assert audit.pending == [task]
    audit.answer({task: not truth[task]})
    assert audit.pending == []
    again = Audit.from_json(audit.to_json())
    assert again.answers[task] == audit.answers[task] == (False if truth[task] else "defect")


def test_a_plan_that_contradicts_the_journal_is_not_written(tmp_path: Path) -> None:
    """Plan and journal could not be read together any more."""
    path = tmp_path / "audit.json"
    audit, _ = started(60)
    task, other, third = audit.round(10)[:3]
    audit.save(path)
    late = Audit.load(path)
    with writing(path) as book:
        book.append(Entry(task, "defect", "anna", "t"))
        book.append(Entry(third, None, "anna", "t"))
    late.answer({task: False, other: False, third: True})
    with pytest.raises(InputError, match="has rounds or answers that this audit lacks; load it again"):
        late.save(path)
    again = Audit.load(path)
    assert again.answers == {task: "defect"}
    # What agrees with the journal is written.
    again.answer({other: False, third: True})
    again.save(path)
    assert Audit.load(path).answers == {task: "defect", other: False, third: "defect"}


def test_a_file_system_without_locks_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "lock", lambda _: None)
    with writing(tmp_path / "audit.json") as book:
        book.append(Entry("a", "x", None, "t"))
    monkeypatch.setattr(journal, "lock", lambda _: False)
    with pytest.raises(InputError, match="another process is answering"), writing(tmp_path / "audit.json"):
        pass
    assert [entry.task for entry in read_journal(tmp_path / "audit.json")] == ["a"]


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    journal_path(tmp_path / "audit.json").mkdir()
    with pytest.raises(InputError, match=r"audit.json.answers.jsonl: cannot be read \("):
        read_journal(tmp_path / "audit.json")


def test_an_append_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "list.csv"
    with writing(path) as book:
        book.append(Entry("a", "x", None, "t"))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(InputError, match="No space left on device"):
                book.append(Entry("b", "x", None, "t"))
        assert [entry.task for entry in read_journal(path)] == ["a"]
        # Even what could not be cut off then is gone before the next line.
        with journal_path(path).open("ab") as handle:
            handle.write(b'{"task":"b","la')
        book.append(Entry("c", "x", None, "t"))
    assert [entry.task for entry in read_journal(path)] == ["a", "c"]


@pytest.mark.parametrize("change", [{"task": []}, {"task": None}, {"label": {}}, {"who": []}, {"when": 7}])
def test_a_line_that_is_no_answer_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    line = {"task": "a", "label": "x", "who": None, "when": "", **change}
    journal_path(tmp_path / "plan.json").write_text(json.dumps(line) + "\n")
    with pytest.raises(InputError, match="line 1: not an answer"):
        read_journal(tmp_path / "plan.json")
