"""Wide tables: known by themselves, with judges marked as models and the expected answer proposed as gold."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest
from pyarrow import feather

import rarevote
from rarevote.errors import ColumnsError, InputError
from rarevote.io.read.crowd import read
from rarevote.io.read.wide import WideTable, _Group, _groups, _refuse_groups
from tests.command import rarevote as command
from tests.io.platforms.exports import FIXTURES

JUDGES = FIXTURES / "wide_judges.csv"


def cells(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle, delimiter=delimiter))


def test_judges_are_known_without_a_flag() -> None:
    crowd = read(JUDGES)
    votes = crowd.annotations
    assert votes.workers.tolist() == ["claude-sonnet", "gpt-4o", "llama-70b"]
    assert crowd.models == frozenset(votes.workers.tolist())
    assert votes.classes.tolist() == ["safe", "unsafe"]
    # As many votes as there are cells that are not empty, counted by Python's own reader.
    table = cells(JUDGES)
    assert votes.tasks.tolist() == [row["id"] for row in table]
    assert votes.n_annotations == sum(bool(row[name]) for row in table for name in votes.workers.tolist()) == 71
    assert crowd.notes == (
        "read as a wide table: the task is 'id', the annotators are gpt-4o, claude-sonnet and llama-70b; not read: "
        "prompt, category and latency_ms",
        "column 'expected' looks like the expected answer and is not a vote; to use it as gold: gold_column='expected'",
        "marked as models, not people: claude-sonnet, gpt-4o and llama-70b",
    )


def test_the_expected_answer_is_gold_when_asked_for() -> None:
    crowd = read(JUDGES, gold_column="expected")
    assert crowd.gold == {row["id"]: row["expected"] for row in cells(JUDGES)}
    assert crowd.annotations.n_annotations == 71
    fitted = rarevote.fit(crowd, "gold-majority-vote")
    assert fitted.decide().labels.tolist() == [row["expected"] for row in cells(JUDGES)]
    done = command("aggregate", JUDGES, "-m", "gold-majority-vote", "--gold-column", "expected")
    assert "learns from 24 gold labels" in done.stderr
    assert "note: read as a wide table" in done.stderr


def test_raters_with_gaps_are_people() -> None:
    crowd = read(FIXTURES / "wide_raters.csv")
    assert crowd.annotations.workers.tolist() == ["rater 1", "rater 2", "rater 3", "rater 4"]
    assert crowd.models == frozenset()
    told = sum(bool(row[f"rater {n}"]) for row in cells(FIXTURES / "wide_raters.csv", ";") for n in range(1, 5))
    assert crowd.annotations.n_annotations == told
    marked = read(FIXTURES / "wide_raters.csv", prediction_columns=["rater 4"])
    assert marked.models == {"rater 4"}
    with pytest.raises(ColumnsError, match="no annotator 'rater 9'; the annotators are rater 1"):
        read(FIXTURES / "wide_raters.csv", prediction_columns=["rater 9"])


@pytest.mark.parametrize("ending", ["json", "ndjson", "parquet", "arrow"])
def test_other_formats(tmp_path: Path, ending: str) -> None:
    import duckdb

    path = tmp_path / f"wide.{ending}"
    rows = [{"id": n, "text": f"text {n}", "judge_a": n % 2, "judge_b": n % 3 % 2, "truth": n % 2} for n in range(9)]
    if ending == "parquet":
        (tmp_path / "wide.json").write_text(json.dumps(rows))
        duckdb.sql(f"COPY (SELECT * FROM '{tmp_path}/wide.json') TO '{path}'")
    elif ending == "arrow":
        feather.write_feather(pyarrow.Table.from_pylist(rows), str(path))
    else:
        path.write_text(json.dumps(rows) if ending == "json" else "\n".join(map(json.dumps, rows)))
    crowd = read(path, gold_column="truth")
    assert crowd.annotations.workers.tolist() == ["judge_a", "judge_b"]
    assert crowd.annotations.tasks.tolist() == list(range(9))
    assert crowd.known(crowd.gold) == {n: n % 2 for n in range(9)}
    assert crowd.models == {"judge_a", "judge_b"}


# What frameworks for evaluations count beside the scores: the same few numbers, in more columns than there are judges.
COUNTED = ("total_tokens", "turn_count", "retries", "fallbacks")


def table_of_judges(path: Path, judges: dict[str, list[str]], counted: dict[str, list[str]], n: int = 40) -> Path:
    columns = {"id": [f"s{k}" for k in range(n)], "input": [f"question {k}" for k in range(n)], **judges, **counted}
    lines = [",".join(cells) for cells in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


@pytest.mark.parametrize("kind", ["letters", "numbers"])
@pytest.mark.parametrize("varying", [False, True])
def test_counts_beside_scores_are_no_votes(tmp_path: Path, kind: str, varying: bool) -> None:
    values = "CI" if kind == "letters" else "10"
    judges = {f"score_judge_{m}": [values[(k * m) % 5 == 0] for k in range(40)] for m in (1, 2, 3)}
    counted = {name: [str(k % 2 if varying else 0) for k in range(40)] for name in COUNTED}
    crowd = read(table_of_judges(tmp_path / "x.csv", judges, counted))
    assert crowd.annotations.workers.tolist() == list(judges)
    assert crowd.annotations.n_annotations == 120
    assert crowd.models == set(judges)
    assert "not read: input, total_tokens, turn_count, retries and 1 more" in crowd.notes[0]


def test_what_never_varies_is_no_vote(tmp_path: Path) -> None:
    path = table_of_judges(tmp_path / "x.csv", {}, {name: ["same"] * 40 for name in ("left", "right", "middle")})
    with pytest.raises(ColumnsError, match="no column for task or worker or label"):
        read(path)


def test_two_groups_of_columns_are_shown_and_not_guessed(tmp_path: Path) -> None:
    people = {name: [("fine", "bad")[(k + n) % 3 == 0] for k in range(40)] for n, name in enumerate(("ana", "bo"))}
    places = {name: [("roof", "wall")[(k + n) % 4 == 0] for k in range(40)] for n, name in enumerate(("first", "then"))}
    path = table_of_judges(tmp_path / "x.csv", people, places)
    done = command("aggregate", path, code=1)
    assert "cannot find the columns of votes. Name them: " in done.stderr
    assert "ana and bo (--annotator-column ana --annotator-column bo)" in done.stderr
    assert "first and then (--annotator-column first --annotator-column then)" in done.stderr
    assert read(path, annotator_columns=["ana", "b*"]).annotations.workers.tolist() == ["ana", "bo"]
    with pytest.raises(ColumnsError, match="no column 'score_"):
        read(path, annotator_columns=["score_*"])
    # Names decide where they can.
    renamed = table_of_judges(
        tmp_path / "y.csv", {f"rater {n}": votes for n, votes in enumerate(people.values(), 1)}, places
    )
    assert read(renamed).annotations.workers.tolist() == ["rater 1", "rater 2"]


@pytest.mark.parametrize(
    "text",
    [
        "img,person,verdict\na,x,yes\na,y,no\nb,x,yes\n",  # long, with names of its own
        "row,img,person,verdict\n1,a,x,yes\n2,a,y,no\n3,b,x,yes\n",  # and with a number for each row
        "id,text,score\n1,a,0.3\n2,b,0.4\n",  # nothing that two columns share
        "id,gpt\n1,yes\n2,no\n",  # one judge is no crowd
    ],
)
def test_what_is_no_wide_table_mentions_the_flag(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ColumnsError, match=r"Say which: columns=\{.*One column per annotator\? wide=True"):
        read(path)
    assert "One column per annotator? --wide" in command("aggregate", path, code=1).stderr


def test_a_table_with_workers_is_never_wide(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("key,worker,first,second\n1,w,yes,no\n2,v,no,no\n")
    with pytest.raises(ColumnsError, match="no column for task or label"):
        read(path)


def test_texts_and_expected_answers_are_no_annotators_of_a_named_wide_table(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = [f"q{n},prompt number {n},{'ab'[n % 2]},{'ab'[n % 3 % 2]},{'ab'[n % 2]}" for n in range(30)]
    path.write_text("\n".join(["case,prompt,ana,bo,expected", *lines]) + "\n")
    crowd = read(path, wide=True)
    assert crowd.annotations.workers.tolist() == ["ana", "bo"]
    assert "prompt: free text" in crowd.notes[0]
    assert "gold_column='expected'" in crowd.notes[1]


def test_two_known_answers_of_one_task_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label,gold\n1,w,yes,no\n1,v,no,yes\n2,w,no,\n")
    with pytest.raises(InputError, match="task '1' has several values in 'gold': 'no' and 'yes'"):
        read(path, gold_column="gold")


def test_models_by_name() -> None:
    crowd = read([("a", "model:v1", "x"), ("a", "ann", "x")])
    assert crowd.models == {"model:v1"}


@pytest.mark.parametrize("kind", ["pandas", "polars", "mapping"])
def test_wide_frames(kind: str) -> None:
    table = {"item": ["x", "y", "z"], "ann": ["yes", "no", "yes"], "bob": ["yes", None, "no"]}
    make: Any = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "mapping": dict}[kind]
    crowd = read(make(table), wide=True)
    votes = crowd.annotations
    assert (votes.tasks.tolist(), votes.workers.tolist()) == (["x", "y", "z"], ["ann", "bob"])
    assert votes.votes().tolist() == [[0.0, 2.0], [1.0, 0.0], [1.0, 1.0]]  # no, yes of each item


def test_what_is_said_of_a_wide_table() -> None:
    table = WideTable("id", [f"a{n}" for n in range(1, 10)], others=["text"])
    assert table.notes(found=True, gold=None) == [
        "read as a wide table: the task is 'id', the annotators are a1, a2, a3, a4, a5, a6, a7, a8 and 1 more; "
        "not read: text"
    ]
    assert table.notes(found=False, gold=None) == ["text: free text, ignored"]
    assert WideTable("id", ["a", "b"]).notes(found=False, gold=None) == []


def test_annotators_who_never_used_the_same_value_are_of_one_group() -> None:
    values = {"ana": frozenset({"yes"}), "bo": frozenset({"no"}), "cy": frozenset({"yes", "no"})}
    assert [group.annotators for group in _groups(values, None)] == [["ana", "bo", "cy"]]


def test_at_most_three_groups_are_shown() -> None:
    with pytest.raises(ColumnsError) as caught:
        _refuse_groups("x.csv", [_Group([f"{name}1", f"{name}2"], [], 0) for name in "abcd"])
    assert str(caught.value) == (
        "x.csv: cannot find the columns of votes. Name them: a1 and a2 (annotator_columns=['a1', 'a2']) or "
        "b1 and b2 (annotator_columns=['b1', 'b2']) or c1 and c2 (annotator_columns=['c1', 'c2'])"
    )


NUMBERS_WITH_GAPS = pandas.DataFrame(
    {"item": ["i1", "i2", "i3"], "ann1": [1.0, 0.0, None], "ann2": [0, 1, 1], "ann3": [1, 1, 0], "gold": [None, 1.0, 0]}
)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".json", ".xlsx"])
def test_integers_beside_gaps_are_the_same_votes_in_every_format(tmp_path: Path, ending: str, wide: bool) -> None:
    path = tmp_path / f"votes{ending}"
    write: dict[str, Any] = {
        ".csv": lambda: NUMBERS_WITH_GAPS.to_csv(path, index=False),
        ".tsv": lambda: NUMBERS_WITH_GAPS.to_csv(path, index=False, sep="\t"),
        ".parquet": lambda: NUMBERS_WITH_GAPS.to_parquet(path),
        ".json": lambda: NUMBERS_WITH_GAPS.to_json(path, orient="records"),
        ".xlsx": lambda: NUMBERS_WITH_GAPS.to_excel(path, index=False),
    }
    write[ending]()
    crowd = read(path, wide=wide, gold_column="gold")
    assert list(map(str, crowd.annotations.classes)) == ["0", "1"]
    assert crowd.annotations.votes().tolist() == [[1, 2], [1, 2], [1, 1]]
    assert {task: str(label) for task, label in crowd.gold.items()} == {"i2": "1", "i3": "0"}


def test_integers_beside_gaps_in_one_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,ann1,ann2\ni1,1,0\ni2,0,1\n")
    (tmp_path / "b.csv").write_text("item,ann1,ann2\ni3,1.0,0\ni4,,1\n")
    crowd = read(tmp_path).annotations
    assert crowd.classes.tolist() == ["0", "1"]
    assert crowd.votes().tolist() == [[1, 1], [1, 1], [1, 1], [0, 1]]


def test_labels_that_all_have_a_point_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("item,ann1,ann2\ni1,1.0,0.0\ni2,0.0,1.0\n")
    assert read(path).annotations.classes.tolist() == ["0.0", "1.0"]


def test_a_table_of_three_hundred_annotators(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = [[f"i{row}", *(("yes", "no")[(row + 3 * one) % 2] for one in range(300))] for row in range(40)]
    names = ["item", *(f"ann{one}" for one in range(300))]
    path.write_text("\n".join(",".join(cells) for cells in [names, *rows]) + "\n")
    crowd = read(path).annotations
    assert (crowd.n_annotations, crowd.n_workers, crowd.n_tasks) == (12_000, 300, 40)
    assert crowd.votes().tolist() == [[150.0, 150.0]] * 40
