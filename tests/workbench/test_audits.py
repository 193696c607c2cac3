"""An audit at the workbench: the terminal's answers in the terminal's order, and nothing lost on the way."""

from __future__ import annotations

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError
from rarevote.meaning.audit import Audit, verify_files
from rarevote.meaning.audit.journal import journal_path, read_journal, writing
from rarevote.workbench.sitting import UNSURE, OvertakenError
from tests.command import rarevote, rows
from tests.meaning.audit.worlds import independent_replay
from tests.workbench.benches import CLASSES, DEFECT, SOUND, answer_round, audit_sitting, plan_file


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

    with audit_sitting(path) as sitting:
        asked = 0
        while not sitting.is_over:
            asked += answer_round(sitting, right)
            if not sitting.is_over:
                sitting.go_on()
        made = sitting.make("certificate")
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
    with audit_sitting(path) as sitting:
        assert sitting.tasks == drawn
        for i, task in enumerate(drawn[:10]):
            assert sitting.next_open() == i + 1
            sitting.answer(i + 1, right[task], seen=None)
            assert sitting.audit.n_reviewed == i + 1
            assert sitting.claims()[0].startswith(f"After {i + 1} review")
        # Other verbs see the same, whoever asks.
        assert json.loads(rarevote("audit", "status", path, "--json").stdout)["reviewed"] == 10


def test_undo_and_changed_answers(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_sitting(path) as sitting:
        for number in range(1, 6):
            sitting.answer(number, right[sitting.task_of(number)], seen=None)
        expected = independent_state(sitting.audit)
        sitting.answer(6, DEFECT, seen=None)
        sitting.answer(2, 1 - right[sitting.task_of(2)], seen=right[sitting.task_of(2)])
        assert independent_state(sitting.audit) != expected
        assert sitting.last == 2
        sitting.undo(2)
        assert sitting.choice_at(2) is None
        assert sitting.next_open() == 2
        assert sitting.audit.n_reviewed == 1
        sitting.answer(2, right[sitting.task_of(2)], seen=None)
        with pytest.raises(OvertakenError, match="last answer only"):
            sitting.undo(6)
        sitting.undo(2)
        assert sitting.last == 6
        sitting.undo(6)
        sitting.answer(2, right[sitting.task_of(2)], seen=None)
        assert independent_state(sitting.audit) == expected
        before = len(read_journal(path))
        sitting.answer(2, right[sitting.task_of(2)], seen=None)  # sent twice
        assert len(read_journal(path)) == before
    with audit_sitting(path) as again:
        assert independent_state(again.audit) == expected
        assert again.last == 2
        assert again.next_open() == 6


def independent_state(audit: Audit) -> list[float]:
    return independent_replay(audit.to_json())


def test_answers_are_final_once_the_next_round_is_drawn(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_sitting(path) as sitting:
        with pytest.raises(OvertakenError, match="open items"):
            sitting.go_on()
        n = answer_round(sitting, right)
        assert sitting.last == n
        sitting.go_on()
        can_be_undone: int | None = sitting.last
        assert can_be_undone is None
        assert sitting.first == n + 1
        with pytest.raises(OvertakenError, match="its answer stands"):
            sitting.answer(n, DEFECT, seen=right[0])
        with pytest.raises(OvertakenError, match="its answer stands"):
            sitting.undo(n)
        first = sitting.task_of(n + 1)
        sitting.answer(n + 1, right[first], seen=None)
        sitting.make("certificate")
        with pytest.raises(OvertakenError, match="part of the plan and stands"):
            sitting.undo(n + 1)
    assert Audit.from_json(path.read_text(encoding="utf-8")).n_reviewed == n + 1
    with audit_sitting(path) as again:
        assert again.is_fixed(n + 1)
        assert again.next_open() == n + 2


def test_what_is_unsure_stays_open_until_it_is_answered_or_the_worst_case(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_sitting(path) as sitting:
        for number in (1, 3):
            sitting.answer(number, UNSURE, seen=None)
        answer_round(sitting, right)
        assert (sitting.next_open(), sitting.next_unsure(), sitting.next_unsure(1)) == (None, 1, 3)
        assert sitting.audit.n_reviewed == 0  # all wait behind the first
        assert any("once the items before are answered" in words for words in sitting.claims())
        assert not sitting.is_over
        with pytest.raises(OvertakenError, match="open items"):
            sitting.go_on()
    with audit_sitting(path) as sitting:
        assert sitting.next_unsure() == 1
        sitting.answer(1, right[sitting.task_of(1)], seen=UNSURE)
        assert sitting.audit.n_reviewed == 2
        n = len(sitting.tasks)
        sitting.go_on(worst_case=True)
        assert sitting.first == n + 1
        assert int(sitting.audit.wealth.worst.sum()) == 1
        assert sitting.audit.n_reviewed == n - 1


def test_two_tabs_lose_and_double_nothing(tmp_path: Path) -> None:
    path, _ = plan_file(tmp_path)
    with audit_sitting(path) as sitting:
        sitting.answer(1, DEFECT, seen=None)
        sitting.answer(1, DEFECT, seen=None)  # the other tab says the same
        with pytest.raises(OvertakenError, match="meanwhile been answered: “defect”"):
            sitting.answer(1, SOUND, seen=None)  # or something else, without having seen the first
        sitting.answer(1, SOUND, seen=DEFECT)
        sitting.undo(1)
        sitting.undo(1)
        assert [(entry.label, entry.undo) for entry in read_journal(path)] == [
            ("defect", False), ("sound", False), (None, True),
        ]  # fmt: skip


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path, right = plan_file(tmp_path)
    with audit_sitting(path) as sitting:
        answer_round(sitting, right)
        with pytest.raises(InputError, match="another process is answering"), audit_sitting(path):
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
    with audit_sitting(path) as sitting:
        sitting.answer(1, DEFECT, seen=None)
        size = journal_path(path).stat().st_size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        # As a full disk does, this takes the beginning of a line and refuses its end.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written"):
                sitting.answer(2, DEFECT, seen=None)
            with pytest.raises(InputError, match="cannot be written"):
                sitting.undo(1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert journal_path(path).stat().st_size == size
        assert (sitting.next_open(), sitting.last, sitting.audit.n_reviewed) == (2, 1, 1)
        answer_round(sitting, right)
        n = len(sitting.tasks)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with pytest.raises(InputError, match="cannot be written"):
                sitting.go_on()
            assert sitting.next_open() is None
            assert not sitting.is_over
            with pytest.raises(OvertakenError):  # the round is drawn and rests on it
                sitting.undo(n)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert Audit.load(path).n_reviewed == n
        sitting.go_on()
        assert sitting.next_open() == n + 1
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
    with audit_sitting(path) as sitting:
        assert sitting.choices == ["defect", "not defect"]
        assert sitting.question == "Is it “defect”?"
        answer_round(sitting, right)
        positives = sum(right[task] == DEFECT for task in sitting.tasks)
        assert (sitting.audit.n_reviewed, sitting.audit.n_positives) == (len(sitting.tasks), positives)
    with audit_sitting(path) as again:
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
    with audit_sitting(tmp_path / "audit.json") as sitting:
        card = sitting.card(1)
        assert [(field.name, field.text) for field in card.fields] == [("text", f"text of {card.task}")]
        answer_round(sitting, truth)
        made = {name: sitting.make(name).path for name in sitting.files}
        flagged = sitting.audit.final_list()
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
    monkeypatch.setattr("rarevote.workbench.sitting.now", lambda: f"2020-01-{next(days, 1):02d}T00:00:00+00:00")
    with audit_sitting(path) as sitting:
        first, second = sitting.next_open(), None
        assert first is not None
        task = sitting.task_of(first)
        wrong = SOUND if right[task] == DEFECT else DEFECT
        sitting.answer(first, wrong, seen=None)
        sitting.answer(first, right[task], seen=wrong)
        second = sitting.next_open()
        assert second is not None
        sitting.answer(second, right[sitting.task_of(second)], seen=None)
    lines = read_journal(path)
    assert [line.when for line in lines] == sorted((line.when for line in lines), reverse=True)
    with audit_sitting(path) as again:
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
    with audit_sitting(tmp_path / "rails.json") as sitting:
        with pytest.raises(InputError, match=r"rails\.labels\.csv: is the input"):
            sitting.make("labels")
        sitting.make("final-list")
    assert votes.read_bytes() == before
