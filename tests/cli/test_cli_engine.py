"""``rarevote aggregate``: labels back to their platform, checkpoints, and the dask engine."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.cli.test_cli import PLAIN
from tests.command import rarevote

EXPORT = Path(__file__).parents[1] / "io" / "platforms" / "fixtures" / "label_studio.json"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(PLAIN)
    return path


def test_labels_go_back_to_label_studio(tmp_path: Path) -> None:
    result, back = tmp_path / "result.csv", tmp_path / "predictions.json"
    rarevote("aggregate", EXPORT, "--question", "damage", "-o", result, "--back-out", back)
    written = {str(item["id"]): item for item in json.loads(back.read_text(encoding="utf-8"))}
    found = duckdb.sql(f"SELECT task, label, votes FROM read_csv('{result}', all_varchar=true)").fetchall()
    assert [task for task, _, votes in found if votes == "0"] == ["104"]
    for task, label, votes in found:
        if votes == "0":
            assert (label or "", written[task]["predictions"]) == ("", [])
            continue
        (prediction,) = written[task]["predictions"]
        (answer,) = prediction["result"]
        assert answer["value"]["choices"] == [label]
        assert (answer["from_name"], prediction["model_version"]) == ("damage", "rarevote")
        assert 0 < prediction["score"] <= 1
    original = {str(item["id"]): item["data"] for item in json.loads(EXPORT.read_text(encoding="utf-8"))}
    assert all(item["data"] == original[task] for task, item in written.items())


def test_the_score_of_a_prediction_is_the_confidence(tmp_path: Path) -> None:
    """Probabilities of every method are calibrated, so that every method has a score."""
    result, back = tmp_path / "r.parquet", tmp_path / "back.json"
    rarevote("aggregate", EXPORT, "--question", "damage", "-m", "majority-vote", "-o", result, "--back-out", back)
    written = json.loads(back.read_text(encoding="utf-8"))
    scores = {str(item["id"]): one["score"] for item in written for one in item["predictions"]}
    found = dict(duckdb.sql(f"SELECT task, confidence FROM '{result}' WHERE votes > 0").fetchall())
    assert scores == pytest.approx(found, abs=1e-6)
    assert len(scores) == 3


def test_an_item_without_an_answer_has_no_prediction(tmp_path: Path) -> None:
    result, back = tmp_path / "r.csv", tmp_path / "back.json"
    options = ("--question", "damage", "--ignore-gold", "--abstain-below", "0.7")
    rarevote("aggregate", EXPORT, *options, "-o", result, "--back-out", back)
    labels = dict(duckdb.sql(f"SELECT task, label FROM read_csv('{result}', all_varchar=true)").fetchall())
    written = json.loads(back.read_text(encoding="utf-8"))
    assert {bool(label) for label in labels.values()} == {True, False}
    answers = {str(item["id"]): [one["result"][0]["value"] for one in item["predictions"]] for item in written}
    assert answers == {task: [{"choices": [label]}] if label else [] for task, label in labels.items()}


def test_there_is_no_way_back_from_a_plain_file(labels: Path, tmp_path: Path) -> None:
    done = rarevote("aggregate", labels, "-o", tmp_path / "r.csv", "--back-out", tmp_path / "b.json", code=1)
    assert "--back-out needs an export" in done.stderr
    assert not (tmp_path / "r.csv").exists()


def test_checkpoints(labels: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    rarevote("aggregate", labels, "-o", tmp_path / "a.csv", "--checkpoint", kept, "--checkpoint-every", "1")
    assert not kept.exists()  # a finished fit needs none
    rarevote("aggregate", labels, "-o", tmp_path / "b.csv")
    done = rarevote("aggregate", labels, "-m", "majority-vote", "--checkpoint", kept, code=2)
    assert "majority-vote cannot resume a fit after a crash: leave --checkpoint out" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "spark"], "unknown engine 'spark'"),
        (["--scheduler", "tcp://head:8786"], "--scheduler needs --engine dask"),
        (["--engine", "dask"], "name it with --out"),
        (["--engine", "dask", "--truth", "labels.csv", "--out", "folder"], "--truth does not work with --engine dask"),
        (["--engine", "dask", "--wide", "--out", "folder"], "--wide is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--show", "text"], "--show is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--format", "csv"], "--format is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--no-header"], "--no-header is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--sheet", "x"], "--sheet is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--from", "mturk"], "--from is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--question", "q"], "--question is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--multilabel"], "--multilabel is for a single machine"),
        (["--engine", "dask", "--out", "folder", "--include-predictions"], "--include-predictions is for a single"),
        (["--engine", "dask", "--out", "folder", "--prediction-column", "c"], "--prediction-column is for a single"),
        (["--engine", "dask", "--out", "folder", "--gold-column", "c"], "--gold-column is for a single machine"),
    ],
)
def test_mistakes(labels: Path, arguments: list[str], message: str) -> None:
    pytest.importorskip("distributed", reason="dask is not installed")
    done = rarevote("aggregate", labels, *arguments, code=2, folder=labels.parent)
    assert message in done.stderr


def test_dask_gives_the_same_labels(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="dask is not installed")
    rarevote("simulate", "--out", tmp_path / "crowd", "--tasks", "300", "--seed", "5", "-q")
    votes = tmp_path / "crowd" / "labels.csv"
    rarevote("aggregate", votes, "-o", tmp_path / "local.csv", "-q")
    rarevote("aggregate", votes, "--engine", "dask", "-o", tmp_path / "cluster", "-q")
    here = duckdb.sql(f"SELECT task, label FROM read_csv('{tmp_path}/local.csv', all_varchar=true) ORDER BY task")
    there = duckdb.sql(f"SELECT task, label FROM '{tmp_path}/cluster/tasks/*.parquet' ORDER BY task")
    assert here.fetchall() == there.fetchall()
