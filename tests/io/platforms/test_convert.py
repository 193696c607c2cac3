"""``rarevote convert``: rows to a file or to stdout, talk to stderr, nothing half-written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from rarevote.cli.convert import convert
from rarevote.errors import InputError
from tests.io.platforms.exports import FIXTURES

app = typer.Typer()
app.command()(convert)


def run(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle))


def test_rows_gold_and_summary(tmp_path: Path) -> None:
    out, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    done = run(
        FIXTURES / "toloka.tsv", "--question", "OUTPUT:result", "--show", "image", "--show", "text",
        "--out", out, "--gold-out", gold,
    )  # fmt: skip
    assert rows(out)[:2] == [
        ["task", "worker", "label", "image", "text"],
        ["t1", "w-77", "cat", "a.jpg", "строка\nдва"],
    ]
    assert len(rows(out)) == 6
    assert rows(gold) == [["task", "label"], ["t3", "cat"]]
    assert done.stdout == ""
    for part in ("Toloka, question result (also asked: tags)", "8 records: 5 rows, 3 tasks, 2 workers, 1 known answers",
                 "expired", "1 rows repeat", f"wrote {out}", f"wrote {gold}"):  # fmt: skip
        assert part in done.stderr


def test_to_stdout_and_quiet(tmp_path: Path) -> None:
    done = run(FIXTURES / "doccano", "--from", "doccano", "--quiet")
    assert done.stdout.splitlines()[:2] == ["task,worker,label", "1,7,neg"]
    assert done.stderr == ""
    out = tmp_path / "x.parquet"
    assert run(FIXTURES / "doccano", "--out", out, "-q").stderr == ""
    assert out.exists()


def test_json_summary(tmp_path: Path) -> None:
    done = run(
        FIXTURES / "label_studio.json",
        "--question",
        "damage",
        "--include-predictions",
        "--json",
        "-o",
        tmp_path / "x.csv",
    )
    found = json.loads(done.stdout)
    assert found["left_out"] == {
        "draft": 1,
        "cancelled": 1,
        "ground truth: used as gold, not as a vote": 1,
        "no answer": 1,
    }
    assert (found["platform"], found["n_rows"], found["n_gold"], found["n_repeated"]) == ("label-studio", 9, 1, 1)
    assert found["labels"] == {"crack": 5, "sound": 4}
    with pytest.raises(InputError, match="--json writes a summary to stdout"):
        run(FIXTURES / "doccano", "--json")


def test_several_choices(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    done = run(FIXTURES / "label_studio_multi.json", "--multilabel", "--out", out)
    assert rows(out)[:2] == [["task", "worker", "label", "item", "choice"], ["1:health", "3", "yes", "1", "health"]]
    assert "one yes/no problem for each of 3 choices: health, money, sport" in done.stderr


def test_nothing_is_written_on_errors(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    with pytest.raises(InputError, match="no known answers"):
        run(FIXTURES / "doccano", "--out", out, "--gold-out", tmp_path / "gold.csv")
    with pytest.raises(InputError, match=r"cannot write \.docx"):
        run(FIXTURES / "doccano", "--out", tmp_path / "x.docx")
    with pytest.raises(InputError, match="cannot be written"):
        run(FIXTURES / "toloka.tsv", "--question", "result", "--out", out, "--gold-out", tmp_path / "no" / "gold.csv")
    with pytest.raises(InputError, match="2 questions were asked"):
        run(FIXTURES / "toloka.tsv", "--out", out)
    assert list(tmp_path.iterdir()) == []
