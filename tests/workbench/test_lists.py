"""A review list at the workbench: its items, its classes, and answers that go back as gold."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.read.answers import read_review_list
from rarevote.simulate.files import example_files
from rarevote.workbench.session import UNSURE
from tests.command import rarevote, rows
from tests.workbench.benches import Bench, answer_round, list_session

ROWS = "task,text,decided,doubt,reason\na,one,sound,defect,r\nb,two,defect,sound,r\nc,,sound,defect,r\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "review.csv"
    made.write_text(ROWS)
    return made


def test_answers_become_a_file(path: Path) -> None:
    with list_session(path) as session:
        assert session.choices == ["defect", "sound"]
        session.answer(1, 0, seen=None)
        session.answer(2, UNSURE, seen=None)
        session.answer(3, 1, seen=None)
        assert session.is_over
        assert rows(session.make("answers").path.read_text()) == [
            {"task": "a", "label": "defect"}, {"task": "c", "label": "sound"},
        ]  # fmt: skip
    with list_session(path) as again:
        assert again.said == [0, UNSURE, 1]
        assert again.last == 3


def test_what_the_crowd_said_is_hidden_unless_asked_for(path: Path) -> None:
    with list_session(path) as session:
        page = Bench(session).get("/").text
        assert [field.name for field in session.view(1).fields] == ["text"]
        assert session.view(3).fields == ()
        assert "reason" not in page
        assert "What is proved" not in page
        assert Bench(session).get("/claims").status_code == 404
    with list_session(path, reasons=True) as session:
        assert [field.name for field in session.view(1).fields] == ["text", "decided", "doubt", "reason"]


def test_rows_with_a_label_are_answered_already(path: Path) -> None:
    path.write_text("task,label\na,yes\nb,\nc,no\n")
    with list_session(path) as session:
        assert session.tasks == ["b"]
        answer_round(session, {"b": 0})
        assert session.answers == {"a": "yes", "c": "no", "b": "no"}


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    path = tmp_path / "list.ndjson"
    path.write_text("\n".join(json.dumps({"task": i, "decided": i % 2, "doubt": 1 - i % 2}) for i in range(4)))
    with list_session(path) as session:
        assert (session.tasks, session.labels) == ([0, 1, 2, 3], [0, 1])
        answer_round(session, {0: 1, 1: 1, 2: 0, 3: 1})
    with list_session(path) as again:
        assert again.answers == {0: 1, 1: 1, 2: 0, 3: 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("text\nx\n", "no column for task"),
        ("task\n", "no rows"),
        ("task,text\na,x\n,y\n", "1 row has no task"),
        ("task,text\na,x\na,y\n", "task 'a' occurs twice"),
    ],
)
def test_lists_that_are_none(path: Path, text: str, words: str) -> None:
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        read_review_list(path)


def test_classes_must_be_known(path: Path) -> None:
    path.write_text("task\na\n")
    with pytest.raises(ParameterError, match="--class"), list_session(path):
        pass
    with list_session(path, classes=["x", "y", "x"]) as session:
        assert session.choices == ["x", "y"]
        session.answer(1, 0, seen=None)
    with pytest.raises(InputError, match="'x' is not one of the classes"), list_session(path, classes=["v", "w"]):
        pass
    path.write_text("task\nb\n")
    with pytest.raises(InputError, match="journal belongs to another"), list_session(path, classes=["x", "y"]):
        pass


def test_from_a_review_list_of_ours_and_back_as_gold(tmp_path: Path) -> None:
    labels = example_files().labels
    rarevote(
        "aggregate", labels, "--max-review", "8", "--review-out", "review.csv", "--out", "result.csv", "--method",
        "dawid-skene", folder=tmp_path,
    )  # fmt: skip
    with list_session(tmp_path / "review.csv") as session:
        assert len(session.tasks) == 8
        answer_round(session, dict.fromkeys(session.tasks, 0))
        made = session.make("answers").path
    rarevote("aggregate", labels, "--gold", made, "--out", "again.csv", "--method", "dawid-skene", folder=tmp_path)
    label = {row["task"]: row["label"] for row in rows((tmp_path / "again.csv").read_text())}
    assert {label[task] for task in session.tasks} == {session.choices[0]}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["review.csv", "--images", "absent"], 1, "not a folder"),
        (["review.csv", "--images-from", "a b"], 2, "needs a host"),
        (["review.csv", "--port", "70000"], 2, "--port must be between"),
        (["review.csv", "--out", "review.csv"], 2, "is the input review.csv"),
        (["review.csv", "--out", "answers.pdf"], 1, "cannot write .pdf"),
        (["absent.csv"], 1, "no such file"),
    ],
)
def test_what_cannot_be_opened_leaves_nothing(path: Path, words: list[str], code: int, said: str) -> None:
    assert said in rarevote("review", *words, "--no-browser", folder=path.parent, code=code).stderr
    assert {one.name for one in path.parent.iterdir()} == {"review.csv"}


def test_without_the_extra_it_says_how_to_get_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    said = rarevote("review", path, "--no-browser", code=1)
    assert "pip install 'rarevote[workbench]'" in said.stderr
