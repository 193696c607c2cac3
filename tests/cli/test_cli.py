"""The command line as a person or a script meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import rarevote as library
from rarevote.simulate.files import example_files
from tests.command import rarevote, rows

PLAIN = "task,worker,label\n1,a,yes\n1,b,no\n1,c,no\n2,a,yes\n2,b,yes\n"


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(PLAIN)
    return path


def test_aggregate_to_stdout(labels: Path) -> None:
    done = rarevote("aggregate", labels, "--method", "majority-vote")
    found = rows(done.stdout)
    assert list(found[0]) == ["task", "label", "confidence", "votes", "p:no", "p:yes"]
    assert [(row["task"], row["label"], row["votes"]) for row in found] == [("1", "no", "3"), ("2", "yes", "2")]
    # (votes + share of all votes) / (votes of the item + 1): two of five votes are "no".
    assert float(found[0]["p:no"]) == pytest.approx((2 + 2 / 5) / 4, abs=1e-5)
    assert found[0]["confidence"] == found[0]["p:no"]
    assert rarevote("aggregate", labels).stdout.splitlines()[0] == "task,label,confidence,votes,p:no,p:yes"
    assert "5 annotations, 2 tasks, 3 workers, 2 classes" in done.stderr


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_aggregate_to_a_file(labels: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"result.{ending}"
    done = rarevote("aggregate", labels, "--out", out)
    assert done.stdout == ""
    assert f"wrote {out}" in done.stderr
    assert {row[0] for row in duckdb.sql(f"SELECT task FROM '{out}'").fetchall()} in ({"1", "2"}, {1, 2})


def test_summary_as_json(labels: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("task,label\n1,yes\n2,yes\n9,no\n")
    done = rarevote("aggregate", labels, "-m", "majority-vote", "-o", tmp_path / "r.csv", "--truth", truth, "--json")
    found = json.loads(done.stdout)
    assert found["classes"]["no"]["tasks"] == 1
    assert found["scores"]["accuracy"] == 0.5
    assert found["scores"]["truth_without_labels"] == 1
    assert found["converged"] is True


def test_options_reach_the_method(labels: Path, tmp_path: Path) -> None:
    done = rarevote(
        "aggregate", labels, "-m", "cc-rasch", "--set", "prior=[0.9, 0.1]", "--set", "n_iter=50",
        "--set", "difficulty=None", "-o", tmp_path / "r.csv", "--json", "--class", "maybe", code=2,
    )  # fmt: skip
    assert "prior needs one value or 3" in done.stderr
    done = rarevote(
        "aggregate", labels, "-m", "cc-rasch", "--set", "prior=estimate", "--set", "n_iter=250",
        "-o", tmp_path / "r.csv", "--json",
    )  # fmt: skip
    assert json.loads(done.stdout)["parameters"]["prior"] == "estimate"


def test_gold_abstain_keep_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("image,who,label\n1,a,yes\n1,a,no\n1,b,?\n2,b,?\n")
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\n1,yes\n")
    done = rarevote(
        "aggregate",
        path,
        "--columns",
        "worker=who",
        "--keep",
        "last",
        "--abstain",
        "?",
        "--gold",
        gold,
        "--class",
        "yes",
    )
    found = rows(done.stdout)
    # The second task has no vote; the mean of all tasks with votes is that of the first, which is known.
    told = [(row["task"], row["label"], row["confidence"], row["votes"]) for row in found]
    assert told == [("1", "yes", "1", "1"), ("2", "", "1", "0")]
    assert "2 abstentions by 1 worker" in done.stderr
    assert "1 of 2 items has no votes" in done.stderr
    assert "1 row left out" in done.stderr


def test_quiet_says_nothing(labels: Path, tmp_path: Path) -> None:
    done = rarevote("aggregate", labels, "-q", "-o", tmp_path / "r.csv")
    assert done.stdout == done.stderr == ""


def test_strict_tells_by_its_exit_code(labels: Path, tmp_path: Path) -> None:
    done = rarevote("aggregate", labels, "--set", "n_iter=1", "--strict", "-o", tmp_path / "r.csv", code=3)
    assert "warning" in done.stderr
    rarevote("aggregate", labels, "--strict", "-o", tmp_path / "r.csv")


def test_sparse_many_class_data_get_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i // 2},{i % 7},{i * 7 % 9}\n" for i in range(40)))
    said = rarevote("aggregate", path, "-m", "cc-rasch", "-o", tmp_path / "r.csv").stderr
    assert "very sparse" in said or "a label without a vote on the item" in said
    assert "--method anchored-rasch" in said
    assert "very sparse" not in rarevote("aggregate", path, "-o", tmp_path / "r.csv").stderr
    assert "very sparse" not in rarevote("aggregate", path, "-m", "majority-vote", "-o", tmp_path / "r.csv").stderr


def test_methods() -> None:
    shown = rarevote("methods").stdout
    assert "cc-rasch" in shown
    assert "majority-vote" in shown
    assert {entry["name"] for entry in json.loads(rarevote("methods", "--json").stdout)} >= {"cc-rasch"}


def test_simulate_is_reproducible_and_can_be_aggregated(tmp_path: Path) -> None:
    for name in ("one", "two"):
        rarevote("simulate", "--out", tmp_path / name, "--tasks", "200", "--seed", "3", "-q")
    assert (tmp_path / "one/labels.csv").read_bytes() == (tmp_path / "two/labels.csv").read_bytes()
    done = rarevote(
        "aggregate", tmp_path / "one/labels.csv", "--truth", tmp_path / "one/truth.csv", "-o", tmp_path / "r.csv"
    )
    assert "against the truth of 200 tasks" in done.stderr


def test_demo_shows_the_point() -> None:
    shown = rarevote("demo").stdout
    for method in ("majority vote", "Dawid–Skene", "CC-Rasch, as published", "the default"):
        assert method in shown
    assert shown.index("To find 90% of the defects, look at the") < shown.index("precision")
    assert str(example_files().labels) in shown
    # Beside what only the truth shows stands what the votes say.
    result = library.fit(example_files().labels, rare="defect").decide(min_recall={"defect": 0.9})
    assert result.target is not None
    few, many = (result.target.flags[world] for world in ("independent", "shared"))
    assert "Only the truth shows that 145 images are enough." in shown
    assert f"{few} images if inspectors make errors independently" in shown
    assert f"\n{many} if they share errors as real crowds do" in shown


def test_version_and_help() -> None:
    assert rarevote("--version").stdout.startswith("rarevote 0.")
    assert rarevote("-V").stdout == rarevote("--version").stdout
    assert "aggregate" in rarevote("--help").stdout
    assert "rarevote aggregate labels.csv" in rarevote("aggregate", "--help").stdout


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "arguments", "code", "message"),
    [
        (PLAIN, ["--method", "cc-rash"], 2, "did you mean cc-rasch?"),
        (PLAIN, ["--set", "sigmas=1"], 2, "no parameter 'sigmas'"),
        (PLAIN, ["--set", "sigma_alpha"], 2, "--set must be NAME=VALUE"),
        (PLAIN, ["--columns", "task"], 2, "--columns must be"),
        (PLAIN, ["--keep", "some"], 2, "keep must be"),
        (PLAIN, ["--json"], 1, "for the rows with --out"),
        (PLAIN, ["--out", "result.docx"], 1, "cannot write .docx"),
        (PLAIN, ["--out", "absent/result.csv"], 1, "cannot be written"),
        (PLAIN, ["--gold", "absent.csv"], 1, "absent.csv: no such file"),
        ("", [], 1, "the file is empty"),
        ("task,worker,label\n", [], 1, "no annotations"),
        ("a,b,c\n1,2,3\n", [], 1, "no column for task or worker or label; it has 'a', 'b', 'c'"),
        ("task,worker,label\n1,a,\n", [], 1, "1 row has no label (line 2)"),
        ("task,worker,label\n1,a,x\n1,a,y\n", ["--keep", "error"], 1, "repeats an earlier"),
        ("task,worker,label\n1,a\n", [], 1, "labels.csv: "),
    ],
)
def test_one_clear_message_and_nothing_written(
    tmp_path: Path, content: str, arguments: list[str], code: int, message: str
) -> None:
    (tmp_path / "labels.csv").write_text(content)
    (tmp_path / "result.csv").write_text("old")
    if "--out" not in arguments and "--json" not in arguments:
        arguments = [*arguments, "--out", "result.csv"]
    done = rarevote("aggregate", "labels.csv", *arguments, code=code, folder=tmp_path)
    said = [line for line in done.stderr.splitlines() if line.startswith("rarevote: error: ")]
    assert len(said) == 1
    assert message in done.stderr
    assert done.stdout == ""
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["labels.csv", "result.csv"]
    assert (tmp_path / "result.csv").read_text() == "old"


def test_more_classes_than_can_be(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i},w,{i}\n" for i in range(65_536)))
    done = rarevote("aggregate", path, "-o", tmp_path / "r.csv", code=1)
    assert "65,536 distinct labels" in done.stderr
    assert not (tmp_path / "r.csv").exists()


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("task,worker,label\n" + "".join(f"{i:099},v,{i % 2}\n{i:099},w,{i % 2}\n" for i in range(2_000)))
    command = f'"{sys.executable}" -m rarevote aggregate "{path}" -m majority-vote -q | head -n 1'
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True)
    assert done.stdout == "task,label,confidence,votes,p:0,p:1\n"
    assert done.stderr == ""
