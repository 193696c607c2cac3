"""``rarevote convert``: rows to a file or to stdout, talk to stderr, nothing half-written."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from tests.command import rarevote
from tests.io.platforms.exports import FIXTURES


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.reader(handle))


def test_rows_gold_and_summary(tmp_path: Path) -> None:
    out, gold = tmp_path / "labels.csv", tmp_path / "gold.csv"
    done = rarevote(
        "convert",
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
    for part in ("Toloka, question result (also asked: tags)", "8 records: 5 rows, 3 tasks, 2 workers, 1 gold label",
                 "expired", "1 row repeats", f"wrote {out}", f"wrote {gold}"):  # fmt: skip
        assert part in done.stderr


def test_to_stdout_and_quiet(tmp_path: Path) -> None:
    done = rarevote("convert", FIXTURES / "doccano", "--from", "doccano", "--quiet")
    assert done.stdout.splitlines()[:2] == ["task,worker,label", "1,7,neg"]
    assert done.stderr == ""
    out = tmp_path / "x.parquet"
    assert rarevote("convert", FIXTURES / "doccano", "--out", out, "-q").stderr == ""
    assert out.exists()


def test_json_summary(tmp_path: Path) -> None:
    done = rarevote(
        "convert",
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
    done = rarevote("convert", FIXTURES / "doccano", "--json", code=1)
    assert "--json prints a summary to stdout" in done.stderr


def test_several_choices(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    done = rarevote("convert", FIXTURES / "label_studio_multi.json", "--multilabel", "--out", out)
    assert rows(out)[:2] == [["task", "worker", "label", "item", "choice"], ["1:health", "3", "yes", "1", "health"]]
    assert "one yes/no problem for each of 3 choices: health, money, sport" in done.stderr


def test_nothing_is_written_on_errors(tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    done = rarevote("convert", FIXTURES / "doccano", "--out", out, "--gold-out", tmp_path / "gold.csv", code=1)
    assert "no gold found" in done.stderr
    done = rarevote("convert", FIXTURES / "doccano", "--out", tmp_path / "x.docx", code=1)
    assert "cannot write .docx" in done.stderr
    absent = tmp_path / "no" / "gold.csv"
    done = rarevote(
        "convert", FIXTURES / "toloka.tsv", "--question", "result", "--out", out, "--gold-out", absent, code=1
    )
    assert "cannot be written" in done.stderr
    done = rarevote("convert", FIXTURES / "toloka.tsv", "--out", out, code=1)
    assert "2 questions were asked" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_formulas_in_cells_are_harmless_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "Batch_1.csv"
    path.write_text("HITId,WorkerId,Input.text,Answer.x\nh,w,=1+1,yes\nh,v,=1+1,no\n")
    plain = rarevote("convert", path, "--show", "text").stdout
    safe = rarevote("convert", path, "--show", "text", "--spreadsheet-safe").stdout
    assert [line.split(",")[3] for line in plain.splitlines()[1:]] == ["=1+1", "=1+1"]
    assert [line.split(",")[3] for line in safe.splitlines()[1:]] == ["'=1+1", "'=1+1"]
