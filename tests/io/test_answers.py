"""Answers of experts from tables and from platforms' exports, and what platforms show of their items."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

import rarevote
from rarevote.errors import ColumnsError, InputError
from rarevote.io.platforms.base import ABSENT
from rarevote.io.read.answers import Said, read_answers
from tests.io.platforms.exports import FIXTURES


def written(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def chosen(label: str, control: str = "quality") -> dict[str, Any]:
    return {"from_name": control, "to_name": "text", "type": "choices", "value": {"choices": [label]}}


def label_studio(number: int, data: dict[str, Any], *answers: tuple[str, str]) -> dict[str, Any]:
    said = [{"completed_by": {"email": who}, "result": [chosen(label)]} for who, label in answers]
    return {"id": number, "data": data, "annotations": said, "predictions": []}


def test_tables_may_repeat_tasks_and_leave_labels_blank(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "task,label\na,yes\nb,\na,no\n")
    assert read_answers(path) == [Said("a", "yes"), Said("b", None), Said("a", "no")]
    assert read_answers(written(tmp_path / "a.json", [{"task": 7, "label": 1}])) == [Said(7, 1)]
    with pytest.raises(ColumnsError, match="label"):
        read_answers(written(tmp_path / "b.csv", "task,colour\na,yes\n"))
    with pytest.raises(InputError, match="no such file"):
        read_answers(tmp_path / "absent.csv")


def test_label_studio_answers_bear_our_names(tmp_path: Path) -> None:
    """The import has numbered the tasks anew; one task was made by hand there and has no name of ours."""
    tasks = [
        label_studio(901, {"task": "a", "text": "x"}, ("anna", "yes"), ("bob", "no")),
        label_studio(902, {"task": "b", "text": "y"}, ("anna", "yes")),
        label_studio(903, {"text": "z"}, ("anna", "no")),
    ]
    tasks[1]["annotations"][0]["ground_truth"] = True
    assert read_answers(written(tmp_path / "e.json", tasks)) == [
        Said("a", "yes", "anna"), Said("a", "no", "bob"), Said("903", "no", "anna"), Said("b", "yes"),
    ]  # fmt: skip


def test_the_short_export_too(tmp_path: Path) -> None:
    about = {"created_at": "2026-01-01", "updated_at": "2026-01-01", "lead_time": 1.5}
    records = [
        {"id": 901, "task": "a", "text": "x", "quality": "yes", "annotator": 1, "annotation_id": 1, **about},
        {"id": 902, "task": "b", "text": "y", "quality": "no", "annotator": 2, "annotation_id": 2, **about},
    ]
    found = read_answers(written(tmp_path / "e.json", records), question="quality")
    assert found == [Said("a", "yes", "1"), Said("b", "no", "2")]


def test_argilla_keeps_our_ids(tmp_path: Path) -> None:
    records = [
        {"id": "a", "fields": {"text": "x"}, "responses": {"quality": [{"value": "yes", "user_id": "anna"}]}},
        {"id": "b", "fields": {"text": "y"}, "responses": {}},
    ]
    assert read_answers(written(tmp_path / "e.json", records)) == [Said("a", "yes", "anna")]


def test_a_question_must_be_named_among_several(tmp_path: Path) -> None:
    task = label_studio(1, {"task": "a"}, ("anna", "yes"))
    task["annotations"][0]["result"].append(chosen("blue", "colour"))
    path = written(tmp_path / "e.json", [task])
    assert read_answers(path, question="colour") == [Said("a", "blue", "anna")]


def test_an_export_shows_its_own_data(tmp_path: Path) -> None:
    """Values as they are, nothing where a task lacks one, and nothing that anybody said."""
    tasks = [
        label_studio(1, {"text": "x", "box": [1, 2]}, ("anna", "yes"), ("bob", "no")),
        label_studio(2, {"text": "y", "url": "u"}, ("anna", "no"), ("bob", "no")),
    ]
    shown = rarevote.read(written(tmp_path / "e.json", tasks)).to_show
    assert {name: values.tolist() for name, values in shown.items()} == {
        "text": ["x", "y"], "box": [[1, 2], ABSENT], "url": [ABSENT, "u"],
    }  # fmt: skip
    # What was asked for is what is shown.
    assert list(rarevote.read(tmp_path / "e.json", show=["url"]).to_show) == ["url"]
    # A choice of an item is a task of its own.
    each = rarevote.read(tmp_path / "e.json", multilabel=True)
    choices = dict(zip(each.annotations.tasks.tolist(), each.to_show["choice"].tolist(), strict=True))
    assert choices == {task: task.partition(":")[2] for task in choices}


@pytest.mark.parametrize(
    "record",
    [
        {"id": "a", "fields": {"text": "x"}, "metadata": {"model": "yes"},
         "responses": {"q": [{"value": "yes", "user_id": "u"}, {"value": "no", "user_id": "v"}]}},
        {"id": "a", "text": "x", "q.responses": ["yes", "no"], "q.responses.users": ["u", "v"],
         "q.responses.status": ["submitted"] * 2, "q.suggestion": "yes", "q.suggestion.agent": "m", "status": "done"},
        {"external_id": "a", "text": "x", "metadata": "{}", "q-suggestion": "yes",
         "q": [{"user_id": "u", "value": "yes", "status": "submitted"},
               {"user_id": "v", "value": "no", "status": "submitted"}]},
    ],
)  # fmt: skip
def test_argilla_shows_fields_and_no_more(record: dict[str, Any], tmp_path: Path) -> None:
    crowd = rarevote.read(written(tmp_path / "e.json", [record]), platform="argilla")
    assert {name: values.tolist() for name, values in crowd.to_show.items()} == {"text": ["x"]}


@pytest.mark.parametrize("name", ["prodigy.jsonl", "doccano"])
def test_exports_that_do_not_tell_what_is_shown_show_nothing(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rarevote.read(FIXTURES / name).to_show == {}


def test_votes_without_an_export_show_what_was_named(tmp_path: Path) -> None:
    path = written(tmp_path / "v.csv", "task,worker,label,text\na,u,yes,x\na,v,no,x\n")
    assert rarevote.read(path).to_show == {}
    for show in (["text"], "text"):
        assert rarevote.read(path, show=show).to_show["text"].tolist() == ["x"]
