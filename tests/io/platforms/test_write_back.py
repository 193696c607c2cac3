"""Export, aggregate, import: labels go back in the platform's own form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rarevote import MajorityVote
from rarevote.errors import InputError, ParameterError, RarevoteWarning
from rarevote.io.platforms import PLATFORMS, Export, export_annotations, read_export
from rarevote.io.platforms.write_back import check_way_back, write_back
from tests.command import rarevote, rows
from tests.io.platforms.exports import FIXTURES, MAIN


def aggregated(export: Export) -> dict[str, tuple[str, float]]:
    crowd, _, _ = export_annotations(export)
    model = MajorityVote().fit(crowd)
    codes = model.label_codes()
    best = model.posterior_[range(len(codes)), codes]
    return dict(zip(crowd.tasks.tolist(), zip(crowd.classes[codes].tolist(), best.tolist(), strict=True), strict=True))


def sent_back(export: Export, path: Path) -> dict[str, tuple[str, float]]:
    results = aggregated(export)
    labels, scores = zip(*results.values(), strict=True)
    n_labelled = write_back(export, results, labels, scores, path)
    assert n_labelled == len(
        {export.shown["item"][export.task.index(task)] if export.multilabel else task for task in results}
    )
    return results


def load(path: Path) -> list[dict[str, Any]]:
    return list(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("question", ["damage", "kind"])
def test_label_studio_round_trip(tmp_path: Path, question: str) -> None:
    source = FIXTURES / "label_studio.json"
    export = read_export(source, question=question)
    results = sent_back(export, tmp_path / "back.json")
    original, written = load(source), load(tmp_path / "back.json")
    assert [task["id"] for task in written] == [task["id"] for task in original]
    assert [task["data"] for task in written] == [task["data"] for task in original]
    assert [task["meta"] for task in written] == [task["meta"] for task in original]
    asked = {
        entry["from_name"]: entry
        for task in original
        for annotation in task["annotations"]
        for entry in annotation["result"]
    }[question]
    for task in written:
        if str(task["id"]) not in results:
            assert task["predictions"] == []
            continue
        (prediction,) = task["predictions"]
        (entry,) = prediction["result"]
        assert {key: entry[key] for key in ("from_name", "to_name", "type")} == {
            key: asked[key] for key in ("from_name", "to_name", "type")
        }
        assert type(entry["value"][asked["type"]][0]) is type(asked["value"][asked["type"]][0])
        assert prediction["model_version"] == "rarevote"
        assert prediction["score"] == pytest.approx(results[str(task["id"])][1], abs=1e-6)
    again = read_export(tmp_path / "back.json", question=question, include_predictions=True)
    assert set(again.worker) == {"model:rarevote"}
    assert dict(zip(again.task, again.label, strict=True)) == {task: label for task, (label, _) in results.items()}


def test_label_studio_round_trip_of_several_choices(tmp_path: Path) -> None:
    export = read_export(FIXTURES / "label_studio_multi.json", multilabel=True)
    results = sent_back(export, tmp_path / "back.json")
    first, second = load(tmp_path / "back.json")
    assert first["predictions"][0]["result"][0]["value"] == {"choices": ["money"]}
    assert first["predictions"][0]["score"] == pytest.approx(2 / 3, abs=1e-6)
    assert second["predictions"][0]["result"][0]["value"] == {"choices": ["sport"]}
    again = read_export(tmp_path / "back.json", multilabel=True, include_predictions=True)
    ticked = {task for task, label in zip(again.task, again.label, strict=True) if label == "yes"}
    assert ticked == {task for task, (label, _) in results.items() if label == "yes"}


def test_label_studio_ratings_go_back_as_numbers(tmp_path: Path) -> None:
    export = read_export(FIXTURES / "label_studio_regions.json", question="stars")
    write_back(export, ["1"], ["4"], [float("nan")], tmp_path / "back.json", model_version="v2")
    (task,) = load(tmp_path / "back.json")
    assert task["predictions"][0]["result"][0]["value"] == {"rating": 4}
    assert task["predictions"][0].keys() == {"model_version", "result"}


@pytest.mark.parametrize("name", ["argilla_flat.json", "argilla_disk"])
@pytest.mark.parametrize("question", ["toxicity", "severity"])
def test_argilla_round_trip(tmp_path: Path, name: str, question: str) -> None:
    export = read_export(FIXTURES / name, question=question)
    out = tmp_path / "back.json"
    results = sent_back(export, out)
    source = FIXTURES / name
    original, written = load(source / "records.json" if source.is_dir() else source), load(out)
    assert [record["id"] for record in written] == [record["id"] for record in original]
    for before, after in zip(original, written, strict=True):
        for key in ("fields", "metadata", "text", "source", "_server_id"):
            assert after.get(key) == before.get(key)
        assert not after.get("responses")
        assert not any(".responses" in key for key in after)
    again = read_export(out, question=question, include_predictions=True)
    rows = zip(again.task, again.worker, again.label, strict=True)
    found = {task: label for task, worker, label in rows if worker == "model:rarevote"}
    assert found == {task: label for task, (label, _) in results.items()}
    if name == "argilla_disk":
        suggestion = written[0]["suggestions"][question]
        assert suggestion.keys() == {"value", "score", "agent"}
        assert type(suggestion["value"]) is (int if question == "severity" else str)


def test_argilla_version_1_and_server_forms(tmp_path: Path) -> None:
    export = read_export(FIXTURES / "argilla_v1.jsonl", question="topics", multilabel=True)
    sent_back(export, tmp_path / "back.jsonl")
    first = json.loads((tmp_path / "back.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert first["topics-suggestion"] == ["a", "b"]
    assert first["topics-suggestion-metadata"] == {"type": "model", "score": 1.0, "agent": "rarevote"}
    assert first["topics"] == first["toxicity"] == []
    record = {
        "id": "x",
        "fields": {"text": "a"},
        "responses": [{"user_id": "u", "status": "submitted", "values": {"q": {"value": "yes"}}}],
        "suggestions": [{"question_name": "other", "value": 1}, {"question_name": "q", "value": "no", "agent": "m"}],
    }
    (tmp_path / "server.json").write_text(json.dumps([record]))
    sent_back(read_export(tmp_path / "server.json", question="q"), tmp_path / "back.json")
    (back,) = load(tmp_path / "back.json")
    assert back["responses"] == []
    assert back["suggestions"] == [
        {"question_name": "other", "value": 1},
        {"question_name": "q", "type": "model", "value": "yes", "score": 1.0, "agent": "rarevote"},
    ]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="back to label-studio, argilla, prodigy and doccano, not to toloka"):
        check_way_back("toloka", tmp_path / "x.json")
    with pytest.raises(InputError, match="labels are written back as JSON"):
        check_way_back("argilla", tmp_path / "x.csv")
    copy = tmp_path / "export.json"
    shutil.copy(FIXTURES / "label_studio.json", copy)
    export = read_export(copy, question="damage")
    with pytest.raises(ParameterError, match="is the export itself"):
        write_back(export, ["101"], ["crack"], [1.0], copy)
    out = tmp_path / "back.json"
    out.write_text("old")
    copy.write_text(copy.read_text(encoding="utf-8")[:-200], encoding="utf-8")
    with pytest.raises(InputError, match="ends too early"):
        write_back(export, ["101"], ["crack"], [1.0], out)
    assert out.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"export.json", "back.json"}
    with pytest.raises(InputError, match="cannot be written"):
        write_back(export, ["101"], ["crack"], [1.0], tmp_path / "nowhere" / "x.json")


# -- Prodigy and doccano: answers, not predictions -------------------------------------------------------------------


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_prodigy_round_trip(tmp_path: Path) -> None:
    export = read_export(FIXTURES / "prodigy.jsonl")
    results = aggregated(export)
    labels, scores = zip(*results.values(), strict=True)
    back = tmp_path / "back.jsonl"
    assert write_back(export, results, labels, scores, back) == 2
    original = {line["_input_hash"]: line for line in reversed(lines_of(FIXTURES / "prodigy.jsonl"))}
    for line in lines_of(back):
        before = original[line["_input_hash"]]
        # What was shown, and the hashes by which Prodigy knows an item, are its own; who answered when is not.
        for key in ("text", "options", "_input_hash", "_task_hash"):
            assert line.get(key) == before.get(key)
        assert "_timestamp" not in line
        assert line["answer"] == "accept"
        label, score = results[str(line["_input_hash"])]
        assert line["accept"] == [label]
        assert line["meta"]["score"] == pytest.approx(score, abs=1e-6)
        assert line["_annotator_id"] == line["_session_id"] == "rarevote"
    again = read_export(back)
    assert dict(zip(again.task, again.label, strict=True)) == {task: label for task, (label, _) in results.items()}
    assert set(again.worker) == {"rarevote"}


def test_prodigy_round_trip_of_yes_and_no(tmp_path: Path) -> None:
    back = tmp_path / "back.jsonl"
    one = read_export(FIXTURES / "prodigy_binary.jsonl", question="SPORT")
    assert write_back(one, ["1"], ["reject"], [0.75], back) == 1
    (line,) = lines_of(back)
    assert (line["label"], line["answer"], line["_input_hash"]) == ("SPORT", "reject", 1)
    every = read_export(FIXTURES / "prodigy_binary.jsonl", multilabel=True)
    results = aggregated(every)
    labels, scores = zip(*results.values(), strict=True)
    write_back(every, results, labels, scores, back)
    again = read_export(back, multilabel=True)
    assert dict(zip(again.task, again.label, strict=True)) == {task: label for task, (label, _) in results.items()}


def test_prodigy_items_without_an_answer_are_left_away(tmp_path: Path) -> None:
    # db-in takes a line without an answer as accepted.
    export = read_export(FIXTURES / "prodigy.jsonl")
    write_back(export, ["22"], ["neg"], [None], tmp_path / "back.jsonl")
    (line,) = lines_of(tmp_path / "back.jsonl")
    assert (line["_input_hash"], line["accept"]) == (22, ["neg"])
    assert "score" not in line.get("meta", {})


@pytest.mark.parametrize("name", ["doccano", "doccano_old.jsonl", "doccano_slots"])
def test_doccano_round_trip(tmp_path: Path, name: str) -> None:
    multilabel = name == "doccano_slots"
    export = read_export(FIXTURES / name, multilabel=multilabel, question="cats" if multilabel else None)
    back = tmp_path / "back.jsonl"
    results = sent_back(export, back)
    written = lines_of(back)
    assert len({line["id"] for line in written}) == len(written)
    for line in written:
        assert isinstance(line.get("text", line.get("data")), str)
        assert isinstance(line[export.question], list)
        assert not {"Comments", "annotations", "annotation_approver", "user"} & line.keys()
    again = read_export(back, platform="doccano", multilabel=multilabel, question=export.question)
    told = dict(zip(again.task, again.label, strict=True))
    assert told == {task: label for task, (label, _) in results.items() if task in told}
    assert {task for task, (label, _) in results.items() if label != "no"} <= told.keys()


def test_doccano_keeps_the_data_of_a_document(tmp_path: Path) -> None:
    source, back = tmp_path / "ana.jsonl", tmp_path / "back.jsonl"
    data = {"id": 1, "text": "A", "category": "news", "score": 5, "labelled_by": "the crew"}
    source.write_text(json.dumps({**data, "label": ["pos"], "cats": ["x"], "Comments": []}))
    write_back(read_export(source, question="label"), ["1"], ["neg"], [0.75], back)
    (line,) = lines_of(back)
    assert line == {**data, "label": ["neg"], "score_": 0.75, "labelled_by_": "rarevote"}


def test_argilla_keeps_the_suggestion_of_another_model_where_there_is_no_label(tmp_path: Path) -> None:
    answers = {"q.responses": ["no"], "q.responses.users": ["u"], "q.responses.status": ["submitted"]}
    given = {"q.suggestion": "no", "q.suggestion.score": 0.5, "q.suggestion.agent": "llm"}
    records = [
        {"id": "r1", "text": "t", **answers, **given},
        {"id": "r2", "text": "t", **dict.fromkeys(answers), **given},
        {"id": "r3", "text": "t", **dict.fromkeys(answers)},
    ]
    (tmp_path / "x.json").write_text(json.dumps(records))
    write_back(read_export(tmp_path / "x.json"), ["r1"], ["yes"], [0.75], tmp_path / "back.json")
    back = [{key: one[key] for key in given} for one in load(tmp_path / "back.json")]
    ours = {"q.suggestion": "yes", "q.suggestion.score": 0.75, "q.suggestion.agent": "rarevote"}
    assert back == [ours, given, dict.fromkeys(given)]


@pytest.mark.parametrize("platform", [name for name, one in PLATFORMS.items() if one.takes_labels])
def test_the_command_line_makes_the_round_trip(tmp_path: Path, platform: str) -> None:
    name, question = MAIN[platform]
    back, out = tmp_path / "back.jsonl", tmp_path / "result.csv"
    chosen = ("--question", question, "--back-out", back, "--out", out)
    rarevote("aggregate", FIXTURES / name, "-m", "majority-vote", *chosen)
    models = PLATFORMS[platform].has_predictions
    again = read_export(back, platform=platform, question=question, include_predictions=models)
    told = {
        task: label
        for task, worker, label in zip(again.task, again.worker, again.label, strict=True)
        if not models or worker == "model:rarevote"
    }
    result = rows(out.read_text(encoding="utf-8"))
    assert told == {row["task"]: row["label"] for row in result if int(row["votes"])}
    assert all(not row["label"] for row in result if not int(row["votes"]))


def test_four_platforms_take_labels() -> None:
    able = {name for name, one in PLATFORMS.items() if one.takes_labels}
    assert able == {"label-studio", "argilla", "prodigy", "doccano"}
    shown = " ".join(rarevote("aggregate", "--help").stdout.replace("│", " ").split())
    assert "Label Studio, Argilla, Prodigy and doccano" in shown


# -- several choices of an item --------------------------------------------------------------------------------------


def prodigy_answers(path: Path, *given: tuple[int, str, str, str]) -> Path:
    """Yes/no lines: item, label, annotator, answer."""
    lines = [
        {"text": "t", "label": label, "answer": answer, "_input_hash": item, "_task_hash": 1, "_annotator_id": who}
        for item, label, who, answer in given
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_yes_or_no_without_a_label_has_no_line_and_each_line_its_own_score(tmp_path: Path) -> None:
    given = [(1, "POS", who, "accept") for who in "abcd"] + [(1, "FOOD", who, "ignore") for who in "ab"]
    given += [(2, "POS", who, "reject" if who < "d" else "accept") for who in "abcd"]
    given += [(2, "FOOD", "a", "accept"), (2, "FOOD", "b", "reject")]
    source, out, back = prodigy_answers(tmp_path / "x.jsonl", *given), tmp_path / "o.csv", tmp_path / "b.jsonl"
    options = ("--multilabel", "-m", "majority-vote", "--abstain-below", "0.6", "--out", out, "--back-out", back)
    rarevote("aggregate", source, *options)
    # The result file is the oracle: a line for each of its labels, with the confidence of that row.
    answers = {"yes": "accept", "no": "reject"}
    expected = {row["task"]: (answers[row["label"]], float(row["confidence"]))
                for row in rows(out.read_text()) if row["label"]}  # fmt: skip
    written = lines_of(back)
    found = {f"{line['_input_hash']}:{line['label']}": (line["answer"], line["meta"]["score"]) for line in written}
    assert found.keys() == {"1:POS", "2:POS"}
    assert {task: answer for task, (answer, _) in found.items()} == {"1:POS": "accept", "2:POS": "reject"}
    for task, (answer, score) in expected.items():
        assert found[task] == (answer, pytest.approx(score, abs=1e-6))
    # The name of our answers is the same for every method, by which pull leaves them out.
    assert {line["_annotator_id"] for line in written} == {"rarevote"}


PARTIAL = {"1:x": "yes", "2:x": "no", "2:y": "yes"}


def _label_studio(path: Path) -> tuple[Path, str]:
    def ticked(who: int, *names: str) -> dict[str, Any]:
        entry = {"id": "a", "from_name": "d", "to_name": "t", "type": "choices", "value": {"choices": list(names)}}
        return {"completed_by": who, "result": [entry]}

    tasks: list[dict[str, Any]] = [
        {"id": n, "data": {}, "annotations": [ticked(1, "x"), ticked(2, "y")]} for n in (1, 2)
    ]
    (path / "x.json").write_text(json.dumps(tasks))
    return path / "x.json", "d"


def _prodigy(path: Path) -> tuple[Path, str]:
    options = [{"id": "x"}, {"id": "y"}]
    lines = [
        {"options": options, "accept": [name], "answer": "accept", "_input_hash": n, "_task_hash": n,
         "_annotator_id": name}
        for n in (1, 2) for name in "xy"
    ]  # fmt: skip
    (path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path / "x.jsonl", "accept"


def _doccano(path: Path) -> tuple[Path, str]:
    (path / "members").mkdir()
    for name in "xy":
        lines = [{"id": n, "text": "t", "label": [name], "Comments": []} for n in (1, 2)]
        (path / "members" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path / "members", "label"


def _argilla(path: Path) -> tuple[Path, str]:
    answers = {"q.responses": [["x"], ["y"]], "q.responses.users": ["a", "b"], "q.responses.status": ["submitted"] * 2}
    (path / "x.json").write_text(json.dumps([{"id": str(n), "text": "t", **answers} for n in (1, 2)]))
    return path / "x.json", "q"


@pytest.mark.parametrize(
    ("made", "chosen"),
    [
        (_label_studio, lambda one: [e["value"]["choices"] for p in one["predictions"] for e in p["result"]]),
        (_prodigy, lambda one: [one["accept"]]),
        (_doccano, lambda one: [one["label"]] if "labelled_by" in one else []),
        (_argilla, lambda one: [one["q.suggestion"]] if one["q.suggestion.agent"] else []),
    ],
)
def test_an_item_of_which_a_choice_has_no_label_is_left_out(tmp_path: Path, made: Any, chosen: Any) -> None:
    source, question = made(tmp_path)
    export = read_export(source, question=question, multilabel=True)
    back = tmp_path / "back.jsonl"
    with pytest.warns(RarevoteWarning, match="1 item has no label for some choices, so no label is written for it"):
        assert write_back(export, PARTIAL, PARTIAL.values(), [0.8] * 3, back) == 1
    found = {str(one.get("id", one.get("_input_hash"))): chosen(one) for one in lines_of(back)}
    assert {item: labels for item, labels in found.items() if labels} == {"2": [["y"]]}
