"""Pull and push against the fake: every vote comes, labels go beside the tasks once, nobody else's data are touched."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.live import label_studio
from rarevote.io.live.connection import ServerError, UnsureError
from rarevote.io.live.label_studio import Project
from rarevote.io.live.pulled import pull
from rarevote.io.read.crowd import read
from tests.command import rarevote
from tests.io.live.conftest import Site
from tests.io.live.fake import Trouble


def votes_in(path: Path) -> dict[tuple[int, str], str]:
    return {
        (task["id"], one["completed_by"]["email"]): one["result"][0]["value"]["choices"][0]
        for task in json.loads(path.read_text())
        for one in task["annotations"]
    }


def test_every_vote_is_pulled_under_its_name(site: Site, tmp_path: Path) -> None:
    done = rarevote("pull", "label-studio", "--project", "1", "--out", tmp_path / "e.json", "--json")
    assert votes_in(tmp_path / "e.json") == site.votes
    assert json.loads(done.stdout)["annotations"] == len(site.votes)
    crowd = read(tmp_path / "e.json")
    assert set(crowd.annotations.workers.tolist()) == {f"{name}@example.org" for name in ("ann", "bob", "cy", "dee")}


def test_more_than_one_page(site: Site, tmp_path: Path) -> None:
    many = site.fake.project([f"rail {number}" for number in range(250)])
    site.fake.annotate(site.fake.of(many)[0]["id"], "ann@example.org", "sound")
    found = pull(site.open(many), tmp_path / "e.json")
    assert (found.tasks, found.annotations, found.whole) == (250, 1, True)
    assert [task["id"] for task in json.loads((tmp_path / "e.json").read_text())] == [
        task["id"] for task in site.fake.of(many)
    ]


def test_a_further_pull_asks_for_what_changed(site: Site, tmp_path: Path) -> None:
    path, project = tmp_path / "e.json", site.open(1)
    pull(project, path)
    site.fake.annotate(site.ids[3], "eve@example.org", "defect")
    new = site.fake.add(1, {"text": "rail 12"})
    found = pull(project, path)
    assert (found.whole, found.tasks, found.annotations) == (False, 13, len(site.votes) + 1)
    assert found.changed <= 3  # these two, and who changed within a minute before
    assert votes_in(path) == {**site.votes, (site.ids[3], "eve@example.org"): "defect"}
    assert json.loads(path.read_text())[-1]["id"] == new


def test_what_was_deleted_is_gone_after_a_pull(site: Site, tmp_path: Path) -> None:
    path, project = tmp_path / "e.json", site.open(1)
    pull(project, path)
    gone = site.ids[5]
    del site.fake.tasks[gone]
    assert pull(project, path).whole
    assert votes_in(path) == {key: label for key, label in site.votes.items() if key[0] != gone}
    site.fake.tasks[site.ids[0]]["annotations"].pop()  # without a new time, as bulk actions do
    assert pull(project, path).whole
    assert len(votes_in(path)) == len(site.votes) - 5


def test_cancelled_annotations_come_and_do_not_count(site: Site, tmp_path: Path) -> None:
    site.fake.annotate(site.ids[0], "ann@example.org", "sound", cancelled=True)
    project = site.open(1)
    assert pull(project, tmp_path / "e.json").annotations == len(site.votes)
    assert not pull(project, tmp_path / "e.json").whole


@pytest.mark.parametrize("text", ["task,worker,label\na,b,c\n", "[{", '{"a": 1}'])
def test_a_file_of_something_else_is_not_replaced(site: Site, tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(InputError, match="does not have tasks of project 1 at"):
        pull(site.open(1), path)
    assert path.read_text() == text


def test_a_file_of_another_project_or_server_is_not_mixed(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    pull(site.open(1), path)
    other = site.fake.project(["x"])
    with pytest.raises(InputError, match=f"does not have tasks of project {other}"):
        pull(site.open(other), path)
    for task in site.fake.of(1):  # the same numbers, made at another time: another server
        task["created_at"] = "2020-01-01T00:00:00Z"
    assert pull(site.open(1), path).whole


def test_an_interrupted_pull_leaves_the_file_as_it_was(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "e.json"
    pull(site.open(1), path)
    before = path.read_bytes()
    site.fake.troubles = [Trouble("GET", "/api/tasks/", 500, times=9)]
    rarevote("pull", "label-studio", "--project", "1", "--out", path, code=1)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["e.json"]


def test_names_stay_numbers_where_the_server_shows_none(site: Site, tmp_path: Path) -> None:
    site.fake.troubles = [Trouble("GET", "/api/users/", 403, {"detail": "no"})]
    pull(site.open(1), tmp_path / "e.json")
    first = json.loads((tmp_path / "e.json").read_text())[0]
    assert [one["completed_by"] for one in first["annotations"]] == [2, 3, 4, 5]


def test_an_address_that_changed_is_one_name_in_the_file(site: Site, tmp_path: Path) -> None:
    path, project = tmp_path / "e.json", site.open(1)
    pull(project, path)
    number = next(number for number, email in site.fake.people.items() if email == "ann@example.org")
    site.fake.people[number] = "anna@example.org"
    site.fake.add(1, {"text": "rail 12"})
    assert not pull(project, path).whole
    renamed = {"ann@example.org": "anna@example.org"}
    assert votes_in(path) == {(task, renamed.get(who, who)): label for (task, who), label in site.votes.items()}


def test_our_own_predictions_are_not_pulled(site: Site, tmp_path: Path) -> None:
    """As the vote of a model they would confirm themselves; those of other models come."""
    pushed(site, tmp_path)
    site.fake.tasks[site.ids[0]]["predictions"].append({"model_version": "yolo", "result": [], "score": 0.5})
    pull(site.open(1), tmp_path / "again.json")
    models = [one["model_version"] for task in json.loads((tmp_path / "again.json").read_text())
              for one in task["predictions"]]  # fmt: skip
    assert models == ["yolo"]


# --------------------------------------------------------------------------------------------------------------------
# push


def pushed(site: Site, folder: Path, *further: str, code: int = 0) -> Any:
    """Pull, then push a result."""
    if not (folder / "export.json").exists():
        rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=folder)
        rows = ["task,label,confidence,p:defect,p:sound"]
        for number in site.ids:
            p = number / 100
            rows.append(f"{number},{'defect' if p > 0.08 else 'sound'},{p if p > 0.08 else 1 - p},{p},{1 - p}")
        (folder / "result.csv").write_text("\n".join(rows))
    return rarevote("push", "label-studio", "result.csv", "--export", "export.json", "--project", "1", *further,
                    folder=folder, code=code)  # fmt: skip


def rows_of(path: Path) -> dict[int, dict[str, str]]:
    with path.open(newline="") as handle:
        return {int(row["task"]): row for row in csv.DictReader(handle)}


def test_pushed_twice_there_is_one_set(site: Site, tmp_path: Path) -> None:
    for _ in range(2):
        done = pushed(site, tmp_path)
    assert "12 predictions of rarevote in project 1" in done.stderr
    assert "12 of an earlier push replaced" in done.stderr
    assert Counter(one["task"] for one in site.fake.predictions(1)) == Counter(site.ids)
    rows = rows_of(tmp_path / "result.csv")
    for one in site.fake.predictions(1):
        (entry,) = one["result"]
        assert (entry["from_name"], entry["to_name"], entry["type"]) == ("quality", "text", "choices")
        assert entry["value"] == {"choices": [rows[one["task"]]["label"]]}
        assert one["score"] == pytest.approx(float(rows[one["task"]]["confidence"]), abs=1e-5)


def test_predictions_of_others_stay(site: Site, tmp_path: Path) -> None:
    site.fake.tasks[site.ids[0]]["predictions"].append({"model_version": "yolo", "result": [], "score": 0.5})
    pushed(site, tmp_path)
    assert Counter(one["model_version"] for one in site.fake.predictions(1)) == {"yolo": 1, "rarevote": 12}


def test_batches_of_five_hundred(site: Site) -> None:
    many = site.fake.project([f"rail {number}" for number in range(501)])
    wanted = [{"task": task["id"], "result": [], "score": None} for task in site.fake.of(many)]
    assert site.open(many).push(wanted).predictions == 501
    assert site.fake.requests.count(("POST", f"/api/projects/{many}/import/predictions")) == 2
    assert Counter(one["task"] for one in site.fake.predictions(many)) == Counter(
        task["id"] for task in site.fake.of(many)
    )


@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize("status", [None, 502])
def test_a_request_of_which_nobody_knows_whether_it_was_followed(
    site: Site, status: int | None, followed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_studio, "BATCH", 5)
    many = site.fake.project([f"rail {number}" for number in range(12)])
    wanted = [{"task": task["id"], "result": [], "score": None} for task in site.fake.of(many)]
    place = f"/api/projects/{many}/import/predictions"
    site.fake.troubles = [Trouble("POST", place, status, followed=followed, times=2)]
    site.open(many).push(wanted)
    assert Counter(one["task"] for one in site.fake.predictions(many)) == Counter(
        task["id"] for task in site.fake.of(many)
    )
    site.fake.troubles = [Trouble("POST", place, status, followed=followed, times=9)]
    with pytest.raises(UnsureError, match="the same command resumes"):
        site.open(many).push(wanted)
    site.fake.troubles = []
    site.open(many).push(wanted)
    assert len(site.fake.predictions(many)) == 12


def test_predictions_that_the_server_leaves_out_are_an_error(site: Site, tmp_path: Path) -> None:
    pushed(site, tmp_path)
    site.fake.projects[1]["parsed_label_config"]["kind"] = site.fake.projects[1]["parsed_label_config"].pop("quality")
    done = pushed(site, tmp_path, code=1)
    assert "accepted 0 of 12 predictions. Check that its labelling interface still asks 'quality'" in done.stderr


def test_labels_of_tasks_that_are_gone_are_left_out(site: Site, tmp_path: Path) -> None:
    pushed(site, tmp_path)
    del site.fake.tasks[site.ids[0]]
    assert "1 label skipped, because the project no longer has their tasks" in pushed(site, tmp_path).stderr
    assert len(site.fake.predictions(1)) == 11


def test_a_column_to_sort_by(site: Site, tmp_path: Path) -> None:
    pushed(site, tmp_path, "--column", "p_defect")
    rows = rows_of(tmp_path / "result.csv")
    for task in site.fake.of(1):
        assert task["data"] == {"text": task["data"]["text"],
                                "p_defect": pytest.approx(float(rows[task["id"]]["p:defect"]), abs=1e-4)}  # fmt: skip
        assert task["meta"] == {"rarevote_columns": ["p_defect"]}
    site.fake.requests.clear()
    pushed(site, tmp_path, "--column", "p_defect")
    assert not [path for method, path in site.fake.requests if method == "PATCH"]  # nothing changed
    pushed(site, tmp_path, "--column", "p_defect=risk")
    assert site.fake.of(1)[0]["meta"] == {"rarevote_columns": ["p_defect", "risk"]}


def test_a_column_of_others_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    site.fake.tasks[site.ids[7]]["data"]["p_defect"] = "somebody's"
    done = pushed(site, tmp_path, "--column", "p_defect", code=1)
    assert "already have a column 'p_defect' that rarevote did not write" in done.stderr
    assert "--column p_CLASS=NAME" in done.stderr
    assert not site.fake.predictions(1)  # refused before anything was changed


@pytest.mark.parametrize(("column", "said"), [("p_crack", "no class is called 'crack'"), ("defect", "must be p_CLASS")])
def test_a_column_of_no_class(site: Site, tmp_path: Path, column: str, said: str) -> None:
    assert said in pushed(site, tmp_path, "--column", column, code=2).stderr


def test_our_columns_are_not_shown_to_an_expert(site: Site, tmp_path: Path) -> None:
    pushed(site, tmp_path, "--column", "p_defect")
    pull(site.open(1), tmp_path / "export.json")
    assert set(read(tmp_path / "export.json").to_show) == {"text"}


def test_a_project_that_shows_our_predictions_is_warned_of(site: Site, tmp_path: Path) -> None:
    assert "not independent" not in pushed(site, tmp_path).stderr
    site.fake.projects[1]["model_version"] = "rarevote"
    assert "votes that start from this label are not independent" in pushed(site, tmp_path).stderr


def test_several_choices_are_one_prediction(site: Site, tmp_path: Path) -> None:
    rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=tmp_path)
    rarevote("aggregate", "export.json", "--multilabel", "--out", "result.csv", folder=tmp_path)
    assert "several" in pushed(site, tmp_path, "--multilabel", "--column", "p_yes", code=1).stderr
    pushed(site, tmp_path, "--multilabel")
    assert Counter(one["task"] for one in site.fake.predictions(1)) == Counter(site.ids)


def test_where_labels_for_an_import_are_written_push_is_named(site: Site, tmp_path: Path) -> None:
    rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=tmp_path)
    words = ("-m", "majority-vote", "--out", "result.csv", "--back-out", "back.json")
    said = rarevote("aggregate", "export.json", *words, folder=tmp_path).stderr
    assert "in the same project it would duplicate the tasks" in said
    assert "rarevote push label-studio result.csv --export export.json" in said
    models = {one["model_version"] for task in json.loads((tmp_path / "back.json").read_text())
              for one in task["predictions"]}  # fmt: skip
    assert models == {"rarevote"}


def test_what_no_push_can_use(site: Site, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("task,worker,label\na,b,c\n")
    rarevote("pull", "label-studio", "--project", "1", "--out", "export.json", folder=tmp_path)
    words = ("push", "label-studio", "votes.csv", "--project", "1", "--export")
    assert "votes.csv" in rarevote(*words, "votes.csv", folder=tmp_path, code=1).stderr
    assert "no server: name it" in rarevote(*words, "export.json", folder=tmp_path, code=2,
                                       environment={"LABEL_STUDIO_URL": ""}).stderr  # fmt: skip
    assert "no token" in rarevote(*words, "export.json", folder=tmp_path, code=2,
                                  environment={"LABEL_STUDIO_API_KEY": ""}).stderr  # fmt: skip
    without = ("push", "label-studio", "votes.csv", "--export", "export.json")
    assert "no project: name it" in rarevote(*without, folder=tmp_path, code=2).stderr


# --------------------------------------------------------------------------------------------------------------------
# tasks


@pytest.mark.parametrize("status", [None, 502])
def test_tasks_are_imported_once_whatever_happens(site: Site, status: int | None) -> None:
    records = [{"data": {"task": str(number), "text": f"rail {number}"}} for number in range(7)]
    second = site.fake.project()
    site.fake.troubles = [Trouble("POST", f"/api/projects/{second}/import", status, followed=True)]
    assert site.open(second).add_tasks(records) == 7
    assert site.open(second).add_tasks(records) == 0
    assert [task["data"]["task"] for task in site.fake.of(second)] == [str(number) for number in range(7)]


def test_tasks_that_do_not_fit_are_refused_with_the_servers_words(site: Site) -> None:
    second = site.fake.project()
    with pytest.raises(ServerError, match="key is expected in task data"):
        site.open(second).add_tasks([{"data": {"task": "1"}}])


def test_no_project_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABEL_STUDIO_API_KEY", raising=False)
    with pytest.raises(ParameterError, match="set the environment variable LABEL_STUDIO_API_KEY"):
        Project("http://127.0.0.1:9", 1)
