"""What each platform's fixture becomes: the exact rows, the gold, and what was left out and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms import PLATFORMS, export_annotations, read_export
from tests.io.platforms.exports import FIXTURES, MAIN, zipped

ANNA, EVA = "0d5b3f7e-0000-4000-8000-000000000001", "eva@example.org"


def rows(name: str | Path, **options: Any) -> list[tuple[str, ...]]:
    return list(zip(*read_export(FIXTURES / name, **options).columns().values(), strict=True))


# -- Label Studio ----------------------------------------------------------------------------------------------------


def test_label_studio() -> None:
    export = read_export(FIXTURES / "label_studio.json", question="damage", show=["caption", "image"])
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("101", "3", "crack", "左翼", "s3://bilder/flügel-101.jpg"),
        ("101", "zoë@example.org", "sound", "左翼", "s3://bilder/flügel-101.jpg"),
        ("101", "ida@example.org", "crack", "左翼", "s3://bilder/flügel-101.jpg"),
        # A bare 5 is Ida, who has an e-mail elsewhere in the file.
        ("102", "ida@example.org", "sound", "右翼", "s3://bilder/flügel-102.jpg"),
        ("102", "zoë@example.org", "sound", "右翼", "s3://bilder/flügel-102.jpg"),
        ("102", "zoë@example.org", "crack", "右翼", "s3://bilder/flügel-102.jpg"),
        ("103", "3", "crack", "尾", "s3://bilder/flügel-103.jpg"),
    ]
    # Ida's ground truth on 103 is gold and not also a vote: that would leak.
    assert export.gold == {"103": "crack"}
    assert export.left_out == {
        "prediction of a model, not requested": 2,
        "draft": 1,
        "cancelled": 1,
        "ground truth: used as gold, not as a vote": 1,
        "no answer": 1,
    }
    assert (export.n_records, export.n_repeated, export.questions) == (4, 1, ("damage", "kind"))


def test_label_studio_taxonomy_and_ratings() -> None:
    assert rows("label_studio.json", question="kind") == [
        ("101", "3", "Metall / Stahl"),
        ("101", "zoë@example.org", "Metall / Stahl"),
        ("103", "3", "Kunststoff"),
    ]
    assert rows("label_studio_regions.json", question="stars") == [("1", "3", "4")]


def test_label_studio_several_choices() -> None:
    export = read_export(FIXTURES / "label_studio_multi.json", multilabel=True)
    assert [(task, worker) for task, worker, label in zip(export.task, export.worker, export.label, strict=True)
            if label == "yes"] == [
        ("1:health", "3"), ("1:money", "3"), ("1:money", "zoë@example.org"), ("2:sport", "3"),
    ]  # fmt: skip
    # Ida ticked nothing on 1: three times no.
    assert export.label.count("no") == 8
    assert export.worker.count("ida@example.org") == 3
    assert export.gold == {"2:health": "yes", "2:money": "no", "2:sport": "no"}
    assert (export.shown["item"][0], export.shown["choice"][0], export.task[0]) == ("1", "health", "1:health")
    with pytest.raises(InputError, match=r"record 1 \(task 1\): several choices .*'health', 'money'.*multilabel=True"):
        read_export(FIXTURES / "label_studio_multi.json")


def test_label_studio_without_a_choice_lists_the_controls() -> None:
    with pytest.raises(InputError, match=r"no choice control .*'box' \(rectanglelabels\), 'severity' \(choices of reg"):
        read_export(FIXTURES / "label_studio_regions.json")
    with pytest.raises(InputError, match="'severity' is asked about regions"):
        read_export(FIXTURES / "label_studio_regions.json", question="severity")


def _task(tmp_path: Path, *annotations: dict[str, Any], **more: Any) -> Path:
    path = tmp_path / "export.json"
    path.write_text(json.dumps([{"id": 1, "data": {"text": "x"}, "annotations": list(annotations), **more}]))
    return path


def _choice(label: Any, name: str = "q") -> dict[str, Any]:
    return {"from_name": name, "to_name": "text", "type": "choices", "value": {"choices": label}}


def test_label_studio_rejected_reviews_and_old_exports(tmp_path: Path) -> None:
    voted = {"completed_by": 1, "result": [_choice(["a"])]}
    rejected = {**voted, "completed_by": 2, "reviews": [{"accepted": True}, {"accepted": False}]}
    also = {**voted, "completed_by": 3, "last_action": "rejected"}
    export = read_export(_task(tmp_path, voted, rejected, also))
    assert export.worker == ["1"]
    assert export.left_out == {"rejected": 2}
    old = [
        {"id": 0, "data": {}, "completions": [{"created_username": "bo", "result": [_choice("a")], "honeypot": False}]}
    ]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old))
    assert read_export(path).columns() == {"task": ["0"], "worker": ["bo"], "label": ["a"]}


def test_label_studio_gold_that_contradicts_itself_is_no_gold(tmp_path: Path) -> None:
    known = [{"completed_by": who, "ground_truth": True, "result": [_choice([who])]} for who in ("a", "b")]
    path = _task(tmp_path, *known, {"completed_by": 3, "result": [_choice(["a"])]})
    export = read_export(path, ground_truth="gold")
    assert export.gold == {}
    assert "more than one gold answer" in export.notes[0]
    # Two of them on one task are what two people said, unless somebody says otherwise.
    assert read_export(path).worker == ["a", "b", "3"]


# -- Argilla ---------------------------------------------------------------------------------------------------------

ARGILLA_ROWS = [
    ("r1", ANNA, "toxic", "Füße hoch!", "förum"),
    ("r1", EVA, "fine", "Füße hoch!", "förum"),
    ("r2", ANNA, "fine", "普通の文", "chat"),
    ("r2", EVA, "fine", "普通の文", "chat"),
    ("r2", EVA, "toxic", "普通の文", "chat"),
]


@pytest.mark.parametrize("name", ["argilla_flat.json", "argilla_disk", "argilla_disk/records.json"])
def test_argilla(name: str) -> None:
    assert rows(name, question="toxicity", show=["text", "source"]) == ARGILLA_ROWS
    assert rows(name, question="severity") == [("r1", ANNA, "4"), ("r2", EVA, "1")]


def test_argilla_counts_what_is_no_vote_and_takes_suggestions() -> None:
    export = read_export(FIXTURES / "argilla_flat.json", question="toxicity.responses", include_predictions=True)
    assert export.left_out == {"discarded": 1, "draft": 1}
    voted = zip(export.task, export.worker, export.label, strict=True)
    assert [row for row in voted if row[1].startswith("model:")] == [
        ("r1", "model:gpt-x", "toxic"),
        ("r2", "model:gpt-x", "fine"),
    ]


def test_argilla_settings_tell_choices_from_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 questions were asked: 'toxicity', 'severity'"):
        read_export(FIXTURES / "argilla_disk")
    shutil.copy(FIXTURES / "argilla_disk" / "records.json", tmp_path)
    with pytest.raises(InputError, match="3 questions were asked: 'toxicity', 'severity', 'why'"):
        read_export(tmp_path / "records.json")


def test_argilla_version_1() -> None:
    assert rows("argilla_v1.jsonl", question="toxicity", show=["source"]) == [("1", ANNA, "toxic", "förum")]
    export = read_export(FIXTURES / "argilla_v1.jsonl", question="topics", multilabel=True)
    assert list(zip(export.task, export.worker, export.label, strict=True)) == [
        ("1:a", ANNA, "yes"), ("1:b", ANNA, "yes"), ("2:a", EVA, "no"), ("2:b", EVA, "yes"),
    ]  # fmt: skip
    assert export.left_out["no annotator named"] == 1


def test_argilla_in_other_containers(tmp_path: Path) -> None:
    records = json.loads((FIXTURES / "argilla_flat.json").read_text(encoding="utf-8"))
    columns = {key: [record[key] for record in records] for key in records[0]}
    by_id = {record["id"]: record for record in records}
    server = [
        {
            "id": record["id"],
            "fields": {"text": record["text"]},
            "metadata": {"source": record["source"]},
            "responses": [
                {"user_id": user, "status": status, "values": {"toxicity": {"value": value}}}
                for user, value, status in zip(
                    *(record[f"toxicity.responses{end}"] or () for end in (".users", "", ".status")), strict=True
                )
            ],
            "suggestions": [],
        }
        for record in records
    ]
    for name, content in (("columns", columns), ("by_id", by_id), ("server", server)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        assert rows(path, question="toxicity", show=["text", "source"]) == ARGILLA_ROWS
    parquet = tmp_path / "train.parquet"
    source = tmp_path / "flat.json"
    source.write_text(json.dumps(records))
    duckdb.sql(f"COPY (SELECT * FROM read_json('{source}')) TO '{parquet}' (FORMAT parquet)")
    assert rows(parquet, question="toxicity", show=["text", "source"]) == ARGILLA_ROWS


def test_argilla_ranking_is_no_choice(tmp_path: Path) -> None:
    record = {"id": 1, "fields": {}, "responses": {"order": [{"value": [{"rank": 1, "value": "a"}], "user_id": "u"}]}}
    path = tmp_path / "r.json"
    path.write_text(json.dumps([record]))
    with pytest.raises(InputError, match="no question has choices as answers; found: 'order'"):
        read_export(path)
    with pytest.raises(InputError, match="'order' is a ranking or span question"):
        read_export(path, question="order")


# -- Prodigy ---------------------------------------------------------------------------------------------------------


def test_prodigy() -> None:
    export = read_export(FIXTURES / "prodigy.jsonl", show=["text", "source"])
    assert list(zip(*export.columns().values(), strict=True)) == [
        # Lines with different task hashes are the same item.
        ("-11", "news-anna@example.org", "pos", "Schön!", "Zeitung"),
        ("-11", "news-12", "neg", "Schön!", "Zeitung"),
        ("-11", "news-bob", "pos", "Schön!", "Zeitung"),
        ("22", "news-12", "neg", "悪い", "Zeitung"),
        ("22", "news-12", "pos", "悪い", "Zeitung"),
    ]
    assert export.left_out == {"rejected": 1, "ignored": 1, "no answer": 1, "no annotator named": 1}
    assert "?session=" in export.cautions[0]
    assert rows("prodigy.jsonl", question="user_input") == [
        ("-11", "news-anna@example.org", "sehr gut"),
        ("-11", "news-12", "schlecht"),
    ]


def test_prodigy_yes_or_no() -> None:
    with pytest.raises(InputError, match="2 questions were asked: 'SPORT', 'MONEY'"):
        read_export(FIXTURES / "prodigy_binary.jsonl")
    assert rows("prodigy_binary.jsonl", question="SPORT") == [
        ("1", "a", "accept"), ("1", "b", "reject"), ("2", "b", "accept"),
    ]  # fmt: skip
    export = read_export(FIXTURES / "prodigy_binary.jsonl", multilabel=True)
    assert list(zip(export.task, export.worker, export.label, strict=True)) == [
        ("1:SPORT", "a", "yes"), ("1:SPORT", "b", "no"), ("1:MONEY", "a", "no"),
        ("2:SPORT", "b", "yes"), ("2:MONEY", "b", "yes"),
    ]  # fmt: skip


def test_prodigy_without_annotators_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({"_input_hash": 1, "_task_hash": 2, "answer": "accept", "_session_id": None}))
    with pytest.raises(InputError, match=r"the only answer has no annotator, .*\?session=NAME"):
        read_export(path)


def test_prodigy_decisions_of_a_review_are_no_votes(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    line = {"_input_hash": 1, "_task_hash": 2, "answer": "accept", "accept": ["a"], "_annotator_id": "boss"}
    path.write_text(json.dumps({**line, "versions": [{"accept": ["b"], "sessions": ["ana"]}], "_view_id": "review"}))
    with pytest.raises(InputError, match=r"no answers to 'accept' are left \(1 decision of a review"):
        read_export(path)


def test_prodigy_sessions_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    line = {"_input_hash": 1, "_task_hash": 2, "answer": "accept", "label": "X"}
    names = ["2026-01-02_10-11-12", "news-2026-01-03_10-11-12", "news-2026"]
    path.write_text("\n".join(json.dumps({**line, "_annotator_id": name}) for name in names))
    export = read_export(path)
    assert export.worker == names
    assert export.cautions[0].startswith("2 annotators are named after the start time of the server")


def test_spans_are_refused() -> None:
    with pytest.raises(InputError, match="1 line marks spans, which cannot be aggregated"):
        read_export(FIXTURES / "prodigy_spans.jsonl")
    with pytest.raises(InputError, match="votes on spans cannot be aggregated"):
        read_export(FIXTURES / "doccano_spans.jsonl")
    with pytest.raises(InputError, match="'entities' marks passages"):
        read_export(FIXTURES / "doccano_slots", question="entities")


# -- doccano ---------------------------------------------------------------------------------------------------------

DOCCANO_ROWS = [
    ("1", "7", "neg", "Größe egal"),
    ("2", "7", "neg", "很好"),
    ("2", "7", "pos", "很好"),
    ("1", "ana@example.org", "neg", "Größe egal"),
    ("2", "ana@example.org", "pos", "很好"),
]


def test_doccano(tmp_path: Path) -> None:
    archive = zipped(
        FIXTURES / "doccano",
        tmp_path / "export.zip",
        [("__MACOSX/._7.jsonl", b"\0\1"), ("unknown.jsonl", b'{"id": 9, "text": "?", "label": []}')],
    )
    for path in (FIXTURES / "doccano", archive):
        assert rows(path, show=["text"]) == DOCCANO_ROWS
    assert read_export(archive).left_out == {"no answer": 3}
    # The text of an item is called data in some versions.
    for file in (FIXTURES / "doccano").iterdir():
        (tmp_path / file.name).write_text(
            file.read_text(encoding="utf-8").replace('"text"', '"data"'), encoding="utf-8"
        )
    archive.unlink()
    assert rows(tmp_path, show=["text"]) == DOCCANO_ROWS


def test_doccano_before_version_1() -> None:
    assert rows("doccano_old.jsonl", show=["src"]) == [("1", "1", "2", "a"), ("1", "2", "3", "a"), ("3", "2", "2", "")]
    export = read_export(FIXTURES / "doccano_old.jsonl")
    assert (export.left_out, export.unanswered) == ({}, ["2"])


def test_doccano_several_labels() -> None:
    export = read_export(FIXTURES / "doccano_slots", multilabel=True)
    assert [task for task, label in zip(export.task, export.label, strict=True) if label == "yes"] == [
        "1:travel", "2:greet", "1:order", "1:travel",
    ]  # fmt: skip
    assert export.left_out == {"no answer": 1}  # an empty list is a document that Bea has not labelled
    with pytest.raises(InputError, match=r"bea\.jsonl: record 1 \(id 1\): several choices"):
        read_export(FIXTURES / "doccano_slots")


def test_doccano_of_a_shared_project_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    shutil.copy(FIXTURES / "doccano" / "7.jsonl", path)
    with pytest.raises(InputError, match="does not say who chose 'neg'"):
        read_export(path)


# -- MTurk -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["sentiment", "Answer.sentiment"])
def test_mturk(question: str) -> None:
    export = read_export(FIXTURES / "mturk.csv", question=question, show=["text"], gold_column="gold")
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("H1", "AW1", "good", "Das Café\nist schön"),
        ("H1", "b@example.org", "bad", "Das Café\nist schön"),
        ("H2", "AW1", "bad", "料理"),
        ("H2", "AW1", "good", "料理"),
    ]
    assert export.gold == {"H1": "good"}
    assert export.left_out == {"rejected": 2, "no answer": 1}
    assert export.questions == ("sentiment", "about")  # nobody wrote a comment


def test_mturk_ticks() -> None:
    assert rows("mturk.csv", question="about") == [
        ("H1", "AW1", "the place"), ("H1", "b@example.org", "the food"), ("H2", "AW1", "the food"),
        ("H2", "AW4", "the food"),
    ]  # fmt: skip
    export = read_export(FIXTURES / "mturk.csv", question="about", multilabel=True)
    assert export.choices == ("the food", "the place")
    assert export.label == ["no", "yes", "yes", "no", "no", "no", "yes", "no", "yes", "no"]


def test_mturk_several_items_in_a_hit() -> None:
    export = read_export(FIXTURES / "mturk_items.csv", show=["x"], gold_column="known")
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("H1:1", "W1", "a", "été"), ("H1:2", "W1", "b", "hiver"), ("H1:1", "W2", "b", "été"),
        ("H1:2", "W2", "b", "hiver"), ("H2:1", "W2", "a", "1"),
    ]  # fmt: skip
    assert export.gold == {"H1:1": "a"}
    assert export.left_out == {"rejected": 2, "no answer": 1}
    assert rows("mturk_items.csv", question="Answer.x_2") == [("H1", "W1", "b"), ("H1", "W2", "b")]


def test_mturk_task_answers() -> None:
    assert rows("mturk_json.csv", question="outside") == [("H1", "W1", "yes"), ("H1", "W2", "no")]
    assert rows("mturk_json.csv", question="Answer.category") == [("H1", "W1", "Café"), ("H1", "W2", "Bar")]


def test_mturk_bars_are_several_and_a_lost_hit_is_its_input(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text("WorkerId,Input.url,Answer.tags\nw,u1,a|b\nv,u1,a\n")
    with pytest.raises(InputError, match=r"line 2: several choices in one answer \('a', 'b'\)"):
        read_export(path)
    assert read_export(path, multilabel=True).task == ["u1:a", "u1:b", "u1:a", "u1:b"]


def test_mturk_items_that_were_published_twice_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    path.write_text("HITId,WorkerId,Input.url,Answer.q\nh1,v,u,a\nh2,w,u,b\nh3,w,x,b\n")
    export = read_export(path)
    assert export.task == ["h1", "h2", "h3"]
    assert export.notes == ("1 HITs have the inputs of another HIT; each is a separate task here",)


def test_mturk_names_of_the_command_line_tools(tmp_path: Path) -> None:
    path = tmp_path / "batch.results"
    path.write_text(
        '"hitid"\t"workerid"\t"assignmentstatus"\t"reject"\t"Answer.q"\n'
        '"h"\t"v"\t"Approved"\t""\t"a"\n"h"\t"w"\t"Rejected"\t""\t"b"\n"h"\t"x"\t"Submitted"\t"bad"\t"b"\n'
    )
    export = read_export(path)
    assert (export.worker, export.left_out) == (["v"], {"rejected": 2})


# -- Toloka ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["result", "OUTPUT:result"])
def test_toloka(question: str) -> None:
    export = read_export(FIXTURES / "toloka.tsv", question=question, show=["image", "INPUT:text"])
    text = "строка\nдва"
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("t1", "w-77", "cat", "a.jpg", text),
        ("t2", "w-77", "dog", "a.jpg", text),  # another task with the same input
        ("t1", "кот@example.org", "dog", "a.jpg", text),
        ("t3", "w-77", "cat", "c.jpg", '"quoted"'),
        ("t2", "w-77", "dog", "a.jpg", text),
    ]
    assert export.gold == {"t3": "cat"}
    assert export.left_out == {"expired": 1, "rejected": 1, "skipped": 1}


def test_toloka_lists_and_ticks() -> None:
    export = read_export(FIXTURES / "toloka.tsv", question="tags", multilabel=True)
    assert export.choices == ("furry", "small")
    assert export.label == ["yes", "yes", "yes", "no", "no", "no", "yes", "no", "yes", "no"]


def test_toloka_without_task_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text(
        "INPUT:a\tINPUT:b\tOUTPUT:x\tOUTPUT:unused\tASSIGNMENT:worker_id\n1\t2\tyes\t\tw\n\n1\t3\tno\t\tw\n"
    )
    assert rows(path) == [("1 | 2", "w", "yes"), ("1 | 3", "w", "no")]


# -- Appen -----------------------------------------------------------------------------------------------------------


def test_appen() -> None:
    export = read_export(FIXTURES / "appen.csv", question="relevant", show=["text"], prediction_columns=["llm"])
    assert list(zip(*export.columns().values(), strict=True)) == [
        ("900", "model:llm", "Yes", "Schöner Text"),
        ("900", "31", "Yes", "Schöner Text"),
        ("900", "w@example.org", "None", "Schöner Text"),  # None is an answer
        ("901", "model:llm", "No", "文"),
        ("901", "32", "None", "文"),
        ("901", "32", "Yes", "文"),
    ]
    assert export.gold == {"900": "Yes"}
    assert export.left_out == {"tainted": 1, "no answer": 1}


def test_appen_finds_questions_by_gold_or_by_difference(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 questions were asked: 'relevant', 'topics'"):
        read_export(FIXTURES / "appen.csv")
    path = tmp_path / "full.csv"
    path.write_text("_unit_id,_worker_id,verdict,url\n1,a,yes,u\n1,b,no,u\n2,a,no,v\n")
    assert rows(path, gold_column="url") == [("1", "a", "yes"), ("1", "b", "no"), ("2", "a", "no")]
    path.write_text("_unit_id,_worker_id,verdict,url\n1,a,yes,u\n")
    with pytest.raises(InputError, match="cannot find the column of answers"):
        read_export(path)
    assert rows(path, question="verdict") == [("1", "a", "yes")]


def test_appen_lines_and_lists_are_several_choices() -> None:
    export = read_export(FIXTURES / "appen.csv", question="topics", multilabel=True)
    assert export.label == ["yes", "yes", "no", "yes", "yes", "no", "yes", "no"]


# -- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS)
def test_named_or_detected_gives_the_same(platform: str) -> None:
    name, question = MAIN[platform]
    detected = read_export(FIXTURES / name, question=question)
    named = read_export(FIXTURES / name, question=question, platform=platform)
    assert detected == named
    assert detected.platform == platform
    assert detected.n_repeated > 0 or platform in ("inspect-ai", "asreview")  # which keep one answer
    crowd, gold, shown = export_annotations(detected, keep="last")
    assert crowd.n_annotations == len(detected) - detected.n_repeated
    assert gold == detected.gold
    assert shown == {}
    assert set(crowd.tasks.tolist()) == set(detected.task)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_unknown_question_lists_those_there_are(platform: str) -> None:
    name, question = MAIN[platform]
    with pytest.raises(InputError, match=f"no question 'nonsense'; it has .*'{question}'"):
        read_export(FIXTURES / name, question="nonsense")


@pytest.mark.parametrize("platform", PLATFORMS)
def test_an_unknown_column_lists_those_there_are(platform: str) -> None:
    name, question = MAIN[platform]
    for option in ({"show": ["nonsense"]}, {"gold_column": "nonsense"}, {"prediction_columns": ["nonsense"]}):
        with pytest.raises(ParameterError, match="no column is called 'nonsense'; the columns are "):
            read_export(FIXTURES / name, question=question, **option)


def test_models_as_workers_are_marked() -> None:
    export = read_export(FIXTURES / "label_studio.json", question="damage", include_predictions=True)
    models = [row for row in zip(export.task, export.worker, export.label, strict=True) if "model:" in row[1]]
    assert models == [("101", "model:yolo-3", "crack"), ("102", "model:yolo-3", "sound")]
    with pytest.raises(ParameterError, match="has no predictions of models"):
        read_export(FIXTURES / "toloka.tsv", question="result", include_predictions=True)


def test_predictions_that_are_not_there_are_noted(tmp_path: Path) -> None:
    export = read_export(_task(tmp_path, {"completed_by": 1, "result": [_choice(["a"])]}), include_predictions=True)
    assert export.notes == ("no predictions of models were found",)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["prodigy.jsonl", "toloka.tsv", "label_studio.json"])
def test_files_that_windows_shell_wrote(tmp_path: Path, name: str, encoding: str) -> None:
    text = (FIXTURES / name).read_text(encoding="utf-8")
    path = tmp_path / name
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode(encoding))
    question = {"toloka.tsv": "result", "label_studio.json": "damage"}.get(name)
    again = read_export(path, question=question)
    first = read_export(FIXTURES / name, question=question)
    assert (again.task, again.worker, again.label) == (first.task, first.worker, first.label)


def test_shown_columns_by_task() -> None:
    export = read_export(FIXTURES / "mturk.csv", question="sentiment", show=["text", "WorkerId"])
    crowd, _, shown = export_annotations(export)
    assert shown["text"] == {"H1": "Das Café\nist schön", "H2": "料理"}
    assert np.array_equal(crowd.classes, ["bad", "good"])


def test_rows_of_mturk_end_before_the_columns_for_the_requester() -> None:
    # Every batch file has a header that ends in Approve, Reject, and rows without these cells until somebody fills
    # them in.
    export = read_export(FIXTURES / "mturk_short_rows.csv", show=["image"])
    rows = list(zip(export.task, export.worker, export.label, export.shown["image"], strict=True))
    assert rows == [("3K1", "AQ1", "crack", "wing-1.jpg"), ("3K1", "AQ2", "sound", "wing-1.jpg")]
    assert export.left_out == {"rejected": 2, "no answer": 1}


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("h,w,good,,,more", 6),  # more than the header has
        ("h,w", 2),  # it ends before the answer: the file was cut off
    ],
)
def test_only_cells_after_those_that_count_may_be_left_away(tmp_path: Path, row: str, cells: int) -> None:
    path = tmp_path / "batch.csv"
    path.write_text(f"HITId,WorkerId,Answer.q,Approve,Reject\nh,v,good\n{row}\n")
    with pytest.raises(InputError, match=f"line 3 has {cells} cells, the header has 5"):
        read_export(path)
    path.write_text("HITId,WorkerId,Answer.q,Approve,Reject\nh,v,good\nh,w,bad,,\nh,u,bad,,,,\n")
    assert read_export(path).label == ["good", "bad", "bad"]


@pytest.mark.parametrize(
    ("platform", "text", "rows"),
    [
        ("mturk", "HITId,WorkerId,Answer.x,Approve,Reject\nh,w,a\nh,v,b\n", [("h", "w", "a"), ("h", "v", "b")]),
        (
            "toloka",
            "INPUT:a\tOUTPUT:x\tASSIGNMENT:worker_id\tASSIGNMENT:status\tACCEPT:verdict\nu\tx\tw\tAPPROVED\n",
            [("u", "x", "w")],
        ),
        ("appen", "_unit_id,_worker_id,q,q_gold,text,reviewer\n1,w,a\n1,v,b\n", [("1", "w", "a"), ("1", "v", "b")]),
        (
            "label-studio",
            "annotation_id,annotator,id,lead_time,mood,note\n1,3,7,2.0,good\n2,4,7,2.0,bad\n",
            [("7", "3", "good"), ("7", "4", "bad")],
        ),
        (
            "doccano",
            "id,label,text,user,annotation_approver,meta\n1,pos,hello,ana,\n1,neg,hello,bo,\n",
            [("1", "ana", "pos"), ("1", "bo", "neg")],
        ),
    ],
)
def test_short_rows_on_every_platforms_table(
    tmp_path: Path, platform: str, text: str, rows: list[tuple[str, str, str]]
) -> None:
    path = tmp_path / "export.csv"
    path.write_text(text)
    export = read_export(path, platform=platform)
    found = set(zip(export.task, export.worker, export.label, strict=True))
    assert found == ({("u", "w", "x")} if platform == "toloka" else set(rows))
    mark = "\t" if platform == "toloka" else ","
    path.write_text(text + mark.join(["x"] * 12) + "\n")
    with pytest.raises(InputError, match=rf"line {text.count(chr(10)) + 1} has 12 cells, the header has \d"):
        read_export(path, platform=platform)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    "name", ["mturk.csv", "appen.csv", "toloka.tsv", "asreview_people/ana.csv", "label_studio.csv"]
)
def test_a_header_repeated_in_a_table_of_a_platform_is_refused(name: str, mark: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text(encoding="utf-8").removeprefix("\ufeff").rstrip("\n") + "\n"
    path = tmp_path / Path(name).name
    path.write_text(f"{text}{mark}{text}", encoding="utf-8")
    line = text.count("\n") + 1
    with pytest.raises(InputError, match=rf"the header is repeated in line {line}: remove it there"):
        read_export(path, worker_from="file" if "asreview" in name else None)
