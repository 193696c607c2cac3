"""Label Studio's short exports, and controls that are rarer than a list of choices."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms import detect, label_studio, read_export
from rarevote.io.platforms.write_back import check_way_back, write_back
from tests.command import rarevote as command
from tests.io.platforms.exports import FIXTURES

SHORT = ["label_studio_min.json", "label_studio.csv"]


def rows(path: Path, **options: Any) -> list[tuple[str, ...]]:
    return list(zip(*read_export(path, **options).columns().values(), strict=True))


def write(path: Path, records: Any) -> Path:
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


# -- JSON-MIN and CSV ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHORT)
def test_choices_of_the_short_exports(name: str) -> None:
    with pytest.raises(InputError, match=r"\(task 102\): several choices in one answer \('crack', 'dirt'\)"):
        read_export(FIXTURES / name, question="damage")
    export = read_export(FIXTURES / name, question="damage", multilabel=True, show=["caption"])
    voted = [row for row in zip(*export.columns().values(), strict=True) if row[2] == "yes"]
    assert [row[:4] for row in voted] == [
        ("101:crack", "3", "yes", "左翼"),
        ("101:sound", "zoë@example.org", "yes", "左翼"),
        ("102:crack", "3", "yes", "右\n翼"),
        ("102:dirt", "3", "yes", "右\n翼"),
        ("102:dirt", "3", "yes", "右\n翼"),
    ]
    # Five submitted without a tick. "None" is how a table writes that nobody is named.
    assert export.worker.count("5") == 3
    assert export.left_out == {"no annotator named": 1}
    assert export.n_records == 7


@pytest.mark.parametrize("name", SHORT)
def test_taxonomies_and_ratings_of_the_short_exports(name: str) -> None:
    export = read_export(FIXTURES / name, question="kind", multilabel=True)
    ticked = [task for task, label in zip(export.task, export.label, strict=True) if label == "yes"]
    assert ticked == ["101:Metall / Stahl", "102:Lack", "102:Metall / Stahl"]
    assert rows(FIXTURES / name, question="stars") == [("101", "3", "4"), ("101", "zoë@example.org", "2")]
    with pytest.raises(InputError, match=r"'severity' is asked about regions"):
        read_export(FIXTURES / name, question="severity")


def test_questions_are_what_stands_between_the_task_and_the_annotator() -> None:
    with pytest.raises(InputError, match="3 questions were asked: 'damage', 'kind', 'note'"):
        read_export(FIXTURES / "label_studio_min.json")


def record(task: Any, annotator: Any, **more: Any) -> dict[str, Any]:
    return {"text": "t", "id": task, **more, "annotator": annotator, "annotation_id": 1, "lead_time": 1.0}


def test_a_control_that_is_called_as_a_column_of_the_data(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [{"label": label, **record(7, label)} for label in ("a", "b")])
    assert rows(path) == [("7", "a", "a"), ("7", "b", "b")]


def test_keys_in_another_order(tmp_path: Path) -> None:
    records = [dict(sorted(record(7, who, q=label).items())) for who, label in (("a", "x"), ("b", "y"))]
    assert rows(write(tmp_path / "x.json", records)) == [("7", "a", "x"), ("7", "b", "y")]
    with pytest.raises(
        InputError, match=r"cannot find the column of answers.*question='...'; the columns are 'q', 'text'"
    ):
        read_export(write(tmp_path / "x.json", records[:1]))
    assert rows(tmp_path / "x.json", question="q") == [("7", "a", "x")]
    # A task whose data has an id of its own.
    first = [{"id": 7, **record(7, who, q=label)} for who, label in (("a", "x"), ("b", "y"))]
    assert rows(write(tmp_path / "x.json", first)) == [("7", "a", "x"), ("7", "b", "y")]


def test_differences_are_looked_for_in_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_studio, "_SAMPLED_TASKS", 1)
    path = tmp_path / "x.csv"
    path.write_text("annotation_id,annotator,id,lead_time,q,text\n1,a,7,1,x,t\n2,b,7,1,y,t\n3,a,8,1,x,t\n4,b,8,1,x,u\n")
    assert read_export(path).questions == ("q",)


@pytest.mark.parametrize(
    ("annotator", "worker"), [([5], "5"), ({"id": 3, "email": "z@example.org"}, "z@example.org"), ({"id": 3}, "3")]
)
def test_annotators(tmp_path: Path, annotator: Any, worker: str) -> None:
    assert rows(write(tmp_path / "x.json", [record(7, annotator, q="x")])) == [("7", worker, "x")]


def test_what_the_short_exports_do_not_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="annotator is a list"):
        read_export(write(tmp_path / "x.json", [record(7, [5, 6], q="x")]))
    with pytest.raises(ParameterError, match="only Label Studio's full JSON export has predictions; export as JSON"):
        read_export(tmp_path / "x.json", include_predictions=True)
    (tmp_path / "x.csv").write_text("id,text,q\n1,a,x\n")
    with pytest.raises(InputError, match=r"no column 'annotator' \(who answered\).*Export as JSON"):
        read_export(tmp_path / "x.csv", platform="label-studio")
    with pytest.raises(InputError, match=r"record 1 is not a task .* Export as JSON"):
        read_export(write(tmp_path / "x.json", [{"text": "a", "q": "x"}]), platform="label-studio")
    with pytest.raises(InputError, match=r"record 2 is not an annotation .* no annotator"):
        read_export(write(tmp_path / "x.json", [record(7, 5, q="x"), {"id": 3}]), platform="label-studio")
    export = read_export(write(tmp_path / "x.json", [record(7, 5, q="x")]))
    for refused in (
        lambda: check_way_back(export.platform, tmp_path / "back.json", export.details),
        lambda: write_back(export, ["7"], ["x"], [1.0], tmp_path / "back.json"),
    ):
        with pytest.raises(InputError, match="only to Label Studio's full JSON export"):
            refused()


def test_tables_of_any_kind(tmp_path: Path) -> None:
    with (FIXTURES / "label_studio.csv").open(encoding="utf-8", newline="") as handle:
        table = list(csv.reader(handle))
    path = tmp_path / "x.tsv"
    with path.open("w", encoding="utf-8-sig", newline="") as handle:
        csv.writer(handle, delimiter="\t").writerows(table)
    assert detect(path) == "label-studio"
    assert rows(path, question="stars") == rows(FIXTURES / "label_studio.csv", question="stars")


# -- rarer controls of the full export -------------------------------------------------------------------------------


def task(*answers: tuple[Any, Any], **entry: Any) -> list[dict[str, Any]]:
    common = {"from_name": "q", "to_name": "text", "type": "choices", **entry}
    annotations = [{"completed_by": who, "result": [{**common, "value": {"choices": value}}]} for who, value in answers]
    return [{"id": 1, "data": {"text": "x"}, "annotations": annotations}]


def test_choices_within_choices(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", task((1, [["Tier", "Hund"]]), (2, [["Tier", "Katze"]]), (3, ["Pflanze"])))
    assert rows(path) == [("1", "1", "Tier / Hund"), ("1", "2", "Tier / Katze"), ("1", "3", "Pflanze")]
    write_back(read_export(path), ["1"], ["Tier / Hund"], [0.5], tmp_path / "back.json")
    (back,) = json.loads((tmp_path / "back.json").read_text(encoding="utf-8"))
    assert back["predictions"][0]["result"][0]["value"] == {"choices": [["Tier", "Hund"]]}


def test_choices_about_one_of_several_pictures(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", task((1, ["a"]), (2, ["b"]), id="r", item_index=0))
    with pytest.raises(InputError, match=r"'q' \(choices of regions\)"):
        read_export(path)


def test_annotations_that_are_numbers_only(tmp_path: Path) -> None:
    path = write(tmp_path / "x.json", [{"id": 1, "data": {}, "annotations": [3, 4], "predictions": []}])
    with pytest.raises(InputError, match="2 annotations are given only by their ids; export with full annotations"):
        read_export(path)


# -- ground truth, and pages of the API ------------------------------------------------------------------------------


def annotation(who: int, choice: str, *, known: bool) -> dict[str, Any]:
    value = {"choices": [choice]}
    result = [{"id": "r", "from_name": "q", "to_name": "t", "type": "choices", "value": value}]
    return {"completed_by": who, "ground_truth": known, "was_cancelled": False, "result": result}


def tasks(n: int, *given: tuple[int, bool]) -> list[dict[str, Any]]:
    """Tasks on which these people voted, whose annotations are marked as ground truth or not."""
    return [
        {
            "id": task,
            "data": {"text": f"text {task}"},
            "annotations": [annotation(who, "yes" if (task + who) % 3 else "no", known=known) for who, known in given],
            "predictions": [],
        }
        for task in range(n)
    ]


def test_imported_annotations_are_votes_although_all_are_marked_as_ground_truth(tmp_path: Path) -> None:
    # Label Studio marks what is imported without the field.
    path = write(tmp_path / "x.json", tasks(40, (1, True), (2, True), (3, True)))
    export = read_export(path)
    assert (len(export), export.gold, export.left_out) == (120, {}, {})
    assert export.label == ["yes" if (task + who) % 3 else "no" for task in range(40) for who in (1, 2, 3)]
    assert export.notes == (
        "120 annotations are marked as ground truth, which Label Studio does on import; they are read as votes "
        '(ground_truth="gold" uses them as gold)',
    )
    # One person's on every task, and nobody else's.
    alone = read_export(write(tmp_path / "y.json", tasks(5, (1, True))))
    assert (len(alone), alone.gold) == (5, {})


@pytest.mark.parametrize(
    ("ground_truth", "n_votes", "n_gold", "left_out"),
    [
        (None, 20, 10, {"ground truth: used as gold, not as a vote": 10}),
        ("votes", 30, 0, {}),
        ("gold", 20, 10, {"ground truth: used as gold, not as a vote": 10}),
        ("ignore", 20, 0, {"ground truth, ignored as requested": 10}),
    ],
)
def test_ground_truth_is_what_somebody_says(
    tmp_path: Path, ground_truth: Any, n_votes: int, n_gold: int, left_out: dict[str, int]
) -> None:
    path = write(tmp_path / "x.json", tasks(10, (1, False), (2, False), (9, True)))
    export = read_export(path, ground_truth=ground_truth)
    assert (len(export), len(export.gold), export.left_out) == (n_votes, n_gold, left_out)


def test_ground_truth_is_for_label_studio(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="ground_truth must be votes, gold, ignore"):
        read_export(tmp_path / "x.json", ground_truth="truth")
    with pytest.raises(ParameterError, match="an export of Toloka marks no annotation as ground truth"):
        read_export(FIXTURES / "toloka.tsv", ground_truth="votes")
    with pytest.raises(ParameterError, match="only Label Studio's full JSON export marks ground truth"):
        read_export(FIXTURES / "label_studio.csv", question="damage", multilabel=True, ground_truth="votes")


def test_a_page_of_tasks_from_the_api(tmp_path: Path) -> None:
    whole = read_export(write(tmp_path / "export.json", tasks(6, (1, False), (2, False))))
    page = {"tasks": tasks(6, (1, False), (2, False)), "total_annotations": 12, "total_predictions": 0, "total": 6}
    path = write(tmp_path / "page.json", page)
    assert detect(path) == "label-studio"
    found = read_export(path, show=["text"])
    assert (found.task, found.worker, found.label) == (whole.task, whole.worker, whole.label)
    assert (found.n_records, found.notes) == (6, ())
    assert found.shown["text"][:2] == ["text 0", "text 0"]
    # Pages after each other, of which one is lacking.
    path.write_text("\n".join(json.dumps({**page, "tasks": page["tasks"][k : k + 2], "total": 6}) for k in (0, 2)))  # type: ignore[index]
    half = read_export(path)
    assert (len(half), half.n_records) == (8, 4)
    assert half.cautions == ("4 of the project's 6 tasks are in this file: ask the API for all of them (page_size)",)


def test_labels_go_back_from_a_page(tmp_path: Path) -> None:
    path = write(tmp_path / "page.json", {"tasks": tasks(6, (1, False), (2, False)), "total": 6})
    out = tmp_path / "back.json"
    done = command("aggregate", path, "-m", "majority-vote", "--out", tmp_path / "r.csv", "--back-out", out)
    assert "12 annotations, 6 tasks, 2 workers" in done.stderr
    assert [task["id"] for task in json.loads(out.read_text())] == list(range(6))


def test_a_page_without_annotations_says_what_to_ask_for(tmp_path: Path) -> None:
    bare = [{"id": 1, "data": {"text": "t"}, "annotators": [1], "annotations_results": "[]", "total_annotations": 1}]
    path = write(tmp_path / "page.json", {"tasks": bare, "total": 1})
    with pytest.raises(InputError, match="fields=all"):
        read_export(path)


# -- annotators ----------------------------------------------------------------------------------------------------


def test_a_person_whose_address_changed_is_one_annotator(tmp_path: Path) -> None:
    people = [{"id": 3, "email": "old@example.org"}, 3, {"id": 3, "email": "new@example.org"}, {"id": 3}, 4]
    given = [(who, ["x" if n % 2 else "y"]) for n, who in enumerate(people)]
    records = [{**task(answer)[0], "id": n} for n, answer in enumerate(given)]
    export = read_export(write(tmp_path / "x.json", records))
    assert export.worker == ["new@example.org"] * 4 + ["4"]


# -- choices about regions -------------------------------------------------------------------------------------------


def _short(path: Path, records: list[dict[str, Any]]) -> Path:
    if path.suffix == ".json":
        return write(path, records)
    with path.open("w", newline="") as handle:
        table = csv.DictWriter(handle, list(records[0]))
        table.writeheader()
        for one in records:
            table.writerow({k: json.dumps(v) if isinstance(v, (list, dict)) else v for k, v in one.items()})
    return path


@pytest.mark.parametrize("name", ["x.json", "x.csv"])
@pytest.mark.parametrize("single_first", [True, False])
def test_a_choice_about_regions_of_which_an_annotation_has_one(
    tmp_path: Path, name: str, *, single_first: bool
) -> None:
    given = ["pos", ["neg", "pos"], ["neg", "pos", "neg"], "pos"]
    about = given if single_first else given[::-1]
    moods = ["good", "bad", "good", "good"]
    records = [record(n // 2, n % 2, sent=about[n], mood=moods[n]) for n in range(4)]
    path = _short(tmp_path / name, records)
    with pytest.raises(InputError, match="'sent' is asked about regions"):
        read_export(path, question="sent")
    # The other control is the only question.
    assert read_export(path).questions == ("mood",)
    assert rows(path) == [(str(n // 2), str(n % 2), moods[n]) for n in range(4)]
    for one in records:
        del one["mood"]
    with pytest.raises(InputError, match=r"no choice control has answers; found: 'sent' \(choices of regions\)"):
        read_export(_short(tmp_path / name, records))


def test_choices_about_painted_regions(tmp_path: Path) -> None:
    value = {"imageDataURL": "data:image/png;base64,x"}
    path = write(
        tmp_path / "x.json",
        [
            {"id": 1, "data": {"t": "a"}, "annotations": [
                {"completed_by": who, "result": [
                    {"id": f"r{who}", "from_name": "m", "to_name": "t", "type": "bitmask",
                     "value": {**value, "bitmasklabels": ["L"]}},
                    {"id": f"r{who}", "from_name": "d", "to_name": "t", "type": "choices",
                     "value": {**value, "choices": [choice]}}]}
                for who, choice in ((3, "x"), (4, "y"))]}
        ],
    )  # fmt: skip
    with pytest.raises(InputError, match=r"'d' \(choices of regions\)"):
        read_export(path)
