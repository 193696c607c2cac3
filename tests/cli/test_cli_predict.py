"""``aggregate --model-out`` and ``rarevote predict``: what was learned about people, used on new tasks."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from rarevote import AnchoredRasch
from tests.command import rarevote, rows


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Votes to fit (old.csv), votes on other tasks (new.csv), and the model of the first."""
    folder = tmp_path_factory.mktemp("crowd")
    rarevote("simulate", "--out", folder, "--tasks", "300", "--workers", "20", "--seed", "5", "-q")
    header, *votes = (folder / "labels.csv").read_text().splitlines()
    old = [vote for vote in votes if vote < "task-000000000200"]
    (folder / "old.csv").write_text("\n".join([header, *old]) + "\n")
    (folder / "new.csv").write_text("\n".join([header, *votes[len(old) :]]) + "\n")
    done = rarevote("aggregate", folder / "old.csv", "--model-out", folder / "model", "-o", folder / "old-result.csv")
    assert f"wrote {folder / 'model'}: the model, which predict uses for new tasks" in done.stderr
    return folder


def test_the_command_line_predicts_what_python_predicts(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.parquet"  # numbers as they are, not as text
    done = rarevote("predict", crowd / "model", crowd / "new.csv", "-o", out)
    assert "the model (anchored-rasch) knows all 20 workers" in done.stderr
    model = AnchoredRasch().fit(crowd / "old.csv")
    wanted = model.predict_proba(crowd / "new.csv").to_pandas()
    found = duckdb.sql(f"SELECT * FROM '{out}'").df().set_index("task")
    assert found.index.tolist() == wanted.index.tolist()
    for name in ("0", "1"):
        assert found[f"p:{name}"].tolist() == wanted[name].tolist()
    assert found["label"].to_dict() == model.predict(crowd / "new.csv").to_dict()


def test_rows_go_to_stdout_and_the_summary_is_json(crowd: Path, tmp_path: Path) -> None:
    done = rarevote("predict", crowd / "model", crowd / "new.csv", "-q")
    assert done.stderr == ""
    table = rows(done.stdout)
    assert list(table[0]) == ["task", "label", "confidence", "votes", "p:0", "p:1"]
    assert len(table) == 100
    done = rarevote("predict", crowd / "model", crowd / "new.csv", "-o", tmp_path / "r.csv", "--json")
    said = json.loads(done.stdout)
    assert (said["n_tasks"], said["n_unknown_workers"], said["method"]) == (100, 0, "anchored-rasch")
    assert sum(said["classes"].values()) == 100


def test_unknown_workers_are_counted(crowd: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("task,worker,label\nx,somebody,0\nx,else,0\nx,worker-00000,0\n")
    done = rarevote("predict", crowd / "model", path)
    assert rows(done.stdout)[0]["label"] == "0"
    assert "2 of 3 workers are new to the model and weighted as average" in done.stderr
    rarevote("aggregate", crowd / "old.csv", "-m", "wawa", "--model-out", tmp_path / "wawa", "-o", tmp_path / "r.csv")
    done = rarevote("predict", tmp_path / "wawa", path, code=1)
    assert "workers were not in the fit (first: 'else'): Wawa knows nothing about them" in done.stderr


def test_text_and_numbers_mean_the_same_names(tmp_path: Path) -> None:
    path = tmp_path / "votes.parquet"
    duckdb.sql(
        "COPY (SELECT i // 4 AS task, i % 4 AS worker, ((i // 4) % 3 = 0 AND i % 4 > 0)::INT AS label "
        f"FROM range(60) t(i)) TO '{path}'"
    )
    rarevote("aggregate", path, "--model-out", tmp_path / "model", "-o", tmp_path / "r.csv", "-q")
    new = tmp_path / "new.csv"
    new.write_text("task,worker,label\nx,1,1\nx,2,1\nx,3,1\n")
    done = rarevote("predict", tmp_path / "model", new)
    assert "knows all 3 workers" in done.stderr
    assert rows(done.stdout)[0]["label"] == "1"


def test_mistakes_write_nothing(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    done = rarevote("predict", crowd / "new.csv", crowd / "model", "-o", out, code=1)
    assert "not a rarevote model; aggregate --model-out and model.save(path) write models" in done.stderr
    done = rarevote("predict", crowd / "absent", crowd / "new.csv", "-o", out, code=1)
    assert "absent: cannot be read (No such file or directory)" in done.stderr
    done = rarevote("predict", crowd / "model", crowd / "new.csv", "-o", tmp_path / "r.doc", code=1)
    assert "cannot write .doc" in done.stderr
    other = tmp_path / "other.csv"
    other.write_text("task,worker,label\nx,a,maybe\n")
    done = rarevote("predict", crowd / "model", other, "-o", out, code=1)
    assert "label 'maybe' was not among the classes of the fit (0, 1)" in done.stderr
    done = rarevote("aggregate", crowd / "old.csv", "-m", "plat", "--model-out", tmp_path / "m", "-o", out, code=2)
    assert "plat cannot label new tasks" in done.stderr
    done = rarevote("aggregate", crowd / "old.csv", "--model-out", tmp_path / "no" / "m", "-o", out, code=1)
    assert "no folder" in done.stderr
    done = rarevote("aggregate", crowd / "old.csv", "--model-out", out, "-o", out, code=2)
    assert "the same file" in done.stderr
    done = rarevote("predict", crowd / "model", crowd / "new.csv", "--json", code=1)
    assert "for the rows with --out" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv"]
