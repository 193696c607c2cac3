"""Files, columns and methods on the command line, as a person or a script meets them."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.command import rarevote, rows

TEXTS = {"1": "a, b", "2": "=crack()", "3": "Riß"}
VOTES = [
    ("1", "ann", "ok"), ("1", "bob", "ok"), ("1", "cy", "crack"), ("2", "ann", "crack"), ("2", "bob", "crack"),
    ("2", "cy", "ok"), ("3", "ann", "ok"), ("3", "bob", "ok"), ("3", "cy", "ok"),
]  # fmt: skip


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["task", "worker", "label", "text"])
        writer.writerows([*vote, TEXTS[vote[0]]] for vote in VOTES)
    return path


# -- what goes in -----------------------------------------------------------------------------------------------------


def test_show_carries_columns_along(labels: Path, tmp_path: Path) -> None:
    found = rows(rarevote("aggregate", labels, "-m", "majority-vote", "--show", "text,worker", "-q").stdout)
    assert list(found[0]) == ["task", "label", "confidence", "votes", "p:crack", "p:ok", "text", "worker"]
    assert [row["text"] for row in found] == list(TEXTS.values())
    done = rarevote("aggregate", labels, "--show", "image", "-o", tmp_path / "r.csv", code=1)
    assert "no column 'image' to show; it has 'task', 'worker', 'label', 'text'" in done.stderr


def test_a_shown_column_never_hides_a_result(labels: Path) -> None:
    found = rows(rarevote("aggregate", labels, "-m", "majority-vote", "--show", "label", "-q").stdout)
    assert [(row["label"], row["show:label"]) for row in found] == [("ok", "ok"), ("crack", "crack"), ("ok", "ok")]


def test_the_rare_class_comes_first(labels: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.csv"
    said = rarevote("aggregate", labels, "-m", "majority-vote", "-o", out).stderr
    assert "crack (the rare class): 1 of 3 tasks (33.3%), with 33.3% of the votes" in said
    said = rarevote("aggregate", labels, "-m", "majority-vote", "-o", out, "--rare", "ok").stderr
    assert "ok (the class that matters): 2 of 3 tasks" in said
    done = rarevote("aggregate", labels, "-o", tmp_path / "new.csv", "--rare", "broken", code=2)
    assert "rare: 'broken' is not a class; the classes are crack, ok" in done.stderr
    assert not (tmp_path / "new.csv").exists()


def test_scores_speak_of_the_rare_class(labels: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    truth.write_text("task,label\n1,crack\n2,crack\n3,ok\n")
    arguments: list[str | Path] = [
        "aggregate",
        labels,
        "-m",
        "majority-vote",
        "-o",
        tmp_path / "r.csv",
        "--truth",
        truth,
    ]
    assert "recall of crack 50.0%, precision of crack 100%" in rarevote(*arguments, "--rare", "crack").stderr
    found = json.loads(rarevote(*arguments, "--rare", "crack", "--json").stdout)
    assert next(iter(found)) == "rare"
    assert found["rare"]["class"] == "crack"
    assert found["scores"]["rare_recall"] == 0.5


def test_wide_from_standard_input(tmp_path: Path) -> None:
    text = "image;ann;bob;cy\n1;ok;ok;crack\n2;crack;crack;\n"
    done = rarevote("aggregate", "-", "--wide", "-m", "majority-vote", stdin=text.encode())
    assert [(row["task"], row["label"]) for row in rows(done.stdout)] == [("1", "ok"), ("2", "crack")]
    assert "standard input: 5 annotations, 2 tasks, 3 workers" in done.stderr


def test_several_files_and_a_folder(labels: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    lines = labels.read_text(encoding="utf-8").splitlines(keepends=True)
    for number in range(3):
        (parts / f"{number}.csv").write_text(lines[0] + "".join(lines[1 + 3 * number : 4 + 3 * number]), "utf-8")
    expected = rarevote("aggregate", labels, "-q").stdout
    assert rarevote("aggregate", parts, "-q").stdout == expected
    assert rarevote("aggregate", *sorted(parts.iterdir()), "-q").stdout == expected
    assert rarevote("aggregate", str(parts / "*.csv"), "-q").stdout == expected


def test_known_labels_of_another_type(tmp_path: Path) -> None:
    pl.DataFrame({"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": [0, 1, 1]}).write_parquet(
        tmp_path / "x.parquet"
    )
    truth = tmp_path / "truth.csv"
    truth.write_text("task,label\n1,0\n2,1\n")
    done = rarevote(
        "aggregate", tmp_path / "x.parquet", "--truth", truth, "--gold", truth, "-o", tmp_path / "r.csv", "--json"
    )
    assert json.loads(done.stdout)["scores"]["accuracy"] == 1


def test_no_header(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\t1\tyes\nb\t1\tyes\na\t2\tno\n")
    done = rarevote("aggregate", tmp_path / "x.txt", "--no-header", "--columns", "worker=1,task=2,label=3", "-q")
    assert [(row["task"], row["label"]) for row in rows(done.stdout)] == [("1", "yes"), ("2", "no")]
    for known in ("1\tno\n2\tno\n", "task\ttruth\n1\tno\n2\tno\n"):  # with or without a header of its own
        (tmp_path / "gold.txt").write_text(known)
        done = rarevote(
            "aggregate", tmp_path / "x.txt", "--no-header", "--columns", "worker=1,task=2,label=3",
            "--gold", tmp_path / "gold.txt", "-q",
        )  # fmt: skip
        assert [row["label"] for row in rows(done.stdout)] == ["no", "no"]


def test_a_missing_header_is_suspected(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("a\t1\tyes\nb\t1\tyes\na\t2\tno\n")
    done = rarevote("aggregate", tmp_path / "x.txt", code=1)
    assert "No header line? --no-header --columns worker=1,task=2,label=3" in done.stderr


def label_studio(votes: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    return [
        {
            "id": int(task),
            "data": {"text": TEXTS[task]},
            "annotations": [
                {
                    "id": number,
                    "completed_by": {"id": 1, "email": f"{worker}@example.org"},
                    "was_cancelled": False,
                    "ground_truth": False,
                    "result": [
                        {"type": "choices", "from_name": "state", "to_name": "text", "value": {"choices": [label]}}
                    ],
                }
                for number, (of, worker, label) in enumerate(votes)
                if of == task
            ],
        }
        for task in TEXTS
    ]


def test_an_export_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "project-1.json"
    path.write_text(json.dumps(label_studio(VOTES)), encoding="utf-8")
    done = rarevote("aggregate", path, "--show", "text", "-m", "majority-vote")
    assert "Label Studio, question state" in done.stderr
    assert [(row["task"], row["label"], row["text"]) for row in rows(done.stdout)] == [
        ("1", "ok", "a, b"), ("2", "crack", "=crack()"), ("3", "ok", "Riß"),
    ]  # fmt: skip
    done = rarevote("aggregate", path, "--from", "toloka", "-o", tmp_path / "r.csv", code=1)
    assert "an export of Label Studio, not of Toloka" in done.stderr


def test_options_of_exports_need_one(labels: Path, tmp_path: Path) -> None:
    done = rarevote("aggregate", labels, "--question", "x", "-o", tmp_path / "r.csv", code=2)
    assert "--question needs a platform's export" in done.stderr


# -- what comes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "ndjson.gz", "csv.zst", "xlsx", "arrow"])
def test_results_can_be_read_again(labels: Path, tmp_path: Path, ending: str) -> None:
    out = tmp_path / f"result.{ending}"
    rarevote("aggregate", labels, "-m", "majority-vote", "--show", "text", "-o", out, "-q")
    # A result has task and label: it can serve as truth, whatever the format.
    done = rarevote("aggregate", labels, "-m", "majority-vote", "--truth", out, "-o", tmp_path / "x.csv", "--json")
    assert json.loads(done.stdout)["scores"]["accuracy"] == 1


def test_formulas_in_csv(labels: Path) -> None:
    plain = rows(rarevote("aggregate", labels, "--show", "text", "-q").stdout)
    safe = rows(rarevote("aggregate", labels, "--show", "text", "-q", "--spreadsheet-safe").stdout)
    assert [row["text"] for row in plain] == ["a, b", "=crack()", "Riß"]
    assert [row["text"] for row in safe] == ["a, b", "'=crack()", "Riß"]


def test_output_that_cannot_be_written_is_refused_before_the_work(labels: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    for out in ("absent/r.csv", "folder.csv", "/proc/r.csv"):
        done = rarevote("aggregate", labels, "-o", out, folder=tmp_path, code=1)
        assert "fitting" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.csv", "labels.csv"]


# -- compare ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    rarevote("simulate", "--tasks", "300", "--seed", "1", "--out", tmp_path / "crowd", "-q")
    return tmp_path / "crowd"


def test_compare_with_truth(crowd: Path) -> None:
    done = rarevote(
        "compare", crowd / "labels.csv", "--truth", crowd / "truth.csv", "--methods", "majority-vote,cc-rasch"
    )
    assert "against the truth of 300 items" in done.stdout
    for figure in ("recall of 1", "precision of 1", "balanced accuracy", "macro-F1", "accuracy", "log loss"):
        number = r"\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\)"
        assert re.search(rf"^{figure} +{number} +{number}$", done.stdout, re.MULTILINE), figure
        signed = number.replace(r"\d\.", r"[+-]\d\.")
        assert re.search(rf"^{figure} +{signed}$", done.stdout, re.MULTILINE), figure
    found = json.loads(rarevote("compare", crowd / "labels.csv", "--truth", crowd / "truth.csv", "--json", "-q").stdout)
    assert list(found["scores"]) == ["majority-vote", "dawid-skene", "cc-rasch", "anchored-rasch"]
    by_hand = rarevote(
        "aggregate", crowd / "labels.csv", "-m", "cc-rasch", "--truth", crowd / "truth.csv",
        "-o", crowd / "r.csv", "--json",
    )  # fmt: skip
    alone = json.loads(by_hand.stdout)["scores"]
    assert found["scores"]["cc-rasch"]["recall"] == alone["recall"]
    assert found["scores"]["cc-rasch"]["macro_f1"] == alone["macro_f1"]
    scores = found["scores"]
    assert scores["majority-vote"]["difference"] is None
    for name in ("dawid-skene", "cc-rasch"):
        less = scores[name]["difference"]
        for figure in ("rare_recall", "balanced_accuracy", "macro_f1", "accuracy", "log_loss"):
            own = scores[name]["intervals"][figure]
            assert own["low"] <= own["value"] <= own["high"]
            assert own["value"] == pytest.approx(scores[name][figure])
            gap = scores[name][figure] - scores["majority-vote"][figure]
            assert less[figure]["value"] == pytest.approx(gap)
        assert set(less["recall"]) == {"0", "1"}


def test_compare_shows_every_class_or_says_which_it_leaves_out(tmp_path: Path) -> None:
    for n_classes, n_shown in ((12, 12), (20, 13)):
        rows = [f"{task},{worker},c{task % n_classes:02d}" for task in range(4 * n_classes) for worker in "ab"]
        truth = [f"{task},c{task % n_classes:02d}" for task in range(4 * n_classes)]
        (tmp_path / "labels.csv").write_text("\n".join(["task,worker,label", *rows]))
        (tmp_path / "truth.csv").write_text("\n".join(["task,label", *truth]))
        done = rarevote(
            "compare", tmp_path / "labels.csv", "--truth", tmp_path / "truth.csv", "--methods", "majority-vote"
        )
        shown = re.findall(r"^c\d\d", done.stdout, re.MULTILINE)
        assert len(shown) == 2 * n_shown  # recall, and share of items
        left = re.findall(r"^\.\.\. (\d+) more classes .*--json has all", done.stdout, re.MULTILINE)
        assert left == ([str(n_classes - n_shown)] * 2 if n_shown < n_classes else [])


def test_compare_without_truth(crowd: Path, tmp_path: Path) -> None:
    out = tmp_path / "differences.csv"
    done = rarevote("compare", crowd / "labels.csv", "--methods", "majority-vote,dawid-skene", "--out", out)
    assert "majority-vote / dawid-skene" in done.stdout
    assert "the methods disagree on" in done.stdout
    found = json.loads(
        rarevote("compare", crowd / "labels.csv", "--methods", "majority-vote,dawid-skene", "--json", "-q").stdout
    )
    with out.open(newline="", encoding="utf-8") as handle:
        different = list(csv.DictReader(handle))
    assert len(different) == found["n_different"] == found["agreement"][0]["n_different"] > 0
    assert all(row["majority-vote"] != row["dawid-skene"] for row in different)
    assert f"wrote {out}: {len(different):,} items" in done.stderr


def test_compare_leaves_gold_out_of_the_scores(crowd: Path, tmp_path: Path) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("".join((crowd / "truth.csv").read_text().splitlines(keepends=True)[:101]))
    arguments: list[str | Path] = [
        "compare",
        crowd / "labels.csv",
        "--truth",
        crowd / "truth.csv",
        "--gold",
        gold,
        "--json",
        "-q",
    ]
    found = json.loads(rarevote(*arguments, "--methods", "cc-rasch,gold-majority-vote,wawa").stdout)
    assert {one["n_items"] for one in found["scores"].values()} == {200}


def test_a_method_that_cannot_run_is_left_out(crowd: Path) -> None:
    done = rarevote("compare", crowd / "labels.csv", "--methods", "majority-vote,gold-majority-vote")
    assert "left out: gold-majority-vote" in done.stderr
    done = rarevote("compare", crowd / "labels.csv", "--methods", "gold-majority-vote", code=1)
    assert "no method could run" in done.stderr
    rarevote("compare", crowd / "labels.csv", "--methods", "nonsense", code=2)
    rarevote("compare", crowd / "labels.csv", "--methods", " , ", code=2)


# -- the command line as a product ------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["aggregate", "compare", "convert", "simulate", "methods", "demo", "datasets"])
def test_help_has_examples(verb: str) -> None:
    shown = rarevote(verb, "--help").stdout
    assert "Example" in shown
    assert f"rarevote {verb}" in shown.split("Example")[1]
    assert "\x1b[" not in shown


def test_colours_only_where_wanted(labels: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    command = [sys.executable, "-m", "rarevote", "aggregate", str(labels), "-m", "nonsense"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "\x1b[" not in done.stdout + done.stderr
    done = rarevote("aggregate", labels, "-m", "nonsense", code=2, environment={"NO_COLOR": "1"})
    assert "\x1b[" not in done.stdout + done.stderr


def test_completion_knows_verbs_and_methods() -> None:
    environment = {
        **os.environ,
        "_RAREVOTE_COMPLETE": "bash_complete",
        "COMP_WORDS": "rarevote comp",
        "COMP_CWORD": "1",
    }
    program = str(Path(sys.executable).parent / "rarevote")
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert "compare" in done.stdout
    environment |= {"COMP_WORDS": "rarevote aggregate x.csv --method maj", "COMP_CWORD": "4"}
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "plain,majority-vote"


def test_verbose_tells_iterations_and_parameters(labels: Path, tmp_path: Path) -> None:
    said = rarevote("aggregate", labels, "-v", "-o", tmp_path / "r.csv").stderr
    assert "fitting anchored-rasch: iteration 1, change" in said
    assert "parameters: n_iter=" in said


@pytest.mark.prove
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    path, temporary = tmp_path / "x.csv", tmp_path / "temporary"
    temporary.mkdir()
    with path.open("w") as handle:
        handle.write("task,worker,label\n")
        handle.writelines(f"{row % 99991},{row % 997},{row % 3}\n" for row in range(1_500_000))
    command = [sys.executable, "-m", "rarevote", "aggregate", str(path), "-o", str(tmp_path / "r.csv")]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    end = time.monotonic() + 60
    while not list(temporary.iterdir()) and running.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    running.send_signal(sent)
    _, said = running.communicate(timeout=60)
    assert running.returncode == code
    assert "Traceback" not in said
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["temporary", "x.csv"]
    assert not list(temporary.iterdir())


# The peak that wait4 tells is that of the process that forked, if that was larger.
TELLS_ITS_PEAK = """
import sys
from rarevote.cli import run
code = run()
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
sys.exit(code)
"""


def processor_seconds_of_children() -> float:
    used = os.times()
    return used.children_user + used.children_system


@pytest.mark.prove
@pytest.mark.parametrize("first_lines", ["", "task,worker,label\n1,a,x\n"])
@pytest.mark.parametrize("ending", ["csv", "json", "ndjson", "parquet", "xlsx", "arrow"])
def test_two_gigabytes_of_nothing_are_refused_at_once(tmp_path: Path, first_lines: str, ending: str) -> None:
    path = tmp_path / f"sparse.{ending}"
    path.write_text(first_lines)
    os.truncate(path, 2 << 30)
    command = [sys.executable, "-c", TELLS_ITS_PEAK, "aggregate", str(path), "-o", str(tmp_path / "r.csv")]
    begin = processor_seconds_of_children()
    done = subprocess.run(command, capture_output=True, text=True)
    assert processor_seconds_of_children() - begin < 10
    assert done.returncode == 1
    assert int(done.stdout.split()[-2]) < 1_000_000  # kilobytes
    assert done.stderr.count("rarevote: error: ") == 1
    assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208
