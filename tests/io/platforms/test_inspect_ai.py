"""Inspect's logs and their table, written by inspect-ai 0.3.285: three scorers of which each errs by a rule of its own.

The archive holds 12 samples, the JSON log 4 samples in two epochs, the table 24 samples.
"""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rarevote.errors import InputError
from rarevote.io.platforms import detect, read_export
from rarevote.io.platforms.base import Export
from rarevote.io.read.crowd import read
from tests.command import rarevote, rows
from tests.io.platforms.exports import FIXTURES

JUDGES = ("a", "b", "c")


def verdict(judge: str, n: int) -> str:
    """What the scorers were written to say: C for correct, I for incorrect."""
    wrong = {"a": n % 11 == 3, "b": n % 7 == 1, "c": n % 4 == 0}[judge]
    return "C" if (n % 5 == 2) != wrong else "I"


def found(export: Export) -> list[tuple[str, str, str]]:
    return sorted(zip(export.task, export.worker, export.label, strict=True))


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("inspect_ai.eval", {f"q{n:02d}": n for n in range(12)}),
        ("inspect_ai.json", {f"q{n:02d}:{epoch}": n for n in range(4) for epoch in (1, 2)}),
        ("inspect_ai_samples.csv", {f"q{n:02d}": n for n in range(24)}),
    ],
)
def test_scores_of_logs_and_tables(name: str, tasks: dict[str, int]) -> None:
    export = read_export(FIXTURES / name)
    assert found(export) == sorted((task, f"judge_{m}", verdict(m, n)) for task, n in tasks.items() for m in JUDGES)
    assert (export.question, export.n_records, export.n_repeated) == ("value", len(tasks), 0)
    crowd = read(FIXTURES / name)
    assert crowd.models == {"judge_a", "judge_b", "judge_c"}
    assert crowd.annotations.n_annotations == 3 * len(tasks)


def test_target_and_data_come_along() -> None:
    for name in ("inspect_ai.eval", "inspect_ai.json", "inspect_ai_samples.csv"):
        crowd = read(FIXTURES / name, gold_column="target", show=["input"])
        first = crowd.population.tolist()[2]
        assert crowd.gold[first] == ("yes" if first.startswith("q02") else "no")
        assert "Is case" in crowd.shown["input"][0]
    assert read(FIXTURES / "inspect_ai.eval", show=["batch"]).shown["batch"].tolist()[:4] == ["0", "1", "2", "0"]


def test_the_table_as_a_plain_one() -> None:
    crowd = read(FIXTURES / "inspect_ai_samples.csv", annotator_columns=["score_*"], columns={"task": "id"})
    assert crowd.annotations.workers.tolist() == ["score_judge_a", "score_judge_b", "score_judge_c"]
    votes = crowd.annotations
    labels = votes.classes[votes.label].reshape(24, 3).tolist()
    assert labels == [[verdict(m, n) for m in JUDGES] for n in range(24)]


def test_the_command_says_what_was_taken(tmp_path: Path) -> None:
    done = rarevote(
        "aggregate", FIXTURES / "inspect_ai_samples.csv", "-m", "majority-vote", "--out", tmp_path / "r.csv"
    )
    assert "Inspect, question value" in done.stderr
    assert "24 tasks, 3 workers" in done.stderr
    majority = {n: max("CI", key=[verdict(m, n) for m in JUDGES].count) for n in range(24)}
    assert [row["label"] for row in rows((tmp_path / "r.csv").read_text())] == list(majority.values())


def log(samples: list[dict[str, Any]] | None) -> dict[str, Any]:
    body = {"version": 2, "status": "success", "eval": {"task": "t"}}
    return body if samples is None else {**body, "samples": samples}


def test_scores_of_several_values_are_questions(tmp_path: Path) -> None:
    samples = [
        {
            "id": n,
            "epoch": 1,
            "scores": {
                judge: {"value": {"safe": "yes" if (n + m) % 3 else "no", "polite": float(n * (m + 1) % 2)}}
                for m, judge in enumerate(("x", "y"))
            },
        }
        for n in range(12)
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log([*samples, {"id": "failed", "epoch": 1, "error": {"message": "..."}}])))
    with pytest.raises(InputError, match="2 questions were asked: 'safe', 'polite'"):
        read_export(path)
    export = read_export(path, question="safe")
    assert found(export) == sorted(
        (str(n), judge, "yes" if (n + m) % 3 else "no") for n in range(12) for m, judge in enumerate(("x", "y"))
    )
    assert export.unanswered == ["failed"]
    assert set(read_export(path, question="polite").label) == {"0", "1"}


@pytest.mark.parametrize("question", ["correct", "fluent"])
def test_an_object_of_truth_values_is_not_ticks(tmp_path: Path, question: str) -> None:
    scores = {
        (n, judge): {"correct": (n + m) % 2 == 0, "fluent": n % 3 == m}
        for n in range(6)
        for m, judge in enumerate("ab")
    }
    samples = [
        {"id": n, "epoch": 1, "scores": {judge: {"value": scores[n, judge]} for judge in "ab"}} for n in range(6)
    ]
    (tmp_path / "log.json").write_text(json.dumps(log(samples)))
    with (tmp_path / "table.csv").open("w", newline="") as handle:
        cells = [[f"u{n}", "e", n, 1, *(json.dumps(scores[n, judge]) for judge in "ab")] for n in range(6)]
        csv.writer(handle).writerows([["sample_id", "eval_id", "id", "epoch", "score_a", "score_b"], *cells])
    expected = sorted((str(n), judge, str(given[question]).lower()) for (n, judge), given in scores.items())
    for name in ("log.json", "table.csv"):
        assert found(read_export(tmp_path / name, question=question)) == expected


def test_scorers_of_different_kinds_are_not_mixed(tmp_path: Path) -> None:
    def score(scorer: str, n: int) -> Any:
        return {"one": float(n % 2), "two": n % 3 % 2, "yes": n % 2 == 0, "no": n % 3 == 0}[scorer]

    samples = [
        {"id": n, "epoch": 1, "scores": {name: {"value": score(name, n)} for name in ("one", "two", "yes", "no")}}
        for n in range(12)
    ]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(samples)))
    done = rarevote("aggregate", path, code=1)
    assert "give values of different kinds" in done.stderr
    assert (
        "--annotator-column one --annotator-column two or --annotator-column yes --annotator-column no" in done.stderr
    )
    numbers = [(str(n), name, str(int(score(name, n)))) for n in range(12) for name in ("one", "two")]
    assert found(read_export(path, annotator_columns=["one", "tw?"])) == sorted(numbers)
    with pytest.raises(InputError, match="no column 'three'"):
        read_export(path, annotator_columns=["three"])
    # The table of the same log, as pandas writes it.
    header = "sample_id,eval_id,id,epoch,score_one,score_two,score_yes,score_no"
    lines = [
        f"u{n},e,{n},1,{score('one', n)},{float(score('two', n))},{score('yes', n)},{score('no', n)}" for n in range(12)
    ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join([header, *lines]) + "\n")
    assert found(read_export(table, annotator_columns=["score_one", "score_two"])) == sorted(numbers)
    truths = [(str(n), name, str(score(name, n)).lower()) for n in range(12) for name in ("yes", "no")]
    assert found(read_export(table, annotator_columns=["yes", "no"])) == sorted(truths)


def test_logs_without_scores_or_samples(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(None)))
    with pytest.raises(InputError, match="the log has no samples: write it with log_samples=True"):
        read_export(path)
    path.write_text(json.dumps(log([{"id": 1, "epoch": 1, "scores": None}])))
    with pytest.raises(InputError, match="no sample has a score"):
        read_export(path)
    path.write_text(json.dumps(log([{"epoch": 1, "scores": {}}])))
    with pytest.raises(InputError, match="sample 1 has no id"):
        read_export(path)


def test_an_archive_that_was_cut_short(tmp_path: Path) -> None:
    # Before an evaluation has ended its archive has only the journal.
    sample = {"id": "q", "epoch": 1, "scores": {"x": {"value": "C"}, "y": {"value": "I"}}, "uuid": "u"}
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {}, "plan": {}}))
        archive.writestr("_journal/summaries/1.json", json.dumps([sample]))
    assert detect(path) == "inspect-ai"
    assert found(read_export(path)) == [("q", "x", "C"), ("q", "y", "I")]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {}, "plan": {}}))
        archive.writestr("header.json", "{}")
    with pytest.raises(InputError, match="an archive without samples"):
        read_export(path)


def test_a_member_that_is_larger_than_its_directory_says(tmp_path: Path) -> None:
    packed = bytearray((FIXTURES / "inspect_ai.eval").read_bytes())
    at = packed.rindex(b"summaries.json")  # in the directory; the size unpacked stands 22 bytes before the name
    packed[at - 22 : at - 18] = (100).to_bytes(4, "little")
    path = tmp_path / "log.eval"
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"unpacks to more than 100 bytes|cannot be read"):
        read_export(path)
