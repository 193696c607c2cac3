"""An audit inside Label Studio: items go into a project, answers come back, the certificate follows from the plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rarevote.audit import Audit, verify_files
from tests.command import rarevote
from tests.io.live.conftest import Site
from tests.io.live.fake import Trouble


@pytest.fixture
def started(site: Site, tmp_path: Path, short_chains: None) -> Site:
    """An audit of the labels of the first project, and a second, empty project."""
    (tmp_path / "a").mkdir()
    rarevote("pull", "label-studio", "--project", "1", "--out", "a/labels.json", folder=tmp_path)
    rarevote("audit", "start", "a/labels.json", "-m", "majority-vote", "--find", "defect=0.5", "--confidence", "0.5",
             "--flag-cost", "50", "--plan", "a/plan.json", "--review-out", "a/round.json",
             "--review-as", "label-studio", folder=tmp_path)  # fmt: skip
    site.fake.project()
    return site


def poll(folder: Path, code: int = 0) -> str:
    words = ("watch", "a/plan.json", "--review-project", "2", "--rounds", "1", "--out", "proved")
    return rarevote(*words, folder=folder, code=code).stderr


def answer_all(site: Site) -> int:
    open_tasks = [task for task in site.fake.of(2) if not task["annotations"]]
    for task in open_tasks:
        site.fake.annotate(task["id"], "zoe@example.org", site.truth(task["data"]["text"]))
    return len(open_tasks)


def test_a_certificate_from_label_studio(started: Site, tmp_path: Path) -> None:
    plan = tmp_path / "a" / "plan.json"
    for _ in range(20):
        said = poll(tmp_path)
        if "The audit asks for no more reviews" in said:
            break
        assert answer_all(started)
    names = [task["data"]["task"] for task in started.fake.of(2)]
    assert sorted(names) == sorted({str(task) for one in Audit.load(plan).plan.rounds for task in one.tasks})
    assert all(task["data"].keys() == {"task", "text"} and not task["meta"] for task in started.fake.of(2))
    assert not verify_files(plan, tmp_path / "proved" / "certificate.json")
    certificate = json.loads((tmp_path / "proved" / "certificate.json").read_text())
    assert certificate["reviewed"] == len(names)
    answers = Audit.load(plan).answers
    assert {str(task): label for task, label in answers.items()} == {
        task["data"]["task"]: started.truth(task["data"]["text"]) for task in started.fake.of(2)
    }
    said_by = {answer.who for one in Audit.load(plan).plan.rounds for answer in one.answers if answer}
    assert said_by == {"zoe@example.org"}
    assert (tmp_path / "proved" / "result.csv").exists()


def test_an_import_that_fails_is_made_again_and_doubles_nothing(started: Site, tmp_path: Path) -> None:
    started.fake.troubles = [Trouble("POST", "/api/projects/2/import", 500, followed=True, times=1)]
    poll(tmp_path)
    started.fake.troubles = [Trouble("GET", "/api/tasks/", 500, times=9)]
    poll(tmp_path, code=1)
    started.fake.troubles = []
    poll(tmp_path)
    names = [task["data"]["task"] for task in started.fake.of(2)]
    assert len(names) == len(set(names)) == len(Audit.load(tmp_path / "a" / "plan.json").pending)


def test_the_first_answer_stands_and_disagreement_stays_open(started: Site, tmp_path: Path) -> None:
    plan = tmp_path / "a" / "plan.json"
    poll(tmp_path)
    first, second, *_ = started.fake.of(2)
    started.fake.annotate(first["id"], "zoe@example.org", "sound")
    started.fake.annotate(second["id"], "zoe@example.org", "sound")
    started.fake.annotate(second["id"], "max@example.org", "defect")
    said = poll(tmp_path)
    assert "two different answers; it stays open until the experts agree" in said
    assert second["data"]["task"] in map(str, Audit.load(plan).pending)
    first["annotations"][0]["result"][0]["value"]["choices"] = ["defect"]
    first["updated_at"] = "2027-01-01T00:00:00Z"
    assert "an audit keeps the first answer" in poll(tmp_path)
    standing = {str(task): label for task, label in Audit.load(plan).answers.items()}
    assert standing.get(first["data"]["task"], "sound") == "sound"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "proved"], "an audit needs --review-project NUMBER"),
        (["--out", "proved", "--review-project", "2", "--method", "glad"], "--method: not for an audit, whose plan"),
        (["--out", "a", "--review-project", "2"], "is in this folder"),
    ],
)
def test_what_cannot_be_meant(started: Site, tmp_path: Path, words: list[str], said: str) -> None:
    assert said in rarevote("watch", "a/plan.json", *words, folder=tmp_path, code=2).stderr
