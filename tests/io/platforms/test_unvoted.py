"""Items that an export names and that have no vote: every platform's reader carries them, counted independently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rarevote
from rarevote.io.platforms import PLATFORMS, read_export
from rarevote.io.read.crowd import Crowd
from rarevote.io.read.options import ReadOptions
from tests.command import rarevote as command
from tests.io.platforms.exports import EXPORTS, VOTES, label_studio, mturk, text_of, written_table

ITEMS = [str(number) for number in range(100, 130)]
OTHERS = ITEMS[::4]
LABELLED = [item for item in ITEMS if item not in OTHERS]


def votes_of(crowd: Crowd) -> list[tuple[Any, ...]]:
    votes = crowd.annotations
    named = (votes.tasks[votes.task_of_annotation()], votes.workers[votes.worker], votes.classes[votes.label])
    return list(zip(*(column.tolist() for column in named), strict=True))


def test_every_platform_is_here() -> None:
    assert {name.split()[0] for name in EXPORTS} == set(PLATFORMS)


@pytest.mark.parametrize("name", EXPORTS)
def test_items_without_votes_are_carried(name: str, tmp_path: Path) -> None:
    path = EXPORTS[name](tmp_path, LABELLED, OTHERS)
    crowd = rarevote.read(path, platform=name.split()[0], question="q" if "q" in _questions(path) else None)
    assert crowd.annotations.tasks.tolist() == LABELLED
    assert crowd.annotations.unanswered.tolist() == OTHERS
    assert crowd.n_unvoted == len(OTHERS) == 8
    assert crowd.population.tolist() == [*LABELLED, *OTHERS]
    assert crowd.annotations.n_annotations == len(LABELLED) * len(VOTES)
    assert [note for note in crowd.notes if "no votes" in note] == ["8 of 30 items have no votes"]


def _questions(path: Path) -> tuple[str, ...]:
    return read_export(path).questions


@pytest.mark.parametrize("name", EXPORTS)
def test_what_is_shown_covers_the_population(name: str, tmp_path: Path) -> None:
    path = EXPORTS[name](tmp_path, LABELLED, OTHERS)
    crowd = rarevote.read(path, show=["text"])
    assert crowd.shown["text"].tolist() == [text_of(item) for item in [*LABELLED, *OTHERS]]
    assert crowd.to_show is crowd.shown
    # The platforms that say what is data show it unasked.
    own = rarevote.read(path).to_show
    if own:
        assert own["text"].tolist() == [text_of(item) for item in [*LABELLED, *OTHERS]]
    assert bool(own) == (name in ("label-studio", "argilla", "argilla server"))


@pytest.mark.parametrize("name", EXPORTS)
def test_the_votes_are_those_of_the_export_without_them(name: str, tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "labelled").mkdir()
    both = [
        rarevote.read(EXPORTS[name](tmp_path / folder, LABELLED, others))
        for folder, others in (("all", OTHERS), ("labelled", []))
    ]
    assert votes_of(both[0]) == votes_of(both[1])
    assert both[1].n_unvoted == 0
    assert not any("no votes" in note for note in both[1].notes)


@pytest.mark.parametrize("name", EXPORTS)
def test_several_choices_are_problems_of_each_item_without_votes(name: str, tmp_path: Path) -> None:
    path = EXPORTS[name](tmp_path, LABELLED, OTHERS)
    crowd = rarevote.read(path, multilabel=True, show=["text"])
    # An empty answer of Label Studio's is no tick, and so is none of the choices; elsewhere it is no answer.
    silent = [item for number, item in enumerate(OTHERS) if not (name == "label-studio" and number % 6 == 3)]
    wanted = {f"{item}:{choice}" for item in silent for choice in ("yes", "no")}
    assert set(crowd.annotations.unanswered.tolist()) == wanted
    place = {task: row for row, task in enumerate(crowd.population.tolist())}
    for task in wanted:
        item, choice = task.split(":")
        told = {column: texts[place[task]] for column, texts in crowd.shown.items()}
        assert told == {"text": text_of(item), "item": item, "choice": choice}


def test_a_project_of_1800_tasks_of_which_300_are_unlabelled(tmp_path: Path) -> None:
    items = [str(number) for number in range(10_000, 11_800)]
    path = label_studio(tmp_path, items[300:], items[:300])
    crowd = rarevote.read(path)
    assert (crowd.annotations.n_tasks, crowd.n_unvoted, len(crowd.population)) == (1500, 300, 1800)
    assert crowd.notes == ("300 of 1,800 items have no votes",)
    assert "300 items without votes" in repr(crowd)
    assert "items without votes" in crowd._repr_html_()
    said = command("aggregate", path, "--out", tmp_path / "r.csv", "--method", "majority-vote").stderr
    assert said.count("300 of 1,800 items have no votes") == 1
    converted = command("convert", path, "--out", tmp_path / "labels.csv").stderr
    assert converted.count("300 of 1,800 items have no votes") == 1
    summary = json.loads(command("convert", path, "--out", tmp_path / "labels.csv", "--json").stdout)
    assert (summary["n_tasks"], summary["n_unvoted"]) == (1500, 300)


def test_an_item_with_votes_on_another_question_only(tmp_path: Path) -> None:
    def answer(control: str, name: str) -> dict[str, Any]:
        return {"from_name": control, "to_name": "t", "type": "choices", "value": {"choices": [name]}}

    asked = {1: ["damage", "mood"], 2: ["damage"], 3: ["mood"], 4: []}
    records = [
        {"id": task, "data": {}, "annotations": [
            {"completed_by": w, "result": [answer(control, f"{control}-{w}") for control in controls]} for w in (7, 8)]}
        for task, controls in asked.items()
    ]  # fmt: skip
    path = tmp_path / "x.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    for question in ("damage", "mood"):
        crowd = rarevote.read(path, question=question)
        assert crowd.annotations.unanswered.tolist() == [str(t) for t, names in asked.items() if question not in names]
    every = rarevote.read_each(path)
    assert {name: crowd.annotations.unanswered.tolist() for name, crowd in every.items()} == {
        "damage": ["3", "4"],
        "mood": ["2", "4"],
    }


def test_ground_truth_alone_is_gold_of_an_item_without_votes(tmp_path: Path) -> None:
    path = label_studio(tmp_path, ["1", "2"], [])
    records = json.loads(path.read_text(encoding="utf-8"))
    known = {**records[0]["annotations"][0], "ground_truth": True}
    records.append({"id": "3", "data": {}, "annotations": [known]})
    path.write_text(json.dumps(records), encoding="utf-8")
    crowd = rarevote.read(path)
    assert (crowd.gold, crowd.annotations.unanswered.tolist()) == ({"3": "yes"}, ["3"])


def test_models_are_voters_where_they_are_asked_for(tmp_path: Path) -> None:
    path = label_studio(tmp_path, LABELLED, OTHERS)
    crowd = rarevote.read(path, include_predictions=True)
    predicted = OTHERS[5::6]
    assert crowd.annotations.unanswered.tolist() == [item for item in OTHERS if item not in predicted]


def test_abstentions_only_are_among_them(tmp_path: Path) -> None:
    path = mturk(tmp_path, LABELLED, OTHERS)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(f"{text_of('101')},yes", f"{text_of('101')},unsure"), encoding="utf-8")
    crowd = rarevote.read(path, abstain=["unsure", "no"])
    # Two of three votes on item 101 are unsure and one is no, which is none either here.
    assert crowd.annotations.unanswered.tolist() == sorted([*OTHERS, "101"])
    assert crowd.notes[-1] == "9 of 30 items have no votes"


def test_places_of_a_hit_that_show_nothing_are_no_items(tmp_path: Path) -> None:
    names = ("HITId", "WorkerId", "Input.x_1", "Input.x_2", "Answer.x_1", "Answer.x_2")
    rows = [
        dict(zip(names, (hit, f"w{w}", "a", second, "yes", vote), strict=True))
        for hit, second, vote in (("H1", "b", "no"), ("H2", "c", ""), ("H3", "", ""))
        for w in range(2)
    ]
    crowd = rarevote.read(written_table(tmp_path / "x.csv", rows))
    assert crowd.annotations.tasks.tolist() == ["H1:1", "H1:2", "H2:1", "H3:1"]
    assert crowd.annotations.unanswered.tolist() == ["H2:2"]


def test_labels_of_prodigy_that_were_put_and_ignored(tmp_path: Path) -> None:
    def line(item: int, label: str, answer: str) -> str:
        asked = {"text": str(item), "label": label, "_input_hash": item, "_task_hash": item}
        return json.dumps({**asked, "answer": answer, "_annotator_id": "ann"})

    lines = [line(1, "A", "accept"), line(1, "B", "ignore"), line(2, "B", "reject"), line(3, "A", "ignore")]
    lines.append(json.dumps({"text": "4", "spans": [{}], "_input_hash": 4, "_task_hash": 4, "answer": "accept"}))
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.warns(rarevote.errors.RarevoteWarning, match="one annotator"):
        crowd = rarevote.read(path, multilabel=True)
    assert crowd.annotations.tasks.tolist() == ["1:A", "2:B"]
    # A label that was not put to anybody is no problem, but of an item without any answer all of them are.
    assert crowd.annotations.unanswered.tolist() == ["1:B", "3:A", "4:A", "4:B"]


def test_they_survive_other_votes_on_the_same_population(tmp_path: Path) -> None:
    path = label_studio(tmp_path, LABELLED, OTHERS)
    with pytest.warns(rarevote.errors.RarevoteWarning, match="'maybe'"):
        fitted = rarevote.fit(path, "gold-majority-vote", gold={LABELLED[0]: "maybe"}, show=["text"])
    assert fitted.annotations.classes.tolist() == ["maybe", "no", "yes"]
    assert fitted.crowd.population.tolist() == [*LABELLED, *OTHERS]
    assert rarevote.read(path, ReadOptions(items=ITEMS)).annotations.unanswered.tolist() == OTHERS
