"""An audit at the workbench: the terminal's answers in the terminal's order, and nothing lost on the way."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit import Audit, verify_files
from rarevote.audit.journal import journal_path, read_journal, writing
from rarevote.errors import InputError
from rarevote.workbench.session import UNSURE, OvertakenError
from tests.audit.worlds import independent_replay
from tests.command import rarevote, rows
from tests.workbench.benches import CLASSES, DEFECT, SOUND, answer_round, audit_session, plan_file


def labels_in(plan: Path) -> list[list[tuple[Any, Any]]]:
    """Tasks and labels of every round, from the file."""
    record = json.loads(plan.read_text(encoding="utf-8"))
    return [
        [(task, answer and answer.get("label")) for task, answer in zip(one["tasks"], one["answers"], strict=True)]
        for one in record["rounds"]
    ]


def test_to_a_certificate_as_in_the_terminal(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path, 600)
    other = tmp_path / "other" / "audit.json"
    other.parent.mkdir()
    shutil.copy(path, other)
    terminal = Audit.load(other)
    while review := terminal.round():
        terminal.answer({task: CLASSES[right[task]] for task in review}, who="anna")
    terminal.save(other)

    with audit_session(path) as session:
        asked = 0
        while not session.is_over:
            asked += answer_round(session, right)
            if not session.is_over:
                session.resume()
        made = session.make("certificate")
    assert labels_in(path) == labels_in(other)
    assert asked == terminal.n_reviewed == len(read_journal(path))
    assert verify_files(path, made.path) == ()
    certificate = json.loads(made.path.read_text(encoding="utf-8"))
    assert certificate["certified"]
    here, there = certificate, terminal.certificate()
    differ = {name for name in there if json.dumps(here[name]) != json.dumps(there[name])}
    assert differ <= {"plan_sha256"}  # which has the time of every answer
    assert independent_replay(path.read_text(encoding="utf-8")) == pytest.approx(
        [float("inf") if w == "infinity" else w for w in here["log_wealth"]], abs=1e-9
    )


def test_items_come_in_drawn_order_and_every_answer_counts_at_once(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    drawn = json.loads(path.read_text(encoding="utf-8"))["rounds"][0]["tasks"]
    with audit_session(path) as session:
        assert session.tasks == drawn
        for i, task in enumerate(drawn[:10]):
            assert session.next_open() == i + 1
            session.answer(i + 1, right[task], seen=None)
            assert session.audit.n_reviewed == i + 1
            assert session.claims()[0].startswith(f"After {i + 1} review")
        # Other verbs see the same, whoever asks.
        assert json.loads(rarevote("audit", "status", path, "--json").stdout)["reviewed"] == 10


def test_undo_and_changed_answers(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        for number in range(1, 6):
            session.answer(number, right[session.task_of(number)], seen=None)
        expected = independent_state(session.audit)
        session.answer(6, DEFECT, seen=None)
        session.answer(2, 1 - right[session.task_of(2)], seen=right[session.task_of(2)])
        assert independent_state(session.audit) != expected
        assert session.last == 2
        session.undo(2)
        assert session.choice_at(2) is None
        assert session.next_open() == 2
        assert session.audit.n_reviewed == 1
        session.answer(2, right[session.task_of(2)], seen=None)
        with pytest.raises(OvertakenError, match="only the last answer"):
            session.undo(6)
        session.undo(2)
        assert session.last == 6
        session.undo(6)
        session.answer(2, right[session.task_of(2)], seen=None)
        assert independent_state(session.audit) == expected
        before = len(read_journal(path))
        session.answer(2, right[session.task_of(2)], seen=None)  # sent twice
        assert len(read_journal(path)) == before
    with audit_session(path) as again:
        assert independent_state(again.audit) == expected
        assert again.last == 2
        assert again.next_open() == 6


def independent_state(audit: Audit) -> list[float]:
    return independent_replay(audit.to_json())


def test_answers_are_final_once_the_next_round_is_drawn(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        with pytest.raises(OvertakenError, match="items are open"):
            session.resume()
        n = answer_round(session, right)
        assert session.last == n
        session.resume()
        can_be_undone: int | None = session.last
        assert can_be_undone is None
        assert session.first == n + 1
        with pytest.raises(OvertakenError, match="its answer is final"):
            session.answer(n, DEFECT, seen=right[0])
        with pytest.raises(OvertakenError, match="its answer is final"):
            session.undo(n)
        first = session.task_of(n + 1)
        session.answer(n + 1, right[first], seen=None)
        session.make("certificate")
        with pytest.raises(OvertakenError, match="in the plan and is final"):
            session.undo(n + 1)
    assert Audit.from_json(path.read_text(encoding="utf-8")).n_reviewed == n + 1
    with audit_session(path) as again:
        assert again.is_fixed(n + 1)
        assert again.next_open() == n + 2


def test_what_is_unsure_stays_open_until_it_is_answered_or_the_worst_case(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        for number in (1, 3):
            session.answer(number, UNSURE, seen=None)
        answer_round(session, right)
        assert (session.next_open(), session.next_unsure(), session.next_unsure(1)) == (None, 1, 3)
        assert session.audit.n_reviewed == 0  # all wait behind the first
        assert any("once the items before them are answered" in words for words in session.claims())
        assert not session.is_over
        with pytest.raises(OvertakenError, match="items are open"):
            session.resume()
    with audit_session(path) as session:
        assert session.next_unsure() == 1
        session.answer(1, right[session.task_of(1)], seen=UNSURE)
        assert session.audit.n_reviewed == 2
        n = len(session.tasks)
        session.resume(worst_case=True)
        assert session.first == n + 1
        assert int(session.audit.wealth.worst.sum()) == 1
        assert session.audit.n_reviewed == n - 1


def test_two_tabs_lose_and_double_nothing(tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_session(path) as session:
        session.answer(1, DEFECT, seen=None)
        session.answer(1, DEFECT, seen=None)  # the other tab says the same
        with pytest.raises(OvertakenError, match="answered in the meantime: “defect”"):
            session.answer(1, SOUND, seen=None)  # or something else, without having seen the first
        session.answer(1, SOUND, seen=DEFECT)
        session.undo(1)
        session.undo(1)
        assert [(entry.label, entry.undo) for entry in read_journal(path)] == [
            ("defect", False), ("sound", False), (None, True),
        ]  # fmt: skip


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        answer_round(session, right)
        with pytest.raises(InputError, match="another process is answering"), audit_session(path):
            pass
        said = rarevote("audit", "review", path, "--no-browser", code=1)
        assert "another process is answering" in said.stderr
        # What would write the plan is told so too; what only looks is not.
        with pytest.raises(InputError, match="another process is answering"):
            Audit.load(path).save(path)
        rarevote("audit", "status", path)
    Audit.load(path).save(path)


def test_a_full_disk_is_said_and_nothing_goes_on(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_session(path) as session:
        session.answer(1, DEFECT, seen=None)
        size = journal_path(path).stat().st_size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        # As a full disk does, this takes the beginning of a line and refuses its end.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written"):
                session.answer(2, DEFECT, seen=None)
            with pytest.raises(InputError, match="cannot be written"):
                session.undo(1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert journal_path(path).stat().st_size == size
        assert (session.next_open(), session.last, session.audit.n_reviewed) == (2, 1, 1)
        answer_round(session, right)
        n = len(session.tasks)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written"):
                session.resume()
            assert session.next_open() is None
            assert not session.is_over
            with pytest.raises(OvertakenError):  # the round is drawn and rests on it
                session.undo(n)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert Audit.load(path).n_reviewed == n
        session.resume()
        assert session.next_open() == n + 1
    assert len(Audit.load(path).plan.rounds) == 2


def test_a_journal_without_its_plan_is_not_taken_for_another_audit(tmp_path: Path) -> None:
    with writing(tmp_path / "audit.json"):
        pass
    (tmp_path / "labels.csv").write_text("task,worker,label\na,x,1\nb,x,0\n")
    said = rarevote(
        "audit", "start", "labels.csv", "--find", "1=0.9", "--plan", "audit.json", "--review-out", "r.csv", code=1,
        folder=tmp_path,
    )  # fmt: skip
    assert "answers of another audit" in said.stderr


def test_without_classes_the_question_is_yes_or_no(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path, classes=None)
    with audit_session(path) as session:
        assert session.choices == ["defect", "not defect"]
        assert session.question == "Is it “defect”?"
        answer_round(session, right)
        positives = sum(right[task] == DEFECT for task in session.tasks)
        assert (session.audit.n_reviewed, session.audit.n_positives) == (len(session.tasks), positives)
    with audit_session(path) as again:
        assert [again.choice_at(again.first + i) for i in range(5)] == [right[task] for task in again.tasks[:5]]


def test_files_of_an_audit_that_names_its_labels(tmp_path: Path) -> None:
    """From the command line: the columns are shown, and what is made is what `finish` makes."""
    rarevote(
        "simulate", "--tasks", "300", "--imbalance", "2", "--votes", "6", "--seed", "1", "--out", tmp_path / "crowd"
    )
    votes = rows((tmp_path / "crowd" / "labels.csv").read_text())
    lines = [f"{row['task']},{row['worker']},{row['label']},text of {row['task']}" for row in votes]
    (tmp_path / "labels.csv").write_text("task,worker,label,text\n" + "\n".join(lines) + "\n")
    truth = {row["task"]: int(row["label"]) for row in rows((tmp_path / "crowd" / "truth.csv").read_text())}
    rarevote(
        "audit", "start", "labels.csv", "--find", "1=0.9", "--flag-cost", "3", "--show", "text", "--plan", "audit.json",
        "--review-out", "round-1.csv", folder=tmp_path,
    )  # fmt: skip
    with audit_session(tmp_path / "audit.json") as session:
        card = session.view(1)
        assert [(field.name, field.text) for field in card.fields] == [("text", f"text of {card.task}")]
        answer_round(session, truth)
        made = {name: session.make(name).path for name in session.files}
        flagged = session.audit.final_list()
    assert {path.name for path in made.values()} >= {
        "audit.final-list.csv",
        "audit.labels.csv",
        "audit.certificate.json",
    }
    rarevote("audit", "verify", "audit.json", "audit.certificate.json", folder=tmp_path)
    rarevote("audit", "finish", "audit.json", "--out", "r.csv", "--certificate", "c.json", folder=tmp_path)
    assert made["labels"].read_bytes() == (tmp_path / "r.csv").read_bytes()
    assert made["certificate"].read_bytes() == (tmp_path / "c.json").read_bytes()
    listed = rows(made["final-list"].read_text())
    assert sorted(row["task"] for row in listed) == sorted(flagged)
    assert {row["label"] for row in listed} == {"1"}


def test_a_clock_that_goes_back_changes_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines count in the order in which they were written, whatever time they carry."""
    path, right = plan_file(tmp_path)
    days = iter(range(28, 0, -1))
    monkeypatch.setattr("rarevote.workbench.session.now", lambda: f"2020-01-{next(days, 1):02d}T00:00:00+00:00")
    with audit_session(path) as session:
        first, second = session.next_open(), None
        assert first is not None
        task = session.task_of(first)
        wrong = SOUND if right[task] == DEFECT else DEFECT
        session.answer(first, wrong, seen=None)
        session.answer(first, right[task], seen=wrong)
        second = session.next_open()
        assert second is not None
        session.answer(second, right[session.task_of(second)], seen=None)
    lines = read_journal(path)
    assert [line.when for line in lines] == sorted((line.when for line in lines), reverse=True)
    with audit_session(path) as again:
        answer_round(again, right)
        made = again.make("certificate")
    assert Audit.load(path).answers[task] == CLASSES[right[task]]
    assert verify_files(path, made.path) == ()


def test_votes_that_are_called_as_the_labels_are_kept(tmp_path: Path) -> None:
    # Beside the plan rails.json the workbench would write rails.labels.csv.
    rarevote(
        "simulate", "--tasks", "300", "--imbalance", "2", "--votes", "6", "--seed", "1", "--out", tmp_path / "crowd"
    )
    votes = tmp_path / "rails.labels.csv"
    votes.write_bytes((tmp_path / "crowd" / "labels.csv").read_bytes())
    rarevote(
        "audit", "start", "rails.labels.csv", "--find", "1=0.9", "--flag-cost", "3", "--plan", "rails.json",
        "--review-out", "round-1.csv", folder=tmp_path,
    )  # fmt: skip
    before = votes.read_bytes()
    with audit_session(tmp_path / "rails.json") as session:
        with pytest.raises(InputError, match=r"rails\.labels\.csv: is the input"):
            session.make("labels")
        session.make("final-list")
    assert votes.read_bytes() == before
