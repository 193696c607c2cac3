"""The watch of labels: what changed is what changed, an interrupted round is made again, and nothing is there twice."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rarevote.audit.locks import lock
from rarevote.errors import InputError
from rarevote.io.live.connection import ServerDownError, ServerError
from rarevote.watch.labels import LabelsWatch, rounds, watching
from rarevote.watch.sources import Files
from rarevote.watch.state import WatchState
from tests.command import rarevote
from tests.io.live.conftest import Site
from tests.io.live.fake import Trouble

PEOPLE = ("ann", "bob", "cy", "dee")


def write_votes(path: Path, cast: dict[tuple[str, str], str]) -> None:
    rows = [f"{task},{worker},{label}" for (task, worker), label in cast.items()]
    path.write_text("\n".join(["task,worker,label", *rows]) + "\n")


@pytest.fixture
def cast() -> dict[tuple[str, str], str]:
    """Twenty items; dee says the opposite of the others."""
    found = {}
    for number in range(20):
        right, wrong = ("defect", "sound") if number % 5 == 0 else ("sound", "defect")
        found.update({(f"t{number}", name): wrong if name == "dee" else right for name in PEOPLE})
    return found


def labels_in(path: Path) -> dict[str, str]:
    with path.open(newline="") as handle:
        return {row["task"]: row["label"] for row in csv.DictReader(handle)}


def one_round(folder: Path, *further: str, labels: str = "votes.csv") -> dict[str, Any] | None:
    words = ("watch", labels, "--every", "1s", "--rounds", "1", "--out", "watched", "--json", *further)
    said = rarevote(*words, folder=folder).stdout.strip()
    return json.loads(said) if said else None


def test_rounds_of_a_file(tmp_path: Path, cast: dict[tuple[str, str], str]) -> None:
    votes = tmp_path / "votes.csv"
    write_votes(votes, cast)
    first = one_round(tmp_path)
    assert first is not None
    assert (first["round"], first["votes"], first["new_votes"]) == (1, 80, dict.fromkeys(PEOPLE, 20))
    assert (first["items_voted"], first["labelled"], first["flipped"]) == (20, 20, [])
    assert {one["worker"] for one in first["stand_out"]} == {"dee"}
    assert all(one["high"] < 0.5 for one in first["stand_out"])
    rarevote("aggregate", "votes.csv", "--out", "alone.csv", folder=tmp_path)
    assert (tmp_path / "watched" / "result.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    assert one_round(tmp_path) is None  # nothing is new
    before = labels_in(tmp_path / "watched" / "result.csv")
    for name in ("ann", "bob", "cy"):
        cast["t1", name] = "defect"  # they change their minds
    cast["t20", "eve"] = "sound"
    write_votes(votes, cast)
    second = one_round(tmp_path)
    assert second is not None
    assert (second["round"], second["new_votes"], second["items_voted"]) == (2, {"eve": 1}, 2)
    after = labels_in(tmp_path / "watched" / "result.csv")
    expected = [task for task in before if before[task] != after[task]]
    assert "t1" in expected
    assert [one["task"] for one in second["flipped"]] == expected
    with (tmp_path / "watched" / "changes.csv").open(newline="") as handle:
        assert {row["task"]: (row["before"], row["now"]) for row in csv.DictReader(handle)} == {
            task: (before[task], after[task]) for task in expected
        }
    assert second["labelled"] == 1


def test_the_order_of_rows_is_no_news_and_another_method_is(tmp_path: Path, cast: dict[tuple[str, str], str]) -> None:
    votes = tmp_path / "votes.csv"
    write_votes(votes, cast)
    assert one_round(tmp_path) is not None
    write_votes(votes, dict(reversed(cast.items())))
    assert one_round(tmp_path) is None
    assert one_round(tmp_path, "--method", "majority-vote") is not None


def test_what_is_said_to_a_person(tmp_path: Path, cast: dict[tuple[str, str], str]) -> None:
    write_votes(tmp_path / "votes.csv", cast)
    said = rarevote("watch", "votes.csv", "--rounds", "1", "--out", "w", folder=tmp_path).stderr
    assert "round 1: 80 new votes (ann 20, bob 20, cy 20, dee 20)" in said
    assert "stands out: dee recognises" in said
    for name in ("ann", "bob", "cy"):
        cast["t1", name] = "defect"
    write_votes(tmp_path / "votes.csv", cast)
    said = rarevote("watch", "votes.csv", "--rounds", "1", "--out", "w", folder=tmp_path).stderr
    assert "  t1: sound -> defect" in said
    assert "stands out" not in said  # it was said before


@pytest.mark.parametrize("at", ["write", "changes", "state"])
def test_an_interrupted_round_is_made_again(
    tmp_path: Path, cast: dict[tuple[str, str], str], monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    write_votes(tmp_path / "votes.csv", cast)
    out = tmp_path / "out"
    out.mkdir()
    place = {"write": "rarevote.result.Result.write", "changes": "rarevote.watch.labels.write_columns",
             "state": "rarevote.watch.state.WatchState.save"}[at]  # fmt: skip
    with monkeypatch.context() as broken:
        broken.setattr(place, _interrupt)
        with pytest.raises(KeyboardInterrupt):
            LabelsWatch(Files([str(tmp_path / "votes.csv")]), out).poll()
    assert not (out / "watch.json").exists()
    found = LabelsWatch(Files([str(tmp_path / "votes.csv")]), out).poll()
    assert found is not None
    assert (found.changes.number, sum(found.changes.new_votes.values())) == (1, 80)


def _interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_one_watch_in_a_folder(tmp_path: Path, cast: dict[tuple[str, str], str]) -> None:
    write_votes(tmp_path / "votes.csv", cast)
    write_votes(tmp_path / "others.csv", cast)
    one_round(tmp_path)
    words = ("--rounds", "1", "--out", "watched")
    said = rarevote("watch", "others.csv", *words, folder=tmp_path, code=1).stderr
    assert "belongs to another watch" in said
    with (tmp_path / "watched" / ".watch.lock").open("a+b") as handle:
        assert lock(handle)
        assert (
            "another process is watching into this folder"
            in rarevote("watch", "votes.csv", *words, folder=tmp_path, code=1).stderr
        )
    with watching(tmp_path / "watched"):
        pass


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "x"}', '{"format": "rarevote watch 1", "source": 7}'])
def test_a_damaged_memory_is_not_taken_for_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "watch.json").write_text(text)
    with pytest.raises(InputError, match="remove it to start again"):
        WatchState.load(tmp_path, "x")


def test_trouble_after_the_first_round_does_not_end_it() -> None:
    down, half, gone = ServerDownError("down"), InputError("half a file"), ServerError("gone", 404)
    outcomes: list[Any] = [1, down, half, 2, gone]
    heard: list[InputError] = []
    slept: list[float] = []

    def poll() -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    found: list[int] = []
    with pytest.raises(ServerError, match="gone"):
        found.extend(rounds(poll, every=7.0, most=None, sleep=slept.append, failed=heard.append))
    assert found == [1, 2]
    assert heard == [down, half]
    assert slept == [7.0] * 4
    with pytest.raises(ServerDownError):
        list(rounds(lambda: _raise(down), every=1.0, most=3, sleep=slept.append, failed=heard.append))


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["votes.csv", "--project", "7"], "--project: only for projects"),
        (["votes.csv", "--column", "p_x"], "--column: only for projects"),
        (["votes.csv", "--no-push"], "--push: only for projects"),
        (["votes.csv", "--review-project", "8"], "needs --max-review N"),
        (["votes.csv", "--every", "never"], "--every must be a time"),
        (["votes.csv", "--every", "8000000s"], "--every must be a time"),
        (["votes.csv", "-m", "majority-vote", "--max-review", "3", "--review-project", "8"], "--review-project"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, cast: dict[tuple[str, str], str], words: list[str], said: str) -> None:
    write_votes(tmp_path / "votes.csv", cast)
    assert said in rarevote("watch", *words, "--out", "w", folder=tmp_path, code=2).stderr


# --------------------------------------------------------------------------------------------------------------------
# a project


def test_rounds_of_a_project(site: Site, tmp_path: Path) -> None:
    def watched() -> dict[str, Any] | None:
        return one_round(tmp_path, "--project", "1", "--column", "p_defect", labels="label-studio")

    first = watched()
    assert first is not None
    assert first["pushed"] == {"predictions": 12, "deleted": 0, "gone": 0, "patched": 12}
    labels = labels_in(tmp_path / "watched" / "result.csv")
    shown = {str(one["task"]): one["result"][0]["value"]["choices"] for one in site.fake.predictions(1)}
    assert shown == {task: [label] for task, label in labels.items()}
    site.fake.requests.clear()
    assert watched() is None  # that our own column changed is no news
    assert not [method for method, _ in site.fake.requests if method in ("DELETE", "PATCH")]
    site.fake.annotate(site.ids[0], "eve@example.org", "defect")
    second = watched()
    assert second is not None
    assert second["new_votes"] == {"eve@example.org": 1}
    assert Counter(one["task"] for one in site.fake.predictions(1)) == Counter(site.ids)


def test_a_push_that_fails_is_made_again(site: Site, tmp_path: Path) -> None:
    place = "/api/projects/1/import/predictions"
    site.fake.troubles = [Trouble("POST", place, 500, followed=True, times=9)]
    words = ("watch", "label-studio", "--project", "1", "--rounds", "1", "--out", "watched")
    assert "the same command resumes" in rarevote(*words, folder=tmp_path, code=1).stderr
    site.fake.troubles = []
    rarevote(*words, folder=tmp_path)
    assert Counter(one["task"] for one in site.fake.predictions(1)) == Counter(site.ids)


def test_a_project_that_nobody_has_annotated_is_waited_for(site: Site, tmp_path: Path) -> None:
    empty = site.fake.project(["a"])
    words = ("watch", "label-studio", "--project", str(empty), "--rounds", "1", "--out", "w")
    assert "no new votes; waiting" in rarevote(*words, folder=tmp_path).stderr


def test_several_choices_are_not_pushed_by_a_watch(site: Site, tmp_path: Path) -> None:
    words = ("watch", "label-studio", "--project", "1", "--multilabel", "--choice", "defect", "--rounds", "1",
             "--out", "w")  # fmt: skip
    assert "pull, aggregate and push with --multilabel" in rarevote(*words, folder=tmp_path, code=1).stderr
    rarevote(*words, "--no-push", folder=tmp_path)
    assert not site.fake.predictions(1)


def test_without_push_nothing_is_changed(site: Site, tmp_path: Path) -> None:
    found = one_round(tmp_path, "--project", "1", "--no-push", labels="label-studio")
    assert found is not None
    assert found["pushed"] is None
    assert {method for method, path in site.fake.requests if "token" not in path} == {"GET"}


def test_items_to_review_go_and_answers_come_back(site: Site, tmp_path: Path) -> None:
    second = site.fake.project()
    options = ("--project", "1", "--review-project", str(second), "--max-review", "3")

    def watched() -> dict[str, Any] | None:
        return one_round(tmp_path, *options, labels="label-studio")

    first = watched()
    assert first is not None
    assert (first["asked"], first["answered"]) == (3, 0)
    asked = site.fake.of(second)
    assert {key for task in asked for key in task["data"]} == {"task", "text"}  # neither label nor score
    chosen = {task["data"]["task"]: site.truth(task["data"]["text"]) for task in asked}
    assert {site.fake.tasks[int(name)]["data"]["text"] for name in chosen} == {task["data"]["text"] for task in asked}
    for task in asked:
        site.fake.annotate(task["id"], "zoe@example.org", chosen[task["data"]["task"]])
    again = watched()
    assert again is not None
    assert again["answered"] == 3
    labels = labels_in(tmp_path / "watched" / "result.csv")
    assert {task: labels[task] for task in chosen} == chosen
    names = [task["data"]["task"] for task in site.fake.of(second)]
    assert len(names) == len(set(names)) == 3 + again["asked"]
    assert "must differ from --project" in rarevote(
        "watch", "label-studio", "--project", "1", "--review-project", "1", "--max-review", "3", "--out", "w",
        folder=tmp_path, code=2
    ).stderr  # fmt: skip


def test_experts_who_disagree_say_nothing(site: Site, tmp_path: Path) -> None:
    second = site.fake.project()
    options = ("--project", "1", "--review-project", str(second), "--max-review", "2")
    one_round(tmp_path, *options, labels="label-studio")
    first, other = site.fake.of(second)
    site.fake.annotate(first["id"], "zoe@example.org", "defect")
    site.fake.annotate(first["id"], "max@example.org", "sound")
    site.fake.annotate(other["id"], "zoe@example.org", "sound")
    found = one_round(tmp_path, *options, labels="label-studio")
    assert found is not None
    assert found["answered"] == 1


def test_a_review_project_that_shows_what_items_lack(site: Site, tmp_path: Path) -> None:
    second = site.fake.project()
    site.fake.projects[second]["parsed_label_config"]["quality"]["inputs"] = [{"type": "Image", "value": "image"}]
    said = rarevote("watch", "label-studio", "--project", "1", "--review-project", str(second), "--max-review", "2",
                    "--rounds", "1", "--out", "w", folder=tmp_path, code=1).stderr  # fmt: skip
    assert "shows $image, which the items do not have (they have task, text)" in said
